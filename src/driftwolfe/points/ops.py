"""Inner products and norms of points of any kind; products; factor buffers; choices that no rounding changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe.points.devices import HOST, device_of, is_array, namespace, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape


def inner(a: Point, b: Point) -> float:
    """Return the Euclidean inner product of two points.

    Parameters
    ----------
    a, b
        Points of one shape, of the same kind or one of them dense.

    Examples
    --------
    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return float(np.vdot(a, b))
    if not is_array(a):
        return float(a.inner(b))
    if not is_array(b):
        return float(b.inner(a))
    one, other = (b, a) if isinstance(a, np.ndarray) else (a, b)
    return float((one * device_of(one).put(other)).sum())


def norm(a: Point) -> float:
    """Return the Euclidean (Frobenius) norm of a point, also where its square would overflow.

    Parameters
    ----------
    a
        The point.

    Examples
    --------
    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    if not isinstance(a, np.ndarray):
        return float(namespace(a).linalg.vector_norm(a) if is_array(a) else a.norm())
    size = math.sqrt(np.vdot(a, a))  # which, unlike dot, warns of no overflow
    if not 1e-150 < size < 1e150:  # squares have under- or overflowed, or soon will
        flat = a.ravel()
        largest = float(np.abs(flat).max(initial=0.0))
        return largest * float(np.linalg.norm(flat / largest)) if largest > 0 else 0.0
    return size


def distance(a: Point, b: Point) -> float:
    """Return the Euclidean distance of two points.

    Parameters
    ----------
    a, b
        Points of one shape.

    Examples
    --------
    >>> distance(np.array([1.0, 1.0]), np.array([4.0, 5.0]))
    5.0
    """
    return norm(a - b)


def clip_to_ball(y: Point, center: Point | None, radius: float) -> Point:
    """Return the nearest point to y of a ball, y itself where it is inside; None is the centre 0."""
    offset = y if center is None else y - center
    length = norm(offset)
    if length <= radius:
        return y
    inside = offset * (radius / length)
    return inside if center is None else inside + center


def trimmed(point: Point, columns: int = 0) -> Point:
    """Return a factored point of at least that many columns recompressed; any other as it is."""
    if isinstance(point, FactoredMatrix) and point.rank >= columns:
        return point.recompress()
    return point


class ProductPoint:
    r"""Several points as one, with inner product :math:`\sum_i \langle a_i, b_i\rangle`; never changed in place.

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
    __array_ufunc__ = None  # numpy leaves `number * point` to this class

    def __init__(self, parts: Iterable[Point]) -> None:
        self._parts = tuple(parts)

    @property
    def parts(self) -> tuple[Point, ...]:
        """The points, in order."""
        return self._parts

    @property
    def shape(self) -> tuple[Shape, ...]:
        """The shape of each part."""
        return tuple(part.shape for part in self.parts)

    def inner(self, other: ProductPoint) -> float:
        """Return the inner product with another point of the same parts."""
        return math.fsum(inner(a, b) for a, b in self._pairs(other))

    def norm(self) -> float:
        """Return the Euclidean norm."""
        return math.hypot(*(norm(part) for part in self.parts))

    def copy(self) -> ProductPoint:
        """Return a point with copies of the parts."""
        return ProductPoint(part.copy() for part in self.parts)

    def __add__(self, other: object) -> ProductPoint:
        if not isinstance(other, ProductPoint):
            return NotImplemented
        return ProductPoint(a + b for a, b in self._pairs(other))

    def __sub__(self, other: Any) -> ProductPoint:
        return self + (-other)

    def __mul__(self, factor: Any) -> ProductPoint:
        if np.ndim(factor) != 0 or isinstance(factor, ProductPoint):
            return NotImplemented
        return ProductPoint(part * factor for part in self.parts)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> ProductPoint:
        if np.ndim(divisor) != 0 or isinstance(divisor, ProductPoint):
            return NotImplemented
        return ProductPoint(part / divisor for part in self.parts)

    def __neg__(self) -> ProductPoint:
        return ProductPoint(-part for part in self.parts)

    def __repr__(self) -> str:
        shown = (
            np.array2string(part, separator=", ") if isinstance(part, np.ndarray) else repr(part)
            for part in self.parts
        )
        return f"ProductPoint({', '.join(shown)})"

    def _pairs(self, other: ProductPoint) -> Iterable[tuple[Point, Point]]:
        if self.shape != other.shape:
            raise ValueError(f"shapes differ: {self.shape} and {other.shape}")
        return zip(self.parts, other.parts, strict=True)


#: What points are in files.
POINTS = (np.float64, FactoredMatrix, ProductPoint)


def in_kind_of(gradient: Point, like: Point) -> Point:
    """Return a gradient as a point that can be added to `like`: on a device, arrays become matrices."""
    if isinstance(gradient, ProductPoint):  # then so is the other
        pairs = zip(gradient.parts, like.parts, strict=True)
        return ProductPoint(in_kind_of(*pair) for pair in pairs)
    if not isinstance(like, FactoredMatrix) or like.device is HOST or not is_array(gradient):
        return gradient
    dense = to_host(gradient)
    rows, cols = np.nonzero(dense)
    entries = FactoredMatrix.from_entries(like.shape, rows, cols, dense[rows, cols])
    return entries.to(like.device.name)


@dataclass(slots=True, eq=False)
class FactorBuffer:
    """Factors U and V that end in free columns, so that rank-one matrices are added without a copy.

    Matrices that share one differ in their values s only; a column is written while no matrix has a value there.
    """

    U: Any
    V: Any
    used: int  # columns

    @classmethod
    def holding(
        cls, matrices: Sequence[FactoredMatrix], room: int
    ) -> tuple[FactorBuffer, list[FactoredMatrix]]:
        """Return a buffer with `room` free columns, and the same matrices with factors in it."""
        used = sum(A.rank for A in matrices)
        device = matrices[0].device
        U, V = (device.zeros((size, used + room)) for size in matrices[0].shape)
        held, first = [], 0
        for A in matrices:
            here = slice(first, first + A.rank)
            U[:, here], V[:, here] = A.U, A.V
            s = np.zeros(used + room)
            s[here] = A.s
            held.append(FactoredMatrix._of(U, s, V, A.sparse))
            first += A.rank
        return cls(U, V, used), held

    @property
    def room(self) -> int:
        """Free columns."""
        return self.U.shape[1] - self.used

    def holds(self, point: Point) -> bool:
        """Whether a point is a matrix with factors in this buffer."""
        return isinstance(point, FactoredMatrix) and point.U is self.U and point.V is self.V

    def inner(self, atom: Point, *points: Point) -> list[float]:
        """Return the inner products of one point with several: one pass if it has rank one."""
        if not (_rank_one(atom) and all(map(self.holds, points))):
            return [inner(point, atom) for point in points]
        used = self.used
        products = (atom.U[:, 0] @ self.U)[:used] * (atom.V[:, 0] @ self.V)[:used]
        products = atom.device.host(products) * atom.s[0]
        return [float(A.s[:used] @ products) + A.stored_inner(atom) for A in points]

    def mix(self, rest: float, x: Point, part: float, atom: Point) -> Point:
        """Return rest * x + part * atom, in the buffer where x is in it and there is room."""
        if not (_rank_one(atom) and self.holds(x) and self.room):
            return rest * x + part * atom
        here, self.used = self.used, self.used + 1
        self.U[:, here], self.V[:, here] = atom.U[:, 0], atom.V[:, 0]
        s = rest * x.s
        s[here] = part * atom.s[0]
        return FactoredMatrix._of(self.U, s, self.V, (rest * x).sparse)


def _rank_one(point: Point) -> bool:
    return isinstance(point, FactoredMatrix) and point.rank == 1 and not point.nnz


def without_idle_columns(matrix: FactoredMatrix) -> FactoredMatrix:
    """Return the same matrix without columns whose value is 0, outside any buffer."""
    used = np.flatnonzero(matrix.s)
    return FactoredMatrix._of(matrix.U[:, used], matrix.s[used], matrix.V[:, used], matrix.sparse)


#: Fraction of the largest by which computed numbers may differ and still count as equal.
TIE = 1e-9
#: Relative error of a number that would be whole without rounding.
WHOLE = 1e-12
#: How far a tilt moves a direction, relative to its length.
_TILT = 1e-12


def ramp(values: Array, widths: Any) -> Array:
    """Return 0 up to a width >= 0, 1 from twice the width on, and rise linearly in between."""
    widths = np.maximum(widths, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        return np.minimum(np.maximum((values - widths) / widths, 0.0), 1.0)


def near_largest(values: Any) -> Indices:
    """Return the positions of the finite numbers within `TIE` of the largest, in rising order."""
    top = values.max()
    return np.flatnonzero(values >= top - TIE * abs(top))


def tilt(size: int) -> Array:
    """Return a fixed direction along which no two vertices of a set are alike, for `tilted`."""
    return np.random.default_rng(0).random(size)


def tilted(direction: Array, along: Array) -> Array:
    """Return the direction, moved a little along a fixed one of its shape, which settles ties."""
    square = float(np.vdot(direction, direction))
    # The largest entry will do where squares have left the range of numbers, or soon will.
    fits = 1e-300 < square < 1e300
    size = math.sqrt(square) if fits else min(float(np.abs(direction).max()), 1e300)
    return direction + (_TILT * size) * along


def whole_below(value: float) -> int:
    """Return floor(value), of a number that may have been rounded down from a whole one."""
    return math.floor(value + WHOLE * abs(value))


def whole_above(value: float) -> int:
    """Return ceil(value), of a number that may have been rounded up from a whole one."""
    return math.ceil(value - WHOLE * abs(value))


def line_search_step(gap: float, length2: float) -> float:
    """Return gap / length2, the step of a line search, cut to [0, 1]; both may be all rounding."""
    if not gap > 0:
        return 0.0
    return gap / length2 if length2 > gap else 1.0
