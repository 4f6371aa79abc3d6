"""Directions, points and paths in a set that is known by its oracle."""

from __future__ import annotations

import functools
import math
import operator
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Array, Point

#: Vertices that a random point is mixed from.
_MIXED = 4
#: Rounds of "from the vertex at one end to the one at the other" that widen a direction.
_WIDENINGS = 5


class Width(NamedTuple):
    """A unit direction and the two ends of the set along it."""

    direction: Point
    lowest: Point
    highest: Point

    @property
    def ends(self) -> tuple[float, float]:
        """The inner products of the direction with the two ends."""
        return inner(self.direction, self.lowest), inner(self.direction, self.highest)


def random_direction(domain: Domain, rng: np.random.Generator) -> Point:
    """Return a unit vector of the set's space; of rank one where its matrices are factored."""
    if isinstance(domain.origin(), FactoredMatrix):
        u, v = (_unit(rng.standard_normal(size)) for size in domain.shape)
        return FactoredMatrix(u[:, None], np.ones(1), v[:, None])
    return _unit(rng.standard_normal(domain.shape))


def wide_direction(domain: Domain, rng: np.random.Generator) -> Width:
    """Return a direction in which the set is wide: a local maximum of the distance of two vertices."""
    direction = random_direction(domain, rng)
    for _ in range(_WIDENINGS):
        width = width_along(domain, direction)
        across = width.highest - width.lowest
        if isinstance(across, FactoredMatrix):
            across = across.recompress()
        direction = across / norm(across)
    return width_along(domain, direction)


def width_along(domain: Domain, direction: Point) -> Width:
    """Return the two ends of the set along a direction, which is scaled to unit length."""
    unit = direction / norm(direction)
    return Width(unit, domain.lmo(unit), domain.lmo(unit * -1.0))


def random_point(domain: Domain, rng: np.random.Generator) -> Point:
    """Return a random mixture of random vertices."""
    vertices = [domain.lmo(random_direction(domain, rng)) for _ in range(_MIXED)]
    return _mix(vertices, rng.dirichlet(np.ones(_MIXED)))


def steady_angles(speed: float, count: int, name: str) -> Array:
    """Return `count` angles from 0 on, `speed` radians apart; `name` is what errors call the speed."""
    return checks.nonnegative(speed, name) * np.arange(count, dtype=np.float64)


def tour(domain: Domain, angles: Array, rng: np.random.Generator) -> list[Point]:
    r"""Return a path in the set, by the angle on a closed curve between three vertices.

    The weights :math:`(1 + \cos(\alpha - 2 \pi i/3))/3` are non-negative and have sum 1, so no point
    leaves the set.
    """
    direction = random_direction(domain, rng)
    ends = width_along(domain, direction)
    vertices = [ends.lowest, ends.highest, domain.lmo(random_direction(domain, rng))]
    offsets = 2.0 * math.pi * np.arange(3) / 3.0
    weights = (1.0 + np.cos(np.asarray(angles)[:, None] - offsets)) / 3.0
    return [_mix(vertices, row) for row in weights]


def _mix(points: list[Point], weights: Array) -> Point:
    parts = (point * float(weight) for point, weight in zip(points, weights, strict=True))
    return functools.reduce(operator.add, parts)


def _unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)
