"""Losses that come late: what tickets do, and the theorems of docs/theory/delays.md."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, VALUES_ONLY
from driftwolfe import storage
from driftwolfe.losses import AbsoluteEntries, LinearLoss, SquaredDistance
from driftwolfe.state import State

#: Learners that have a bound on these games.
BOUNDED = [
    *(dw.OGD, dw.BOGDIP, dw.POLD, dw.POLA, dw.POLAR, dw.Ader, dw.OnlineFrankWolfe),
    *(dw.learners.SAOL, dw.learners.OneOracleAder, dw.learners.OneProjectionAder),
    *(dw.learners.OneProjectionSAOL, dw.contrib.Mixture),
]
SET = dw.L2Ball(3, radius=2.0)


def against(rng, repeat):
    """Unit gradients that push the oldest open decision outwards, or repeat themselves."""
    held, turns = None, 0

    def gradient(decision):
        nonlocal held, turns
        if turns % repeat == 0 or held is None:
            noise = rng.standard_normal(decision.shape)
            held = decision - (decision @ noise) * noise / (noise @ noise) + 0.1 * noise
            held = held / np.linalg.norm(held)
        turns += 1
        return held

    return gradient


def late_game(learner, rounds, delay, rng, *, shuffled=False, repeat=1):
    """Play against an adversary; return values, losses and delays in order of arrival."""
    gradient, waiting, arrived = against(rng, repeat), [], []

    def arrive():
        place = int(rng.integers(len(waiting))) if shuffled else 0
        ticket, loss, asked = waiting.pop(place)
        updates = learner.t - asked
        arrived.append((learner.update(loss, ticket), loss.g, updates))

    for _ in range(rounds):
        ticket = learner.ask()
        waiting.append((ticket, LinearLoss(gradient(ticket.decision)), learner.t))
        if len(waiting) > delay:
            arrive()
    while waiting:
        arrive()
    values, slopes, delays = map(np.array, zip(*arrived, strict=True))
    return values, slopes, delays


def best_value(slopes):
    """The least that a fixed point of the ball could have lost."""
    return -SET.radius * np.linalg.norm(slopes.sum(axis=0))


@pytest.mark.in_turn
@pytest.mark.parametrize("cls", BOUNDED, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_regret_with_delays_stays_below_the_bound(cls, shuffled):
    rng = np.random.default_rng(3)
    for delay in (0, 7, 40):
        learner = cls(SET, horizon=120, lipschitz=1.0)
        values, slopes, delays = late_game(learner, 120, delay, rng, shuffled=shuffled, repeat=8)
        assert learner.t == 120 and learner.tickets == []
        assert (delays > 0).any() == (delay > 0)
        regret = values.sum() - best_value(slopes)
        assert regret <= learner.bound() * (1 + 1e-9)
        # The bound is that without delay on the losses as they arrived, plus what delays cost.
        same = cls(SET, horizon=120, lipschitz=1.0)
        undelayed = np.array([same.update(LinearLoss(g)) for g in slopes])
        cost = values.sum() - undelayed.sum()
        assert learner.bound() == pytest.approx(same.bound() + cost, abs=1e-8)
        if delay == 0:
            assert values == pytest.approx(undelayed, abs=1e-12)


@pytest.mark.parametrize("cls", [dw.learners.SAOL, dw.POLA], ids=lambda cls: cls.__name__)
def test_regret_on_windows_with_delays_stays_below_the_bound(cls):
    learner = cls(SET, lipschitz=1.0)
    values, slopes, _ = late_game(learner, 150, 12, np.random.default_rng(4), repeat=13)
    price = [learner._tickets.cost(tau) for tau in (1, 20, 150)]
    assert price == sorted(price) and price[0] > 0.0
    for tau in (1, 20, 150):
        windows = range(151 - tau)
        worst = max(values[a : a + tau].sum() - best_value(slopes[a : a + tau]) for a in windows)
        assert worst <= learner.bound(tau=tau) * (1 + 1e-9)


@pytest.mark.parametrize("delay", [0, 3, 30])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_the_sum_of_delays_bounds_gradient_descent(delay, shuffled):
    rounds, D = 400, 2 * SET.radius
    scale = D / math.sqrt(1 + 2 * delay)
    learner = dw.OGD(SET, horizon=rounds, lipschitz=1.0, step_scale=scale)
    played = late_game(
        learner, rounds, delay, np.random.default_rng(5), shuffled=shuffled, repeat=delay + 1
    )
    values, slopes, delays = played
    eta, total = scale / math.sqrt(rounds), delays.sum()
    regret = values.sum() - best_value(slopes)
    assert learner._tickets.excess <= eta * total + 1e-9  # theorem 2
    assert regret <= D**2 / (8 * eta) + eta * (rounds / 2 + total)
    if not shuffled:
        assert total <= delay * rounds
        assert regret <= D * math.sqrt(rounds * (1 + 2 * delay))
        # The adversary of the lower bound is a real one: it gets a share of that.
        assert regret >= 0.1 * D * math.sqrt(rounds * (1 + 2 * delay))


def test_blocks_and_delays_bound_blocked_descent():
    rounds = 300
    learner = dw.BOGDIP(SET, horizon=rounds, lipschitz=1.0, tuning="certified")
    played = late_game(learner, rounds, 25, np.random.default_rng(6), repeat=26)
    plan = learner._plan(rounds)
    eta = learner.options.scale_for(1.0) * plan.step
    way = 2 * math.sqrt(plan.tolerance) + eta * plan.block
    assert learner._tickets.excess <= way * np.ceil(played[2] / plan.block).sum()


@pytest.mark.parametrize("cls", VALUES_ONLY, ids=lambda cls: cls.__name__)
def test_learners_from_values_give_out_no_tickets(cls):
    with pytest.raises(NotImplementedError, match="cannot come late"):
        cls(dw.UniformMatroidPolytope(4, 2)).ask()


@pytest.mark.parametrize(
    "cls", [cls for cls in LEARNER_CASES if cls not in VALUES_ONLY], ids=lambda cls: cls.__name__
)
def test_open_tickets_are_saved_and_loaded(cls, tmp_path):
    domain, rng = dw.L1Ball(4, radius=2.0), np.random.default_rng(8)
    if cls in (dw.contrib.OnlineNewtonStep,):
        domain = dw.L2Ball(4, radius=2.0)
    learner = cls(domain, horizon=30, lipschitz=8.0)
    losses = [SquaredDistance(rng.standard_normal(4)) for _ in range(12)]
    tickets = []
    for t, loss in enumerate(losses):
        tickets.append(learner.ask())
        if t in (3, 5):
            value = learner.update(loss, tickets[t - 2])
            assert value == pytest.approx(loss.value(tickets[t - 2].decision), rel=1e-12)
    learner.save(tmp_path / "learner")
    loaded, cloned = dw.load(tmp_path / "learner"), learner.clone()
    for other in (loaded, cloned):
        assert [each.number for each in other.tickets] == [0, 2, *range(4, 12)]
        for mine, theirs in zip(learner.tickets, other.tickets, strict=True):
            assert np.array_equal(mine.decision, theirs.decision)
    for number in (11, 0, 7):
        loss = losses[number]
        expected = learner.update(loss, tickets[number])
        assert loaded.update(loss, tickets[number]) == cloned.update(loss, number) == expected
    # A learner takes the tickets that it was asked for, or that came with its state.
    stranger, late = cls(domain, horizon=30, lipschitz=8.0), learner.ask()
    for other in (stranger, loaded, cloned):
        while len(other.tickets) < 13:
            own = other.ask()
        with pytest.raises(ValueError, match="is of another learner"):
            other.update(loss, late if other is not stranger else tickets[4])
        assert other.t == (0 if other is stranger else learner.t)
        assert own.number in [each.number for each in other.tickets]
    assert np.array_equal(loaded.decision, learner.decision)
    costs = [each._tickets.excess for each in (learner, loaded, cloned)]
    assert costs[0] == costs[1] == costs[2]
    still = (
        dw.learners.Constant,
        dw.BOGDIP,
        dw.contrib.CutBOGDIP,
        dw.learners.LOOBOGD,
        dw.contrib.DiscountedAdaptive,
    )  # whose first block has not ended, or whose magnitude is 0 still
    assert (costs[0] != 0.0) == (cls not in still)


def test_tickets_of_factored_matrices(tmp_path):
    domain = dw.TraceNormBall((12, 10), radius=6.0, representation="factored")
    learner = dw.POLA(domain, lipschitz=2.0)
    first = learner.ask()
    for k in range(6):
        learner.update(AbsoluteEntries([k], [k], [3.0]))
    second = learner.ask()
    learner.save(tmp_path / "learner")
    loaded, loss = dw.load(tmp_path / "learner"), AbsoluteEntries([0, 1], [0, 1], [3.0, 3.0])
    assert learner.update(loss, first) == loaded.update(loss, 0) == 6.0
    value = loss.value(second.decision)
    assert learner.update(loss, second) == loaded.update(loss, second.number) == value < 6.0


def test_a_learner_of_your_own_takes_tickets(tmp_path):
    class Mine(dw.Learner):
        x: State[np.ndarray]

        def __init__(self, domain):
            super().__init__(domain)
            self.x = domain.origin()

        @property
        def decision(self):
            return self.x

        def update(self, loss):
            value, gradient = loss.value_and_gradient(self.x)
            self.x = self.domain.project(self.x - 0.1 * gradient)
            self.t += 1
            return value

    learner = Mine(dw.L2Ball(2))
    ticket = learner.ask()
    learner.update(LinearLoss([1.0, 0.0]))
    learner.save(tmp_path / "mine")
    loaded = Mine.load(tmp_path / "mine")
    for each in (learner, loaded):
        assert each.update(LinearLoss([0.0, 1.0]), ticket=ticket) == 0.0
        assert each.x.tolist() == [-0.1, -0.1] and each.t == 2


def test_refused_tickets_change_nothing():
    learner = dw.POLD(SET, horizon=10, lipschitz=1.0)
    other = dw.POLD(SET, horizon=10, lipschitz=1.0)
    with pytest.raises(ValueError, match=r"no ticket 0, only 0; ask it"):
        other.update(LinearLoss(np.ones(3)), 0)
    first, second = learner.ask(), learner.ask()
    learner.update(LinearLoss([1.0, 0.0, 0.0]), first)
    before, loss = learner.clone(), LinearLoss([0.0, 1.0, 0.0])
    not_finite = dw.losses.FunctionLoss(lambda x: math.nan, lambda x: x)
    for given, ticket, error, message in (
        (loss, first, ValueError, "ticket 0 has been used"),
        (loss, 2, ValueError, "no ticket 2"),
        (loss, -1, ValueError, "no ticket -1"),
        (loss, "0", TypeError, "what learner.ask"),
        (loss, True, TypeError, "what learner.ask"),
        (loss, first.decision, TypeError, "got ndarray"),
        (3.0, second, TypeError, "a loss must be"),
        (LinearLoss(np.ones(4)), second, ValueError, "shape"),
        (not_finite, second, ValueError, "finite number"),
    ):
        with pytest.raises(error, match=message):
            learner.update(given, ticket)
        assert [each.number for each in learner.tickets] == [1]
    second.decision[:] = 100.0  # the learner has its own
    assert learner.update(loss, second) == before.update(loss, 1) == 0.0
    assert np.array_equal(learner.decision, before.decision)
    with pytest.raises(ValueError, match="has been used"):
        learner.update(loss, second)


def test_a_file_with_broken_tickets_is_refused(tmp_path):
    learner, path = dw.OGD(SET, horizon=5, lipschitz=1.0), tmp_path / "learner"
    learner.ask(), learner.ask()
    learner.save(path)
    saved = storage.read_archive(path, lambda archive: None)
    state, tickets = saved.settings["state"], saved.settings["state"]["_tickets"]
    labels, points = (tickets["tickets"][name]["array"] for name in ("labels", "distinct"))
    for change in ({"asked": 1}, {"labels": [1, 0]}, {"excess": 1.0}, {"distinct": 3}):
        broken = {**tickets, "tickets": {**tickets["tickets"], **change}}
        settings = {**saved.settings, "state": {**state, "_tickets": broken}}
        storage.write_archive(path, "OGD", settings, saved.arrays)
        with pytest.raises(ValueError, match="archive"):
            dw.load(path)
    key = saved.arrays[labels][:, 1]
    assert len(saved.arrays[points]) == 2
    for name, array, why in (
        (labels, np.stack(([1, 0], key, [0, 0]), axis=1), "tickets that do not fit together"),
        (labels, np.stack(([0, 1], key, [0, 2]), axis=1), "tickets that do not fit together"),
        (labels, np.stack(([0, 1], key, [0, -1]), axis=1), "labels does not fit"),
        (points, np.full((2, 3), 9.0), "not in the set"),
    ):
        storage.write_archive(path, "OGD", saved.settings, {**saved.arrays, name: array})
        with pytest.raises(ValueError, match=why):
            dw.load(path)


def test_many_open_tickets_are_few_arrays_in_a_file(tmp_path, monkeypatch):
    """They were one each: with a million, `save` took minutes and then refused."""
    learner, path = dw.OGD(SET, lipschitz=1.0), tmp_path / "learner"
    for k in range(600):
        learner.ask()
        if k % 2:
            learner.update(LinearLoss([1.0, 0.5, 0.1 * k]))
    learner.save(path)
    held = storage.read_archive(path).arrays
    assert len(held) == 3
    assert path.stat().st_size < 40_000
    loaded = dw.load(path)
    assert all(map(np.array_equal, loaded._tickets.points, learner._tickets.points))
    assert all(point.base is None for point in loaded._tickets.points)
    # Decisions with several arrays each are limited, where they are asked for.
    monkeypatch.setattr("driftwolfe.learners.tickets.MOST_OPEN", 600)
    learner.ask()
    factored = dw.OGD(dw.TraceNormBall((4, 3), representation="factored"), lipschitz=1.0)
    tickets = [factored.ask() for _ in range(600)]
    with pytest.raises(
        ValueError, match=r"600 tickets are open, the most .*update\(loss, ticket\)"
    ):
        factored.ask()
    factored.update(AbsoluteEntries([0], [0], [1.0]), tickets[7])
    assert factored.ask().number == 600
