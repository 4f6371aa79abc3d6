"""Where ensembles keep the points of sets that are arrays."""

from __future__ import annotations

import math
from typing import Any

from driftwolfe.points.devices import HOST, Device, best_device, device_named
from driftwolfe.points.kinds import Shape

#: Coordinates from which stacks of experts are quicker on a GPU (H200, docs/gpu.md).
DEVICE_SIZE = 100_000


def stack_device(name: Any, shape: Shape) -> Device:
    """The device of that name; for ``"auto"``, a GPU where there is one and points are large."""
    if name == "auto":
        return best_device() if math.prod(shape) >= DEVICE_SIZE else HOST
    return device_named(name)
