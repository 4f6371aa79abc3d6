"""Follow the perturbed leader: one linear minimisation per round."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.experts import SQUARES, require_below
from driftwolfe.learners.options import Options, make_options
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Point
from driftwolfe.state import POINT, Count, Size

#: E|z| of a standard normal z: bounds the curvature of a support function that noise has smoothed.
_NORMAL = math.sqrt(2.0 / math.pi)


class FTPL(SinglePointLearner):
    r"""Follow the perturbed leader: the minimiser of all past losses plus noise, by one LMO call.

    .. math:: x_{t+1} = \frac1m\sum_{j=1}^m \arg\min_{v \in K}
              \Big\langle\sum_{s \le t} g_s + \eta_t\xi_j,\ v\Big\rangle, \qquad
              \eta_t^2 = \frac{0.8 R}{w}\Big(\sum_{s \le t}\lVert g_s\rVert^2 + G^2\Big)

    with :math:`\xi_j` standard normal, new in every round, and w a bound on the width
    :math:`E\max_{v \in K}\langle\xi, v - c\rangle`. For linear losses of n numbers the expected regret against a
    fixed point is at most

    .. math:: 1.79\,\sqrt{w R}\,\sqrt{G^2 + \textstyle\sum_t\lVert g_t\rVert^2}
              \le 0.9\, D\, n^{1/4}\,\sqrt{G^2 + \textstyle\sum_t\lVert g_t\rVert^2}

    also against adversaries that know all past decisions: :math:`\sqrt T` by one LMO call per round, where
    deterministic learners need :math:`T^{3/4}` in high dimension. It does not follow drift; mix it with
    restarts of itself in a `Mixture`, or take `POLAR`.

    Parameters
    ----------
    domain, horizon
        A set of dense arrays; the horizon is not used.
    samples, block
        m, the vertices in a decision, and the rounds between two decisions: m/block LMO calls per round.
    smoothness
        :math:`\beta` of losses that are not linear: the expected regret has :math:`\beta R^2/m` more per
        round. With m = block = :math:`T^{1/3}` it is :math:`O(n^{1/4} T^{2/3})`, by one LMO call per round.
    width
        w, in units of the points; :math:`R\sqrt n` if not given. :math:`R\sqrt{2 \ln n}` is enough for the
        simplex.
    seed
        Seed of the noise.
    {options}

    Notes
    -----
    `bound` is for linear losses, or for smooth ones with `smoothness`; where G is learned, it has the larger
    cost of gradients that were longer than all before. It is on the expectation over the noise, of both sides
    if the losses depend on the decisions. `docs/theory/benign.md` has the proof.

    References
    ----------
    Kalai and Vempala (2005), Efficient algorithms for online decision problems, Journal of Computer and
    System Sciences; Abernethy, Lee, Sinha and Tewari (2014), Online linear optimization via smoothing,
    COLT; Hazan and Minasyan (2020), Faster projection-free online learning, COLT. Constants are ours.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.FTPL(dw.BirkhoffPolytope(3), lipschitz=2.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([[0, 1, 1], [1, 0, 1], [1, 1, 0]])] * 100)
    >>> bool(learner.decision.trace() == 3.0), learner.lmo_calls
    (True, 101)
    """

    _gradients: Annotated[Point, POINT]  # of finished blocks
    _block: Annotated[Point, POINT]
    _squares: Size  # of the norms of finished blocks
    _largest: Size
    _scale: Size  # of the noise
    _costs: Size  # of the steps between leaders
    _draws: Count
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        samples: int = 1,
        block: int = 1,
        smoothness: float | None = None,
        width: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz, oracle=Oracle(seed=seed))
        if not isinstance(self._x, np.ndarray):
            raise ValueError(
                f"FTPL adds dense noise, which is not for {type(domain.unwrapped).__name__} of shape "
                f"{domain.shape}; use POLAR"
            )
        self.samples = checks.count(samples, "samples")
        self.block = checks.count(block, "block")
        self.smoothness = None if smoothness is None else checks.positive(smoothness, "smoothness")
        own = domain.radius * math.sqrt(self._x.size)
        self.width = own if width is None else checks.positive(width, "width")
        self._gradients, self._block = 0.0 * self._x, 0.0 * self._x
        self._squares = self._largest = self._scale = self._costs = 0.0
        self._draws = 0
        if self.options.lipschitz is not None:
            self._draw()

    def _step(self, gradient: Point) -> None:
        self._largest = max(self._largest, norm(gradient))
        require_below(SQUARES, self._largest)
        self._block = self._block + gradient
        if (self.t + 1) % self.block:
            return
        size, R = norm(self._block), self.domain.radius
        smooth = 0.5 * _NORMAL * R * size**2 / self._scale if self._scale > 0.0 else math.inf
        self._costs += min(smooth, size * self.domain.diameter)
        self._squares += size**2
        self._gradients, self._block = self._gradients + self._block, 0.0 * self._block
        self._draw()

    def _draw(self) -> None:
        """Draw the point of the next block."""
        expected = self._squares + (self.block * self.lipschitz) ** 2
        self._scale = math.sqrt(_NORMAL * self.domain.radius / self.width * expected)
        if self._scale == 0.0:  # nothing but zeros so far
            return
        rng = np.random.default_rng((self.options.oracle.seed, self._draws))
        noise = self._scale * rng.standard_normal((self.samples, *self._x.shape))
        vertices = [self._counted.lmo(self._gradients + each) for each in noise]
        self._x = np.mean(vertices, axis=0)
        self._draws += 1

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if path_length or tau is not None:
            return None
        R, left = self.domain.radius, self.t % self.block
        started = left * self.lipschitz * self.domain.diameter  # rounds of a block under way
        bent = (self.smoothness or 0.0) * R**2 / self.samples * self.t
        return self._scale * self.width + self._costs + started + bent
