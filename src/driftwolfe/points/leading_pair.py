"""The leading singular pair of a factored matrix, by Lanczos on its normal operator."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from driftwolfe.points.decompositions import eigh
from driftwolfe.points.devices import Krylov, namespace
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array
from driftwolfe.points.norms import largest_part

#: Diagonals and off-diagonals.
Looks: TypeAlias = tuple[Array, Array]

#: Steps before the first look at the residual.
_FIRST_CHECK = 5
#: Size of the Krylov basis at which it is restarted from its best vector.
_LARGEST_BASIS = 240
#: Chance that a random start is too nearly orthogonal to the leading vector for `_bounded`.
_FAILURE = 1e-3
#: How far above s, in residuals asked for, a missed singular value might lie; and the least such
#: distance, relative to s, as ruling out anything above 1e-8 would take thousands of steps.
_MISSED, _LEAST_MISSED = 6.5, 0.05
#: What is left of a product, relative to the product, when the basis spans all it can reach.
_INVARIANT = 1e-12
#: Squares of singular values between which those of what is computed with them stay in range.
_SMALLEST, _LARGEST = 1e-140, 1e140


class LeadingPair(NamedTuple):
    """Unit vectors u, v with A v = s u, the norm of A^T u - s v, and the products spent."""

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
    0.999, no singular value lies more than max(6.5 `tolerance`, 0.05) s above s.

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
    smallest = _FAILURE * randomness * math.sqrt(math.pi / (2.0 * len(start)))
    first, luck, size = _unit(start), -math.log(smallest), 1.0
    steps = max(1, min(_LARGEST_BASIS, max_products // 2, matrix.shape[1]))
    space = matrix.device.krylov(matrix, first, steps)
    looks: Looks | None = (found := space.grow(min(_FIRST_CHECK, steps)))
    if not _SMALLEST < found[0][0] < _LARGEST:
        matrix, size = _of_size_one(matrix)
        space, looks = matrix.device.krylov(matrix, first, steps), None
    run = _run(space, steps, tolerance, luck, looks)
    spent = 2 * run.steps
    while run.error > tolerance * run.s and spent + 2 <= max_products:
        steps = max(1, min(_LARGEST_BASIS, (max_products - spent) // 2, matrix.shape[1]))
        run = _run(matrix.device.krylov(matrix, run.v, steps), steps, tolerance, 0.0)
        spent += 2 * run.steps
    u = _unit(run.image) if run.s > 0 else matrix.device.put(np.eye(1, matrix.shape[0])[0])
    return LeadingPair(u, run.s * size, _unit(run.v), run.error * size, spent)


def _of_size_one(matrix: FactoredMatrix) -> tuple[FactoredMatrix, float]:
    """A matrix of which squares leave the range of numbers, in units of its largest part."""
    size = largest_part(matrix) or 1.0
    if size < 1e-300:  # whose inverse is infinite, or nearly
        rescaled, rest = _of_size_one(matrix * 1e200)
        return rescaled, rest * 1e-200
    return matrix / size, size


def _run(
    space: Krylov, steps: int, tolerance: float, luck: float, looks: Looks | None = None
) -> _Run:
    """One Krylov run; `luck` is -log|c|, 0 where the start need not vouch for anything.

    `looks` is what the first steps have shown, if they were taken.
    """
    k = min(_FIRST_CHECK, steps)
    while True:
        inside, rest = looks or space.grow(k)
        looks = None
        spanned = np.flatnonzero(rest <= _INVARIANT * np.maximum.accumulate(inside))
        if spanned.size:  # all that the start can reach; what came after is rounding
            k = int(spanned[0]) + 1
        core = np.diag(inside[:k]) + np.diag(rest[: k - 1], 1) + np.diag(rest[: k - 1], -1)
        values, vectors = eigh(core)
        s = math.sqrt(max(0.0, float(values[-1])))
        error = float(rest[k - 1]) * abs(float(vectors[-1, -1])) / s if s > 0 else 0.0
        if spanned.size or k == steps:
            break
        if error <= tolerance * s and _bounded(values, rest[:k], tolerance, luck):
            break
        k = min(steps, k + max(1, k // 4))
    image, v = space.combine(vectors[:, -1])
    return _Run(image, s, v, error, space.size)


def _bounded(values: Array, off_diagonal: Array, tolerance: float, luck: float) -> bool:
    r"""Whether no eigenvalue lies above :math:`t = s^2 (1 + \max(6.5\,tolerance, 0.05))^2`.

    The Lanczos polynomial is :math:`\prod_j (t - \lambda_j) / \beta_j` with the Ritz values and the
    off-diagonal; beyond the largest Ritz value it grows.
    """
    t = float(values[-1]) * (1.0 + max(_MISSED * tolerance, _LEAST_MISSED)) ** 2
    return bool(np.log((t - values) / off_diagonal).sum() >= luck)


def _unit(vector: Any) -> Any:
    """The direction of a vector; its length stays where it lives."""
    return vector / namespace(vector).linalg.vector_norm(vector)
