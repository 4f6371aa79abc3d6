"""Weights at the natural rate: a mixture of wealth, and the bound of exp-concave losses."""

import numpy as np
import pytest

from driftwolfe.ensemble import ExpConcaveHedge

RNG = np.random.default_rng(1)


def wealths(rounds=200, experts=4):
    """Daily growth of funds, with days of ruin and of riches: no range of losses is known."""
    return np.exp(
        RNG.standard_normal((rounds, experts)) * RNG.choice([0.01, 0.1, 3.0], (rounds, 1))
    )


@pytest.mark.parametrize("prior", [None, [1.0, 2.0, 3.0, 10.0]])
def test_for_log_loss_the_fund_is_the_mixture_of_the_funds(prior):
    growth, meta, log_wealth = wealths(), ExpConcaveHedge(4, prior=prior), 0.0
    for day in growth:
        log_wealth += np.log(meta.weights @ day)
        meta.update(-np.log(day))
    shares = np.full(4, 0.25) if prior is None else np.array(prior) / np.sum(prior)
    expected = np.log(shares) + np.log(growth).sum(axis=0)
    assert log_wealth == pytest.approx(np.logaddexp.reduce(expected))


@pytest.mark.parametrize("alpha", [0.125, 0.5])
def test_the_bound_holds_for_squared_losses_against_an_adversary(alpha):
    """Squares of predictions and outcomes in [-1, 1] are exp-concave with alpha = 1/8."""
    meta, regrets = ExpConcaveHedge(3, alpha=alpha, prior=[1.0, 2.0, 5.0]), np.zeros(3)
    for _ in range(500):
        forecasts = RNG.uniform(-1, 1, 3)
        mean = meta.weights @ forecasts
        outcome = -1.0 if mean > 0 else 1.0  # as far from the mean as can be
        losses = (forecasts - outcome) ** 2
        regrets += (mean - outcome) ** 2 - losses
        meta.update(losses)
        if alpha == 0.125:
            assert all(regrets[i] <= meta.regret_bound(i) + 1e-9 for i in range(3))


def test_a_rate_beyond_the_exp_concavity_breaks_the_bound():
    """So the test above can fail."""
    meta, regret = ExpConcaveHedge(2, alpha=20.0), 0.0
    for t in range(400):
        forecasts = np.array([1.0, -1.0])
        mean = meta.weights @ forecasts
        outcome = -1.0 if mean > 0 or (mean == 0 and t % 2) else 1.0
        losses = (forecasts - outcome) ** 2
        regret += (mean - outcome) ** 2
        meta.update(losses)
    assert regret - meta_best(400) > meta.regret_bound(0)


def meta_best(rounds):
    """The better of two experts that each lose 4 in half of the rounds."""
    return 4.0 * rounds / 2


def test_huge_losses_leave_weights_that_are_numbers():
    meta = ExpConcaveHedge(3)
    meta.update([1e300, -1e300, 0.0])
    np.testing.assert_array_equal(meta.weights, [0.0, 1.0, 0.0])
