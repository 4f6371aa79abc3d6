"""The online Newton step: follow the leader of quadratic models, for exp-concave losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.learners.options import Options, make_options
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Field, Size
from driftwolfe.storage import require

#: Gap at which a minimisation stops, in units of the larger of squared rate and gradient; by LMO calls
#: it is dearer.
ACCURACY, LMO_ACCURACY = 1e-10, 1e-5
#: Most accelerated steps of one; by LMO calls, most calls, and steps after each.
STEPS, CALLS, LMO_STEPS = 300, 12, 40
#: The matrix has as many rows and columns as a point has numbers.
LARGEST = 5_000


class OnlineNewtonStep(SinglePointLearner):
    r"""Online Newton step: logarithmic regret for exp-concave losses, such as `PortfolioLoss`.

    .. math:: x_{t+1} = \arg\min_{x \in K}\ \frac\epsilon2\lVert x - c\rVert^2 + \sum_{s \le t}
              \Big(\rho\,\langle g_s, x - x_s\rangle + \tfrac12\langle g_s, x - x_s\rangle^2\Big)

    with :math:`g_s` the gradients at :math:`x_s` (along the affine hull of K: what is the same for all
    points of K does not matter) and c the centre. This is the variant "follow the approximate leader".
    By default :math:`\rho = 2\max(1/\alpha, G\,diam)` and :math:`\epsilon = (\rho/R)^2`. For n numbers,
    :math:`O(n^2)` memory and, per round, one gradient and :math:`O(n^3)` operations; the minimum is found
    by accelerated projected steps, or, where the set has no cheap projection, over vertices by LMO calls.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss; 1 for
        `PortfolioLoss`. None: not known, :math:`\rho = 2\,G\,diam`, and no bound.
    rate
        :math:`\rho`, in units of the loss. A negative one goes against the gradients: the constants of
        Agarwal et al. for portfolios, beta = 1 and delta = 1/8, amount to ``rate=-0.75, ridge=1.0``
        (docs/theory/exp_concave.md). They bet on assets that fell; no bound holds.
    ridge
        :math:`\epsilon`, in units of the squared loss over those of squared lengths.
    {options}

    Notes
    -----
    For :math:`\alpha`-exp-concave losses, a given G and at least the default rate, static regret is at most

    .. math:: \frac{\epsilon R^2}{2\rho} + \rho\,\ln\det\Big(I + \frac1\epsilon\sum_t g_t g_t^\top\Big)
              \le \rho\Big(\frac12 + n\ln\big(1 + \tfrac{T}{4n}\big)\Big),

    the last with the default ridge; `bound` adds what the inexact minima may cost.

    References
    ----------
    Hazan, Agarwal and Kale (2007), Logarithmic regret algorithms for online convex optimization, Machine
    Learning; Agarwal, Hazan, Kale and Schapire (2006), Algorithms for portfolio management based on the
    Newton method, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.OnlineNewtonStep(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> for _ in range(200):
    ...     suffered = learner.update(dw.losses.PortfolioLoss([1.1, 1.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    # Points are (x - c)/R, and R g, the loss and the rate in units of 2^exponent.
    _exponent: Annotated[int, Field(int, None, -2_000, 2_000)]
    _largest: Size  # norm of R g
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
        if not isinstance(self._x, np.ndarray) or self._x.size > LARGEST:
            raise ValueError(
                f"OnlineNewtonStep works on dense arrays of at most {LARGEST:,} numbers, not on "
                f"{type(domain.unwrapped).__name__} of shape {domain.shape}; use POLAR"
            )
        self.alpha = None if alpha is None else checks.positive(alpha, "alpha")
        self.rate = None if rate is None else float(checks.finite_array(rate, "rate", ()))
        if self.rate == 0.0:
            raise ValueError("rate must not be 0: gradients would not matter")
        self.ridge = None if ridge is None else checks.positive(ridge, "ridge")
        n = self._x.size
        self._exponent, self._squares = 0, np.zeros((n, n))
        self._slopes, self._anchors = np.zeros((2, n))
        self._largest = self._gap = self._slack = 0.0

    def _step(self, gradient: Point) -> None:
        g = self.domain.radius * self.domain.tangent(gradient).ravel()
        largest = float(np.abs(g).max())
        if not math.isfinite(largest):
            raise ValueError(
                "the gradient leaves the range of numbers; nothing was learned from it"
            )
        if largest == 0.0:
            return
        self._grow(math.frexp(largest)[1])
        g = np.ldexp(g, -self._exponent)
        size = norm(g)
        self._largest = max(self._largest, size)
        x = self._relative(self._x)
        self._squares = self._squares + np.outer(g, g)
        self._slopes = self._slopes + g
        self._anchors = self._anchors + g * (g @ x)
        rate, ridge = self._constants()
        self._slack += 2.0 * size * math.sqrt(2.0 * self._gap / max(ridge, 1e-200))
        unit = max(1.0, abs(rate)) ** 2
        quadratic = (self._squares + ridge * np.eye(g.size)) / unit
        linear = (rate * self._slopes - self._anchors) / unit
        x, gap = minimum(self._counted, quadratic, linear, x)
        self._x, self._gap = self._absolute(x), gap * unit

    def _grow(self, exponent: int) -> None:
        """Change the unit to 2^exponent, unless that is smaller; exact."""
        more = exponent - self._exponent
        if more > 0 or not self._slopes.any():
            self._exponent = exponent
            self._largest, self._slack = (
                math.ldexp(v, -more) for v in (self._largest, self._slack)
            )
            self._gap = math.ldexp(self._gap, -2 * more)
            self._slopes = np.ldexp(self._slopes, -more)
            self._squares, self._anchors = (
                np.ldexp(sums, -2 * more) for sums in (self._squares, self._anchors)
            )

    def _in_unit(self, value: float) -> float:
        """A number in units of 2^exponent, at most 1e150 so that squares are numbers."""
        mantissa, exponent = math.frexp(value)
        size = math.ldexp(mantissa, min(900, exponent - self._exponent))
        return max(-1e150, min(1e150, size))

    def _constants(self) -> tuple[float, float]:
        """Rate and ridge, in units of 2^exponent."""
        radius = self.domain.radius
        if self.rate is not None:
            rate = self._in_unit(self.rate)
        else:
            lipschitz = max(self._largest, self._in_unit(radius * (self.options.lipschitz or 0.0)))
            known = 0.0 if self.alpha is None else self._in_unit(1.0 / self.alpha)
            rate = 2.0 * max(lipschitz * (self.domain.diameter / radius), known)
        if self.ridge is None:
            return rate, rate**2
        return rate, self._in_unit(radius * math.sqrt(self.ridge)) ** 2

    def _relative(self, x: Point) -> Array:
        return (x - self.domain.origin()).ravel() / self.domain.radius

    def _absolute(self, x: Array) -> Array:
        return self.domain.origin() + self.domain.radius * x.reshape(self.domain.shape)

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient seen, along the affine hull."""
        seen = float(np.ldexp(self._largest / self.domain.radius, self._exponent))
        return max(self.options.lipschitz or 0.0, seen)

    def check(self) -> None:
        super().check()
        values = np.linalg.eigvalsh(self._squares)
        require(values[0] >= -1e-6 * max(1.0, values[-1]), "sums")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, rate = self.options.lipschitz, self.rate
        if path_length or tau is not None or self.alpha is None or (G is None and rate is None):
            return None
        steepest = self.lipschitz * self.domain.diameter
        needed = 2.0 * max(1.0 / self.alpha, steepest)
        if rate is None and G is not None and self.lipschitz <= G:
            rate = needed
        if rate is None or rate < needed:
            return None  # it has changed, or the models are no lower bounds
        _, ridge = self._constants()
        _, logdet = np.linalg.slogdet(np.eye(len(self._slopes)) + self._squares / ridge)
        start = math.ldexp(ridge, self._exponent) / (2.0 * self._in_unit(rate))
        return start + rate * float(logdet) + math.ldexp(self._slack, self._exponent)


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
