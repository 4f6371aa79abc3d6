"""Orthonormal bases and thin singular value decompositions of tall blocks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.decompositions import eigh, svd
from driftwolfe.points.kinds import Array

#: Largest error of Q^T Q - I that is taken for orthonormal.
_ORTHOGONALITY = 1e-11
#: Singular values below this share of the first have vectors that a Gram matrix leaves less than
#: ten digits of.
_GRAM_RANGE = 1e-3


def orthonormal(block: Array) -> Array:
    """Return an orthonormal basis whose span holds that of a tall block, of as many columns.

    Cholesky-QR, repeated until it is accurate, which runs at matrix-product speed (several times
    Householder QR on a 1682 x 100 block); Householder QR where the block is close to deficient.
    """
    basis = _scaled(block)
    gram = basis.T @ basis
    for _ in range(3):
        try:
            upper = scipy.linalg.cholesky(gram, check_finite=False)
        except scipy.linalg.LinAlgError:
            break
        basis = basis @ scipy.linalg.lapack.dtrtri(upper)[0]
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
    inner_u, values, inner_vt = svd((left_core * s) @ right_core.T)
    return left @ inner_u, values, right @ inner_vt.T


class RitzSpace(NamedTuple):
    r"""A left space with orthonormal basis Q, its image :math:`A^\top Q`, and their triplets.

    With the decomposition :math:`A^\top Q = V\,\mathrm{diag}(s)\,W^\top` and U = Q W it holds that
    :math:`U^\top A = \mathrm{diag}(s) V^\top`: s are lower bounds of the leading singular values,
    exact where Q holds the leading left vectors.

    Attributes
    ----------
    basis
        Q, in columns.
    image
        :math:`A^\top Q`.
    turn
        W.
    s
        Falling.
    """

    basis: Array
    image: Array
    turn: Array
    s: Array

    @property
    def right(self) -> Array:
        """Right vectors to go on from: V diag(s)."""
        return self.image @ self.turn

    def leading(self, count: int) -> tuple[Array, Array]:
        """The first left and right vectors, in columns."""
        if count and self.s[count - 1] <= _GRAM_RANGE * self.s[0]:
            V, _, Wt = svd(self.image)
            return self.basis @ Wt[:count].T, np.ascontiguousarray(V[:, :count])
        turn = self.turn[:, :count]
        return self.basis @ turn, (self.image @ turn) / self.s[:count]


def ritz_space(operator: Any, right: Array, powers: int = 0) -> RitzSpace:
    """The image of a block of right vectors, sharpened by so many rounds of power iteration.

    These only turn the space, so that single precision does, at half the time.
    """
    image = operator @ right if powers == 0 else _powered(operator, right, powers)
    basis = orthonormal(image)
    back = transpose_times(operator, basis)
    squares, turn = eigh(back.T @ back)
    s = np.sqrt(np.maximum(squares[::-1], 0.0))
    return RitzSpace(basis, back, turn[:, ::-1], s)


def _powered(operator: Any, right: Array, powers: int) -> Array:
    """The image after `powers` further rounds, its columns scaled."""
    rough = _single(operator)
    image = rough @ _scaled(right).astype(np.float32)
    for _ in range(powers):
        image = rough @ _scaled(transpose_times(rough, _scaled(image)))
    return _scaled(image).astype(np.float64)


def _single(operator: Any) -> Any:
    """The matrix in single precision, at a scale that has room on both sides."""
    if not isinstance(operator, np.ndarray):
        return operator.single()
    return (operator / (np.abs(operator).max(initial=0.0) or 1.0)).astype(np.float32)


def transpose_times(operator: Any, block: Array) -> Array:
    """Return A^T Q for a factored or dense matrix."""
    if isinstance(operator, np.ndarray):
        return operator.T @ block
    product: Array = operator.transpose_times(block)
    return product


def _scaled(block: Array) -> Array:
    """The same columns at unit length, so that powers of large matrices stay in range."""
    lengths = np.sqrt(np.einsum("ij,ij->j", block, block))
    return block / np.where(lengths > 0, lengths, 1.0)
