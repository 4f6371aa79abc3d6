"""Projections that are one threshold: the piecewise-linear equations behind balls and simplices."""

from __future__ import annotations

import numpy as np

from driftwolfe.points.kinds import Array


def project_nonnegative_sum(values: Array, total: float) -> Array:
    r"""Project onto :math:`\{s \ge 0, \sum_i s_i = total\}`.

    The answer is :math:`\max(values - \theta, 0)`; sorting finds theta (Held, Wolfe & Crowder
    1974).

    >>> project_nonnegative_sum(np.array([2.0, 1.0, -5.0]), 2.0)
    array([1.5, 0.5, 0. ])
    """
    # Shifting by the maximum keeps the running sums exact when values are huge beside `total`.
    shifted: Array = values - values.max()
    falling = np.sort(shifted)[::-1]
    excess = np.cumsum(falling) - total
    ranks = np.arange(1, falling.size + 1)
    last = np.nonzero(falling * ranks > excess)[0][-1]
    projected: Array = np.maximum(shifted - excess[last] / ranks[last], 0.0)
    return projected


def threshold_to_sum(values: Array, total: float) -> Array:
    r"""Project non-negative values onto :math:`\{s \ge 0, \sum_i s_i \le total\}`.

    >>> threshold_to_sum(np.array([2.0, 1.0]), 4.0)
    array([2., 1.])
    """
    return values.copy() if values.sum() <= total else project_nonnegative_sum(values, total)


def project_capped_sums(values: Array, total: float, cap: float) -> Array:
    r"""Project each row onto :math:`\{0 \le s \le cap, \sum_i s_i = total\}`.

    The answer is :math:`\mathrm{clip}(values - \theta, 0, cap)` with one theta a row. The sum falls
    with theta along straight pieces between the points `values - cap` and `values`, so sorting
    those finds the piece that meets `total`, and on it theta is the root of a linear equation.

    Parameters
    ----------
    values
        One problem a row, ``(rows, n)``.
    total
        The sum asked for, from 0 to ``n * cap``.
    cap
        The largest value an entry may have.

    Examples
    --------
    >>> project_capped_sums(np.array([[3.0, 1.0, 0.0]]), 2.0, 1.0)
    array([[1., 1., 0.]])
    >>> project_capped_sums(np.array([[0.9, 0.5, 0.0]]), 1.0, 1.0)
    array([[0.7, 0.3, 0. ]])
    """
    n = values.shape[1]
    lowered = values - cap
    breaks = np.concatenate([lowered, values], axis=1)
    order = np.argsort(breaks, axis=1)
    breaks = np.take_along_axis(breaks, order, axis=1)
    # Passing `value - cap` sets an entry free to fall; passing `value` pins it at 0.
    free_entries = np.cumsum(np.where(order < n, 1, -1), axis=1)
    falls = np.cumsum(free_entries[:, :-1] * np.diff(breaks, axis=1), axis=1)
    pieces = np.count_nonzero(n * cap - falls >= total, axis=1)
    start = np.take_along_axis(breaks, pieces[:, None], axis=1)
    # Measured from the start of the piece, no free entry exceeds `cap`, so no digits are lost.
    shifted = values - start
    full = lowered > start
    free = (shifted > 0) & ~full
    surplus = np.where(free, shifted, 0.0).sum(axis=1, keepdims=True)
    surplus += cap * np.count_nonzero(full, axis=1, keepdims=True) - total
    rest = surplus / np.maximum(np.count_nonzero(free, axis=1, keepdims=True), 1)
    projected: Array = np.clip(shifted - rest, 0.0, cap)
    return projected
