"""The classifier against river's softmax regression: `python -m benchmarks.classifier`.

Every row is predicted before it is learned, one by one, through river's API on both sides. A label
that a model has never met has probability 0 there, which costs -log(1e-15). The classifier has its
linear experts alone (`benchmarks.nonlinear`: all of them) and its defaults otherwise; softmax
regression, which has no intercept, has three learning rates, on raw and on standardised features, so
its best line is tuned in hindsight.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from river import compose, linear_model, optim, preprocessing
from river import datasets as river_data
from sklearn import datasets
from sklearn.linear_model import SGDClassifier

import driftwolfe as dw
from benchmarks import data
from benchmarks.measure import Skipped, medians, race
from benchmarks.ratio import Ratio
from driftwolfe.estimators.river import RiverTraceNormClassifier
from driftwolfe.estimators.sklearn import TraceNormClassifier

RATES = (0.01, 0.1, 1.0)
#: Rows per call where scikit-learn's API is timed.
BATCH = 100

Rows = list[tuple[dict[Any, float], Any]]


class Played(NamedTuple):
    """Results of a model on a stream."""

    loss: float
    error: float
    rows_per_second: float


def play(model: Any, rows: Rows) -> Played:
    """Predict and learn all rows, one by one."""
    logs, wrong, started = 0.0, 0, time.perf_counter()
    for x, y in rows:
        p = model.predict_proba_one(x)
        logs -= math.log(max(p.get(y, 0.0), 1e-15))
        wrong += not p or max(p, key=p.get) != y
        model.learn_one(x, y)
    taken = time.perf_counter() - started
    return Played(logs / len(rows), wrong / len(rows), len(rows) / taken)


def learning_speed(rows: Rows) -> tuple[float, float]:
    """Rows learned per second, without predictions: ours in batches, and softmax regression."""
    table, labels = as_table(rows)
    model, classes = TraceNormClassifier(features="linear"), np.unique(labels)
    started = time.perf_counter()
    for k in range(0, len(rows), BATCH):
        model.partial_fit(table[k : k + BATCH], labels[k : k + BATCH], classes)
    ours = time.perf_counter() - started
    softmax = linear_model.SoftmaxRegression(optim.SGD(0.1))
    started = time.perf_counter()
    for x, y in rows:
        softmax.learn_one(x, y)
    return len(rows) / ours, len(rows) / (time.perf_counter() - started)


def as_table(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """The rows as an array with a column per feature, and the labels."""
    names = sorted({name for x, _ in rows for name in x}, key=str)
    table = np.array([[x.get(name, 0.0) for name in names] for x, _ in rows])
    return table, np.array([y for _, y in rows])


def contestants() -> Iterator[tuple[str, Any]]:
    """New models by name."""
    yield "TraceNormClassifier", RiverTraceNormClassifier(features="linear")
    for rate in RATES:
        yield f"softmax, rate {rate:g}", linear_model.SoftmaxRegression(optim.SGD(rate))
    for rate in RATES:
        softmax = linear_model.SoftmaxRegression(optim.SGD(rate))
        yield (
            f"standardised, softmax, rate {rate:g}",
            compose.Pipeline(preprocessing.StandardScaler(), softmax),
        )


def table_rows(X: np.ndarray, y: np.ndarray) -> Rows:
    """The rows of a table as dictionaries; zeros are left out above 100 features."""
    sparse = X.shape[1] > 100
    rows = ({j: v for j, v in enumerate(row) if v or not sparse} for row in X.tolist())
    return list(zip(rows, y.tolist(), strict=True))


def stream_rows(stream: dw.streams.Stream) -> Rows:
    """The rows of a stream of `MulticlassLogistic` losses."""
    features = np.vstack([loss.features for loss in stream])
    return table_rows(features, np.concatenate([loss.labels for loss in stream]))


def shuttle(flipped: bool) -> Rows:
    """Shuttle, with the paper's flips or without."""
    stream = data.shuttle()
    return stream_rows(stream if flipped else dw.streams.shuttle(flip_every=None))


def abrupt() -> Rows:
    """Two linear models, one after the other."""
    first, second = (
        dw.streams.synthetic.drifting_logistic((5, 10), 1000, speed=0.0, seed=seed, radius=30.0)
        for seed in (0, 1)
    )
    return stream_rows(dw.streams.drift.abrupt(first, second, 500))


def digits() -> Rows:
    """Scikit-learn's digits, shuffled."""
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(y.size)
    return table_rows(X[order], y[order])


def words(rows: int = 6000, features: int = 3000, classes: int = 6) -> Rows:
    """Synthetic texts of 20 to 60 words; all topics change halfway."""
    rng = np.random.default_rng(0)
    usual = 1.0 / np.arange(1, features + 1)
    topics = usual * np.exp(0.7 * rng.normal(size=(2, classes, features)))
    topics /= topics.sum(axis=2, keepdims=True)
    labels = rng.integers(0, classes, rows)
    counts = [
        rng.multinomial(rng.integers(20, 60), topics[2 * k // rows, label])
        for k, label in enumerate(labels)
    ]
    table = np.log1p(np.array(counts))
    return table_rows(table / np.linalg.norm(table, axis=1, keepdims=True), labels)


STREAMS: dict[str, Callable[[], Rows]] = {
    "Shuttle, signs flipped every 10,000 rows": lambda: shuttle(flipped=True),
    "Shuttle, no flips": lambda: shuttle(flipped=False),
    "synthetic, abrupt drift": abrupt,
    "digits": digits,
    "image segments": lambda: list(river_data.ImageSegments()),
    "synthetic texts, abrupt drift": words,
}


#: Rows of each stream in the row of the speed budget, fewer for scikit-learn's API, and repeats.
TIMED, FEWER = 3000, 200
REPEATS = {True: 3, False: 5}
#: Said of rows of many features.
MANY = "; they are mapped by a loop of their own, 7 % slower than in one loop that took seconds more to compile"


def row(short: bool) -> list[Ratio]:
    """One row per call, linear experts: river's API against its softmax, scikit-learn's against its SGD."""
    streams = ("Shuttle", lambda: shuttle(flipped=True)), ("digits", digits), ("texts", words)
    return [
        ratio
        for name, load in streams
        for ratio in _one_row_ratios(name, load()[:TIMED], REPEATS[short])
    ]


def _one_row_jobs(rows: Rows, few: Rows) -> dict[str, Callable[[], Any]]:
    """Rows predicted and learned, one per call, through both APIs; few by those of scikit-learn's."""
    table, labels = as_table(few)
    classes = np.unique(labels)
    return {
        "river": lambda: play(RiverTraceNormClassifier(features="linear"), rows),
        "softmax": lambda: play(linear_model.SoftmaxRegression(optim.SGD(0.1)), rows),
        "scikit-learn": lambda: row_by_row(
            TraceNormClassifier(features="linear"), table, labels, classes
        ),
        "SGD": lambda: row_by_row(SGDClassifier(loss="log_loss"), table, labels, classes),
    }


def _one_row_ratios(name: str, rows: Rows, repeats: int) -> list[Ratio]:
    timings = race(_one_row_jobs(rows, rows[:FEWER]), repeats)
    counts = dict.fromkeys(("river", "softmax"), len(rows)) | dict.fromkeys(
        ("scikit-learn", "SGD"), FEWER
    )
    middle = {job: seconds / counts[job] for job, seconds in medians(timings).items()}
    return [
        Ratio(
            "one_row",
            f"{name}, {ours}'s API, against {theirs}",
            *(middle[ours], middle[peer]),
            at_least=0.9 if name == "texts" else 1.0,
            note=f"predicted and learned, one row per call; {name}, {counts[ours]:,} rows"
            + (MANY if name == "texts" else ""),
            timings=timings,
        )
        for ours, peer, theirs in (
            ("river", "softmax", "river's SoftmaxRegression"),
            ("scikit-learn", "SGD", "scikit-learn's SGDClassifier"),
        )
    ]


def row_by_row(model: Any, table: np.ndarray, labels: np.ndarray, classes: np.ndarray) -> None:
    """Predict and learn rows through scikit-learn's API, one per call."""
    model.partial_fit(table[:1], labels[:1], classes)
    for k in range(1, len(table)):
        model.predict(table[k : k + 1])
        model.partial_fit(table[k : k + 1], labels[k : k + 1])


def main() -> None:
    """Print a table for every stream."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=None, help="use only the first rows of each stream"
    )
    parser.add_argument(
        "--one-row", action="store_true", help="print the time of one row per call instead"
    )
    given = parser.parse_args()
    limit = given.rows
    play(RiverTraceNormClassifier(), digits()[:50])  # compiled before the clock starts
    for name, load in STREAMS.items():
        try:
            rows = load()[:limit]
        except Skipped as skipped:
            print(f"{name}: skipped, {skipped}")
            continue
        if given.one_row:
            print_one_row(name, rows[:TIMED])
        else:
            print(f"\n{name}: {len(rows):,} rows")
            compare(rows)


def print_one_row(name: str, rows: Rows) -> None:
    """Print the processor time of one row per call, predicted and learned, through both APIs."""
    jobs = _one_row_jobs(rows, rows)
    del jobs["SGD"]
    middle = medians(race(jobs, REPEATS[True], clock=time.process_time))
    print(
        f"{name}, {len(rows):,} rows: river's API {middle['softmax'] / middle['river']:.2f} times the "
        f"speed of softmax, scikit-learn's API {1e6 * middle['scikit-learn'] / len(rows):.0f} us per row",
        flush=True,
    )


def compare(rows: Rows) -> None:
    """Print the results of all models on one stream."""
    print(f"| {'model':38} | log loss | error  | rows/s, predicted and learned |")
    print(f"|{'-' * 40}|----------|--------|-------------------------------|")
    results = {}
    for name, model in contestants():
        results[name] = loss, error, speed = play(model, rows)
        print(f"| {name:38} | {loss:8.4f} | {error:6.4f} | {speed:29,.0f} |", flush=True)
    softmax = [name for name in results if "softmax" in name]
    best = min(softmax, key=lambda name: results[name].loss)
    ours, theirs = results["TraceNormClassifier"], results[best]
    print(
        f"best softmax in hindsight: {best}; ours has {ours.loss / theirs.loss:.2f} times its log "
        f"loss and {ours.error / max(theirs.error, 1e-9):.2f} times its error"
    )
    fast, slow = learning_speed(rows)
    print(
        f"learning only, rows/s: partial_fit in batches of {BATCH} {fast:,.0f}, softmax {slow:,.0f}, "
        f"ratio {fast / slow:.2f}"
    )


if __name__ == "__main__":
    main()
