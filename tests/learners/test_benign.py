"""Bounds that shrink on benign losses, and the learners for exp-concave and strongly convex ones."""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import bounds
from driftwolfe.ensemble import OptimisticHedge
from driftwolfe.losses import LinearLoss, PortfolioLoss, SquaredDistance
from learners.families import (
    ROUNDING,
    meet,
    path_length,
    random_signs,
    rotating_quadratics,
    vertex_against,
)

ROUNDS = 400


def benign(domain, rounds=ROUNDS):
    """A target that jumps once: gradients vanish between."""
    u, v = domain.lmo(-np.eye(1, domain.shape[0])[0]), domain.origin()
    return [SquaredDistance(0.5 * (u + v) if 2 * t < rounds else v) for t in range(rounds)]


def regret(learner, losses, comparators):
    history = dw.play(learner, losses)
    return history.losses.sum() - sum(f.value(u) for f, u in zip(losses, comparators, strict=True))


# -- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hints", ["none", "right", "wrong", "last"])
def test_optimistic_weights_pay_for_the_errors_of_hints_alone(hints):
    rng = np.random.default_rng(0)
    for size, scale in itertools.product((2, 7), (1e-6, 1.0, 1e8)):
        losses = scale * rng.random((300, size))
        losses[:, 0] *= np.arange(300) % 2  # an expert that is better
        given = {"none": 0 * losses, "right": losses, "wrong": 2 * scale - 3 * losses}
        given["last"] = np.vstack((losses[:1], losses[:-1]))
        meta, lost = OptimisticHedge(size), 0.0
        for hint, loss in zip(given[hints], losses, strict=True):
            meta.expect(hint)
            lost += meta.weights @ loss
            meta.update(loss)
        spans = np.ptp(losses - given[hints], axis=1)
        most = 2 * spans.max() + math.sqrt(math.log(size) * (spans**2).sum())
        assert lost - losses.sum(axis=0).min() <= meta.regret_bound() * (1 + 1e-9)
        assert meta.regret_bound() <= most * (1 + 1e-6) + 1e-9 * scale
        if hints == "right":
            assert lost == pytest.approx(np.sort(losses, axis=1)[:, 0].sum(), rel=1e-9) or (
                lost <= losses.sum(axis=0).min() + 1e-9 * scale
            )


def test_weights_follow_their_formula():
    meta = OptimisticHedge(3)
    meta.update([0.0, 1.0, 1.0])
    # The gap of equal weights: a mean of 2/3 against the best, 0.
    assert meta.inverse_rate == pytest.approx((2 / 3) / math.log(3))
    meta.expect([0.5, 0.0, 0.0])
    kept = np.exp(-np.array([0.5, 1.0, 1.0]) / meta.inverse_rate)
    np.testing.assert_allclose(meta.weights, kept / kept.sum())


@pytest.mark.parametrize("kind", ["random", "alternating", "against", "hints alone"])
def test_weights_that_start_slow_hardly_move(kind):
    """The lemma on moves of the weights, with what is left of their regret bound in place of E / 2."""
    rng = np.random.default_rng(3)
    for size, start in itertools.product((2, 9), (0.02, 0.5, 20.0)):
        meta, lost, totals = OptimisticHedge(size, start), 0.0, np.zeros(size)
        moved, errors, last = 0.0, 0.0, None
        for _ in range(300):
            hint = rng.random(size) * (1 + 9 * (kind == "hints alone"))
            meta.expect(hint)
            weights = meta.weights
            if last is not None:
                moved += np.abs(weights - last).sum() ** 2
            loss = {
                "random": rng.random(size),
                "alternating": (np.arange(size) + meta.rounds) % 2.0,
                "against": (weights == weights.max()) * 1.0,
                "hints alone": hint + 0.01 * rng.random(size),
            }[kind]
            last, lost, totals = weights, lost + weights @ loss, totals + loss
            errors += np.ptp(loss - hint) ** 2
            meta.update(loss)
        grown = (meta.inverse_rate - start) * math.log(size)
        left = start * math.log(size) + 2 * grown - (lost - totals.min())
        assert left >= -1e-9
        assert lost - totals.min() <= meta.regret_bound() + 1e-9
        assert moved <= 3.75 * errors / start**2 + 12 * left / start


def best_step(G, D, beta, steps, path_length, variation):
    """The bound of docs/theory/benign.md on Sword with that smoothness: the best step of at most 1/(16 beta)."""
    total, ways, C = 2.0 * G**2 + 4.0 * variation, math.log(len(steps)), math.sqrt(7.5)
    small = steps[16.0 * beta * steps <= 1.0]
    best = ((D**2 / 8 + D * path_length / 2) / small + small * total).min()
    return best + D * math.sqrt(total * ways) + (7.5 + C) * beta * D**2 * ways + 4.0 * G * D


@pytest.mark.parametrize("changes", ["none", "slow", "fast", "against"])
def test_gradient_variation(changes):
    """The theorem, with V as it is: losses beta/2 ||x - u||^2 + <c, x>."""
    rounds, beta, G = 1000, 0.2, 1.2
    domain = dw.L2Ball(3)
    rng = np.random.default_rng(5)
    learner = dw.contrib.Sword(domain, rounds, G, smoothness=beta)
    speed = {"none": 0.0, "slow": 0.004, "fast": 0.5, "against": 0.0}[changes]
    linear, variation, suffered, slopes = np.array([0.6, 0.0, 0.0]), 0.0, 0.0, []
    for t in range(rounds):
        x = learner.decision
        before = linear
        angle = speed * t
        linear = 0.6 * np.array([math.cos(angle), math.sin(angle), 0.0])
        if changes == "against":
            linear = 0.6 * x / np.linalg.norm(x) if t % 7 and x.any() else 0.2 * rng.normal(size=3)
            linear *= min(1.0, 0.9 / np.linalg.norm(linear))
        variation += ((linear - before) ** 2).sum() if t else 0.0
        loss = dw.losses.FunctionLoss(
            lambda x, c=linear: float(c @ x + beta / 2 * x @ x), lambda x, c=linear: c + beta * x
        )
        suffered += learner.update(loss)
        slopes.append(linear)
    steps = domain.diameter / G * 2.0 ** -np.arange(learner.expert_weights.size)
    mean = np.mean(slopes, axis=0)
    fixed = -mean / max(beta, np.linalg.norm(mean))  # the best point of the ball
    moving = np.array([-c / max(beta, np.linalg.norm(c)) for c in slopes])
    for comparators in (np.tile(fixed, (rounds, 1)), moving):
        best = sum(c @ u + beta / 2 * u @ u for c, u in zip(slopes, comparators, strict=True))
        moved = np.linalg.norm(np.diff(comparators, axis=0), axis=1).sum()
        most = best_step(G, 2.0, beta, steps, moved, variation)
        assert suffered - best <= most
        assert suffered - best <= learner.bound(moved) * (1 + 1e-9)
    if changes == "none":
        assert most < G * domain.diameter * math.sqrt(rounds)


# -- Sword and SACS ------------------------------------------------------------------------------


def best_share(seen):
    """The share of a gradient that was the best hint of the next."""
    pairs = list(itertools.pairwise(seen))
    if not pairs:
        return 1.0
    return np.clip(sum(a @ b for a, b in pairs) / sum(a @ a for a, _ in pairs), 0, 1)


def plain_sword(domain, rounds, losses, G, own=False):
    """Sword on arrays, word by word: decisions."""
    D = 2 * domain.radius
    number = math.ceil(math.log2(4 * math.sqrt(rounds)) - 1e-9) + 1
    etas = [D / G * 2.0**-i for i in reversed(range(number))]
    bases, points = ([domain.origin()] * number for _ in range(2))
    totals, a, hint, played, seen = np.zeros(number), 0.0, np.zeros(number), [], []
    seen_by = [[] for _ in etas]
    for f in losses:
        behind = totals + hint - (totals + hint).min()
        kept = np.exp(-behind / a) if a else (behind == 0) * 1.0
        weights = kept / kept.sum()
        x = sum(w * p for w, p in zip(weights, points, strict=True))
        played.append(x)
        g = f.gradient(x)
        lost = np.array([g @ p for p in points])

        def phi(L, a=a):
            return L.min() - a * math.log(np.exp(-(L - L.min()) / a).mean()) if a else L.min()

        a += max(0.0, weights @ lost - phi(totals + lost) + phi(totals)) / math.log(number)
        totals = totals + lost
        seen.append(g)
        for i, eta in enumerate(etas):
            seen_by[i].append(f.gradient(points[i]) if own else g)
            bases[i] = domain.project(bases[i] - eta * seen_by[i][-1])
            expected = best_share(seen_by[i]) * seen_by[i][-1]
            points[i] = domain.project(bases[i] - eta * expected)
        share = best_share(seen)
        hint = np.array([share * g @ p for p in points])
    return played


@pytest.mark.parametrize("gradients", ["one", "own"])
def test_sword_is_what_its_docstring_says(gradients):
    domain = dw.L1Ball(3)
    losses = rotating_quadratics(domain, 60).losses
    learner = dw.contrib.Sword(domain, 60, 4.0, gradients=gradients)
    expected = plain_sword(domain, 60, losses, 4.0, own=gradients == "own")
    for f, x in zip(losses, expected, strict=True):
        np.testing.assert_allclose(learner.decision, x, atol=1e-9)
        learner.update(f)


@pytest.mark.in_turn
@pytest.mark.parametrize("domain", [dw.L2Ball(3), dw.Simplex(4)], ids=["ball", "simplex"])
@pytest.mark.parametrize(
    ("settings", "most", "promised"),
    [
        ({}, 0.25, 0.1),
        ({"oracle": "auto"}, 0.25, 0.1),
        ({"gradients": "own"}, 0.25, 0.1),
        ({"smoothness": 1.0}, 0.35, 0.2),
    ],
    ids=["each", "one", "own", "corrected"],
)
def test_sword_has_little_regret_on_benign_losses_and_knows_it(domain, settings, most, promised):
    losses = benign(domain)
    targets = [f.target for f in losses]
    learner = dw.contrib.Sword(domain, ROUNDS, 2.0, **settings)
    found, bound = regret(learner, losses, targets), learner.bound(path_length(targets))
    assert found <= bound
    ader = dw.Ader(domain, ROUNDS, 2.0)
    dw.play(ader, losses)
    assert bound < promised * ader.bound(path_length(targets))
    hard = vertex_against(domain, ROUNDS, G=2.0)
    against = dw.contrib.Sword(domain, ROUNDS, 2.0, **settings)
    meeting = meet(against, hard)
    adverse = meeting.regret(meeting.comparators(1))
    assert found < most * adverse <= most * against.bound()
    # A in the worst case is 4 G^2 T.
    assert against.bound() < 12.0 * domain.diameter * 2.0 * math.sqrt(ROUNDS)


def kinks(rounds):
    """Absolute errors of linear functions, and the slopes that they come from, which change half-way."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((rounds, 3)) / 2
    truth = np.where(np.arange(rounds)[:, None] < rounds / 2, [0.5, 0.0, 0.0], [0.0, 0.0, -0.5])
    pairs = zip(rows, (rows * truth).sum(axis=1), strict=True)
    return [dw.losses.AbsoluteRows(row[None], [y]) for row, y in pairs], truth


def test_own_gradients_help_where_losses_have_kinks():
    losses, truth = kinks(ROUNDS)
    G, found = 2.0, {}
    for gradients in ("one", "own"):
        learner = dw.contrib.Sword(dw.L2Ball(3), ROUNDS, G, gradients=gradients)
        found[gradients] = regret(learner, losses, truth)
        assert found[gradients] <= learner.bound(path_length(truth))
    assert found["own"] < 0.95 * found["one"]
    with pytest.raises(ValueError, match="arrays"):
        dw.contrib.Sword(dw.TraceNormBall((3, 4), representation="factored"), gradients="own")
    with pytest.raises(ValueError, match="exact"):
        dw.contrib.Sword(dw.L2Ball(3), gradients="own", oracle="auto")


def test_sword_with_own_gradients_is_saved_and_refuses_like_all_learners(tmp_path):
    losses, _ = kinks(120)
    learner = dw.contrib.Sword(dw.Simplex(3), gradients="own")
    dw.play(learner, losses[:80])  # the second epoch
    before = learner.decision
    with pytest.raises(ValueError, match="largest allowed"):
        learner.update(LinearLoss([1e200, 0.0, -1e200]))
    np.testing.assert_array_equal(learner.decision, before)
    learner.save(tmp_path / "sword")
    loaded = dw.load(tmp_path / "sword")
    for f in losses[80:]:
        np.testing.assert_array_equal(loaded.decision, learner.decision)
        assert loaded.update(f) == learner.update(f)
    assert loaded.bound(1.0) == learner.bound(1.0)


def test_sacs_with_one_projection_plays_factored_matrices():
    domain = dw.TraceNormBall((6, 5), radius=2.0, representation="factored")
    rng = np.random.default_rng(0)
    slopes = [rng.standard_normal((6, 5)) / 5 for _ in range(3)]
    learner = dw.contrib.SACS(domain, tuning="certified", lipschitz=3.0, projections="one")
    suffered = 0.0
    for t in range(60):
        assert domain.contains(learner.decision, atol=1e-9)
        suffered += learner.update(LinearLoss(slopes[t % 3]))
    total = 20 * sum(slopes)
    assert suffered + 2.0 * np.linalg.norm(total, 2) <= learner.bound()
    assert learner.oracle_calls.projection == 60


def plain_sacs(domain, losses, B):
    """SACS with one projection, word by word: decisions."""
    R, experts, largest = domain.radius, {}, 0.0
    y, played = domain.origin(), []
    for t, f in enumerate(losses, start=1):
        for k in range(t.bit_length()):
            if t % 2**k == 0:
                experts[k] = {"y": y, "R": 0.0, "C": 0.0, "squares": 0.0}
        weights = {}
        for k, e in experts.items():
            up, down = (math.exp(max(e["R"] + s, 0) ** 2 / (3 * e["C"] + 3)) for s in (1, -1))
            weights[k] = (up - down) / 2
        total = sum(weights.values())
        if not total:
            weights, total = dict.fromkeys(experts, 1.0), len(experts)
        y = sum(weights[k] / total * experts[k]["y"] for k in experts)
        x = domain.project(y)
        played.append(x)
        g, away = f.gradient(x), np.linalg.norm(y - x)
        largest = max(largest, np.linalg.norm(g))
        if away > 1e-7 * R and g @ (y - x) < 0:
            g = g - (g @ (y - x)) * (y - x) / away**2
        for e in experts.values():
            ahead = g @ (y - e["y"]) / B
            e["R"], e["C"], e["squares"] = e["R"] + ahead, e["C"] + abs(ahead), e["squares"] + g @ g
            end = e["y"] - 2 * R / math.sqrt(32 * largest**2 + 8 * e["squares"]) * g
            e["y"] = end * min(1.0, R / np.linalg.norm(end))
    return played


def test_sacs_with_one_projection_is_what_its_docstring_says():
    domain = dw.L1Ball(3)
    losses = rotating_quadratics(domain, 100).losses
    learner = dw.contrib.SACS(domain, lipschitz=2.0, loss_scale=9.0, projections="one")
    for f, x in zip(losses, plain_sacs(domain, losses, 9.0), strict=True):
        np.testing.assert_allclose(learner.decision, x, atol=1e-9)
        learner.update(f)
    assert learner.oracle_calls.projection == 100


@pytest.mark.parametrize("projections", ["each", "one"])
def test_sacs_has_little_regret_on_benign_intervals_and_knows_it(projections):
    domain = dw.L2Ball(3)
    losses = benign(domain)
    settings = {"lipschitz": 2.0, "tuning": "certified", "projections": projections}
    learner = dw.contrib.SACS(domain, **settings)
    found = regret(learner, losses, [f.target for f in losses])
    saol = dw.learners.SAOL(domain, lipschitz=2.0, tuning="certified")
    dw.play(saol, losses)
    assert learner.bound(tau=100) < 0.25 * saol.bound(tau=100)
    meeting = meet(dw.contrib.SACS(domain, **settings), random_signs(domain, ROUNDS, G=2.0))
    assert found < 0.2 * meeting.regret(meeting.comparators(1))
    assert meeting.window_regret(100) <= meeting.learner.bound(tau=100)


def test_bounds_without_a_horizon_add_up_over_epochs():
    domain = dw.L2Ball(2)
    for learner in (dw.contrib.Sword(domain), dw.contrib.Scream(domain, switching=0.5)):
        losses = random_signs(domain, 250).losses
        u = domain.lmo(sum(f.g for f in losses))
        found = regret(learner, losses, [u] * 250)
        assert found <= learner.bound()


# -- switching costs -----------------------------------------------------------------------------


@pytest.mark.parametrize("switching", [0.1, 3.0])
def test_scream_keeps_its_bound_with_what_moving_costs(switching):
    domain = dw.L2Ball(3)
    for arena in (random_signs(domain, 300), rotating_quadratics(domain, 200)):
        learner = dw.contrib.Scream(domain, arena.rounds, arena.lipschitz, switching=switching)
        points = []
        for f in arena.losses:
            points.append(learner.decision)
            learner.update(f)
        moved = path_length([*points, learner.decision])
        assert learner.moved == pytest.approx(moved, rel=1e-9)
        for pieces in (1, 5):
            cuts = np.linspace(0, arena.rounds, pieces + 1).astype(int)
            pairs = itertools.pairwise(cuts)
            best = [
                u for a, b in pairs for u in [arena.best(arena.losses[a:b], int(a))] * int(b - a)
            ]
            games = zip(arena.losses, points, best, strict=True)
            lost = sum(f.value(x) - f.value(u) for f, x, u in games)
            assert lost + switching * moved <= learner.bound(path_length(best)) * (1 + ROUNDING)


def test_moving_less_pays_where_it_costs():
    domain = dw.L2Ball(3)
    noisy = random_signs(domain, 400).losses
    ader, scream = dw.Ader(domain, 400, 1.0), dw.contrib.Scream(domain, 400, 1.0, switching=5.0)
    points = []
    for f in noisy:
        points.append(ader.decision)
        ader.update(f)
        scream.update(f)
    assert scream.moved < 0.5 * path_length(points)


# -- follow the perturbed leader -----------------------------------------------------------------


@pytest.mark.parametrize("reacts", [False, True], ids=["signs", "against"])
@pytest.mark.parametrize("given", ["known", "auto"])
def test_the_mean_regret_of_ftpl_is_below_its_bound(reacts, given):
    domain, rounds, games = dw.Simplex(6), 150, 12
    differences = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        G = 1.0 if given == "known" else "auto"
        learner, total, lost = dw.contrib.FTPL(domain, lipschitz=G, seed=seed), np.zeros(6), 0.0
        last = np.eye(6)[0]
        for _ in range(rounds):
            g = rng.choice([-1.0, 1.0], 6) / math.sqrt(6)
            if reacts:  # the last vertex that was played is charged
                g, last = last, learner.decision
            lost += learner.update(LinearLoss(g))
            total += g
        differences.append(lost - total.min() - learner.bound())
    error = np.std(differences) / math.sqrt(games)
    assert np.mean(differences) + 3 * error < 0.0
    assert learner.lmo_calls <= rounds + 1
    with pytest.raises(NotImplementedError):
        learner.bound(path_length=1.0)


def test_ftpl_draws_the_leader_with_normal_noise():
    """Its law, by the probability of a vertex of a segment, in closed form."""
    domain = dw.Simplex(2)
    loss = LinearLoss([0.3, 0.0])
    firsts = []
    for seed in range(400):
        learner = dw.contrib.FTPL(domain, lipschitz=1.0, seed=seed)
        learner.update(loss)
        firsts.append(learner.decision[0])
    eta = math.sqrt(math.sqrt(2 / math.pi) / math.sqrt(2) * (0.3**2 + 1.0))
    chance = 0.5 * math.erfc(0.3 / (eta * 2.0))  # noise of both has the deviation eta sqrt(2)
    assert np.mean(firsts) == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 400))


# -- exp-concave and strongly convex losses ------------------------------------------------------


def test_aflh_has_logarithmic_regret_on_intervals():
    """Every window, against the best of a grid of portfolios."""
    simplex, rounds = dw.Simplex(2), 256
    rng = np.random.default_rng(0)
    prices = np.exp(0.4 * rng.uniform(-1.0, 1.0, (rounds, 2)))
    prices[rounds // 2 :] = prices[rounds // 2 :, ::-1] * [1.0, 1.5]
    losses = [PortfolioLoss(r) for r in prices]
    G = max(np.linalg.norm(simplex.tangent(f.gradient(v))) for f in losses for v in np.eye(2))
    learner = dw.contrib.AFLH(simplex, lipschitz=G, alpha=1.0)
    suffered = np.array([learner.update(f) for f in losses])
    grid = np.linspace(0.0, 1.0, 400)
    table = -np.log(np.outer(prices[:, 0], grid) + np.outer(prices[:, 1], 1.0 - grid))
    for tau in (1, 20, 100, rounds):
        sums = np.vstack((np.zeros(400), np.cumsum(table, axis=0)))
        best = (sums[tau:] - sums[:-tau]).min(axis=1)
        lost = np.convolve(suffered, np.ones(tau), "valid")
        assert (lost - best).max() <= learner.bound(tau=tau)
    # From 256 to 65,536 rounds it grows by the square of a logarithm, not by 16.
    before = learner.bound()
    learner.t = 65_536
    assert learner.bound() < 6.0 * before


def test_aflh_weighs_specialists():
    """Weights as a product over the rounds that each was awake, and those awake."""
    simplex = dw.Simplex(2)
    learner, logs = dw.contrib.AFLH(simplex, lipschitz=1.0, alpha=1.0), {1: -math.log(2.0)}
    rng = np.random.default_rng(1)
    for t in range(1, 40):
        awake = [s for s in range(1, t + 1) if s + (s & -s) > t]
        assert learner.expert_names == [f"since {s}" for s in awake]
        w = np.exp([logs[s] for s in awake])
        np.testing.assert_allclose(learner.expert_weights, w / w.sum(), rtol=1e-9)
        loss = PortfolioLoss(np.exp(rng.uniform(-1.0, 1.0, 2)))
        values = np.array([loss.value(x) for x in learner._experts.x])
        mixed = -math.log((w / w.sum()) @ np.exp(-values))
        assert learner.update(loss) <= mixed + 1e-12
        logs |= {s: logs[s] + mixed - v for s, v in zip(awake, values, strict=True)}
        logs[t + 1] = -math.log((t + 1) * (t + 2))


@pytest.mark.parametrize("domain", [dw.L1Ball(4), dw.BirkhoffPolytope(3)], ids=["l1", "birkhoff"])
def test_strongly_convex_frank_wolfe_keeps_its_bound(domain):
    rng, rounds = np.random.default_rng(0), 400
    targets = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(rounds)]
    losses, u = [SquaredDistance(v) for v in targets], np.mean(targets, axis=0)
    learner = dw.contrib.StronglyConvexOFW(domain, lipschitz=domain.diameter)
    found = regret(learner, losses, [u] * rounds)
    assert found <= learner.bound()
    known = domain.diameter, 1.0, domain.diameter, rounds
    assert learner.bound() <= bounds.strongly_convex_frank_wolfe(*known)
    assert learner.lmo_calls <= rounds
    # T^(2/3).
    few, many = (bounds.strongly_convex_frank_wolfe(1.0, 1.0, 1.0, T) for T in (4000, 32_000))
    assert 3.8 < many / few < 4.4


def test_strongly_convex_steps_against_a_solver():
    """One round by hand: a line search on the sum of quadratic models."""
    from scipy.optimize import minimize_scalar

    domain, rng = dw.L1Ball(3), np.random.default_rng(2)
    learner, models = dw.contrib.StronglyConvexOFW(domain, strong_convexity=0.7), []
    for target in rng.uniform(-1.0, 1.0, (6, 3)):
        x, f = learner.decision, SquaredDistance(target)
        models.append((f.gradient(x), x))

        def total(y, models=models):
            return sum(g @ y + 0.35 * (y - z) @ (y - z) for g, z in models)

        slope = sum(g + 0.7 * (x - z) for g, z in models)
        v = domain.lmo(slope)
        best = minimize_scalar(lambda s, x=x, v=v: total(x + s * (v - x)), bounds=(0.0, 1.0))
        learner.update(f)
        assert total(learner.decision) == pytest.approx(best.fun, abs=1e-6)


@pytest.mark.parametrize("pieces", [1, 4])
def test_multi_ocg_has_a_bound_for_strongly_convex_losses(pieces):
    domain, rounds = dw.L1Ball(3), 120
    rng = np.random.default_rng(0)
    held = [domain.lmo(rng.standard_normal(3)) for _ in range(pieces)]
    noise = [domain.lmo(rng.standard_normal(3)) for _ in range(rounds)]
    targets = [0.7 * held[t * pieces // rounds] + 0.3 * noise[t] for t in range(rounds)]
    losses = [SquaredDistance(v) for v in targets]
    size = rounds // pieces
    best = [np.mean(targets[t // size * size :][:size], axis=0) for t in range(rounds)]
    learner = dw.learners.MultiOCG(domain, rounds, 2.0, tuning="certified", strong_convexity=1.0)
    found, bound = regret(learner, losses, best), learner.bound(path_length(best))
    assert found <= bound
    # Each leader's bound of its restarts, what moving costs it, and what finding it costs: -ln(p) G^2/lambda.
    lengths = [1 << i for i in range((rounds - 1).bit_length() + 1)]
    assert bound == pytest.approx(
        min(
            rounds // n * bounds.strongly_convex_leader(2.0, 1.0, n)
            + bounds.strongly_convex_leader(2.0, 1.0, rounds % n)
            + 2.0 * n * path_length(best)
            - 4.0 * math.log(p)
            for n, p in zip(lengths, learner._meta.prior, strict=True)
        )
    )
    convex = dw.learners.MultiOCG(domain, rounds, 2.0, tuning="certified")
    dw.play(convex, losses)
    assert bound < convex.bound(path_length(best))
    linear = dw.learners.MultiOCG(
        domain, rounds, 2.0, tuning="certified", strong_convexity=1.0, feedback="linear"
    )
    with pytest.raises(NotImplementedError):  # its weights see no curvature
        linear.bound()
