"""Six markets: the pool has 0.8 of the wealth of equal weights, and half of that of a peer's Newton step."""

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks.portfolio import (
    NAMES,
    PACKAGE_ONS,
    PRIOR,
    market_files,
    played,
    pool,
    result,
    returns,
)
from driftwolfe.losses import PortfolioLoss

needs_markets = pytest.mark.skipif(
    market_files() is None,
    reason="needs the markets of universal-portfolios; fetch them with: make markets",
)
LONG = ("nyse_o", "nyse_n", "tse", "msci", "sp500")  # over twenty years, and three more


@needs_markets
@pytest.mark.parametrize(
    "market",
    [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in NAMES],
)
def test_the_pool_keeps_its_floors_on_every_market(market):
    days = returns(market)
    simplex = dw.Simplex(days.shape[1])
    equal = float(np.prod(days.mean(axis=1)))
    fund = pool(simplex)
    newton = wealth = 1.0
    for day in days:
        newton *= fund.learners[1].decision @ day
        wealth *= np.exp(-fund.update(PortfolioLoss(day)))
    assert newton == pytest.approx(PACKAGE_ONS[market], rel=0.01)  # the same method, other solvers
    assert wealth >= 0.8 * equal  # as the page says: 0.82 at least
    assert wealth >= 0.5 * PACKAGE_ONS[market]
    assert wealth >= (np.array(PRIOR[:2]) / sum(PRIOR) @ [equal, newton]) * (1 - 1e-9)


@needs_markets
def test_markets_are_price_relatives():
    sizes = {name: returns(name).shape for name in NAMES}
    longest = {"nyse_o": (5650, 36), "nyse_n": (6430, 23), "tse": (1258, 88)}
    assert sizes == longest | {"sp500": (1275, 25), "msci": (1042, 24), "djia": (506, 30)}
    assert all((returns(name) > 0.2).all() and (returns(name) < 5.0).all() for name in NAMES)


def test_turnover_and_costs_of_a_market_done_by_hand():
    """One asset doubles; equal weights then sell a sixth of the fund, and buy it of the other."""
    days = np.array([[2.0, 1.0], [1.0, 1.0]])
    found = result(np.full((2, 2), 0.5), days, fee=0.1)
    assert found.wealth == pytest.approx(1.5)
    assert found.turnover == pytest.approx(1 / 6)
    assert found.after_costs == pytest.approx(1.5 * (1 - 0.1 / 3))
    held = result(np.array([[0.5, 0.5], [2 / 3, 1 / 3]]), days, fee=0.1)
    assert (held.turnover, held.after_costs) == pytest.approx((0.0, held.wealth))


def test_portfolios_are_those_that_the_learner_holds():
    days = np.exp(0.1 * np.random.default_rng(0).standard_normal((20, 3)))
    weights = played(dw.contrib.OnlineNewtonStep(dw.Simplex(3), rate=-0.75, ridge=1.0), days)
    learner = dw.contrib.OnlineNewtonStep(dw.Simplex(3), rate=-0.75, ridge=1.0)
    for day, held in zip(days, weights, strict=True):
        np.testing.assert_array_equal(learner.decision, held)
        learner.update(PortfolioLoss(day))
    assert result(weights, days).wealth == pytest.approx(np.prod((weights * days).sum(axis=1)))
