"""Products of sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from driftwolfe.domains.base import Domain
from driftwolfe.points.devices import HOST
from driftwolfe.points.kinds import Point
from driftwolfe.points.product import ProductPoint


class ProductDomain(Domain):
    r"""Several decisions made together: :math:`K_1 \times \dots \times K_m`.

    Points are `ProductPoint`, with one part for each set; any sequence of parts is accepted. The
    oracle, projection and membership work part by part; the gauge is the largest one. The Euclidean
    radius is the root of the sum of squares.

    Parameters
    ----------
    domains
        The sets, in order.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> product = dw.ProductDomain([dw.L1Ball(2), dw.Simplex(3)])
    >>> product.shape
    ((2,), (3,))
    >>> product.lmo(([1.0, 3.0], [2.0, 0.0, 1.0]))
    ProductPoint([ 0., -1.], [0., 1., 0.])
    """

    #: One shape per part.
    shape: Any

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = tuple(domains)
        for index, domain in enumerate(self.domains):
            if not isinstance(domain, Domain):
                raise TypeError(f"domains[{index}] must be a Domain, got {type(domain).__name__}")
        if not self.domains:
            raise ValueError("domains must hold at least one set, got none")
        super().__init__(
            len(self.domains),
            math.hypot(*(domain.radius for domain in self.domains)),
            diameter=math.hypot(*(domain.diameter for domain in self.domains)),
            inner_radius=min(domain.inner_radius for domain in self.domains),
        )
        self.shape = tuple(domain.shape for domain in self.domains)
        elsewhere = (domain.device for domain in self.domains if domain.device is not HOST)
        self.device = next(elsewhere, HOST)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"domains": self.domains}

    @property
    def center(self) -> ProductPoint | None:
        """The parts' centres, or None where all of them are 0."""
        centred = any(domain.center is not None for domain in self.domains)
        return self.origin() if centred else None

    def warm_up(self) -> None:
        """Every part's own."""
        for domain in self.domains:
            domain.warm_up()

    @property
    def cheap_projection(self) -> bool:
        """Whether it is for every part."""
        return all(domain.cheap_projection for domain in self.domains)

    @property
    def cheap_membership(self) -> bool:
        """Whether it is for every part."""
        return all(domain.cheap_membership for domain in self.domains)

    def origin(self) -> ProductPoint:
        """A fresh point of the parts' origins."""
        return ProductPoint(domain.origin() for domain in self.domains)

    def tangent(self, direction: Point) -> ProductPoint:
        """Return the parts' answers."""
        return ProductPoint(self._each("tangent", direction))

    def can(self, operation: str) -> bool:
        """Whether every part offers `operation`."""
        return all(domain.can(operation) for domain in self.domains)

    def lmo_with_error(
        self, direction: Point, accuracy: float | None = None
    ) -> tuple[ProductPoint, float]:
        """Return the parts' answers and the sum of their errors."""
        answers = [
            domain.lmo_with_error(part, accuracy)
            for domain, part in zip(self.domains, direction.parts, strict=True)
        ]
        return ProductPoint(vertex for vertex, _ in answers), sum(error for _, error in answers)

    def check_point(self, value: Any, name: str) -> ProductPoint:
        """Return `value` as a point with a well-formed part for each set, or raise `ValueError`."""
        parts = value.parts if isinstance(value, ProductPoint) else value
        if not isinstance(parts, Sequence) or len(parts) != len(self.domains):
            raise ValueError(f"{name} must be a ProductPoint with {len(self.domains)} parts")
        return ProductPoint(
            domain.check_point(part, f"{name}[{index}]")
            for index, (domain, part) in enumerate(zip(self.domains, parts, strict=True))
        )

    def _lmo(self, direction: ProductPoint) -> ProductPoint:
        return self.lmo_with_error(direction)[0]

    def _contains(self, x: ProductPoint, slack: float) -> bool:
        return all(
            domain._contains(part, slack)
            for domain, part in zip(self.domains, x.parts, strict=True)
        )

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

    def _each(self, operation: str, y: ProductPoint) -> list[Any]:
        """Call the public method of each part's set, so that wrapped sets count the calls."""
        methods: list[Callable[[Point], Any]] = [getattr(d, operation) for d in self.domains]
        return [method(part) for method, part in zip(methods, y.parts, strict=True)]
