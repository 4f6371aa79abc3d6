"""Where ensembles keep the points of sets that are arrays."""

from __future__ import annotations

import math
from typing import Any

from driftwolfe.points.devices import HOST, Device, best_device, device_named
from driftwolfe.points.kinds import Shape

#: Coordinates from which stacks of experts are quicker on a GPU (H200, docs/gpu.md).
DEVICE_SIZE = 100_000


def stack_device(name: Any, shape: Shape) -> tuple[Device, bool]:
    """The device of that name, and whether it was chosen here.

    It is for ``"auto"``: a GPU where there is one and points are large.
    """
    if name == "auto":
        return best_device() if math.prod(shape) >= DEVICE_SIZE else HOST, True
    return device_named(name), False
