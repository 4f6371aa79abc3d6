"""The best fixed points between drifts: what regret is measured against."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from driftwolfe.experiments.data_set import DataSet
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.storage import files
from driftwolfe.streams.files import Folder

#: Gap of the minima, as a share of the loss of the origin: for few entries, and for more than these.
_FINE, _ROUGH, _FEW = 1e-6, 1e-2, 10_000


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least loss of a fixed point over some rounds: it lies between value - gap and value.

    Attributes
    ----------
    start, end
        The rounds, counted from 0, as in ``losses[start:end]``.
    value, gap
        What a point of the set was found to suffer, and the width of the certified interval.
    """

    start: int
    end: int
    value: float
    gap: float


def stretches(rounds: int, drifts: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of rounds between drifts.

    >>> stretches(10, [4, 8])
    [(0, 4), (4, 8), (8, 10)]
    """
    ends = [t for t in drifts if 0 < t < rounds]
    return list(zip([0, *ends], [*ends, rounds], strict=True))


def minima(data: DataSet, seed: int, folder: Folder | None = None) -> list[Minimum]:
    """Solve for the best fixed point of every stretch between drifts.

    >>> [round(m.value, 6) for m in minima(DataSet(name="jumping-target", rounds=40), seed=0)]
    [0.0, 0.0, 0.0, 0.0]
    """
    stream = data.load(seed, folder)
    assert stream.domain is not None  # every data set has one
    tolerance = _FINE if math.prod(stream.domain.shape) <= _FEW else _ROUGH
    found = []
    for start, end in stretches(len(stream), stream.drifts):
        best = offline_minimum(stream.domain, stream.losses[start:end], tolerance=tolerance)
        found.append(Minimum(start, end, best.value, best.gap))
    return found


def minima_path(place: Path, data: DataSet, seed: int) -> Path:
    """Where the minima are kept in the folder of a sweep.

    Where a seed only changes the order of rounds within stretches, all seeds share one file.
    """
    used = 0 if data.order_within_stretches else seed
    rounds = "" if data.rounds is None else f"-{data.rounds}"
    return place / "minima" / f"{data.name}{rounds}-seed{used}.json"


def stored_minima(
    place: Path, data: DataSet, seed: int, folder: Folder | None = None
) -> list[Minimum]:
    """As `minima`, solved once and kept in the folder of a sweep."""
    path = minima_path(place, data, seed)
    if path.exists():
        return read_minima(path)
    found = minima(data, seed, folder)
    files.write_bytes(path, msgspec.json.encode(found) + b"\n")
    return found


def read_minima(path: Path) -> list[Minimum]:
    """Read what `stored_minima` has kept."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Minimum])
    except msgspec.MsgspecError as problem:
        raise ValueError(
            f"{path} is not a list of offline minima ({problem}); delete it, and it is made again"
        ) from problem
