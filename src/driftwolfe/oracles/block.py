"""`block`: thresholded leading singular triplets of the target, on trace-norm balls."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.thresholds import threshold_falling
from driftwolfe.oracles.frank_wolfe import InfeasibleProjection, LMORequests, Pair, Run, Stopping
from driftwolfe.points import FactoredMatrix, distance, inner, norm
from driftwolfe.points.devices import device_of, is_array, namespace
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.orthogonal import ritz_space

#: Random columns added to the warm start: at least this many, and this fraction of it.
_RANDOM_COLUMNS, _RANDOM_FRACTION = 8, 0.2
#: Columns from which one and two rounds of power iteration pay; narrower blocks need fewer.
_POWER_COLUMNS = (48, 96)
#: Fraction of the shorter side above which a block costs more than all singular values (measured on
#: 943 x 1,682), and the entries up to which those are computed: 32 MB for the dense matrix.
_FULL_FRACTION, _FULL_ENTRIES = 0.4, 4_000_000
#: Bytes that a block of vectors may take; the work ends where it would need more.
_LARGEST_BLOCK = 1 << 30
#: Fraction of the allowed gap that the error of the certificate may take, and the largest relative
#: error that is ever asked for.
_CERTIFICATE_FRACTION, _LARGEST_ERROR = 0.5, 0.1
#: Up to this accuracy a singular value that the certificate missed cannot break the contract: it
#: lies within 6.5 residuals of 1/130 or more, so that the gap stays below half the squared distance.
_SAFE_ACCURACY = 0.1


def block(
    domain: Domain, x: Point, y: Point, stop: Stopping, rng: np.random.Generator
) -> LMORequests[InfeasibleProjection]:
    r"""Project nearly exactly onto a trace-norm ball by warm-started block power iteration.

    From the right singular space of x and a few random columns, products with y and its transpose
    give Ritz triplets :math:`(u_i, \sigma_i, v_i)` with :math:`U^\top y = \mathrm{diag}(\sigma)
    V^\top` exactly. Thresholding them, :math:`x' = U\,\mathrm{diag}((\sigma - \theta)_+)\,V^\top`,
    is the projection once they hold all triplets above theta; until then the block grows. As
    :math:`\langle y - x', x'\rangle = \theta\cdot radius`, the gap is
    :math:`radius\,(\sigma_1(y - x') - \theta)`: one LMO call certifies it. If it is too large, the
    vertex joins the block, which another iteration sharpens.

    Wide blocks leave the work to the set's own projection, or end it, as if the calls were spent. With a
    factored x and a dense y the answer is factored.
    """
    if not domain.rank_one_atoms:
        raise ValueError(
            f'method "block" is for TraceNormBall, got {type(domain.unwrapped).__name__}; '
            'use method="corrective" or "halfspace"'
        )
    radius, length = domain.radius, norm(y)
    if not length < 1e153:  # squares of larger ones overflow
        raise ValueError("a target is beyond the range of numbers; use a smaller step_scale")
    if abs(length - norm(x)) <= math.sqrt(stop.tolerance):  # it is at most their distance
        apart = distance(y, x)
        if apart * apart <= stop.tolerance:
            gap = apart * 2 * radius
            return InfeasibleProjection(x.copy(), y.copy(), 0, gap, apart, "block")
    if isinstance(y, FactoredMatrix) and y.nuclear_norm_bound() <= radius:
        return InfeasibleProjection(y, y, 0, 0.0, 0.0, "block")
    yy = length * length
    full, dense = min(domain.shape), math.prod(domain.shape) <= _FULL_ENTRIES
    most = full if dense else min(full, max(64, _LARGEST_BLOCK // (8 * sum(domain.shape))))
    right = (x if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x)).V
    right = _with_random_columns(right, most, _RANDOM_FRACTION, rng)
    calls, mixed = 0, is_array(y) and isinstance(x, FactoredMatrix)
    while True:
        if dense and right.shape[1] > _FULL_FRACTION * full:
            nearest = domain.project(FactoredMatrix._all_stored(y) if mixed else y)
            return InfeasibleProjection(nearest, nearest, calls, 0.0, 0.0, "block")
        space = ritz_space(y, right, sum(right.shape[1] >= wide for wide in _POWER_COLUMNS))
        s = space.s
        kept = threshold_falling(s, radius)
        xx, xy = float(kept @ kept), float(s @ kept)
        growing = kept[-1] > 0 and s.size < most  # theta lies below all that was found
        if not (growing and xx - 2 * xy + yy > max(stop.tolerance, 1e-6 * yy)):
            rank = int(np.count_nonzero(kept))
            U, V = space.leading(rank)
            if isinstance(y, FactoredMatrix):
                nearest = FactoredMatrix.from_orthonormal(U, kept[:rank], V)
            else:
                nearest = (U * kept[:rank]) @ V.T
            pair = Pair(nearest, y, (xx, xy, yy))
            run = Run(domain, stop, "block", pair, calls)
            factors = FactoredMatrix.from_orthonormal(U, kept[:rank], V) if mixed else None
            if run.near():
                return _with_factors(run.stay(), factors)
        if growing:
            right = _with_random_columns(space.right, most, 1.0, rng)
            continue
        # The error that the certificate may have, relative to an LMO value of this size.
        size = radius * float((s - kept).max())
        enough = min(stop.accuracy, _SAFE_ACCURACY) * pair.squared
        allowed = _CERTIFICATE_FRACTION * (enough if stop.gap is None else stop.gap)
        hint = min(_LARGEST_ERROR, allowed / size) if size > 0 else _LARGEST_ERROR
        # The ball is symmetric: y - x', which shares y's entries, has the opposite vertex of x' - y.
        residual = y - nearest
        opposite, error = yield residual, hint
        vertex = -opposite
        calls = run.calls = calls + 1
        slope = getattr(opposite, "slope", None)  # with x' - y, the same for both signs
        gap = error + xx - xy - (inner(opposite, residual) if slope is None else slope)
        if (result := run.accept(gap)) is not None:
            return _with_factors(result, factors)
        if run.spent() or s.size >= most:
            return _with_factors(run.give_up(gap), factors)
        # A dense vertex has rank one: its largest row is its right singular direction.
        factored = isinstance(vertex, FactoredMatrix)
        fresh = vertex.V if factored else vertex[[np.abs(vertex).max(axis=1).argmax()]].T
        right = namespace(fresh).concat((space.right, fresh), axis=1)[:, :most]


def _with_factors(result: InfeasibleProjection, factors: Any) -> InfeasibleProjection:
    """The result with factors, unless these are None, for its feasible point."""
    if factors is None:
        return result
    collapsed = result.infeasible is result.feasible
    infeasible = factors if collapsed else result.infeasible
    return replace(result, feasible=factors, infeasible=infeasible)


def _with_random_columns(
    right: Array, most: int, fraction: float, rng: np.random.Generator
) -> Array:
    """The block with random columns added, whose images show what it lacks."""
    n, held = right.shape
    wanted = min(most, held + max(_RANDOM_COLUMNS, int(fraction * held)))
    fresh = device_of(right).normal(rng, (n, max(0, wanted - held)))
    return namespace(right).concat((right, fresh), axis=1)[:, :most]
