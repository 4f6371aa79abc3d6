"""Learners against plain loops, projection-free experts against exact ones, bounds by hand."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import bounds, reference
from driftwolfe.ensemble import GeometricCover
from driftwolfe.losses import LinearLoss, SquaredDistance
from learners.families import (
    ball_projection,
    bound_after,
    low_rank,
    play_all,
    random_signs,
    simplex_projection,
)

AGREE = 1e-10
ORACLES = {"exact": reference.exact_projection, "paper": reference.infeasible_projection}


def descend(x1, losses, project, eta):
    """Projected gradient descent; eta is a function of the round."""
    x, played = x1, []
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        x = project(x - eta(t) * loss.gradient(x))
    return np.array(played)


PLACES = {
    "ball": (dw.L2Ball(4, radius=1.5), ball_projection(1.5), np.zeros(4)),
    "simplex": (dw.Simplex(4), simplex_projection, np.full(4, 0.25)),
}


def mixed_losses(rounds, seed=0):
    """Squared distances and linear losses whose targets jump: nothing is the same twice."""
    rng = np.random.default_rng(seed)
    where = 1.0
    losses = []
    for t in range(rounds):
        where = -where if t % 40 == 39 else where
        given = where * np.array([1.0, 0.5, 0.0, -0.3]) + 0.3 * rng.standard_normal(4)
        losses.append(LinearLoss(given) if t % 3 == 0 else SquaredDistance(given))
    return losses


def decisions(learner, losses):
    """What is played before each loss."""
    played = []
    for loss in losses:
        played.append(learner.decision)
        learner.update(loss)
    return np.array(played)


@pytest.fixture(params=PLACES, name="place")
def _place(request):
    return PLACES[request.param]


@pytest.mark.parametrize("horizon", [300, None])
def test_ogd_is_projected_gradient_descent(place, horizon):
    domain, project, x1 = place
    losses = mixed_losses(300)
    D = 2 * domain.radius

    def eta(t):
        return D / 4.0 / math.sqrt(horizon or t)

    learner = dw.OGD(domain, horizon=horizon, lipschitz=4.0)
    np.testing.assert_allclose(
        decisions(learner, losses), descend(x1, losses, project, eta), atol=AGREE
    )


@pytest.mark.parametrize("method", ["exact", "paper"])
@pytest.mark.parametrize(
    ("cls", "feedback", "plain"),
    [
        (dw.Ader, "full", lambda *game, oracle: reference.ader(*game, False)),
        (dw.Ader, "linear", lambda *game, oracle: reference.ader(*game, True)),
        (dw.BOGDIP, None, reference.bogd_ip),
        (dw.POLD, "full", lambda *game, oracle: reference.pold(*game, False, oracle)),
        (dw.POLD, "linear", lambda *game, oracle: reference.pold(*game, True, oracle)),
    ],
)
def test_learners_with_a_horizon_are_their_references(place, cls, feedback, plain, method):
    domain, losses, G = place[0], mixed_losses(300), 4.0
    given = {} if feedback is None else {"feedback": feedback}
    if cls is not dw.Ader:  # which projects exactly
        given["oracle"] = method
    learner = cls(domain, horizon=300, lipschitz=G, tuning="certified", **given)
    expected = plain(domain, losses, G, oracle=ORACLES[method])
    np.testing.assert_allclose(decisions(learner, losses), expected, atol=AGREE)


@pytest.mark.parametrize("start", ["current", "origin"])
@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("scale", [None, "auto", 40.0])
def test_pola_is_the_reference(place, start, linear, scale):
    domain, losses, G = place[0], mixed_losses(140), 4.0
    for method in ("exact", "paper"):
        how = {"start": start, "linear": linear, "oracle": ORACLES[method]}
        plain = reference.pola(domain, losses, G, scale, **how)
        given = {"tuning": "certified", "oracle": method, "loss_scale": scale, "start": start}
        given["feedback"] = "linear" if linear else "full"
        learner = dw.POLA(domain, lipschitz=G, **given)
        np.testing.assert_allclose(decisions(learner, losses), plain, atol=AGREE)


def saol(domain, losses, B, G):
    """An expert for every interval, made when it starts and dropped when it has ended."""
    experts, played, last = {}, [], domain.origin()
    for t, loss in enumerate(losses, start=1):
        experts = {interval: e for interval, e in experts.items() if sum(interval) > t}
        for length in GeometricCover().starting(t):
            experts[t, length] = [last, min(0.5, length**-0.5)]
        total = sum(weight for _, weight in experts.values())
        last = sum(weight / total * x for x, weight in experts.values())
        played.append(last)
        for (_, length), expert in experts.items():
            x, weight = expert
            ahead = (loss.value(last) - loss.value(x)) / B
            step = 2 * domain.radius / G / math.sqrt(length) * loss.gradient(x)
            expert[:] = domain.project(x - step), weight * (1 + min(0.5, length**-0.5) * ahead)
    return np.array(played)


@pytest.mark.parametrize("domain", [dw.L1Ball(4), dw.L2Ball(4, radius=1.5), dw.Simplex(4)])
def test_saol_is_experts_on_the_intervals_of_a_cover(domain):
    losses, B, G = mixed_losses(300), 40.0, 5.0
    learner = dw.learners.SAOL(domain, lipschitz=G, loss_scale=B)
    plain = saol(domain, losses, B, G)
    np.testing.assert_allclose(decisions(learner, losses), plain, rtol=0, atol=AGREE)


@pytest.mark.parametrize("horizon", [300, 2, None])
def test_online_frank_wolfe_is_three_lines(place, horizon):
    """Where T is short, or t takes its place, a step goes all the way to the vertex and no farther."""
    domain, _, x1 = place
    G, D = 4.0, 2 * domain.radius
    losses = mixed_losses(300)
    x, total, plain = x1, np.zeros(4), []
    for t, loss in enumerate(losses, start=1):
        plain.append(x)
        T = horizon or t
        total = total + loss.gradient(x)
        direction = x - x1 + (D / (2 * G)) * (3 / T) ** 0.75 * total
        share = min(1.0, math.sqrt(3 / T))
        x = (1 - share) * x + share * domain.lmo(direction)
    learner = dw.OnlineFrankWolfe(domain, horizon=horizon, lipschitz=G)
    np.testing.assert_allclose(decisions(learner, losses), plain, atol=AGREE)


def test_multi_ocg_follows_its_leaders():
    """Where Frank-Wolfe reaches its gap, an expert is within D/sqrt(gamma) of the exact leader."""
    domain, project, x1 = PLACES["ball"]
    T, G, D = 64, 4.0, 2 * domain.radius
    losses = mixed_losses(T)
    learner = dw.learners.MultiOCG(
        domain, horizon=T, lipschitz=G, tuning="certified", feedback="linear"
    )
    leaders = learner._experts
    anchors = [x1] * leaders.size
    totals = [np.zeros(4)] * leaders.size
    for t, loss in enumerate(losses, start=1):
        g = loss.gradient(learner.decision)
        learner.update(loss)
        for i in range(leaders.size):
            gamma, x = 2**i, learner._experts.experts[i].x
            totals[i] = totals[i] + g
            if t % gamma == 0:
                anchors[i], totals[i] = x, np.zeros(4)
                continue
            eta = 2 * D / (G * math.sqrt(gamma))
            leader = project(anchors[i] - eta / 2 * totals[i])
            assert np.linalg.norm(x - leader) <= D / math.sqrt(gamma) * (1 + 1e-9)


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


CROSS = 1.5 * np.concatenate((np.eye(4), -np.eye(4)))
HULLS = {
    "l1": (dw.L1Ball(4, radius=1.5), CROSS, np.zeros(4), lambda g: g),
    "simplex": (dw.Simplex(4), np.eye(4), np.full(4, 0.25), lambda g: g - g.mean()),
}


def turning_losses(T):
    """Linear losses whose sign turns every 50 rounds."""
    rng, costs = np.random.default_rng(1), np.array([1.0, 0.9, -0.8, -1.1])
    return [LinearLoss((-1) ** (t // 50) * costs + 0.3 * rng.standard_normal(4)) for t in range(T)]


def nearest_in(name):
    """The projection on a set of HULLS."""
    if name == "simplex":
        return simplex_projection

    def on_l1_ball(y):
        inside = np.abs(y).sum() <= 1.5
        return y if inside else np.sign(y) * 1.5 * simplex_projection(np.abs(y) / 1.5)

    return on_l1_ball


@pytest.mark.parametrize("name", HULLS)
@pytest.mark.parametrize("method", ["exact", "halfspace"])
def test_one_oracle_ader_is_experts_on_a_ball_and_one_run(name, method):
    """A budget of 40 calls a round affords the tolerance; both signs of <g, y - x> occur."""
    domain, vertices, x1, tangent = HULLS[name]
    T, G, budget, R = 300, 4.0, 40.0, np.linalg.norm(vertices[0] - x1)
    losses, nearest = turning_losses(T), nearest_in(name)
    K = math.ceil(math.sqrt(T / budget))
    M, D = math.ceil(T / K), 2 * R
    N = math.ceil(0.5 * math.log2(1 + 4 * M / 7)) + 1
    tolerance = 0.1 * 2.6 * D**2 / (budget * K)
    near = frank_wolfe_until(vertices, tolerance)

    plain, cut, kept = one_oracle_ader(
        x1,
        losses,
        (lambda x, y: (nearest(y), 0.0)) if method == "exact" else near,
        tangent,
        radius=R,
        block=K,
        steps=[2**i * math.sqrt(7 / (2 * M)) for i in range(N)],
        scale=D / G / K,
        rate=math.sqrt(8 / M) / (G * D),
        tolerance=tolerance,
    )
    assert min(cut, kept) > 3
    oracle = dw.Oracle(method, lmo_budget=budget, tolerance_scale=0.1)
    learner = dw.learners.OneOracleAder(domain, T, G, tuning="certified", oracle=oracle)
    np.testing.assert_allclose(decisions(learner, losses), plain, atol=1e-8)


@pytest.mark.parametrize("name", HULLS)
def test_one_projection_ader_is_experts_on_a_ball_and_a_projection(name):
    domain, vertices, x1, tangent = HULLS[name]
    T, G, R = 200, 4.0, np.linalg.norm(vertices[0] - x1)
    N, D, losses = math.ceil(0.5 * math.log2(1 + 4 * T / 7)) + 1, 2 * R, turning_losses(T)
    held = {i: (x1, D / G * 2 ** (i - 1) * math.sqrt(7 / (2 * T))) for i in range(1, N + 1)}
    lead = dict.fromkeys(held, 0.0)

    def weigh():
        rate = math.sqrt(8 / T) / (G * D)
        weights = {i: math.exp(rate * lead[i]) / (i * (i + 1)) for i in held}
        return {i: w / sum(weights.values()) for i, w in weights.items()}

    def learn(i, ahead):
        lead[i] += ahead

    play = nearest_in(name), tangent, R, lambda t, y: held, weigh, learn
    plain, cut = one_projection(x1, losses, *play)
    assert 3 < cut < T - 3
    learner = dw.learners.OneProjectionAder(domain, horizon=T, lipschitz=G, tuning="certified")
    np.testing.assert_allclose(decisions(learner, losses), plain, atol=AGREE)
    assert learner.oracle_calls.projection == T


@pytest.mark.parametrize("name", HULLS)
def test_one_projection_saol_is_a_dictionary_of_intervals_on_a_ball(name):
    domain, vertices, x1, tangent = HULLS[name]
    T, G, R = 140, 4.0, np.linalg.norm(vertices[0] - x1)
    D, losses, held, states = 2 * R, turning_losses(T), {}, {}

    def experts(t, y):
        for interval in [interval for interval in held if sum(interval) == t]:
            del held[interval], states[interval]
        for k in range(t.bit_length()):
            if t % 2**k == 0:
                held[t, 2**k] = y, D / G / math.sqrt(2**k)
                states[t, 2**k] = min(0.5, 2 ** (-k / 2))
        return held

    def weigh():
        total = sum(states.values())
        return {interval: state / total for interval, state in states.items()}

    def learn(interval, ahead):
        states[interval] *= 1 + min(0.5, interval[1] ** -0.5) * ahead / (G * D)

    plain, cut = one_projection(x1, losses, nearest_in(name), tangent, R, experts, weigh, learn)
    assert 3 < cut < T - 3
    learner = dw.learners.OneProjectionSAOL(domain, lipschitz=G, tuning="certified")
    np.testing.assert_allclose(decisions(learner, losses), plain, atol=AGREE)
    assert learner.oracle_calls.projection == T


def steps_on_the_latest_loss(x1, losses, lmo, share):
    """KalhanOFW and LineSearchOFW."""
    x, played = x1, []
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        g = loss.gradient(x)
        v = lmo(g)
        x = x + share(t, g, x, v) * (v - x)
    return np.array(played)


def test_steps_on_the_latest_loss_follow_its_gradients(place):
    domain, _, x1 = place
    T, losses = 100, mixed_losses(100)

    def lmo(g):
        at_vertex = np.eye(4)[g.argmin()]
        return at_vertex if x1[0] else -1.5 * g / np.linalg.norm(g)

    def searched(t, g, x, v):
        length2, gap = np.sum((v - x) ** 2), g @ (x - v)
        return min(1.0, gap / (2.0 * length2)) if gap > 0 else 0.0

    for learner, share in (
        (dw.learners.KalhanOFW(domain, horizon=T), lambda *_: T**-0.5),
        (dw.learners.KalhanOFW(domain), lambda t, *_: t**-0.5),
        (dw.learners.LineSearchOFW(domain, smoothness=2.0), searched),
    ):
        plain = steps_on_the_latest_loss(x1, losses, lmo, share)
        np.testing.assert_allclose(decisions(learner, losses), plain, atol=AGREE)


@pytest.mark.in_turn("kind linear", "domain")
@pytest.mark.parametrize(("kind", "linear"), [("agile", False), ("agile", True), ("lazy", False)])
@pytest.mark.parametrize(
    "domain",
    [dw.L1Ball(4), dw.Simplex(4), dw.BirkhoffPolytope(3), dw.TraceNormBall((3, 4), radius=2.0)],
    ids=["l1", "simplex", "birkhoff", "trace-norm"],
)
def test_the_gauge_reduction_never_favours_the_expert(domain, kind, linear):
    r"""<g, w - z> <= <g', u - z> for all z in K: the worst z is a vertex; and |g'| <= (1+R/r) |g|."""
    feedback = "linear" if linear else "full"
    learner = dw.learners.PAMO(domain, lipschitz=1.0, gauge="exact", steps=kind, feedback=feedback)
    reduced = 0
    for loss in random_signs(domain, 80).losses:
        experts = learner._experts
        g = domain.tangent(loss.g)
        for i in range(experts.size):
            w, u = experts.x[i], experts.in_ball(i)
            surrogate = experts._surrogate(i, g)
            z = domain.lmo(g - surrogate)
            assert np.vdot(g, w - z) <= np.vdot(surrogate, u - z) + 1e-9
            assert np.linalg.norm(surrogate) <= (1 + learner.kappa) * np.linalg.norm(g) + 1e-9
            reduced += not np.allclose(surrogate, g)
        learner.update(loss)
    assert reduced > 0


@pytest.mark.parametrize("gauge", ["exact", "bisection"])
def test_lazy_pamo_is_the_regularised_leader_of_surrogates(gauge):
    """The expert of 16 rounds, by hand: u = clip(u0 - eta sum g'), w = u / max(1, ||u||_1/rho)."""
    rho, rng, eta = 0.5, np.random.default_rng(3), 0.2
    ball = dw.L1Ball(3, radius=rho)
    # Mostly towards one corner, so that u leaves the set.
    losses = [dw.losses.LinearLoss(rng.normal((1.0, -0.7, 0.2), 0.3)) for _ in range(31)]
    how = {"gauge": gauge, "steps": "lazy", "horizon": 20_000}
    learner = play_all(dw.learners.PAMO(ball, step_scale=eta * 4.0, **how), losses[:15])
    place = learner._lengths.index(16)
    start = learner._experts.point(place)
    u, total, outside = start, np.zeros(3), 0
    for loss in losses[15:30]:
        size = max(1.0, np.abs(u).sum() / rho)
        w = u / size
        np.testing.assert_allclose(learner._experts.point(place), w, atol=1e-8)
        surrogate = loss.g.copy()
        if size > 1.0 and loss.g @ u < 0.0:
            surrogate -= (loss.g @ w) * np.sign(u) / rho
        outside += size > 1.0
        total += surrogate
        u = start - eta * total
        u *= min(1.0, rho / np.linalg.norm(u))
        learner.update(loss)
    assert outside > 5


PROJECTING = (dw.Ader, dw.learners.SAOL)
PROJECTING += (dw.learners.OneProjectionAder, dw.learners.OneProjectionSAOL)


@pytest.mark.in_turn("cls", "domain")
@pytest.mark.parametrize(
    ("cls", "domain", "method"),
    [
        pytest.param(cls, domain, method, id=f"{cls.__name__}-{name}")
        for cls in (dw.BOGDIP, dw.POLD, dw.POLA)
        for name, domain, method in (
            ("l2", dw.L2Ball(4), "corrective"),
            ("l1", dw.L1Ball(5), "corrective"),
            ("simplex", dw.Simplex(5), "corrective"),
            ("trace-norm", dw.TraceNormBall((4, 5)), "corrective"),
            ("trace-norm-block", dw.TraceNormBall((50, 60)), "block"),
        )
    ]
    + [pytest.param(cls, dw.L1Ball(5), "corrective", id=cls.__name__) for cls in PROJECTING],
)
def test_projection_free_play_converges_to_exact_play(cls, domain, method):
    rng = np.random.default_rng(5)
    given = [
        low_rank(rng, domain.shape, 2.0)
        if len(domain.shape) == 2
        else 1.2 * rng.standard_normal(domain.shape)
        for _ in range(3)
    ]
    losses = [SquaredDistance(given[t * 3 // 60]) for t in range(60)]
    common = {"horizon": 60, "lipschitz": 2.0, "tuning": "certified"}
    exact = decisions(cls(domain, oracle="exact", **common), losses)
    apart = []
    for accuracy in (1e-2, 1e-6):
        oracle = dw.Oracle(method, accuracy=accuracy, tolerance_scale=1e-13)
        learner = cls(domain, oracle=oracle, **common)
        apart.append(np.abs(decisions(learner, losses) - exact).max())
        assert method == "block" or learner.oracle_calls.projection == 0
        assert apart[-1] <= math.sqrt(accuracy) * domain.radius
    assert apart[1] <= max(0.05 * apart[0], 1e-6)  # a tolerance of 1e-13 leaves as much


# -- bounds by hand --------------------------------------------------------------------------------

G, R = 3.0, 0.7
D = 2 * R


def test_loo_bogd_has_the_numbers_of_its_inventors():
    T = 10_000
    learner = dw.learners.LOOBOGD(
        dw.L2Ball(3, radius=R), horizon=T, lipschitz=G, tuning="certified"
    )
    eta, block, eps = R / G * T**-0.75, 500, 60 * R**2 / 100
    by_hand = G * T * math.sqrt(3 * eps) + R**2 / (2 * eta) + eta * block * T * G**2 / 2
    assert bound_after(learner, T) == pytest.approx(by_hand, rel=1e-12)


def test_windows_split_into_intervals_that_the_bound_has_counted():
    prices = [1.0, 1.9, 3.1, 5.5, 9.0, 17.0, 30.0]
    for start in range(1, 65):
        for end in range(start, 65):
            paid, first = 0.0, start
            while first <= end:  # the longest interval that fits
                k = min((first & -first).bit_length(), (end - first + 1).bit_length()) - 1
                paid, first = paid + prices[k], first + (1 << k)
            counted = bounds.over_windows(end - start + 1, prices.__getitem__, float, 0.0)
            assert paid <= counted + 1e-12


def test_ogd_has_the_closed_form():
    T, P = 400, 3.0
    ball = dw.L2Ball(3, radius=R)
    known = dw.OGD(ball, horizon=T, lipschitz=G)
    closed = G * D * math.sqrt(T) * (1 / 8 + P / (2 * D) + 1 / 2)
    assert bound_after(known, T, path_length=P) == pytest.approx(closed, rel=1e-12)
    unknown = dw.OGD(ball, lipschitz=G)
    for _ in range(T):
        unknown.update(LinearLoss(np.zeros(3)))
    steps = sum(D / G / math.sqrt(t) for t in range(1, T + 1))
    closed = (D**2 / 2 + D * P) * G * math.sqrt(T) / D + G**2 * steps / 2
    assert unknown.bound(path_length=P) == pytest.approx(closed, rel=1e-12)


def test_multi_ocg_is_the_best_epoch_length_and_the_price_of_finding_it():
    T, P, V = 200, 1.5, 4.0
    domain = dw.L2Ball(3, radius=R)
    learner = dw.learners.MultiOCG(domain, horizon=T, lipschitz=G, tuning="certified")
    N = math.ceil(math.log2(T)) + 1

    def price(i, drift):
        gamma = 2 ** (i - 1)
        prior = (1 + 1 / N) / (i * (i + 1))
        meta = G * D * math.sqrt(T / 8) * (1 - math.log(prior))
        return math.ceil(T / gamma) * 2 * G * D * math.sqrt(gamma) + gamma * drift + meta

    by_path = min(price(i, G * P) for i in range(1, N + 1))
    by_variation = min(price(i, 2 * V) for i in range(1, N + 1))
    assert bound_after(learner, T, path_length=P) == pytest.approx(by_path, rel=1e-12)
    assert bound_after(learner, T, path_length=2 * V / G) == pytest.approx(by_variation, rel=1e-12)


def test_smooth_frank_wolfe_has_the_closed_forms():
    ball, T = dw.L2Ball(3, radius=R), 100
    known = {"variation": 2.0, "first_gap": 0.5}
    kalhan = bound_after(dw.learners.KalhanOFW(ball, horizon=T), T, smoothness=1.5, **known)
    assert kalhan == pytest.approx(10.0 * 4.5 + 1.5 * D**2 * 10.0 / 2, rel=1e-12)
    search = bound_after(dw.learners.LineSearchOFW(ball, smoothness=1.5), T, **known)
    assert search == pytest.approx(math.sqrt(2 * 1.5 * D**2 * T * 4.5) + 9.0, rel=1e-12)
