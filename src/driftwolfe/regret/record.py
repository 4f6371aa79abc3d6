"""What the measures need to know of a game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array


class Record(Protocol):
    """A finished game: `driftwolfe.game.History` is one.

    The measures ask for no more than this, so that any game can be measured, however it was played.
    """

    @property
    def domain(self) -> Domain:
        """The learner's set."""

    @property
    def losses(self) -> Array:
        """What the decisions suffered, one number a round."""

    @property
    def functions(self) -> Sequence[Loss]:
        """The losses themselves, one a round."""


def check_record(history: Record) -> int:
    """Return the number of rounds of a game that can be measured, or raise `ValueError`."""
    rounds = len(history.losses)
    if rounds == 0:
        raise ValueError("the history holds no rounds; play at least one before measuring")
    if len(history.functions) != rounds:
        raise ValueError(
            f"the history holds {rounds} rounds but {len(history.functions)} loss functions, which "
            "the regret is measured with; record them with play(..., keep_losses=True)"
        )
    return rounds
