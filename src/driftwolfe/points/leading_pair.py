"""The leading singular pair of a factored matrix, by Lanczos on its normal operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.points.decompositions import eigh
from driftwolfe.points.devices import namespace
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array
from driftwolfe.points.norms import largest_part

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


class _Look(NamedTuple):
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
    found: list[_Look | None] = [None for _ in matrices]
    while True:
        numbers = zip(*space.grow(k), strict=True)
        for i, (inside, rest) in enumerate(numbers):
            found[i] = found[i] or _look(inside, rest, tolerances[i], luck, k == steps)
        if all(found):
            break
        k = min(steps, k + max(1, k // 4))
    looks = [look for look in found if look is not None]
    vectors = space.combine([look.turn for look in looks])
    return [
        _Run(image, look.s, v, look.error, look.steps)
        for look, (image, v) in zip(looks, vectors, strict=True)
    ]


def _look(inside: Array, rest: Array, tolerance: float, luck: float, last: bool) -> _Look | None:
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
        return _Look(vectors[:, -1], s, error, steps)
    if not last and error > tolerance * s:
        return None
    above = missed(values, rest[:k], tolerance, luck)
    if above is None:
        return _Look(vectors[:, -1], s, error, steps) if last else None
    return _Look(vectors[:, -1], s, max(error, above * s), steps)


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
