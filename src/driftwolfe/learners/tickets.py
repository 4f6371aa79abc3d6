"""Tickets: decisions whose losses come later."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

from driftwolfe.points.kinds import Point
from driftwolfe.storage import require


class Ticket(NamedTuple):
    """A decision to play now, whose loss may come at any later time; from `Learner.ask`.

    Attributes
    ----------
    number
        0 for the learner's first ticket, then 1, 2, ...; it may stand for the ticket.
    decision
        The point to play.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(1), horizon=4, lipschitz=1.0)
    >>> first, second = learner.ask(), learner.ask()
    >>> learner.update(dw.losses.LinearLoss([1.0]), second), [each.number for each in learner.tickets]
    (0.0, [0])
    """

    number: int
    decision: Point


class Tickets:
    """The open tickets of a learner, and what delays have cost it.

    Of each late loss, `excess` sums its value at the ticket's decision less that at the decision when
    it came; `positive` sums the positive ones of these differences, and `largest` is the largest.
    """

    def __init__(
        self,
        asked: int = 0,
        numbers: Sequence[int] = (),
        points: Sequence[Point] = (),
        excess: float = 0.0,
        positive: float = 0.0,
        largest: float = 0.0,
    ) -> None:
        in_order = all(a < b for a, b in zip((-1, *numbers), (*numbers, asked), strict=True))
        require(in_order and len(numbers) == len(points), "tickets")
        require(0.0 <= largest <= positive and excess <= positive * (1 + 1e-9), "costs of delays")
        self.asked = asked
        self.open = dict(zip(numbers, points, strict=True))  # in the order they were asked for
        self.excess, self.positive, self.largest = excess, positive, largest

    @property
    def numbers(self) -> list[int]:
        return list(self.open)

    @property
    def points(self) -> list[Point]:
        return list(self.open.values())

    def add(self, decision: Point) -> Ticket:
        """Open a ticket; what the user does to its decision changes nothing here."""
        self.open[self.asked] = decision
        self.asked += 1
        return Ticket(self.asked - 1, copy.copy(decision))

    def find(self, ticket: Any) -> int:
        """The number of an open ticket, which may be given as its number."""
        number = ticket.number if isinstance(ticket, Ticket) else ticket
        if type(number) is not int:
            raise TypeError(
                "ticket must be what learner.ask() returned, or its number, got "
                f"{type(ticket).__name__}"
            )
        if number in self.open:
            return number
        if 0 <= number < self.asked:
            raise ValueError(f"ticket {number} has been used: each takes one loss")
        raise ValueError(
            f"this learner has given out no ticket {number}, only {self.asked}; ask it for one with "
            "learner.ask()"
        )

    def close(self, number: int, excess: float) -> None:
        """Use a ticket up."""
        del self.open[number]
        self.excess += excess
        self.positive += max(excess, 0.0)
        self.largest = max(self.largest, excess)

    def cost(self, tau: int | None) -> float:
        """What delays add to a bound on the regret: so far, or on any tau losses in a row."""
        return self.excess if tau is None else min(self.positive, tau * self.largest)
