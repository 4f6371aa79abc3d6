"""Directions of length 1."""

from __future__ import annotations

import numpy as np

from driftwolfe.points import norm
from driftwolfe.points.kinds import Array


def unit_vector(direction: Array) -> Array:
    """Return the direction scaled to norm 1; all of length 0 become the first unit vector.

    >>> unit_vector(np.array([3e-200, 4e-200]))
    array([0.6, 0.8])
    >>> unit_vector(np.zeros(2))
    array([1., 0.])
    """
    largest = np.abs(direction).max()
    if largest == 0:
        first = np.zeros(direction.shape)
        first.flat[0] = 1.0
        return first
    # Scaled by the largest entry first, so that squares neither over- nor underflow.
    scaled = direction / largest
    return scaled / norm(scaled)
