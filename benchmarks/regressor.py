"""The regressor against river's regressors: `python -m benchmarks.regressor`.

Every row is predicted before it is learned, one by one, through river's API on all sides; the mean absolute
error counts all rows, the first one too. Ours runs with its defaults. Linear regression on standardised
features has the best of twelve settings (two optimisers, six learning rates), the adaptive random forest the
better of two kinds of leaves, SNARIMAX, on streams in order of time, the best of four orders: all chosen for
each stream in hindsight. Streams marked "new" were first played when all constants of ours were fixed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from river import datasets, forest, linear_model, optim, preprocessing, time_series
from river.datasets import synth
from sklearn.datasets import load_diabetes

from benchmarks.measure import medians, race
from driftwolfe.estimators.river import RiverTraceNormRegressor
from driftwolfe.estimators.sklearn import TraceNormRegressor

RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
ORDERS = ((1, 0, 0), (1, 1, 0), (3, 1, 1), (24, 1, 0))

Rows = list[tuple[dict[str, float], float]]


class Forecaster:
    """A SNARIMAX model that predicts the next target from its features."""

    def __init__(self, p: int, d: int, q: int) -> None:
        self.model = time_series.SNARIMAX(p=p, d=d, q=q)

    def predict_one(self, x: dict[str, float]) -> float:
        return float(self.model.forecast(horizon=1, xs=[x])[0])

    def learn_one(self, x: dict[str, float], y: float) -> None:
        self.model.learn_one(y, x)


def play(model: Any, rows: Rows) -> float:
    """Return the mean absolute error; infinity for a model that has overflowed."""
    total = 0.0
    for x, y in rows:
        try:
            total += abs((model.predict_one(x) or 0.0) - y)  # some models say None at first
            model.learn_one(x, y)
        except (OverflowError, ValueError):
            return math.inf
    return total / len(rows) if math.isfinite(total) else math.inf


def linear(rate: float, optimizer: Any = optim.SGD) -> Any:
    regression = linear_model.LinearRegression(optimizer(rate), intercept_lr=max(0.01, rate))
    return preprocessing.StandardScaler() | regression


def contestants(ordered: bool) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Kinds of models, each with the settings to choose from."""
    yield "ours", [RiverTraceNormRegressor]
    pairs = [(rate, optimizer) for rate in RATES for optimizer in (optim.SGD, optim.Adam)]
    yield "linear", [lambda own=own: linear(*own) for own in pairs]
    leaves = ("adaptive", "mean")
    yield (
        "forest",
        [lambda kind=kind: forest.ARFRegressor(leaf_prediction=kind, seed=0) for kind in leaves],
    )
    yield "SNARIMAX", [lambda order=order: Forecaster(*order) for order in ORDERS if ordered]


def table_rows(X: np.ndarray, y: np.ndarray) -> Rows:
    names = [str(k) for k in range(X.shape[1])]
    rows = (dict(zip(names, row, strict=True)) for row in X.tolist())
    return list(zip(rows, y.tolist(), strict=True))


def numbers(stream: Any) -> Rows:
    """The rows of a stream of river's, all numbers as floats."""
    return [({str(name): float(v) for name, v in x.items()}, float(y)) for x, y in stream]


def water() -> Rows:
    """Hourly flows of water, by the hour and the day of the week."""
    stream = list(datasets.WaterFlow())
    return [({"hour": x["Time"].hour, "day": x["Time"].weekday()}, y) for x, y in stream]


def passengers() -> Rows:
    stream = list(datasets.AirlinePassengers())
    return [({"year": x["month"].year, "month": x["month"].month}, float(y)) for x, y in stream]


def friedman(kind: str, seed: int, count: int = 6000) -> Rows:
    """Friedman's function; it changes in parts, at once twice, or slowly twice."""
    third = count // 3
    position = (third, count // 2, 2 * third) if kind == "lea" else (third, 2 * third)
    window = {"transition_window": count // 10} if kind == "gsg" else {}
    return numbers(synth.FriedmanDrift(kind, position, **window, seed=seed).take(count))


def linear_drift(walk: float, seed: int, count: int = 4000, features: int = 10) -> Rows:
    """A linear model whose coefficients change sign every 1,000 rows, or walk at random."""
    rng = np.random.default_rng(seed)
    X, noise = rng.normal(size=(count, features)), 0.5 * rng.normal(size=count)
    W = rng.normal(size=features) + np.cumsum(walk * rng.normal(size=(count, features)), axis=0)
    y = (X * W).sum(axis=1)
    if not walk:
        y *= np.where(np.arange(count) // 1000 % 2, -1.0, 1.0)
    return table_rows(X * np.exp(rng.normal(size=features)) + 3.0, y + 5.0 + noise)


#: By name: whether rows are in order of time, and the rows.
STREAMS: dict[str, tuple[bool, Callable[[], Rows]]] = {
    "TrumpApproval": (True, lambda: numbers(datasets.TrumpApproval())),
    "ChickWeights": (False, lambda: numbers(datasets.ChickWeights())),
    "WaterFlow": (True, water),
    "Friedman": (False, lambda: numbers(synth.Friedman(seed=1).take(5000))),
    "Friedman, changes in parts": (False, lambda: friedman("lea", 1)),
    "Friedman, changes at once": (False, lambda: friedman("gra", 1)),
    "Friedman, changes slowly": (False, lambda: friedman("gsg", 1)),
    "Planes2D": (False, lambda: numbers(synth.Planes2D(seed=1).take(4000))),
    "linear, signs flipped": (False, lambda: linear_drift(0.0, 0)),
    "linear, coefficients walk": (False, lambda: linear_drift(0.05, 0)),
    "new: AirlinePassengers": (True, passengers),
    "new: diabetes": (False, lambda: table_rows(*load_diabetes(return_X_y=True))),
    "new: Friedman, changes at once": (False, lambda: friedman("gra", 7)),
    "new: linear, signs flipped": (False, lambda: linear_drift(0.0, 7)),
    "new: linear, coefficients walk": (False, lambda: linear_drift(0.02, 7)),
}


def one_row(rows: Rows) -> str:
    """Processor time of one row per call, predicted and learned."""
    X = np.array([list(x.values()) for x, _ in rows], dtype=np.float64)
    y = np.array([y for _, y in rows])

    def scikit_learn() -> None:
        model = TraceNormRegressor().partial_fit(X[:1], y[:1])
        for k in range(1, y.size):
            model.predict(X[k : k + 1])
            model.partial_fit(X[k : k + 1], y[k : k + 1])

    jobs = {
        "river": lambda: play(RiverTraceNormRegressor(), rows),
        "linear": lambda: play(linear(0.01), rows),
        "scikit-learn": scikit_learn,
        "batch": lambda: TraceNormRegressor().partial_fit(X, y),
    }
    middle = medians(race(jobs, 3, clock=time.process_time))
    return " | ".join(f"{1e6 * middle[name] / y.size:.0f}" for name in jobs)


def main() -> None:
    """Print a line for every stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=None, help="use only the first rows")
    parser.add_argument("--only", default="", help="only streams with this in their name")
    parser.add_argument("--one-row", action="store_true", help="print times per row instead")
    given = parser.parse_args()
    chosen = {name: found for name, found in STREAMS.items() if given.only in name}
    play(RiverTraceNormRegressor(), water()[:5])  # compiled before the clock starts
    if given.one_row:
        print("| stream | river's API | river's linear | scikit-learn's API | one batch |")
    else:
        print("| stream | rows | ours | linear, tuned | forest, better of two | SNARIMAX, tuned |")
    for name, (ordered, load) in chosen.items():
        rows = load()[: given.rows]
        if given.one_row:
            print(f"| {name} | {one_row(rows)} |", flush=True)
            continue
        cells = []
        for _, settings in contestants(ordered):
            best = min((play(make(), rows) for make in settings), default=None)
            cells.append("" if best is None else f"{best:.4g}")
        print(f"| {name} | {len(rows):,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
