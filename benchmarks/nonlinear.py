"""Classifiers on streams that are linear or not, against river: `python -m benchmarks.nonlinear`.

Every row is predicted before it is learned, one by one; accuracy, and the processor time of a row. Ours has
its defaults, but for `--seed`, that of its random features. The others are those of `benchmarks.streams`: forests
of ten trees, AMF with the better of two options, logistic regression with the best of six settings, each chosen
for a name of a stream in hindsight. Generators have ten seeds each. Streams called "new" have two seeds, and
2,000 rows where they are generated; no constant of ours was chosen while looking at them: `--streams new`.
`--jobs 2` runs two streams at a time.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from river import datasets
from river.datasets import synth
from sklearn import datasets as sklearn_data

from benchmarks.classifier import Rows, as_table, shuttle
from benchmarks.output import markdown
from benchmarks.streams import Contestants, classifiers
from driftwolfe.estimators.river import RiverTraceNormClassifier
from driftwolfe.estimators.sklearn import TraceNormClassifier

#: Rows of a generated stream, its concepts where they change at once, and its seeds.
LENGTH, CONCEPTS, SEEDS = 5000, 4, 10
NEW_LENGTH, NEW_SEEDS = 2000, 2
OURS, LINEAR, BATCH = "ours", "the same, linear", "in one batch"
OTHERS = ("ARF", "AMF", "tuned logistic")


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


def contestants(rows: Rows, seed: int) -> Contestants:
    """Models by name, each with the settings to choose from."""
    yield OURS, [partial(RiverTraceNormClassifier, seed=seed)]
    yield LINEAR, [partial(RiverTraceNormClassifier, features="linear")]
    yield from ((who, settings) for who, settings in classifiers("", rows) if who in OTHERS)


#: Accuracy and microseconds per row of a model, for each of its settings.
Found = dict[str, list[tuple[float, float]]]


def played(task: tuple[str, int], without: tuple[str, ...], random_features: int) -> Found:
    """The results of all models on a stream; and those of ours in one batch, the median of three."""
    name, seed = task
    rows, found = STREAMS[name][0](seed), Found()
    table, labels = as_table(rows)
    warm, known = RiverTraceNormClassifier(), np.unique(labels)
    for x, y in rows[:100]:  # loads what is compiled, for rows and for batches
        warm.predict_one(x), warm.learn_one(x, y)
    TraceNormClassifier().partial_fit(table[:100], labels[:100], known).predict(table[:100])
    for who, settings in contestants(rows, random_features):
        for make in settings if who not in without else ():
            model, right, started = make(), 0, time.process_time()
            for x, y in rows:
                right += model.predict_one(x) == y
                model.learn_one(x, y)
            taken = (time.process_time() - started) / len(rows) * 1e6
            found.setdefault(who, []).append((right / len(rows), taken))
    if OURS in found:
        batches = []
        for _ in range(3):  # a short stream takes a tenth of a second
            started = time.process_time()
            TraceNormClassifier().partial_fit(table, labels, known).predict(table)
            batches.append((time.process_time() - started) / len(rows) * 1e6)
        found[BATCH] = [(found[OURS][0][0], float(np.median(batches)))]
    return found


def best_means(several: list[Found]) -> dict[str, tuple[float, float]]:
    """Means over seeds, of each model with the setting that has the highest accuracy."""
    return {
        who: max(map(tuple, np.mean([found[who] for found in several], axis=0).tolist()))
        for who in several[0]
    }


def main() -> None:
    """Print a table of accuracies and one of times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="streams at a time")
    parser.add_argument("--streams", nargs="*", default=list(STREAMS), help="names, or new")
    parser.add_argument("--without", nargs="*", default=[], help="names of models left out")
    parser.add_argument("--seed", type=int, default=0, help="of the random features of ours")
    given = parser.parse_args()
    given.streams = list(NEW) if given.streams == ["new"] else given.streams
    tasks = [(name, seed) for name in given.streams for seed in range(STREAMS[name][1])]
    one = partial(played, without=tuple(given.without), random_features=given.seed)
    with ProcessPoolExecutor(given.jobs) as pool:
        results = list(pool.map(one, tasks))
    accuracies, times = [], []
    for name in given.streams:
        means = best_means([r for task, r in zip(tasks, results, strict=True) if task[0] == name])
        accuracies.append([name, *(f"{means[who][0]:.4f}" for who in means if who != BATCH)])
        times.append([name, *(f"{means[who][1]:.0f}" for who in means)])
    print(markdown([["stream", *(who for who in means if who != BATCH)], *accuracies]))
    print("\n" + markdown([["µs per row", *means], *times]))


if __name__ == "__main__":
    main()
