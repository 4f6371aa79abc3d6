"""The games that are played: two learners on the large matrix, or on a tiny one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import driftwolfe as dw
from benchmarks import large_matrix

#: The tiny stream: shape, entries a round, rounds.
TINY = ((810, 310), 125, 12)


@dataclass(frozen=True)
class Game:
    """A learner, made for a device, and the stream that it plays.

    Attributes
    ----------
    learner
        Makes it, given the name of a device.
    stream
        Shape, entries a round, rounds.
    opening, looked_at
        Rounds before a closer look, and rounds of that look.
    """

    learner: Callable[[str], dw.POLD]
    stream: tuple[tuple[int, int], int, int]
    opening: int
    looked_at: int

    @property
    def rounds(self) -> int:
        """Rounds of the whole game."""
        return self.stream[2]

    def losses(self, stop: int, start: int = 0) -> list[Any]:
        """Some rounds' losses, made anew: none of them is on a device yet."""
        shape, per_round, _ = self.stream
        return list(islice(large_matrix.stream(shape, per_round, stop), start, None))

    def opened(self, device: str) -> dw.POLD:
        """The learner after its opening."""
        learner = self.learner(device)
        dw.play(learner, self.losses(self.opening), keep_losses=False)
        return learner


def games(short: bool) -> dict[str, Game]:
    """POLD with low ranks, as in the row `scale`, and with wide ones."""
    if short:
        wide, low = _tiny_pold(150.0, 60.0), _tiny_pold(15.0, 45.0)
        return {"wide": Game(wide, TINY, 4, 3), "low": Game(low, TINY, 4, 3)}
    stream = (large_matrix.SHAPE, large_matrix.PER_ROUND, large_matrix.HORIZON)
    return {
        "wide": Game(large_matrix.pold_wide, stream, 100, 60),
        "low": Game(large_matrix.pold, stream, 100, 60),
    }


def warm_up(device: str) -> None:
    """Compile and load what any game needs, on a tiny one."""
    games(short=True)["wide"].opened(device)


def projections(learner: dw.POLD) -> int:
    """How many projections the experts have made."""
    return int(learner._experts.projections)


def _tiny_pold(radius: float, scale: float) -> Callable[[str], dw.POLD]:
    return partial(_pold_on, TINY[0], radius, scale)


def _pold_on(shape: tuple[int, int], radius: float, scale: float, device: str) -> dw.POLD:
    ball = dw.TraceNormBall(shape, radius, device=device)
    return dw.POLD(ball, horizon=TINY[2], step_scale=scale)
