"""Sparse matrices from outside: looked at once, before any loop trusts their indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks


def sound_sparse(matrix: Any, name: str) -> Any:
    """Return a scipy sparse matrix whose parts fit together, or raise ValueError.

    scipy itself looks at indices neither when a matrix is converted nor when it is multiplied: one
    out of range reads memory that belongs to others. Unsorted indices and entries given twice, which
    add up, are as good as in scipy. Formats other than CSR, CSC, BSR and COO come back as CSR; what
    is no sparse matrix comes back as it is.

    >>> eye = scipy.sparse.csr_array(np.eye(2))
    >>> eye.indices[1] = 5
    >>> sound_sparse(eye, "features")
    Traceback (most recent call last):
        ...
    ValueError: features is a broken sparse matrix: column indices must lie in 0..1, got 5
    """
    if not (hasattr(matrix, "tocsr") and scipy.sparse.issparse(matrix)):
        return matrix
    if matrix.format in ("lil", "dia", "dok"):
        matrix = _by_rows(matrix, name)
    checks.refuse_masked(matrix.data, name)
    if (kind := np.asarray(matrix.data).dtype).kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got a sparse matrix of {kind}")
    if matrix.format == "coo":
        _check_coordinates(matrix, name)
    else:
        _check_lines(matrix, name)
    return matrix


def _by_rows(matrix: Any, name: str) -> Any:
    """Return a matrix of one of the other formats as CSR; scipy trusts the lengths of their parts."""
    fits = True
    if matrix.format == "lil":
        pairs = zip(matrix.rows, matrix.data, strict=False)
        fits = len(matrix.rows) == len(matrix.data) == matrix.shape[0] and all(
            len(row) == len(data) for row, data in pairs
        )
    elif matrix.format == "dia":
        offsets = _whole(matrix.offsets, "offsets", name)
        fits = np.ndim(matrix.data) == 2 and len(matrix.data) == offsets.size
    if not fits:
        raise _broken(name, "its parts are of different lengths")
    try:
        return matrix.tocsr()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise _broken(name, f"it cannot be converted ({error})") from error


def _check_lines(matrix: Any, name: str) -> None:
    """Look at a matrix that is stored row by row, or column by column, in blocks or not."""
    data, shape = np.asarray(matrix.data), matrix.shape
    block = data.shape[1:] if matrix.format == "bsr" else (1,) * len(shape)
    if data.ndim != (3 if matrix.format == "bsr" else 1) or not _divides(block, shape):
        raise _broken(name, f"data has shape {data.shape}")
    sides = [("row", shape[0] // block[0]), ("column", shape[-1] // block[-1])]
    if len(shape) == 1:
        sides[0] = ("row", 1)
    lines, across = sides[::-1] if matrix.format == "csc" else sides
    indptr, indices = _whole(matrix.indptr, "indptr", name), _whole(matrix.indices, "indices", name)
    if indptr.size != lines[1] + 1:
        raise _broken(name, f"indptr must have {lines[1] + 1} entries, got {indptr.size}")
    if indices.size != len(data):
        raise _broken(name, f"it has {indices.size} indices for {len(data)} entries")
    if indptr[0] != 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        raise _broken(name, f"indptr must rise from 0 to at most {indices.size}")
    _check_range(indices[: indptr[-1]], *across, name)


def _divides(block: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(part > 0 and side % part == 0 for part, side in zip(block, shape, strict=True))


def _check_coordinates(matrix: Any, name: str) -> None:
    """Look at a matrix that is a list of entries."""
    size = np.asarray(matrix.data).size
    sides = ("row", "column") if len(matrix.shape) == 2 else ("",) * len(matrix.shape)
    for side, given, length in zip(sides, matrix.coords, matrix.shape, strict=True):
        indices = _whole(given, f"{side} indices", name)
        if indices.size != size:
            raise _broken(name, f"it has {indices.size} {side} indices for {size} entries")
        _check_range(indices, side, length, name)


def _whole(given: Any, what: str, name: str) -> Any:
    checks.refuse_masked(given, name)
    indices = np.asarray(given)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise _broken(name, f"{what} must be one row of whole numbers, got {indices.dtype}")
    return indices


def _check_range(indices: Any, side: str, length: int, name: str) -> None:
    if not indices.size:
        return
    least, largest = int(indices.min()), int(indices.max())
    if least < 0 or largest >= length:
        wrong = least if least < 0 else largest
        raise _broken(name, f"{side} indices must lie in 0..{length - 1}, got {wrong}")


def _broken(name: str, why: str) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {why}")
