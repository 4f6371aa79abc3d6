"""`infeasible_projection`, the oracle behind every regret theorem, its settings, and gauges by bisection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.oracles.block import block
from driftwolfe.oracles.corrective import corrective
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
from driftwolfe.oracles.separation import separation
from driftwolfe.points import checks, clip_to_ball, distance, norm
from driftwolfe.points.devices import HOST
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import whole_above

#: The methods that `infeasible_projection` knows, beside ``"auto"``.
METHODS = ("paper", "halfspace", "corrective", "block", "exact", "separation")

#: Gap, as a fraction of the squared distance, at which `corrective` and `block` stop by default.
DEFAULT_ACCURACY = 0.1


@dataclass(frozen=True, slots=True)
class Oracle:
    r"""How a learner projects, and how many LMO calls it may make: ``POLAR(domain, oracle=Oracle(...))``.

    Where only the method is set, its name does: ``oracle="block"``.

    Parameters
    ----------
    method
        Method of `infeasible_projection`; the learner's bound allows for its tolerance.
    accuracy
        Accuracy of `infeasible_projection`; None: 0.1, and no limit but the tolerance in the certified tuning.
    lmo_budget
        LMO calls per round b, for all experts together; None: no limit. After every round t, at most
        b t calls have been made. The certified tuning has the blocks and tolerances that b surely
        affords with an exact oracle; the practical tuning keeps its own, and experts use what others
        leave. Where the budget ends a projection early, `bound` allows for the distance that was left.
    schedule
        ``"blocks"``: LMO calls are made when blocks end; ``"even"``: with a budget of 1, at most one
        in every round. `POLAR` has less regret with blocks.
    cache
        Number of vertices to cache and to try before the LMO is called (`Atoms`); for methods
        ``"halfspace"`` and, except on trace-norm balls, ``"corrective"``. None: 64 for `POLAR` where a
        budget makes calls scarce and points are dense; else 0.
    tolerance_scale
        Factor on the tolerances of projections, :math:`3\epsilon` in the paper; smaller tightens the
        bound. None: 1 in the certified tuning, else 1e-6, so that the accuracy decides.
    seed
        Seed of the random columns of ``"block"``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLAR(dw.BirkhoffPolytope(3), oracle=dw.Oracle(lmo_budget=0.5))
    >>> history = dw.play(learner, [dw.losses.LinearLoss([[0, 1, 1], [1, 0, 1], [1, 1, 0]])] * 100)
    >>> learner.lmo_calls <= 50
    True
    """

    method: str = "auto"
    accuracy: float | None = None
    lmo_budget: float | None = None
    schedule: str = "blocks"
    cache: int | None = None
    tolerance_scale: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        checks.one_of(self.method, "method", ("auto", *METHODS))
        checks.one_of(self.schedule, "schedule", ("blocks", "even"))
        numbers: dict[str, float] = {
            "seed": checks.count(self.seed, "seed", least=0, most=math.inf)
        }
        if self.cache is not None:
            numbers["cache"] = checks.count(self.cache, "cache", least=0)
        for name in ("accuracy", "lmo_budget", "tolerance_scale"):
            if (value := getattr(self, name)) is not None:
                numbers[name] = checks.positive(value, name)
        for name, number in numbers.items():
            object.__setattr__(self, name, number)
        if self.schedule == "even":
            if self.lmo_budget is None:
                raise ValueError(
                    'schedule="even" spreads a budget over the rounds; give lmo_budget=1.0'
                )
            if self.cache:
                raise ValueError('cache works with schedule="blocks"; leave one of the two out')
            pausing = ("auto", "halfspace")  # runs that can pause
            checks.one_of(self.method, "with an even schedule, method", pausing)
        if self.cache:
            cached = ("auto", "halfspace", "corrective")
            checks.one_of(self.method, "with a cache, method", cached)

    @staticmethod
    def of(given: Any) -> Oracle:
        """Return an oracle; a text is the method of one."""
        if not isinstance(given, Oracle | str):
            kind = type(given).__name__
            raise TypeError(f"oracle must be a driftwolfe.Oracle or a method, a text, got {kind}")
        return given if isinstance(given, Oracle) else Oracle(given)


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
    gap: float | None = None,
) -> InfeasibleProjection:
    r"""Return a feasible point near y and an infeasible one beside it.

    The contract, for every method (c is the set's centre, 0 for most):

    1. :math:`x' \in K`;
    2. :math:`\lVert x' - y'\rVert^2 \le tolerance`;
    3. :math:`\lVert y' - z\rVert \le \lVert y - z\rVert` for every z in K;
    4. :math:`\lVert y' - c\rVert \le R`.

    The regret theorems need no more. The worst case of point 3 is z = lmo(y' - y).

    Parameters
    ----------
    domain, x, y
        The set, the start (one of its points) and the point to project; none is changed.
    tolerance
        Squared distance allowed between x' and y', the paper's :math:`3\epsilon`; positive, or 0 for
        ``"exact"``.
    method
        ``"paper"``, ``"halfspace"``, ``"corrective"``, ``"block"``, ``"exact"``, ``"separation"``, or
        ``"auto"``: exact where the set's projection is cheap, block on larger trace-norm balls, separation
        on sets that have no LMO, corrective on other sets of dense points, halfspace on the rest.
    accuracy
        Where to stop: at a gap of this fraction of the squared distance from y (for halfspace and
        corrective, except on trace-norm balls, of at most a tenth of the squared radius). Up to 1/2
        the result is (x', x'). Default: 0.1 for corrective and block; halfspace stops as soon as its
        half-space step lands within the tolerance, and paper always follows the paper.
    max_lmo_calls
        Limit on the LMO calls. If it ends the work before point 2 holds, the result says
        ``converged=False``; points 1, 3 and 4 hold. With 0, x does not move.
    rng
        Source of block's random columns, or a seed for one; by default fixed, so that calls repeat
        exactly.
    atoms
        Vertices of the set found before: halfspace tries them before every LMO call, and adds those
        that it finds.
    gap
        Stop, instead, once the gap is at most this, a squared distance: x' is then within its root of
        the projection of y, however far y is. The result is (x', x'), `tolerance` and `accuracy` play
        no part, and without half-space steps halfspace and paper are corrective, or plain Frank-Wolfe.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> ball, y = dw.L1Ball(3), np.array([2.0, 1.0, 0.0])
    >>> for method in ("auto", "corrective"):
    ...     result = dw.infeasible_projection(ball, ball.origin(), y, 1e-3, method)
    ...     print(result.method, result.feasible, result.lmo_calls)
    exact [1. 0. 0.] 0
    corrective [1. 0. 0.] 2
    """
    options = (tolerance, method, accuracy, max_lmo_calls, rng, atoms, gap)
    return run_together(domain, [_project(domain, x, y, *options)])[0]


def infeasible_projections(
    domain: Domain,
    xs: Sequence[Point],
    ys: Sequence[Point],
    tolerances: Sequence[float],
    method: str = "auto",
    accuracy: float | None = None,
    max_lmo_calls: Sequence[int | None] | None = None,
    rngs: Sequence[np.random.Generator | Sequence[int] | None] | None = None,
    gaps: Sequence[float | None] | None = None,
) -> list[InfeasibleProjection]:
    """Return the infeasible projections of several points onto one set.

    The results are those of one `infeasible_projection` each. ``"block"`` batches their LMO calls,
    ``"exact"`` decompositions of matrices: both save time on a GPU.

    Parameters
    ----------
    domain, method, accuracy
        As in `infeasible_projection`, for all of them.
    xs, ys, tolerances
        The starts, targets and tolerances, one per projection.
    max_lmo_calls, rngs, gaps
        Likewise one per projection; None for the default of all.

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
    ends = [None] * len(xs) if gaps is None else gaps
    lengths = [len(each) for each in (xs, ys, tolerances, limits, random, ends)]
    if len(set(lengths)) > 1:
        raise ValueError(
            "there must be as many xs, ys, tolerances, max_lmo_calls, rngs and gaps, got "
            + ", ".join(map(str, lengths))
        )
    exact = "exact" in (method, domain.default_method if method == "auto" else "")
    if exact and len(ys) > 1 and domain.device is not HOST:
        found = domain.project_each([domain.check_point(y, "y") for y in ys])
        return [InfeasibleProjection(x, x, 0, 0.0, 0.0, "exact") for x in found]
    projections = [
        _project(domain, x, y, tolerance, method, accuracy, limit, rng, None, gap)
        for x, y, tolerance, limit, rng, gap in zip(
            xs, ys, tolerances, limits, random, ends, strict=True
        )
    ]
    return run_together(domain, projections)


def _project(
    domain: Domain,
    x: Point,
    y: Point,
    tolerance: float,
    method: str,
    accuracy: float | None,
    max_lmo_calls: int | None,
    rng: np.random.Generator | Sequence[int] | None,
    atoms: Atoms | None,
    gap: float | None,
) -> LMORequests[InfeasibleProjection]:
    """Check the input, choose the method and run it; yields the LMO calls that can be batched."""
    x, y = domain.check_point(x, "x"), domain.check_point(y, "y")
    checks.one_of(method, "method", ("auto", *METHODS))
    tolerance = checks.nonnegative(tolerance, "tolerance")
    final = DEFAULT_ACCURACY if method in ("auto", "corrective", "block") else math.inf
    if accuracy is not None:
        final = checks.positive(accuracy, "accuracy")
    if max_lmo_calls is not None:
        max_lmo_calls = checks.count(max_lmo_calls, "max_lmo_calls", least=0)
    far = norm(x if domain.center is None else x - domain.center)
    if far > domain.radius * (1 + 1e-6):
        raise ValueError(
            f"x must be a point of the set, but lies {far:g} from its centre, "
            f"outside the radius {domain.radius:g}; start from domain.origin()"
        )
    if method == "auto":
        method = domain.default_method
    if method == "exact":
        nearest = domain.project(y)
        return InfeasibleProjection(nearest, nearest, 0, 0.0, 0.0, "exact")
    if gap is not None:  # which a half-space step does not serve
        tolerance, gap = 0.0, checks.positive(gap, "gap")
        method = domain.lmo_method if method in ("paper", "halfspace") else method
        if method == "separation":
            raise ValueError(
                'method "separation" has no gap to stop at; use another method or learner'
            )
    elif tolerance == 0:
        raise ValueError(f'tolerance must be positive for method "{method}", got 0')
    if method != "paper":
        y = in_hull(domain, y)
    if method == "separation":
        if not domain.can("separate"):
            kind = type(domain.unwrapped).__name__
            raise ValueError(f'{kind} separates no points; use another method than "separation"')
        return separation(domain, clip_to_ball(y, domain.center, domain.radius), tolerance)
    relative = domain.rank_one_atoms or method not in ("halfspace", "corrective")
    largest_squared = math.inf if relative else 0.1 * domain.radius**2
    stop = Stopping(tolerance, final, max_lmo_calls, largest_squared, gap)
    # The call bounds of these two need ||x - y|| <= D; the others move y' to the ball at the end.
    from_ball = gap is None and method in ("paper", "halfspace")
    target = clip_to_ball(y, domain.center, domain.radius) if from_ball else y
    accurate = not from_ball or (method == "halfspace" and accuracy is not None)
    if accurate and domain.cheap_membership and domain.contains(target, atol=1e-12):
        inside = target.copy()
        return InfeasibleProjection(inside, inside, 0, 0.0, 0.0, method)
    if method == "paper" and max_lmo_calls != 0:
        return paper(Run(domain, stop, method, Pair(x, target)), given=y)
    if max_lmo_calls == 0:
        result = Run(domain, stop, method, Pair(x, target)).stay()
    elif method == "halfspace":
        run, found = HalfspaceRun(domain, x, target, stop, atoms), None
        while found is None:
            found = run.advance()
        result = found
    elif method == "corrective":
        # On a trace-norm ball the spaces of x hold what was found before.
        cached = None if domain.rank_one_atoms else atoms
        result = corrective(Run(domain, stop, method, Pair(x, y), atoms=cached))
    else:
        random = np.random.default_rng(0 if rng is None else rng)
        result = yield from block(domain, x, y, stop, random)
    if result.infeasible is result.feasible:
        return result
    inside = clip_to_ball(result.infeasible, domain.center, domain.radius)  # nearer to all of K
    if inside is result.infeasible:
        return result
    apart = distance(result.feasible, inside)
    converged = result.converged or apart * apart <= tolerance
    return replace(result, infeasible=inside, distance=apart, converged=converged)


def in_hull(domain: Domain, y: Point) -> Point:
    """Return the nearest point of the set's affine hull, which is nearer to all of K."""
    offset = y if domain.center is None else y - domain.center
    along = domain.tangent(offset)
    if along is offset:
        return y
    return along if domain.center is None else domain.center + along


def paper(run: Run, given: Point) -> InfeasibleProjection:
    r"""Project infeasibly by Algorithms 3 and 4 of Garber & Kretzu (COLT 2022).

    Frank-Wolfe runs to a gap of eps alternate with small pulls of y towards x,
    :math:`y \leftarrow y - \gamma(y - x)`, :math:`\gamma = 2\epsilon/\lVert x_0 - y_0\rVert^2`, until
    :math:`\lVert x - y\rVert^2 \le 3\epsilon`, the tolerance. At most n runs call the oracle,
    :math:`n = \lceil \ln(\rho/3) / (-2\ln(1 - 2/\rho))\rceil`, :math:`\rho = \lVert x_0 - y_0\rVert^2/\epsilon`,
    each at most :math:`4D^2/\epsilon` times.

    The distance is tested before the LMO call, not after as in the paper's listing, which saves one
    call per run. `given` is the target before it was moved to the ball.
    """
    pair, eps = run.pair, run.stop.tolerance / 3.0
    hint = eps / (4.0 * run.domain.radius**2)
    if run.near():
        return run.stay()
    y, apart = pair.y, distance(pair.x, given)
    fraction = min(1.0, 2.0 * eps / apart / apart)  # at most 2/3, rounding apart
    while True:
        while not (run.near() or run.spent()):  # Algorithm 3
            _, gap = run.ask(hint)
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
    return replace(result, gap=result.gap + distance(y, pair.y) * 2 * run.domain.radius)


def gauge_by_bisection(domain: Domain, y: Point, accuracy: float = 1e-9) -> float:
    r"""Return the gauge of y about the centre by bisection on membership, from above.

    :math:`\inf\{t : c + (y - c)/t \in K\}` lies in :math:`[\lVert y - c\rVert/R,\ \lVert y - c\rVert/r]`;
    :math:`\lceil\log_2(1/accuracy)\rceil` membership tests halve the interval for 1/t. The answer is at
    most `accuracy` times the width too large, so that c + (y - c)/t is in K.

    Parameters
    ----------
    domain, y
        The set, whose `inner_radius` r must be known, and a point of its affine hull.
    accuracy
        Width at which to stop, relative to the first interval.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> round(gauge_by_bisection(dw.L2Ball(2), np.array([3.0, 4.0])), 6)
    5.0
    """
    y = domain.check_point(y, "y")
    accuracy = checks.positive(accuracy, "accuracy")
    if domain.inner_radius <= 0:
        raise ValueError(
            f"{type(domain.unwrapped).__name__} has no known inner_radius, which bisection starts "
            "from; give the set one, or use a method that needs only its lmo"
        )
    offset = y if domain.center is None else y - domain.center
    length = norm(offset)
    if length == 0:
        return 0.0
    low, high = domain.inner_radius / length, domain.radius / length  # bounds on 1/t
    for _ in range(whole_above(math.log2(1 / accuracy))):
        middle = 0.5 * (low + high)
        scaled = middle * offset if domain.center is None else domain.center + middle * offset
        low, high = (middle, high) if domain.contains(scaled, atol=1e-12) else (low, middle)
    return 1.0 / low
