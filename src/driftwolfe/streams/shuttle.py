"""Statlog Shuttle as a stream."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains import TraceNormBall
from driftwolfe.points.kinds import Array
from driftwolfe.streams.files import DataFile, Folder
from driftwolfe.streams.multiclass import multiclass
from driftwolfe.streams.stream import Stream

ROWS = DataFile(
    path="shuttle/shuttle.scale",
    size=4_646_206,
    sha256="f9f8ba4159949a451d11f625085c92065e72cce657e7df0633de3aa45ecbc9ba",
    source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#shuttle",
)
#: Classes and features.
SHAPE = (7, 9)


def shuttle(
    data: Folder | None = None,
    per_round: int = 10,
    flip_every: int | None = 1000,
    seed: int | np.random.Generator | None = None,
    radius: float = 100.0,
) -> Stream:
    """Return Shuttle as the paper plays it: 4,350 rounds of 10 rows, signs flipped every 1,000.

    43,500 rows of 9 features in [-1, 1], 7 classes, four fifths of them in the first; in the order
    of the LIBSVM file ``shuttle.scale`` unless shuffled. No constant feature is added.

    Parameters
    ----------
    data
        The folder that holds ``shuttle/shuttle.scale`` or ``shuttle/shuttle.scale.gz``; if not given,
        the one that the environment variable DRIFTWOLFE_DATA names.
    per_round, flip_every, seed
        As in `multiclass`.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.shuttle("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: neither shuttle/shuttle.scale nor shuttle/shuttle.scale.gz is in /nowhere; ...

    References
    ----------
    Statlog (Shuttle), UCI Machine Learning Repository, doi:10.24432/C5WS31; scaled by Chang, Lin
    (2011), LIBSVM: a library for support vector machines, ACM TIST 2(27).
    """
    features, labels = _parse(ROWS.read(data))
    stream = multiclass(features, labels, SHAPE[0], per_round, flip_every, seed)
    return replace(stream, name="Shuttle", domain=TraceNormBall(SHAPE, radius))


def _parse(content: bytes) -> tuple[Array, NDArray[np.intp]]:
    """Rows of LIBSVM text, ``class index:value ...``: features, zeros filled in, and classes from 0."""
    lines = content.decode("ascii").splitlines()
    features = np.zeros((len(lines), SHAPE[1]))
    labels = np.empty(len(lines), dtype=np.intp)
    for row, line in enumerate(lines):
        label, *pairs = line.split()
        labels[row] = int(label) - 1
        for pair in pairs:
            index, _, value = pair.partition(":")
            features[row, int(index) - 1] = float(value)
    return features, labels
