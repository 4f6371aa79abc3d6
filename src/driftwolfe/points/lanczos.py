"""Singular triplets of large matrices: the leading one by Lanczos iteration, several by blocks."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.points import checks, devices
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, compiled

#: Largest errors of Q^T Q - I that are taken for orthonormal, and that another Cholesky factor mends.
_ORTHOGONALITY, _NEARLY = 1e-11, 0.1
#: Least length of columns whose squares stay in range.
_SHORTEST = 1e-140
#: Singular values below this fraction of the first have vectors of which a Gram matrix leaves few digits.
_GRAM_RANGE = 1e-3


def orthonormal(block: Array) -> Array:
    """Return an orthonormal basis whose span holds that of a tall block, of as many columns."""
    # Cholesky-QR, repeated until it is accurate, is several times faster than Householder QR, which
    # remains for blocks that are close to deficient.
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
        if not error <= _NEARLY:
            break
    return device.by_rows(device.xp.linalg.qr(block)[0])


class RitzSpace(NamedTuple):
    r"""A left space, its image :math:`A^\top Q = V\,\mathrm{diag}(s)\,W^\top`, and their triplets: QW, s, V."""

    basis: Array  # Q, in orthonormal columns
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
            V, _, W = devices.thin_svd_of_product(self.image, np.ones(size), device.unit(size))
            return self.basis @ W[:, :count], device.by_rows(V[:, :count])
        rotation = self.rotation[:, :count]
        left, right = device.put(np.stack((rotation, rotation / self.s[:count])))
        return self.basis @ left, self.image @ right


def ritz_space(operator: Any, right: Array, powers: int = 0) -> RitzSpace:
    """Return the image of a block of right vectors after `powers` rounds of power iteration."""
    devices.count_products(2 * (1 + powers) * right.shape[1])
    image = operator @ right if powers == 0 else _powered(operator, right, powers)
    device = device_of(image)
    if image.shape[1] <= device.gram_columns and (found := _by_grams(operator, image, device)):
        return found
    basis = orthonormal(image)
    back = transpose_times(operator, basis)
    squares, rotation = device.eigh(back.T @ back)
    return RitzSpace(basis, back, device.host(rotation), np.sqrt(np.maximum(squares, 0.0)))


def _by_grams(operator: Any, image: Array, device: Any) -> RitzSpace | None:
    """Return the space by Cholesky-QR, twice, of which a device forms products alone; None: it fails."""
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
    squares, vectors = devices.eigh(second.T @ grams[1] @ second)
    s = np.sqrt(np.maximum(squares[::-1], 0.0))
    return RitzSpace(basis, back, second @ vectors[:, ::-1], s)


def _powered(operator: Any, right: Array, powers: int) -> Array:
    """Rotate a space by power iteration, in single precision, which suffices."""
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
    """Project falling values >= 0 onto the entries >= 0 of at most that sum."""
    if values.sum() <= total:
        return values
    shifted = values - values[0]
    excess = shifted.cumsum() - total
    kept = np.count_nonzero(shifted * np.arange(1, values.size + 1) > excess)
    return np.maximum(shifted - excess[kept - 1] / kept, 0.0)


kernels = compiled("driftwolfe.points.kernels")

#: Shorter side up to which a full decomposition is cheaper than any iteration.
_SMALL_SIDE = 48
#: Steps before the residual is first estimated: of one start, and of several or without a certificate.
_FIRST_CHECK, _FIRST_OF_SEVERAL = 5, 4
#: Residuals, relative to s and to what s is above `enough`, that are good enough where nothing is certified:
#: s then misses one per cent.
_GOOD, _SHARE = 0.1, 0.5
#: Random starts per matrix on a device, where they share calls, for a rough answer: they rule out a larger
#: value in 4.3 steps where one takes 7.5.
_STARTS = 6
#: Size of the Krylov basis at which it is restarted from its best vector.
_LARGEST_BASIS = 240
#: Products with a matrix or its transpose after which the best triplet so far is returned.
_MOST_PRODUCTS = 2000
#: Numbers of a matrix that seed the random directions, and the scale at which their leading digits are
#: rounded: irrational, so that round numbers lie never halfway.
_FEW, _DIGITS = 500, 1000.0 * math.sqrt(2.0)
#: Chance that a random start is too nearly orthogonal to the leading vector for `_missed`.
_FAILURE = 1e-3
#: The least distance above s, relative to s, within which a larger singular value is ruled out (for 1e-8
#: that would take thousands of steps), and the fractions of it that are tried.
_LEAST_MISSED, _FRACTIONS = 0.05, np.linspace(0.125, 1.0, 8)
#: Remainder of a product, relative to the product, at which the basis spans all it can reach.
_INVARIANT = 1e-12
#: Squared lengths of products between which nothing that is computed from them leaves the range.
_SMALLEST, _LARGEST = 1e-140, 1e140
_EPSILON = float(np.finfo(np.float64).eps)


class Triplet(NamedTuple):
    """A leading singular triplet: unit vectors u and v with A v = s u.

    The norm of the residual A^T u - s v is at most `error`: some singular value lies within `error` of s. For a
    tolerance of 0.05 or more, none exceeds s + error with probability 0.999; for a smaller one, none 1.05 s.
    """

    u: Array
    s: float
    v: Array
    error: float
    products: int  # with the matrix or its transpose


def leading_triplet(operator: Any, *, tolerance: float = 1e-8) -> Triplet:
    """Return the leading singular triplet of a `FactoredMatrix` or a dense array.

    Lanczos with full reorthogonalisation on A^T A, until |A^T u - s v| <= tolerance * s or 2,000 products are
    made; a full decomposition where the shorter side is at most 48. Numbers of the matrix seed the random start:
    calls repeat exactly, and a method that takes out what was found starts from another direction.
    """
    tolerance = checks.nonnegative(tolerance, "tolerance")
    factored = isinstance(operator, FactoredMatrix)
    matrix = operator if factored else checks.real_array(to_host(operator), "operator")
    (m, n), seed = matrix.shape, _seed(matrix)
    small, side = min(m, n) <= _SMALL_SIDE, min(m, n)
    put = (operator.device if factored else device_of(operator)).put
    if factored:
        if not small:
            first = _starts(n, seed, operator.device, tolerance)
            return lanczos([operator], [first], [tolerance])[0]
        matrix = to_host(operator.toarray())
    if m < n:  # start on the shorter side, which a basis can fill
        matrix = matrix.T
    if small:
        U, s, Vt = devices.svd(matrix)
        found = Triplet(U[:, 0], float(s[0]), Vt[0], _EPSILON * float(s[0]), side)
    else:
        found = lanczos([matrix], [_starts(side, seed, HOST, tolerance)], [tolerance])[0]
    u, v = (found.v, found.u) if m < n else (found.u, found.v)
    return found._replace(u=put(u), v=put(v))


def leading_triplet_of_each(
    matrices: Sequence[FactoredMatrix], tolerances: Sequence[float], enough: Sequence[float] = ()
) -> list[Triplet]:
    """Return the leading triplet of each of some factored matrices of one shape, on one device."""
    (m, n), device = matrices[0].shape, matrices[0].device
    if min(m, n) <= _SMALL_SIDE or (device is HOST and len(matrices) > 1):  # calls are not shared
        pairs = zip(matrices, tolerances, strict=True)
        return [leading_triplet(matrix, tolerance=tolerance) for matrix, tolerance in pairs]
    starts = [_starts(n, _seed(matrix), device, min(tolerances)) for matrix in matrices]
    return lanczos(matrices, starts, tolerances, enough=enough)


def _starts(n: int, seed: int, device: Device, tolerance: float) -> Any:
    """Random starts, in rows: as many as are quickest."""
    number = 1 if device is HOST or tolerance < _LEAST_MISSED else _STARTS
    return device.normal(np.random.default_rng(seed), (n, number)).T


def _seed(operator: Any) -> int:
    """Return a whole number that follows from leading digits of a matrix: the last differ between machines."""
    if isinstance(operator, FactoredMatrix):
        parts = [operator.s, to_host(operator.stored_arrays[2][-_FEW:])]
    else:
        parts = [to_host(operator.ravel()[:_FEW])]
    largest = max(float(np.abs(part).max(initial=0.0)) for part in parts)
    digits = [np.rint(part / largest * _DIGITS) for part in parts] if largest > 0 else []
    return zlib.crc32(b"".join(part[part != 0].tobytes() for part in digits))


def lanczos(
    matrices: Sequence[Any],
    starts: Sequence[Any],
    tolerances: Sequence[float],
    enough: Sequence[float] = (),
) -> list[Triplet]:
    r"""Return the leading triplet of a matrix, or of several of one shape that share a device's calls.

    `starts` has one or more rows for each matrix. A residual cannot tell that a larger singular value was missed.
    The Lanczos polynomial can: at the largest eigenvalue of :math:`A^\top A` it is at most 1/|c|, where c is the
    leading component of the start (Hochstenbach 2013), and random c are rarely all tiny. A run therefore goes on
    until, with probability 0.999, no singular value lies more than max(`tolerance`, 0.05) s above s; or until the
    residual is at most half of what s is above that which is `enough`, and 0.1 s.
    """
    number, n = starts[0].shape
    # A uniform unit vector in n dimensions has |c| < delta with probability <= delta sqrt(2 n / pi).
    least = _FAILURE ** (1.0 / number) * math.sqrt(math.pi / (2.0 * n))
    units, luck = [_unit(start) for start in starts], -math.log(least)
    enough = enough or [math.inf] * len(matrices)
    runs = _run(matrices, units, tolerances, _MOST_PRODUCTS // 2, luck, enough)
    triplets = []
    for matrix, run, tolerance in zip(matrices, runs, tolerances, strict=True):
        spent = run.products
        while tolerance * run.s < run.error < math.inf and spent + 2 <= _MOST_PRODUCTS:
            most, none = (_MOST_PRODUCTS - spent) // 2, [math.inf]
            run = _run([matrix], [run.v[None]], [tolerance], most, 0.0, none)[0]
            spent += run.products
        u = _unit(run.u) if run.s > 0 else device_of(run.u).put(np.eye(1, len(run.u))[0])
        triplets.append(Triplet(u, run.s, _unit(run.v), run.error, spent))
    return triplets


def _run(
    matrices: Sequence[Any],
    starts: Sequence[Any],
    tolerances: Sequence[float],
    most: int,
    luck: float,
    enough: Sequence[float],
    rescaled: bool = False,
) -> list[Triplet]:
    """Grow Krylov bases; u, v need not be unit. `luck` is -log|c| for each start, 0 to rule out nothing."""
    number = len(starts[0])
    steps = max(1, min(_LARGEST_BASIS, most // number, matrices[0].shape[1]))
    factored = isinstance(matrices[0], FactoredMatrix)
    if factored and matrices[0].device is not HOST:
        spaces = matrices[0].device.krylov(matrices, starts, steps)
    else:
        spaces = (_FactoredBasis if factored else _Basis)(matrices[0], starts[0][0], steps)
    on_host = isinstance(starts[0], np.ndarray)
    certified = number == 1 and min(enough) == math.inf
    k = min(_FIRST_CHECK if certified else _FIRST_OF_SEVERAL, steps)
    with np.errstate(over="ignore", invalid="ignore"):  # a device takes several steps at once
        first = spaces.grow(1 if on_host else k)[0][..., 0]
    if not (rescaled or ((first > _SMALLEST) & (first < _LARGEST)).all()):
        return _rescaled_run(matrices, starts, tolerances, most, luck, enough=enough)
    found: list[Any] = [None for _ in matrices]
    while True:
        for i, (diagonals, beyond) in enumerate(zip(*spaces.grow(k), strict=True)):
            asked = tolerances[i], luck, enough[i], k == steps
            found[i] = found[i] or _estimate(diagonals, beyond, *asked)
        if all(found):
            break
        k = min(steps, k + max(1, k // 4))
    vectors = spaces.combine([each[:3] for each in found])
    return [
        Triplet(image, s, v, error, 2 * number * taken)
        for (_, _, s, error, taken), (image, v) in zip(found, vectors, strict=True)
    ]


def _rescaled_run(
    matrices: Sequence[Any], starts: Sequence[Any], *limits: Any, enough: Sequence[float]
) -> list[Triplet]:
    """Run on matrices over their largest parts, where their squares are beyond the range of numbers."""
    factored = isinstance(matrices[0], FactoredMatrix)
    pairs = zip(matrices, starts, strict=True)
    largest = [A.largest_part() if factored else float(abs(A @ q[0]).max()) for A, q in pairs]
    sizes = [max(size or 1.0, 1e-300) for size in largest]  # whose inverses do not overflow
    units = [matrix / size for matrix, size in zip(matrices, sizes, strict=True)]
    least = [value / size for value, size in zip(enough, sizes, strict=True)]
    tolerances, most, luck = limits
    found = _run(units, starts, tolerances, most, luck, least, rescaled=True)
    runs = zip(found, sizes, strict=True)
    return [run._replace(s=run.s * size, error=run.error * size) for run, size in runs]


class _Ritz(NamedTuple):
    values: Array  # Ritz values of A^T A, rising
    beyond: Array  # off-diagonals
    vector: Array  # of the largest value
    s: float
    error: float
    spanned: bool  # whether the basis holds all that its start can reach


def _ritz(diagonal: Array, beyond: Array) -> _Ritz:
    k = beyond.size
    spanned = np.flatnonzero(beyond <= _INVARIANT * np.maximum.accumulate(diagonal))
    if spanned.size:  # what came after is rounding
        k = int(spanned[0]) + 1
    core = np.zeros((k, k))
    core.flat[:: k + 1] = diagonal[:k]
    core.flat[1 :: k + 1] = core.flat[k :: k + 1] = beyond[: k - 1]
    values, vectors = devices.eigh(core)
    s = math.sqrt(max(0.0, float(values[-1])))
    error = float(beyond[k - 1]) * abs(float(vectors[-1, -1])) / s if s > 0 else 0.0
    return _Ritz(values, beyond[:k], vectors[:, -1], s, error, spanned.size > 0)


def _estimate(
    diagonals: Array, beyond: Array, tolerance: float, luck: float, enough: float, last: bool
) -> tuple[int, Array, float, float, int] | None:
    """Return which start did best, its coordinates, s, error and steps; None to go on."""
    bases = list(map(_ritz, diagonals, beyond))
    which = max(range(len(bases)), key=lambda j: bases[j].s)
    best, error = bases[which], bases[which].error
    if not best.spanned:
        if error <= min(_SHARE * (best.s - enough), _GOOD * best.s):
            return which, best.vector, best.s, math.inf, beyond.shape[1]
        if not last and error > tolerance * best.s:
            return None
        above = _missed(bases, best.s, tolerance, luck)
        if above is None and not last:
            return None
        error = max(error, (above or 0.0) * best.s)
    return which, best.vector, best.s, error, beyond.shape[1]


def _missed(bases: Sequence[_Ritz], s: float, tolerance: float, luck: float) -> float | None:
    """Return how far above s a singular value may lie, relative to s; None: not yet ruled out."""
    # The Lanczos polynomial is the product of (t - Ritz value) / off-diagonal; where that of every start
    # is at least exp(luck) there is no eigenvalue t.
    above = max(tolerance, _LEAST_MISSED) * _FRACTIONS
    t = (s * s) * (1.0 + above[:, None]) ** 2
    with np.errstate(divide="ignore"):  # beyond a basis that holds all there is nothing
        grown = [np.log((t - each.values) / each.beyond).sum(axis=1) for each in bases]
    enough = np.min(grown, axis=0) >= luck
    if not enough[-1]:
        return None
    return float(above[enough.argmax()]) if tolerance >= _LEAST_MISSED else 0.0


def _unit(vectors: Any) -> Any:
    """Return the directions of vectors; on a device, bases take any start and return directions."""
    if not isinstance(vectors, np.ndarray):
        return vectors
    if _SMALLEST < (square := float(np.vdot(vectors, vectors))) < _LARGEST:
        return vectors / math.sqrt(square)
    return vectors / np.linalg.norm(vectors)


class _Basis:
    """An orthonormal basis of span(q, A^T A q, ...), in rows, with the images A q."""

    def __init__(self, matrix: Any, start: Array, most: int) -> None:
        self._matrix = matrix
        self._rows = np.empty((most + 1, start.size))
        self._rows[0] = start
        self._images = np.empty((most, matrix.shape[0]))
        self._diagonal, self._beyond = np.zeros((1, most)), np.zeros((1, most))
        self._size = 0

    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are `size`; return all diagonals and what lies beyond, by start."""
        for k in range(self._size, size):
            self._diagonal[0, k], self._beyond[0, k] = self._step(k)
        self._size = max(self._size, size)
        return self._diagonal[None, :, :size], self._beyond[None, :, :size]

    def _step(self, k: int) -> tuple[float, float]:
        self._images[k] = self._matrix @ self._rows[k]
        product = self._matrix.T @ self._images[k]
        held, diagonal = self._rows[: k + 1], 0.0
        for _ in range(2):
            inside = held @ product
            product = product - inside @ held
            diagonal += float(inside[-1])
        length = float(np.linalg.norm(product))
        self._rows[k + 1] = product / (length or 1.0)
        return diagonal, length

    def combine(self, chosen: Sequence[tuple[int, Array, float]]) -> list[tuple[Array, Array]]:
        """Return the image A v and the vector v with these coordinates in the basis."""
        [(_, row, _)] = chosen
        return [(row @ self._images[: row.size], row @ self._rows[: row.size])]


class _FactoredBasis(_Basis):
    """A basis whose product with A^T A is one compiled pass: half of what A and A^T would read."""

    def __init__(self, matrix: FactoredMatrix, start: Array, most: int) -> None:
        super().__init__(matrix, start, most)
        self._compiled_step = kernels("lanczos_step").lanczos_step
        self._low_rank = (matrix.U, matrix.s, matrix.V)
        self._stored = matrix.stored_arrays
        # V^T q, in rows: updated by subtraction, and computed anew before its error is too large.
        self._inner, self._work = np.empty((most + 1, matrix.rank)), np.empty((2, matrix.rank))
        self._inner[0] = start @ matrix.V
        self._error = self._error_before = _EPSILON  # of the last two rows

    def _step(self, k: int) -> tuple[float, float]:
        bases = self._rows, self._inner, self._images, self._work
        diagonal, beyond = self._compiled_step(self._low_rank, self._stored, *bases, k)
        before = self._beyond[0, k - 1] if k else 0.0
        grown = diagonal * self._error + before * self._error_before
        error = grown / beyond if beyond > 0 else 1.0
        self._error, self._error_before = error, self._error
        if error > math.sqrt(_EPSILON):
            self._inner[k + 1] = self._rows[k + 1] @ self._matrix.V
            self._error = _EPSILON
        return diagonal, beyond
