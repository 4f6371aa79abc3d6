"""Labels that come late: `python -m benchmarks.delays` prints errors by delay, ours and river's.

Each row is predicted with the labels of all rows that are at least so many rows older, by
`evaluate.prequential`, which is river's own loop for a delay. Our models run with their defaults; of
river's, the best of all settings is shown, chosen in hindsight for each stream and each delay.
"""

from __future__ import annotations

import sys

import numpy as np
from river import compose, linear_model, optim, preprocessing

from benchmarks import classifier, completer, data
from benchmarks.measure import Skipped
from benchmarks.output import markdown
from driftwolfe import evaluate
from driftwolfe.estimators import MatrixCompleter, RiverTraceNormClassifier

DELAYS = (0, 100, 1000, 10_000)


def softmax(rate: float, scaled: bool):
    """River's softmax regression on raw or standardised features."""
    model = linear_model.SoftmaxRegression(optim.SGD(rate))
    return compose.Pipeline(preprocessing.StandardScaler(), model) if scaled else model


def shuttle_errors(flipped: bool) -> dict[str, list[str]]:
    """Shares of wrong labels, by model and delay."""
    rows = classifier.shuttle(flipped)
    X, y = [x for x, _ in rows], [label for _, label in rows]

    def error(model, delay: int) -> float:
        told = evaluate.prequential(model, X, y, delay=delay)
        return float(np.mean([a != b for a, b in zip(told.tolist(), y, strict=True)]))

    tried = {
        f"rate {rate:g}{', standardised' if scaled else ''}": (rate, scaled)
        for rate in classifier.RATES
        for scaled in (False, True)
    }
    ours = [f"{error(RiverTraceNormClassifier(), delay):.4f}" for delay in DELAYS]
    theirs = [
        best({name: error(softmax(*given), delay) for name, given in tried.items()})
        for delay in DELAYS
    ]
    return {"RiverTraceNormClassifier": ours, "river SoftmaxRegression": theirs}


def rating_errors(stream: data.RatingStream) -> dict[str, list[str]]:
    """Mean absolute errors, by model and delay."""

    def error(model, delay: int) -> float:
        told = evaluate.prequential(model, stream.pairs, stream.ratings, delay=delay)
        return float(np.abs(told - stream.ratings).mean())

    found = {"MatrixCompleter": [f"{error(MatrixCompleter(), delay):.4f}" for delay in DELAYS]}
    for name, make in (("BiasedMF", completer.biased_mf), ("Baseline", completer.baseline)):
        found[f"river {name}"] = [
            best({f"rate {r:g}": error(make(r), delay) for r in completer.LEARNING_RATES})
            for delay in DELAYS
        ]
    return found


def best(errors: dict[str, float]) -> str:
    """The smallest error and the settings that have it."""
    name = min(errors, key=errors.__getitem__)
    return f"{errors[name]:.4f} ({name})"


def table(title: str, found: dict[str, list[str]]) -> str:
    """A row for each model, a column for each delay."""
    heads = [title, *("no delay" if not delay else f"{delay:,} rows" for delay in DELAYS)]
    return markdown([heads, *([name, *errors] for name, errors in found.items())])


def main() -> int:
    """Print the tables."""
    try:
        for name, stream in data.rating_streams().items():
            if "copies" not in name:  # which repeat pairs
                print(table(f"MovieLens 100K, {name}", rating_errors(stream)), "", sep="\n")
        for flipped in (False, True):
            title = f"Shuttle, {'flipped every 10,000 rows' if flipped else 'no flips'}"
            print(table(title, shuttle_errors(flipped)), "", sep="\n", flush=True)
    except Skipped as reason:
        print(reason, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
