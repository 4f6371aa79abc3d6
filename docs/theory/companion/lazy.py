"""Inequalities of polar.md: lazy experts, the gap as a stop rule, AdaHedge, and the pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
from check import Case, check
from games import _gradient
from sets import Scene, gap, line_search, scenes, segment, simplex, zigzag
from weights import runs_of

import driftwolfe as dw
from driftwolfe.ensemble import AdaHedge


class Lazy:
    """A lazy expert written anew: projections by the library, moved away from by up to delta."""

    def __init__(self, scene: Scene, start: np.ndarray, delta: float) -> None:
        self.scene, self.delta, self.start = scene, delta, start
        self.points, self.nearest, self.gradients = [start], [start], []

    def step(self, gradient: np.ndarray, eta: float) -> None:
        """Take a block's gradient and find the next point, at delta from the projection if it can."""
        self.gradients.append(gradient)
        theta = self.start - eta * sum(self.gradients)
        nearest = self.scene.hull.project(theta)
        away = self.scene.vertices[(self.scene.vertices @ gradient).argmax()] - nearest
        length = float(np.linalg.norm(away))
        share = min(1.0, self.delta / length) if length > 0 else 0.0
        self.nearest.append(nearest)
        self.points.append(nearest + share * away)

    def regret(self, played: list[np.ndarray]) -> float:
        """Against the best fixed point."""
        suffered = sum(float(g @ x) for g, x in zip(self.gradients, played, strict=False))
        return suffered - float((self.scene.vertices @ sum(self.gradients)).min())


def _lazy_games(
    learned: bool, falling: bool = False
) -> Iterator[tuple[Lazy, list[np.ndarray], list[float], list[float], int, str]]:
    """Games against foes that see the decision: the expert, what it played, h and G of blocks."""
    for k, scene in enumerate(scenes(16, seed=21)):
        h0, K, foe, M = (1.0, 0.2, 0.03, 0.004)[k % 4], 3, k // 4, 30
        sizes = [1.0] * M
        if learned:
            sizes = [0.03] * 12 + [1.0] * 18 if k % 3 else np.geomspace(1e-3, 1, M).tolist()
        steps = [h0 * (0.6 ** (m // 8) if falling else 1.0) for m in range(M)]
        rng, largest = np.random.default_rng(foe), 0.0 if learned else 1.0
        expert = Lazy(scene, scene.x, (0.0, 0.05)[k % 2] * scene.D)
        played: list[np.ndarray] = []
        for m, size in enumerate(sizes):
            x = expert.points[m]
            played.append(x)
            gradient = K * size * _gradient(foe, scene, x, expert.nearest[-1], rng)
            largest = max(largest, size)
            expert.step(gradient, scene.D * steps[m] / largest)
        where = f"{scene.name}, h = {h0}, foe {foe % 4}"
        yield expert, played, [steps[0], *steps[:-1]], sizes, K, where


def _right(expert: Lazy, steps: list[float], K: int, learned: bool) -> float:
    """The right sides of (1) and (1'), with G = 1."""
    D, start = expert.scene.D, expert.start
    u = expert.scene.vertices[(expert.scene.vertices @ sum(expert.gradients)).argmin()]
    squares = sum(h * K**2 for h in steps)
    found = float((u - start) @ (u - start)) / (2 * D * steps[-1])
    found += D * squares * (1.0 if learned else 0.5)
    return found + (2 * K * D if learned else 0.0) + K * len(steps) * expert.delta


@check("lazy (1): |u - x0|^2/(2 eta) + (G^2/2) sum eta K^2 + G sum K delta")
def one_lazy_expert() -> Iterator[Case]:
    """Played games, with one step and with steps that fall."""
    for falling in (False, True):
        for expert, played, steps, _, K, where in _lazy_games(False, falling):
            yield expert.regret(played), _right(expert, steps, K, False), where


@check("lazy (1'): G learned, twice the step term and 2 K G D")
def one_lazy_expert_learns() -> Iterator[Case]:
    """Gradients that grow 30- to 1000-fold, at once or bit by bit."""
    for falling in (False, True):
        for expert, played, steps, _, K, where in _lazy_games(True, falling):
            yield expert.regret(played), _right(expert, steps, K, True), where


@check("kept point: a block elsewhere costs at most K G D more")
def kept_block() -> Iterator[Case]:
    """The first block played at the worst vertex in place of the start."""
    for expert, played, steps, _, K, where in _lazy_games(False):
        V = expert.scene.vertices
        kept = [V[(V @ expert.gradients[0]).argmax()], *played[1:]]
        right = _right(expert, steps, K, False) + K * expert.scene.D
        yield expert.regret(kept), right, where


@check("the gap: |x - x*|^2 <= g, however far the target is")
def gap_rule() -> Iterator[Case]:
    """Targets up to a hundred radii away."""
    for k, scene in enumerate(scenes(90, seed=23)):
        theta = scene.x + (scene.y - scene.x) * (1.0, 10.0, 100.0)[k // 3 % 3]
        nearest = scene.hull.project(theta)
        g, _ = gap(scene.vertices, scene.x, theta)
        yield float(((scene.x - nearest) ** 2).sum()), g, scene.name


@check("the gap: at most 6.75 D^2/delta^2 calls of line search, from anywhere")
def gap_calls() -> Iterator[Case]:
    """Frank-Wolfe written anew, and the library's runs; targets far away too."""
    hard = (simplex(200), segment(0.3), zigzag(0.02), zigzag(0.3), *scenes(30, seed=24))
    for k, scene in enumerate(hard):
        theta = scene.y if k % 2 else scene.y + 7 * (scene.y - scene.x)
        for share in (0.5, 0.1, 0.05):
            x, calls, enough = scene.x, 0, (share * scene.D) ** 2
            while True:
                g, vertex = gap(scene.vertices, x, theta)
                calls += 1
                if g <= enough:
                    break
                x = line_search(x, theta, vertex)
            yield calls, 6.75 / share**2, f"{scene.name}, delta = {share} D"
            for method in ("corrective", "halfspace"):
                answer = dw.infeasible_projection(
                    scene.hull, scene.x, theta, 0.0, method, gap=enough
                )
                yield answer.lmo_calls, 6.75 / share**2, f"{scene.name}, {method}"


@check("lazy plans: 2 G D tau^(3/4), and 3.23 b^(-1/4) tau^(3/4) + 0.94 (b tau)^(1/4)")
def lazy_plans() -> Iterator[Case]:
    """1/(2h) + 3/2 h K tau for the plans of epochs, and the calls they ask for."""
    for k in range(3, 22):
        tau = 2**k
        h, K = tau**-0.75, math.isqrt(tau)
        yield 0.5 / h + 1.5 * h * K * tau, 2 * tau**0.75, f"tau = {tau}, no budget"
        yield 6.75 / (h**2 * K**3), 6.75 if k % 2 == 0 else 19.1, f"tau = {tau}, calls"
        for b in (0.01, 0.3, 1.0, 10.0, 100.0):
            h = (b / 6.75) ** 0.25 * tau**-0.75
            K = math.ceil((6.75 / (b * h * h)) ** (1 / 3) - 1e-9)
            right = 3.23 * b**-0.25 * tau**0.75 + 0.94 * (b * tau) ** 0.25
            yield 0.5 / h + 1.5 * h * K * tau, right, f"tau = {tau}, b = {b}"
            calls = math.floor(6.75 / (h * K) ** 2 * (1 - 1e-9))
            yield calls, math.floor(b * K * (1 + 1e-9)), f"calls, tau = {tau}, b = {b}"


def _foe(kind: int, t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Losses of any sign: at random, against the heaviest, with a favourite that changes, growing."""
    n = weights.size
    if kind == 0:
        return rng.normal(size=n)
    if kind == 1:
        return 5.0 * (weights == weights.max()) - 2.0
    losses = rng.random(n)
    losses[t // 40 % n] -= 1.0
    return losses * (1.03**t if kind == 3 else 1.0)


def _hedge_games() -> Iterator[tuple[AdaHedge, np.ndarray, list[np.ndarray], str]]:
    """AdaHedge after its games, the losses, the weights that it had."""
    for n, T, kind, f in product((2, 5, 9), (3, 40, 300), range(4), (1, 2 / 3)):
        meta, rng, rows, held = AdaHedge(n, f), np.random.default_rng(kind), [], []
        for t in range(1, T + 1):
            held.append(meta.weights)
            rows.append(_foe(kind, t, meta.weights, rng))
            meta.update(rows[-1])
        yield meta, np.array(rows), held, f"N = {n}, T = {T}, foe {kind}, f = {f:.2f}"


@check("AdaHedge (2): loss of the mean <= best sequence with S changes + a [...]")
def tracking() -> Iterator[Case]:
    """All sequences, by dynamic programming; the sum of ln 1/(1 - alpha) as it is."""
    for meta, rows, held, where in _hedge_games():
        T, n = rows.shape
        suffered = sum(float(w @ row) for w, row in zip(held, rows, strict=True))
        f = meta.factor
        shares = [min(1 / 2, f / t) for t in range(1, T)]
        mixed = sum(-math.log1p(-a) for a in shares)
        least = np.full((7, n), np.inf)
        least[0] = 0.0
        for row in rows:
            changed = np.vstack((np.full(n, np.inf), np.tile(least[:-1].min(axis=1), (n, 1)).T))
            least = np.minimum(least, changed) + row
        for S, best in enumerate(np.minimum.accumulate(least.min(axis=1)).tolist()):
            ways = math.log(n) + (S + 1) * math.log(n * max(2, T / f)) + mixed
            left = suffered - best - 1e-12 * T  # equal losses leave rounding
            yield left, meta.inverse_rate * ways, f"{where}, S = {S}"
        yield mixed, math.log(2 * T**f), f"{where}: sum of ln 1/(1 - alpha)"


@check("AdaHedge (3): 2 a delta <= v + 2/3 s delta; a <= (sum v/ln N)^(1/2) + (2/3 + 1/ln N) s")
def inverse_rate() -> Iterator[Case]:
    """One round with random weights and rates, and played games."""
    rng = np.random.default_rng(9)
    for n in (2, 3, 8):
        for _ in range(300):
            w, losses = rng.dirichlet(np.full(n, 0.4)), rng.normal(size=n)
            if rng.random() < 0.5:
                losses = (rng.random(n) < 0.5) * 1.0
            a, mean = 10 ** rng.uniform(-1.5, 2), float(w @ losses)
            Z = (mean - losses) / a
            delta = a * math.log1p(float(w @ (np.expm1(Z) - Z)))
            v, s = float(w @ (losses - mean) ** 2), float(np.ptp(losses))
            if s > 0:
                yield 2 * a * delta, v + 2 / 3 * s * delta, f"one round, N = {n}, a = {a:.3g}"
    for meta, rows, held, where in _hedge_games():
        n, s = rows.shape[1], float(np.ptp(rows, axis=1).max())
        pairs = zip(held, rows, strict=True)
        v = sum(float(w @ (row - w @ row) ** 2) for w, row in pairs)
        right = math.sqrt(v / math.log(n)) + (2 / 3 + 1 / math.log(n)) * s
        yield meta.inverse_rate, right, where


@check("never restarted: sum h K^2 of the blocks played <= its levels' and one block each")
def whole_game() -> Iterator[Case]:
    """The schedule played round by round, with and without budgets."""
    for b, T in product((None, 0.02, 0.3, 2.0, 50.0), (1, 2, 5, 40, 333, 4096, 30_000)):

        def plan(length: int, b: float | None = b) -> tuple[float, int]:
            if b is None:
                return length**-0.75, math.isqrt(length)
            h = (b / 6.75) ** 0.25 * length**-0.75
            return h, math.ceil((6.75 / (b * h * h)) ** (1 / 3) - 1e-9)

        length, held, step, left = 1, 0, 0.0, 0.0
        for t in range(1, T + 1):
            h, K = plan(length)
            held += 1
            if held == K or t == T:
                left += (step or h) * held**2
                held, step = 0, h
            length = 2 * t if t & (t - 1) == 0 else length
        plans = [plan(1 << k) for k in range((T - 1).bit_length() + 1)]
        counts = [min(T, 1 << k) - (1 << k >> 1) for k in range(len(plans))]
        right = sum(h * K * n for (h, K), n in zip(plans, counts, strict=True))
        right += sum(plans[max(0, k - 2)][0] * plans[k][1] ** 2 for k in range(1, len(plans)))
        yield left, right, f"b = {b}, T = {T}"


@check("pool: dynamic regret of POLAR <= its bound, all kinds, weights and oracles")
def pool_games() -> Iterator[Case]:
    """Signs that turn ever more often; comparators at the best end of stretches."""
    T, rng = 256, np.random.default_rng(5)
    signs = np.repeat(rng.choice([-1.0, 1.0], 200), np.repeat([64, 8, 2, 1], [2, 8, 20, 170]))[:T]
    kinds = ("lazy", "origin", "agile")
    for settings in (
        {},
        {"experts": kinds, "lipschitz": "auto"},
        {"tuning": "certified", "oracle": "corrective"},
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=100.0), "experts": kinds},
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=300.0), "lipschitz": "auto"},
        {"tuning": "certified", "weights": "sleeping"},
    ):
        learner = dw.POLAR(dw.L2Ball(1), **{"lipschitz": 1.0, **settings})
        suffered = np.array([learner.update(dw.losses.LinearLoss([sign])) for sign in signs])
        windows = [(0, T)]
        if "weights" in settings:
            windows += [(first, n) for n in (50, 128) for first in range(0, T - n + 1, 32)]
        for (first, n), stretch in product(windows, (1, 3, 10, 60, T)):
            total = np.add.reduceat(signs[first : first + n], np.arange(0, n, stretch))
            path = 2.0 * np.count_nonzero(np.diff(np.sign(total)))
            path += 2.0 * np.count_nonzero(total == 0)  # which end is held does not matter
            regret = float(suffered[first : first + n].sum() + np.abs(total).sum())
            asked = {"tau": n} if "weights" in settings and n < T else {}
            yield (
                regret,
                learner.bound(path_length=path, **asked),
                f"{settings}, n = {n}, P = {path:g}",
            )


@check("switches: regret of POLAR <= its epochs' and W(pieces - 1)")
def switches() -> Iterator[Case]:
    """The sequence of experts that the page names, for slopes that turn S times."""
    T, rng = 512, np.random.default_rng(6)
    for S in (0, 1, 4, 15):
        cuts = [0, *sorted(rng.choice(np.arange(1, T), S, replace=False).tolist()), T]
        learner, right, pieces, regret = dw.POLAR(dw.L2Ball(2), None, 1.0), 0.0, 0, 0.0
        for a, b in pairwise(cuts):
            slope = rng.normal(size=2)
            slope /= np.linalg.norm(slope)
            for _ in range(a, b):
                regret += learner.update(dw.losses.LinearLoss(slope)) + 1.0
        for a, b in pairwise(cuts):
            for run in runs_of(a + 1, b):
                pieces += len(run)
                for each in (end - start + 1 for start, end in run):
                    lazy = learner._bounds.epoch("lazy", each) if each >= 8 else 2.0 * each
                    right += lazy
        yield regret, right + learner._meta.regret_bound(pieces - 1), f"S = {S}"
