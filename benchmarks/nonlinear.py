"""Classifiers on streams that are linear or not, against river: `python -m benchmarks.nonlinear`.

Every row is predicted before it is learned, one by one; accuracy, and the processor time of a row. Ours has
its defaults. Forests have ten trees and their defaults; logistic regression, one against the rest, on
standardised features, has the best of five rates for each name of a stream, chosen in hindsight. Generators
have ten seeds each. Streams called "new" have two seeds, and 2,000 rows where they are generated; no
constant of ours was chosen while looking at them: `--streams new`. `--jobs 2` runs two streams at a time.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from river import compose, datasets, forest, linear_model, multiclass, optim, preprocessing
from river.datasets import synth
from sklearn import datasets as sklearn_data

from benchmarks.classifier import Rows, as_table, shuttle
from benchmarks.measure import threads
from benchmarks.output import markdown
from driftwolfe.estimators.classifier import TraceNormClassifier
from driftwolfe.estimators.river import RiverTraceNormClassifier

#: Rows of a generated stream, its concepts where they change at once, and its seeds.
LENGTH, CONCEPTS, SEEDS = 5000, 4, 10
NEW_LENGTH, NEW_SEEDS = 2000, 2
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
OURS, LINEAR, LOGISTIC = "TraceNormClassifier", "the same, linear", "logistic regression, tuned"


def changing(make: Callable[[int], Any], length: int = LENGTH) -> Rows:
    """Four generators, one after the other."""
    each = length // CONCEPTS
    return list(itertools.chain.from_iterable(make(k).take(each) for k in range(CONCEPTS)))


def sea(seed: int) -> Rows:
    """A sum of two of three features above a threshold, which changes; a label in ten is wrong."""
    return changing(lambda k: synth.SEA(variant=k, noise=0.1, seed=100 * seed + k))


def agrawal(seed: int) -> Rows:
    """Rules on nine features, which change."""
    return changing(
        lambda k: synth.Agrawal((seed + 3 * k) % 10, seed=100 * seed + k, perturbation=0.05)
    )


def hyperplane(seed: int) -> Rows:
    """A hyperplane that turns; a label in twenty is wrong."""
    options = {"n_drift_features": 5, "mag_change": 0.001, "noise_percentage": 0.05}
    return list(synth.Hyperplane(seed=seed, n_features=10, **options).take(LENGTH))


def rbf(seed: int) -> Rows:
    """Clouds of points that move."""
    options = {"n_centroids": 20, "change_speed": 0.001, "n_drift_centroids": 10}
    sizes = {"n_classes": 4, "n_features": 10}
    made = synth.RandomRBFDrift(seed_model=seed, seed_sample=seed, **sizes, **options)
    return list(made.take(LENGTH))


def changing_rules(family: Any, rules: int) -> Callable[[int], Rows]:
    """A generator whose rule is another one every quarter."""
    return lambda seed: changing(
        lambda k: family((seed + k) % rules, seed=100 * seed + k), NEW_LENGTH
    )


def taken(make: Callable[[int], Any]) -> Callable[[int], Rows]:
    return lambda seed: list(make(seed).take(NEW_LENGTH))


def joined(seed: int) -> Any:
    """One rule of Sine that gives way to another."""
    rules = (synth.Sine(rule, seed=seed) for rule in (0, 3))
    options = {"position": NEW_LENGTH // 2, "width": NEW_LENGTH // 10}
    return synth.ConceptDriftStream(*rules, seed=seed, **options)


def shuffled(load: Callable[..., Any], swap: bool = False) -> Callable[[int], Rows]:
    """A table in random order; with `swap`, labels mean other ones from the middle on."""

    def rows(seed: int) -> Rows:
        table, labels = load(return_X_y=True)
        rng = np.random.default_rng(seed)
        order, names = rng.permutation(len(labels)), rng.permutation(labels.max() + 1)
        table, labels = table[order], labels[order]
        if swap:
            labels[len(labels) // 2 :] = names[labels[len(labels) // 2 :]]
        features = [dict(enumerate(row)) for row in table.tolist()]
        return list(zip(features, labels.tolist(), strict=True))

    return rows


def moons(seed: int) -> Rows:
    """Two half moons that turn by half a circle."""
    table, labels = sklearn_data.make_moons(NEW_LENGTH, noise=0.25, random_state=seed)
    angles = np.linspace(0.0, np.pi, NEW_LENGTH)
    across, up = (table - [0.5, 0.25]).T
    turned = (
        np.cos(angles) * across - np.sin(angles) * up,
        np.sin(angles) * across + np.cos(angles) * up,
    )
    features = [{0: a, 1: b} for a, b in zip(*(part.tolist() for part in turned), strict=True)]
    return list(zip(features, labels.tolist(), strict=True))


STREAMS: dict[str, tuple[Callable[[int], Rows], int]] = {
    "Bananas": (lambda _: list(datasets.Bananas()), 1),
    "Phishing": (lambda _: list(datasets.Phishing()), 1),
    "ImageSegments": (lambda _: list(datasets.ImageSegments()), 1),
    "Shuttle, signs flipped": (lambda _: shuttle(flipped=True), 1),
    "SEA": (sea, SEEDS),
    "Agrawal": (agrawal, SEEDS),
    "Hyperplane": (hyperplane, SEEDS),
    "RandomRBFDrift": (rbf, SEEDS),
}
NEW = {
    "new: LED, features drift": taken(
        lambda seed: synth.LEDDrift(
            seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=3
        )
    ),
    "new: Sine, changes": changing_rules(synth.Sine, 4),
    "new: Sine, gives way": taken(joined),
    "new: Mixed, changes": changing_rules(synth.Mixed, 2),
    "new: STAGGER, changes": changing_rules(synth.STAGGER, 3),
    "new: RandomTree, changes": lambda seed: changing(
        lambda k: synth.RandomTree(10 * seed + k, 10 * seed + k), NEW_LENGTH
    ),
    "new: Waveform": taken(lambda seed: synth.Waveform(seed, has_noise=True)),
    "new: moons that turn": moons,
    "new: digits": shuffled(sklearn_data.load_digits),
    "new: digits, labels change": shuffled(sklearn_data.load_digits, swap=True),
    "new: breast cancer": shuffled(sklearn_data.load_breast_cancer),
    "new: wine": shuffled(sklearn_data.load_wine),
}
STREAMS |= {name: (make, NEW_SEEDS) for name, make in NEW.items()}


def contestants() -> Iterator[tuple[str, Any]]:
    """New models by name."""
    yield OURS, RiverTraceNormClassifier()
    yield LINEAR, RiverTraceNormClassifier(features="linear")
    yield "ARF", forest.ARFClassifier(n_models=10, seed=0)
    yield "AMF", forest.AMFClassifier(n_estimators=10, seed=0)
    for rate in RATES:
        logistic = linear_model.LogisticRegression(optim.SGD(rate))
        each = multiclass.OneVsRestClassifier(logistic)
        yield f"rate {rate:g}", compose.Pipeline(preprocessing.StandardScaler(), each)


def played(task: tuple[str, int], without: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Accuracy of models, and microseconds per row; and of ours in one batch, the median of three."""
    name, seed = task
    rows, found = STREAMS[name][0](seed), {}
    table, labels = as_table(rows)
    warm, known = RiverTraceNormClassifier(), np.unique(labels)
    for x, y in rows[:100]:  # loads what is compiled, for rows and for batches
        warm.predict_one(x), warm.learn_one(x, y)
    TraceNormClassifier().partial_fit(table[:100], labels[:100], known).predict(table[:100])
    for who, model in contestants():
        if who in without:
            continue
        right, started = 0, time.process_time()
        for x, y in rows:
            right += model.predict_one(x) == y
            model.learn_one(x, y)
        found[who] = right / len(rows), (time.process_time() - started) / len(rows) * 1e6
    batches = []
    for _ in range(3):  # a short stream takes a tenth of a second
        started = time.process_time()
        TraceNormClassifier().partial_fit(table, labels, known).predict(table)
        batches.append((time.process_time() - started) / len(rows) * 1e6)
    found["batch"] = found[OURS][0], float(np.median(batches))
    return found


def main() -> None:
    """Print a table of accuracies and one of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="streams at a time")
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), help="names, or new")
    parser.add_argument("--without", nargs="*", default=[], help="names of models left out")
    given = parser.parse_args()
    given.streams = list(NEW) if given.streams == ["new"] else given.streams
    tasks = [(name, seed) for name in given.streams for seed in range(STREAMS[name][1])]
    with threads(1), ProcessPoolExecutor(given.jobs) as pool:
        results = list(pool.map(partial(played, without=tuple(given.without)), tasks))
    accuracies, times = [], []
    for name in given.streams:
        own = [found for task, found in zip(tasks, results, strict=True) if task[0] == name]
        mean = {who: np.mean([found[who] for found in own], axis=0) for who in own[0]}
        best = max((f"rate {rate:g}" for rate in RATES), key=lambda who: mean[who][0])
        mean[LOGISTIC] = mean[best]
        models = [who for who in (OURS, LINEAR, "ARF", "AMF", LOGISTIC) if who in mean]
        accuracies.append([name, *(f"{mean[who][0]:.4f}" for who in models)])
        speeds = [mean["ARF"][1] / mean[who][1] for who in (OURS, "batch")]
        others = [who for who in models if who not in (OURS, LINEAR)]
        micro = [f"{mean[who][1]:.0f}" for who in (OURS, "batch", *others)]
        times.append([name, *micro, *(f"{speed:.1f}" for speed in speeds)])
    print(markdown([["stream", *models], *accuracies]))
    head = ["µs per row", OURS, "in one batch", *others, "times ARF's speed", "in one batch"]
    print("\n" + markdown([head, *times]))


if __name__ == "__main__":
    main()
