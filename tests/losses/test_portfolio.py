"""The loss of a portfolio: minus the logarithm of its growth."""

import numpy as np
import pytest

from driftwolfe.losses import PortfolioLoss

RNG = np.random.default_rng(0)
ROWS = np.exp(0.2 * RNG.standard_normal((3, 5)))
POINTS = RNG.dirichlet(np.ones(5), size=4)


def losses():
    return [PortfolioLoss(rows, centred=c) for rows in (ROWS[0], ROWS) for c in (False, True)]


def test_the_value_is_the_mean_of_logarithms():
    for x in POINTS:
        assert PortfolioLoss(ROWS[0]).value(x) == pytest.approx(-np.log(ROWS[0] @ x))
        expected = -np.mean([np.log(row @ x) for row in ROWS])
        assert PortfolioLoss(ROWS).value(x) == pytest.approx(expected)
        assert PortfolioLoss(ROWS, centred=True).value(x) == pytest.approx(expected)


def test_a_centred_gradient_differs_by_a_constant_and_is_small():
    for x in POINTS:
        plain, centred = (
            PortfolioLoss(ROWS).gradient(x),
            PortfolioLoss(ROWS, centred=True).gradient(x),
        )
        np.testing.assert_allclose(centred - plain, 1.0)
        assert np.linalg.norm(centred) < 0.5 * np.linalg.norm(plain)


def test_centred_gradients_are_those_of_the_values_and_of_stacks():
    loss, step = PortfolioLoss(ROWS, centred=True), 1e-6 * np.eye(5)
    slopes = [[loss.value(x + e) - loss.value(x - e) for e in step] for x in POINTS]
    values, gradients, mean = loss.stacked_round(POINTS, np.full(4, 0.25))
    np.testing.assert_allclose(gradients, np.array(slopes) / 2e-6, atol=1e-7)
    np.testing.assert_allclose(gradients, [loss.gradient(x) for x in POINTS])
    np.testing.assert_allclose(values, [loss.value(x) for x in POINTS])
    assert mean == pytest.approx(loss.value(POINTS.mean(axis=0)))


@pytest.mark.parametrize("loss", losses())
def test_its_exponential_is_concave_on_the_simplex(loss):
    for x, y in zip(POINTS, POINTS[::-1], strict=True):
        ends = np.exp(-loss.value(x)) + np.exp(-loss.value(y))
        assert np.exp(-loss.value((x + y) / 2)) >= ends / 2 - 1e-12


@pytest.mark.parametrize("bad", [[1.0, 0.0], [1.0, -0.5], [], [[[1.0]]], [1.0, np.nan], "text"])
def test_returns_that_are_none_are_refused(bad):
    with pytest.raises(ValueError, match="returns"):
        PortfolioLoss(bad)
