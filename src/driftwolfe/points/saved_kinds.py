"""How points are written to files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from driftwolfe.points.devices import HOST, Device
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.product import ProductPoint
from driftwolfe.points.shelf import Shelf
from driftwolfe.storage.tree import Kind

#: Entries of matrices have squares, and these have sums.
LARGEST_FACTOR = 1e152


class Mover:
    """Brings arrays that were read from a file to a device: what was one array is one there too."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._moved: dict[int, tuple[Any, Any]] = {}

    def __call__(self, array: Any) -> Any:
        """Return the array, there."""
        if self._device is HOST:
            return array
        if id(array) not in self._moved:
            self._moved[id(array)] = array, self._device.put(array)
        return self._moved[id(array)][1]

    def stored(self, sparse: Any) -> Any:
        """Return the sparse matrix, there."""
        if sparse is None or self._device is HOST:
            return sparse
        return self._device.canonical(sparse, sparse.shape)


def point_kinds(move: Mover) -> dict[str, Kind]:
    """The points that are not arrays, and what they are made of; once read, they are moved."""

    def factored(U: Any, s: Any, V: Any, sparse: Any, orthonormal: Any) -> FactoredMatrix:
        _check_factored(U, s, V, sparse, orthonormal)
        return FactoredMatrix._of(move(U), s, move(V), move.stored(sparse), orthonormal)

    def shelf(U: Any, V: Any, used: Any) -> Shelf:
        _check_shelf(U, V, used)
        return Shelf(move(U), move(V), used)

    return {
        "sparse": Kind(scipy.sparse.csr_array, ("shape", "indptr", "indices", "data"), _sparse),
        "factored": Kind(FactoredMatrix, ("U", "s", "V", "sparse", "orthonormal"), factored),
        "product": Kind(ProductPoint, ("parts",), _product),
        "shelf": Kind(Shelf, ("U", "V", "used"), shelf),
    }


def is_point(value: Any) -> bool:
    """Whether a value that was read may be a point: numbers that are all finite."""
    if isinstance(value, ProductPoint):
        return all(map(is_point, value.parts))
    if isinstance(value, FactoredMatrix):
        return True
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and _finite(value)


def _finite(*arrays: Any) -> bool:
    return all(np.isfinite(array).all() for array in arrays)


def _sparse(shape: Any, indptr: Any, indices: Any, data: Any) -> Any:
    whole = all(
        isinstance(part, np.ndarray) and part.dtype == np.int32 for part in (indptr, indices)
    )
    numbers = isinstance(data, np.ndarray) and data.dtype == np.float64 and _finite(data)
    if not (whole and numbers and _in_range(data)):
        raise ValueError("this archive holds a sparse matrix that is none")
    sizes = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
    if not (sizes and min(shape) >= 0 and max(shape) < 1 << 31 and indptr.size == shape[0] + 1):
        raise ValueError("this archive holds a sparse matrix that is none")
    try:
        stored = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
        stored.check_format(full_check=True)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError("this archive holds a sparse matrix that is none") from error
    if not stored.has_canonical_format:
        raise ValueError("this archive holds a sparse matrix that is none")
    return stored


def _check_factored(U: Any, s: Any, V: Any, sparse: Any, orthonormal: Any) -> None:
    arrays = all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (U, s, V))
    fits = arrays and U.ndim == V.ndim == 2 and s.shape == (U.shape[1],) == (V.shape[1],)
    if not (fits and _finite(U, s, V) and isinstance(orthonormal, bool)):
        raise ValueError("this archive holds a factored matrix whose parts do not fit together")
    if not _in_range(U, s, V):
        raise ValueError("this archive holds a factored matrix beyond the range of numbers")
    stored = sparse is None or isinstance(sparse, scipy.sparse.csr_array)
    if not stored or (sparse is not None and sparse.shape != (U.shape[0], V.shape[0])):
        raise ValueError("this archive holds a factored matrix whose parts do not fit together")
    # Norms are read off s where the factors are orthonormal: a lie would make any point feasible.
    if orthonormal and not (_orthonormal(U) and _orthonormal(V)):
        raise ValueError("this archive holds orthonormal factors that are not orthonormal")


def _in_range(*factors: Any) -> bool:
    """Whether products of entries, one of each, stay far below what is infinite."""
    sizes = [float(np.abs(factor).max(initial=0.0)) for factor in factors]
    return max(sizes) <= LARGEST_FACTOR and math.prod(sizes) <= LARGEST_FACTOR


def _orthonormal(factor: Any) -> bool:
    if factor.size and np.abs(factor).max() > 2.0:  # whose squares might leave the range
        return False
    return np.allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-6)


def _product(parts: Any) -> ProductPoint:
    if not (isinstance(parts, tuple) and parts and all(map(is_point, parts))):
        raise ValueError("this archive holds a product of what are no points")
    return ProductPoint(parts)


def _check_shelf(U: Any, V: Any, used: Any) -> None:
    arrays = all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (U, V))
    fits = arrays and U.ndim == V.ndim == 2 and U.shape[1] == V.shape[1]
    if not (fits and _finite(U, V) and type(used) is int and 0 <= used <= U.shape[1]):
        raise ValueError("this archive holds a shelf whose parts do not fit together")
