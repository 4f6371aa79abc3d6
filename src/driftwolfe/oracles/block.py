"""Trace norm: the leading singular triplets of the target, thresholded."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.domains.thresholds import threshold_to_sum
from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.oracles.stopping import COLLAPSE, Stopping, collapse, give_up, slice_off, stay
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.orthogonal import ritz_triplets

METHOD = "block"
#: Random columns added to a block before each iteration: at least this many, and this share of it;
#: as many again as it has while the threshold lies below all that it has found.
_RANDOM_COLUMNS, _RANDOM_SHARE, _GROWING_SHARE = 8, 0.3, 1.0
#: Share of the shorter side above which a block costs more than all singular values (measured on
#: 943 x 1,682: two iterations of 300 columns against one eigendecomposition).
_FULL_SHARE = 0.3
#: Entries up to which that is done: 32 MB for the dense matrix that it takes.
_FULL_ENTRIES = 4_000_000
#: Share of the gap asked for that the certificate's own error may take up, and the roughest
#: relative residual that it is worth asking for.
_CERTIFICATE_SHARE, _ROUGHEST = 0.5, 0.1


def block(
    domain: Domain, x: Point, y: Point, stop: Stopping, rng: np.random.Generator
) -> InfeasibleProjection:
    r"""Project nearly exactly onto a trace-norm ball by warm-started block power iteration.

    From the right singular space of x and a few random columns, one product with y and one with
    its transpose give Ritz triplets :math:`(u_i, \sigma_i, v_i)` with
    :math:`U^\top y = \mathrm{diag}(\sigma) V^\top` exactly. Thresholding them,
    :math:`x' = U\,\mathrm{diag}((\sigma - \theta)_+)\,V^\top`, is the projection once they hold all
    triplets above theta; the block grows while they do not. As
    :math:`\langle y - x', x'\rangle = \theta\cdot radius`, the gap is
    :math:`radius\,(\sigma_1(y - x') - \theta)`: one linear minimisation certifies it, and its answer
    joins the block where it was not small enough. Where the block would grow beyond a third of the
    shorter side, all singular values cost less, and the set's own projection takes over.
    """
    if not isinstance(domain.unwrapped, TraceNormBall):
        raise ValueError(
            f'method "block" is for TraceNormBall, got {type(domain.unwrapped).__name__}; '
            'use method="corrective" or "halfspace"'
        )
    ball, pair = domain.unwrapped, Pair(x, y)
    yy, calls, gap = norm(y) ** 2, 0, math.inf
    right, full, share = _warm_space(x), min(domain.shape), _RANDOM_SHARE
    while not stop.near(pair):
        right = _with_random_columns(right, full, share, rng)
        if right.shape[1] > _FULL_SHARE * full and math.prod(domain.shape) <= _FULL_ENTRIES:
            nearest = domain.project(y)
            return InfeasibleProjection(nearest, nearest, calls, 0.0, 0.0, METHOD)
        U, s, right = ritz_triplets(y, right)
        kept = threshold_to_sum(s, ball.scale)
        nearest = _assemble(U, kept, right, y)
        pair = Pair(nearest, y, (float(kept @ kept), float(s @ kept), yy))
        if stop.near(pair):
            break
        share = _GROWING_SHARE if kept[-1] > 0 else _RANDOM_SHARE
        if kept[-1] > 0 and s.size < full:  # theta lies below all that was found
            continue
        allowed = _CERTIFICATE_SHARE * min(stop.accuracy or COLLAPSE, COLLAPSE) * pair.squared
        theta = float((s - kept).max())
        hint = min(_ROUGHEST, allowed / (ball.scale * theta)) if theta > 0 else _ROUGHEST
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        gap = pair.look(vertex) + error
        if stop.collapses(pair.squared, gap):
            return collapse(pair, calls, gap, METHOD)
        if stop.slices(pair.squared, gap):
            return slice_off(pair, calls, gap, METHOD)
        if stop.spent(calls) or s.size >= full:
            return give_up(pair, stop, calls, gap, METHOD)
        right = np.concatenate((right, _right_vector(vertex)), axis=1)
    return stay(pair, calls, min(gap, pair.distance * 2 * domain.radius), METHOD)


def _warm_space(x: Point) -> Array:
    """The right singular space of x, in columns."""
    return x.V if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x).V


def _with_random_columns(right: Array, full: int, share: float, rng: np.random.Generator) -> Array:
    """The block with random columns added: what it lacks shows up in their images."""
    n, held = right.shape
    wanted = min(full, held + max(_RANDOM_COLUMNS, int(share * held)))
    fresh = rng.standard_normal((n, max(0, wanted - held)))
    return np.concatenate((right, fresh), axis=1)[:, :full]


def _assemble(U: Array, kept: Array, V: Array, like: Point) -> Point:
    """The matrix U diag(kept) V^T without its zero part, of the same kind as `like`."""
    rank = int(np.count_nonzero(kept))
    if isinstance(like, FactoredMatrix):
        return FactoredMatrix(U[:, :rank], kept[:rank], V[:, :rank])
    return (U[:, :rank] * kept[:rank]) @ V[:, :rank].T


def _right_vector(atom: Point) -> Array:
    """The right singular vector of a rank-one atom, as a column."""
    if isinstance(atom, FactoredMatrix):
        return atom.V
    return atom[[np.abs(atom).max(axis=1).argmax()]].T
