"""Losses made of two functions."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import FunctionLoss
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import ProductPoint
from losses.loss_cases import factored


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (np.nan, "nan"),
        (np.inf, "inf"),
        (None, "None"),
        ("three", "three"),
        (np.ones(2), "array"),
        (1j, "1j"),
    ],
)
def test_a_strange_value_is_reported(result, shown):
    loss = FunctionLoss(lambda x: result, lambda x: x)
    with pytest.raises(ValueError, match=rf"value\(x\) must return .*{shown}"):
        loss.value([1.0, 2.0])


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (np.ones(3), r"gradient\(x\) must return a point of shape \(2,\), .* shape \(3,\)"),
        (1.0, r"gradient\(x\) must return a point of shape \(2,\), .* shape \(\)"),
        ([np.nan, 1.0], r"what gradient\(x\) returned has entries that are not finite"),
        (None, r"what gradient\(x\) returned must be an array of real numbers"),
        (FactoredMatrix.zeros((2, 1)), r"gradient\(x\) must return a point of shape \(2,\)"),
    ],
)
def test_a_strange_gradient_is_reported(result, message):
    loss = FunctionLoss(lambda x: 1.0, lambda x: result)
    with pytest.raises(ValueError, match=message):
        loss.gradient([1.0, 2.0])


def test_both_functions_are_needed():
    with pytest.raises(TypeError, match="gradient must be callable"):
        FunctionLoss(lambda x: 1.0, None)


def test_the_functions_cannot_write_to_the_point_nor_lend_it_out():
    def spoil(x):
        x[0] = 9.0

    with pytest.raises(ValueError, match="read-only"):
        FunctionLoss(spoil, lambda x: x).value(np.zeros(2))
    x = np.zeros(2)
    gradient = FunctionLoss(lambda x: 0.5 * x @ x, lambda x: x).gradient(x)
    gradient += 1.0
    assert not x.any()


def test_a_function_of_a_product():
    point = ProductPoint([np.array([1.0, 2.0]), factored(np.random.default_rng(0))])
    loss = FunctionLoss(lambda x: x.inner(x), lambda x: 2.0 * x)
    value, gradient = loss.value_and_gradient(point)
    assert value == pytest.approx(point.norm() ** 2)
    assert [type(part) for part in gradient.parts] == [type(part) for part in point.parts]
    assert (gradient - 2.0 * point).norm() < 1e-12
    with pytest.raises(ValueError, match="read-only"):
        FunctionLoss(lambda x: x.parts[0].fill(0.0), lambda x: x).value(point)
    for wrong in ([1.0, 2.0], ProductPoint(point.parts[:1])):
        with pytest.raises(ValueError, match="ProductPoint of 2 parts"):
            FunctionLoss(lambda x: 0.0, lambda x, wrong=wrong: wrong).gradient(point)
    bad = ProductPoint([np.array([np.nan, 0.0]), point.parts[1]])
    with pytest.raises(ValueError, match="finite"):
        FunctionLoss(lambda x: 0.0, lambda x: bad).gradient(point)


def test_a_function_of_a_factored_matrix():
    X = factored(np.random.default_rng(1))
    loss = FunctionLoss(lambda x: x.norm() ** 2, lambda x: x * 2.0)
    value, gradient = loss.value_and_gradient(X)
    assert value == pytest.approx((X.toarray() ** 2).sum())
    np.testing.assert_allclose(gradient.toarray(), 2.0 * X.toarray())
    dense_gradient = FunctionLoss(lambda x: x.norm() ** 2, lambda x: 2.0 * x.toarray()).gradient(X)
    assert isinstance(dense_gradient, FactoredMatrix)
    np.testing.assert_allclose(dense_gradient.toarray(), 2.0 * X.toarray())


def test_a_given_shape_holds_from_the_start():
    loss = FunctionLoss(np.sum, np.ones_like, shape=(2, 3))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), got \(6,\)"):
        loss.value(np.zeros(6))
    assert loss.lipschitz(None) is None
    assert FunctionLoss(np.sum, np.ones_like, lipschitz=2).lipschitz(None) == 2.0


@pytest.mark.parametrize("learner", [dw.POLA, dw.OGD])
def test_points_that_functions_are_given_never_change(learner):
    """Also where experts are rows of one array that is written to: a function may keep its points."""
    kept = []

    def value(x):
        kept.append((x, np.array(x)))
        return float(x @ x - x[0])

    game = learner(dw.L2Ball(2))
    for _ in range(12):
        game.update(FunctionLoss(value, lambda x: 2.0 * x - np.array([1.0, 0.0])))
    assert len(kept) >= 12
    for point, then in kept:
        np.testing.assert_array_equal(point, then)
        with pytest.raises(ValueError, match="read-only"):
            point[0] = 9.0
