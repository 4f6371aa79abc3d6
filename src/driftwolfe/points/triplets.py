"""Leading singular triplets of an operator, by block Golub-Kahan-Lanczos."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.decompositions import svd
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array
from driftwolfe.points.leading_pair import (
    LeadingPair,
    leading_pair,
    leading_pairs,
    missed,
    needed,
)
from driftwolfe.points.sparse_checks import sound_sparse

#: Share of a random direction mixed into a warm start: a start orthogonal to the leading vector
#: would never find it, and no residual would tell.
_RANDOM_SHARE = 0.05
#: Columns of the Krylov basis at which it is restarted from its best vectors.
_LARGEST_BASIS = 240
#: Numbers of a matrix that seed the random directions, and where their leading digits end: at no
#: fraction, so that round numbers are never as near to one whole number as to the next.
_FEW, _DIGITS = 500, 1000.0 * math.sqrt(2.0)
#: Shorter side up to which a full decomposition is cheaper than any iteration.
_SMALL_SIDE = 48


class Triplets(NamedTuple):
    """Singular triplets of an operator, as far as they were found.

    Attributes
    ----------
    U, V
        Left and right singular vectors, in columns.
    s
        Singular values, falling.
    error
        At least the residual norm of each triplet, in units of `s`: some singular value of the
        operator lies within ``error[i]`` of ``s[i]``. That this is the i-th largest rests on the
        random direction in the start. For k = 1 and a tolerance of 0.05 or more, no singular value
        exceeds ``s[0] + error[0]`` with probability 0.999; for a smaller tolerance, none exceeds
        ``1.05 * s[0]`` with that probability. For k > 1 nothing is certified: with a rough tolerance
        a larger one may be missed.
    products
        Products with the operator or its transpose that were spent, a block counting once.

    Examples
    --------
    >>> found = leading_triplets(np.diag([1.0, 5.0]))
    >>> found.s, abs(found.V[:, 0])
    (array([5.]), array([0., 1.]))
    """

    U: Array
    s: Array
    V: Array
    error: Array
    products: int


def leading_triplets(
    operator: Any,
    k: int = 1,
    *,
    start: Array | None = None,
    tolerance: float = 1e-8,
    max_products: int = 2000,
    rng: np.random.Generator | None = None,
) -> Triplets:
    r"""Return the k leading singular triplets of a matrix that is known by its products.

    Block Golub-Kahan-Lanczos with full reorthogonalisation: from a block Q the spaces
    :math:`\mathrm{span}(Q, A^\top A Q, \dots)` and their images, and the singular triplets of A
    projected to them, until every residual :math:`\lVert A^\top u_i - s_i v_i\rVert \le`
    `tolerance` :math:`\cdot s_1`.

    Parameters
    ----------
    operator
        A `FactoredMatrix`, a dense array or a scipy sparse matrix or linear operator.
    k
        How many triplets.
    start
        Approximate right singular vectors, in columns: a warm start. Random directions are added.
    tolerance
        Relative size of the residuals at which to stop.
    max_products
        Products with A or its transpose, a block counting once; the best found so far is returned
        when they are spent, and `error` says how good it is.
    rng
        Source of the random directions. If None, one that the numbers of the operator seed: calls
        repeat exactly, and a method that takes out what was found meets another start, not one that
        what is left may be orthogonal to.

    Examples
    --------
    >>> A = np.diag([3.0, 2.0, 1.0])
    >>> leading_triplets(A, 2).s.round(9)
    array([3., 2.])
    """
    apply, apply_transpose, (m, n) = _products(operator)
    k = min(checks.count(k, "k"), m, n)
    tolerance = checks.nonnegative(tolerance, "tolerance")
    rng = np.random.default_rng(_seed(operator)) if rng is None else rng
    if k == 1 and isinstance(operator, FactoredMatrix) and min(m, n) > _SMALL_SIDE:
        first = _start_block(start, 1, n, rng, operator.device)[:, 0]
        share = 1.0 if start is None else _RANDOM_SHARE
        return _single(leading_pair(operator, first, tolerance, max_products, share))
    put = device_of(getattr(operator, "U", operator)).put  # bases are on the host
    if m < n:  # start on the shorter side, which a basis can fill
        warm = None if start is None else apply(start)
        found = _restarted(apply_transpose, apply, (n, m), warm, k, tolerance, max_products, rng)
        return found._replace(U=put(found.V), V=put(found.U))
    found = _restarted(apply, apply_transpose, (m, n), start, k, tolerance, max_products, rng)
    return found._replace(U=put(found.U), V=put(found.V))


def leading_of_each(
    matrices: Sequence[FactoredMatrix], tolerances: Sequence[float], max_products: int = 2000
) -> list[Triplets]:
    """Return the leading triplet of each of several matrices of one shape, on one device."""
    m, n = matrices[0].shape
    if min(m, n) <= _SMALL_SIDE:
        each = zip(matrices, tolerances, strict=True)
        return [leading_triplets(matrix, tolerance=tolerance) for matrix, tolerance in each]
    starts = [
        _start_block(None, 1, n, np.random.default_rng(_seed(A)), A.device)[:, 0] for A in matrices
    ]
    return [_single(pair) for pair in leading_pairs(matrices, starts, tolerances, max_products)]


def _single(pair: LeadingPair) -> Triplets:
    u, s, v, error, products = pair
    return Triplets(u[:, None], np.array([s]), v[:, None], np.array([error]), products)


def _restarted(
    apply: Callable[[Array], Array],
    apply_transpose: Callable[[Array], Array],
    shape: tuple[int, int],
    start: Array | None,
    k: int,
    tolerance: float,
    max_products: int,
    rng: np.random.Generator,
) -> Triplets:
    """Krylov runs, each from the best vectors of the last, until convergence or the last product."""
    if shape[1] <= max(_SMALL_SIDE, 8 * k):
        U, s, Vt = svd(apply(np.eye(shape[1])))
        noise = np.full(k, np.finfo(float).eps * s[0])
        return Triplets(U[:, :k], s[:k], Vt[:k].T, noise, shape[1])
    block = _start_block(start, k, shape[1], rng)
    spent = 0
    luck = needed(shape[1], 1.0 if start is None else _RANDOM_SHARE)
    while True:
        left = max_products - spent
        found = _krylov(apply, apply_transpose, block, k, tolerance, left, shape, luck)
        spent += found.products
        luck = 0.0  # what the first run has ruled out stays so, as s only grows
        if found.error.max() <= tolerance * found.s[0] or spent >= max_products:
            return found._replace(products=spent)
        block = found.V


def _krylov(
    apply: Callable[[Array], Array],
    apply_transpose: Callable[[Array], Array],
    block: Array,
    k: int,
    tolerance: float,
    max_products: int,
    shape: tuple[int, int],
    luck: float,
) -> Triplets:
    """One Krylov run, until convergence, the end of the products, or a full basis."""
    width = block.shape[1]
    largest = max(width, min(*shape, max(_LARGEST_BASIS, 3 * width)))
    right, left = _Basis(shape[1], largest + width), _Basis(shape[0], largest + width)
    projected = np.zeros((largest + width, largest + width))  # left^T A right
    right.extend(block)
    products, next_check = 0, 2 * width
    while True:
        old = left.size
        rest, projected[:old, old : old + width] = left.remainder(apply(right.newest))
        projected[old : old + width, old : old + width] = left.extend(rest)
        rest, _ = right.remainder(apply_transpose(left.newest))
        products += 2
        full = left.size + width > largest or products + 2 > max_products
        if left.size >= next_check or full or not rest.any():
            core = projected[: left.size, : left.size]
            inner_u, s, inner_vt = svd(core)
            error = np.linalg.norm(rest @ inner_u[-width:, :k], axis=0)
            above: float | None = 0.0
            if width == 1 and rest.any() and error[0] <= tolerance * s[0]:
                above = missed(s[::-1] ** 2, _off_diagonal(core, rest), tolerance, luck)
            if full or (error.max() <= tolerance * s[0] and above is not None):
                return Triplets(
                    left.held @ inner_u[:, :k],
                    s[:k],
                    right.held @ inner_vt[:k].T,
                    np.maximum(error, (above or 0.0) * s[0]),
                    products,
                )
            next_check = left.size + max(width, left.size // 3)
        right.extend(rest)


def _off_diagonal(core: Array, rest: Array) -> Array:
    """The off-diagonal of the Lanczos matrix of A^T A, from the bidiagonal core and what is left."""
    beyond = np.append(core.diagonal(1), np.linalg.norm(rest))
    return np.abs(core.diagonal() * beyond)


class _Basis:
    """A growing orthonormal basis, in columns of a preallocated array."""

    def __init__(self, length: int, columns: int) -> None:
        self._store = np.empty((columns, length))  # rows, so that what is held is contiguous
        self.size = 0
        self._width = 0

    @property
    def held(self) -> Array:
        return self._store[: self.size].T

    @property
    def newest(self) -> Array:
        return self._store[self.size - self._width : self.size].T

    def remainder(self, block: Array) -> tuple[Array, Array]:
        """The part of a block outside the span, and its coordinates inside."""
        inside = self.held.T @ block
        rest = block - self.held @ inside
        again = self.held.T @ rest
        rest -= self.held @ again
        return rest, inside + again

    def extend(self, rest: Array) -> Array:
        """Add the directions of a block that is orthogonal to the span; return its R factor."""
        size = float(np.linalg.norm(rest))
        if rest.shape[1] == 1 and size > 0:
            fresh, triangle = rest / size, np.array([[size]])
        else:
            fresh, triangle = np.linalg.qr(rest)
            # A deficient block leaves arbitrary columns that lean into the span: straighten them.
            fresh, correction = np.linalg.qr(self.remainder(fresh)[0])
            triangle = correction @ triangle
        self._width = fresh.shape[1]
        self._store[self.size : self.size + self._width] = fresh.T
        self.size += self._width
        return triangle


def _start_block(
    start: Any, k: int, n: int, rng: np.random.Generator, device: Device = HOST
) -> Any:
    if start is None or math.prod(start.shape) == 0:
        return device.normal(rng, (n, k))
    warm = device.put(start).reshape(n, -1)[:, :k]
    lengths = device.lengths(warm)
    warm = warm / device.xp.where(lengths > 0, lengths, 1.0)
    noise = device.normal(rng, (n, k)) / math.sqrt(n)
    noise[:, : warm.shape[1]] *= _RANDOM_SHARE
    noise[:, : warm.shape[1]] += warm
    return noise


def _seed(operator: Any) -> int:
    """A whole number that follows from the leading digits of some of the numbers of a matrix.

    The last digits differ from one machine to another, and another start leads to another answer
    wherever a rough one will do.
    """
    if isinstance(operator, FactoredMatrix):
        parts = [operator.s, to_host(operator.stored_arrays[2][-_FEW:])]
    else:
        parts = [to_host(operator.ravel()[:_FEW])] if is_array(operator) else []
    largest = max((float(np.abs(part).max(initial=0.0)) for part in parts), default=0.0)
    digits = [np.rint(part / largest * _DIGITS) for part in parts] if largest > 0 else []
    return zlib.crc32(b"".join(part[part != 0].tobytes() for part in digits))


def _products(
    operator: Any,
) -> tuple[Callable[[Array], Array], Callable[[Array], Array], tuple[int, int]]:
    """The product with A, the product with its transpose, and the shape."""
    checks.refuse_masked(operator, "operator")
    m, n = operator.shape
    if isinstance(operator, FactoredMatrix):
        host, put = operator.device.host, operator.device.put
        return (
            (lambda block: host(operator @ block)),
            (lambda block: host(operator.transpose_times(put(block)))),
            (m, n),
        )
    if (device := device_of(operator)) is not HOST:
        dense = device.double(operator)
        return (
            (lambda block: device.host(dense @ device.put(block))),
            (lambda block: device.host(dense.T @ device.put(block))),
            (m, n),
        )
    operator = sound_sparse(operator, "operator")
    transposed = operator.T
    return (lambda block: operator @ block), (lambda block: transposed @ block), (m, n)
