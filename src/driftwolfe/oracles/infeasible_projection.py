"""`infeasible_projection`, the oracle behind every regret theorem, its settings, and gauges by bisection."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
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
from driftwolfe.oracles.methods import block, corrective, paper, separation
from driftwolfe.points import checks, clip_to_ball, distance, norm
from driftwolfe.points.devices import HOST
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import whole_above

#: Gap, as a fraction of the squared distance, at which `corrective` and `block` stop by default.
DEFAULT_ACCURACY = 0.1
#: Of a former keyword of something, and what was given.
CACHE_MOVED = (
    "{} has no cache: vertices are cached on a set, give driftwolfe.CachedDomain(domain, {!r})"
)


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
    tolerance_scale: float | None = None
    seed: int = 0

    def __new__(cls, *given: Any, **named: Any) -> Oracle:
        if "cache" in named:
            raise TypeError(CACHE_MOVED.format("Oracle", named["cache"]))
        return object.__new__(cls)  # `super` would name the class without slots

    def __post_init__(self) -> None:
        checks.one_of(self.method, "method", ("auto", *METHODS))
        checks.one_of(self.schedule, "schedule", ("blocks", "even"))
        numbers: dict[str, float] = {
            "seed": checks.count(self.seed, "seed", least=0, most=math.inf)
        }
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
            pausing = ("auto", "halfspace")  # runs that can pause
            checks.one_of(self.method, "with an even schedule, method", pausing)

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
        that it finds. On a `CachedDomain`, an empty cache if not given.
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
    asked = Request(x, y, tolerance, method, accuracy, max_lmo_calls, rng, atoms, gap)
    return infeasible_projections(domain, [asked.checked(domain)])[0]


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
        far = norm(x if domain.center is None else x - domain.center)
        if far > domain.radius * (1 + 1e-6):
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
    method = domain.default_method if method == "auto" else method
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


def _exact(domain: Domain, asked: Request) -> InfeasibleProjection:
    nearest = domain.project(asked.y)
    return InfeasibleProjection(nearest, nearest, 0, 0.0, 0.0, "exact")


def _separation(domain: Domain, asked: Request) -> InfeasibleProjection:
    if asked.gap is not None:
        raise ValueError('method "separation" has no gap to stop at; use another method or learner')
    if not domain.can("separate"):
        kind = type(domain.unwrapped).__name__
        raise ValueError(f'{kind} separates no points; use another method than "separation"')
    target = clip_to_ball(in_hull(domain, asked.y), domain.center, domain.radius)
    return separation(domain, target, asked.tolerance)


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


def _paper(domain: Domain, asked: Request) -> InfeasibleProjection:
    target = clip_to_ball(asked.y, domain.center, domain.radius)
    run = Run(domain, _stopping(domain, asked), "paper", Pair(asked.x, target))
    return paper(run, given=asked.y)


def _halfspace(domain: Domain, asked: Request) -> InfeasibleProjection:
    y, accurate = in_hull(domain, asked.y), asked.accuracy is not None
    if asked.gap is None:  # the bound on its calls needs ||x - y|| <= D
        y = clip_to_ball(y, domain.center, domain.radius)
    found = _at_once(domain, asked, "halfspace", y, accurate or asked.gap is not None)
    if found is None:
        run = HalfspaceRun(domain, asked.x, y, _stopping(domain, asked), asked.atoms)
        while found is None:
            found = run.advance()
    return found


def _corrective(domain: Domain, asked: Request) -> InfeasibleProjection:
    y = in_hull(domain, asked.y)
    # On a trace-norm ball the spaces of x hold what was found before.
    atoms = None if domain.rank_one_atoms else asked.atoms
    run = Run(domain, _stopping(domain, asked), "corrective", Pair(asked.x, y), atoms=atoms)
    return _at_once(domain, asked, "corrective", y) or corrective(run)


def _block(domain: Domain, asked: Request) -> LMORequests[InfeasibleProjection]:
    y = in_hull(domain, asked.y)
    if (found := _at_once(domain, asked, "block", y)) is not None:
        return found
    rng = np.random.default_rng(0 if asked.rng is None else asked.rng)
    return (yield from block(domain, asked.x, y, _stopping(domain, asked), rng))


#: The methods that `infeasible_projection` knows, beside ``"auto"``: of a checked request, the answer, or a
#: run that yields its LMO calls.
METHODS: dict[str, Callable[[Domain, Request], Any]] = {
    "paper": _paper,
    "halfspace": _halfspace,
    "corrective": _corrective,
    "block": _block,
    "exact": _exact,
    "separation": _separation,
}


def in_hull(domain: Domain, y: Point) -> Point:
    """Return the nearest point of the set's affine hull, which is nearer to all of K."""
    offset = y if domain.center is None else y - domain.center
    along = domain.tangent(offset)
    if along is offset:
        return y
    return along if domain.center is None else domain.center + along


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
