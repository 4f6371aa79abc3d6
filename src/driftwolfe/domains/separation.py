"""Sets given by a function that separates points from them, or that says whether they hold a point."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain, Separation
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Array

#: How much shorter than the inner radius a cut may leave the set, in units of it.
_RADIUS_TOLERANCE = 1e-6
#: Accuracy of a gauge by bisection, and how far from the boundary its slope is taken, in inner radii.
_BISECTED, _ASIDE = 2.0**-50, 1e-4


class SeparationDomain(Domain):
    r"""A set given by a function that says of a point that it is in the set, or what separates it.

    It has no LMO: learners project with method ``"separation"``, which needs some tens of calls per
    projection where the set is round and more where it is long and thin (`docs/theory/bandit.md`).
    Constraints :math:`g_i(z) \le 0` make such a function: return a subgradient of one that is violated. `SOOGD`,
    `POLD`, `POLA` and ``Ader(oracle="separation")`` work on it; `POLAR` needs an LMO.

    Parameters
    ----------
    shape
        Shape of the points: a number of coordinates or a tuple.
    separate
        ``separate(y)`` returns None if y is in the set, or else a vector g other than 0 with
        :math:`\langle g, z\rangle \le \langle g, y\rangle` for all z in the set.
    radius, inner_radius
        Euclidean: the set lies in a ball of the first radius around `center`, and holds one of the second.
    center
        A point inside the set; zero if not given.

    Examples
    --------
    A disc without the part above a line:

    >>> import numpy as np, driftwolfe as dw
    >>> def separate(y):
    ...     if y[1] > 0.5:
    ...         return np.array([0.0, 1.0])
    ...     return y if np.linalg.norm(y) > 1 else None
    >>> disc = dw.SeparationDomain(2, separate, radius=1.0, inner_radius=0.5)
    >>> disc.contains([0.0, 0.6]), disc.separate([0.0, 2.0])[0]
    (False, array([0., 1.]))
    >>> learner = dw.learners.SOOGD(disc, horizon=50, lipschitz=1.0)
    >>> for _ in range(50):
    ...     suffered = learner.update(dw.losses.LinearLoss([0.0, -1.0]))
    >>> disc.contains(learner.decision), learner.decision.round(2) + 0.0
    (True, array([0. , 0.5]))
    """

    lmo_method = "separation"

    def __init__(
        self,
        shape: Any,
        separate: Callable[[Array], Any],
        radius: float,
        inner_radius: float,
        center: Any = None,
    ) -> None:
        if not callable(separate):
            raise TypeError(f"separate must be a function, got {type(separate).__name__}")
        if center is not None:
            center = checks.finite_array(center, "center", checks.shape(shape)).copy()
        inside = checks.positive(inner_radius, "inner_radius")
        super().__init__(shape, radius, center=center, inner_radius=inside)
        if inside > self.radius:
            raise ValueError(f"inner_radius must be at most radius, got {inside:g} > {radius:g}")
        self._function = separate
        if separate(self.origin()) is not None:
            middle = "0" if center is None else "center"
            raise ValueError(f"{middle} is not in the set; give a center that is")

    def _normal(self, y: Array) -> Array | None:
        """Call the user's function with a copy, and check its answer."""
        answer = self._function(y.copy())
        if answer is None:
            return None
        normal = checks.finite_array(answer, "the answer of separate", self.shape)
        length, offset = norm(normal), self._from_center(y)
        # The ball inside lies on the other side.
        least = self.inner_radius * (1.0 - _RADIUS_TOLERANCE)
        if length == 0 or inner(normal, offset) < least * length:
            raise ValueError(
                "separate must return g with <g, z> <= <g, y> on the whole set, but its answer cuts off a "
                "part of the ball of inner_radius around the centre: correct the sign or the radius"
            )
        return normal / length

    def _separate(self, y: Array, near: float) -> Separation:
        calls, normal = 1, self._normal(y)
        if normal is None:
            return Separation(1.0, None, 0.0, 1)
        offset = self._from_center(y)
        length = norm(offset)
        low, high = self.inner_radius / length, 1.0  # fractions inside and outside
        # To where the cut takes y at least half as far as the set is away.
        while high - low > 0.5 * (1.0 - low) and (1.0 - low) * length > near:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            found, calls = self._normal(y - (1.0 - middle) * offset), calls + 1
            low, high = (middle, high) if found is None else (low, middle)
            normal = normal if found is None else found
        return Separation(low, normal, float(inner(normal, y - (1.0 - high) * offset)), calls)

    def _holds(self, y: Array) -> bool:
        return self._normal(y) is None

    def _contains(self, x: Array, slack: float) -> bool:
        if self._holds(x):
            return True
        offset = self._from_center(x)
        return slack > 0 and self._holds(x - min(1.0, slack / norm(offset)) * offset)

    def _lmo(self, direction: Array) -> Array:
        instead = 'use SOOGD, or a learner with oracle="separation"; with an LMO, use LMODomain'
        raise NotImplementedError(f"a SeparationDomain has no linear minimisation; {instead}")


class MembershipDomain(SeparationDomain):
    r"""A set given by a function that says whether a point is in it, and nothing more.

    What separates a point from it is the slope of the set's gauge, from differences: some 20 n + 100 tests
    per cut in n dimensions. Such a cut may leave out a little of the set: where it is drawn, in a random
    place within :math:`10^{-4} r` of the boundary, the slope is wrong by at most
    :math:`1.2\cdot 10^{-5}\, n/r` in expectation, and cuts are farther out by that much
    (`docs/theory/bandit.md`). So tolerances below the square of `cut_accuracy` are refused, about
    :math:`(5\cdot 10^{-5}\, n\kappa + 4\cdot 10^{-4}) R` with :math:`\kappa = R/r`. If you know more of the set,
    `SeparationDomain` and `LMODomain` are exact and quicker.

    Parameters
    ----------
    shape
        Shape of the points: a number of coordinates or a tuple.
    contains
        ``contains(y)`` returns whether y is in the set, which is convex.
    radius, inner_radius
        Euclidean: the set lies in a ball of the first radius around `center`, and holds one of the second.
    center
        A point inside the set; zero if not given.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> ellipse = dw.MembershipDomain(2, lambda y: y[0] ** 2 + 4 * y[1] ** 2 <= 1, 1.0, 0.5)
    >>> learner = dw.learners.SOOGD(ellipse, horizon=50, lipschitz=1.0)
    >>> for _ in range(50):
    ...     suffered = learner.update(dw.losses.LinearLoss([0.0, -1.0]))
    >>> ellipse.contains(learner.decision), learner.decision.round(1) + 0.0
    (True, array([0. , 0.5]))

    References
    ----------
    Lee, Sidford and Vempala (2018), Efficient convex optimization with membership oracles, COLT.
    """

    def __init__(
        self,
        shape: Any,
        contains: Callable[[Array], Any],
        radius: float,
        inner_radius: float,
        center: Any = None,
    ) -> None:
        if not callable(contains):
            raise TypeError(f"contains must be a function, got {type(contains).__name__}")
        super().__init__(shape, lambda y: None if contains(y) else y, radius, inner_radius, center)
        # In units of the gauge: what a cut may be wrong by, and what it gains less by being drawn aside.
        kappa = self.radius / self.inner_radius
        self._aside = _ASIDE / math.sqrt(self.dimension)
        self._difference = math.sqrt(4.0 * _BISECTED * self._aside / math.sqrt(self.dimension))
        wrong = self.dimension * self._difference / self._aside
        self._slack = 4.0 * kappa * wrong
        self.cut_accuracy = 2.0 * (self._slack + 2.0 * _ASIDE) * self.radius

    def _holds(self, y: Array) -> bool:
        return self._function(y.copy()) is None

    def _reach(self, offset: Array, low: float, high: float) -> tuple[float, int]:
        """Bisect for the fraction of an offset from the centre where it leaves the set, from inside."""
        center, calls = self.origin(), 0
        while high - low > _BISECTED * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self._holds(center + middle * offset) else (low, middle)
            calls += 1
        return low, calls

    def _separate(self, y: Array, near: float) -> Separation:
        if self._holds(y):
            return Separation(1.0, None, 0.0, 1)
        offset, r = self._from_center(y), self.inner_radius
        fraction, calls = self._reach(offset, min(1.0, r / norm(offset)), 1.0)
        # The slope of the gauge near where it is 1, at a place that no set can foresee.
        aside = np.random.default_rng(zlib.crc32(y.tobytes())).uniform(-1.0, 1.0, self.shape)
        place = fraction * offset + self._aside * r * aside
        middle, more = self._reach(place, 1.0 - 2.0 * _ASIDE, 1.0 + 2.0 * _ASIDE)
        calls, slope, step = calls + more + 1, np.empty(self.dimension), self._difference
        for i in range(self.dimension):
            moved = place.copy()
            moved.flat[i] += step * r
            reach, more = self._reach(
                moved, middle * (1.0 - 2.0 * step), middle * (1.0 + 2.0 * step)
            )
            slope[i] = (1.0 / reach - 1.0 / middle) / (step * r)
            calls += more
        normal = slope.reshape(self.shape)
        level = 1.0 + self._slack + inner(normal, self.origin())
        return Separation(fraction, normal, float(level), calls)
