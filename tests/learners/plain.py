"""The methods again, as short loops straight from the formulas, on vectors.

Slow and without options: what the library's wired-together learners must agree with.
"""

import math

import numpy as np


def ball_projection(radius):
    return lambda y: y * min(1.0, radius / max(np.linalg.norm(y), 1e-300))


def simplex_projection(y):
    """Onto the probability simplex, by sorting."""
    falling = np.sort(y)[::-1]
    thresholds = (np.cumsum(falling) - 1.0) / np.arange(1, y.size + 1)
    return np.maximum(y - thresholds[falling > thresholds][-1], 0.0)


def descend(x1, losses, project, eta):
    """Projected gradient descent; eta is a function of the round."""
    x, played = x1, []
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        x = project(x - eta(t) * loss.gradient(x))
    return np.array(played)


class BlockedExpert:
    """BOGD with exact projections: a step at the end of every block, on its own clock."""

    def __init__(self, x, eta, block):
        self.x, self.eta, self.block = x, eta, block
        self.total, self.clock = np.zeros_like(x), 0

    def take(self, gradient, project):
        self.total = self.total + gradient
        self.clock += 1
        if self.clock % self.block == 0:
            self.x = project(self.x - self.eta * self.total)
            self.total = np.zeros_like(self.x)


def hedge_over_steps(x1, losses, project, etas, blocks, rate, linear):
    """Ader and POLD: one expert per step size, softmax of their losses over Ader's prior."""
    N = len(etas)
    experts = [BlockedExpert(x1, eta, block) for eta, block in zip(etas, blocks, strict=True)]
    prior = np.array([(1 + 1 / N) / (i * (i + 1)) for i in range(1, N + 1)])
    totals, played = np.zeros(N), []
    for loss in losses:
        weights = prior * np.exp(-rate * (totals - totals.min()))
        weights /= weights.sum()
        x = sum(w * e.x for w, e in zip(weights, experts, strict=True))
        played.append(x)
        g = loss.gradient(x)
        for i, expert in enumerate(experts):
            totals[i] += g @ expert.x if linear else loss.value(expert.x)
            expert.take(g if linear else loss.gradient(expert.x), project)
    return np.array(played)


class NormalHedge:
    """AdaNormalHedge with its potential written out."""

    def __init__(self, scale):
        self.scale = scale

    def fresh(self, length):
        return 0.0, 0.0

    def weight(self, state):
        R, C = state
        return 0.5 * (self._phi(R + 1, C + 1) - self._phi(R - 1, C + 1))

    def after(self, state, ahead, length):
        R, C = state
        return R + ahead / self.scale, C + abs(ahead) / self.scale

    @staticmethod
    def _phi(R, C):
        return math.exp(max(R, 0.0) ** 2 / (3 * C)) if C > 0 else 1.0


class Multiplicative:
    """SAOL's weights."""

    def __init__(self, scale):
        self.scale = scale

    def fresh(self, length):
        return min(0.5, length**-0.5)

    def weight(self, state):
        return state

    def after(self, state, ahead, length):
        return state * (1 + min(0.5, length**-0.5) * ahead / self.scale)


def cover_of_time(x1, losses, project, make_expert, meta, linear, from_origin=False):
    """POLA and SAOL: a dictionary from intervals to experts, weighed by a meta's states."""
    experts, states, played, last = {}, {}, [], x1
    for t, loss in enumerate(losses, start=1):
        for interval in [interval for interval in experts if interval[1] == t - 1]:
            del experts[interval], states[interval]
        for k in range(t.bit_length()):
            if t % 2**k == 0:
                interval = (t, t + 2**k - 1)
                experts[interval] = make_expert(x1 if from_origin else last, 2**k)
                states[interval] = meta.fresh(2**k)
        weights = {interval: meta.weight(states[interval]) for interval in experts}
        total = sum(weights.values())
        x = sum(weights[interval] / total * experts[interval].x for interval in experts)
        played.append(x)
        g, value, last = loss.gradient(x), loss.value(x), x
        for interval, expert in experts.items():
            own = expert.x
            ahead = g @ (x - own) if linear else value - loss.value(own)
            length = interval[1] - interval[0] + 1
            states[interval] = meta.after(states[interval], ahead, length)
            expert.take(g if linear else loss.gradient(own), project)
    return np.array(played)
