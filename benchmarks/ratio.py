"""`Ratio`: two things measured in one run, and the limit on their quotient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Ratio:
    """What we took, what they took, and the quotient that the budget asks for.

    Attributes
    ----------
    row, name
        The row of the budget, and what was compared in it.
    ours, theirs
        Medians, in `unit`.
    at_least
        Floor of theirs / ours: how many times better we are.
    at_most
        Ceiling of ours / theirs: how much worse we may be. With neither, theirs / ours is shown.
    unit
        Of `ours` and `theirs`: ``"s"``, ``"loss"``, ``"ratings"`` or ``"GiB"``.
    threads
        Threads that our side used; a BLAS has one in every row.
    note
        How it was measured, where the name does not say it.
    timings
        Every single measurement, by contestant.
    """

    row: str
    name: str
    ours: float
    theirs: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "s"
    threads: int = 1
    note: str = ""
    timings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.at_least is not None and self.at_most is not None:
            raise ValueError("a ratio has a floor or a ceiling, not both")

    @property
    def ratio(self) -> float:
        """Theirs / ours, or ours / theirs under a ceiling."""
        if self.at_most is None:
            return self.theirs / self.ours
        return self.ours / self.theirs

    @property
    def limit(self) -> float | None:
        """The floor or the ceiling."""
        return self.at_most if self.at_least is None else self.at_least

    @property
    def holds(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most

    def relaxed(self, share: float) -> Ratio:
        """The same with a limit on time that asks for so much of it only."""
        if self.unit != "s":
            return self
        floor = None if self.at_least is None else share * self.at_least
        ceiling = None if self.at_most is None else self.at_most / share
        return replace(self, at_least=floor, at_most=ceiling)

    @property
    def complaint(self) -> str:
        """One sentence for a limit that is not kept."""
        side = "below its floor" if self.at_most is None else "above its ceiling"
        return f"{self.row}: {self.name}: {self.ratio:.4g} is {side} of {self.limit:g}."

    def as_record(self) -> dict[str, Any]:
        """All of it as plain data."""
        return asdict(self) | {"ratio": self.ratio, "limit": self.limit, "holds": self.holds}
