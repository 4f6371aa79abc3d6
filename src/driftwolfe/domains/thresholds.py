"""Thresholds that bring a sum down: the projections of balls, simplices and matroids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.devices import HOST, device_of
from driftwolfe.points.kinds import Array, compiled

kernels = compiled("driftwolfe.domains.set_kernels")

#: Values of more times the cap have lost the digits that tell where between 0 and the cap to be.
_FAR = 1e6


def load_kernels(domain: Any) -> None:
    """Load the compiled threshold of the projection: the `warm_up` of sets that use it."""
    kernels("nearest_rows")


def threshold_to_sum(values: Any, total: float, simplex: bool = False) -> Any:
    r"""Project onto :math:`\sum_i |s_i| \le total`, or the simplex of that sum, along the last axis.

    On the simplex the answer is :math:`\max(values - \theta, 0)`, and theta the largest of
    :math:`\theta_S = (\sum_{i \in S} values_i - total)/|S|` over sets S of entries. Dropping entries
    below the :math:`\theta_S` of those that are left finds it (Michelot 1986).
    """
    device, rows, ball = device_of(values), values.reshape(-1, values.shape[-1]), not simplex
    if device is HOST:
        return kernels().nearest_rows(np.ascontiguousarray(rows), total, ball).reshape(values.shape)
    xp, sizes = device.xp, abs(rows) if ball else rows
    shifted = sizes - sizes.amax(1, True)
    falling = xp.sort(shifted, dim=1, descending=True)[0]
    excess = xp.cumsum(falling, 1) - total
    ranks = device.put(np.arange(1.0, falling.shape[1] + 1))
    kept = (falling * ranks > excess).sum(1, True)
    nearest = (shifted - excess.gather(1, kept - 1) / kept).clip(0.0)
    if ball:
        inside = sizes.sum(1, True) <= total
        nearest = xp.where(inside, rows, xp.sign(rows) * nearest)
    return nearest.reshape(values.shape)


def project_capped_sums(values: Array, total: float, cap: float) -> Array:
    r"""Project each row onto :math:`\{0 \le s \le cap, \sum_i s_i = total\}`.

    The answer is :math:`\mathrm{clip}(values - \theta, 0, cap)` with one theta per row; `total` is from
    0 to n cap. The sum falls with theta along straight pieces between the points `values - cap` and
    `values`: sorting those finds the piece that meets `total`, and a linear equation theta.
    """
    n = values.shape[1]
    if values.size and max(values.max(), -values.min()) > _FAR * cap:
        # With the k-th largest value for 0, k = total/cap rounded up, theta lies between -cap and 0,
        # and what is farther away than 2 cap is clipped in any case.
        level = np.sort(values, axis=1)[:, -min(n, max(1, math.ceil(total / cap)))]
        with np.errstate(over="ignore"):  # infinitely far away is far away
            values = np.clip(values - level[:, None], -2.0 * cap, 2.0 * cap)
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
