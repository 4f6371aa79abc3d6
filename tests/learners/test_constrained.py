"""Constraints that are revealed after each decision: theorems of docs/theory/constraints.md, and the API."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import FunctionLoss, LinearLoss, SquaredDistance
from driftwolfe.points import inner

#: G and L of all games.
G, L = 1.5, 0.7


class Wall:
    """The loss pushes away from a fixed point u, and the constraint is the wall between u and the decision."""

    def __init__(self, u):
        self.u = u

    def answer(self, t, x):
        away = x - self.u
        length = np.linalg.norm(away)
        away = away / length if length > 0 else np.eye(self.u.size)[0]
        return LinearLoss(-G * away), LinearLoss(L * away, -L * float(away @ self.u))


class Signs:
    """Losses with random signs, and constraints that are violated on one side of u, in turn."""

    def __init__(self, u):
        self.u, self.rng = u, np.random.default_rng(0)

    def answer(self, t, x):
        axis = np.eye(self.u.size)[t // 40 % 2]
        side = 1.0 if axis @ (x - self.u) >= 0 else -1.0
        slope = G * self.rng.choice([-1.0, 1.0]) * np.eye(self.u.size)[0]
        return LinearLoss(slope), LinearLoss(L * side * axis, -L * side * float(axis @ self.u))


class Halves:
    """A loss that wants to go up, and a wall in every second stretch of rounds: what is learned is forgotten."""

    def __init__(self, u):
        self.u = u

    def answer(self, t, x):
        axis = np.eye(self.u.size)[0]
        wall = LinearLoss(L * axis, -L * float(axis @ self.u))
        return LinearLoss(-G * axis), wall if t // 50 % 2 else LinearLoss(0.0 * axis)


ADVERSARIES = {"wall": Wall, "signs": Signs, "halves": Halves}
SETS = {"l2": dw.L2Ball(3, radius=2.0), "l1": dw.L1Ball(4), "simplex": dw.Simplex(4)}


def met(learner, adversary, rounds):
    """Play; return per round the regret against u, the violation and the decision."""
    regrets, violations, points = [], [], []
    for t in range(rounds):
        x = learner.decision
        f, g = adversary.answer(t, x)
        assert g.value(adversary.u) <= 1e-12
        suffered = learner.update(f, constraint=g)
        assert suffered == pytest.approx(f.value(x), abs=1e-9)
        regrets.append(suffered - f.value(adversary.u))
        violations.append(max(0.0, g.value(x)))
        points.append(x)
    assert learner.violation == pytest.approx(math.fsum(violations))
    return np.array(regrets), np.array(violations), points


def comparator(domain):
    """A point of the set that is not its centre."""
    return 0.7 * domain.origin() + 0.3 * domain.lmo(np.arange(1.0, domain.shape[0] + 1))


def worst(values, tau):
    return np.convolve(values, np.ones(tau), "valid").max()


@pytest.mark.in_turn("against tuning", "name")
@pytest.mark.parametrize("tuning", ["certified", "practical"])
@pytest.mark.parametrize("against", ADVERSARIES)
@pytest.mark.parametrize("name", SETS)
def test_cuts_keep_the_regret_of_bogd_and_bound_violations_on_every_interval(name, against, tuning):
    domain, rounds = SETS[name], 600
    learner = dw.contrib.CutBOGDIP(domain, horizon=rounds, lipschitz=G, tuning=tuning)
    regrets, violations, _ = met(learner, ADVERSARIES[against](comparator(domain)), rounds)
    plain = dw.BOGDIP(domain, horizon=rounds, lipschitz=G, tuning=tuning)
    dw.play(plain, [LinearLoss(0.0 * domain.origin())] * rounds)
    assert regrets.sum() <= learner.bound()
    if tuning == "certified":  # the practical one allows for cut-off projections
        assert learner.bound() == pytest.approx(plain.bound())
    assert violations.sum() <= learner.violation_bound()
    for tau in (1, 50, 300):
        assert worst(regrets, tau) <= learner.bound(tau=tau)
        assert worst(violations, tau) <= learner.violation_bound(tau=tau)


def test_the_bound_on_violations_by_cuts_is_the_theorem():
    """Order T^(7/8), with the constants of the docstring, for the paper's parameters."""
    domain = dw.L2Ball(3, radius=2.0)
    for T in (100, 2500, 10**4):
        learner = dw.contrib.CutBOGDIP(domain, horizon=T, lipschitz=G, tuning="certified")
        met(learner, Wall(comparator(domain)), 40)
        learner.t = T  # a bound is a function of the rounds played, and of G and L
        a, D = math.sqrt(3) + 0.5 + 0.125, 4.0
        closed = math.sqrt(2) * math.sqrt(a + T**0.25) + math.sqrt(3) + 1.0
        assert learner._steepest == pytest.approx(L)
        assert learner.violation_bound() == pytest.approx(L * D * T**0.75 * closed, rel=0.01)


def test_cuts_push_back_into_the_half_space_of_the_block():
    """One block by hand: the step, the half-space of both violated constraints, the projection."""
    domain = dw.L2Ball(2, radius=10.0)
    learner = dw.contrib.CutBOGDIP(domain, horizon=4, lipschitz=1.0, oracle="exact")
    eta = 20.0 * 4**-0.75  # blocks of two rounds
    slope = np.array([-1.0, 0.0])
    limits = [LinearLoss([1.0, 0.0], 0.5), LinearLoss([0.0, 1.0], 1.0)]
    for limit in limits:
        learner.update(LinearLoss(slope), constraint=limit)
    target = -2.0 * eta * slope
    normal = np.array([1.0, 1.0]) / math.sqrt(2.0)  # v + <Gamma, z> <= 0 with v = 1.5
    target = target - max(0.0, normal @ target + 1.5 / math.sqrt(2.0)) * normal
    target *= min(1.0, 10.0 / np.linalg.norm(target))
    np.testing.assert_allclose(learner.decision, target, atol=1e-9)
    assert learner.violation == 1.5
    for _ in range(2):  # a block without violations has none
        learner.update(LinearLoss(slope))
    target -= 2.0 * eta * slope
    target *= min(1.0, 10.0 / np.linalg.norm(target))
    np.testing.assert_allclose(learner.decision, target, atol=1e-9)


@pytest.mark.in_turn("make against", "name")
@pytest.mark.parametrize("against", ADVERSARIES)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize(
    "make",
    [
        lambda domain, T: dw.BOGDIP(domain, T, tuning="certified", oracle="exact"),
        lambda domain, T: dw.POLD(domain, T, oracle="exact"),
        lambda domain, T: dw.POLAR(domain, oracle="exact"),
    ],
    ids=["bogd", "pold", "polar"],
)
def test_growing_penalties_bound_regret_and_violation(make, name, against):
    domain, T = SETS[name], 400
    known = {"lipschitz": G, "constraint_lipschitz": L}
    first = make(domain, T)
    # beta >= 2 L C, with the constant C of the learner's own bound, measured on a trial game.
    trial = dw.contrib.LongTerm(domain, first, T, **known)
    met(trial, ADVERSARIES[against](comparator(domain)), T)
    C = 2.0 * trial.learner.bound() / trial.learner.lipschitz
    learner = dw.contrib.LongTerm(domain, first, T, **known, violation_scale=2.0 * L * C)
    regrets, violations, _ = met(learner, ADVERSARIES[against](comparator(domain)), T)
    seen = learner.learner.bound()
    assert seen <= C * learner.learner.lipschitz  # what the theorem assumes
    assert learner.learner.lipschitz <= G + learner.penalty * L * (1 + 1e-9)
    assert regrets.sum() <= learner.bound() <= 3.0 * G * C
    closed = 2.0 * L * C * math.log(2.0 + (C + domain.diameter * T) / (2.0 * C))
    assert violations.sum() <= learner.violation_bound() <= closed * (1 + 1e-9)


def test_a_constant_penalty_bounds_both_on_every_interval():
    domain, T = dw.L2Ball(3), 500
    weight = G / L * T**0.125
    known = {"lipschitz": G, "constraint_lipschitz": L, "weight": weight}
    learner = dw.contrib.LongTerm(domain, dw.learners.SAOL, T, **known, violation_scale=math.inf)
    regrets, violations, _ = met(learner, Halves(comparator(domain)), T)
    assert learner.penalty == pytest.approx(weight)
    assert violations.sum() > 0.0
    for tau in (20, 100, T):
        assert worst(regrets, tau) <= learner.bound(tau=tau)
        assert worst(violations, tau) <= learner.violation_bound(tau=tau)
        seen = learner.learner.bound(tau=tau)
        limit = (seen + G * 2.0 * tau) / weight
        assert learner.violation_bound(tau=tau) == pytest.approx(limit)


def test_a_learner_with_a_constant_of_its_own_has_the_bound_by_the_least_weight():
    """Its regret is not in proportion to the gradients that it has seen."""
    domain = dw.L2Ball(3)
    learner = dw.contrib.LongTerm(domain, dw.OGD(domain, 50, 9.0), 50, G, constraint_lipschitz=L)
    _, violations, _ = met(learner, Wall(comparator(domain)), 50)
    wanted = (learner.learner.bound() + G * domain.diameter * 50) / (2.0 * G / L)
    assert 0.0 < violations.sum() <= learner.violation_bound() <= wanted


def test_the_weights_follow_the_violations():
    domain, T = dw.L2Ball(2), 64
    learner = dw.contrib.LongTerm(
        domain, dw.OGD, T, lipschitz=2.0, constraint_lipschitz=4.0, violation_scale=0.5
    )
    f, g = LinearLoss([-2.0, 0.0]), LinearLoss([4.0, 0.0], -0.4)
    seen = 0.0
    for _ in range(T):
        seen += max(0.0, g.value(learner.decision))
        learner.update(f, constraint=g)
        assert learner.penalty == pytest.approx(2.0 * 2.0 / 4.0 * math.exp(min(seen / 0.5, 50.0)))
    assert learner.violation == pytest.approx(seen)
    default = dw.contrib.LongTerm(domain, dw.OGD, T, lipschitz=2.0, constraint_lipschitz=4.0)
    default.update(f, constraint=LinearLoss([4.0, 0.0], 3.0))
    assert default.penalty == pytest.approx(math.exp(3.0 / (2 * 4.0 * 2.0 * 64**0.75)))
    learned = dw.contrib.LongTerm(domain, dw.OGD)
    learned.update(f, constraint=LinearLoss([4.0, 0.0], 3.0))
    assert learned.penalty == pytest.approx(math.exp(3.0 / (2 * 4.0 * 2.0)))


def test_a_violated_constraint_outweighs_the_loss_in_the_end():
    """All learners follow a wall that moves; one that ignores it violates it all the time."""
    domain, T = dw.L2Ball(2), 750
    walls = [LinearLoss([1.0, 0.0], -0.4 * math.sin(t / 100)) for t in range(T)]
    losses = [LinearLoss([-1.0, 0.3])] * T
    ignorant = dw.play(dw.POLAR(domain), losses, constraints=walls)
    total = dw.regret.violation(ignorant)
    assert total > 250.0
    for learner in (
        dw.contrib.LongTerm(domain, dw.POLAR, T),
        dw.contrib.LongTerm(domain, dw.POLA),
        dw.contrib.LongTerm(domain, dw.BOGDIP, T),
        dw.contrib.CutBOGDIP(domain, T),
    ):
        history = dw.play(learner, losses, constraints=walls)
        assert dw.regret.violation(history) == pytest.approx(learner.violation)
        assert learner.violation < 0.4 * total
        late = history.losses[T // 2 :].mean()
        best = np.mean([-0.4 * math.sin(t / 100) - 0.27 for t in range(T // 2, T)])
        assert late < best + 0.35  # and the loss is not given up


@pytest.mark.parametrize("name", SETS)
def test_without_constraints_they_are_the_learners_within(name):
    domain, rng = SETS[name], np.random.default_rng(2)
    losses = [SquaredDistance(rng.standard_normal(domain.shape)) for _ in range(70)]
    pairs = [
        (dw.contrib.CutBOGDIP(domain, lipschitz=3.0), dw.BOGDIP(domain, lipschitz=3.0)),
        (dw.contrib.LongTerm(domain, dw.POLD, 70), dw.POLD(domain, 70)),
    ]
    satisfied = LinearLoss(np.zeros(domain.shape), -1.0)
    for ours, plain in pairs:
        for t, loss in enumerate(losses):
            told = t % 2 and type(ours) is dw.contrib.CutBOGDIP
            assert ours.update(loss, constraint=satisfied if told else None) == plain.update(loss)
        np.testing.assert_array_equal(ours.decision, plain.decision)
        assert ours.violation == 0.0 and ours.oracle_calls == plain.oracle_calls
        assert ours.bound() == plain.bound()


@pytest.mark.parametrize("cls", [dw.contrib.LongTerm, dw.contrib.CutBOGDIP])
@pytest.mark.parametrize("representation", ["dense", "factored"])
def test_constraints_on_matrices_in_saved_games(cls, representation, tmp_path):
    domain = dw.TraceNormBall((8, 7), radius=5.0, representation=representation)
    rng = np.random.default_rng(3)

    def limit(t):  # the mean of a row, below a number
        def gradient(X):
            found = np.zeros((8, 7))
            found[t % 8] = 1.0 / 7.0
            return found

        def value(X):
            dense = X.toarray() if representation == "factored" else X
            return float(np.mean(dense[t % 8])) + 0.05

        return FunctionLoss(value, gradient)

    losses = [
        dw.losses.SquaredEntries(rng.integers(0, 8, 5), rng.integers(0, 7, 5), np.ones(5))
        for _ in range(60)
    ]
    learner = cls(domain, horizon=60)
    for t, loss in enumerate(losses[:31]):  # in the middle of a block
        learner.update(loss, constraint=limit(t))
    learner.save(tmp_path / "learner")
    loaded, cloned = dw.load(tmp_path / "learner"), learner.clone()
    assert type(loaded) is cls
    for t, loss in enumerate(losses[31:]):
        values = {each.update(loss, constraint=limit(t)) for each in (learner, loaded, cloned)}
        assert len(values) == 1
        assert domain.contains(learner.decision, atol=1e-8)
    assert learner.violation == loaded.violation == cloned.violation > 0.0


@pytest.mark.parametrize(
    "make", [dw.contrib.CutBOGDIP, lambda *given: dw.contrib.LongTerm(given[0], dw.POLD, given[1])]
)
def test_a_refused_constraint_changes_nothing(make):
    domain = dw.L2Ball(3)
    disturbed, calm = make(domain, 40), make(domain, 40)
    rng = np.random.default_rng(4)

    def explode(x):
        raise RuntimeError("no")

    for _ in range(40):
        f, g = SquaredDistance(rng.standard_normal(3)), LinearLoss(rng.standard_normal(3), 0.2)
        for bad in (
            FunctionLoss(explode, lambda x: x),
            FunctionLoss(lambda x: 1.0, explode),
            FunctionLoss(lambda x: math.nan, lambda x: x),
            LinearLoss(np.ones(5)),
            "none",
        ):
            with pytest.raises((RuntimeError, ValueError, TypeError)):
                disturbed.update(f, constraint=bad)
        assert disturbed.update(f, constraint=g) == calm.update(f, constraint=g)
        assert disturbed.violation == calm.violation
    np.testing.assert_array_equal(disturbed.decision, calm.decision)


@pytest.mark.parametrize(
    "make", [dw.contrib.CutBOGDIP, lambda *given: dw.contrib.LongTerm(given[0], dw.POLAR, given[1])]
)
def test_late_constraints_count_at_the_decisions_played(make):
    domain, T = dw.L2Ball(2), 80
    rng = np.random.default_rng(5)
    losses = [LinearLoss([-1.0, 0.1 * rng.standard_normal()]) for _ in range(T)]
    walls = [LinearLoss([1.0, 0.0], -0.2 - 0.1 * math.sin(t)) for t in range(T)]
    walls[7] = None
    learner = make(domain, T)
    history = dw.play(learner, losses, delay=5, constraints=walls, record_decisions=True)
    by_hand = sum(
        max(0.0, g.value(x)) for g, x in zip(walls, history.decisions, strict=True) if g is not None
    )
    assert learner.violation == pytest.approx(by_hand)
    assert dw.regret.violation(history) == pytest.approx(by_hand)
    assert by_hand > 0.0
    for tau in (1, 13, T):
        found = [
            np.maximum(history.constraint_values, 0.0)[s : s + tau].sum()
            for s in range(T - tau + 1)
        ]
        assert dw.regret.violation(history, tau=tau) == pytest.approx(max(found))
    with pytest.raises(NotImplementedError):
        learner.violation_bound()


def test_constraints_that_no_point_satisfies_are_not_followed():
    """Their half-space misses the set: the learner plays on as if they were not there."""
    domain = dw.L2Ball(2)
    ours, plain = dw.contrib.CutBOGDIP(domain, 60, 1.0), dw.BOGDIP(domain, 60, 1.0)
    for _ in range(60):
        ours.update(LinearLoss([1.0, 0.0]), constraint=LinearLoss([0.0, 0.1], 5.0))
        plain.update(LinearLoss([1.0, 0.0]))
    np.testing.assert_array_equal(ours.decision, plain.decision)
    assert ours.violation == pytest.approx(60 * 5.0)


@pytest.mark.parametrize(("excess", "cut"), [(9.9, True), (10.1, False)])
def test_a_block_cuts_unless_no_point_of_the_ball_satisfies_it(excess, cut):
    """Of length 5 and on a ball of diameter 2, a linear function falls by 10 at most."""
    learner = dw.contrib.CutBOGDIP(dw.L2Ball(2))
    learner._normals, learner._block = np.array([3.0, 4.0]), excess
    assert (learner._half_space(learner.decision) is not None) == cut


def test_what_is_refused():
    ball, loss = dw.L2Ball(2), LinearLoss([1.0, 0.0])
    played = dw.OGD(ball)
    played.update(loss)
    for learner in (played, dw.OGD(dw.L2Ball(2)), lambda domain, horizon: "none", 3):
        with pytest.raises(ValueError, match="LongTerm takes learners on its own set"):
            dw.contrib.LongTerm(ball, learner)
    with pytest.raises(ValueError, match="blocks"):
        dw.contrib.CutBOGDIP(ball, 10, oracle=dw.Oracle(lmo_budget=1.0, schedule="even"))
    for learner in (dw.contrib.LongTerm(ball), dw.contrib.CutBOGDIP(ball)):
        with pytest.raises(NotImplementedError, match="lipschitz"):
            learner.violation_bound()
    with pytest.raises(ValueError, match="fewer constraints than losses, only 1"):
        dw.play(dw.OGD(ball), [loss] * 2, constraints=[loss])
    with pytest.raises(ValueError, match="give constraints or checkpoint"):
        dw.play(dw.OGD(ball), [loss], constraints=[loss], checkpoint="game")
    history = dw.play(dw.OGD(ball), [loss] * 2)
    with pytest.raises(ValueError, match="played without constraints"):
        dw.regret.violation(history)
    history = dw.play(dw.OGD(ball), [loss] * 2, constraints=[loss] * 2)
    with pytest.raises(ValueError, match="tau must be at most"):
        dw.regret.violation(history, tau=3)


def test_a_penalised_loss_is_the_sum_of_both():
    """Against the same function by hand, at single points, in stacks and with scores of the mean."""
    rng = np.random.default_rng(6)
    f = dw.losses.SquaredRows(rng.standard_normal((4, 3)), rng.standard_normal(4))
    g = LinearLoss(rng.standard_normal(3), 0.1)
    loss = dw.losses.Penalised(f, g, 2.0)
    for x in rng.standard_normal((20, 3)):
        value = f.value(x) + 2.0 * max(0.0, g.value(x))
        slope = f.gradient(x) + 2.0 * (g.value(x) > 0) * g.g
        assert loss.value(x) == pytest.approx(value)
        np.testing.assert_allclose(loss.gradient(x), slope, rtol=1e-12)
    ball = dw.L2Ball(3)
    assert dw.losses.Penalised(g, g, 2.0).lipschitz(ball) == pytest.approx(3.0 * g.lipschitz(ball))
    with pytest.raises(TypeError, match="constraint must be a Loss"):
        dw.losses.Penalised(f, "none")
    with pytest.raises(ValueError, match="weight"):
        dw.losses.Penalised(f, g, -1.0)
    with pytest.raises(ValueError, match="takes points of shape"):
        dw.losses.Penalised(f, LinearLoss(np.ones(4))).value(np.ones(3))
    product = dw.ProductDomain([ball, ball]).origin()
    point = FunctionLoss(lambda x: float(inner(x, x)), lambda x: 2.0 * x)
    assert dw.losses.Penalised(point, point).value(product) == 0.0
