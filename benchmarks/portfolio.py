"""Six stock markets: equal weights, learners and a pool of them: `python -m benchmarks.portfolio`.

The markets come with the package universal-portfolios (`make markets` fetches its files; none of its code
runs here). A loss is -log of a day's growth, so what counts is the final value of an initial 1. Trades
cost nothing, or 0.5 % of their value, bought and sold alike, with each day's portfolio reached from what
the last one has become; the first purchase is free.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import driftwolfe as dw
from driftwolfe.terminal import table

#: Wealth at the end that the package's own `ONS().run(dataset(name))` reports (version 0.4.17, which
#: needs cvxopt): an answer that does not come from this library.
PACKAGE_ONS = {
    "nyse_o": 110.748,
    "nyse_n": 38.677,
    "tse": 1.4566,
    "sp500": 3.3048,
    "msci": 0.86227,
    "djia": 1.5170,
}
NAMES = {"nyse_o": "NYSE(O)", "nyse_n": "NYSE(N)", "tse": "TSE", "sp500": "SP500", "msci": "MSCI"}
NAMES |= {"djia": "DJIA"}
FEE = 0.005
#: What each learner of the pool is given at the start: equal weights and the bet on reversals the same,
#: the learner that follows what rises half of that.
PRIOR = (2.0, 2.0, 1.0)


class Result(NamedTuple):
    """What became of an initial 1."""

    wealth: float
    turnover: float  # mean share of the fund that is sold each day
    after_costs: float


def market_files() -> Path | None:
    """Return the folder with the markets, None where the package is not installed."""
    found = find_spec("universal")
    places = [] if found is None else list(found.submodule_search_locations or [])
    folders = [Path(place) / "data" for place in places]
    return next((each for each in folders if (each / "nyse_o.csv").exists()), None)


def returns(market: str) -> NDArray[np.float64]:
    """Return the price relatives of a market: a row for each day, a column for each asset."""
    folder = market_files()
    if folder is None:
        raise FileNotFoundError("the markets are not here; fetch them with: make markets")
    prices = np.loadtxt(folder / f"{market}.csv", delimiter=",", skiprows=1)
    return prices[1:] / prices[:-1]


def pool(simplex: dw.Simplex) -> dw.contrib.Mixture:
    """Return a fund of three: one stays, one bets on reversals, one follows what rises."""
    reversal = dw.contrib.OnlineNewtonStep(simplex, rate=-0.75, ridge=1.0)
    members = [dw.learners.Constant, reversal, dw.POLAR]
    return dw.contrib.Mixture(simplex, members, weights="natural", alpha=1.0, prior=PRIOR)


def result(weights: NDArray[np.float64], days: NDArray[np.float64], fee: float = FEE) -> Result:
    """Return what daily portfolios earn in a market."""
    growth = (weights * days).sum(axis=1)
    drifted = (weights * days / growth[:, None])[:-1]
    traded = np.abs(weights[1:] - drifted).sum(axis=1)
    costs = np.log1p(-fee * traded).sum()
    total = float(np.log(growth).sum())
    return Result(float(np.exp(total)), 0.5 * float(traded.mean()), float(np.exp(total + costs)))


def played(learner: dw.Learner, days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the portfolios that a learner holds, day by day."""
    losses = [dw.losses.PortfolioLoss(day) for day in days]
    return np.array(dw.play(learner, losses, record_decisions=True, progress=False).decisions)


def results(market: str) -> dict[str, Result]:
    """Return what became of each way to invest in a market."""
    days = returns(market)
    simplex = dw.Simplex(days.shape[1])
    learners = {
        "equal weights": dw.learners.Constant(simplex),
        "reversal": dw.contrib.OnlineNewtonStep(simplex, rate=-0.75, ridge=1.0),
        "POLA": dw.POLA(simplex),
        "POLAR": dw.POLAR(simplex),
        "pool": pool(simplex),
    }
    return {name: result(played(one, days), days) for name, one in learners.items()}


def main() -> None:
    """Print wealth, turnover and wealth after costs."""
    parser = argparse.ArgumentParser(prog="benchmarks.portfolio", description=__doc__)
    parser.add_argument("markets", nargs="*", choices=[[], *NAMES], help="all six by default")
    for market in parser.parse_args().markets or NAMES:
        found, days = results(market), returns(market)
        print(f"\n{NAMES[market]}: {len(days):,} days, {days.shape[1]} assets")
        rows = [("the package's ONS", f"{PACKAGE_ONS[market]:.3f}", "", "")]
        for name, (wealth, turnover, net) in found.items():
            rows.append((name, f"{wealth:.3f}", f"{turnover:.2%}", f"{net:.3f}"))
        print("\n".join(table(("", "wealth", "turnover per day", f"after {FEE:.1%} costs"), rows)))


if __name__ == "__main__":
    main()
