"""Statlog Shuttle as a stream."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains import TraceNormBall
from driftwolfe.points.kinds import Array
from driftwolfe.streams.files import DataFile, Folder
from driftwolfe.streams.length import rounds_of, rows_played
from driftwolfe.streams.multiclass import multiclass
from driftwolfe.streams.stream import Stream

ROWS = DataFile(
    path="shuttle/shuttle.scale",
    size=4_646_206,
    sha256="f9f8ba4159949a451d11f625085c92065e72cce657e7df0633de3aa45ecbc9ba",
    source="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html#shuttle",
    url="https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/shuttle.scale",
)
#: Classes and features.
SHAPE = (7, 9)
#: Rounds between flips in the paper's stream.
FLIP_EVERY = 1000

#: A number of rounds, None for no flips, or "auto".
Flips: TypeAlias = int | Literal["auto"] | None
#: Rows of features, and their classes from 0.
Table: TypeAlias = tuple[Array, NDArray[np.intp]]


def shuttle(
    data: Folder | None = None,
    per_round: int = 10,
    flip_every: Flips = "auto",
    seed: int | np.random.Generator | None = None,
    radius: float = 100.0,
    rounds: int | None = None,
) -> Stream:
    """Return Shuttle as the paper plays it: 4,350 rounds of 10 rows, signs flipped every 1,000.

    43,500 rows of 9 features in [-1, 1], 7 classes, four fifths of them in the first; in the order
    of the LIBSVM file ``shuttle.scale`` unless shuffled. No constant feature is added.

    Parameters
    ----------
    data
        The folder that holds ``shuttle/shuttle.scale`` or ``shuttle/shuttle.scale.gz``; if not given,
        the one that the environment variable DRIFTWOLFE_DATA names; if that is not set either, the
        user's cache (see `driftwolfe.streams.cache`), into which the file is downloaded from its
        publisher where it is missing. DRIFTWOLFE_OFFLINE=1 forbids that.
    per_round, seed
        As in `multiclass`.
    flip_every
        Rounds between flips; None for none; ``"auto"`` for 1,000, or, in a shorter stream, for so
        many fewer as the stream is shorter: ``max(1, round(1000 * rounds / 4350))``.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.
    rounds
        Length of a shorter stream with the same drift, from the first rows of the file; None for all.

    Raises
    ------
    FileNotFoundError
        Where a folder is named that does not hold the file.
    DataUnavailable
        Where the file is neither on this machine nor to be downloaded; `shuttle_twin` makes up rows of
        the same shape.

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
    table = _parse(ROWS.read(data))
    return table_stream(table, "Shuttle", rounds, per_round, flip_every, seed, radius)


def table_stream(
    table: Table,
    name: str,
    rounds: int | None,
    per_round: int,
    flip_every: Flips,
    seed: int | np.random.Generator | None,
    radius: float,
) -> Stream:
    """Return rows of that many features and classes, real or made up, as `shuttle` plays them."""
    features, labels = table
    kept = rows_played(labels.size, per_round, rounds)
    if flip_every == "auto":
        share = rounds_of(kept, per_round) / rounds_of(labels.size, per_round)
        flip_every = max(1, round(FLIP_EVERY * share))
    stream = multiclass(features[:kept], labels[:kept], SHAPE[0], per_round, flip_every, seed)
    return replace(stream, name=name, domain=TraceNormBall(SHAPE, radius))


def _parse(content: bytes) -> Table:
    """Rows of LIBSVM text, ``class index:value ...``: features, zeros filled in, and classes from 0."""
    lines = content.decode("ascii", errors="replace").splitlines()
    features = np.zeros((len(lines), SHAPE[1]))
    labels = np.empty(len(lines), dtype=np.intp)
    for row, line in enumerate(lines):
        try:
            label, *pairs = line.split()
            labels[row] = _place(label, SHAPE[0])
            for pair in pairs:
                index, _, value = pair.partition(":")
                features[row, _place(index, SHAPE[1])] = _feature(value)
        except ValueError as error:
            raise ValueError(
                f"line {row + 1} of the Shuttle file is no class with numbered features in [-1, 1]: "
                f"{line[:60]!r}"
            ) from error
    return features, labels


def _place(text: str, size: int) -> int:
    """A number that counts from 1, counted from 0."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= size):
        raise ValueError(f"{text!r} is not in 1..{size}")
    return int(text) - 1


def _feature(text: str) -> float:
    value = float(text)
    if not -1.0 <= value <= 1.0:
        raise ValueError(f"{text!r} is not in [-1, 1]")
    return value
