"""What every loss must do, on one small case of each kind."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices import EVERYWHERE, HAS_TORCH
from driftwolfe import losses
from driftwolfe.points import ops
from driftwolfe.points.factored import FactoredMatrix
from losses.loss_cases import CASES, MATRIX, MATRIX_CASES, POSITIVE, PositiveGenerator, factored

RUNS_ON = EVERYWHERE
seeds = st.integers(0, 2**32 - 1)
every_loss = pytest.mark.parametrize("name", CASES)
every_matrix_loss = pytest.mark.parametrize("name", MATRIX_CASES)


def make(name: str, seed: int):
    rng = np.random.default_rng(seed)
    build, shape = CASES[name]
    loss = build(rng)
    return loss, shape, PositiveGenerator(rng) if name in POSITIVE else rng


def test_every_public_loss_has_a_case():
    concrete = set(losses.__all__) - {"Loss"} - (set() if HAS_TORCH else {"from_torch"})
    assert concrete == {name.split(",")[0] for name in CASES}
    assert losses.__all__ == sorted(losses.__all__)


@every_loss
def test_gradient_agrees_with_finite_differences(name):
    for seed in range(5):
        loss, shape, rng = make(name, seed)
        x = rng.standard_normal(shape)  # almost surely no kink nearby
        gradient, step = loss.gradient(x), 1e-6
        for index in np.ndindex(shape):
            unit = np.zeros(shape)
            unit[index] = step
            slope = (loss.value(x + unit) - loss.value(x - unit)) / (2 * step)
            assert slope == pytest.approx(gradient[index], abs=1e-6, rel=1e-6)


@every_loss
@given(seed=seeds, whole=st.booleans())
def test_subgradient_inequality_and_convexity(name, seed, whole):
    loss, shape, rng = make(name, seed)
    # Whole numbers hit the kinks exactly: errors of 0, margins of 1.
    draw = (lambda: rng.integers(-2, 3, shape) * 1.0) if whole else lambda: rng.normal(size=shape)
    x, y = draw(), draw()
    value, gradient = loss.value_and_gradient(x)
    slack = 1e-9 * (1 + abs(value) + abs(loss.value(y)))
    assert loss.value(y) >= value + ops.inner(gradient, y - x) - slack
    for part in (0.5, 0.9):
        between = part * value + (1 - part) * loss.value(y)
        assert loss.value(part * x + (1 - part) * y) <= between + slack


@every_loss
def test_value_and_gradient_is_both(name):
    loss, shape, rng = make(name, 0)
    x = rng.standard_normal(shape)
    value, gradient = loss.value_and_gradient(x)
    assert type(value) is float
    assert value == loss.value(x)
    assert gradient.shape == shape
    assert np.array_equal(gradient, loss.gradient(x))


@every_loss
def test_a_stack_gives_what_its_points_give(name):
    loss, shape, rng = make(name, 1)
    stack = rng.standard_normal((3, *shape))
    scores = loss.stacked_scores(stack)
    gradients = loss.stacked_pull_back(loss.slope_at(scores), stack)
    assert gradients.shape == stack.shape
    np.testing.assert_allclose(loss.value_at(scores), [loss.value(x) for x in stack], rtol=1e-12)
    expected = np.stack([loss.gradient(x) for x in stack])
    np.testing.assert_allclose(gradients, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(scores, losses.Loss.stacked_scores(loss, stack), rtol=1e-12)
    slopes = loss.slope_at(scores)
    by_loop = losses.Loss.stacked_pull_back(loss, slopes, stack)
    np.testing.assert_allclose(gradients, by_loop, rtol=1e-12, atol=1e-14)


@every_loss
def test_value_at_and_slope_at_keep_any_leading_axes(name):
    loss, shape, rng = make(name, 2)
    scores = loss.stacked_scores(rng.standard_normal((6, *shape)))
    folded = scores.reshape(2, 3, *scores.shape[1:])
    assert np.array_equal(loss.value_at(folded), loss.value_at(scores).reshape(2, 3))
    assert np.array_equal(loss.slope_at(folded), loss.slope_at(scores).reshape(folded.shape))
    value, slope = loss.value_and_slope_at(folded)
    assert np.array_equal(value, loss.value_at(folded))
    assert np.array_equal(slope, loss.slope_at(folded))


@every_loss
@pytest.mark.parametrize("scale", [1.0, 1e4])  # large enough to overflow exponentials
def test_a_round_gives_what_the_points_and_their_mean_give(name, scale):
    loss, shape, rng = make(name, 6)
    stack, weights = scale * rng.standard_normal((3, *shape)), np.array([0.2, 0.5, 0.3])
    before = stack.copy()
    values, gradients, value = loss.stacked_round(stack, weights)
    expected = [loss.value_and_gradient(x) for x in stack]
    np.testing.assert_allclose(values, [v for v, _ in expected], rtol=1e-12)
    gradients_by_hand = [g for _, g in expected]
    np.testing.assert_allclose(gradients, gradients_by_hand, rtol=1e-12, atol=1e-13 * scale)
    assert type(value) is float
    mean = np.tensordot(weights, stack, 1)
    assert value == pytest.approx(loss.value(mean), rel=1e-12)
    assert np.array_equal(stack, before)


@every_loss
def test_a_round_of_equal_points_has_no_difference(name):
    """Not even one of rounding: a learned scale of differences would start from it."""
    loss, shape, rng = make(name, 7)
    x = rng.standard_normal(shape)
    values, _, value = loss.stacked_round(np.stack([x, x]), np.array([0.5, 0.5]))
    assert values[0] == values[1] == value


@every_loss
def test_scores_are_linear(name):
    loss, shape, rng = make(name, 3)
    stack, weights = rng.standard_normal((3, *shape)), np.array([0.2, 0.5, 0.3])
    combined = loss.scores(np.tensordot(weights, stack, 1))
    mixed = np.tensordot(weights, loss.stacked_scores(stack), 1)
    np.testing.assert_allclose(combined, mixed, rtol=1e-12, atol=1e-12)


@every_loss
def test_lipschitz_bounds_the_gradients_on_the_set(name):
    for seed in range(20):
        loss, shape, rng = make(name, seed)
        center = None if seed % 2 else rng.standard_normal(shape)
        ball = SimpleNamespace(center=center, radius=3.0)
        bound = loss.lipschitz(ball)
        if bound is None:
            # Functions say nothing; near 0 gradients have no bound.
            assert "Function" in name or "from_" in name or name in POSITIVE
            return
        for _ in range(20):
            direction = rng.standard_normal(shape)
            x = 3.0 * direction / ops.norm(direction) + (0.0 if center is None else center)
            assert ops.norm(loss.gradient(x)) <= bound * (1 + 1e-12)


@every_loss
def test_a_wrong_shape_is_refused(name):
    loss, right, _ = make(name, 0)
    loss.value(np.zeros(right))  # a FunctionLoss knows its shape from here on
    stacked = loss.stacked_scores, lambda stack: loss.stacked_round(stack, np.ones(2) / 2)
    for shape in ((3,), (2, 3), (5, 1), (1, 4, 6), (6, 4), (), (*right, 1)):
        for look in (loss.value, loss.gradient, loss.value_and_gradient):
            with pytest.raises(ValueError, match="shape"):
                look(np.zeros(shape))
        for look in stacked:
            with pytest.raises(ValueError, match="shape"):
                look(np.zeros((2, *shape)))


@every_loss
def test_a_list_is_a_point(name):
    loss, shape, rng = make(name, 4)
    x = rng.standard_normal(shape)
    assert loss.value(x.tolist()) == loss.value(x)
    assert np.array_equal(loss.gradient(x.tolist()), loss.gradient(x))


@every_loss
def test_points_are_never_written_to_and_gradients_are_fresh(name):
    loss, shape, rng = make(name, 5)
    x = rng.standard_normal(shape)
    before = x.copy()
    gradient = loss.gradient(x)
    expected = gradient.copy()
    gradient += 1.0
    stack = np.stack([x, x])
    loss.stacked_pull_back(loss.slope_at(loss.stacked_scores(stack)), stack)[:] = 7.0
    assert np.array_equal(x, before)
    assert np.array_equal(stack, [before, before])
    assert np.array_equal(loss.gradient(x), expected)


@every_matrix_loss
@given(seed=seeds)
def test_a_factored_matrix_gives_what_its_array_gives(name, place, seed):
    loss, shape, rng = make(name, seed)
    X = factored(rng, shape)
    dense, there = X.toarray(), X.to(place)
    value, gradient = loss.value_and_gradient(there)
    assert isinstance(gradient, FactoredMatrix)
    assert gradient.shape == MATRIX
    assert gradient.device is there.device or not name.endswith("Entries")
    assert value == pytest.approx(loss.value(dense), rel=1e-12, abs=1e-12)
    assert value == pytest.approx(loss.value(there), rel=1e-12, abs=1e-12)
    found = gradient.to("cpu").toarray()
    np.testing.assert_allclose(found, loss.gradient(dense), rtol=1e-12, atol=1e-12)
    assert gradient.norm() == pytest.approx(np.linalg.norm(found), rel=1e-12, abs=1e-12)


@every_matrix_loss
def test_the_zero_factored_matrix(name):
    loss, shape, _ = make(name, 0)
    zero = FactoredMatrix.zeros(shape)
    assert loss.value(zero) == pytest.approx(loss.value(np.zeros(shape)), rel=1e-12)
    with pytest.raises(ValueError, match="shape"):
        loss.gradient(FactoredMatrix.zeros((2, 3)))
