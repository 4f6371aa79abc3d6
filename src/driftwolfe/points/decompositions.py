"""Dense decompositions that do not give up where LAPACK's quickest routine does."""

from __future__ import annotations

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array


def svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Return the thin decomposition U, s, Vt with falling s, of a matrix or a stack of them.

    LAPACK's divide and conquer now and then fails on matrices that are finite; those go, scaled, to
    its slower QR iteration.

    >>> svd(np.diag([1.0, 2.0]))[1]
    array([2., 1.])
    """
    try:
        U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
        return U, s, Vt
    except np.linalg.LinAlgError:
        if matrix.ndim > 2:
            parts = zip(*(svd(one) for one in matrix), strict=True)
            U, s, Vt = (np.stack(part) for part in parts)
            return U, s, Vt
        return _slow_svd(matrix)


def singular_values(matrix: Array) -> Array:
    """Return the singular values of a matrix, falling."""
    try:
        return np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
    except np.linalg.LinAlgError:
        return _slow_svd(matrix)[1]


def eigh(symmetric: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, rising, and its vectors in columns."""
    try:
        values, vectors = np.linalg.eigh(symmetric)
    except np.linalg.LinAlgError:
        scale = _scale(symmetric)
        values, vectors = scipy.linalg.eigh(symmetric / scale, driver="ev")
        values = values * scale
    return values, vectors


def _slow_svd(matrix: Array) -> tuple[Array, Array, Array]:
    scale = _scale(matrix)
    U, s, Vt = scipy.linalg.svd(matrix / scale, full_matrices=False, lapack_driver="gesvd")
    return U, s * scale, Vt


def _scale(matrix: Array) -> float:
    return float(np.abs(matrix).max(initial=0.0)) or 1.0
