"""Learners with constraints that are revealed after each decision: few violations over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any, Unpack, cast

import numpy as np

from driftwolfe import bounds
from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import HalfSpace
from driftwolfe.ensemble.experts import require_finite
from driftwolfe.learners.base import Epoch, Learner, Outer, as_loss
from driftwolfe.learners.bogd_ip import BOGDIP
from driftwolfe.learners.options import Options, StepOptions, make_options
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.tickets import Tickets
from driftwolfe.losses import Penalised
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.access import reads
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import POINT, Field, Size

#: The largest exponent of a penalty: beyond it the loss would vanish beside it.
LARGEST_EXPONENT = 50.0


class Constrained:
    """What learners share that see a constraint after each decision."""

    takes_constraints = True
    violation: Size

    def _update_late(self, loss: Any, ticket: Any, **more: Any) -> float:
        """Learn from the constraint as it is now, and count its violation at the ticket's decision."""
        learner, constraint = cast(Learner, self), more.get("constraint")
        decision = (learner._tickets or Tickets()).find(ticket).decision
        excess = 0.0 if constraint is None else max(0.0, as_loss(constraint).value(decision))
        require_finite(excess)
        before = self.violation
        value = Learner._update_late(learner, loss, ticket, **more)
        self.violation = before + excess
        return value


class LongTerm(Constrained, Outer):
    r"""Any learner, with constraints that are revealed after each decision.

    In round t it plays x, then sees the loss f and a convex constraint g, which asks for :math:`g(x) \le 0`.
    Violations :math:`g(x)^+ = \max(g(x), 0)` add up to Q (`violation`), and the learner within sees

    .. math:: f + \omega\, g^+, \qquad \omega = \omega_0\, e^{Q/\beta}

    with the weight :math:`\omega` (`penalty`). If its regret is at most C times the largest gradient norm, as
    for all here, :math:`\beta \ge 2 L C` and :math:`\omega_0 = 2 G/L`, then against points that satisfy the
    constraints of their rounds, after T rounds,

    .. math:: \mathrm{regret} \le 3\, G C, \qquad
              \mathrm{violation} \le \beta \ln\Big(2 + \frac{L (C + D T)}{\beta}\Big).

    With `BOGDIP`, `POLD` and `POLA` both are of order :math:`T^{3/4}`, up to a logarithm. `bound` is the learner's
    on what it saw, less what it paid in penalties; `violation_bound` has the second with the constants used. A
    constant weight :math:`(G/L) T^{1/8}` has :math:`T^{7/8}` for both, on every interval with `POLA`
    (`docs/theory/constraints.md`). The constraint is evaluated at the decision: of an ensemble the mean.

    Parameters
    ----------
    learner
        A learner on this set that has played no round, which is copied (to `learner`), or a class or function,
        called as ``make(domain, horizon=...)``. Leave its lipschitz ``"auto"``: what it sees grows with the weight.
    horizon
        Rounds T; None: those played so far, in beta.
    lipschitz, constraint_lipschitz
        Bounds on the gradient norms of losses, G, and of constraints, L, in units of g over those of x;
        ``"auto"``: the largest seen at decisions.
    weight
        :math:`\omega_0`, in units of the loss over those of g; 2 G/L if not given.
    violation_scale
        :math:`\beta`, in units of g: so much violation makes the weight e times as large. Infinity for a
        weight that does not grow; :math:`2 L D T^{3/4}` if not given.
    {options}

    References
    ----------
    Sinha and Vaze (2024), Optimal algorithms for online convex optimization with adversarial
    constraints, NeurIPS, for the weights; Wang, Wan and Zhang (2025), Revisiting projection-free online
    learning with time-varying constraints, AAAI. Both known by their abstracts; constants are ours.

    Examples
    --------
    Rising in the first coordinate is good, but the constraint allows only 0.3:

    >>> import driftwolfe as dw
    >>> learner = dw.contrib.LongTerm(dw.L2Ball(2), dw.POLAR, horizon=1000)
    >>> loss, limit = dw.losses.LinearLoss([-1.0, 0.0]), dw.losses.LinearLoss([1.0, 0.0], -0.3)
    >>> for _ in range(1000):
    ...     suffered = learner.update(loss, constraint=limit)
    >>> bool(abs(learner.decision[0] - 0.3) < 0.1), bool(learner.violation < 100)
    (True, True)
    """

    penalty: Size
    _violated: Size  # where it has learned
    _paid: Size
    _slopes: Annotated[Array, Field(np.float64, (2,), 0.0)]  # largest gradient norms of both
    _least: Size  # penalty; 0 for none yet
    options: Options

    def __init__(
        self,
        domain: Domain,
        learner: Learner | Callable[..., Learner] = POLA,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        constraint_lipschitz: float | str = "auto",
        weight: float | None = None,
        violation_scale: float | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz)
        self._L = None
        if constraint_lipschitz != "auto":
            self._L = checks.positive(constraint_lipschitz, "constraint_lipschitz")
        self._first = None if weight is None else checks.positive(weight, "weight")
        self._beta = violation_scale
        if violation_scale not in (None, math.inf):
            self._beta = checks.positive(violation_scale, "violation_scale")
        self.learner: Any = self._inner(learner, horizon=horizon)
        self._arguments["learner"] = self.learner.clone()  # for `load`
        self.violation = self.penalty = self._violated = self._paid = self._least = 0.0
        self._slopes = np.zeros(2)

    def update(self, loss: Any, ticket: Any = None, constraint: Any = None) -> float:
        """Play x; weigh its violation; let the learner see the loss with the penalty.

        `constraint` is the function g with g(x) <= 0 wanted, a `Loss` or any object with `value` and `gradient`;
        None for a round without one.
        """
        f = as_loss(loss)
        if constraint is None:
            suffered: float = self.learner.update(f)
            self.t += 1
            return suffered
        g, x = as_loss(constraint), self.learner.decision
        suffered, excess = f.value(x), max(0.0, g.value(x))
        require_finite(suffered, excess)
        seen = np.array([norm(f.gradient(x)), norm(g.gradient(x))])
        require_finite(seen)
        self._slopes = np.maximum(self._slopes, seen)
        self.violation += excess
        self._violated += excess
        self.penalty = self._next_weight()
        self._least = min(self._least or math.inf, self.penalty)
        self._paid += self.penalty * excess
        self.learner.update(Penalised(f, g, self.penalty))
        self.t += 1
        return suffered

    def _next_weight(self) -> float:
        """Omega after the violations so far."""
        G, L = self._gradients()
        first = self._first if self._first is not None else (2.0 * G / L if G * L > 0.0 else 1.0)
        beta = self._beta
        if beta is None:
            beta = 2.0 * L * self.options.D * (self.options.horizon or self.t + 1) ** 0.75
        return first * math.exp(min(self._violated / beta, LARGEST_EXPONENT) if beta > 0.0 else 0.0)

    def _gradients(self) -> tuple[float, float]:
        """G and L, as given or as seen."""
        G, L = self._slopes.tolist()
        return self.options.lipschitz or G, self._L or L

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        # Regret on what it saw is that on the losses and the penalties, which comparators do not pay.
        seen: float = self.learner.bound(path_length, tau)
        return seen - self._paid if tau is None else seen

    @reads
    def violation_bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return a proved bound on the violation so far, in units of the constraints.

        NotImplementedError where none is known, as without a given `lipschitz`, or with tickets.

        Parameters
        ----------
        path_length, tau
            As in `bound`: that of some comparators which satisfy all constraints, and rounds of intervals.
        """
        length, window = bounds.asked(path_length, tau)
        G, L = self.options.lipschitz, self._gradients()[1]
        if G is None or self._tickets is not None:
            raise NotImplementedError(
                "a bound on violations needs a given lipschitz, and losses that come at once"
            )
        if (self._slopes > 1.000001 * np.array([G, L])).any():
            raise NotImplementedError("gradients at decisions were longer than the constants given")
        if not self._violated:
            return 0.0
        regret = self.learner.bound(length, window)
        gain = G * self.domain.diameter * (self.t if window is None else min(window, self.t))
        # All penalties are at least the least weight times the violation.
        found = (regret + gain) / self._least
        given = self._L is not None and (self._beta is not None or self.options.horizon is not None)
        # Its bound is in proportion to the largest gradient that it has seen.
        learned = self.learner.options is not None and self.learner.options.lipschitz is None
        largest = getattr(self.learner, "lipschitz", 0.0) if learned else 0.0
        if window is None and given and self._beta != math.inf and largest > 0.0:
            first = self._first or 2.0 * G / L
            beta = self._beta or 2.0 * L * self.options.D * cast(int, self.options.horizon) ** 0.75
            C = regret / largest
            if beta > C * L:
                whole = beta + (G * C + gain) / first
                found = min(found, beta * math.log(whole / (beta - C * L)))
        return found


class CutBOGDIP(Constrained, BOGDIP):
    r"""`BOGDIP` with constraints that are revealed after each decision, by one half-space per block.

    Plays x for the K rounds of a block and adds up gradients of the losses, :math:`\Delta`, violations
    :math:`v = \sum g_t(x)^+` and the gradients of violated constraints, :math:`\Gamma`. All points that
    satisfy the block's constraints lie in :math:`H = \{z : v + \langle\Gamma, z - x\rangle \le 0\}`, and

    .. math:: (x, y) \leftarrow IP\big(x,\ P_H(y - \eta \Delta)\big)

    with :math:`P_H` the projection on that half-space. Against every u that satisfies the constraints, regret is at
    most the bound of `BOGDIP`, on every interval. With :math:`G` and L the bounds on gradients of losses and
    constraints, and the paper's parameters, violation (the sum at all decisions, `violation`) is at most

    .. math:: \sqrt2\, L D\, T^{3/4} \sqrt{a + T^{1/4}} + 2.74\, L D\, T^{3/4}, \qquad
              a = \sqrt3 + \tfrac12 + v_0:

    order :math:`T^{7/8}`, on every interval too; `violation_bound` evaluates it with the parameters used
    (`docs/theory/constraints.md`). One gradient of the loss and of the constraint per round, no further LMO calls.

    Parameters
    ----------
    {options}

    References
    ----------
    Rates and interval guarantee are those of Garber and Kretzu (2024), Projection-free online convex
    optimization with time-varying constraints, ICML, whose method for intervals minimises a strongly
    convex function with the constraints over a ball; half-spaces are ours, and need first-order access only.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.CutBOGDIP(dw.L2Ball(2), horizon=1000, lipschitz=1.0)
    >>> loss, limit = dw.losses.LinearLoss([-1.0, 0.0]), dw.losses.LinearLoss([1.0, 0.0], -0.3)
    >>> for _ in range(1000):
    ...     suffered = learner.update(loss, constraint=limit)
    >>> bool(abs(learner.decision[0] - 0.3) < 0.1), bool(learner.violation < 200)
    (True, True)
    """

    _block: Size
    _normals: Annotated[Point, POINT]
    _steepest: Size  # L: the largest gradient norm of a violated constraint

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "auto",
        **options: Unpack[StepOptions],
    ) -> None:
        if Oracle.of(oracle).schedule != "blocks":
            raise ValueError('CutBOGDIP projects where blocks end: schedule must be "blocks"')
        self.violation = self._steepest = 0.0
        super().__init__(domain, horizon, lipschitz, oracle=oracle, **options)

    def update(self, loss: Any, ticket: Any = None, constraint: Any = None) -> float:
        """Play x, add its gradients to the block; where it ends, step, cut and project.

        `constraint` is as in `LongTerm.update`: a function g with g(x) <= 0 wanted, or None.
        """
        x, experts = self._experts.point(0), self._experts
        if constraint is not None:
            excess, gradient = as_loss(constraint).value_and_gradient(x)
            require_finite(excess)
            if excess > 0.0:
                self.violation += excess
                self._block += excess
                self._normals = self._normals + gradient
                self._steepest = max(self._steepest, norm(gradient))
        due = experts.due().size > 0
        if due and self._block > 0.0:
            experts.cut = self._half_space(x)
        suffered = super().update(loss)
        if due and self._experts is experts:
            experts.cut = None
            self._begin_block()
        return suffered

    def _half_space(self, x: Point) -> HalfSpace | None:
        """The points that satisfy the linearised constraints of the block; None where there are none."""
        length = norm(self._normals)
        require_finite(length)
        if length <= 0.0 or self._block > 2.0 * self.domain.radius * length:
            return None  # no point of the set satisfies these constraints
        normal = (1.0 / length) * self._normals
        return HalfSpace(normal, inner(normal, x) - self._block / length)

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        self._begin_block()

    def _begin_block(self) -> None:
        self._block, self._normals = 0.0, 0.0 * self.domain.origin()

    @reads
    def violation_bound(self, tau: int | None = None) -> float:
        """Return a proved bound on the violation so far, in units of the constraints.

        NotImplementedError where none is known, as without a given `lipschitz`, or with tickets.

        Parameters
        ----------
        tau
            Rounds of an interval: the bound holds on all intervals of that length.
        """
        _, window = bounds.asked(0.0, tau)
        if self.options.step_scale is None or self._tickets is not None:
            raise NotImplementedError(
                "a bound on violations needs a given lipschitz, and losses that come at once"
            )

        def bound(epoch: Epoch) -> float:
            plan, rounds = self._plan(epoch.horizon), min(window or epoch.rounds, epoch.rounds)
            G, D, L = self.lipschitz, self.options.D, self._steepest
            start = bounds.ANYWHERE if window or epoch.start else bounds.AT_CENTER
            known = self.options.measured(self._experts)
            regret = expert_regret(plan, known, rounds, 0.0, start)
            eta = known.step_scale * plan.step
            tolerance = max(plan.tolerance, known.largest_distance**2)
            gain = G * self.domain.diameter * rounds
            blocks, K = -(-rounds // plan.block), plan.block
            pushes = K * math.sqrt(2.0 * eta * blocks * (regret + gain))
            found = L * (pushes + rounds * math.sqrt(tolerance) + eta * K * rounds * G)
            # An interval cuts off a block, whose violations are at most L D each.
            return found + (L * D * plan.block if window else 0.0)

        return self._over_epochs(bound)
