"""Prediction sets under drift: `python -m benchmarks.sets` compares methods on the same probabilities.

Softmax regression and naive Bayes (river) predict each row before they learn it. Ours, `AdaptiveSets`, with
gains of 2 (the default) and 8, and the methods of `benchmarks.intervals`, have a threshold for the same score,
-ln p; every set holds the most probable label in any case. `--scores`: our threshold with other scores,
1 - p, adaptive prediction sets (APS) and regularised ones (RAPS, 0.1 per rank), both with a random part.
The score was chosen on streams like these; no other constant was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from river import datasets, linear_model, naive_bayes, preprocessing
from river.datasets import synth

from benchmarks.classifier import Rows, shuttle
from benchmarks.intervals import COVERAGE, FIRST, WINDOW, methods
from benchmarks.output import markdown
from driftwolfe.estimators import AdaptiveSets
from driftwolfe.estimators.intervals import LEAST, AdaptiveThreshold


def streams(rows: int) -> dict[str, Rows]:
    """Rows and labels 0, 1, ...; `Skipped` without the data."""
    segments = [*datasets.ImageSegments()]
    names = sorted({label for _, label in segments})
    plain = [(x, names.index(label)) for x, label in segments]
    third = len(plain) // 3
    middle = [(x, (label + 1) % len(names)) for x, label in plain[third : 2 * third]]
    led = [
        synth.LEDDrift(seed=k, noise_percentage=0.15 * k, n_drift_features=3 * k) for k in (1, 2)
    ]
    return {
        "ImageSegments": plain,
        "ImageSegments, labels of the middle third moved": plain[:third]
        + middle
        + plain[2 * third :],
        "Phishing": [(x, int(label)) for x, label in datasets.Phishing()],
        "LED, changed half-way": [row for each in led for row in each.take(rows // 2)],
        "Shuttle, flipped half-way": shuttle(flipped=True)[10_000 - rows // 2 : 10_000 + rows // 2],
        "RBF that move": [*synth.RandomRBFDrift(1, 1, 6, 8, 30, 0.001, 15).take(rows)],
    }


def predicted(model, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of all labels before each row, and true labels."""
    labels = np.array([label for _, label in rows])
    found = np.zeros((labels.size, labels.max() + 1))
    for t, (x, label) in enumerate(rows):
        for each, p in model.predict_proba_one(x).items():
            found[t, each] = p or 0.0
        model.learn_one(x, label)
    return found / np.maximum(found.sum(axis=1, keepdims=True), 1.0), labels


def surprise(p: np.ndarray, u: float) -> np.ndarray:
    return -np.log(np.clip(p, LEAST, 1.0))


def lack(p: np.ndarray, u: float) -> np.ndarray:
    return 1.0 - p


def mass(p: np.ndarray, u: float, penalty: float = 0.0) -> np.ndarray:
    """Of all more probable labels, and a random part of this one; a penalty per rank."""
    order, scores = np.argsort(-p, kind="stable"), np.empty(p.size)
    scores[order] = np.cumsum(p[order]) - (1.0 - u) * p[order] + penalty * np.arange(p.size)
    return scores


def ours(p: np.ndarray, y: np.ndarray, **options: float) -> np.ndarray:
    """How many labels are in the sets."""
    model, sizes = AdaptiveSets(coverage=COVERAGE, **options), np.empty(y.size, int)
    for t in range(y.size):
        sizes[t] = len(model.around(p[t : t + 1], allow_empty=True)[0])
        model.observe(p[t : t + 1], y[t : t + 1])
    return sizes


def by_threshold(p: np.ndarray, y: np.ndarray, play: Callable) -> np.ndarray:
    """The sizes of sets with the thresholds of a method for intervals."""
    scores = surprise(p, 0.0)
    _, upper = play(scores[np.arange(y.size), y])
    return (scores <= upper[:, None]).sum(axis=1)


def by_score(p: np.ndarray, y: np.ndarray, score: Callable) -> np.ndarray:
    """The sizes of sets with our threshold for another score."""
    model, sizes, rng = AdaptiveThreshold(), np.full(y.size, p.shape[1]), np.random.default_rng(0)
    for t in range(y.size):
        scores = score(p[t], rng.random())
        if t >= 10:
            sizes[t] = (scores <= model._limit(model)).sum()
        model._learn_all([model], [float(scores[y[t]])])
    return sizes


def measured(p: np.ndarray, y: np.ndarray, sizes: np.ndarray) -> tuple[float, ...]:
    """Coverage, its mean error on windows, size; coverage and empty sets if the top label is as all others."""
    ranks = (p > p[np.arange(y.size), y][:, None]).sum(axis=1)
    hits, strict = ranks[FIRST:] < np.maximum(1, sizes[FIRST:]), ranks[FIRST:] < sizes[FIRST:]
    windows = np.convolve(strict, np.ones(WINDOW) / WINDOW, "valid")
    parts = (
        hits,
        np.maximum(1, sizes[FIRST:]),
        strict,
        sizes[FIRST:] == 0,
        abs(windows - COVERAGE),
    )
    return tuple(float(np.mean(part)) for part in parts)


def main() -> int:
    """Print a table for each measure."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sets", description=__doc__.split("\n\n")[1]
    )
    parser.add_argument("--rows", type=int, default=2000, help="of each synthetic stream")
    parser.add_argument("--scores", action="store_true", help="our threshold, other scores")
    parser.add_argument("--packaged", action="store_true", help="SAOCP and FACI too; slow")
    given = parser.parse_args()
    if given.scores:
        raps = partial(mass, penalty=0.1)
        scores = {"-ln p": surprise, "1 - p": lack, "APS": mass, "RAPS": raps}
        tried = {name: partial(by_score, score=score) for name, score in scores.items()}
    else:
        slow = ("SAOCP", "FACI", "FACI-S", "SF-OGD") if not given.packaged else ()
        left_out = ("ours", "ours, gain 8", "MAPIE's ACI", *slow)
        others = {name: play for name, play in methods().items() if name not in left_out}
        tried = {"ours": ours, "ours, gain 8": partial(ours, gain=8.0)}
        tried |= {name: partial(by_threshold, play=play) for name, play in others.items()}
    models = {
        "softmax": lambda: preprocessing.StandardScaler() | linear_model.SoftmaxRegression(),
        "Bayes": lambda: preprocessing.StandardScaler() | naive_bayes.GaussianNB(),
    }
    found = {}
    for name, rows in streams(given.rows).items():
        for kind, make in models.items():
            print(f"{name}, {kind} ...", file=sys.stderr, flush=True)
            p, y = predicted(make(), rows)
            found[f"{name}; {kind}"] = [measured(p, y, play(p, y)) for play in tried.values()]
    titles = ("coverage, 0.9 wanted", "mean size", "coverage without the top label in any case")
    for k, title in enumerate((*titles, "empty then", "then, mean error on windows of 100")):
        lines = [[title, *tried]]
        lines += [[name, *(f"{each[k]:.3f}" for each in row)] for name, row in found.items()]
        print(markdown(lines), "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
