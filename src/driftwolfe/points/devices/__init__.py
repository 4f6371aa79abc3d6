"""Where arrays live: NumPy's on the host, PyTorch's on a device.

Algorithms are written once. What both libraries spell alike they take from `Device.xp`; what they do
not (sparse matrices, compiled loops, random numbers, the way to the host and back) from `Device`.
"""

from driftwolfe.points.devices.base import Device, Krylov
from driftwolfe.points.devices.find import (
    HOST,
    best_device,
    device_named,
    device_of,
    is_array,
    namespace,
    to_host,
)

__all__ = [
    "HOST",
    "Device",
    "Krylov",
    "best_device",
    "device_named",
    "device_of",
    "is_array",
    "namespace",
    "to_host",
]
