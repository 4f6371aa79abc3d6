"""Data that losses are given: checked, read-only copies, cached per device."""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape

#: Rows of features: a float64 array or a scipy `csr_array`; both multiply dense arrays with `@`.
Features: TypeAlias = Any

#: Below this, float64 holds every whole number.
_EXACT_WHOLE_NUMBERS = 2**53


def batch_of_numbers(value: Any, name: str, size: int | None = None) -> Array:
    """Return a read-only copy of a non-empty vector of finite numbers."""
    array = checks.finite_array(to_host(value), name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {array.shape}")
    if size is not None and array.size != size:
        raise ValueError(f"{name} must hold {size} numbers, got {array.size}")
    return read_only(array)


def batch_of_indices(value: Any, name: str, size: int = _EXACT_WHOLE_NUMBERS) -> Indices:
    """Return a read-only copy of a non-empty vector of indices, all below `size`."""
    value = to_host(value)
    numbers = batch_of_numbers(value, name)
    strange = numbers[(numbers < 0) | (numbers != np.floor(numbers))]
    if strange.size or np.asarray(value).dtype.kind == "b":
        shown = f"{strange[0]:g}" if strange.size else "booleans"
        raise ValueError(f"{name} must be whole numbers >= 0, got {shown}")
    if numbers.max() >= size:
        raise ValueError(f"{name} must lie in 0..{size - 1}, got {numbers.max():.0f}")
    indices = numbers.astype(np.intp)
    indices.setflags(write=False)
    return indices


def batch_of_features(value: Any, name: str = "features") -> Features:
    """Return a read-only copy of a non-empty table (rows, features), dense or sparse as given."""
    dense = None if hasattr(value, "tocsr") else checks.finite_array(value, name)
    shape = np.shape(value) if dense is None else dense.shape
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"{name} must be a non-empty table (rows, features), got shape {shape}")
    if dense is not None:
        return read_only(dense)
    table = scipy.sparse.csr_array(checks.sound_sparse(value, name), dtype=np.float64, copy=True)
    if not np.isfinite(table.data).all():
        raise ValueError(f"{name} has entries that are not finite")
    return table


def row_norms(features: Features) -> Array:
    """Return the Euclidean norm of every row."""
    squares = features**2 if isinstance(features, np.ndarray) else features.power(2)
    return np.sqrt(squares.sum(axis=1), dtype=np.float64)


def dense_features(features: Features) -> Array:
    """Return the table as an array."""
    return features if isinstance(features, np.ndarray) else features.toarray()


def read_only(array: Array) -> Array:
    """Return a read-only copy, contiguous by rows."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


class DeviceCache:
    """Per-device cache of a loss's data: NumPy arrays and scipy's `csr_array`."""

    def __init__(self, *data: Any) -> None:
        self._data = data
        self._copies: dict[str, tuple[Any, ...]] = {}

    def on(self, device: Device) -> tuple[Any, ...]:
        """Return the data on a device, copied there once."""
        if device is HOST:
            return self._data
        if device.name not in self._copies:
            self._copies[device.name] = tuple(
                device.canonical(each, each.shape) if hasattr(each, "tocsr") else device.put(each)
                for each in self._data
            )
        return self._copies[device.name]


class FixedPoint:
    """A point given by the user, converted to other kinds or copied to a device at most once."""

    def __init__(self, value: Any, name: str) -> None:
        self.given: Point = value
        if not isinstance(value, FactoredMatrix):
            self.given = read_only(checks.finite_array(to_host(value), name))
        self.shape: Shape = self.given.shape

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is: factored, or an array on its device."""
        if isinstance(point, FactoredMatrix):
            return self._factored
        return self._dense.on(device_of(point))[0]

    @cached_property
    def _dense(self) -> DeviceCache:
        factored = isinstance(self.given, FactoredMatrix)
        return DeviceCache(read_only(self.given.toarray()) if factored else self.given)

    @cached_property
    def _factored(self) -> FactoredMatrix:
        """An array becomes the sparse part, which is exact."""
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.given)
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.given[rows, cols])
