"""Losses on the workers of a real cluster, against the same sums in this process."""

import os
import signal
import sys

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, domains, suits
from driftwolfe.losses import Loss

pytest.importorskip("distributed")

from benchmarks.distributed import Meter  # noqa: E402
from distributed import Client, LocalCluster  # noqa: E402
from driftwolfe.distributed import SumLoss  # noqa: E402

ALONE = {"threads_per_worker": 1, "dashboard_address": None}


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
        stacked = isinstance(scores, np.ndarray) and scores.ndim > len(self.shape)
        value = slope = None
        for weight, part in zip(self.weights, self.parts, strict=True):
            if stacked:
                values, slopes = part.value_and_slope_at(part.stacked_scores(scores))
                found = values, part.stacked_pull_back(slopes, scores)
            else:
                found = part.value_and_gradient(scores)
            scaled = [weight * each for each in found]
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
    with LocalCluster(n_workers=2, **ALONE) as cluster, Meter(cluster.scheduler_address) as meter:
        with Client(meter.address, set_as_default=False) as client:
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
    parts = [
        dw.losses.LogisticLoss(features[a:b], labels[a:b])
        for a, b in zip(cuts[:-1], cuts[1:], strict=True)
    ]
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
            here.value_and_slope_at(point), there.value_and_slope_at(there.scores(x) * 0 + point), strict=True
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
    here, there = both(client, stream(domain, 5, parts=2))
    settings = LEARNER_CASES[cls][0]
    mine, theirs = (cls(domain, horizon=5, lipschitz=10.0, **settings) for _ in range(2))
    for f, g in zip(here, there, strict=True):
        assert theirs.update(g) == pytest.approx(mine.update(f), rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(dense(theirs.decision), dense(mine.decision), rtol=1e-9, atol=1e-12)
