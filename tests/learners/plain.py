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


def one_oracle_ader(x1, losses, approach, tangent, *, radius, block, steps, scale, rate, tolerance):
    """OneOracleAder: experts on the ball around x1, one feasible point that goes after their mean.

    `approach` takes x and y and returns a point of the set with its Frank-Wolfe gap. Also returns how
    often a block's gradient lost its part along y - x, and how often it could not have done harm.
    """
    N, onto_ball = len(steps), ball_projection(radius)
    prior = np.array([(1 + 1 / N) / (i * (i + 1)) for i in range(1, N + 1)])
    experts, lost, played = [x1] * N, np.zeros(N), []
    x = y = x1
    outside, cut, kept, total = False, 0, 0, np.zeros_like(x1)
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        total = total + loss.gradient(x)
        if t % block:
            continue
        g, total = tangent(total), np.zeros_like(x1)
        nu = (y - x) / max(np.linalg.norm(y - x), 1e-300)
        if outside and g @ nu < 0:
            g, cut = g - (g @ nu) * nu, cut + 1
        else:
            kept += outside
        lost += [g @ point / block for point in experts]
        experts = [
            x1 + onto_ball(point - scale * h * g - x1)
            for point, h in zip(experts, steps, strict=True)
        ]
        weights = prior * np.exp(-rate * (lost - lost.min()))
        y = sum(w * point for w, point in zip(weights / weights.sum(), experts, strict=True))
        x, gap = approach(x, y)
        apart = np.linalg.norm(x - y)
        outside = apart**2 > tolerance and gap < apart**2
    return np.array(played), cut, kept


def one_projection(x1, losses, nearest, tangent, radius, experts, weigh, learn):
    """One-projection Ader and SAOL: experts on the ball around x1, of whose mean the nearest point is played.

    `experts(t, y)` returns the points and steps of round t, new ones at the last y, as a dictionary
    that later rounds keep; `weigh()` their weights, and `learn(name, ahead)` tells how far the mean is
    behind each. Also returns how often a gradient lost its part along y - x.
    """
    onto_ball, y, played, cut = ball_projection(radius), x1, [], 0
    for t, loss in enumerate(losses, start=1):
        held = experts(t, y)
        weights = weigh()
        y = sum(weights[name] * point for name, (point, _) in held.items())
        x = nearest(y)
        played.append(x)
        g, apart = tangent(loss.gradient(x)), np.linalg.norm(y - x)
        if apart > 1e-7 * radius and g @ (y - x) < 0:
            nu = (y - x) / apart
            g, cut = g - (g @ nu) * nu, cut + 1
        for name, (point, eta) in held.items():
            learn(name, g @ (y - point))
            held[name] = x1 + onto_ball(point - eta * g - x1), eta
    return np.array(played), cut


def frank_wolfe_until(vertices, tolerance):
    """Line-search Frank-Wolfe on a hull of vertices until d^2 <= tol or the gap is sqrt(tol) d."""

    def approach(x, y):
        while True:
            apart = np.linalg.norm(x - y)
            v = vertices[(vertices @ (x - y)).argmin()]
            gap = (x - y) @ (x - v)
            if apart**2 <= tolerance or gap <= math.sqrt(tolerance) * apart:
                return x, gap
            x = x + min(1.0, gap / np.sum((v - x) ** 2)) * (v - x)

    return approach


def steps_on_the_latest_loss(x1, losses, lmo, share, inner_steps):
    """KalhanOFW and LineSearchOFW: each inner step at the gradient of where the last one led."""
    x, played = x1, []
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        for _ in range(inner_steps):
            g = loss.gradient(x)
            v = lmo(g)
            x = x + share(t, g, x, v) * (v - x)
    return np.array(played)


class RegularisedLeader:
    """An expert of Multi-OCG, for losses that are convex or strongly convex (`curvature`)."""

    def __init__(self, x, epoch, eta, gap, curvature=None):
        self.x, self.epoch, self.eta, self.gap, self.curvature = x, epoch, eta, gap, curvature
        self.gradients, self.points = [], []

    def target(self):
        """The minimiser of the epoch's regularised losses over all points, in the set or not."""
        if self.curvature is None:  # eta sum <g, x> + ||x - x_1||^2
            return self.points[0] - self.eta / 2 * sum(self.gradients)
        pulls = [x - g / self.curvature for x, g in zip(self.points, self.gradients, strict=True)]
        return sum(pulls) / len(pulls)

    def take(self, gradient, vertices):
        self.points.append(self.x)
        self.gradients.append(gradient)
        if len(self.points) == self.epoch:
            self.points, self.gradients = [], []
            return
        y, x = self.target(), self.x
        while True:
            v = vertices[(vertices @ (x - y)).argmin()]
            gap = (x - y) @ (x - v)
            if gap <= self.gap(len(self.points)):
                break
            x = x + min(1.0, gap / np.sum((v - x) ** 2)) * (v - x)
        self.x = x


class Tracking:
    """AdaHedge with a share of 1/t for all."""

    def __init__(self):
        self.w, self.a, self.t = np.ones(1), 0.0, 0

    def update(self, suffered, _):
        N, self.t = self.w.size, self.t + 1
        suffered = (suffered - suffered.min()) * (suffered - suffered.min() > 1e-13)
        if self.a > 0:
            mix = -self.a * math.log(self.w @ np.exp(-suffered / self.a))
            posterior = self.w * np.exp((mix - suffered) / self.a)
        else:
            mix, posterior = 0.0, self.w * (suffered == 0.0)
            posterior /= posterior.sum()
        if N > 1:
            self.a += (self.w @ suffered - mix) / math.log(N)
        self.posterior = posterior

    def turn_over(self, ends, new):
        share, N = min(0.5, 1 / self.t), self.w.size + new
        self.w = (1 - share) * np.append(self.posterior, [0.0] * new) + share / N


class Sleeping:
    """AdaNormalHedge, whose experts start anew with their epochs."""

    def __init__(self, scale):
        self.meta, self.states = NormalHedge(scale), [(0.0, 0.0)]

    @property
    def w(self):
        found = np.array([self.meta.weight(state) for state in self.states])
        return found / found.sum() if found.any() else np.full(found.size, 1 / found.size)

    def update(self, suffered, played):
        pairs = zip(self.states, played - suffered, strict=True)
        self.states = [self.meta.after(state, ahead, None) for state, ahead in pairs]

    def turn_over(self, ends, new):
        fresh = [(0.0, 0.0)]
        self.states = [(0.0, 0.0) if i in ends else s for i, s in enumerate(self.states)]
        self.states += fresh * new


def polar(x1, losses, project, meta, *, kinds, shortest, D, G=None, block=None, linear=False):
    """POLAR: a list of experts, each a dictionary; `block` takes an epoch's length to a block's.

    G is learned if not given. Yields the decision and the weights of each round.
    """
    c, largest = None if G is None else D / G, 0.0
    experts = [{"kind": "whole", "length": 1, "anchor": x1, "x": x1, "sum": 0 * x1, "waited": 0}]
    for t, loss in enumerate(losses, start=1):
        w = meta.w
        x = sum(weight * each["x"] for weight, each in zip(w, experts, strict=True))
        yield x, w
        slope = loss.gradient(x)
        own = [slope if linear else loss.gradient(each["x"]) for each in experts]
        largest = max(largest, *map(np.linalg.norm, own))
        meta.update(np.array([slope @ each["x"] for each in experts]), slope @ x)
        for each, g in zip(experts, own, strict=True):
            each["sum"], each["waited"] = each["sum"] + g, each["waited"] + 1
            length = each["length"]
            leaves = each["kind"] in ("lazy", "origin") and (t + 1) % length == 0
            if leaves or each["waited"] < (block(length) if block else 1):
                continue
            eta = (D / largest if c is None else c) / math.sqrt(length) if largest else 0.0
            eta *= 0.5 if each["kind"] == "whole" else 1.0  # it starts at the centre
            each["x"], each["waited"] = project(each["anchor"] - eta * each["sum"]), 0
            if each["kind"] == "agile":
                each["anchor"], each["sum"] = each["x"], 0 * x1
        experts[0]["length"] = 2 ** math.ceil(math.log2(t + 1))  # of the round that comes
        meta.turn_over([], 0)
        start = sum(weight * each["x"] for weight, each in zip(meta.w, experts, strict=True))
        ends = []
        for i, each in enumerate(experts):
            if each["kind"] in ("lazy", "origin") and (t + 1) % each["length"] == 0:
                ends.append(i)
                if each["kind"] == "lazy":
                    each.update(anchor=start, x=start, sum=0 * x1, waited=0)
                else:
                    each.update(anchor=x1, sum=0 * x1, waited=0)
        new = kinds if (t + 1) % shortest == 0 and math.log2((t + 1) / shortest) % 1 == 0 else ()
        for kind in new:
            at = x1 if kind == "origin" else start
            experts.append(
                {"kind": kind, "length": t + 1, "anchor": at, "x": at, "sum": 0 * x1, "waited": 0}
            )
        meta.turn_over(ends, len(new))
