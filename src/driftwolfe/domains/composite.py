"""Sets made of other sets, or of a user's own functions: an LMO, a separation, a membership test."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np

from driftwolfe.domains.base import Answer, Domain, Separation, unit_vector
from driftwolfe.domains.hull import comes_near
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.devices import HOST
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import ProductPoint


def _of_parts(name: str) -> Any:
    each = attrgetter(name)  # now: that of an `LMODomain` may grow
    doc = f"The root of the sum of squares of `{name}` of the parts."
    return property(lambda self: math.hypot(*map(each, self.domains)), lambda *_: None, doc=doc)


class ProductDomain(Domain):
    r"""Several decisions made together: :math:`K_1 \times \dots \times K_m`.

    Points are `ProductPoint`, one part for each set; any sequence of parts is accepted. The gauge is the largest.

    Parameters
    ----------
    domains
        The sets, in order.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> product = dw.ProductDomain([dw.L1Ball(2), dw.Simplex(3)])
    >>> product.lmo(([1.0, 3.0], [2.0, 0.0, 1.0]))
    ProductPoint([ 0., -1.], [0., 1., 0.])
    """

    shape: Any  # one per part
    radius, diameter = _of_parts("radius"), _of_parts("diameter")
    lmo_method = "halfspace"
    _made_from = (("domains", "domains"),)

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = tuple(domains)
        for index, domain in enumerate(self.domains):
            if not isinstance(domain, Domain):
                raise TypeError(f"domains[{index}] must be a Domain, got {type(domain).__name__}")
            if domain.cached_vertices is not None:
                raise ValueError(
                    f"domains[{index}] is a CachedDomain; vertices of the product are cached: use "
                    "CachedDomain(ProductDomain(...), size)"
                )
        if not self.domains:
            raise ValueError("domains must hold at least one set, got none")
        at_zero = all(domain.center is None for domain in self.domains)
        center = None if at_zero else self.origin()
        inside = min(domain.inner_radius for domain in self.domains)
        super().__init__(len(self.domains), self.radius, center=center, inner_radius=inside)
        self.shape = tuple(domain.shape for domain in self.domains)
        self.device = next((one.device for one in self.domains if one.device is not HOST), HOST)
        self.cheap_projection = all(domain.cheap_projection for domain in self.domains)
        self.cheap_membership = all(domain.cheap_membership for domain in self.domains)
        self.lmo_error = max(domain.lmo_error for domain in self.domains)

    def warm_up(self) -> None:
        for domain in self.domains:
            domain.warm_up()

    def origin(self) -> ProductPoint:
        return ProductPoint(domain.origin() for domain in self.domains)

    def tangent(self, direction: Point) -> ProductPoint:
        return ProductPoint(self._each("tangent", direction))

    def can(self, operation: str) -> bool:
        return all(domain.can(operation) for domain in self.domains)

    def lmo_with_error(self, direction: Point, accuracy: float | None = None) -> Answer:
        vertices, errors = zip(*self._each("lmo_with_error", direction, accuracy), strict=True)
        return ProductPoint(vertices), sum(errors)

    def check_point(self, value: Any, name: str) -> ProductPoint:
        parts = value.parts if isinstance(value, ProductPoint) else value
        if not isinstance(parts, Sequence) or len(parts) != len(self.domains):
            raise ValueError(f"{name} must be a ProductPoint with {len(self.domains)} parts")
        pairs = enumerate(zip(self.domains, parts, strict=True))
        return ProductPoint(each.check_point(part, f"{name}[{i}]") for i, (each, part) in pairs)

    @cached_property
    def dimension(self) -> int:
        return sum(domain.dimension for domain in self.domains)

    def _lmo(self, direction: ProductPoint) -> ProductPoint:
        return self.lmo_with_error(direction)[0]

    def _contains(self, x: ProductPoint, slack: float) -> bool:
        return all(self._each("_contains", x, slack))

    def _project(self, y: ProductPoint) -> ProductPoint:
        return ProductPoint(self._each("project", y))

    def _gauge(self, y: ProductPoint) -> float:
        return float(max(self._each("gauge", y)))

    def _gauge_subgradient(self, y: ProductPoint) -> ProductPoint:
        gauges = self._each("gauge", y)
        largest = gauges.index(max(gauges))
        parts = [0.0 * part for part in y.parts]
        parts[largest] = self.domains[largest].gauge_subgradient(y.parts[largest])
        return ProductPoint(parts)

    def _each(self, operation: str, y: ProductPoint, *more: Any) -> list[Any]:
        """Call a method of each part's set, which counts the call where it is wrapped."""
        pairs = zip(self.domains, y.parts, strict=True)
        return [getattr(domain, operation)(part, *more) for domain, part in pairs]


#: How far beyond the radius an answer of an LMO may lie, and a cut within the inner radius, in units of each.
_RADIUS_TOLERANCE = 1e-6
#: Dimensions up to which an `LMODomain` asks its oracle for a box around the set.
_BOXED = 64
#: A found radius over the largest distance met; 32 calls miss less on all sets of the tests.
_GROWTH = 1.25


class LMODomain(Domain):
    r"""A set given by your own linear minimisation oracle, and more functions if you have them.

    Every answer must have the right shape, be finite and lie within `radius` of the centre; an oracle
    that maximises is refused. Without `contains`, membership takes many calls of an exact oracle.

    Without `radius` the new set asks the oracle, with directions of all signs, 2 n + 1 times in n <= 64
    dimensions, else 32 times. The radius is 5/4 of the largest distance met, or less where that is proved
    (n <= 64, an exact oracle). It grows, and `diameter` with it, when an answer lies outside. Learners have steps
    by the radius at the time when they were made or loaded; their oracles and checks use the new one at once.

    Parameters
    ----------
    shape
        Shape of the points: a number of coordinates or a tuple.
    lmo
        ``lmo(direction)`` returns a minimiser of the inner product with `direction` over the set.
    radius
        Euclidean: every point of the set is at most this far from `center`. By default it is found.
    center
        A point of the set; by default zero where a radius is given, else the mean of answers of `lmo`.
    error
        Of the oracle: its answer is within ``error * radius * norm(direction)`` of the minimum.
    contains, project, gauge
        Optional: whether x is in the set, its point nearest to y, the gauge of y around `center`.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> signs = dw.LMODomain(3, lambda direction: -np.sign(direction))
    >>> signs.lmo([1.0, -2.0, 3.0]), signs.contains([0.5, 1.0, 1.0]), round(signs.radius**2, 6)
    (array([-1.,  1., -1.]), True, 3.0)
    """

    known_by_lmo = True

    def __init__(
        self,
        shape: Any,
        lmo: Callable[[Array], Any],
        radius: float | None = None,
        center: Any = None,
        error: float = 0.0,
        contains: Callable[[Array], bool] | None = None,
        project: Callable[[Array], Any] | None = None,
        gauge: Callable[[Array], float] | None = None,
    ) -> None:
        given = {"lmo": lmo, "contains": contains, "project": project, "gauge": gauge}
        for name, function in given.items():
            if not callable(function) and (function is not None or name == "lmo"):
                raise TypeError(f"{name} must be a function, got {type(function).__name__}")
        self.error = self.lmo_error = checks.nonnegative(error, "error")
        self._functions: dict[str, Any] = given
        self._minimises = False  # whether some answer has beaten the centre
        self.shape, self._grows = checks.shape(shape), radius is None
        self._middle, diameter = "0" if center is None else "center", None
        if center is not None:
            center = checks.finite_array(center, "center", self.shape).copy()
        if radius is None:
            center, radius, diameter = self._found(center)
        super().__init__(shape, radius, diameter=diameter, center=center)
        self.cheap_membership = contains is not None
        if contains is not None and not contains(self.origin()):
            where = self._middle
            raise ValueError(f"contains says that {where} is not in the set; give a center that is")

    def _found(self, center: Any) -> tuple[Array, float, float | None]:
        """Return a centre, a radius and a diameter, by answers of the oracle, and check these."""
        size = math.prod(self.shape)
        rows = np.random.default_rng(0).uniform(-1.0, 1.0, (size if size <= _BOXED else 16, size))
        if size <= _BOXED:  # the axes, and so little more that there are no ties
            rows = np.eye(size) + 2.0**-30 * rows
        directions = np.stack((rows, -rows), axis=1).reshape(-1, *self.shape)
        answers = np.stack([self._call("lmo", direction) for direction in directions])
        if center is None:
            center, self._middle = answers.mean(axis=0), "the mean of its answers"
        offsets = answers - center
        met = checks.positive(max(map(norm, offsets)), "the distance between answers of lmo")
        self.center, self.radius = center, _GROWTH * met
        for direction, answer in zip(directions, answers, strict=True):
            self._checked(answer, direction)
        if size > _BOXED:
            return center, self.radius, None
        # t^2 <= (a + b) t - a b for a <= t <= b: linear in t, so that one more call bounds the sum.
        a, b = offsets.min(axis=0) / met, offsets.max(axis=0) / met
        most = (self._call("lmo", -(a + b)) - center) / met
        bound = met * math.sqrt(max(inner(a + b, most) - inner(a, b), 1.0))
        return center, min(self.radius, bound), met * norm(b - a)

    def can(self, operation: str) -> bool:
        return self._functions.get(operation) is not None

    def lmo_with_error(self, direction: Point, accuracy: float | None = None) -> Answer:
        return self._lmo(direction), self.error * self.radius * norm(direction)

    def _lmo(self, direction: Array) -> Array:
        return self._checked(self._call("lmo", direction), direction)

    def _checked(self, answer: Array, direction: Array) -> Array:
        offset = self._from_center(answer)
        distance = norm(offset)
        if distance > self.radius * (1 + _RADIUS_TOLERANCE):
            if not self._grows:
                raise ValueError(
                    f"lmo returned a point at distance {distance:g} from the centre, but radius is "
                    f"{self.radius:g}; correct the oracle, or give a larger radius or none"
                )
            self.radius = max(_GROWTH * self.radius, distance)
            self.diameter = 2.0 * self.radius
        if self._minimises or not direction.any():  # to 0, all points are as good
            return answer
        # The centre is in the set, so it may not beat the answer.
        worse, room = inner(unit_vector(direction), offset), _RADIUS_TOLERANCE * self.radius
        if worse > room + self.error * self.radius:
            raise ValueError(
                "lmo must MINIMISE the inner product with its direction, but its answer is worse than "
                f"{self._middle} by {worse:g} times the norm of the direction; return a minimiser, and "
                "give a center that is in the set"
            )
        self._minimises = worse < -room
        return answer

    def _contains(self, x: Array, slack: float) -> bool:
        if self.can("contains"):
            return bool(self._functions["contains"](x.copy()))
        if self.error > 0:
            raise NotImplementedError("an lmo with an error cannot tell membership; give contains=")
        return comes_near(self._lmo, x, self.origin(), slack)

    def _project(self, y: Array) -> Array:
        return self._call("project", y) if self.can("project") else super()._project(y)

    def _gauge(self, y: Array) -> float:
        return self._functions["gauge"](y.copy()) if self.can("gauge") else super()._gauge(y)

    def _call(self, name: str, argument: Array) -> Array:
        """Call a function of the user's with copies of what it gets and gives."""
        answer = self._functions[name](argument.copy())
        return checks.finite_array(answer, f"the answer of {name}", self.shape).copy()


#: Accuracy of a gauge by bisection, and how far from the boundary its slope is taken, in inner radii.
_BISECTED, _ASIDE = 2.0**-50, 1e-4


class SeparationDomain(Domain):
    r"""A set given by a function that says of a point that it is in the set, or what separates it.

    It has no LMO: learners project with method ``"separation"``, some tens of calls where the set is round and
    more where it is long and thin (`docs/theory/bandit.md`). Of constraints :math:`g_i(z) \le 0`, return a
    subgradient of one that is violated. `SOOGD`, `POLD`, `POLA` and ``Ader(oracle="separation")`` work on it.

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
    per cut in n dimensions. In a random place within :math:`10^{-4} r` of the boundary, that slope is wrong by at
    most :math:`1.2\cdot 10^{-5}\, n/r` in expectation, and cuts are farther out by that much
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
            around = middle * (1.0 - 2.0 * step), middle * (1.0 + 2.0 * step)
            reach, more = self._reach(moved, *around)
            slope[i] = (1.0 / reach - 1.0 / middle) / (step * r)
            calls += more
        normal = slope.reshape(self.shape)
        level = 1.0 + self._slack + inner(normal, self.origin())
        return Separation(fraction, normal, float(level), calls)
