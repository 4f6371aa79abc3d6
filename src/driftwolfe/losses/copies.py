"""`Copies`: what a loss was given, on the devices of the points that it meets."""

from __future__ import annotations

from typing import Any

from driftwolfe.points.devices import HOST, Device


class Copies:
    """Arrays and sparse matrices of the host, each brought to a device once.

    Parameters
    ----------
    own
        NumPy's arrays, and scipy's `csr_array`.
    """

    def __init__(self, *own: Any) -> None:
        self._own = own
        self._there: dict[str, tuple[Any, ...]] = {}

    def on(self, device: Device) -> tuple[Any, ...]:
        """Return them where points live."""
        if device is HOST:
            return self._own
        if device.name not in self._there:
            self._there[device.name] = tuple(_brought(each, device) for each in self._own)
        return self._there[device.name]


def _brought(own: Any, device: Device) -> Any:
    return device.canonical(own, own.shape) if hasattr(own, "tocsr") else device.put(own)
