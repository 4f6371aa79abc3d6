"""Points of products of sets."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from driftwolfe.points import ops
from driftwolfe.points.devices import HOST, is_array, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Point, Shape


class ProductPoint:
    r"""Several points as one: they add, scale and are measured together.

    Inner products are sums over the parts, :math:`\langle a, b\rangle = \sum_i \langle a_i, b_i
    \rangle`. A point is never changed in place.

    Parameters
    ----------
    parts
        The points: arrays, or anything that adds, scales and has `inner` and `norm`.

    Examples
    --------
    >>> point = ProductPoint([np.array([3.0]), np.array([0.0, 4.0])])
    >>> point.norm(), point.shape
    (5.0, ((1,), (2,)))
    >>> 2 * point
    ProductPoint([6.], [0., 8.])
    """

    __slots__ = ("_parts",)
    # numpy must not try to multiply its scalars into the parts on its own.
    __array_ufunc__ = None

    def __init__(self, parts: Iterable[Point]) -> None:
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[Point, ...]:
        """The points, in order."""
        return self._parts

    @property
    def shape(self) -> tuple[Shape, ...]:
        """The shape of each part."""
        return tuple(part.shape for part in self._parts)

    def inner(self, other: ProductPoint) -> float:
        """Return the inner product with another point of the same parts."""
        return math.fsum(ops.inner(a, b) for a, b in self._pairs(other))

    def norm(self) -> float:
        """Return the Euclidean norm."""
        return math.hypot(*(ops.norm(part) for part in self._parts))

    def copy(self) -> ProductPoint:
        """Return a point with copies of the parts."""
        return ProductPoint(part.copy() for part in self._parts)

    def __add__(self, other: object) -> ProductPoint:
        if not isinstance(other, ProductPoint):
            return NotImplemented
        return ProductPoint(a + b for a, b in self._pairs(other))

    def __sub__(self, other: object) -> ProductPoint:
        if not isinstance(other, ProductPoint):
            return NotImplemented
        return ProductPoint(a - b for a, b in self._pairs(other))

    def __mul__(self, factor: Any) -> ProductPoint:
        if np.ndim(factor) != 0 or isinstance(factor, ProductPoint):
            return NotImplemented
        return ProductPoint(part * factor for part in self._parts)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> ProductPoint:
        if np.ndim(divisor) != 0 or isinstance(divisor, ProductPoint):
            return NotImplemented
        return ProductPoint(part / divisor for part in self._parts)

    def __neg__(self) -> ProductPoint:
        return ProductPoint(-part for part in self._parts)

    def __repr__(self) -> str:
        shown = (
            np.array2string(part, separator=", ") if isinstance(part, np.ndarray) else repr(part)
            for part in self._parts
        )
        return f"ProductPoint({', '.join(shown)})"

    def _pairs(self, other: ProductPoint) -> Iterable[tuple[Point, Point]]:
        if self.shape != other.shape:
            raise ValueError(f"shapes differ: {self.shape} and {other.shape}")
        return zip(self._parts, other._parts, strict=True)


def in_kind_of(gradient: Point, like: Point) -> Point:
    """Return a gradient as a point that can be added to `like`: on a device, arrays become matrices."""
    if isinstance(like, ProductPoint) and isinstance(gradient, ProductPoint):
        pairs = zip(gradient.parts, like.parts, strict=True)
        return ProductPoint(in_kind_of(*pair) for pair in pairs)
    if not isinstance(like, FactoredMatrix) or like.device is HOST or not is_array(gradient):
        return gradient
    dense = to_host(gradient)
    rows, cols = np.nonzero(dense)
    entries = FactoredMatrix.from_entries(like.shape, rows, cols, dense[rows, cols])
    return entries.to(like.device.name)
