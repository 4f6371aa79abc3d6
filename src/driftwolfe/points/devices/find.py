"""Which device an array lives on, and which one a name means."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from driftwolfe.points.devices.base import Device
from driftwolfe.points.devices.host import HostDevice

#: NumPy, SciPy and compiled loops.
HOST: Device = HostDevice()


def device_of(array: Any) -> Device:
    """Return where an array lives; what is no tensor lives, or will live, on the host."""
    if isinstance(array, np.ndarray) or not _is_tensor(array):
        return HOST
    return _torch_device(_name_at(array.device))


def namespace(array: Any) -> Any:
    """Return the library of an array: numpy or torch."""
    return np if isinstance(array, np.ndarray) else device_of(array).xp


def is_array(value: Any) -> bool:
    """Return whether a value is an array of any device: NumPy's, or a tensor."""
    return isinstance(value, np.ndarray) or _is_tensor(value)


def to_host(array: Any) -> Any:
    """Return an array as NumPy's; anything else as it is."""
    if isinstance(array, np.ndarray) or not _is_tensor(array):
        return array
    return device_of(array).host(array)


def device_named(name: Any) -> Device:
    """Return the device of a name, or say which there are.

    ``"cpu"`` is NumPy on the host, ``"torch"`` PyTorch on the host, and ``"cuda"``, ``"cuda:1"``, ...
    are PyTorch's GPUs.

    >>> device_named("cpu")
    Device('cpu')
    """
    if name is None or name == "cpu":
        return HOST
    if not (isinstance(name, str) and re.fullmatch(r"torch|cuda(:\d{1,3})?", name)):
        raise ValueError(f'device must be "cpu", "cuda", "cuda:1" or the like, got {name!r}')
    return _torch_device("cuda" if name == "cuda:0" else name)


def best_device() -> Device:
    """Return the GPU where PyTorch is installed and finds one, else the host."""
    try:
        return device_named("cuda")
    except ValueError:
        return HOST


@cache
def _torch_device(name: str) -> Device:
    try:
        from driftwolfe.points.devices.torch_device import TorchDevice
    except ImportError:
        raise ValueError(
            f'device "{name}" needs PyTorch: pip install "driftwolfe[gpu]", or use device="cpu"'
        ) from None
    return TorchDevice(name)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.startswith("torch") and hasattr(value, "layout")


@cache
def _name_at(place: Any) -> str:
    """What users call one of PyTorch's places."""
    name = "torch" if place.type == "cpu" else str(place.type)
    return device_named(f"{name}:{place.index}" if place.index else name).name
