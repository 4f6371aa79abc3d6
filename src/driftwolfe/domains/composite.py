"""Sets made of other sets, or of a user's own oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from driftwolfe.domains.base import LMO, Answer, Domain, unit_vector
from driftwolfe.domains.hull import comes_near
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.devices import HOST
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import ProductPoint


class ProductDomain(Domain):
    r"""Several decisions made together: :math:`K_1 \times \dots \times K_m`.

    Points are `ProductPoint`, with one part for each set; any sequence of parts is accepted. The gauge
    is the largest of the parts'.

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
        super().__init__(
            len(self.domains),
            math.hypot(*(domain.radius for domain in self.domains)),
            diameter=math.hypot(*(domain.diameter for domain in self.domains)),
            center=None if at_zero else self.origin(),
            inner_radius=min(domain.inner_radius for domain in self.domains),
        )
        self.shape = tuple(domain.shape for domain in self.domains)
        self.device = next((one.device for one in self.domains if one.device is not HOST), HOST)
        self.cheap_projection = all(domain.cheap_projection for domain in self.domains)
        self.cheap_membership = all(domain.cheap_membership for domain in self.domains)

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
        return ProductPoint(
            domain.check_point(part, f"{name}[{index}]")
            for index, (domain, part) in enumerate(zip(self.domains, parts, strict=True))
        )

    @cached_property
    def dimension(self) -> int:
        return sum(domain.dimension for domain in self.domains)

    def _decompose(self, x: ProductPoint, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        # The same random number draws a vertex of each part: they change where one part's does.
        parts = self._each("decompose", x, 1e-3 * tolerance / self.radius)
        ends = [np.cumsum(weights) for _, weights in parts]
        offsets = np.unique(np.concatenate([[0.0, 1.0], *(each[:-1] for each in ends)]))
        middle = 0.5 * (offsets[:-1] + offsets[1:])
        drawn = [np.minimum(each.searchsorted(middle), each.size - 1) for each in ends]
        rows = zip(*drawn, strict=True)
        vertices = [ProductPoint(parts[j][0][i] for j, i in enumerate(row)) for row in rows]
        return vertices, np.diff(offsets)

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


#: How far beyond the given radius an answer may lie, in units of it.
_RADIUS_TOLERANCE = 1e-6


class LMODomain(Domain):
    r"""A set given by your own linear minimisation oracle, and more functions if you have them.

    Every answer must have the right shape, be finite and lie within `radius` of the centre; an oracle
    that maximises is refused. Without `contains`, membership takes many calls of an exact oracle.

    Parameters
    ----------
    shape
        Shape of the points: a number of coordinates or a tuple.
    lmo
        ``lmo(direction)`` returns a minimiser of the inner product with `direction` over the set.
    radius
        Euclidean: every point of the set is at most this far from `center`.
    center
        A point of the set; zero if not given, which must then belong to the set.
    error
        Of the oracle: its answer is within ``error * radius * norm(direction)`` of the minimum.
    contains, project, gauge
        Optional: whether x is in the set, its point nearest to y, the gauge of y around `center`.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> signs = dw.LMODomain(3, lambda direction: -np.sign(direction), radius=3**0.5)
    >>> signs.lmo([1.0, -2.0, 3.0]), signs.contains([0.5, 1.0, 1.0])
    (array([-1.,  1., -1.]), True)
    """

    def __init__(
        self,
        shape: Any,
        lmo: Callable[[Array], Any],
        radius: float,
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
        self.error = checks.nonnegative(error, "error")
        self._functions: dict[str, Any] = given
        self._minimises = False  # whether some answer has beaten the centre
        if center is not None:
            center = checks.finite_array(center, "center", checks.shape(shape)).copy()
        super().__init__(shape, radius, center=center)
        self._middle = "0" if center is None else "center"
        self.cheap_membership = contains is not None
        if contains is not None and not contains(self.origin()):
            raise ValueError(
                f"contains says that {self._middle} is not in the set; give a center that is"
            )

    def can(self, operation: str) -> bool:
        return self._functions.get(operation) is not None

    def lmo_with_error(self, direction: Point, accuracy: float | None = None) -> Answer:
        return self._lmo(direction), self.error * self.radius * norm(direction)

    def _lmo(self, direction: Array) -> Array:
        answer = self._call("lmo", direction)
        offset = self._from_center(answer)
        distance = norm(offset)
        if distance > self.radius * (1 + _RADIUS_TOLERANCE):
            raise ValueError(
                f"lmo returned a point at distance {distance:g} from the centre, but radius is "
                f"{self.radius:g}; correct the oracle or give the larger radius"
            )
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
            raise NotImplementedError(
                "an lmo with an error cannot tell whether a point is in the set; give contains="
            )
        return comes_near(self._lmo, x, self.origin(), slack)

    def _project(self, y: Array) -> Array:
        return self._call("project", y) if self.can("project") else super()._project(y)

    def _gauge(self, y: Array) -> float:
        return self._functions["gauge"](y.copy()) if self.can("gauge") else super()._gauge(y)

    def _call(self, name: str, argument: Array) -> Array:
        """Call a function of the user's with copies of what it gets and gives."""
        answer = self._functions[name](argument.copy())
        return checks.finite_array(answer, f"the answer of {name}", self.shape).copy()
