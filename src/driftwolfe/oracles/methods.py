"""The methods of `infeasible_projection`, and what it asks of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named

from driftwolfe.domains import Domain
from driftwolfe.domains.balls import threshold_to_sum
from driftwolfe.domains.hull import Hull
from driftwolfe.oracles.frank_wolfe import (
    Atoms,
    HalfspaceRun,
    InfeasibleProjection,
    LMORequests,
    Pair,
    Run,
    Stopping,
    run_together,
)
from driftwolfe.points import FactoredMatrix, checks, distance, inner, norm
from driftwolfe.points.devices import HOST, device_of, is_array, namespace, svd
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.lanczos import ritz_space, threshold_falling
from driftwolfe.points.ops import clip_to_ball

#: Gap, as a fraction of the squared distance, at which `corrective` and `block` stop by default.
DEFAULT_ACCURACY = 0.1


class Request(NamedTuple):
    """The arguments of one `infeasible_projection`."""

    x: Point
    y: Point
    tolerance: float
    method: str
    accuracy: float | None = None
    max_lmo_calls: int | None = None
    rng: np.random.Generator | Sequence[int] | None = None
    atoms: Atoms | None = None
    gap: float | None = None

    def checked(self, domain: Domain) -> Request:
        """Return the request with points and numbers as they are computed with, or raise an error."""
        x, y = domain.check_point(self.x, "x"), domain.check_point(self.y, "y")
        checks.one_of(self.method, "method", ("auto", *METHODS))
        accuracy, limit, gap, atoms = self.accuracy, self.max_lmo_calls, self.gap, self.atoms
        if atoms is None and domain.cached_vertices:
            atoms = Atoms(domain.cached_vertices)
        if (far := norm(domain._from_center(x))) > domain.radius * (1 + 1e-6):
            raise ValueError(
                f"x must be a point of the set, but lies {far:g} from its centre, "
                f"outside the radius {domain.radius:g}; start from domain.origin()"
            )
        return self._replace(
            x=x,
            y=y,
            tolerance=checks.nonnegative(self.tolerance, "tolerance"),
            accuracy=None if accuracy is None else checks.positive(accuracy, "accuracy"),
            max_lmo_calls=None if limit is None else checks.count(limit, "max_lmo_calls", least=0),
            atoms=atoms,
            gap=None if gap is None else checks.positive(gap, "gap"),
        )


def infeasible_projections(
    domain: Domain, requests: Sequence[Request]
) -> list[InfeasibleProjection]:
    """Return the projections of checked requests for one method, whose LMO calls the set answers together."""
    method = requests[0].method if requests else "auto"
    if method == "auto":
        by_calls = "block" if domain.rank_one_atoms else domain.lmo_method
        method = "exact" if domain.cheap_projection else by_calls
    if method == "exact" and len(requests) > 1 and domain.device is not HOST:
        found = domain.project_each([each.y for each in requests])
        return [InfeasibleProjection(x, x, 0, 0.0, 0.0, "exact") for x in found]
    return run_together(domain, [_project(domain, method, each) for each in requests])


def _project(domain: Domain, method: str, asked: Request) -> LMORequests[InfeasibleProjection]:
    """Run a method, and move y' to the ball; yields the LMO calls that can be batched."""
    if asked.gap is not None and method in ("paper", "halfspace"):  # no half-space step serves it
        method = domain.lmo_method
    if asked.gap is None and asked.tolerance == 0 and method != "exact":
        raise ValueError(f'tolerance must be positive for method "{method}", got 0')
    found = METHODS[method](domain, asked)
    result = found if isinstance(found, InfeasibleProjection) else (yield from found)
    if result.infeasible is result.feasible or method in ("paper", "separation"):
        return result
    inside = clip_to_ball(result.infeasible, domain.center, domain.radius)  # nearer to all of K
    if inside is result.infeasible:
        return result
    apart = distance(result.feasible, inside)
    converged = result.converged or apart * apart <= asked.tolerance
    return replace(result, infeasible=inside, distance=apart, converged=converged)


def _stopping(domain: Domain, asked: Request) -> Stopping:
    accuracy = asked.accuracy
    if accuracy is None:
        by_default = asked.method in ("auto", "corrective", "block")
        accuracy = DEFAULT_ACCURACY if by_default else math.inf
    tolerance = asked.tolerance if asked.gap is None else 0.0
    largest_squared = math.inf if domain.rank_one_atoms else 0.1 * domain.radius**2
    return Stopping(tolerance, accuracy, asked.max_lmo_calls, largest_squared, asked.gap)


def _at_once(
    domain: Domain, asked: Request, method: str, y: Point, test: bool = True
) -> InfeasibleProjection | None:
    """The answer where y is surely in the set, which is tested where that is cheap, or no call is allowed."""
    if test and domain.cheap_membership and domain.contains(y, atol=1e-12):
        inside = y.copy()
        return InfeasibleProjection(inside, inside, 0, 0.0, 0.0, method)
    if asked.max_lmo_calls == 0:
        return Run(domain, _stopping(domain, asked), method, Pair(asked.x, y)).stay()
    return None


def in_hull(domain: Domain, y: Point) -> Point:
    """Return the nearest point of the set's affine hull, which is nearer to all of K."""
    along = domain.tangent(offset := domain._from_center(y))
    if along is offset:
        return y
    return along if domain.center is None else domain.center + along


def exact(domain: Domain, asked: Request) -> InfeasibleProjection:
    """Return the set's own projection."""
    nearest = domain.project(asked.y)
    return InfeasibleProjection(nearest, nearest, 0, 0.0, 0.0, "exact")


def halfspace(domain: Domain, asked: Request) -> InfeasibleProjection:
    """Project infeasibly by one Frank-Wolfe run and one half-space step, see `HalfspaceRun`."""
    y, near = in_hull(domain, asked.y), asked.accuracy is not None or asked.gap is not None
    if asked.gap is None:  # the bound on its calls needs ||x - y|| <= D
        y = clip_to_ball(y, domain.center, domain.radius)
    found = _at_once(domain, asked, "halfspace", y, test=near)
    if found is None:
        run = HalfspaceRun(domain, asked.x, y, _stopping(domain, asked), asked.atoms)
        while found is None:
            found = run.advance()
    return found


def paper(domain: Domain, asked: Request) -> InfeasibleProjection:
    r"""Project infeasibly by Algorithms 3 and 4 of Garber & Kretzu (COLT 2022), eps a third of the tolerance.

    The distance is tested before the LMO call, not after as in their listing, which saves one call per run.
    """
    y = clip_to_ball(asked.y, domain.center, domain.radius)
    pair, eps = Pair(asked.x, y), asked.tolerance / 3.0
    run, hint = Run(domain, _stopping(domain, asked), "paper", pair), eps / (4.0 * domain.radius**2)
    if run.near():
        return run.stay()
    apart = distance(pair.x, asked.y)
    fraction = min(1.0, 2.0 * eps / apart / apart)  # at most 2/3, rounding apart
    while True:
        while not (run.near() or run.spent()):  # Algorithm 3
            _, gap = run.ask(hint, eps)
            if pair.gap <= eps or not pair.step():
                break
        else:
            result = run.stay()
            break
        # An oracle error above ||x - y||^2 - 2 eps would let the pull lengthen some ||y - z||.
        if gap > pair.squared - eps or run.spent():
            result = run.give_up(gap)
            break
        pair.pull(fraction)
    # <y - x, z - x> exceeds the inner product with the pulled target by at most ||y - pulled|| D.
    return replace(result, gap=result.gap + distance(y, pair.y) * 2 * domain.radius)


def corrective(domain: Domain, asked: Request) -> InfeasibleProjection:
    """Project infeasibly by fully corrective Frank-Wolfe: x becomes the nearest point in all that was found.

    That is the hull of x and the vertices or, on a trace-norm ball, a `Span`.
    """
    y = in_hull(domain, asked.y)
    if (inside := _at_once(domain, asked, "corrective", y)) is not None:
        return inside
    found: Span | Hull
    run = Run(domain, _stopping(domain, asked), "corrective", Pair(asked.x, y))
    if domain.rank_one_atoms:
        found = Span(asked.x, y, domain.radius)  # which holds what was found before
    elif isinstance(y, np.ndarray):
        found, run.atoms = Hull(asked.x), asked.atoms
    else:
        needs = f"needs dense points or a TraceNormBall, got {type(y).__name__}"
        raise ValueError(f'method "corrective" {needs}; use method="halfspace"')
    hint = 0.1 * math.sqrt(run.stop.tolerance) / domain.radius
    while not run.near():
        if (vertex := run.known()) is None:
            if run.spent():
                break
            vertex, gap = run.ask(run.hint(hint), run.final_gap())
            if (result := run.accept(gap)) is not None:
                return result
        found.add(vertex)
        corrected = Pair(found.correct(y), y)
        if corrected.squared < run.pair.squared:
            run.pair = corrected
        elif run.atoms is not None:  # a cached vertex, or one that is now: ask the LMO again
            run.atoms = None
        elif not run.spent():
            if gap >= 2.0 * domain.radius * run.pair.distance:  # of a rough vertex
                _, gap = run.ask(run.hint(hint), math.inf)
            return run.accept(gap) or run.give_up(gap)
    return run.stay()


class Span:
    r"""Row and column spaces of the matrices found, and the nearest point to y inside them.

    With orthonormal bases L and R that is :math:`L\,P(L^\top y R)\,R^\top`, P the projection of a small matrix.
    """

    def __init__(self, x: Point, y: Point, radius: float) -> None:
        start = x if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x)
        start = start.low_rank.recompress()
        self._y, self._radius = y, radius
        self._left, self._right = start.U, start.V
        self._image = y @ self._right  # y R, extended by one column per vertex

    def add(self, vertex: Point) -> None:
        """Extend the spaces by those of a rank-one matrix."""
        if isinstance(vertex, FactoredMatrix):
            u, v = vertex.U[:, 0], vertex.V[:, 0]
        else:
            sizes = np.abs(vertex).max(axis=0)
            largest = int(sizes.argmax())
            u = vertex[:, largest] / (sizes[largest] or 1.0)  # products stay in range
            v = vertex.T @ u
        known = self._right.shape[1]
        self._left, self._right = _extended(self._left, u), _extended(self._right, v)
        fresh = self._y @ self._right[:, known:]
        self._image = namespace(fresh).concat((self._image, fresh), axis=1)

    def correct(self, y: Point) -> Point:
        """Return the nearest point to y inside the spaces."""
        device = device_of(self._left)
        U, s, Vt = svd(device.host(self._left.T @ self._image))
        kept = threshold_to_sum(s, self._radius)
        rank = int(np.count_nonzero(kept))
        rotation = device.put(Vt[:rank].T)
        self._left, self._right = self._left @ device.put(U[:, :rank]), self._right @ rotation
        self._image = self._image @ rotation
        if isinstance(y, np.ndarray):
            return (self._left * kept[:rank]) @ self._right.T
        return FactoredMatrix(self._left, kept[:rank], self._right)


def _extended(basis: Array, vector: Array) -> Array:
    """The orthonormal basis and the part of a vector outside it, if that is more than rounding."""
    rest = vector - basis @ (basis.T @ vector)
    rest -= basis @ (basis.T @ rest)
    size = norm(rest)
    if size <= 1e-12 * norm(vector):
        return basis
    return namespace(basis).concat((basis, (rest / size)[:, None]), axis=1)


#: Random columns added to the warm start: at least this many, and this fraction of it.
_RANDOM_COLUMNS, _RANDOM_FRACTION = 8, 0.2
#: Columns from which one and two rounds of power iteration pay; narrower blocks need fewer.
_POWER_COLUMNS = (48, 96)
#: Fraction of the shorter side above which a block costs more than all singular values (943 x 1,682), and entries
#: up to which those are computed: 32 MB for the dense matrix.
_FULL_FRACTION, _FULL_ENTRIES = 0.4, 4_000_000
#: Columns with entries, as a fraction of those of the factors, up to which `_right_vectors` decomposes them.
_SHARE_OF_START = 1.5
#: Bytes that a block of vectors may take; the work ends where it would need more.
_LARGEST_BLOCK = 1 << 30
#: Fraction of the allowed gap that the error of the certificate may take, and the largest relative
#: error that is ever asked for.
_CERTIFICATE_FRACTION, _LARGEST_ERROR = 0.5, 0.1
#: Up to this accuracy a singular value that the certificate missed cannot break the contract: it
#: lies within 6.5 residuals of 1/130 or more, so that the gap stays below half the squared distance.
_SAFE_ACCURACY = 0.1


def block(domain: Domain, asked: Request) -> LMORequests[InfeasibleProjection]:
    r"""Project nearly exactly onto a trace-norm ball by warm-started block power iteration.

    Singular triplets in the space of x and of random columns are thresholded, and one LMO call certifies the gap,
    :math:`radius\,(\sigma_1(y - x') - \theta)`; while that is too large, the block grows. With a factored x and a
    dense y the answer is factored. See docs/theory/oracles.md.
    """
    x, y, stop = asked.x, in_hull(domain, asked.y), _stopping(domain, asked)
    if (inside := _at_once(domain, asked, "block", y)) is not None:
        return inside
    rng = np.random.default_rng(0 if asked.rng is None else asked.rng)
    if not domain.rank_one_atoms:
        kind, instead = type(domain.unwrapped).__name__, 'use method="corrective" or "halfspace"'
        raise ValueError(f'method "block" is for TraceNormBall, got {kind}; {instead}')
    radius, length = domain.radius, norm(y)
    if not length < 1e153:  # squares of larger ones overflow
        raise ValueError("a target is beyond the range of numbers; use a smaller step_scale")
    allowed = math.sqrt(stop.tolerance)  # lengths differ by no more than the points
    if abs(length - norm(x)) <= allowed and (apart := distance(y, x)) <= allowed:
        return InfeasibleProjection(x.copy(), y.copy(), 0, apart * 2 * radius, apart, "block")
    if isinstance(y, FactoredMatrix) and y.nuclear_norm_bound() <= radius:
        return InfeasibleProjection(y, y, 0, 0.0, 0.0, "block")
    yy, full, dense = length * length, min(domain.shape), math.prod(domain.shape) <= _FULL_ENTRIES
    most = full if dense else min(full, max(64, _LARGEST_BLOCK // (8 * sum(domain.shape))))
    right, near = _right_vectors(x, y, radius)
    right = _with_random_columns(right, most, _RANDOM_FRACTION, rng)
    calls, mixed = 0, is_array(y) and isinstance(x, FactoredMatrix)
    while True:
        if dense and right.shape[1] > _FULL_FRACTION * full:
            nearest = domain.project(FactoredMatrix._all_stored(y) if mixed else y)
            return InfeasibleProjection(nearest, nearest, calls, 0.0, 0.0, "block")
        powers = 0 if near else sum(right.shape[1] >= wide for wide in _POWER_COLUMNS)
        space, near = ritz_space(y, right, powers), False
        s = space.s
        kept = threshold_falling(s, radius)
        xx, xy = float(kept @ kept), float(s @ kept)
        growing = kept[-1] > 0 and s.size < most  # theta lies below all that was found
        if not (growing and xx - 2 * xy + yy > max(stop.tolerance, 1e-6 * yy)):
            rank = int(np.count_nonzero(kept))
            U, V = space.leading(rank)
            low_rank = FactoredMatrix.from_orthonormal(U, kept[:rank], V)
            nearest = (U * kept[:rank]) @ V.T if is_array(y) else low_rank
            factors = low_rank if mixed else None
            pair = Pair(nearest, y, (xx, xy, yy))
            run = Run(domain, stop, "block", pair)
            run.calls = calls
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
        opposite, error = yield residual, hint, None
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


def _right_vectors(x: Point, y: Point, radius: float) -> tuple[Any, bool]:
    """Right vectors to start from, those of x and of few entries that y has beside it; whether they will do."""
    x = x if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x)
    if not (x.device is HOST and isinstance(y, FactoredMatrix) and np.array_equal(x.s, y.s)):
        return x.V, False
    indptr, indices, data = y.stored_arrays
    cols, places = np.unique(indices, return_inverse=True)
    if not 0 < cols.size <= _SHARE_OF_START * x.rank:
        return x.V, False
    among = scipy.sparse.csr_array((data, places, indptr), shape=(x.shape[0], cols.size)).toarray()
    squares, vectors = HOST.eigh(among.T @ among)
    sizes = np.sqrt(np.maximum(squares, 0.0))
    both = np.sort(np.concatenate((x.s, sizes)))[::-1]
    least = both[0] - threshold_falling(both, radius)[0]
    fresh = np.zeros((x.shape[1], np.count_nonzero(sizes > least)))
    fresh[cols] = vectors[:, : fresh.shape[1]]
    return np.concatenate((x.V[:, x.s > least], fresh), axis=1), True


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


def separation(domain: Domain, asked: Request) -> InfeasibleProjection:
    r"""Project infeasibly by moving y onto half-spaces that hold the set (proof: `docs/theory/bandit.md`)."""
    if asked.gap is not None:
        raise ValueError('method "separation" has no gap to stop at; use another method or learner')
    if not domain.can("separate"):
        kind = type(domain.unwrapped).__name__
        raise ValueError(f'{kind} separates no points; use another method than "separation"')
    y = target = clip_to_ball(in_hull(domain, asked.y), domain.center, domain.radius)
    near = asked.tolerance**0.5
    if near < domain.cut_accuracy:
        raise ValueError(
            f"a tolerance of {asked.tolerance:.2g} is below what membership tests reach on this set, "
            f"{domain.cut_accuracy**2:.2g}: use a larger tolerance_scale, a shorter horizon, or a "
            "SeparationDomain"
        )
    while True:
        cut = domain._separate(y, near)
        x = y.copy()
        if cut.fraction < 1.0:
            x = cut.fraction * y
            if domain.center is not None:
                x = x + (1.0 - cut.fraction) * domain.center
        if (apart := distance(x, y)) <= near:
            gap = distance(target, x) * 2.0 * domain.radius
            return InfeasibleProjection(x, y.copy(), 0, gap, apart, "separation")
        excess = inner(cut.normal, y) - cut.level
        y = y - (excess / inner(cut.normal, cut.normal)) * cut.normal


#: The methods that `infeasible_projection` knows, beside ``"auto"``: of a checked request, the answer, or a
#: run that yields its LMO calls.
METHODS: dict[str, Callable[[Domain, Request], Any]] = {
    run.__name__: run for run in (paper, halfspace, corrective, block, exact, separation)
}
