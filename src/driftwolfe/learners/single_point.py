"""Learners of one point: one that never moves, projected gradient descent, online Frank-Wolfe."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Annotated, Any

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble.experts import require_finite, require_in_range
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import Options, make_options, require_projection
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import line_search_step
from driftwolfe.state import POINT, Size


class SinglePointLearner(Learner):
    """Holds a feasible point x, plays it, and moves it by the gradient there."""

    _x: Annotated[Point, POINT]
    _largest: float = 0.0  # gradient norm seen, of learners that use it
    options: Options

    def __init__(
        self, domain: Domain, horizon: Any = None, lipschitz: Any = "auto", **options: Any
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz, **options)
        self._x = domain.origin()

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play x, then move it by the gradient of the loss there."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        gradient = self.domain.tangent(f.pull_back(slope, self._x))
        size = norm(gradient)
        require_in_range(size, self.domain.diameter)
        self._step(gradient, size)
        self.t += 1
        return float(value)

    @abstractmethod
    def _step(self, gradient: Point, size: float) -> None:
        """Move x, at which the loss of round t + 1 has this gradient, of this norm."""

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, [self._x])

    @property
    def decision(self) -> Point:
        return self._x.copy()

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest)

    def _move(self, vertex: Point, fraction: float) -> None:
        """Go a fraction of the way to a vertex; all of it leaves nothing of x behind."""
        within = fraction < 1.0
        self._x = (1.0 - fraction) * self._x + fraction * vertex if within else vertex.copy()


class Constant(SinglePointLearner):
    """Plays the same point in every round: what any learner should beat, and an expert for a `Mixture`.

    On a simplex the centre is equal weights. No oracle calls, and no bound on its regret.

    Parameters
    ----------
    horizon, lipschitz
        Accepted so that all learners share a signature; not used.
    point
        A point of the set; its centre if not given.
    {options}

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.Constant(dw.Simplex(2))
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0])), learner.decision
    (0.5, array([0.5, 0.5]))
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        point: Any = None,
    ) -> None:
        super().__init__(domain, horizon, lipschitz)
        if point is not None:
            self._x = domain.check_point(point, "point") + 0.0 * self._x  # a copy of the set's kind
            if not domain.contains(self._x):
                raise ValueError(f"point must lie in the set {domain!r}")

    def _step(self, gradient: Point, size: float) -> None:
        """Stay."""


class OGD(SinglePointLearner):
    r"""Online gradient descent: :math:`x_{t+1} = P_K(x_t - \eta_t \nabla f_t(x_t))`.

    :math:`\eta = c/\sqrt T` with a horizon, :math:`\eta_t = c/\sqrt t` without; c = D/G. One gradient and one
    projection per round. Regret is at most :math:`(D^2/8 + D P/2)/\eta + \eta T G^2/2` with a horizon and a
    given G, else :math:`(D^2/2 + D P)/\eta_T + G^2\sum_t\eta_t/2`.

    Parameters
    ----------
    domain, horizon
        A set that can project; rounds T, or None.
    {options}

    References
    ----------
    Zinkevich (2003), Online convex programming and generalized infinitesimal gradient ascent, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0])), learner.decision
    (0.0, array([-1.,  0.]))
    """

    _largest: Size
    _steps: Size  # sum of eta_t

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
    ) -> None:
        super().__init__(domain, horizon, lipschitz, step_scale=step_scale)
        require_projection(domain, "OGD", "BOGDIP")
        self._largest = self._steps = 0.0

    def _step(self, gradient: Point, size: float) -> None:
        self._largest = max(self._largest, size)
        eta = self._eta(self.lipschitz, self.t + 1)
        self._x = self._counted.project(self._x - eta * gradient)
        self._steps += eta

    def _eta(self, G: float, t: int) -> float:
        return self.options.scale_for(G) / math.sqrt(self.options.horizon or t)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, D = self.lipschitz, self.options.D
        if tau is not None:
            return None
        if G == 0:
            return 0.0
        eta = self._eta(G, max(1, self.t))
        if self.options.horizon and self.options.step_scale is not None:
            return bounds.blocked_descent(G, D, self.t, eta, 1, 0.0, path_length, bounds.AT_CENTER)
        # Steps shrink: 1/eta_T for the distances, and each step's own size for the rest.
        return (0.5 * D**2 + D * path_length) / eta + 0.5 * G**2 * self._steps


class OnlineFrankWolfe(SinglePointLearner):
    r"""Online Frank-Wolfe (online conditional gradient), with one LMO call per round.

    .. math::

        v_t = \arg\min_{v \in K}\Big\langle x_t - x_1 + \eta\sum_{\tau \le t} g_\tau,\ v\Big\rangle,
        \qquad x_{t+1} = (1 - s) x_t + s v_t

    with :math:`\eta = c\,\tfrac12 (3/T)^{3/4}`, c = D/G, and :math:`s = \min(1, \sqrt{3/T})`; without a
    horizon, t in place of T. Static regret :math:`O(T^{3/4})`: with a horizon and a given G about
    :math:`1.43\, G D T^{3/4}`, derived for this library; `AnytimeOFW` has a bound without. It does not follow
    drift.

    Parameters
    ----------
    horizon
        Rounds T, or None.
    {options}

    References
    ----------
    Hazan and Kale (2012), Projection-free online learning, ICML; Weibel et al. (2026), Optimized
    projection-free algorithms for online learning, AISTATS (step rule, and tuning, read in its code).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OnlineFrankWolfe(dw.L1Ball(2), horizon=100, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 100)
    >>> learner.lmo_calls, bool(learner.decision[0] < -0.9)
    (100, True)
    """

    _first: Annotated[Point, POINT]
    _gradients: Annotated[Point, POINT]
    _largest: Size

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
    ) -> None:
        super().__init__(domain, horizon, lipschitz, step_scale=step_scale)
        self._first = self._x
        self._gradients = 0.0 * self._x
        self._largest = 0.0

    def _step(self, gradient: Point, size: float) -> None:
        self._largest = max(self._largest, size)
        eta, fraction = self._rates(self.lipschitz, self.t + 1)
        self._gradients = self._gradients + gradient
        direction = self._x - self._first + eta * self._gradients
        self._move(self._counted.lmo(direction), fraction)

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, [self._first])

    def _rates(self, G: float, t: int) -> tuple[float, float]:
        T, scale = self.options.horizon or t, self.options.scale_for(G)
        return scale * 0.5 * (3.0 / T) ** 0.75, min(1.0, math.sqrt(3.0 / T))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        fixed = self.options.horizon and self.options.step_scale is not None
        if path_length or tau is not None or not fixed:
            return None
        G, D = self.lipschitz, self.options.D
        eta, fraction = self._rates(G, 1)
        error = self.domain.lmo_error * self.domain.radius * (D + eta * G * self.t)
        return bounds.frank_wolfe_tracking(G, D, self.domain.diameter, self.t, eta, fraction, error)


def bound_against_minimisers(
    self: KalhanOFW | LineSearchOFW,
    path_length: float = 0.0,
    tau: int | None = None,
    *,
    variation: float | None = None,
    first_gap: float | None = None,
    smoothness: float | None = None,
) -> float:
    """Return the bound against the minimiser of each round, for smooth losses.

    Parameters
    ----------
    path_length, tau
        Not offered: a bound against the minimisers holds for all comparators.
    variation, first_gap, smoothness
        V_T, the function variation; f_1(x_1) - min f_1; and beta, by default the learner's own.
    """
    name, beta = type(self).__name__, self.smoothness if smoothness is None else smoothness
    if bounds.asked(path_length, tau) != (0.0, None):
        raise NotImplementedError(
            f"the bound of {name} is against the minimiser of each round: leave path_length= "
            "and tau= out"
        )
    if self.domain.lmo_error:
        raise NotImplementedError(f"the bound of {name} is for exact oracles")
    steps = self.smoothness or self.horizon
    if variation is None or first_gap is None or beta is None or not steps:
        needed = "" if self.smoothness else "a horizon, smoothness=, "
        raise NotImplementedError(f"the bound of {name} needs {needed}variation= and first_gap=")
    fraction, diameter = self.horizon**-0.5 if self.horizon else None, self.domain.diameter
    return bounds.smooth_frank_wolfe(beta, diameter, self.t, variation, first_gap, fraction)


class KalhanOFW(SinglePointLearner):
    r"""A Frank-Wolfe step on the latest loss with a constant step (Kalhan et al. 2021).

    .. math:: v_t = \arg\min_{v \in K}\langle\nabla f_t(x_t), v\rangle, \qquad
              x_{t+1} = x_t + T^{-1/2}(v_t - x_t)

    One gradient and one LMO call per round. For :math:`\beta`-smooth losses, and no others,
    :math:`\sum_t f_t(x_t) - \min f_t \le \sqrt T(e_1 + 2V_T) + \beta\, diam^2\sqrt T/2`, with :math:`e_1` the
    first gap and V_T the function variation: derived for this library. Without a horizon the first steps go
    nearly all the way to a vertex, which is dear where losses explode there, as travel times on roads do.

    Parameters
    ----------
    horizon
        Rounds T; without one, :math:`t^{-1/2}`.
    lipschitz
        Accepted so that all learners share a signature; not used.
    {options}

    References
    ----------
    Kalhan, Bedi, Koppel, Rajawat, Hassani, Gupta and Banerjee (2021), Dynamic online learning via Frank-Wolfe
    algorithm, IEEE Transactions on Signal Processing 69; reconstructed from the abstract.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> target = dw.losses.SquaredDistance(np.array([0.0, 1.0]))
    >>> history = dw.play(dw.learners.KalhanOFW(dw.L2Ball(2), horizon=100), [target] * 100)
    >>> bool(history.losses[-1] < 0.01)
    True
    """

    def __init__(
        self, domain: Domain, horizon: int | None = None, lipschitz: float | str = "auto"
    ) -> None:
        super().__init__(domain, horizon)
        self.horizon = self.options.horizon
        self.smoothness = None  # steps are constant

    def _step(self, gradient: Point, size: float) -> None:
        self._move(self._counted.lmo(gradient), 1.0 / math.sqrt(self.horizon or self.t + 1))

    bound = bound_against_minimisers


class LineSearchOFW(SinglePointLearner):
    r"""A Frank-Wolfe step on the latest loss with a line search (Wan, Zhang & Song 2023).

    .. math::

        x_{t+1} = x_t + s_t(v_t - x_t), \qquad
        s_t = \min\Big(1, \frac{\langle\nabla f_t(x_t), x_t - v_t\rangle}
                               {\beta\lVert v_t - x_t\rVert^2}\Big)

    One gradient and one LMO call per round. For :math:`\beta`-smooth losses, and no others,
    :math:`\sum_t f_t(x_t) - \min f_t \le \sqrt{2\beta\,diam^2\,T E} + 2E`, :math:`E = e_1 + 2V_T`: derived for this
    library. Too small a `smoothness` makes every step 1: it then plays one vertex after another, however dear.

    Parameters
    ----------
    horizon, lipschitz
        Accepted so that all learners share a signature; not used.
    smoothness
        :math:`\beta`: a bound on the curvature of the losses, in [f]/[x]².
    {options}

    References
    ----------
    Wan, Zhang and Song (2023), Improved dynamic regret for online Frank-Wolfe, COLT; reconstructed from the
    abstract, the step rule from memory.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> target = dw.losses.SquaredDistance(np.array([0.0, 1.0]))
    >>> history = dw.play(dw.learners.LineSearchOFW(dw.L2Ball(2), smoothness=2.0), [target] * 20)
    >>> bool(history.losses[-1] < 1e-6)
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        smoothness: float = 1.0,
    ) -> None:
        super().__init__(domain)
        self.horizon = None  # any number of rounds
        self.smoothness = checks.positive(smoothness, "smoothness")

    def _step(self, gradient: Point, size: float) -> None:
        vertex = self._counted.lmo(gradient)
        away = vertex - self._x
        # The norm keeps its digits where x is near the vertex; <away, away> may turn negative.
        length = norm(away)
        curvature = self.smoothness * length * length
        self._move(vertex, line_search_step(-inner(gradient, away), curvature))

    bound = bound_against_minimisers
