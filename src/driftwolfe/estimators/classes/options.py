"""Options that both faces of the classifier have."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.estimators.classes.learner import ClassLearner
from driftwolfe.points import checks

#: Radii that are used where none are given: scores of rows of usual length reach from soft to certain.
RADII = (10.0, 40.0, 160.0)
LEARNERS = ("pola", "pold")
#: Squares of scores stay in the range of numbers.
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-100, 1e100


def make_learner(
    radii: Any, learner: Any, fit_intercept: Any, classes: int, features: int
) -> ClassLearner:
    """Return a new learner, or say which option is not what it may be."""
    if learner not in LEARNERS:
        raise ValueError(f'learner must be "pola" or "pold", got {learner!r}')
    adaptive = learner == "pola"
    return ClassLearner(checked_radii(radii), bool(fit_intercept), adaptive, classes, features)


def checked_radii(radii: Any) -> tuple[float, ...]:
    """Return the radii as numbers.

    >>> checked_radii("auto"), checked_radii(3)
    ((10.0, 40.0, 160.0), (3.0,))
    """
    if isinstance(radii, str):
        if radii != "auto":
            raise ValueError(f'radii must be "auto", a number or several, got {radii!r}')
        return RADII
    given = np.atleast_1d(radii).tolist()
    if not given:
        raise ValueError('radii must be "auto", a number or several, got none')
    found = tuple(checks.positive(radius, "each of radii") for radius in given)
    if not SMALLEST_RADIUS <= min(found) <= max(found) <= LARGEST_RADIUS:
        raise ValueError(
            f"each of radii must lie between {SMALLEST_RADIUS:g} and {LARGEST_RADIUS:g}, got {radii!r}"
        )
    return found


def plain_radii(radii: Any) -> Any:
    """Return the radii as an archive can hold them."""
    return radii if isinstance(radii, str) else np.asarray(radii).tolist()
