"""Orthonormal bases and thin singular value decompositions of tall blocks; thresholds of singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftwolfe.points.devices import HOST, count_products, device_of, eigh, is_array, svd
from driftwolfe.points.kinds import Array

#: Largest error of Q^T Q - I that is taken for orthonormal.
_ORTHOGONALITY = 1e-11
#: The error of a first basis up to which a second Cholesky factor mends it, and the least length of
#: its columns before, whose squares stay in range.
_NEARLY, _SHORTEST = 0.1, 1e-140
#: Singular values below this fraction of the first have vectors that a Gram matrix leaves less than
#: ten digits of.
_GRAM_RANGE = 1e-3


def orthonormal(block: Array) -> Array:
    """Return an orthonormal basis whose span holds that of a tall block, of as many columns."""
    # Cholesky-QR, repeated until it is accurate, is several times faster than Householder QR on a
    # 1682 x 100 block, which remains for blocks that are close to deficient.
    device = device_of(block)
    basis = device.unit_columns(block)
    gram = basis.T @ basis
    for _ in range(3):
        inverse = device.inverse_cholesky(gram)
        if inverse is None:
            break
        basis = basis @ inverse
        gram = basis.T @ basis
        error = device.largest(gram - device.unit(len(gram)))
        if error <= _ORTHOGONALITY:
            return basis
        if not error <= 0.1:
            break
    return device.by_rows(device.xp.linalg.qr(block)[0])


def thin_svd_of_product(U: Any, s: Array, V: Any) -> tuple[Any, Array, Any]:
    """Return the thin decomposition of U diag(s) V^T; cancelling factors cost no digits."""
    device = device_of(U)
    left, left_core = device.xp.linalg.qr(U)
    right, right_core = device.xp.linalg.qr(V)
    inner_u, values, inner_vt = svd((device.host(left_core) * s) @ device.host(right_core).T)
    return left @ device.put(inner_u), values, right @ device.put(inner_vt.T)


class RitzSpace(NamedTuple):
    r"""A left space with orthonormal basis Q, its image :math:`A^\top Q`, and their triplets.

    With the decomposition :math:`A^\top Q = V\,\mathrm{diag}(s)\,W^\top` and U = Q W it holds that
    :math:`U^\top A = \mathrm{diag}(s) V^\top`: s are lower bounds of the leading singular values,
    exact where Q holds the leading left vectors.
    """

    basis: Array  # Q, in columns
    image: Array  # A^T Q
    rotation: Array  # W, on the host
    s: Array  # falling

    @property
    def right(self) -> Array:
        """Right vectors to go on from: V diag(s)."""
        return self.image @ device_of(self.image).put(self.rotation)

    def leading(self, count: int) -> tuple[Array, Array]:
        """The first left and right vectors, in columns."""
        device = device_of(self.image)
        if count and self.s[count - 1] <= _GRAM_RANGE * self.s[0]:
            size = len(self.s)
            V, _, W = thin_svd_of_product(self.image, np.ones(size), device.unit(size))
            return self.basis @ W[:, :count], device.by_rows(V[:, :count])
        rotation = self.rotation[:, :count]
        left, right = device.put(np.stack((rotation, rotation / self.s[:count])))
        return self.basis @ left, self.image @ right


def ritz_space(operator: Any, right: Array, powers: int = 0) -> RitzSpace:
    """Return the image of a block of right vectors after `powers` rounds of power iteration."""
    count_products(2 * (1 + powers) * right.shape[1])
    image = operator @ right if powers == 0 else _powered(operator, right, powers)
    device = device_of(image)
    if image.shape[1] <= device.gram_columns and (found := _by_grams(operator, image, device)):
        return found
    basis = orthonormal(image)
    back = transpose_times(operator, basis)
    squares, rotation = device.eigh(back.T @ back)
    return RitzSpace(basis, back, device.host(rotation), np.sqrt(np.maximum(squares, 0.0)))


def _by_grams(operator: Any, image: Array, device: Any) -> RitzSpace | None:
    """Return the space by Cholesky-QR, twice, of which a device forms products alone; None: it fails.

    The second factor, that of a basis nearly orthonormal, goes into the rotation.
    """
    gram = device.host(image.T @ image)
    lengths = np.sqrt(gram.diagonal())
    if not (np.isfinite(lengths).all() and lengths.min(initial=1.0) > _SHORTEST):
        return None
    inverse = HOST.inverse_cholesky(gram / lengths / lengths[:, None])
    if inverse is None:
        return None
    basis = image @ device.put(inverse / lengths[:, None])
    back = transpose_times(operator, basis)
    both = device.xp.empty((2, *gram.shape), dtype=image.dtype, device=image.device)
    for block, out in zip((basis, back), both, strict=True):
        device.xp.matmul(block.T, block, out=out)
    grams = device.host(both)
    error = HOST.largest(grams[0] - HOST.unit(len(gram)))
    if not error <= _NEARLY:
        return None
    second = HOST.inverse_cholesky(grams[0])
    if error > _ORTHOGONALITY:  # spaces promise an orthonormal basis
        basis, back = basis @ device.put(second), back @ device.put(second)
        grams[1], second = second.T @ grams[1] @ second, HOST.unit(len(gram))
    squares, vectors = eigh(second.T @ grams[1] @ second)
    s = np.sqrt(np.maximum(squares[::-1], 0.0))
    return RitzSpace(basis, back, second @ vectors[:, ::-1], s)


def _powered(operator: Any, right: Array, powers: int) -> Array:
    """Rotate a space by power iteration, for which single precision suffices, at half the time."""
    device = device_of(right)
    single, unit = device.single, device.unit_columns
    dense = is_array(operator)
    rough = single(operator / (device.largest(operator) or 1.0)) if dense else operator.single()
    with device.reduced_precision():
        # Columns at unit length: powers of large matrices stay in range.
        image = rough @ single(unit(right))
        for _ in range(powers):
            image = rough @ unit(transpose_times(rough, unit(image)))
    return device.xp.asarray(unit(image), dtype=device.xp.float64)


def transpose_times(operator: Any, block: Array) -> Array:
    """Return A^T Q for a factored or dense matrix."""
    return operator.T @ block if is_array(operator) else operator.transpose_times(block)


def threshold_falling(values: Array, total: float) -> Array:
    """Project falling values >= 0, such as singular values, onto the entries >= 0 of at most that sum."""
    if values.sum() <= total:
        return values
    shifted = values - values[0]
    excess = shifted.cumsum() - total
    kept = np.count_nonzero(shifted * np.arange(1, values.size + 1) > excess)
    return np.maximum(shifted - excess[kept - 1] / kept, 0.0)
