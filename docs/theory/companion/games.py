"""Played games: the master inequality, the delay of section 3, the lemma of section 7."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from check import Case, check
from sets import C, Scene, frank_wolfe, gap, scenes

import driftwolfe as dw


class Game(NamedTuple):
    """What blocks of a game came to: decisions, infeasible points and block gradients."""

    x: list[np.ndarray]
    y: list[np.ndarray]
    gradients: list[np.ndarray]


def play(
    scene: Scene, sizes: list[float], K: int, eta: float, tol: float, delay: int, foe: int
) -> Game:
    """Play blocked descent on a polytope against a foe who sees x; steps are eta/(largest size).

    `sizes`: gradient lengths in each block. Delay 0 uses a block's gradients when it ends, 1 a
    block later. Starts at the centre. One more answer than blocks is worked out, two with the delay.
    """
    hull, rng = scene.hull, np.random.default_rng(foe)
    x, y = [hull.center] * (1 + delay), [hull.center] * (1 + delay)
    gradients: list[np.ndarray] = []
    for m, size in enumerate(sizes):
        gradients.append(K * size * _gradient(foe, scene, x[m], y[m + delay], rng))
        step = eta / max(sizes[: m + 1])
        answer = dw.infeasible_projection(
            hull, x[-1], y[-1] - step * gradients[-1], tol, "halfspace"
        )
        x, y = [*x, answer.feasible], [*y, answer.infeasible]
    return Game(x, y, gradients)


def _gradient(foe: int, scene: Scene, x: np.ndarray, y: np.ndarray, rng: np.random.Generator):
    """Away from a vertex, along what x lags behind y, at random, or the last two in turn."""
    if foe % 4 == 0:
        g = x - scene.vertices[0]
    elif foe % 4 == 1:
        g = x - y
    elif foe % 4 == 2:
        g = rng.normal(size=x.size)
    else:
        g = x - scene.vertices[int(rng.integers(2)) * (len(scene.vertices) - 1)]
    size = float(np.linalg.norm(g))
    return g / size if size > 1e-9 else np.eye(x.size)[0]


def _games(delay: int) -> Iterator[tuple[Game, Scene, int, float, float, str]]:
    for k, scene in enumerate(scenes(24, seed=9)):
        K, h, tol = 4, (0.3, 0.03, 0.003)[k % 3], (0.02, 0.2)[k % 2]
        foe = k // 3
        game = play(scene, [1.0] * 60, K, h * scene.D, tol * scene.D**2, delay, foe)
        yield game, scene, K, h, tol, f"{scene.name}, h = {h}, foe {foe % 4}"


def _regret(game: Game, scene: Scene) -> float:
    """Against the best fixed point, found by one linear minimisation."""
    total = sum(game.gradients)
    suffered = sum(float(g @ x) for g, x in zip(game.gradients, game.x, strict=False))
    return suffered - float((scene.vertices @ total).min())


@check("master inequality, P = 0, start at the centre")
def at_once() -> Iterator[Case]:
    """Regret of played games, calls when a block ends."""
    for game, scene, K, h, tol, where in _games(0):
        T = K * len(game.gradients)
        right = T * math.sqrt(tol) + 0.125 / h + h * K * T / 2
        yield _regret(game, scene), right * scene.D, where


@check("even schedule: the same with three times the step term")
def delayed() -> Iterator[Case]:
    """Regret of played games, calls during the next block."""
    for game, scene, K, h, tol, where in _games(1):
        T = K * len(game.gradients)
        right = T * math.sqrt(tol) + 0.125 / h + 3 * h * K * T / 2
        yield _regret(game, scene), right * scene.D, where


@check("even schedule: |y_{m+1} - x_m| <= sqrt(tol) + eta K G")
def lag() -> Iterator[Case]:
    """How far decisions lag behind."""
    for game, scene, K, h, tol, where in _games(1):
        for m in range(1, len(game.gradients)):
            left = float(np.linalg.norm(game.y[m + 1] - game.x[m]))
            yield left, (math.sqrt(tol) + h * K) * scene.D, f"{where}, block {m + 1}"


@check("even schedule: sum <D_m, y_{m+1} - u> <= V0/eta + (eta/2) sum |D_m|^2")
def telescope() -> Iterator[Case]:
    """The second part of the split, at its worst u."""
    for game, scene, _, h, _, where in _games(1):
        pairs = zip(game.gradients, game.y[1:], strict=False)
        left = sum(float(g @ y) for g, y in pairs)
        left -= float((scene.vertices @ sum(game.gradients)).min())
        squares = sum(float(g @ g) for g in game.gradients)
        yield left, scene.D * (0.125 / h + h / 2 * squares), where


@check("even schedule, G learned: V0 = D^2/2, three times the step term")
def learned() -> Iterator[Case]:
    """Gradients that grow by a factor of 30, at once or bit by bit."""
    for k, scene in enumerate(scenes(24, seed=13)):
        K, h, tol = 4, (0.3, 0.03)[k % 2], 0.02
        sizes = [1.0] * 30 + [30.0] * 30 if k % 4 < 2 else list(np.geomspace(1, 30, 60))
        game = play(scene, sizes, K, h * scene.D, tol * scene.D**2, 1, k // 3)
        T, G = K * len(sizes), max(sizes)
        right = G * (T * math.sqrt(tol) + 0.5 / h + 3 * h * K * T / 2)
        yield _regret(game, scene), right * scene.D, f"{scene.name}, h = {h}, foe {k // 3 % 4}"


@check("moving comparators: path term D P/2 and (K - 1) G P")
def moving() -> Iterator[Case]:
    """Comparators that jump between vertices, chosen for each stretch of rounds; both schedules."""
    for delay in (0, 1):
        for game, scene, K, h, tol, where in _games(delay):
            steps = np.array(game.gradients)
            x = np.array(game.x[: len(steps)])
            cuts = range(0, len(steps), 12)
            best = [(scene.vertices @ steps[a : a + 12].sum(axis=0)).argmin() for a in cuts]
            u = scene.vertices[np.repeat(best, 12)[: len(steps)]]
            P = float(np.linalg.norm(np.diff(u, axis=0), axis=1).sum()) / scene.D
            T, r = K * len(steps), 1 + 2 * delay
            right = T * math.sqrt(tol) + (0.125 + P / 2) / h + r * h * K * T / 2 + (K - 1) * P
            yield float((steps * (x - u)).sum()), right * scene.D, f"{where}, delay {delay}"


@check("one oracle: <D, x - u> <= <g, y - u> + |D| sqrt(tol) for all u")
def domain_conversion() -> Iterator[Case]:
    """Random gradients and those that point from y to x, at the exact worst u."""
    rng = np.random.default_rng(3)
    for k, scene in enumerate(scenes(60, seed=10)):
        tol = scene.D**2 * (0.1, 0.01, 0.001)[k // 3 % 3]
        x, y, V = frank_wolfe(scene, tol)[0], scene.y, scene.vertices
        d = float(np.linalg.norm(y - x))
        normal = (y - x) / d
        for noise in (0.0, 0.3, 3.0):
            gradient = -normal + noise * rng.normal(size=x.size)
            along = float(gradient @ normal)
            kept = gradient if d * d <= tol or along >= 0 else gradient - along * normal
            worst = float(gradient @ x - kept @ y + (V @ (kept - gradient)).max())
            size = float(np.linalg.norm(gradient))
            yield worst, size * math.sqrt(tol), f"{scene.name}, noise {noise}"
            if np.linalg.norm(kept) > size * (1 + 1e-12):
                yield 2.0, 1.0, f"{scene.name}: |g| > |D|"


@check("one oracle: regret <= its bound, P = 0")
def one_oracle() -> Iterator[Case]:
    """Ader on the ball, Hedge and one run for the mean, written anew; T = 400, b = 1."""
    for k, scene in enumerate(scenes(9, seed=11)):
        T, K = 400, 20
        M, tol = T // K, min(1.0, C / K)
        steps = [math.sqrt(3.5 / M) * 2**i for i in range(4)]
        regret = _one_oracle_regret(scene, steps, M, K, tol * scene.D**2, k)
        prices = [
            T * math.sqrt(tol)
            + K * (0.125 / h + h * M / 2)
            + K * math.sqrt(M / 8) * (1 + 2 * math.log(i + 2))
            for i, h in enumerate(steps)
        ]
        yield regret, min(prices) * scene.D, f"{scene.name}, foe {k % 4}"


def _one_oracle_regret(
    scene: Scene, steps: list[float], M: int, K: int, tol: float, foe: int
) -> float:
    """Regret of the learner of section 7 after M blocks of K rounds, G = 1."""
    center, D, rng = scene.vertices.mean(axis=0), scene.D, np.random.default_rng(foe)
    points = np.tile(center, (len(steps), 1))
    prior = np.array([1 / (i * (i + 1)) for i in range(1, len(steps) + 1)])
    totals, x, gradients, suffered = np.zeros(len(steps)), center, [], 0.0
    for _ in range(M):
        weights = prior * np.exp(-math.sqrt(8 / M) / (K * D) * (totals - totals.min()))
        y = weights @ points / weights.sum()
        x = frank_wolfe(scene._replace(x=x, y=y), tol)[0]
        gradient = K * _gradient(foe, scene, x, y, rng)
        gradients.append(gradient)
        suffered += float(gradient @ x)
        away = y - x
        outside = away @ away > tol and gradient @ away < 0
        kept = gradient - (gradient @ away) / (away @ away) * away if outside else gradient
        totals += points @ kept
        points = points - np.outer(steps, kept) * (D / K) - center
        far = np.linalg.norm(points, axis=1, keepdims=True) / (D / 2)
        points = center + points / np.maximum(far, 1.0)
    return suffered - float((scene.vertices @ sum(gradients)).min())


@check("lower bound: G R T/(1 + (2N)^(1/2))^(1/2) <= regret <= upper bound, b = 1")
def between() -> Iterator[Case]:
    """Games against the adversary of lower_bound.md, with every learner that keeps to a budget."""
    for T in (64, 300):
        for make in (dw.BOGDIP, dw.POLD, dw.POLA, dw.OnlineFrankWolfe):
            game = dw.streams.ResistingOracle(T)
            budget = (
                {}
                if make is dw.OnlineFrankWolfe
                else {"oracle": dw.Oracle(lmo_budget=1), "tuning": "certified"}
            )
            learner = make(game.domain, horizon=T, lipschitz=1.0, **budget)
            suffered = dw.play(learner, game.losses(learner)).losses.sum()
            regret = float(suffered)  # the comparator suffers nothing
            where = f"{make.__name__}, T = {T}"
            yield T / math.sqrt(1 + math.sqrt(2 * T)), regret, f"{where}, from below"
            yield regret, learner.bound(**({"tau": T} if make is dw.POLA else {})), where


@check(
    "lower bound: G R T/(1 + (2 floor(N/S))^(1/2))^(1/2) <= dynamic regret <= upper bound, b = 1"
)
def between_with_moves() -> Iterator[Case]:
    """The same adversary in segments; its comparators suffer nothing."""
    for T, S in ((300, 6), (300, 75)):
        for make in (dw.BOGDIP, dw.POLD, dw.POLA):
            game = dw.streams.ResistingOracle(T, segments=S)
            learner = make(game.domain, T, 1.0, oracle=dw.Oracle(lmo_budget=1), tuning="certified")
            regret = float(dw.play(learner, game.losses(learner)).losses.sum())
            where = f"{make.__name__}, T = {T}, S = {S}"
            yield T / math.sqrt(1 + math.sqrt(2 * (T // S))), regret, f"{where}, from below"
            yield game.path_length, math.sqrt(2.0) * (S - 1), f"{where}, path"
            yield regret, learner.bound(path_length=game.path_length), where


@check("constraints: regret and violation of CutBOGDIP and LongTerm <= their bounds")
def constrained_games() -> Iterator[Case]:
    """Each loss pushes away from u, and each constraint is a wall between u and the decision."""
    T, G, L, ball = 300, 1.5, 0.7, dw.L2Ball(3)
    u = np.array([0.2, -0.1, 0.3])
    known = {"lipschitz": G, "constraint_lipschitz": L}
    certified = dw.BOGDIP(ball, T, tuning="certified")
    scale = 2 * L * 2.75 * 2 * T**0.75  # C <= 2.75 D T^(3/4): v0 = 1/2, as G is learned
    learners = {
        "CutBOGDIP, certified": dw.contrib.CutBOGDIP(ball, T, G, tuning="certified"),
        "CutBOGDIP": dw.contrib.CutBOGDIP(ball, T, G),
        "LongTerm, BOGDIP": dw.contrib.LongTerm(ball, certified, T, **known, violation_scale=scale),
        "LongTerm, POLAR": dw.contrib.LongTerm(ball, dw.POLAR, T, **known),
    }
    for name, learner in learners.items():
        regret = 0.0
        for _ in range(T):
            away = learner.decision - u
            away /= max(float(np.linalg.norm(away)), 1e-300)
            wall = dw.losses.LinearLoss(L * away, -L * float(away @ u))
            loss = dw.losses.LinearLoss(-G * away)
            regret += learner.update(loss, constraint=wall) - loss.value(u)
        yield regret, learner.bound(), f"{name}, regret"
        yield learner.violation, learner.violation_bound(), f"{name}, violation"


@check("windows: dynamic regret of POLA, SAOL, one-projection SAOL and PAMO <= its bound")
def window_games() -> Iterator[Case]:
    """Signs that turn ever more often; comparators at the best end of stretches of equal length."""
    T, rng = 256, np.random.default_rng(5)
    signs = np.repeat(rng.choice([-1.0, 1.0], 200), np.repeat([64, 8, 2, 1], [2, 8, 20, 170]))[:T]
    settings = {
        dw.POLA: {"oracle": dw.Oracle(lmo_budget=60.0)},
        dw.learners.SAOL: {},
        dw.learners.PAMO: {"gauge": "exact"},
    }
    settings[dw.learners.OneProjectionSAOL] = {}
    for make, more in settings.items():
        learner = make(dw.L2Ball(1), lipschitz=1.0, tuning="certified", **more)
        suffered = np.array([learner.update(dw.losses.LinearLoss([sign])) for sign in signs])
        for n, first in product((8, 50, 128, T), range(0, T, 16)):
            if first + n > T:
                continue
            window = slice(first, first + n)
            for stretch in (1, 3, 10, n):
                totals = np.add.reduceat(signs[window], np.arange(0, n, stretch))
                path = 2.0 * np.count_nonzero(np.diff(np.sign(totals)))
                path += 2.0 * np.count_nonzero(totals == 0)  # which end is held does not matter
                regret = float(suffered[window].sum() + np.abs(totals).sum())
                where = f"{make.__name__}, n = {n}, P = {path:g}"
                yield regret, learner.bound(path_length=path, tau=n), where


@check("one oracle: a run that ends outside tol has g <= sqrt(tol) d")
def run_ends() -> Iterator[Case]:
    """The stopping rule of the run written anew, which the lemma needs."""
    for k, scene in enumerate(scenes(60, seed=12)):
        tol = scene.D**2 * (0.1, 0.01, 0.001)[k // 3 % 3]
        x = frank_wolfe(scene, tol)[0]
        d = float(np.linalg.norm(x - scene.y))
        if d * d > tol:
            yield gap(scene.vertices, x, scene.y)[0], math.sqrt(tol) * d, scene.name
