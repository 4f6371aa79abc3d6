"""What descent experts do with tables that have a row for each, on the host or on a device."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import HOST, Device
from driftwolfe.points.kinds import Array, Indices

kernels = compiled("driftwolfe.ensemble.kernels")


class HostRows:
    """Compiled loops: a dozen or two of experts are too few for array operations to pay.

    Points, infeasible points and sums of gradients are rows of tables; there is a gradient for each
    expert, or one for all. See `DeviceRows` for what they do.
    """

    def __init__(self) -> None:
        loops = kernels()
        self.largest_norm, self.restart = loops.largest_norm, loops.restart
        self.close_round, self._block_ends = loops.close_round, loops.block_ends

    def block_ends(
        self,
        y: Array,
        sums: Array,
        gradients: Array,
        clocks: Indices,
        blocks: Indices,
        steps: Array,
        skip: Any,
        scale: float,
    ) -> tuple[Indices, Array, bool]:
        """Return the experts whose block ends, where their steps do, and whether that is finite."""
        skipped = np.zeros(len(y), dtype=np.bool_) if skip is None else skip
        due, targets = np.empty(len(y), dtype=np.int64), np.empty(y.shape)
        number, total = self._block_ends(
            y, sums, gradients, clocks, blocks, steps, skipped, scale, due, targets
        )
        due, targets = due[:number], targets[:number]
        return due, targets, math.isfinite(total) or checks.all_finite(targets)


class DeviceRows:
    """The same by array operations, for points so large that they pay."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def largest_norm(self, gradients: Any) -> float:
        """Return the largest Euclidean norm of a row; what is not finite is not lost."""
        return float(self._device.xp.linalg.vector_norm(gradients, axis=1).max())

    def block_ends(
        self,
        y: Any,
        sums: Any,
        gradients: Any,
        clocks: Indices,
        blocks: Indices,
        steps: Array,
        skip: Any,
        scale: float,
    ) -> tuple[Indices, Any, bool]:
        """Return the experts whose block ends, where their steps do, and whether that is finite."""
        ends = (clocks + 1) % blocks == 0
        due = np.flatnonzero(ends if skip is None else ends > skip)
        here = self._device.put(due)
        own = gradients[here] if len(gradients) > 1 else gradients
        etas = self._device.put(scale * steps[due])[:, None]
        targets = y[here] - etas * (sums[here] + own)
        return due, targets, bool(self._device.xp.isfinite(targets).all())

    def close_round(
        self,
        x: Any,
        y: Any,
        sums: Any,
        gradients: Any,
        clocks: Indices,
        due: Indices,
        new_x: Any,
        new_y: Any,
    ) -> None:
        """Add the gradients to their sums, let a round pass, and move the experts that are due."""
        clocks += 1
        sums += gradients
        if due.size:
            here = self._device.put(due)
            x[here], y[here], sums[here] = new_x, new_y, 0.0

    def restart(self, x: Any, y: Any, sums: Any, start: Any, number: int) -> None:
        """Put the first experts at a point, with no gradients behind them."""
        first = self._device.put(start)
        x[:number], y[:number], sums[:number] = first, first, 0.0


def rows_on(device: Device) -> HostRows | DeviceRows:
    """Return what suits a device."""
    return HostRows() if device is HOST else DeviceRows(device)
