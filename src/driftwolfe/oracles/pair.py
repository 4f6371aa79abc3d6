"""`Pair`: a feasible point on its way to a target, with their distance kept up to date."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import line_search_share
from driftwolfe.points.shelf import Shelf

#: ||x||^2, <x, y>, ||y||^2.
Scalars: TypeAlias = tuple[float, float, float]

#: Below this share of ||x||^2 + ||y||^2 the expanded square has lost too many digits.
_CANCELLED = 1e-6
#: Squared lengths beyond this leave the range of numbers when they are added up.
_LARGEST = 1e307
#: Columns that a factored x may gain before it is recompressed.
_SLACK_COLUMNS = 40


class Pair:
    """The feasible x that moves by Frank-Wolfe steps, and the target y.

    Dense points keep the residual x - y, updated in place. Factored ones keep the scalars
    ||x||^2, <x, y>, ||y||^2, which a caller who knows them may pass as `scalars`, and never touch
    all entries; where x lies on a `shelf`, steps need no copy of it.
    """

    def __init__(
        self, x: Point, y: Point, scalars: Scalars | None = None, shelf: Shelf | None = None
    ) -> None:
        self.dense = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        self.y = y
        if self.dense:
            self.x = np.array(x)
            self._residual = x - y
            self.squared = inner(self._residual, self._residual)
        else:
            self.x = x
            self._shelf = shelf
            self._xx, self._xy, self._yy = scalars or (inner(x, x), inner(x, y), inner(y, y))
            if not self._xx + self._yy < _LARGEST:
                raise ValueError(
                    "a target is beyond the range of numbers; use a smaller step_scale"
                )
            self._columns = _Columns(x), _Columns(y)
            self._residual = None
            self._expand()

    def direction(self) -> Point:
        """The gradient x - y of half the squared distance."""
        if not self.dense and self._residual is None:
            self._residual = self.x - self.y
        return self._residual

    def look(self, vertex: Point) -> float:
        """Return the gap <x - y, x - v>, and remember v for `step`."""
        if self.dense:
            self._move = vertex - self.x
            self._gap = -inner(self._residual, self._move)
        else:
            self._move = vertex
            self._slope, self._xv = self._products(vertex)
            self._gap = self._xx - self._xy - self._slope
        return self._gap

    @property
    def reach(self) -> float:
        """The size of <x - y, v>, of points that are not dense."""
        return abs(self._slope)

    def step(self) -> bool:
        """Move x to the nearest point to y on the segment to v; say whether it moved at all."""
        if not self._gap > 0:
            return False
        before = self.squared
        if self.dense:
            length2 = inner(self._move, self._move)
            self._move *= line_search_share(self._gap, length2)
            self.x += self._move
            self._residual += self._move
            self.squared = inner(self._residual, self._residual)
        else:
            self._step_factored()
        return self.squared < before

    def pull(self, share: float) -> None:
        """Move the target towards x: y <- y + share (x - y)."""
        if self.dense:
            self._residual *= 1.0 - share
            self.y = self.x - self._residual
        else:
            self.y = self._columns[1].trim((1.0 - share) * self.y + share * self.x)
            self._residual = None
            xx, xy, yy = self._xx, self._xy, self._yy
            self._xy = (1 - share) * xy + share * xx
            self._yy = (1 - share) ** 2 * yy + 2 * share * (1 - share) * xy + share**2 * xx
        self.squared *= (1.0 - share) ** 2

    def snapshot(self) -> Point:
        """Return x as it is now, safe from later steps."""
        return self.x.copy() if self.dense else self.x

    def between(self, share: float) -> Point:
        """Return y + share (x - y)."""
        return self.y + share * self.direction()

    def _products(self, vertex: Point) -> tuple[float, float]:
        """<x - y, v> and <x, v>."""
        if self._shelf is None:
            return inner(self.direction(), vertex), inner(self.x, vertex)
        slope, xv = self._shelf.inner(vertex, self.direction(), self.x)
        return slope, xv

    def _step_factored(self) -> None:
        vertex, vv = self._move, inner(self._move, self._move)
        xv, yv = self._xv, self._xv - self._slope
        share = line_search_share(self._gap, vv - 2 * xv + self._xx)
        rest = 1.0 - share
        if self._shelf is None:
            mixed = rest * self.x + share * vertex
        else:
            mixed = self._shelf.mix(rest, self.x, share, vertex)
        self.x = self._columns[0].trim(mixed)
        self._xy = rest * self._xy + share * yv
        self._xx = rest**2 * self._xx + 2 * share * rest * xv + share**2 * vv
        self._residual = None
        self._expand()

    def _expand(self) -> None:
        self.squared = self._xx - 2 * self._xy + self._yy
        if self.squared < _CANCELLED * (self._xx + self._yy):
            length = norm(self.direction())
            self.squared = length * length  # infinite where ** would raise

    @property
    def scalars(self) -> Scalars | None:
        """||x||^2, <x, y>, ||y||^2 of factored points."""
        return None if self.dense else (self._xx, self._xy, self._yy)

    @property
    def distance(self) -> float:
        """||x - y||."""
        return math.sqrt(self.squared)


class _Columns:
    """Recompresses a factored point whenever appending has about doubled its columns."""

    def __init__(self, point: Point) -> None:
        self._held = getattr(point, "rank", 0)

    def trim(self, point: Point) -> Point:
        if not isinstance(point, FactoredMatrix) or point.rank <= 2 * self._held + _SLACK_COLUMNS:
            return point
        trimmed = point.recompress()
        self._held = trimmed.rank
        return trimmed
