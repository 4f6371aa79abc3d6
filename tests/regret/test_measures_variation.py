"""Path length and function variation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import (
    AbsoluteEntries,
    FunctionLoss,
    HingeLoss,
    LinearLoss,
    LogisticLoss,
    SquaredDistance,
)
from driftwolfe.regret import function_variation, path_length
from regret.games import KINDS, some_losses


def test_path_length_by_hand_and_of_factored_matrices():
    assert path_length(np.array([[0.0], [2.0], [1.0], [1.0]])) == 3.0
    assert path_length([np.zeros(2)]) == path_length([]) == 0.0
    dense = np.random.default_rng(0).standard_normal((3, 4, 5))
    factored = [dw.FactoredMatrix.from_dense(matrix) for matrix in dense]
    assert path_length(factored) == pytest.approx(path_length(dense))


def test_variation_of_linear_losses_and_of_squared_distances_of_one_weight_is_exact():
    losses = [LinearLoss([1.0, 0.0]), LinearLoss([0.0, 2.0], constant=1.0)]
    # The difference -x_1 + 2 x_2 + 1 reaches 3 on the L1 ball, and -1 at the other end.
    variation = function_variation(losses, dw.L1Ball(2))
    assert variation == pytest.approx(3.0)
    assert variation.gap == 0.0
    targets = np.random.default_rng(1).standard_normal((2, 3))
    losses = [SquaredDistance(target, weight=0.7) for target in targets]
    variation = function_variation(losses, dw.LinfBall(3))
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    expected = max(abs(losses[0].value(corner) - losses[1].value(corner)) for corner in corners)
    assert variation == pytest.approx(expected)
    assert variation.gap == 0.0


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_interval_holds_what_sampling_finds(kind):
    domain = dw.L1Ball(KINDS[kind][1], 2.0)
    losses = some_losses(kind, 4)
    variation = function_variation(losses, domain)
    rng = np.random.default_rng(0)
    points = [domain.project(4 * rng.standard_normal(domain.shape)) for _ in range(300)]
    values = np.array([[loss.value(x) for x in points] for loss in losses])
    sampled = np.abs(np.diff(values, axis=0)).max(axis=1).sum()
    assert sampled <= variation.upper + 1e-9
    assert variation >= 0.5 * sampled  # the search by vertices is not blind


def test_equal_losses_do_not_vary_and_unknown_ones_may():
    loss = FunctionLoss(lambda x: x.sum() ** 2, lambda x: 2 * x.sum() + 0 * x)
    other = FunctionLoss(lambda x: x.sum(), np.ones_like)
    assert function_variation([loss, loss], dw.L1Ball(2)).upper == 0.0
    assert function_variation([loss], dw.L1Ball(2)).upper == 0.0
    variation = function_variation([loss, other], dw.L1Ball(2))
    assert variation == pytest.approx(2.0)  # at (-1, 0): 1 - (-1)
    assert variation.upper == math.inf


def test_opposed_hinges_differ_by_what_both_change():
    # max(0, 1 - x) and max(0, 1 + x) agree at 0 and differ by 2 at both ends of [-1, 1].
    one, other = HingeLoss([[1.0]], [1]), HingeLoss([[1.0]], [-1])
    for rounds in (2, 3, 6):
        losses = [one, other] * (rounds // 2) + [one] * (rounds % 2)
        variation = function_variation(losses, dw.LinfBall(1))
        assert variation == pytest.approx(2.0 * (rounds - 1))
        assert variation.gap == pytest.approx(0.0, abs=1e-12)
    # In more dimensions, with other slopes and a larger set: 2 |<a, x>| up to |a|_1 R each.
    features = np.array([[0.5, -2.0]])
    pair = [HingeLoss(features, [1]), HingeLoss(features, [-1])]
    wide = function_variation(pair, dw.LinfBall(2, 0.3))
    assert wide == pytest.approx(2 * 2.5 * 0.3)
    assert wide.upper >= wide


def test_the_bound_by_ranges_counts_where_it_is_the_smaller():
    # |x| and |x - 0.1| on [-1, 1]: by slopes 0.1 + (1 + 1); by ranges at most 1.1, in either order.
    near = [AbsoluteEntries([0], [0], [target]) for target in (0.0, 0.1)]
    for losses in (near, near[::-1]):
        variation = function_variation(losses, dw.LinfBall((1, 1)))
        assert variation.upper == pytest.approx(1.1)
        assert variation == pytest.approx(0.1)
    # |x| against |x| - 5, whose least value is -5: by slopes 5 + (1 + 1), by ranges 1 + 5.
    low = [
        FunctionLoss(lambda x: abs(x[0]), np.sign, lipschitz=1.0),
        FunctionLoss(lambda x: abs(x[0]) - 5.0, np.sign, lipschitz=1.0),
    ]
    for losses in (low, low[::-1]):
        assert function_variation(losses, dw.LinfBall(1)).upper == pytest.approx(6.0)
        assert function_variation(losses, dw.LinfBall(1)) == pytest.approx(5.0)


def _any_loss(rng):
    """A loss of two numbers, of any kind that knows its slopes."""
    features, labels = rng.standard_normal((2, 2)), rng.choice([-1, 1], 2)
    target = rng.standard_normal(2)
    return [
        LinearLoss(target, constant=float(rng.standard_normal())),
        SquaredDistance(target, weight=float(rng.choice([0.5, 2.0]))),
        HingeLoss(features, labels),
        LogisticLoss(features, labels),
        FunctionLoss(
            lambda x: float(np.abs(x - target).sum()) - 3.0,
            lambda x: np.sign(x - target),
            lipschitz=2**0.5,
        ),
    ][rng.integers(5)]


@pytest.mark.parametrize("seed", range(12))
def test_the_interval_holds_the_largest_differences_on_a_grid(seed):
    rng = np.random.default_rng(seed)
    radius = float(rng.choice([0.3, 1.0, 2.5]))
    losses = [_any_loss(rng) for _ in range(6)]
    line = np.linspace(-radius, radius, 41)  # with the corners and the origin
    points = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    values = np.array([[loss.value(x) for x in points] for loss in losses])
    found = np.abs(np.diff(values, axis=0)).max(axis=1).sum()
    variation = function_variation(losses, dw.LinfBall(2, radius))
    # The search tries the origin and corners, which are points of this grid.
    assert variation <= found + 1e-9
    assert found <= variation.upper + 1e-9


def test_what_the_oracle_may_miss_is_part_of_the_interval():
    class Sloppy(dw.LinfBall):
        """An oracle that may be wrong by 0.25, and is."""

        def lmo_with_error(self, gradient):
            return 0.75 * np.sign(-gradient), 0.25

    variation = function_variation([LinearLoss([1.0]), LinearLoss([2.0])], Sloppy(1))
    assert variation == pytest.approx(0.75)
    assert variation.upper == pytest.approx(1.0)
