"""`infeasible_projection`, the oracle behind every regret theorem, its settings, and gauges by bisection."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.oracles.frank_wolfe import Atoms, InfeasibleProjection
from driftwolfe.oracles.methods import METHODS, Request, infeasible_projections
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import whole_above

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
        Of `infeasible_projection`; None: 0.1, and no limit but the tolerance in the certified tuning.
    lmo_budget
        LMO calls per round b, for all experts together; None: no limit. After every round t, at most b t calls
        have been made. The certified tuning has the blocks and tolerances that b surely affords with an exact
        oracle; the practical tuning keeps its own. Where the budget ends a projection early, `bound` allows for it.
    schedule
        ``"blocks"``: LMO calls are made when blocks end; ``"even"``: with a budget of 1, at most one
        in every round; not for `POLAR`.
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
        seed = checks.count(self.seed, "seed", least=0, most=math.inf)
        object.__setattr__(self, "seed", seed)
        for name in ("accuracy", "lmo_budget", "tolerance_scale"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, checks.positive(value, name))
        if self.schedule == "even":
            if self.lmo_budget is None:
                raise ValueError('schedule="even" spreads a budget; give lmo_budget=1.0')
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
        Squared distance allowed between x' and y', the paper's :math:`3\epsilon`; positive, or 0 for ``"exact"``.
    method
        ``"paper"``, ``"halfspace"``, ``"corrective"``, ``"block"``, ``"exact"``, ``"separation"``, or
        ``"auto"``: exact where the set's projection is cheap, block on larger trace-norm balls, separation
        on sets that have no LMO, corrective on other sets of dense points, halfspace on the rest.
    accuracy
        Where to stop: at a gap of this fraction of the squared distance from y (for halfspace and corrective,
        except on trace-norm balls, of at most a tenth of the squared radius). Up to 1/2 the result is (x', x').
        Default: 0.1 for corrective and block; halfspace stops once its half-space step lands within the tolerance.
    max_lmo_calls
        Limit on the LMO calls. If it ends the work before point 2 holds, the result says ``converged=False``.
    rng
        Source of block's random columns, or a seed for one; by default fixed, so that calls repeat exactly.
    atoms
        Vertices of the set found before: halfspace tries them before every LMO call, and adds those
        that it finds. On a `CachedDomain`, an empty cache if not given.
    gap
        Stop, instead, once the gap is at most this, a squared distance: x' is then within its root of the
        projection of y. The result is (x', x'); `tolerance` and `accuracy` play no part, and halfspace and paper
        run as corrective, or plain Frank-Wolfe.

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


def gauge_by_bisection(domain: Domain, y: Point, accuracy: float) -> float:
    """Return the gauge of y about the centre by bisection on membership, from above.

    At most `accuracy` times the width of the first interval for 1/t too large: c + (y - c)/t is in the set.
    """
    offset = domain._from_center(y)
    length = norm(offset)
    if length == 0:
        return 0.0
    low, high = domain.inner_radius / length, domain.radius / length  # bounds on 1/t
    for _ in range(whole_above(math.log2(1 / accuracy))):
        middle = 0.5 * (low + high)
        scaled = middle * offset if domain.center is None else domain.center + middle * offset
        low, high = (middle, high) if domain.contains(scaled, atol=1e-12) else (low, middle)
    return 1.0 / low
