"""Trace norm: the leading singular triplets of the target, thresholded."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.thresholds import threshold_falling
from driftwolfe.oracles.frank_wolfe import (
    Asking,
    InfeasibleProjection,
    Pair,
    Stopping,
    collapse,
    give_up,
    slice_off,
    stay,
)
from driftwolfe.points import FactoredMatrix, distance, norm
from driftwolfe.points.devices import device_of, namespace
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.orthogonal import RitzSpace, ritz_space

METHOD = "block"
#: Random columns added to the warm start: at least this many, and this share of it.
_RANDOM_COLUMNS, _RANDOM_SHARE = 8, 0.2
#: Columns from which one and two rounds of power iteration pay: narrower blocks need less.
_POWER_COLUMNS = (48, 96)
#: Share of the shorter side above which a block costs more than all singular values (measured on
#: 943 x 1,682), and the entries up to which those are taken: 32 MB for the dense matrix.
_FULL_SHARE, _FULL_ENTRIES = 0.4, 4_000_000
#: Bytes that a block of vectors may take: where more would be needed, the work is cut off there.
_LARGEST_BLOCK = 1 << 30
#: Share of the gap asked for that the certificate's own error may take up, and the roughest
#: relative residual that it is worth asking for.
_CERTIFICATE_SHARE, _ROUGHEST = 0.5, 0.1
#: Up to this accuracy a singular value that the certificate missed cannot break the contract: it
#: lies within 6.5 residuals of 1/130 or more, so that the gap stays below half the squared distance.
_SAFE_ACCURACY = 0.1
#: Squared distances beyond this one's leave the range of numbers when they are added up.
_FARTHEST = 1e153


def block(domain: Domain, x: Point, y: Point, stop: Stopping, rng: np.random.Generator) -> Asking:
    r"""Project nearly exactly onto a trace-norm ball by warm-started block power iteration.

    From the right singular space of x and a few random columns, products with y and its transpose
    give Ritz triplets :math:`(u_i, \sigma_i, v_i)` with :math:`U^\top y = \mathrm{diag}(\sigma)
    V^\top` exactly. Thresholding them, :math:`x' = U\,\mathrm{diag}((\sigma - \theta)_+)\,V^\top`,
    is the projection once they hold all triplets above theta; the block grows while they do not. As
    :math:`\langle y - x', x'\rangle = \theta\cdot radius`, the gap is
    :math:`radius\,(\sigma_1(y - x') - \theta)`: one linear minimisation certifies it. Where that is
    not small enough its answer joins the block, which is sharpened by another iteration. Where the
    block grows beyond 40 % of the shorter side, all singular values cost less, and the set's own
    projection takes over. Where a block would need more than 1 GiB, the work ends with what it
    holds: the points of the contract that a limited number of calls keeps are kept here too.

    Linear minimisations are asked for, so that several projections can ask together.
    """
    if not domain.rank_one_atoms:
        raise ValueError(
            f'method "block" is for TraceNormBall, got {type(domain.unwrapped).__name__}; '
            'use method="corrective" or "halfspace"'
        )
    apart = distance(y, x)
    if not apart < _FARTHEST:
        raise ValueError("a target is beyond the range of numbers; use a smaller step_scale")
    if apart * apart <= stop.tolerance:
        gap = apart * 2 * domain.radius
        return InfeasibleProjection(x.copy(), y.copy(), 0, gap, apart, METHOD)
    radius, calls = domain.radius, 0
    if isinstance(y, FactoredMatrix) and y.nuclear_norm_bound() <= radius:
        return InfeasibleProjection(y, y, 0, 0.0, 0.0, METHOD)
    size = norm(y)
    yy = size * size
    full, dense = min(domain.shape), math.prod(domain.shape) <= _FULL_ENTRIES
    most = full if dense else min(full, max(64, _LARGEST_BLOCK // (8 * sum(domain.shape))))
    right = _with_random_columns(_warm_space(x), most, _RANDOM_SHARE, rng)
    while True:
        if dense and right.shape[1] > _FULL_SHARE * full:
            nearest = domain.project(y)
            return InfeasibleProjection(nearest, nearest, calls, 0.0, 0.0, METHOD)
        space = ritz_space(y, right, sum(right.shape[1] >= wide for wide in _POWER_COLUMNS))
        s = space.s
        kept = threshold_falling(s, radius)
        scalars = float(kept @ kept), float(s @ kept), yy
        growing = kept[-1] > 0 and s.size < most  # theta lies below all that was found
        if growing and scalars[0] - 2 * scalars[1] + yy > max(stop.tolerance, 1e-6 * yy):
            right = _with_random_columns(space.right, most, 1.0, rng)
            continue
        pair = Pair(_assemble(space, kept, y), y, scalars)
        if stop.near(pair):
            return stay(pair, calls, pair.distance * 2 * domain.radius, METHOD)
        if growing:
            right = _with_random_columns(space.right, most, 1.0, rng)
            continue
        theta = float((s - kept).max())
        vertex, error = yield pair.direction(), _hint(stop, pair, radius * theta)
        calls += 1
        gap = pair.gap_at(vertex) + error
        if stop.collapses(pair.squared, gap):
            return collapse(pair, calls, gap, METHOD)
        if stop.slices(pair.squared, gap):
            return slice_off(pair, calls, gap, METHOD)
        if stop.spent(calls) or s.size >= most:
            return give_up(pair, stop, calls, gap, METHOD)
        right = _beside(space.right, _right_vector(vertex))[:, :most]


def _hint(stop: Stopping, pair: Pair, scale: float) -> float:
    """The relative residual that the certificate needs."""
    accuracy = min(stop.accuracy or _SAFE_ACCURACY, _SAFE_ACCURACY)
    allowed = _CERTIFICATE_SHARE * accuracy * pair.squared
    return min(_ROUGHEST, allowed / scale) if scale > 0 else _ROUGHEST


def _warm_space(x: Point) -> Array:
    """The right singular space of x, in columns."""
    return x.V if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x).V


def _with_random_columns(right: Array, most: int, share: float, rng: np.random.Generator) -> Array:
    """The block with random columns added: what it lacks shows up in their images."""
    n, held = right.shape
    wanted = min(most, held + max(_RANDOM_COLUMNS, int(share * held)))
    fresh = device_of(right).normal(rng, (n, max(0, wanted - held)))
    return _beside(right, fresh)[:, :most]


def _beside(one: Array, other: Array) -> Array:
    return namespace(one).concat((one, other), axis=1)


def _assemble(space: RitzSpace, kept: Array, like: Point) -> Point:
    """The thresholded matrix without its zero part, of the same kind as `like`."""
    rank = int(np.count_nonzero(kept))
    U, V = space.leading(rank)
    if isinstance(like, FactoredMatrix):
        return FactoredMatrix.from_orthonormal(U, kept[:rank], V)
    return (U * kept[:rank]) @ V.T


def _right_vector(atom: Point) -> Array:
    """The right singular vector of a rank-one atom, as a column."""
    if isinstance(atom, FactoredMatrix):
        return atom.V
    return atom[[np.abs(atom).max(axis=1).argmax()]].T
