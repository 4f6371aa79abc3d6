"""Inner products of low rank plus sparse, and norms that keep their digits where the parts cancel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.points.devices import HOST, is_array, namespace, to_host
from driftwolfe.points.kinds import Array

if TYPE_CHECKING:
    from driftwolfe.points.factored import FactoredMatrix

#: Below this ratio of squared norms a Gram-matrix norm has lost half its digits to cancellation.
_CANCELLED = 1e-5
#: Rows evaluated at a time when a cancelled norm is summed entry by entry: bounds the memory.
_CHUNK_ENTRIES = 1 << 20


def frobenius(matrix: FactoredMatrix) -> float:
    """The Frobenius norm: by Gram matrices where they will do, else entry by entry."""
    largest = largest_part(matrix)
    if largest == 0.0:
        return 0.0
    if not 1e-100 < largest < 1e100:  # squares would soon over- or underflow
        rescaled = matrix / largest
        # Factors near the end of the range cannot be rescaled, and none is far from the norm.
        fits = 1e-100 < largest_part(rescaled) < 1e100
        return largest * (frobenius(rescaled) if fits else 1.0)
    low_rank = _low_rank_norm(matrix)
    stored = matrix.device.stored_length(matrix.sparse) if matrix.nnz else 0.0
    scale = low_rank**2 + stored**2
    squared = scale + (2.0 * matrix.stored_inner(matrix) if stored else 0.0)
    return _norm_by_rows(matrix) if squared < _CANCELLED * scale else math.sqrt(squared)


def largest_part(matrix: FactoredMatrix) -> float:
    """The size of the numbers: the largest of s, times those of factors not orthonormal, or stored."""
    largest = matrix.device.largest
    low_rank = float(np.abs(matrix.s).max(initial=0.0))
    if not matrix.orthonormal:
        low_rank *= math.prod(largest(F) for F in (matrix.U, matrix.V))
    return max(low_rank, matrix.device.stored_largest(matrix.sparse)) if matrix.nnz else low_rank


def length(array: Any) -> float:
    """The Euclidean length of all entries."""
    return float(namespace(array).linalg.vector_norm(array))


def _low_rank_norm(matrix: FactoredMatrix) -> float:
    if matrix.orthonormal:
        return float(np.linalg.norm(matrix.s))
    gram = matrix.device.host((matrix.U.T @ matrix.U) * (matrix.V.T @ matrix.V))
    squared = float(matrix.s @ gram @ matrix.s)
    if squared < _CANCELLED * float(matrix.s**2 @ np.diag(gram)):
        return float(np.linalg.norm(matrix.low_rank.recompress().s))
    return math.sqrt(squared)


def _norm_by_rows(matrix: FactoredMatrix) -> float:
    step = max(1, _CHUNK_ENTRIES // matrix.shape[1])
    rows = range(0, matrix.shape[0], step)
    return math.hypot(*(length(_rows(matrix, i, i + step)) for i in rows))


def _rows(matrix: FactoredMatrix, start: int, stop: int) -> Array:
    dense: Array = (matrix.U[start:stop] * matrix.scale) @ matrix.V.T
    return dense if matrix.sparse is None else dense + matrix.sparse[start:stop].toarray()


def inner(one: FactoredMatrix, other: Any) -> float:
    """The inner product with another factored matrix, or a dense array, of the same shape."""
    if is_array(other):
        return _with_dense(one, one.here(other))
    if one.device is not other.device:
        return inner(*together(one, other))
    looks = (one.U.T @ other.U) * (one.V.T @ other.V)
    total = float(one.s @ one.device.host(looks) @ other.s)
    total += one.stored_inner(other) + other.stored_inner(one)
    if one.sparse is not None and other.sparse is not None:
        total += one.device.stored_product(one.sparse, other.sparse)
    return total


def _with_dense(matrix: FactoredMatrix, array: Any) -> float:
    looks = matrix.device.host(((array @ matrix.V) * matrix.U).sum(axis=0))
    total = float(looks @ matrix.s)
    if matrix.sparse is None:
        return total
    return total + float(matrix.to("cpu").sparse.multiply(to_host(array)).sum())


def together(one: FactoredMatrix, two: FactoredMatrix) -> tuple[FactoredMatrix, FactoredMatrix]:
    """Two matrices on one device: what is on the host moves."""
    if one.device is HOST:
        return one.to(two.device.name), two
    return one, two.to(one.device.name)
