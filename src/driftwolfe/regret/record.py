"""Finished games, and numbers with certificates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


class Record(Protocol):
    """A finished game, as the measures need it; `driftwolfe.game.History` is one."""

    domain: Domain
    #: The losses of the decisions, and the loss functions, one per round.
    losses: Array
    functions: list[Loss]


def check_record(history: Record) -> int:
    """Return the number of rounds, or raise `ValueError` if the game cannot be measured."""
    rounds = len(history.losses)
    if rounds == 0:
        raise ValueError("the history holds no rounds; play at least one before measuring")
    if len(history.functions) != rounds:
        raise ValueError(
            f"the history holds {rounds} rounds but {len(history.functions)} loss functions, which "
            "the regret is measured with; record them with play(..., keep_losses=True)"
        )
    return rounds


class Certified(float):
    """A float with a certificate: the truth lies between it and it plus `gap`.

    Parameters
    ----------
    value
        The lower end.
    gap
        Width of the interval, in the same units; 0 where the number is exact up to rounding.

    Examples
    --------
    >>> length = Certified(3.0, gap=0.5)
    >>> length + 1, length.gap, length.upper
    (4.0, 0.5, 3.5)
    """

    gap: float

    def __new__(cls, value: float, gap: float = 0.0) -> Self:
        number = super().__new__(cls, value)
        number.gap = float(gap)
        return number

    @property
    def upper(self) -> float:
        """The upper end of the interval."""
        return float(self) + self.gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self):.6g}, gap={self.gap:.2g})"

    def __str__(self) -> str:
        return repr(float(self))


class Regret(Certified):
    r"""The loss of a learner beyond that of its comparators.

    The minimum of a sum of losses is known to lie in :math:`[v - gap, v]`, with v reached by a point
    of the set. So the regret lies in :math:`[r, r + gap]`, with r reached by `comparators`.

    Parameters
    ----------
    value
        The lower end r, in units of the loss.
    gap
        Width of the interval that holds the regret; 0 where it is exact up to rounding.
    window
        ``(start, end)``: the rounds it was measured on, as in ``losses[start:end]``.
    comparators
        One point per round of the window, or a single one for all of them.
    lengths
        The lengths of the windows among which this one has the largest regret; empty for the regret
        of the whole game.

    Examples
    --------
    >>> regret = Regret(7.25, gap=0.5, window=(0, 100))
    >>> regret
    Regret(7.25, gap=0.5, window=(0, 100))
    >>> regret / 100
    0.0725
    """

    window: tuple[int, int]
    comparators: tuple[Point, ...]
    lengths: Sequence[int]

    def __new__(
        cls,
        value: float,
        gap: float = 0.0,
        window: tuple[int, int] = (0, 0),
        comparators: tuple[Point, ...] = (),
        lengths: Sequence[int] = (),
    ) -> Self:
        regret = super().__new__(cls, value, gap)
        regret.window, regret.comparators, regret.lengths = window, comparators, lengths
        return regret

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, window={self.window})"
