"""Orthonormal bases and thin singular value decompositions of tall blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from driftwolfe.points.kinds import Array

#: Largest error of Q^T Q - I that is taken for orthonormal.
_ORTHOGONALITY = 1e-11


def orthonormal(block: Array) -> Array:
    """Return an orthonormal basis whose span holds that of a tall block, of as many columns.

    Cholesky-QR, repeated until it is accurate, which runs at matrix-product speed (several times
    Householder QR on a 1682 x 100 block); Householder QR where the block is close to deficient.
    """
    lengths = np.sqrt(np.einsum("ij,ij->j", block, block))
    basis = block / np.where(lengths > 0, lengths, 1.0)
    gram = basis.T @ basis
    for _ in range(3):
        try:
            upper = linalg.cholesky(gram, check_finite=False)
        except linalg.LinAlgError:
            break
        basis = basis @ linalg.lapack.dtrtri(upper)[0]
        gram = basis.T @ basis
        error = np.abs(gram - np.eye(gram.shape[0])).max(initial=0.0)
        if error <= _ORTHOGONALITY:
            return basis
        if not error <= 0.1:
            break
    return _householder(block)


def _householder(block: Array) -> Array:
    return np.ascontiguousarray(np.linalg.qr(block)[0])


def thin_svd_of_product(U: Array, s: Array, V: Array) -> tuple[Array, Array, Array]:
    r"""Return the thin singular value decomposition of :math:`U\,\mathrm{diag}(s)\,V^\top`.

    Householder QR of both factors and an SVD of the small core: backward stable, so cancelling
    factors cost no digits.
    """
    left, left_core = np.linalg.qr(U)
    right, right_core = np.linalg.qr(V)
    inner_u, values, inner_vt = np.linalg.svd((left_core * s) @ right_core.T, full_matrices=False)
    return left @ inner_u, values, right @ inner_vt.T


def ritz_triplets(operator: Any, right: Array) -> tuple[Array, Array, Array]:
    r"""One block power step: triplets with :math:`U^\top A = \mathrm{diag}(s) V^\top`.

    U spans the image of the block `right`, and s are the singular values of A restricted to it:
    lower bounds of the leading ones, exact where the image holds the leading left vectors.
    """
    left = orthonormal(operator @ right)
    back = transpose_times(operator, left)
    V, s, turn = _thin_svd(back)
    return left @ turn, s, V


def transpose_times(operator: Any, block: Array) -> Array:
    """Return A^T Q for a factored or dense matrix."""
    if isinstance(operator, np.ndarray):
        return operator.T @ block
    product: Array = operator.transpose_times(block)
    return product


def _thin_svd(block: Array) -> tuple[Array, Array, Array]:
    """Left vectors, values and right vectors (columns) of a tall block.

    From the eigenvectors of its small Gram matrix, at matrix-product speed; directions below 1e-6
    of the first, where that has lost its digits, make a full decomposition take over.
    """
    squares, turn = np.linalg.eigh(block.T @ block)
    squares, turn = squares[::-1], turn[:, ::-1]
    if squares[-1] <= 1e-12 * squares[0]:
        U, s, Vt = np.linalg.svd(block, full_matrices=False)
        return U, s, Vt.T
    s = np.sqrt(squares)
    return (block @ turn) / s, s, turn
