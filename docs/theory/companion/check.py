"""What a check reports: the worst ratio of the two sides of an inequality, and where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple


class Found(NamedTuple):
    """The worst case of one inequality.

    Attributes
    ----------
    name
        The inequality.
    ratio
        Left side over right side, the largest found: at most 1 if the inequality holds.
    where
        Where it was found.
    cases
        How many were tried.
    """

    name: str
    ratio: float
    where: str
    cases: int


#: Left side, right side (positive), and where.
Case = tuple[float, float, str]

#: All checks, in the order of the pages.
CHECKS: list[Callable[[], Found]] = []

#: What they are called.
NAMES: list[str] = []


def check(name: str) -> Callable[[Callable[[], Iterable[Case]]], Callable[[], Found]]:
    """Make a generator of cases a check of that name."""

    def wrap(cases: Callable[[], Iterable[Case]]) -> Callable[[], Found]:
        def found() -> Found:
            return worst(name, cases())

        found.__name__, found.__doc__ = cases.__name__, cases.__doc__
        CHECKS.append(found)
        NAMES.append(name)
        return found

    return wrap


def worst(name: str, cases: Iterable[Case]) -> Found:
    """Return the case with the largest ratio; a right side of 0 allows a left side of 0 only."""
    top, place, number = -float("inf"), "", 0
    for left, right, where in cases:
        ratio = left / right if right > 0 else (0.0 if left <= 0 else float("inf"))
        number += 1
        if not ratio <= top:  # not-a-number too
            top, place = ratio, where
    if number == 0:
        raise ValueError(f"no case of {name}")
    return Found(name, top, place, number)
