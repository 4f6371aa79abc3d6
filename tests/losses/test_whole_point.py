"""Linear losses and squared distances."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import FunctionLoss, LinearLoss, SquaredDistance
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import ProductPoint
from losses.loss_cases import factored


@pytest.mark.parametrize("kind", [LinearLoss, SquaredDistance])
def test_both_kinds_of_given_point_meet_both_kinds_of_point(kind):
    rng = np.random.default_rng(0)
    given, point = factored(rng), factored(rng)
    expected_value, expected = kind(given.toarray()).value_and_gradient(point.toarray())
    for g in (given, given.toarray()):
        for x in (point, point.toarray()):
            value, gradient = kind(g).value_and_gradient(x)
            assert type(gradient) is type(x)
            array = gradient.toarray() if isinstance(x, FactoredMatrix) else gradient
            assert value == pytest.approx(expected_value)
            np.testing.assert_allclose(array, expected, atol=1e-12)


def test_known_values():
    assert LinearLoss([[1.0, 2.0]], constant=-1.0).value([[3.0, 4.0]]) == 10.0
    assert SquaredDistance([1.0, 1.0], weight=2.0).value([0.0, 3.0]) == 10.0
    assert LinearLoss([3.0, 4.0]).lipschitz(None) == 5.0
    ball = SimpleNamespace(center=None, radius=2.0)
    assert SquaredDistance([3.0, 4.0]).lipschitz(ball) == 7.0
    off_center = SimpleNamespace(center=np.array([3.0, 3.0]), radius=2.0)
    assert SquaredDistance([3.0, 4.0], weight=1.0).lipschitz(off_center) == 6.0


def test_bad_numbers_and_functions_are_refused():
    with pytest.raises(ValueError, match="constant"):
        LinearLoss([1.0], constant=np.nan)
    with pytest.raises(ValueError, match="weight"):
        SquaredDistance([1.0], weight=-1.0)
    with pytest.raises(TypeError, match="gradient must be callable"):
        FunctionLoss(lambda x: 1.0, 2.0)
    with pytest.raises(TypeError, match="value must be callable"):
        FunctionLoss(None)


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
    with pytest.raises(ValueError, match=r"gradient\(x\) must return a point of shape \(2,\)"):
        FunctionLoss(lambda x: 1.0, lambda x: FactoredMatrix.zeros((2, 1))).gradient([1.0, 2.0])


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
