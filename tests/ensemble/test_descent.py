"""Stacks of descent experts: newcomers in old places, rounds that fail before they change anything."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble.dense import DenseDescent, GaugeDescent
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import Plan, ProjectionConfig
from driftwolfe.losses import Loss, SquaredDistance, SquaredEntries

PLANS = [Plan(0.5, 1, 1e-6), Plan(0.2, 3, 1e-6), Plan(0.1, 4, 1e-6), Plan(0.3, 2, 1e-6)]


FACTORED = dw.TraceNormBall((3, 2), representation="factored")
DENSE = {
    "exact": lambda: descent(dw.L1Ball(3), ProjectionConfig(), 1.0),
    "inexact": lambda: descent(dw.L1Ball(3), ProjectionConfig("corrective"), None),
    "gauged": lambda: GaugeDescent(dw.L1Ball(3), ProjectionConfig(), 1.0, None),
}
KINDS = DENSE | {"factored": lambda: descent(FACTORED, ProjectionConfig(), None)}


def loss(experts, seed):
    rng = np.random.default_rng(seed)
    if len(experts.domain.shape) == 1:
        return SquaredDistance(rng.standard_normal(3))
    return SquaredEntries([0, 1, 2], [0, 1, 0], rng.standard_normal(3))


def common_slope(experts, seed):
    """That at the mean of the scores."""
    f = loss(experts, seed)
    return f.slope_at(np.mean(experts.scores(f), axis=0))


def advance(experts, seed, slope=None):
    """A round with a slope for all experts, or with each its own."""
    f, weights = loss(experts, seed), np.full(experts.size, 1 / experts.size)
    scores, shared = experts.scores(f), slope is not None
    if shared:
        slopes = slope
    elif isinstance(experts, DenseDescent):
        slopes = f.stacked_round(experts.x, weights)[1]  # gradients already
    else:
        slopes = f.slope_at(scores)
    experts.step(f, slopes, shared)


def state(experts):
    """Everything that a round may change, as arrays."""
    points = [np.array([_array(p) for p in part]) for part in (experts.x, experts.y)]
    sums = getattr(experts, "_sums", None)
    if sums is None:
        pairs = zip(experts.sums, experts.x, strict=True)
        sums = np.array([_array(total.total(x)) for total, x in pairs])
    numbers = experts.largest_gradient, experts.largest_distance, experts.projections
    return [*points, np.array(sums), experts.clocks.copy(), np.array(numbers)]


def _array(point):
    return point if isinstance(point, np.ndarray) else point.toarray()


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("shared", [False, True])
def test_restarted_experts_are_new_ones_and_the_others_play_on(make, shared):
    restarted, rest = make(), make()
    restarted.add(restarted.domain.origin(), PLANS)
    rest.add(restarted.domain.origin(), PLANS[2:])
    for seed in range(5):
        slope = common_slope(restarted, seed) if shared else None
        advance(restarted, seed, slope)
        rest.largest_gradient = restarted.largest_gradient  # those that leave may see more
        advance(rest, seed, slope)
    start = restarted.point(2)
    restarted.restart(slice(2), start)
    rest.add(start, PLANS[:2])
    order = [2, 3, 0, 1]
    for seed in range(5, 12):
        for mine, theirs in zip(state(restarted)[:4], state(rest)[:4], strict=True):
            np.testing.assert_allclose(mine[order], theirs, rtol=0, atol=1e-12)
        slope = common_slope(restarted, seed) if shared else None
        advance(restarted, seed, slope)
        rest.largest_gradient = restarted.largest_gradient  # those that leave may see more
        advance(rest, seed, slope)


class Crooked(Loss):
    """Gradients of the wrong shape."""

    def scores(self, x):
        return x

    def value_at(self, scores):
        return scores.sum(axis=-1)

    def slope_at(self, scores):
        return np.ones_like(scores)

    def pull_back(self, slope, like):
        return slope[:2]


@pytest.mark.parametrize("make", DENSE.values(), ids=DENSE)
@pytest.mark.parametrize("shared", [False, True])
def test_a_round_that_cannot_be_prepared_leaves_everything_as_it_was(make, shared):
    experts = make()
    experts.add(experts.domain.origin(), PLANS)
    for seed in range(3):
        advance(experts, seed)
    before = copy.deepcopy(state(experts))
    f, slopes = Crooked(), np.ones(3) if shared else np.ones((4, 2))
    with pytest.raises(ValueError, match="shape"):
        experts.step(f, slopes, shared)
    for was, now in zip(before, state(experts), strict=True):
        np.testing.assert_array_equal(now, was)
