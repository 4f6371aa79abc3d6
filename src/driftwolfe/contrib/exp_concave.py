"""For exp-concave losses: the online Newton step, and AFLH where the best point changes."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.ensemble.experts import (
    LONGEST,
    combine,
    require_finite,
    require_in_range,
    stack,
    weighted_sum,
)
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import Options, make_options, require_arrays
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.losses import Loss
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.state import Field, Size, check_fields, declared
from driftwolfe.storage import require

#: Gap at which a minimisation stops; by LMO calls it is dearer.
ACCURACY, LMO_ACCURACY = 1e-10, 1e-5
#: Most accelerated steps of one; by LMO calls, most calls, and steps after each.
STEPS, CALLS, LMO_STEPS = 300, 12, 40
#: The matrix has as many rows and columns as a point has numbers.
MOST_NUMBERS = 5_000


class OnlineNewtonStep(SinglePointLearner):
    r"""Online Newton step: logarithmic regret for exp-concave losses, such as `PortfolioLoss`.

    .. math:: x_{t+1} = \arg\min_{x \in K}\ \frac\epsilon2\lVert x - c\rVert^2 + \sum_{s \le t}
              \Big(\rho\,\langle g_s, x - x_s\rangle + \tfrac12\langle g_s, x - x_s\rangle^2\Big)

    with :math:`g_s` the gradients at :math:`x_s` along the affine hull of K, and c the centre. For n numbers,
    :math:`O(n^2)` memory and, per round, one gradient and :math:`O(n^3)` operations; the minimum is found by
    projected steps, or, where projections are not cheap, by LMO calls. For :math:`\alpha`-exp-concave losses, a
    given G and at least the default rate, static regret is at most

    .. math:: \frac{\epsilon R^2}{2\rho} + \rho\,\ln\det\Big(I + \frac1\epsilon\sum_t g_t g_t^\top\Big)
              \le \rho\Big(\frac12 + n\ln\big(1 + \tfrac{T}{4n}\big)\Big),

    the last with the default ridge; `bound` adds what the inexact minima may cost.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss; 1 for
        `PortfolioLoss`. None: not known, :math:`\rho = 2\,G\,diam`, and no bound.
    rate
        :math:`\rho`, in units of the loss; :math:`2\max(1/\alpha, G\,diam)` if not given. A negative one goes
        against the gradients: ``rate=-0.75, ridge=1.0`` are the constants of Agarwal et al. for portfolios
        (docs/theory/exp_concave.md). They bet on assets that fell; no bound holds.
    ridge
        :math:`\epsilon`, in squared units of the loss over a length; :math:`(\rho/R)^2` if not given.
    {options}

    References
    ----------
    Hazan, Agarwal and Kale (2007), Logarithmic regret algorithms for online convex optimization, Machine
    Learning ("follow the approximate leader"); Agarwal, Hazan, Kale and Schapire (2006), Algorithms for
    portfolio management based on the Newton method, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.OnlineNewtonStep(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> history = dw.play(learner, [dw.losses.PortfolioLoss([1.1, 1.0])] * 200)
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    # Points are (x - c)/R, and gradients R g.
    _largest: Size  # norm of R g
    _unit: Size  # a power of two above the largest number of a gradient
    _squares: Annotated[Array, Field(np.float64, ("numbers", "numbers"))]  # sum of g g^T
    _slopes: Annotated[Array, Field(np.float64, ("numbers",))]  # sum of g
    _anchors: Annotated[Array, Field(np.float64, ("numbers",))]  # sum of g <g, x_s>
    _gap: Size  # of x
    _slack: Size  # sum of 2 |g| sqrt(2 gap / ridge)
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        alpha: float | None = None,
        rate: float | None = None,
        ridge: float | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz)
        require_arrays(domain, "OnlineNewtonStep", "POLAR", MOST_NUMBERS)
        self.alpha = None if alpha is None else checks.positive(alpha, "alpha")
        self.rate = None if rate is None else float(checks.finite_array(rate, "rate", ()))
        if self.rate == 0.0:
            raise ValueError("rate must not be 0: gradients would not matter")
        self.ridge = None if ridge is None else checks.positive(ridge, "ridge")
        self._squares = np.zeros((self._x.size, self._x.size))
        self._slopes, self._anchors = np.zeros((2, self._x.size))
        self._largest = self._unit = self._gap = self._slack = 0.0

    def _step(self, gradient: Point) -> None:
        center, R = self.domain.origin(), self.domain.radius
        g, x = R * self.domain.tangent(gradient).ravel(), (self._x - center).ravel() / R
        size = norm(g)
        require_in_range(size / R, self.domain.diameter)
        if size < 1.0 / LONGEST:  # its square is nothing
            return
        self._largest = max(self._largest, size)
        self._unit = max(self._unit, 2.0 ** math.frexp(float(np.abs(g).max()))[1])
        self._squares = self._squares + np.outer(g, g)
        self._slopes = self._slopes + g
        self._anchors = self._anchors + g * (g @ x)
        rate, ridge = self._constants()
        self._slack += 2.0 * size * math.sqrt(2.0 * self._gap / ridge)
        unit = max(self._unit, abs(rate)) ** 2
        quadratic = (self._squares + ridge * np.eye(g.size)) / unit
        x, gap = minimum(self._counted, quadratic, (rate * self._slopes - self._anchors) / unit, x)
        self._x, self._gap = center + R * x.reshape(self.domain.shape), gap * unit

    def _constants(self) -> tuple[float, float]:
        """Rate and ridge, of points over R."""
        R, rate = self.domain.radius, self.rate
        if rate is None:
            steepest = max(self._largest, R * (self.options.lipschitz or 0.0))
            known = 0.0 if self.alpha is None else 1.0 / self.alpha
            rate = 2.0 * max(steepest * (self.domain.diameter / R), known)
        return rate, rate**2 if self.ridge is None else (R * math.sqrt(self.ridge)) ** 2

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient seen, along the affine hull."""
        return max(self.options.lipschitz or 0.0, self._largest / self.domain.radius)

    def check(self) -> None:
        super().check()
        values = np.linalg.eigvalsh(self._squares)
        require(values[0] >= -1e-6 * max(1.0, values[-1]), "sums")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, rate = self.options.lipschitz, self.rate
        if path_length or tau is not None or self.alpha is None or (G is None and rate is None):
            return None
        needed = 2.0 * max(1.0 / self.alpha, self.lipschitz * self.domain.diameter)
        if rate is None and G is not None and self.lipschitz <= G:
            rate = needed
        if rate is None or rate < needed:
            return None  # it has changed, or the models are no lower bounds
        _, ridge = self._constants()
        _, logdet = np.linalg.slogdet(np.eye(len(self._slopes)) + self._squares / ridge)
        return ridge / (2.0 * rate) + rate * float(logdet) + self._slack


#: What an expert knows, as an `OnlineNewtonStep` does; its point is the first.
KNOWN = {n: f for n, f in declared(OnlineNewtonStep).items() if isinstance(f, Field)}
del KNOWN["t"], KNOWN["_tickets"]
LARGEST, SLACK = (list(KNOWN).index(name) for name in ("_largest", "_slack"))


class AFLH(Learner):
    r"""A Newton step learner that starts in every round, and natural weights: for exp-concave losses.

    The one that starts in round t plays until round :math:`t + 2^k - 1`, :math:`2^k` the largest power of two
    that divides t: at most :math:`\lfloor\log_2 t\rfloor + 1` are awake. They are weighted as specialists,

    .. math:: w_i \leftarrow w_i\, e^{-\alpha(f_t(x^i_t) - m_t)}, \qquad
              m_t = -\tfrac1\alpha\ln\sum_j \frac{w_j}{\sum w} e^{-\alpha f_t(x^j_t)}

    over those awake, from :math:`w_i = 1/(i(i + 1))`, i the round in which it starts. Each awake `OnlineNewtonStep`
    has one gradient and :math:`O(n^3)` operations per round. For a given G regret on tau rounds is at most

    .. math:: \lceil\log_2(\tau + 1)\rceil\Big(\frac{\ln(T(T + 1))}{\alpha}
              + \rho\big(\tfrac12 + n\ln(1 + \tfrac{\tau}{4n})\big)\Big), \qquad
              \rho = 2\max(1/\alpha, G\,diam)

    and what inexact minima may cost: logarithmic, where methods for convex losses have the root of tau.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss: 1 for
        `PortfolioLoss`, :math:`\lambda/G^2` for :math:`\lambda`-strongly convex losses.
    {options}

    References
    ----------
    Hazan and Seshadhri (2009), Efficient learning algorithms for changing environments, ICML, reconstructed:
    with longer lifetimes there, and weights 1/t; Freund, Schapire, Singer and Warmuth (1997), Using and
    combining predictors that specialize, STOC; Zhang, Liu and Zhou (2019), ICML, for the lifetimes.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.AFLH(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> rise, fall = dw.losses.PortfolioLoss([2.0, 1.0]), dw.losses.PortfolioLoss([1.0, 2.0])
    >>> history = dw.play(learner, [rise] * 150 + [fall] * 150)
    >>> bool(learner.decision[1] > 0.8), len(learner.expert_names)
    (True, 5)
    """

    _known: Annotated[list[list[Any]], Field(list, ("experts",), items=Field(list, (len(KNOWN),)))]
    _log_weights: Annotated[Array, Field(np.float64, ("experts",), most=1e-6)]
    _births: Annotated[Indices, Field(np.int64, ("experts",), 1)]  # first round of each
    _slack: Size  # the most that inexact minima may have cost an expert
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        alpha: float = 1.0,
    ) -> None:
        super().__init__(domain)
        self.alpha = checks.positive(alpha, "alpha")
        #: Copies of it take the steps of experts.
        self._newton = OnlineNewtonStep(domain, horizon, lipschitz, alpha=alpha)
        self._newton._counted, self.options = self._counted, self._newton.options
        self._known, self._log_weights, self._births = [], np.empty(0), np.empty(0, dtype=np.int64)
        self._slack = 0.0
        self._wake()

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of those awake; weigh them; let each learn; retire some and wake one."""
        f = as_loss(loss)
        scores = stack([f.scores(x) for x, *_ in self._known])
        value = float(f.value_at(combine(self.expert_weights, scores)))
        pairs = [f.value_and_slope_at(each) for each in scores]
        losses = np.array([float(each) for each, _ in pairs])
        require_finite(value, losses, *(slope for _, slope in pairs))
        gains = self._log_weights - self.alpha * (losses - losses.min())
        mixed = _log_sum(gains) - _log_sum(self._log_weights)
        learned = [self._learned(*each, f) for each in zip(self._known, pairs, strict=True)]
        self.t += 1
        stay = self._births + (self._births & -self._births) > self.t + 1
        self._slack = max([self._slack, *(each[SLACK] for each in learned)])
        self._known = [each for each, keep in zip(learned, stay, strict=True) if keep]
        self._log_weights, self._births = (gains - mixed)[stay], self._births[stay]
        self._wake()
        return value

    def _learned(self, known: list[Any], pair: Any, f: Loss) -> list[Any]:
        """What an expert knows after a loss of that value and slope."""
        expert = self._expert(known)
        expert._step(f.pull_back(pair[1], known[0]))
        return [getattr(expert, name) for name in KNOWN]

    def _expert(self, known: list[Any]) -> OnlineNewtonStep:
        expert = copy.copy(self._newton)
        vars(expert).update(zip(KNOWN, known, strict=True))
        return expert

    def _wake(self) -> None:
        """Start the expert of the coming round."""
        start = self.t + 1
        new = [copy.copy(getattr(self._newton, name)) for name in KNOWN]
        self._known = [*self._known, new]
        self._births = np.append(self._births, start)
        self._log_weights = np.append(self._log_weights, -math.log(start) - math.log(start + 1))

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts that are awake."""
        return weighted_sum(self.expert_weights, [x for x, *_ in self._known])

    @property
    def expert_weights(self) -> Array:
        """The weights of those awake in the coming round."""
        weights = np.exp(self._log_weights - self._log_weights.max())
        return weights / weights.sum()

    @property
    def expert_names(self) -> list[str]:
        """The rounds in which they started."""
        return [f"since {start:,}" for start in self._births]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient that those awake have seen."""
        seen = max(each[LARGEST] for each in self._known) / self.domain.radius
        return max(self.options.lipschitz or 0.0, seen)

    def check(self) -> None:
        super().check()
        for each in self._known:
            check_fields(KNOWN, dict(zip(KNOWN, each, strict=True)), "AFLH", **self.own_sizes())
            self._expert(each).check()
        now = self.t + 1
        levels = [1 << k for k in range(now.bit_length() - 1, -1, -1)]
        awake = [now // size * size for size in levels if now // size % 2]
        require(self._births.tolist() == awake, "experts and rounds")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G = self.options.lipschitz
        if path_length or G is None or self.lipschitz > G * (1.0 + 1e-9):
            return None
        rounds = self.t if tau is None else min(tau, self.t)
        if not rounds:
            return 0.0
        n, pieces = self.domain.origin().size, math.ceil(math.log2(rounds + 1))
        rate = 2.0 * max(1.0 / self.alpha, G * self.domain.diameter)
        newton = rate * (0.5 + n * math.log1p(rounds / (4.0 * n))) + self._slack
        return pieces * (math.log(self.t * (self.t + 1.0)) / self.alpha + newton)


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(np.exp(logs - largest).sum())


def minimum(domain: Domain, H: Array, c: Array, x: Array) -> tuple[Array, float]:
    """Return a minimiser of <x, H x>/2 + <c, x> over a set, and a bound on its primal gap.

    Points are (z - centre)/R, for z in the set; x is the one to start from.
    """
    center, radius, shape = domain.origin(), domain.radius, domain.shape

    def project(y: Array) -> Array:
        z = domain.project_many(center + radius * y.reshape(1, *shape))
        return (z - center).ravel() / radius

    if domain.cheap_projection:
        return accelerated(H, c, x, project, domain.diameter / radius, ACCURACY, STEPS)
    points, weights, gap = x[None], np.ones(1), math.inf
    for _ in range(CALLS):
        slope = H @ x + c
        vertex = (domain.lmo(slope.reshape(shape)) - center).ravel() / radius
        gap = max(0.0, float(slope @ (x - vertex)))
        if gap <= LMO_ACCURACY:
            break
        points, weights = np.vstack((points, vertex)), np.append(weights, 0.0)
        among = Simplex(len(points)).project
        inner, stop = points @ H @ points.T, (math.sqrt(2.0), 0.5 * LMO_ACCURACY, LMO_STEPS)
        weights, _ = accelerated(inner, points @ c, weights, among, *stop)
        x = weights @ points
        points, weights = points[weights > 0.0], weights[weights > 0.0]
    return x, gap


def accelerated(
    H: Array,
    c: Array,
    x: Array,
    project: Callable[[Any], Array],
    diameter: float,
    accuracy: float,
    steps: int,
) -> tuple[Array, float]:
    """Minimise a quadratic by accelerated projected steps with restarts; return a bound on the gap too."""
    flattest, *_, steepest = np.linalg.eigvalsh(H).tolist() if len(H) > 1 else 2 * [float(H[0, 0])]
    if steepest <= 0.0:  # all rounding: nothing to gain
        return x, 0.0
    y, momentum, gap = x, 1.0, math.inf
    for _ in range(steps):
        z = project(y - (H @ y + c) / steepest)
        # <H z + c, z - v> <= <(H - L)(z - y), z - v> for all v of the set; and by strong convexity.
        residual = steepest * math.sqrt((z - y) @ (z - y))
        gap = min(residual * diameter, residual * residual / (2.0 * max(flattest, 1e-200)))
        if gap <= accuracy:
            return z, gap
        if (y - z) @ (z - x) > 0.0:  # momentum points uphill
            momentum, y, x = 1.0, z, z
            continue
        following = 0.5 + math.sqrt(0.25 + momentum**2)
        y, x, momentum = z + ((momentum - 1.0) / following) * (z - x), z, following
    return x, gap
