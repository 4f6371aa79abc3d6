"""Ramps: what stands where a comparison would make a result jump."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.points.kinds import Array


def ramp(values: Array, widths: Any) -> Array:
    """Return 0 up to a width >= 0, 1 from twice the width on, and rise linearly in between.

    Noise well below the width in values that should be 0 changes nothing, and elsewhere a small change
    of a value makes a small change.

    >>> ramp(np.array([0.0, 1.0, 1.5, 2.0, 7.0]), 1.0)
    array([0. , 0. , 0.5, 1. , 1. ])
    >>> ramp(np.array([0.0, 1e-300]), 0.0)
    array([0., 1.])
    """
    if (values >= np.maximum(2.0 * widths, np.finfo(np.float64).tiny)).all():  # as nearly always
        return np.ones(values.shape)
    widths = np.broadcast_to(widths, values.shape)
    above = np.where(values > widths, 1.0, 0.0)
    steep = (widths > 0.0) & (values < 2.0 * widths)
    return np.divide(np.maximum(values - widths, 0.0), widths, where=steep, out=above)
