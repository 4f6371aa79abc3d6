"""`infeasible_projection`: the oracle behind every regret theorem, and its methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.oracles.block import block
from driftwolfe.oracles.corrective import corrective
from driftwolfe.oracles.frank_wolfe import (
    Asking,
    Atoms,
    InfeasibleProjection,
    Pair,
    Stopping,
    answered,
    cut_short,
    give_up,
    halfspace,
    stay,
)
from driftwolfe.points import checks, clip_to_ball, distance, norm
from driftwolfe.points.kinds import Point

EXACT = "exact"


def exact(domain: Domain, y: Point) -> InfeasibleProjection:
    """Project exactly: x' = y' is the projection of y, no linear minimisation at all."""
    nearest = domain.project(y)
    return InfeasibleProjection(nearest, nearest, 0, 0.0, 0.0, EXACT)


PAPER = "paper"


def paper(domain: Domain, x: Point, y: Point, stop: Stopping, given: Point) -> InfeasibleProjection:
    r"""Project infeasibly by Algorithms 3 and 4 of Garber & Kretzu (2022).

    Frank-Wolfe runs to a gap of eps alternate with small pulls of y towards x,
    :math:`y \leftarrow y - \gamma(y - x)`, :math:`\gamma = 2\epsilon/\lVert x_0 - y_0\rVert^2`, until
    :math:`\lVert x - y\rVert^2 \le 3\epsilon`, the tolerance. At most n runs call the oracle,
    :math:`n = \lceil \ln(\rho/3) / (-2\ln(1 - 2/\rho))\rceil`, :math:`\rho = \lVert x_0 - y_0\rVert^2/\epsilon`,
    each at most :math:`4D^2/\epsilon` times.

    The distance is tested before the oracle is called, not after, as the paper's listing has it,
    which saves one call a run. `given` is the target as it was before it was moved to the ball.

    References
    ----------
    D. Garber and B. Kretzu, New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT 2022.
    """
    eps = stop.tolerance / 3.0
    pair = Pair(x, y)
    if stop.near(pair):
        return stay(pair, 0, pair.distance * 2 * domain.radius, PAPER)
    apart = distance(x, given)
    share = min(1.0, 2.0 * eps / apart / apart)  # at most 2/3, rounding apart
    calls = 0
    while True:
        gap, spent = _approximate(domain, pair, eps, stop, calls)
        calls += spent
        if stop.near(pair):
            return _seen_from(y, stay(pair, calls, gap, PAPER), pair, domain)
        # An oracle error above ||x - y||^2 - 2 eps would let the pull lengthen some ||y - z||.
        if gap > pair.squared - eps or stop.spent(calls):
            return _seen_from(y, give_up(pair, stop, calls, gap, PAPER), pair, domain)
        pair.pull(share)


def _seen_from(
    y: Point, result: InfeasibleProjection, pair: Pair, domain: Domain
) -> InfeasibleProjection:
    """The same answer with a gap that holds for y, not only for what the pulls have made of it.

    <y - x, z - x> exceeds the inner product with the pulled target by at most ||y - pulled|| D.
    """
    if pair.y is y:
        return result
    return replace(result, gap=result.gap + distance(y, pair.y) * 2 * domain.radius)


def _approximate(
    domain: Domain, pair: Pair, eps: float, stop: Stopping, before: int
) -> tuple[float, int]:
    """Algorithm 3: move x until it is near y or its gap is at most eps; the gap and the calls."""
    hint = eps / (4.0 * domain.radius**2)
    gap, calls = pair.distance * 2 * domain.radius, 0
    while not stop.near(pair) and not stop.spent(before + calls):
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        measured = pair.gap_at(vertex)
        gap = measured + error
        if measured <= eps or not pair.step():
            break
        gap = pair.distance * 2 * domain.radius  # all that is known of where x is now
    return gap, calls


#: The methods that `infeasible_projection` knows, beside ``"auto"``.
METHODS = ("paper", "halfspace", "corrective", "block", "exact")

#: Methods that move y to the ball before they start, as their bounds on the calls ask.
_IN_BALL = ("paper", "halfspace")

#: In units of the radius: a target in the set may be as far outside by rounding.
_ROUNDING = 1e-12

#: Share of the squared radius that accuracies are seen against where a target is farther away.
REACH = 0.1

#: Gap, as a share of the squared distance, at which `corrective` and `block` stop unless told.
DEFAULT_ACCURACY = 0.1


def infeasible_projection(
    domain: Domain,
    x: Point,
    y: Point,
    tolerance: float,
    method: str = "auto",
    accuracy: float | None = None,
    max_lmo_calls: int | None = None,
    rng: np.random.Generator | Sequence[int] | None = None,
    atoms: Atoms | None = None,
) -> InfeasibleProjection:
    r"""Return a feasible point near y and an infeasible one beside it.

    The contract, for every method (c is the set's centre, 0 for most):

    1. :math:`x' \in K`;
    2. :math:`\lVert x' - y'\rVert^2 \le tolerance`;
    3. :math:`\lVert y' - z\rVert \le \lVert y - z\rVert` for every z in K;
    4. :math:`\lVert y' - c\rVert \le R`.

    That is all the regret theorems ask for. Point 3 is affine in z once squared, so that
    z = lmo(y' - y) is its worst case.

    Parameters
    ----------
    domain
        The set.
    x
        A point of the set: the start, not changed.
    y
        The point to project, not changed.
    tolerance
        Squared distance allowed between x' and y', the paper's :math:`3\epsilon`; positive
        (``"exact"`` takes 0 as well).
    method
        ``"paper"``, ``"halfspace"``, ``"corrective"``, ``"block"``, ``"exact"``, or ``"auto"``: exact
        where the set's projection is cheap, block on larger trace-norm balls, corrective on other
        sets of dense points, halfspace on the rest.
    accuracy
        Where to stop: at a gap of this share of the squared distance from y (for halfspace and
        corrective, of a tenth of the squared radius where y is farther away, except on trace-norm
        balls). Below 1/2 the answer is (x', x'). None: 0.1 for corrective and block; halfspace then
        stops as soon as its half-space step lands within the tolerance, and paper always follows
        the paper.
    max_lmo_calls
        Limit on the oracle calls. If it ends the work before point 2 is reached, the result is
        where the work had got to and says ``converged=False``; points 1, 3 and 4 hold. With 0, x
        stays where it is.
    rng
        Source of block's random columns, or a seed for one; fixed if None, so that calls repeat
        exactly.
    atoms
        Vertices of the set found before: halfspace tries them before it asks the oracle, and adds
        those that it finds.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> ball = dw.L1Ball(3)
    >>> result = dw.infeasible_projection(ball, ball.origin(), np.array([2.0, 1.0, 0.0]), 1e-3)
    >>> result.method, result.feasible, result.lmo_calls
    ('exact', array([1., 0., 0.]), 0)
    >>> result = dw.infeasible_projection(
    ...     ball, ball.origin(), np.array([2.0, 1.0, 0.0]), 1e-3, method="corrective"
    ... )
    >>> result.feasible, result.lmo_calls
    (array([1., 0., 0.]), 2)
    """
    given = (tolerance, method, accuracy, max_lmo_calls, rng, atoms)
    return answered(domain, [_projection(domain, x, y, *given)])[0]


def infeasible_projections(
    domain: Domain,
    xs: Sequence[Point],
    ys: Sequence[Point],
    tolerances: Sequence[float],
    method: str = "auto",
    accuracy: float | None = None,
    max_lmo_calls: Sequence[int | None] | None = None,
    rngs: Sequence[np.random.Generator | Sequence[int] | None] | None = None,
) -> list[InfeasibleProjection]:
    """Return the infeasible projections of several points onto one set, in one call.

    The same answers as one `infeasible_projection` for each. With ``"block"`` their linear
    minimisations are asked for together, which share the work of starting it on a GPU.

    Parameters
    ----------
    domain
        The set.
    xs, ys, tolerances
        As for `infeasible_projection`, one for each projection.
    method, accuracy
        As there, for all of them.
    max_lmo_calls, rngs
        As there, one for each; None for none.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> ball, y = dw.L1Ball(2), np.array([3.0, 0.0])
    >>> found = infeasible_projections(ball, [ball.origin()] * 2, [y, -y], [1e-3, 1e-3])
    >>> [result.feasible.tolist() for result in found]
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    limits = [None] * len(xs) if max_lmo_calls is None else max_lmo_calls
    random = [None] * len(xs) if rngs is None else rngs
    lengths = [len(each) for each in (xs, ys, tolerances, limits, random)]
    if len(set(lengths)) > 1:
        raise ValueError(
            "there must be as many xs, ys, tolerances, max_lmo_calls and rngs, got "
            + ", ".join(map(str, lengths))
        )
    jobs = zip(xs, ys, tolerances, limits, random, strict=True)
    return answered(
        domain,
        [
            _projection(domain, x, y, tolerance, method, accuracy, limit, rng, None)
            for x, y, tolerance, limit, rng in jobs
        ],
    )


def _projection(
    domain: Domain,
    x: Point,
    y: Point,
    tolerance: float,
    method: str,
    accuracy: float | None,
    max_lmo_calls: int | None,
    rng: np.random.Generator | Sequence[int] | None,
    atoms: Atoms | None,
) -> Asking:
    """One projection, which asks for what it needs where that may be shared."""
    x, y = domain.check_point(x, "x"), domain.check_point(y, "y")
    stop = _stopping(domain, x, tolerance, method, accuracy, max_lmo_calls)
    chosen = domain.default_method if method == "auto" else method
    if chosen == "exact":
        return exact(domain, y)
    if stop.tolerance == 0:
        raise ValueError(f'tolerance must be positive for method "{chosen}", got 0')
    if chosen != "paper":
        y = in_hull(domain, y)
    if chosen in ("halfspace", "corrective") and not domain.rank_one_atoms:
        stop = replace(stop, reach=REACH * domain.radius**2)
    # These two start from ||x - y|| <= D; the others move y' to the ball at the end.
    target = clip_to_ball(y, domain.center, domain.radius) if chosen in _IN_BALL else y
    followed = chosen == "paper" or (chosen == "halfspace" and accuracy is None)
    if not followed and domain.cheap_membership and domain.contains(target, atol=_ROUNDING):
        inside = target.copy()
        return InfeasibleProjection(inside, inside, 0, 0.0, 0.0, chosen)
    if stop.max_lmo_calls == 0:
        inside = clip_to_ball(y, domain.center, domain.radius)
        return cut_short(Pair(x, inside), stop, 0, 2.0 * domain.radius, chosen)
    if chosen == "paper":
        return paper(domain, x, target, stop, given=y)
    if chosen == "halfspace":
        return halfspace(domain, x, target, stop, atoms)
    if chosen == "corrective":
        return _in_ball(domain, corrective(domain, x, y, stop), stop)
    random = np.random.default_rng(0 if rng is None else rng)
    result = yield from block(domain, x, y, stop, random)
    return _in_ball(domain, result, stop)


def in_hull(domain: Domain, y: Point) -> Point:
    """The nearest point of the set's affine hull, which is nearer to all of K; y for most sets."""
    offset = y if domain.center is None else y - domain.center
    along = domain.tangent(offset)
    if along is offset:
        return y
    return along if domain.center is None else domain.center + along


def _in_ball(domain: Domain, result: InfeasibleProjection, stop: Stopping) -> InfeasibleProjection:
    """The same answer with y' moved to the ball, which brings it nearer to all of K."""
    if result.infeasible is result.feasible:
        return result
    inside = clip_to_ball(result.infeasible, domain.center, domain.radius)
    if inside is result.infeasible:
        return result
    apart = distance(result.feasible, inside)
    near = result.converged or apart * apart <= stop.tolerance
    return replace(result, infeasible=inside, distance=apart, converged=near)


def _stopping(
    domain: Domain,
    x: Point,
    tolerance: float,
    method: str,
    accuracy: float | None,
    max_lmo_calls: int | None,
) -> Stopping:
    """The checked stopping rule; refuses what no method could work with."""
    if method != "auto" and method not in METHODS:
        known = ", ".join(f'"{name}"' for name in ("auto", *METHODS))
        raise ValueError(f"method must be one of {known}, got {method!r}")
    tolerance = checks.nonnegative(tolerance, "tolerance")
    if accuracy is not None:
        accuracy = checks.positive(accuracy, "accuracy")
    elif method in ("auto", "corrective", "block"):
        accuracy = DEFAULT_ACCURACY
    if max_lmo_calls is not None:
        max_lmo_calls = checks.count(max_lmo_calls, "max_lmo_calls", least=0)
    far = norm(x if domain.center is None else x - domain.center)
    if far > domain.radius * (1 + 1e-6):
        raise ValueError(
            f"x must be a point of the set, but lies {far:g} from its centre, "
            f"outside the radius {domain.radius:g}; start from domain.origin()"
        )
    return Stopping(tolerance, accuracy, max_lmo_calls)
