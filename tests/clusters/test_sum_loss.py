"""Losses on the workers of a real cluster, against the same sums in this process."""

import os
import signal
import sys
from concurrent.futures import CancelledError
from itertools import pairwise

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, domains, suits
from driftwolfe.losses import Loss

pytest.importorskip("distributed")

from distributed import Client, LocalCluster

from benchmarks.distributed import Meter, counted
from driftwolfe.distributed import SumLoss

ALONE = {"threads_per_worker": 1, "dashboard_address": ":0"}


class LocalSum(Loss):
    """The sum of some losses, in this process and in their order."""

    def __init__(self, parts, weights=None):
        self.parts, self.shape = parts, parts[0].shape
        self.weights = [1.0] * len(parts) if weights is None else weights

    def scores(self, x):
        return x

    def stacked_scores(self, stack):
        return stack

    def value_at(self, scores):
        return self.value_and_slope_at(scores)[0]

    def slope_at(self, scores):
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores):
        if isinstance(scores, np.ndarray) and scores.ndim > len(self.shape):
            values, slopes = zip(*map(self.value_and_slope_at, scores), strict=True)
            return np.array(values), np.array(slopes)
        value = slope = None
        for weight, part in zip(self.weights, self.parts, strict=True):
            scaled = [weight * each for each in part.value_and_gradient(scores)]
            value, slope = scaled if value is None else (value + scaled[0], slope + scaled[1])
        return value, slope

    def pull_back(self, slope, like):
        return slope

    def stacked_pull_back(self, slopes, stack):
        return slopes


class Shard:
    """What a worker makes by itself: losses of rounds, each when it is asked for."""

    def __init__(self, seed, size=6):
        self.seed, self.size = seed, size

    def __getitem__(self, t):
        rng = np.random.default_rng([self.seed, t])
        return dw.losses.SquaredDistance(rng.standard_normal(self.size))


@pytest.fixture(scope="module")
def meter():
    """A cluster of two processes, and a client whose traffic is counted."""
    with (
        LocalCluster(n_workers=2, **ALONE) as cluster,
        Meter(cluster.scheduler_address) as meter,
        Client(meter.address, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        meter.client = client
        yield meter


@pytest.fixture(scope="module")
def client(meter):
    return meter.client


def stream(domain, rounds, parts=3, seed=0):
    """Losses of rounds, in parts: here, and for workers."""
    rng = np.random.default_rng(seed)

    def loss(t):
        if len(domain.shape) == 2:
            m, n = domain.shape
            rows, cols = rng.integers(0, m, 6), rng.integers(0, n, 6)
            return dw.losses.SquaredEntries(rows, cols, rng.standard_normal(6), shape=domain.shape)
        features = rng.standard_normal((7, *domain.shape)) / 4.0
        return dw.losses.LogisticLoss(features, np.sign(rng.standard_normal(7) + (t > rounds // 2)))

    return [[loss(t) for t in range(rounds)] for _ in range(parts)]


def both(client, parts, weights=None):
    rounds = len(parts[0])
    here = [LocalSum([part[t] for part in parts], weights) for t in range(rounds)]
    return here, SumLoss.rounds(client, parts, rounds, weights)


def dense(point):
    return point.toarray() if hasattr(point, "toarray") else np.asarray(point)


def test_the_mean_over_all_rows_is_that_of_numpy(client):
    rng = np.random.default_rng(3)
    features, labels = rng.standard_normal((90, 5)), np.sign(rng.standard_normal(90))
    cuts = [0, 20, 50, 90]
    parts = [dw.losses.LogisticLoss(features[a:b], labels[a:b]) for a, b in pairwise(cuts)]
    loss = SumLoss(client, parts, weights=np.diff(cuts) / 90.0)
    x = rng.standard_normal(5)
    margins = labels * (features @ x)
    value, gradient = loss.value_and_gradient(x)
    assert value == pytest.approx(np.log1p(np.exp(-margins)).mean(), rel=1e-13)
    expected = -(features * (labels / (1.0 + np.exp(margins)))[:, None]).mean(axis=0)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
    assert loss.value(x) == value and (loss.gradient(x) == gradient).all()
    assert loss.shape == (5,)
    bound = np.linalg.norm(features, axis=1).mean()
    assert loss.lipschitz(dw.L1Ball(5)) == pytest.approx(bound, rel=1e-13)
    whole = dw.minimise(loss, dw.L2Ball(5), 1e-6).value
    assert whole == pytest.approx(
        dw.minimise(dw.losses.LogisticLoss(features, labels), dw.L2Ball(5), 1e-6).value,
        abs=2e-6,
    )


def test_it_is_the_sum_here_bit_by_bit(client):
    (here,), (there,) = both(client, stream(dw.L1Ball(6), 1), [0.3, 2.0, 1.0])
    rng = np.random.default_rng(1)
    x, stack, weights = rng.standard_normal(6), rng.standard_normal((4, 6)), np.full(4, 0.25)
    for point in (x, stack):
        for mine, theirs in zip(
            here.value_and_slope_at(point),
            there.value_and_slope_at(there.scores(x) * 0 + point),
            strict=True,
        ):
            np.testing.assert_array_equal(mine, theirs)
    for mine, theirs in zip(
        here.stacked_round(stack, weights), there.stacked_round(stack, weights), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


WALK = [
    pytest.param(cls, name, marks=() if name == "l1" else pytest.mark.slow)
    for cls in LEARNER_CASES
    for name in ("l1", "factored")
    if suits(cls, domains()[name])
]


@pytest.mark.parametrize(("cls", "name"), WALK)
def test_every_learner_takes_it(client, cls, name):
    domain = domains()[name]
    here, there = both(client, stream(domain, 2, parts=2))
    settings = LEARNER_CASES[cls][0]
    mine, theirs = (cls(domain, horizon=2, lipschitz=10.0, **settings) for _ in range(2))
    for f, g in zip(here, there, strict=True):
        assert theirs.update(g) == pytest.approx(mine.update(f), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(dense(theirs.decision), dense(mine.decision), rtol=1e-9, atol=1e-12)


GAMES = pytest.mark.parametrize(
    ("cls", "options", "rounds"),
    [
        (dw.BOGDIP, {"horizon": 60}, 80),
        (dw.BOGDIP, {"tuning": "certified"}, 80),  # epochs of 64 rounds and more
        (dw.learners.LOOBOGD, {"horizon": 60}, 80),
        (dw.POLD, {"horizon": 60}, 20),
        pytest.param(
            *(dw.POLD, {"oracle": dw.Oracle("halfspace", lmo_budget=1.0)}, 80),
            marks=pytest.mark.slow,
        ),
    ],
)


@GAMES
def test_a_game_by_blocks_is_that_round_by_round(client, monkeypatch, cls, options, rounds):
    asked = []
    here, there = both(client, stream(dw.Simplex(6), rounds, parts=2))
    exchange = SumLoss.exchange
    monkeypatch.setattr(SumLoss, "exchange", lambda *given: asked.append(given) or exchange(*given))
    mine, theirs = (cls(dw.Simplex(6), lipschitz=0.5, **options) for _ in range(2))
    expected, found = dw.play(mine, here), dw.play(theirs, there)
    assert 0 < len(asked) < rounds + 5
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)
    np.testing.assert_allclose(theirs.decision, mine.decision, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found.lmo, expected.lmo)
    assert theirs.t == rounds and theirs.lmo_calls == mine.lmo_calls
    # Norms of parts add up to at least that of the sum.
    assert mine.lipschitz <= theirs.lipschitz * (1 + 1e-12) <= 3.0 * mine.lipschitz
    assert theirs.bound() >= mine.bound() * (1 - 1e-12)
    more = LocalSum([part[0] for part in stream(dw.Simplex(6), 1)])
    assert theirs.update(more) == pytest.approx(mine.update(more), rel=1e-9)


def test_a_game_by_blocks_resumes_from_its_checkpoint(client, tmp_path):
    _, losses = both(client, stream(dw.L1Ball(6), 60, parts=2))
    games = []
    for name, first in (("whole", 60), ("broken", 37)):
        for number in dict.fromkeys((first, 60)):
            learner = dw.BOGDIP(dw.L1Ball(6), horizon=60, lipschitz=1.0)
            path = tmp_path / name
            history = dw.play(learner, losses[:number], checkpoint=path, every=20)
        games.append((history.losses, learner.decision))
    np.testing.assert_allclose(games[0][0], games[1][0], rtol=1e-9)
    np.testing.assert_allclose(games[0][1], games[1][1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls", [dw.BOGDIP, dw.POLD])
def test_rounds_before_a_refused_one_are_played(client, cls):
    parts = stream(dw.L1Ball(6), 12, parts=2)
    parts[1][9] = dw.losses.FunctionLoss(_broken, _broken, shape=6)
    here, there = both(client, parts)
    mine, theirs = (cls(dw.L1Ball(6), horizon=40, lipschitz=1.0) for _ in range(2))
    for loss in here[:9]:
        mine.update(loss)
    with pytest.raises(ValueError, match="must return a finite number"):
        theirs.update_many(there)
    assert theirs.t == 9
    np.testing.assert_allclose(theirs.decision, mine.decision, rtol=1e-9, atol=1e-12)


def _broken(x):
    return np.nan


def test_what_each_round_needs_goes_round_by_round(client, monkeypatch):
    """Steps that follow the largest gradient, one gradient for all experts, and learners of your own."""
    exchange, longest = SumLoss.exchange, []

    def seen(loss, blocks):
        longest.append(max(len(block.losses) for block in blocks))
        return exchange(loss, blocks)

    monkeypatch.setattr(SumLoss, "exchange", seen)

    class Watching(dw.POLD):
        def update(self, loss, ticket=None):
            return super().update(loss)

    _, losses = both(client, stream(dw.L1Ball(6), 4, parts=1))
    for learner in (
        dw.BOGDIP(dw.L1Ball(6), horizon=4),
        dw.POLD(dw.L1Ball(6), horizon=4, lipschitz=1.0, feedback="linear"),
        Watching(dw.L1Ball(6), horizon=4, lipschitz=1.0),
        dw.POLA(dw.L1Ball(6), lipschitz=1.0),
    ):
        assert len(dw.play(learner, losses)) == 4
    assert max(longest) == 1


KNOWN, VECTOR = {"lipschitz": 3000.0}, 24_000  # bytes of a point of 3,000 numbers


def sent(meter, cls, rounds, one_by_one=False):
    """Bytes per round of the client's connections."""
    losses = SumLoss.rounds(meter.client, [Shard(0, 3000), Shard(1, 3000)], rounds)
    learner = cls(dw.L1Ball(3000), horizon=rounds, **KNOWN)
    if one_by_one:
        return counted(meter, lambda: [learner.update(f) for f in losses[:8]]) / 8
    return counted(meter, lambda: dw.play(learner, losses)) / rounds


def test_bytes_per_round_fall_as_blocks_grow(meter):
    # Each round: a point for each of two parts there, a gradient of each back.
    assert sent(meter, dw.BOGDIP, 16, one_by_one=True) == pytest.approx(4 * VECTOR, rel=0.15)
    few, many = (sent(meter, dw.BOGDIP, rounds) for rounds in (16, 256))
    assert few < 1.2 * 4 * VECTOR / 4  # blocks of 4 rounds, and of 16
    assert many < 1.3 * few / 4


@pytest.mark.slow
def test_bytes_of_an_ensemble_are_those_of_blocks_and_decisions(meter):
    blocks = dw.POLD(dw.L1Ball(3000), horizon=24, **KNOWN)._experts.blocks
    assert sent(meter, dw.POLD, 24, one_by_one=True) > 0.9 * 4 * (blocks.size + 1) * VECTOR
    assert sent(meter, dw.POLD, 24) < 1.15 * (2 + 4 * (1.0 / blocks).sum() + 0.1) * VECTOR


def test_an_answer_that_is_lost_changes_nothing(client, monkeypatch):
    """What Dask raises when a worker died with its data; the slow test below kills one."""
    (loss,) = SumLoss.rounds(client, [[dw.losses.LinearLoss([1.0, 0.0])]], 1)
    for cls in (dw.BOGDIP, dw.POLD):
        learner = cls(dw.L1Ball(2), horizon=9, lipschitz=1.0)
        with monkeypatch.context() as broken:
            broken.setattr(client, "gather", _lost)
            with pytest.raises(RuntimeError, match="give functions that make the parts"):
                learner.update_many([loss] * 5)
        assert learner.t == 0 and len(learner.update_many([loss] * 5)) == 5


def _lost(futures):
    raise CancelledError("lost dependencies")


@pytest.mark.slow
def test_a_worker_that_dies_takes_losses_with_it_but_not_functions():
    with (
        LocalCluster(n_workers=2, **ALONE) as cluster,
        Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        shards = [Shard(part) for part in range(3)]
        here = [LocalSum([shard[t] for shard in shards]) for t in range(20)]
        lasting = SumLoss.rounds(client, [lambda part=part: Shard(part) for part in range(3)], 20)
        lost = SumLoss(client, [shard[0] for shard in shards])
        learner, mine = (dw.BOGDIP(dw.L1Ball(6), horizon=20, lipschitz=9.0) for _ in range(2))
        learner.update_many(lasting[:10])
        pids = client.run(os.getpid)
        os.kill(pids[lost._workers[0]], signal.SIGKILL)
        with pytest.raises(RuntimeError, match="give functions that make the parts"):
            for _ in range(100):  # until the scheduler knows
                lost.value(np.zeros(6))
        with pytest.raises(RuntimeError, match="a worker died"):
            learner.update(lost)
        assert learner.t == 10
        learner.update_many(lasting[10:])
        for loss in here:
            mine.update(loss)
        np.testing.assert_allclose(learner.decision, mine.decision, rtol=1e-9, atol=1e-12)
        x = np.arange(6.0)
        assert lasting[3].value(x) == here[3].value(x)


def test_bad_input_says_what_to_do(client):
    loss, other = dw.losses.LinearLoss([1.0, 0.0]), dw.losses.LinearLoss([1.0])
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
        SumLoss("tcp://127.0.0.1:1", [loss])
    with pytest.raises(ValueError, match="one or more parts"):
        SumLoss(client, [])
    with pytest.raises(ValueError, match="one or more parts"):
        SumLoss(client, loss)
    with pytest.raises(ValueError, match="2 numbers > 0"):
        SumLoss(client, [loss, loss], weights=[1.0, -1.0])
    with pytest.raises(ValueError, match="2 numbers > 0"):
        SumLoss(client, [loss, loss], weights=[1.0])
    with pytest.raises(TypeError, match=r"must be a driftwolfe\.losses\.Loss, got str"):
        SumLoss(client, ["loss"])
    with pytest.raises(ValueError, match=r"one shape, got \[\(1,\), \(2,\)\]"):
        SumLoss(client, [loss, other])
    with pytest.raises(ValueError, match="takes points of shape"):
        SumLoss(client, [loss]).value(np.zeros(3))
    with pytest.raises(ValueError, match="points of this L1Ball have shape"):
        dw.OGD(dw.L1Ball(3), lipschitz=1.0).update(SumLoss(client, [loss]))
    with pytest.raises(ValueError, match="number must be"):
        SumLoss.rounds(client, [[loss]], 0)


def test_losses_made_apart_are_met_one_by_one(client):
    parts = stream(dw.L1Ball(6), 5, parts=2)
    here, _ = both(client, parts)
    there = [SumLoss(client, [part[t] for part in parts]) for t in range(5)]
    mine, theirs = (dw.BOGDIP(dw.L1Ball(6), horizon=9, lipschitz=1.0) for _ in range(2))
    expected, found = dw.play(mine, here), dw.play(theirs, there)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-9)


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("driftwolfe.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"pip install 'driftwolfe\[distributed\]'"):
        import driftwolfe.distributed  # noqa: F401
