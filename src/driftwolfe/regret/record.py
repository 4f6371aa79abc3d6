"""What a game leaves to be measured, and what the offline minimum is certain of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


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


class Certified(float):
    """A number with a certificate: the truth lies between it and it plus `gap`.

    It is a float, so that it adds, compares and plots like one.

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
        """Make the number; `float` is immutable, so that it happens here."""
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
    r"""A regret: what a learner suffered beyond its comparators.

    Offline minima are known up to a gap: the minimum of a sum of losses lies in
    :math:`[v - gap, v]`, with v reached by a point of the set. So a regret lies in
    :math:`[r, r + gap]`, with r reached by the comparators held here.

    Parameters
    ----------
    value
        The lower end r, in units of the loss.
    gap
        Width of the interval that holds the regret; 0 where it is exact up to rounding.
    window
        ``(start, end)``: the rounds it was measured on, as in ``losses[start:end]``.
    comparators
        What the learner is compared with: one point for each round of the window, or a single one
        that served all of them.
    lengths
        The lengths of the windows among which this one has the largest regret; empty where the
        regret is that of the whole game.

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
        """Make the number and note what it was measured on."""
        regret = super().__new__(cls, value, gap)
        regret.window = window
        regret.comparators = comparators
        regret.lengths = lengths
        return regret

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, window={self.window})"
