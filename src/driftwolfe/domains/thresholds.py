"""Projections that are one threshold: the piecewise-linear equations behind balls and simplices."""

from __future__ import annotations

import numpy as np

from driftwolfe.points.kinds import Array


def project_nonnegative_sum(values: Array, total: float) -> Array:
    r"""Project onto :math:`\{s \ge 0, \sum_i s_i = total\}`.

    The answer is :math:`\max(values - \theta, 0)`; sorting finds theta (Held, Wolfe & Crowder 1974).

    >>> project_nonnegative_sum(np.array([2.0, 1.0, -5.0]), 2.0)
    array([1.5, 0.5, 0. ])
    """
    # Shifting by the maximum keeps the running sums exact when values are huge beside `total`.
    shifted = values - values.max()
    falling = np.sort(shifted)[::-1]
    excess = np.cumsum(falling) - total
    ranks = np.arange(1, falling.size + 1)
    last = np.nonzero(falling * ranks > excess)[0][-1]
    return np.maximum(shifted - excess[last] / ranks[last], 0.0)


def threshold_to_sum(values: Array, total: float) -> Array:
    r"""Project non-negative values onto :math:`\{s \ge 0, \sum_i s_i \le total\}`.

    >>> threshold_to_sum(np.array([2.0, 1.0]), 4.0)
    array([2., 1.])
    """
    return values.copy() if values.sum() <= total else project_nonnegative_sum(values, total)
