"""Checkpoints: a game that is killed goes on where it was."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from driftwolfe.ensemble.saved_kinds import ensemble_kinds
from driftwolfe.learners.archive import (
    learner_settings,
    needed_arrays,
    require_named_state,
    restored,
)
from driftwolfe.learners.base import Learner
from driftwolfe.points.access import reads_whole, writes
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.saved_kinds import is_point
from driftwolfe.storage import files, read_archive, write_archive
from driftwolfe.storage.archive import Header, enough_memory
from driftwolfe.storage.tree import TreeReader, TreeWriter, shared_names

KIND = "Game"


@dataclass(eq=False)
class Record:
    """What has been written down of a game so far.

    Attributes
    ----------
    rows
        Seconds, loss and calls of each round.
    decisions, weights
        Of each round, if recorded.
    """

    rows: list[tuple[float, ...]] = field(default_factory=list)
    decisions: list[Point] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)


class Checkpoint:
    """A file that holds a learner and the record of its game.

    Parameters
    ----------
    path
        The file; it is replaced whole, so a kill leaves the last one.
    learner
        As it is before the game.
    """

    def __init__(self, path: str | os.PathLike[str], learner: Learner) -> None:
        self.path = Path(path)
        self._first = learner.t
        require_named_state(learner)  # now, not after the first thousand rounds
        with files.explained(self.path):
            files.destination(self.path)

    def resume(self, learner: Learner, recording: tuple[bool, bool]) -> Record:
        """Take the learner to where the file left it, and return the record; empty without a file.

        `recording` says whether decisions and weights are recorded. A file of another game is
        refused, and the learner stays as it is.
        """
        if not self.path.exists():
            return Record()

        def check(header: Header) -> set[str]:
            with self._refused_if_another():
                self._require_same_game(header, recording)
                return needed_arrays(header) | {"rows"}

        archive = read_archive(self.path, check)
        with enough_memory(self.path), self._refused_if_another():
            reached = restored(learner, archive)
            record = self._record(archive.settings, archive.arrays)
            if reached.t != self._first + len(record.rows):
                raise ValueError("its rounds do not add up")
        _move(learner, reached)
        return record

    @contextmanager
    def _refused_if_another(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise ValueError(
                f"{self.path} is no checkpoint of this game: {error}; remove it to start anew"
            ) from error

    def save(self, learner: Learner, record: Record, recording: tuple[bool, bool]) -> None:
        """Write where the game is; refuse where something else moved the learner meanwhile."""
        _write_game(learner, record, recording, self._first, self.path)

    def _require_same_game(self, archive: Header, recording: tuple[bool, bool]) -> None:
        if archive.kind != KIND:
            raise ValueError(f"it holds a {archive.kind[:40]}")
        first = archive.settings.get("first")
        if first != self._first:
            raise ValueError(
                f"it began with round {str(first)[:40]}, and this learner has played {self._first} rounds "
                "already; give one made anew"
            )
        if archive.settings.get("recording") != list(recording):
            raise ValueError("it was recorded with other record_decisions or record_weights")

    @staticmethod
    def _record(settings: dict[str, Any], arrays: dict[str, Any]) -> Record:
        reader = TreeReader(ensemble_kinds(), arrays, shared_names(settings))
        rows = arrays.get("rows")
        lists = [_unpacked(reader.read(settings.get(name))) for name in ("decisions", "weights")]
        if not (isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.shape[1] == 6):
            raise ValueError("it has no record of rounds")
        if rows.dtype != np.float64 or not all(type(held) is list for held in lists):
            raise ValueError("it has no record of rounds")
        if not (np.isfinite(rows).all() and (rows[:, 2:] >= 0).all()):
            raise ValueError("its record of rounds holds numbers that are none")
        if not all(len(held) in (0, len(rows)) and all(map(is_point, held)) for held in lists):
            raise ValueError("it has no record of points")
        return Record([tuple(row) for row in rows.tolist()], *lists)


@writes
def _move(learner: Learner, reached: Learner) -> None:
    """Put a learner into the state of another one."""
    learner.__dict__.update(reached.__dict__)


@reads_whole
def _write_game(
    learner: Learner, record: Record, recording: tuple[bool, bool], first: int, path: Path
) -> None:
    if learner.t != first + len(record.rows):
        raise RuntimeError(
            f"the game has played {len(record.rows):,} rounds from round {first:,} on, but its learner is "
            f"at round {learner.t:,}: a callback or another thread has moved it; {path} stays as it was"
        )
    writer = TreeWriter(ensemble_kinds())
    settings = {
        **learner_settings(learner, writer),
        "learner": type(learner).__name__,
        "first": first,
        "recording": list(recording),
        "decisions": writer.write(_packed(record.decisions)),
        "weights": writer.write(_packed(record.weights)),
    }
    rows = np.array(record.rows, dtype=np.float64).reshape(-1, 6)
    write_archive(path, KIND, settings, {**writer.arrays, "rows": rows})


def _packed(points: list[Any]) -> Any:
    """Dense points end to end in one array, and their lengths: a file holds few arrays, if long ones."""
    if not points or not all(isinstance(point, np.ndarray) for point in points):
        return points
    lengths = np.array([len(point) for point in points])
    return lengths, np.concatenate(points)


def _unpacked(packed: Any) -> Any:
    if not isinstance(packed, tuple):
        return packed
    arrays = len(packed) == 2 and all(isinstance(part, np.ndarray) for part in packed)
    if not (arrays and packed[0].dtype == np.int64 and packed[0].ndim == 1 <= packed[1].ndim):
        raise ValueError("it has no record of points")
    lengths, numbers = packed
    if lengths.min(initial=0) < 0 or lengths.sum() != len(numbers):
        raise ValueError("it has no record of points")
    return np.split(numbers, np.cumsum(lengths)[:-1])
