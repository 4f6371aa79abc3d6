"""One row at a time against river's linear models: `python -m benchmarks.one_row`, a minute.

Every row, a dict of ten numbers, is predicted and then learned, by our defaults and by river's logistic and linear
regression, with `StandardScaler` (ours rescale too) and without. Each job is run in turn several times; what is
compared is the least processor time of each. Streams: one linear rule for ever, the same with signs flipped in the
middle, and one that is not linear.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from river import linear_model, preprocessing

from benchmarks.measure import race
from driftwolfe.estimators.river import RiverTraceNormClassifier, RiverTraceNormRegressor

ROWS, FEATURES, REPEATS = 8000, 10, 5

Rows = list[tuple[dict[str, float], Any]]


def stream(kind: str, labels: bool, rows: int = ROWS, seed: int = 0) -> Rows:
    """Rows of a rule with noise, labels or numbers."""
    rng = np.random.default_rng(seed)
    X, rule = rng.normal(size=(rows, FEATURES)), rng.normal(size=FEATURES)
    score = X @ rule
    if kind == "signs flipped":
        score[rows // 2 :] *= -1.0
    elif kind == "not linear":
        score = 2.0 * X[:, 0] * X[:, 1] + 2.0 * np.sin(2.0 * X[:, 2])
    y = score + 0.5 * rng.logistic(size=rows)
    targets = (y > 0.0).tolist() if labels else y.tolist()
    names = [f"x{j}" for j in range(FEATURES)]
    return [(dict(zip(names, x, strict=True)), t) for x, t in zip(X.tolist(), targets, strict=True)]


def play(model: Any, rows: Rows, labels: bool) -> float:
    """Predict and learn all rows; return the mean log loss, or the mean absolute error."""
    total, predict, learn = (
        0.0,
        model.predict_proba_one if labels else model.predict_one,
        model.learn_one,
    )
    for x, y in rows:
        if labels:
            total -= math.log(max(predict(x).get(y, 0.5), 1e-15))
        else:
            total += abs(predict(x) - y)
        learn(x, y)
    return total / len(rows)


def contestants(labels: bool) -> dict[str, Callable[[], Any]]:
    """New models by name, ours first."""
    theirs = linear_model.LogisticRegression if labels else linear_model.LinearRegression
    return {
        "ours": RiverTraceNormClassifier if labels else RiverTraceNormRegressor,
        "with scaler": lambda: preprocessing.StandardScaler() | theirs(),
        "without": theirs,
    }


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args()
    print(
        "| stream | error of ours, river's | us per row: ours | with scaler | without | ratio | without scaler |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for labels in (True, False):
        for kind in ("one rule", "signs flipped", "not linear"):
            print(line(kind, labels, given.rows), flush=True)


def line(kind: str, labels: bool, count: int) -> str:
    """The line of the table for a stream."""
    rows, errors = stream(kind, labels, count), {}

    def job(name: str, make: Callable[[], Any]) -> Callable[[], None]:
        play(make(), rows[:50], labels)  # compiles
        return lambda: errors.update({name: play(make(), rows, labels)})

    jobs = {name: job(name, make) for name, make in contestants(labels).items()}
    timings = race(jobs, REPEATS, clock=time.process_time)
    ours, scaled, raw = (1e6 * min(each) / len(rows) for each in timings.values())
    cells = (
        f"{'labels' if labels else 'numbers'}, {kind}",
        f"{errors['ours']:.4f}, {errors['with scaler']:.4f}",
        *(f"{each:.1f}" for each in (ours, scaled, raw)),
        *(f"{ours / each:.2f}" for each in (scaled, raw)),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
