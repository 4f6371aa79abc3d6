"""Data that losses are given: checked, read-only copies, cached per device."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, device_named, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape


def batch_of_numbers(value: Any, name: str, size: int | None = None) -> Array:
    """Return a read-only copy of a non-empty vector of finite numbers."""
    array = checks.finite_array(to_host(value), name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {array.shape}")
    if size is not None and array.size != size:
        raise ValueError(f"{name} must hold {size} numbers, got {array.size}")
    return read_only(array)


def batch_of_indices(value: Any, name: str, below: int = 2**53, size: int | None = None) -> Indices:
    """Return a read-only copy of a non-empty vector of indices, all less than `below`."""
    value = to_host(value)
    numbers = batch_of_numbers(value, name, size)
    strange = numbers[(numbers < 0) | (numbers != np.floor(numbers))]
    if strange.size or np.asarray(value).dtype.kind == "b":
        shown = f"{strange[0]:g}" if strange.size else "booleans"
        raise ValueError(f"{name} must be whole numbers >= 0, got {shown}")
    if numbers.max() >= below:
        raise ValueError(f"{name} must lie in 0..{below - 1}, got {numbers.max():.0f}")
    return read_only(numbers.astype(np.intp))


def batch_of_features(value: Any) -> Any:
    """Return a copy of a non-empty table (rows, features): a read-only array or a `csr_array`."""
    if hasattr(value, "tocsr"):
        value = checks.sound_sparse(value, "features")
        table = scipy.sparse.csr_array(value, dtype=np.float64, copy=True)
        if not np.isfinite(table.data).all():
            raise ValueError("features has entries that are not finite")
    else:
        table = read_only(checks.finite_array(value, "features"))
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"features must be a non-empty table (rows, features), got {table.shape}")
    return table


def row_norms(features: Any) -> Array:
    """Return the Euclidean norm of every row."""
    squares = features**2 if isinstance(features, np.ndarray) else features.power(2)
    return np.sqrt(squares.sum(axis=1), dtype=np.float64)


def dense_features(features: Any) -> Array:
    """Return the table as an array."""
    return features if isinstance(features, np.ndarray) else features.toarray()


def read_only(array: Any) -> Any:
    """Return a read-only copy, contiguous by rows."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


class DeviceCache(dict[str, tuple[Any, ...]]):
    """A loss's data, NumPy arrays and scipy's `csr_array`, by the name of a device; copied there once."""

    def __init__(self, *data: Any) -> None:
        super().__init__({HOST.name: data})

    def __missing__(self, name: str) -> tuple[Any, ...]:
        device = device_named(name)
        self[name] = tuple(
            device.canonical(each, each.shape) if hasattr(each, "tocsr") else device.put(each)
            for each in self[HOST.name]
        )
        return self[name]


class FixedPoint:
    """A point given by the user, converted to other kinds or copied to a device at most once."""

    def __init__(self, value: Any, name: str) -> None:
        self.given: Point = value
        if not isinstance(value, FactoredMatrix):
            self.given = read_only(checks.finite_array(to_host(value), name))
        self.shape: Shape = self.given.shape

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is: factored, or an array on its device."""
        if isinstance(point, np.ndarray) and isinstance(self.given, np.ndarray):
            return self.given
        if isinstance(point, FactoredMatrix):
            return self._factored
        return self._dense[device_of(point).name][0]

    @cached_property
    def _dense(self) -> DeviceCache:
        factored = isinstance(self.given, FactoredMatrix)
        return DeviceCache(read_only(self.given.toarray()) if factored else self.given)

    @cached_property
    def _factored(self) -> FactoredMatrix:
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.given)  # as the sparse part, which is exact
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.given[rows, cols])
