"""Plain implementations that the library is compared with."""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse.linalg import svds

import driftwolfe as dw
from driftwolfe.learners.base import Epoch

# -- exact projections -----------------------------------------------------------------------------


def on_simplex(y, radius=1.0):
    """The nearest non-negative point with entries of sum `radius`, by sorting."""
    falling = np.sort(y)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, y.size + 1)
    threshold = excess[np.count_nonzero(falling > excess) - 1]
    return np.maximum(y - threshold, 0.0)


def on_l1_ball(y, radius=1.0):
    """The nearest point whose absolute values sum to at most `radius`."""
    if np.abs(y).sum() <= radius:
        return y
    return np.sign(y) * on_simplex(np.abs(y), radius)


def on_trace_norm_ball(y, radius=1.0):
    """The nearest matrix whose singular values sum to at most `radius`."""
    U, s, Vt = np.linalg.svd(y, full_matrices=False)
    if s.sum() <= radius:
        return y
    return (U * on_simplex(s, radius)) @ Vt


def exactly(nearest, radius=1.0):
    """A `project(x, y)` that returns the nearest point for both."""

    def project(x, y):
        found = nearest(y, radius)
        return found, found

    return project


class GramBall(dw.TraceNormBall):
    """The trace-norm ball that projects by eigendecomposition of the smaller Gram matrix."""

    def _project(self, y):
        dense = y.toarray()
        wide = dense if dense.shape[0] <= dense.shape[1] else dense.T
        squares, U = np.linalg.eigh(wide @ wide.T)
        s = np.sqrt(np.maximum(squares, 0.0))
        if s.sum() <= self.scale:
            return y.copy()
        kept = on_simplex(s, self.scale)
        held = kept > 0
        U, V = U[:, held], wide.T @ U[:, held] / s[held]
        U, V = (U, V) if wide is dense else (V, U)
        return dw.FactoredMatrix(U, kept[held], V)


# -- learners --------------------------------------------------------------------------------------


class BOGDIP:
    """Algorithm 1 of the paper: when a block ends, steps along its gradients and projects.

    The dimensionless step h gives eta = c h and blocks of h^(-2/3) rounds, rounded down;
    `project` takes x and the new y and returns both.
    """

    def __init__(self, start, h, c, project):
        self.project = project
        self.eta = c * h
        self.block = max(1, int(h ** (-2 / 3) * (1 + 1e-12)))
        self.x = start
        self.y = start
        self.gradients = np.zeros(start.shape)
        self.t = 0

    @property
    def decision(self):
        return self.x

    def update(self, loss):
        suffered, gradient = loss.value_and_gradient(self.x)
        self.learn(gradient)
        return suffered

    def learn(self, gradient):
        """Add a gradient to the block; at its end, take the step."""
        self.gradients = self.gradients + gradient
        self.t += 1
        if self.t % self.block == 0:
            self.x, self.y = self.project(self.x, self.y - self.eta * self.gradients)
            self.gradients = np.zeros(self.x.shape)


def experiment_steps(horizon):
    """The dimensionless steps of the paper's experiments: 2^(i-1) T^(-3/4), as far as 1."""
    number = math.ceil(0.75 * math.log2(1 + 4 * horizon / 7)) + 1
    steps = [2**i * horizon**-0.75 for i in range(number)]
    return [h for h in steps if h <= 1]


class POLD:
    """Algorithm 2: exponential weights with rate sqrt(8/T)/B, B the largest range of losses so far."""

    def __init__(self, experts, horizon):
        self.experts = experts
        self.horizon = horizon
        self.totals = [0.0] * len(experts)
        self.scale = 0.0

    def weights(self):
        """The prior 1/(i(i+1)) times the exponential of the losses, of sum 1."""
        rate = math.sqrt(8 / self.horizon) / self.scale if self.scale > 0 else 0.0
        least = min(self.totals)
        weights = [
            math.exp(-rate * (total - least)) / (i * (i + 1))
            for i, total in enumerate(self.totals, start=1)
        ]
        return np.array(weights) / sum(weights)

    @property
    def decision(self):
        """The weighted mean of the experts' points."""
        return sum(w * expert.x for w, expert in zip(self.weights(), self.experts, strict=True))

    def update(self, loss):
        suffered = loss.value(self.decision)
        losses = [expert.update(loss) for expert in self.experts]
        self.scale = max(self.scale, max(losses) - min(losses))
        self.totals = [total + each for total, each in zip(self.totals, losses, strict=True)]
        return suffered


class IntervalExpert(BOGDIP):
    """BOGD_IP on one interval, with its regret R and the sum C of absolute differences."""

    def __init__(self, start, length, last, c, project):
        super().__init__(start, length**-0.75, c, project)
        self.last = last
        self.regret = 0.0
        self.movement = 0.0

    def weight(self):
        """AdaNormalHedge: half of Phi(R + 1, C + 1) - Phi(R - 1, C + 1)."""
        width = 3 * (self.movement + 1)
        upper = max(self.regret + 1, 0) ** 2 / width
        lower = max(self.regret - 1, 0) ** 2 / width
        return (math.exp(upper) - math.exp(lower)) / 2


class POLA:
    """Algorithm 3: for every 2^k that divides t, an expert for 2^k rounds that starts where we play.

    Differences of losses are divided by the largest so far; when that grows, R and C shrink, the new ones too.
    """

    def __init__(self, origin, c, project):
        self.c = c
        self.project = project
        self.t = 0
        self.scale = 0.0
        self.experts = []
        self._open(origin)

    def weights(self):
        """The weights of the experts, of sum 1; equal where all are 0."""
        weights = [expert.weight() for expert in self.experts]
        total = sum(weights)
        return [w / total if total > 0 else 1 / len(weights) for w in weights]

    @property
    def decision(self):
        """The weighted mean of the experts' points."""
        return sum(w * expert.x for w, expert in zip(self.weights(), self.experts, strict=True))

    def update(self, loss):
        played = self.decision
        suffered = loss.value(played)
        found = [loss.value_and_gradient(expert.x) for expert in self.experts]
        self._weigh([suffered - value for value, _ in found])
        self.t += 1
        pairs = list(zip(self.experts, found, strict=True))
        for expert, (_, gradient) in pairs:
            if expert.last > self.t:
                expert.learn(gradient)
        self.experts = [expert for expert in self.experts if expert.last > self.t]
        self._open(played)
        return suffered

    def _weigh(self, differences):
        before, self.scale = self.scale, max(self.scale, *map(abs, differences))
        if self.scale > 0:
            shrink = (before or self.scale) / self.scale
            for expert, difference in zip(self.experts, differences, strict=True):
                expert.regret = (expert.regret + difference / self.scale) * shrink
                expert.movement = (expert.movement + abs(difference) / self.scale) * shrink

    def _open(self, start):
        coming, length = self.t + 1, 1
        while coming % length == 0:
            self.experts.append(self._expert(start, length))
            length *= 2

    def _expert(self, start, length):
        return IntervalExpert(start, length, self.t + length, self.c, self.project)


class LearnerExpert:
    """A `dw.BOGDIP` on one interval, with its regret R and the sum C of absolute differences."""

    weight = IntervalExpert.weight

    def __init__(self, domain, start, length, last, c):
        self.learner = dw.BOGDIP(domain, horizon=length, step_scale=c)
        self.learner._begin(Epoch(0, length, 0), start)  # not from the centre
        self.last = last
        self.regret = 0.0
        self.movement = 0.0

    @property
    def x(self):
        return self.learner.decision


class LearnerLoop(POLA):
    """POLA around the library's single learners, one per interval, in a Python loop."""

    def __init__(self, domain, c):
        self.domain = domain
        super().__init__(domain.origin(), c, project=None)

    def update(self, loss):
        played = self.decision
        suffered = loss.value(played)
        self.t += 1
        losses = [self._suffer(expert, loss) for expert in self.experts]
        self._weigh([suffered - each for each in losses])
        self.experts = [expert for expert in self.experts if expert.last > self.t]
        self._open(played)
        return suffered

    def _suffer(self, expert, loss):
        """An expert's loss; in its last round it need not learn."""
        return expert.learner.update(loss) if expert.last > self.t else loss.value(expert.x)

    def _expert(self, start, length):
        return LearnerExpert(self.domain, start, length, self.t + length, self.c)


# -- the paper's infeasible projection, with dense arrays and `svds` -----------------------------------
#
# Algorithms 3 and 4 of Garber and Kretzu (2022) with the corrections that the proof needs: the
# distance is tested before the oracle is called, and the first y is scaled by its own norm.


class Oracle:
    """Linear minimisation over a trace-norm ball with a limit on the calls.

    `tol` is that of `svds`; the default 0 is machine precision. `seed` is for the starts of `svds`.
    """

    def __init__(self, radius, most_calls=200, tol=0, seed=0):
        self.rng = np.random.default_rng(seed)
        self.radius = radius
        self.most_calls = most_calls
        self.tol = tol
        self.calls = 0

    @property
    def spent(self):
        """Whether this projection has no calls left."""
        return self.calls >= self.most_calls

    def __call__(self, direction):
        self.calls += 1
        start = self.rng.standard_normal(min(direction.shape))  # svds' own differs in every run
        u, _, vt = svds(direction, k=1, tol=self.tol, v0=start)
        return -self.radius * u @ vt


def approximate_projection(x, y, eps, oracle):
    """Algorithm 3: Frank-Wolfe from x towards y, until it is near or its gap is at most eps."""
    gap = np.inf
    while squared(x - y) > 3 * eps and not oracle.spent:
        v = oracle(x - y)
        gap = np.vdot(x - y, x - v)
        if gap <= eps:
            break
        x = x + min(1.0, gap / squared(v - x)) * (v - x)
    return x, gap


def infeasible_projection(x, y, eps, oracle):
    """Algorithm 4: pull y towards the approximate projection until they are near.

    If the calls run out, y moves all the way to x where the last gap is at most half of their
    squared distance: then it comes no farther from any point of the ball.
    """
    oracle.calls = 0
    first = squared(x - y)
    y = y / max(1.0, np.linalg.norm(y) / oracle.radius)
    while squared(x - y) > 3 * eps:
        x, gap = approximate_projection(x, y, eps, oracle)
        if oracle.spent:
            return x, x if gap <= squared(x - y) / 2 else y
        if squared(x - y) > 3 * eps:
            y = y - 2 * eps / first * (y - x)
    return x, y


def squared(a):
    """The squared Euclidean norm."""
    return np.vdot(a, a)
