"""Leading singular pairs and triplets of an operator, by Lanczos iteration."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.checks import sound_sparse
from driftwolfe.points.decompositions import eigh, svd
from driftwolfe.points.devices import HOST, Device, device_of, is_array, namespace, to_host
from driftwolfe.points.factored import FactoredMatrix, largest_part
from driftwolfe.points.kinds import Array

#: Steps before the first look at the residual.
_FIRST_CHECK = 5
#: Size of the Krylov basis at which it is restarted from its best vector.
_LARGEST_BASIS = 240
#: Chance that a random start is too nearly orthogonal to the leading vector for `missed`.
FAILURE = 1e-3
#: The least distance above s, relative to s, within which a larger singular value is ruled out:
#: ruling out anything above 1e-8 would take thousands of steps.
LEAST_MISSED = 0.05
#: Shares of that distance that are tried, smallest first.
_SHARES = np.linspace(0.125, 1.0, 8)
#: What is left of a product, relative to the product, when the basis spans all it can reach.
_INVARIANT = 1e-12
#: Squared lengths of products between which nothing that is computed from them leaves the range.
_SMALLEST, _LARGEST = 1e-140, 1e140


class LeadingPair(NamedTuple):
    """Unit vectors u, v with A v = s u, the error of s (see `leading_pair`), and the products spent."""

    u: Array
    s: float
    v: Array
    error: float
    products: int


class _Run(NamedTuple):
    image: Array  # A v
    s: float
    v: Array
    error: float
    steps: int

    def times(self, size: float) -> _Run:
        """The run of a matrix that is so many times as large; of the image only the direction counts."""
        return self._replace(s=self.s * size, error=self.error * size)


def leading_pair(
    matrix: FactoredMatrix,
    start: Array,
    tolerance: float,
    max_products: int,
    randomness: float = 1.0,
) -> LeadingPair:
    r"""Return the leading pair, with an error of at most `tolerance` * s unless products run out.

    Lanczos with full reorthogonalisation on :math:`A^\top A`. Its product is one compiled pass over
    the factors and the stored entries, half of what A and its transpose in turn would read; the
    squared condition costs nothing that a leading pair needs.

    A residual cannot tell that a larger singular value was missed. The Lanczos polynomial can: at
    the largest eigenvalue it is at most 1/|c|, where c is the leading component of the start
    (Hochstenbach 2013), and a random c is rarely tiny. The run also goes on until, with probability
    0.999, no singular value lies more than max(`tolerance`, 0.05) s above s. For a tolerance of 0.05
    or more the error is the larger of that distance and of the residual, so that with probability
    0.999 no singular value exceeds s + error. For a smaller one it is the residual: some singular
    value lies within it, and with probability 0.999 none exceeds 1.05 s.

    Parameters
    ----------
    matrix
        The matrix.
    start
        Where to start, with a random part.
    tolerance
        Relative residual at which to stop.
    max_products
        Products with A or its transpose after which to stop in any case.
    randomness
        Length of the random part as a share of the start's.
    """
    return leading_pairs([matrix], [start], [tolerance], max_products, randomness)[0]


def leading_pairs(
    matrices: Sequence[FactoredMatrix],
    starts: Sequence[Any],
    tolerances: Sequence[float],
    max_products: int,
    randomness: float = 1.0,
) -> list[LeadingPair]:
    """As `leading_pair` for several matrices of one shape on one device, which share its calls."""
    units = [_unit(start) for start in starts]
    luck = needed(len(starts[0]), randomness)
    runs = _run(matrices, units, tolerances, max_products // 2, luck)
    triples = zip(matrices, runs, tolerances, strict=True)
    return [_finished(matrix, run, tol, max_products) for matrix, run, tol in triples]


def _finished(
    matrix: FactoredMatrix, run: _Run, tolerance: float, max_products: int
) -> LeadingPair:
    """The pair of a run, after as many further ones as it takes."""
    spent = 2 * run.steps
    while run.error > tolerance * run.s and spent + 2 <= max_products:
        run = _run([matrix], [run.v], [tolerance], (max_products - spent) // 2, 0.0)[0]
        spent += 2 * run.steps
    u = _unit(run.image) if run.s > 0 else matrix.device.put(np.eye(1, matrix.shape[0])[0])
    return LeadingPair(u, run.s, _unit(run.v), run.error, spent)


class _Estimate(NamedTuple):
    turn: Array  # the leading vector in the basis
    s: float
    error: float
    steps: int


def _run(
    matrices: Sequence[FactoredMatrix],
    starts: Sequence[Any],
    tolerances: Sequence[float],
    most: int,
    luck: float,
    rescaled: bool = False,
) -> list[_Run]:
    """One Krylov run; `luck` is -log|c|, 0 where the start need not vouch for anything."""
    steps = max(1, min(_LARGEST_BASIS, most, matrices[0].shape[1]))
    space = matrices[0].device.krylov(matrices, starts, steps)
    k = min(_FIRST_CHECK, steps)
    first = space.grow(1)[0]
    if not (rescaled or ((first > _SMALLEST) & (first < _LARGEST)).all()):
        sizes = [max(largest_part(matrix), 1e-300) for matrix in matrices]
        units = [matrix / size for matrix, size in zip(matrices, sizes, strict=True)]
        runs = _run(units, starts, tolerances, most, luck, rescaled=True)
        return [run.times(size) for run, size in zip(runs, sizes, strict=True)]
    found: list[_Estimate | None] = [None for _ in matrices]
    while True:
        numbers = zip(*space.grow(k), strict=True)
        for i, (inside, rest) in enumerate(numbers):
            found[i] = found[i] or _estimate(inside, rest, tolerances[i], luck, k == steps)
        if all(found):
            break
        k = min(steps, k + max(1, k // 4))
    looks = [look for look in found if look is not None]
    vectors = space.combine([look.turn for look in looks])
    return [
        _Run(image, look.s, v, look.error, look.steps)
        for look, (image, v) in zip(looks, vectors, strict=True)
    ]


def _estimate(
    inside: Array, rest: Array, tolerance: float, luck: float, last: bool
) -> _Estimate | None:
    """What a tridiagonal matrix tells; None where the run is to go on."""
    k = steps = rest.size
    spanned = np.flatnonzero(rest <= _INVARIANT * np.maximum.accumulate(inside))
    if spanned.size:  # all that the start can reach; what came after is rounding
        k = int(spanned[0]) + 1
    core = np.zeros((k, k))
    core.flat[:: k + 1] = inside[:k]
    core.flat[1 :: k + 1] = core.flat[k :: k + 1] = rest[: k - 1]
    values, vectors = eigh(core)
    s = math.sqrt(max(0.0, float(values[-1])))
    error = float(rest[k - 1]) * abs(float(vectors[-1, -1])) / s if s > 0 else 0.0
    if spanned.size:
        return _Estimate(vectors[:, -1], s, error, steps)
    if not last and error > tolerance * s:
        return None
    above = missed(values, rest[:k], tolerance, luck)
    if above is None:
        return _Estimate(vectors[:, -1], s, error, steps) if last else None
    return _Estimate(vectors[:, -1], s, max(error, above * s), steps)


def needed(length: int, randomness: float = 1.0) -> float:
    r"""Return -log of the leading component that a random start falls short of with chance `FAILURE`.

    A uniform unit vector in n dimensions has :math:`|c| < \delta` with probability at most
    :math:`\delta\sqrt{2n/\pi}`.
    """
    return -math.log(FAILURE * randomness * math.sqrt(math.pi / (2.0 * length)))


def missed(values: Array, off_diagonal: Array, tolerance: float, luck: float) -> float | None:
    r"""Return how far above s a singular value may lie, relative to s; None: not yet ruled out.

    The Lanczos polynomial is :math:`\prod_j (t - \lambda_j) / \beta_j` with the Ritz values and the
    off-diagonal. Beyond the largest Ritz value :math:`s^2` it grows, and where it is at least
    :math:`e^{luck}` there is no eigenvalue. For a tolerance below `LEAST_MISSED` the answer is 0 once
    that holds at :math:`t = s^2 (1 + LEAST\_MISSED)^2`: there the residual must do.
    """
    above = max(tolerance, LEAST_MISSED) * (_SHARES if tolerance >= LEAST_MISSED else _SHARES[-1:])
    t = float(values[-1]) * (1.0 + above) ** 2
    enough = np.log((t[:, None] - values) / off_diagonal).sum(axis=1) >= luck
    if not enough[-1]:
        return None
    return float(above[enough.argmax()]) if tolerance >= LEAST_MISSED else 0.0


def _unit(vector: Any) -> Any:
    """The direction of a vector; its length stays where it lives."""
    if isinstance(vector, np.ndarray) and _SMALLEST < (square := float(vector @ vector)) < _LARGEST:
        return vector / math.sqrt(square)
    return vector / namespace(vector).linalg.vector_norm(vector)


#: Share of a random direction mixed into a warm start: a start orthogonal to the leading vector
#: would never find it, and no residual would tell.
_RANDOM_SHARE = 0.05
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
