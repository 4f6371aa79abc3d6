"""Budgets of LMO calls, accounted per expert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from driftwolfe.points.kinds import Array
from driftwolfe.storage import require

#: Sums of shares that should be whole numbers may fall short by this.
ROUNDING = 1e-9


def granted(share: float, block: int) -> int:
    """Whole calls that an expert with such a share may make in a block."""
    return math.floor(share * block)


@dataclass
class LMOBudget:
    r"""At most `rate` linear minimisations a round in all, after every round.

    Every expert saves its share in each round of its block. When its block ends it may spend what it
    has saved, and beyond that whatever nobody has a claim to: with :math:`A_j` the savings of
    expert j, the total spent after t rounds stays below :math:`rate \cdot t - \sum_j A_j`. So none
    can be robbed of its share by another, and what one does not need is of use to the rest.

    Parameters
    ----------
    rate
        Linear minimisations a round.

    Attributes
    ----------
    rounds, spent
        Rounds that have passed, and what was spent in them.
    """

    STATE: ClassVar[tuple[str, ...]] = ("rounds", "spent")

    rate: float
    rounds: int = 0
    spent: int = 0

    def round_budget(self, savings: Array) -> RoundBudget:
        """Return the accounts of the coming round; `savings` are those of every expert by its end."""
        return RoundBudget(self.rate * (self.rounds + 1), self.spent, savings)

    def arriving(self) -> int:
        """Whole calls that the coming round brings, where none can be saved."""
        return math.floor(self.rate * (self.rounds + 1)) - math.floor(self.rate * self.rounds)

    def close(self, calls: int) -> None:
        """Let a round pass in which so many calls were made."""
        self.rounds += 1
        self.spent += calls

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        fits = self.rounds >= 0 and 0 <= self.spent <= self.rate * self.rounds
        require(fits, "calls and rounds")


class RoundBudget:
    """What experts may spend in one round, one after the other.

    Attributes
    ----------
    paid
        Calls made in this round.
    """

    def __init__(self, income: float, spent: int, savings: Array) -> None:
        self.paid = 0
        self._income, self._spent = income, spent
        self._savings: Any = savings.copy()

    def limit(self, i: int) -> int:
        """Calls that expert i may make now."""
        claims = float(self._savings.sum() - self._savings[i])
        spent = self._spent + self.paid
        free = math.floor(self._income - spent - claims + ROUNDING)
        return max(0, min(free, math.floor(self._income) - spent))

    def pay(self, i: int, calls: int) -> None:
        """Expert i has made so many calls; its savings are used up."""
        self.paid += calls
        self._savings[i] = 0.0
