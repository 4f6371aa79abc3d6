"""`Bandit` and `SemiBandit`: losses of which only values, or only some components, are seen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftwolfe.domains import CountedDomain, Domain
from driftwolfe.ensemble.experts import require_finite
from driftwolfe.learners.base import Learner, Outer, as_loss
from driftwolfe.learners.bogd_ip import BOGDIP
from driftwolfe.learners.options import Options, make_options
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.polar import POLAR
from driftwolfe.learners.pold import POLD
from driftwolfe.learners.tickets import Ticket
from driftwolfe.losses import LinearLoss
from driftwolfe.points import checks, norm
from driftwolfe.points.access import reads
from driftwolfe.points.kinds import Array
from driftwolfe.state import POINT, Field, Size, State

#: Learners whose blocks average the noise of estimates: they can take longer steps.
BLOCKED = (BOGDIP, POLD, POLA)
#: Rounds over which values are averaged for the baseline.
BASELINE_ROUNDS = 64
#: How far the mean of the vertices drawn may be from the decision, in units of the radius.
ATOL = 1e-6


class Exploration(NamedTuple):
    """How a round explores: points lie delta from the centre x, which lies in the set shrunk by alpha."""

    delta: float
    alpha: float
    factor: float  # of the estimate, in units of 1 over a length


class SeesEstimates(Learner):
    """What `Bandit` and `SemiBandit` share: the learner within sees estimates of losses."""

    learner: Learner
    options: Options
    _largest: Size  # deviation, or norm, observed

    def __init__(self, domain: Domain, horizon: Any, lipschitz: Any, seed: Any) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz)
        self.seed = checks.count(seed, "seed", least=0, most=math.inf)
        self._largest = 0.0

    def _seeing(
        self, learner: Any, options: dict[str, Any], estimates: Sequence[float], growing: bool
    ) -> Learner:
        """Return the learner within; the estimates that it sees may grow without a horizon.

        `estimates` has bounds on the norm of their mean, on its root mean square, and on the largest norm.
        """
        name, domain = type(self).__name__, self.domain
        if not isinstance(domain.origin(), np.ndarray):
            raise ValueError(
                f"{name} plays points that are arrays, and those of this "
                f"{type(domain.unwrapped).__name__} are not"
            )
        if isinstance(learner, Learner) and options:
            raise ValueError(
                f"options go with a learner's class, got {', '.join(options)} with a learner"
            )
        if not (isinstance(learner, Learner) or callable(learner)):
            raise TypeError(f"learner must be a learner or a class of one, got {learner!r:.80}")
        horizon, (mean, spread, largest) = self.options.horizon, estimates
        unknown = horizon is None and growing
        given = {"horizon": horizon} | options | {"lipschitz": "auto" if unknown else largest}
        if isinstance(learner, type) and issubclass(learner, BLOCKED):
            # Over a block of sqrt(T) rounds, noise averages out: what is left of it adds to the mean.
            left = mean + spread * self._horizon**-0.25
            given.setdefault("step_scale", 2.0 * domain.radius / left)
        found = self._inner(learner, **given)
        own = found.options
        if isinstance(found, BLOCKED) and own is not None and own.step_scale is not None:
            found.options = replace(own, random_gradients=(mean, spread))
        # What `load` makes this one again from.
        self._arguments = {k: v for k, v in self._arguments.items() if k not in options}
        self._arguments["learner"] = found.clone()
        return found

    def _bound_with(
        self, unit: float, exploring: float, path_length: float, tau: int | None
    ) -> float | None:
        """Return the learner's bound on estimates of losses over `unit`, and what exploring costs per round."""
        if self.options.lipschitz is None or self.options.horizon is None:
            return None
        if self._largest > unit * (1.0 + 1e-9):
            raise NotImplementedError(
                f"no bound is known: losses deviated by {self._largest:g}, more than {unit:g}; give a "
                "larger lipschitz"
            )
        rounds = self.t if tau is None else min(tau, self.t)
        return unit * self.learner.bound(path_length, tau) + exploring * rounds

    @property
    def _horizon(self) -> int:
        """T: rounds of the game, or of this epoch."""
        *_, epoch = self._epochs()
        return epoch.horizon

    def _random(self) -> np.random.Generator:
        """Return random numbers of this round, the same at each call."""
        return np.random.default_rng((self.seed, self.t))

    def ask(self) -> Ticket:
        """Raise NotImplementedError: estimates are of the round that is played."""
        raise NotImplementedError(
            f"{type(self).__name__} learns from the point it plays, so losses cannot come late"
        )


class Bandit(SeesEstimates, Outer):
    r"""Plays a learner where only the values of losses at the points played are seen.

    With a random unit vector u along the set's affine hull of d dimensions, one point and two are

    .. math::

        y = x + \delta u, \quad g = \frac{d}{\delta}(f(y) - b)\, u
        \qquad\text{and}\qquad
        y_\pm = x \pm \delta u, \quad g = \frac{d}{2\delta}(f(y_+) - f(y_-))\, u

    where b is a mean of earlier values. The learner sees the linear loss :math:`\langle g, x\rangle`, over F or
    the largest deviation so far: in the mean, g is the gradient at x of f smoothed over a ball of radius
    :math:`\delta`. The centre x is the learner's decision moved towards the set's centre, so far that the
    points stay in the set.

    ``query()`` returns the point to play, or two in a stack, and ``update(value)`` takes the loss there, or the two
    losses; `update` also takes a loss, of which it evaluates nothing else, so `play` works. What is suffered is the
    mean of the values. With inner radius r, :math:`\delta` is of order :math:`T^{-1/4}` for one point, and
    :math:`r/\sqrt T` for two, at most r/2. The expected regret against any comparators chosen in advance is at
    most that of the learner on the estimates plus :math:`G\delta(2 + R/r) T`, and :math:`F = G\,diam(K)` for the
    first round of one point: with POLD and POLA :math:`O(T^{3/4})` for fixed comparators. `bound` has all constants
    (`docs/theory/bandit.md`); it needs a horizon and `lipschitz`, and values that deviate by at most F.

    Parameters
    ----------
    points
        Values seen per round: 1 or 2.
    horizon
        Rounds T, which say how far to explore; None: epochs of doubling length.
    lipschitz
        G, a bound on the gradient norms of the losses; ``"auto"``: the scale of values is learned.
    {options}

    References
    ----------
    Flaxman, Kalai and McMahan (2005), Online convex optimization in the bandit setting, SODA; Agarwal,
    Dekel and Xiao (2010), COLT, for two points; Zhao, Wang, Zhang and Zhou (2021), Bandit convex
    optimization in non-stationary environments, JMLR; Garber and Kretzu (2022), COLT, for blocks.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.contrib.Bandit(dw.L2Ball(2), dw.POLD, points=2, horizon=400, lipschitz=2.0)
    >>> for _ in range(400):
    ...     first, second = learner.query()
    ...     suffered = learner.update([abs(first - 0.5).sum(), abs(second - 0.5).sum()])
    >>> bool(np.abs(learner.decision - 0.5).max() < 0.1)
    True
    """

    _baseline: State[float]

    def __init__(
        self,
        domain: Domain,
        learner: Learner | Callable[..., Learner] = POLAR,
        points: int = 1,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(domain, horizon, lipschitz, seed)
        self.points = checks.count(points, "points", most=2)
        if domain.inner_radius <= 0:
            raise ValueError(
                f"{type(domain.unwrapped).__name__} has no known inner_radius, inside which Bandit could "
                "explore; give the set one, or use SemiBandit where vertices are played"
            )
        #: G over the largest deviation, in units of 1 over a length.
        self._slope = 1.0 / domain.diameter
        self._baseline = 0.0
        estimates = self._slope, self.exploration.factor, self.exploration.factor
        self.learner = self._seeing(learner, options, estimates, self.points == 1)

    @property
    def exploration(self) -> Exploration:
        """How this round explores."""
        inner, d, T = self.domain.inner_radius, self.domain.dimension, float(self._horizon)
        if self.points == 2:
            delta = inner * min(0.5, T**-0.5)
            return Exploration(delta, delta / inner, d * self._slope)
        kappa = self.domain.radius / inner
        best = math.sqrt(2.0 * d * self.domain.radius / ((2.0 + kappa) * self._slope)) * T**-0.25
        delta = min(0.5 * inner, best)
        return Exploration(delta, delta / inner, d / delta)

    @property
    def decision(self) -> Array:
        """The centre x of the points played."""
        alpha = self.exploration.alpha
        inside = (1.0 - alpha) * self.learner.decision
        return inside if self.domain.center is None else inside + alpha * self.domain.center

    @reads
    def query(self) -> Array:
        """Return the point to play in the coming round, or two in a stack; the same until `update`."""
        points, _ = self._played()
        return points[0].copy() if self.points == 1 else points.copy()

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Take the values at the points played, or a loss; let the learner see the estimate."""
        explored, (played, u) = self.exploration, self._played()
        values = _values(loss, played)
        value = float(values.mean())
        if self.points == 2:  # as a difference over the diameter
            deviation = 0.5 * float(values[0] - values[1]) / (explored.delta * self._slope)
        else:
            deviation = value - (self._baseline if self.t else value)
        largest = max(self._largest, abs(deviation))
        G = self.options.lipschitz
        unit = largest if G is None else G / self._slope
        size = (1.0 - explored.alpha) * explored.factor * (deviation / unit if unit else 0.0)
        self.learner.update(LinearLoss(size * u))
        self.t += 1
        self._baseline += (value - self._baseline) / min(self.t, BASELINE_ROUNDS)
        self._largest = largest
        return value

    def _played(self) -> tuple[Array, Array]:
        """The points of this round, and the unit vector between them, uniform along the affine hull."""
        along = self.domain.tangent(self._random().standard_normal(self.domain.shape))
        u, x, delta = along / norm(along), self.decision, self.exploration.delta
        points = np.stack([x + delta * u, x - delta * u][: self.points])
        points.flags.writeable = False
        return points, u

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, kappa = self.options.lipschitz or 0.0, self.domain.radius / self.domain.inner_radius
        exploring = G * self.exploration.delta * (2.0 + kappa)
        known = self._bound_with(G / self._slope, exploring, path_length, tau)
        first = G / self._slope if self.points == 1 else 0.0  # of which nothing is seen
        return None if known is None else known + first


def _values(given: Any, points: Array) -> Array:
    """The values of a loss at some points: given, or evaluated."""
    if callable(value := getattr(given, "value", None)):
        given = [value(point) for point in points]
    elif isinstance(given, str | bytes) or not (np.isscalar(given) or np.iterable(given)):
        raise TypeError(
            "update takes the loss at what query() returned, a number for each point, or a loss with "
            f"a method value(x); got {type(given).__name__}"
        )
    values = checks.finite_array(given, "value")
    if values.size != len(points) or values.ndim > 1:
        raise ValueError(
            f"value must be a number for each of {len(points)} points, got {given!r:.60}"
        )
    return values.reshape(-1)


class SemiBandit(SeesEstimates, Outer):
    r"""Plays vertices where only those components of linear losses are seen that the vertex chose.

    For routes, assignments, spanning trees and subsets: the decision x of a learner is taken apart
    (`Domain.decompose`), and a vertex v of mean x is drawn, or, with probability :math:`\gamma`, one of a
    few vertices that together choose every component. A component is chosen where v is not 0; with
    :math:`q_i` the probability of that, the learner sees

    .. math:: \hat\ell_i = b_i + (\ell_i - b_i)\,[v_i \ne 0]/q_i, \qquad E\,\hat\ell = \ell

    over G, or the largest norm observed so far; b is a mean of what was observed of each component before, at most
    G long. ``query()`` returns the vertex to play, ``update(observed)`` takes an array with the losses of chosen
    components, whatever it has elsewhere; `update` also takes a loss, of whose gradient it reads no more, so `play`
    works. The calls of the decomposition are counted too.

    The expected regret of the vertices, against comparators chosen in advance, is at most that of the
    learner on estimates that are at most :math:`G(1 + 2m/\gamma)` long and deviate from their mean by
    :math:`2G\sqrt{m/\gamma}` in root mean square, plus :math:`\gamma\, G\, diam(K)\, T`; `bound` has all
    constants (proof: `docs/theory/bandit.md`). It needs a horizon and `lipschitz`, and linear losses.

    Parameters
    ----------
    horizon
        Rounds T, which say how much to explore; None: epochs of doubling length.
    lipschitz
        G, a bound on the norms of the losses; ``"auto"``: learned.
    exploration
        :math:`\gamma`; :math:`\min(1/2, (m/T)^{1/3})` if not given, for m exploring vertices.
    {options}

    References
    ----------
    Audibert, Bubeck and Lugosi (2014), Regret in online combinatorial optimization, Mathematics of
    Operations Research; reconstructed for projection-free learners.

    Examples
    --------
    The quicker of two routes, of which only the one taken is timed:

    >>> import numpy as np, driftwolfe as dw
    >>> routes = dw.FlowPolytope([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")], "s", "t")
    >>> learner, minutes = dw.contrib.SemiBandit(routes, horizon=200), np.array([3.0, 1.0, 2.0, 2.0])
    >>> for _ in range(200):
    ...     suffered = learner.update(np.where(learner.query() > 0, minutes, np.nan))
    >>> bool(learner.decision[1] > 0.9)
    True
    """

    _baseline: Annotated[Array, POINT]
    _counts: Annotated[Array, Field(like="point", least=0.0)]

    def __init__(
        self,
        domain: Domain,
        learner: Learner | Callable[..., Learner] = POLA,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        exploration: float | None = None,
        seed: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(domain, horizon, lipschitz, seed)
        if exploration is not None and checks.positive(exploration, "exploration") > 1.0:
            raise ValueError(f"exploration must be at most 1, got {exploration!r}")
        self._given, self._cover = exploration, _cover(domain)
        self._baseline, self._counts = np.zeros(domain.shape), np.zeros(domain.shape)
        least = self.exploration / len(self._cover)  # chance of any component
        estimates = 1.0, 2.0 * least**-0.5, 1.0 + 2.0 / least
        self.learner = self._seeing(learner, options, estimates, growing=True)

    @property
    def exploration(self) -> float:
        """The probability of an exploring vertex in this round."""
        if self._given is not None:
            return self._given
        return float(min(0.5, (len(self._cover) / self._horizon) ** (1 / 3)))

    @reads
    def query(self) -> Array:
        """Return the vertex to play in the coming round; the same until `update`."""
        return self._draw(self.domain)[0].copy()

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Take the losses of the chosen components, or a loss; let the learner see the estimate."""
        counted = CountedDomain(self.domain)
        vertex, chances = self._draw(counted)
        chosen = vertex != 0
        if callable(getattr(loss, "value", None)):
            value, gradient = as_loss(loss).value_and_gradient(vertex)
            seen = np.where(chosen, gradient, 0.0)
        else:
            seen = _observed(loss, chosen)
            value = float(np.vdot(seen, vertex))
        require_finite(value, seen)
        largest = max(self._largest, norm(seen))
        unit = self.options.lipschitz or largest or 1.0
        b = self._baseline * min(1.0, unit / (norm(self._baseline) or unit))
        with np.errstate(over="ignore", invalid="ignore"):  # a loss that is not finite is refused
            estimate = (b + np.where(chosen, (seen - b) / chances, 0.0)) / unit
            step = (seen - self._baseline) / np.minimum(self._counts + 1.0, BASELINE_ROUNDS)
        self.learner.update(LinearLoss(estimate))
        self._counts = np.minimum(self._counts + chosen, BASELINE_ROUNDS)
        self._baseline = self._baseline + np.where(chosen, step, 0.0)
        self._counted.calls.add(*counted.calls.numbers())
        self.t += 1
        self._largest = largest
        return value

    def _draw(self, domain: Domain) -> tuple[Array, Array]:
        """The vertex of this round, and the chance of each component; 1 of those that are never chosen."""
        vertices, weights = domain.decompose(self.learner.decision, atol=ATOL)
        found, gamma, random = np.stack(vertices), self.exploration, self._random()
        chances = (1.0 - gamma) * np.tensordot(weights, found != 0, 1)
        chances += gamma * (self._cover != 0).mean(axis=0)
        family, drawn_by = (self._cover, None) if random.random() < gamma else (found, weights)
        vertex = family[random.choice(len(family), p=drawn_by)]
        vertex.flags.writeable = False
        return vertex, np.where(chances > 0, chances, 1.0)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G = self.options.lipschitz or 0.0
        exploring = self.exploration * G * self.domain.diameter + ATOL * G * self.domain.radius
        return self._bound_with(G, exploring, path_length, tau)


def _cover(domain: Domain) -> Array:
    """Vertices, along the first axis, that together have every component that can be other than 0."""
    left, vertices = np.ones(domain.shape), list[Array]()
    while left.any():
        vertex = domain.lmo(-left)
        if not (left[vertex != 0] > 0).any():
            break  # those left are 0 everywhere
        left = np.where(vertex != 0, 0.0, left)
        vertices.append(vertex)
    if not vertices:
        raise ValueError(f"{domain!r:.80} has no vertex with a component above 0 to choose")
    return np.stack(vertices)


def _observed(given: Any, chosen: Array) -> Array:
    """The losses of the chosen components, 0 elsewhere."""
    if isinstance(given, str | bytes) or not np.iterable(given):
        raise TypeError(
            "update takes the losses of the components that query() chose, in an array like it, or a "
            f"loss; got {type(given).__name__}"
        )
    checks.refuse_masked(given, "observed")
    array = np.asarray(given)
    if array.shape != chosen.shape or array.dtype.kind not in "fiub":
        raise ValueError(
            f"observed must be numbers in an array of shape {chosen.shape}, got shape {array.shape}"
        )
    seen = np.where(chosen, array.astype(np.float64), 0.0)
    return checks.finite_array(seen, "observed")
