"""What missing cells and rare classes cost: `python -m benchmarks.gaps`, five minutes.

A tenth of the cells of each row is hidden at random, for our model and for river's, which get running means in
their place, and for gradient boosting, which is fitted to two thirds of the rows, shuffled, and asked for the rest.
Everything else is predicted before it is learned. Numbers are means over three seeds of what is hidden. Where the
rule behind the labels is known, so is the best that any model could do: to say the likelier label, given the rule
of the moment, its noise, and the cells that are there; the others are drawn many times. For Bananas that is
estimated by nearest neighbours among all other rows, with the number of these that is best in hindsight.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
from river import compose, datasets, linear_model, preprocessing, stats
from river.datasets import synth
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.output import markdown
from benchmarks.streams import LABELS
from driftwolfe.estimators import RiverTraceNormClassifier, RiverTraceNormRegressor

SEEDS, ROWS = (0, 1, 2), 3000


def hidden(rows: list[Any], seed: int) -> list[Any]:
    """The rows with a tenth of their cells missing."""
    chance = random.Random(seed)
    return [
        ({name: None if chance.random() < 0.1 else cell for name, cell in x.items()}, y)
        for x, y in rows
    ]


def linear(two: bool, names: Any) -> Any:
    """River's softmax or logistic regression, with what is missing filled in, and scaled."""
    family = linear_model.LogisticRegression if two else linear_model.SoftmaxRegression
    return compose.Pipeline(
        preprocessing.StatImputer(*((name, stats.Mean()) for name in names)),
        preprocessing.StandardScaler(),
        family(),
    )


def right(model: Any, rows: list[Any]) -> float:
    """The share of labels that are predicted."""
    found = 0
    for x, y in rows:
        found += model.predict_one(x) == y
        model.learn_one(x, y)
    return found / len(rows)


def error(model: Any, rows: list[Any]) -> float:
    """The mean error."""
    found = 0.0
    for x, y in rows:
        found += abs(model.predict_one(x) - y)
        model.learn_one(x, y)
    return found / len(rows)


def of_gaps(
    score: Callable[[Any, list[Any]], float], make: Callable[[], Any], rows: list[Any]
) -> tuple[float, float]:
    """The score of a model on whole rows, and the mean of those with gaps."""
    return score(make(), rows), float(np.mean([score(make(), hidden(rows, s)) for s in SEEDS]))


def boosted(rows: list[Any]) -> float:
    """The ratio for gradient boosting fitted to shuffled rows, which needs nothing filled in."""
    y = np.array([str(y) for _, y in rows])

    def score(rows: list[Any]) -> float:
        cells = [[np.nan if cell is None else cell for cell in x.values()] for x, _ in rows]
        X, folds = np.array(cells, dtype=float), StratifiedKFold(3, shuffle=True, random_state=0)
        return float(cross_val_score(HistGradientBoostingClassifier(), X, y, cv=folds).mean())

    return score(hidden(rows, 0)) / score(rows)


Rule = Callable[[dict[Any, float]], bool]


def sea(limit: float) -> Rule:
    return lambda x: x[0] + x[1] > limit


def agrawal(number: int) -> Rule:
    own = synth.Agrawal(number)._classification_functions[number]
    return lambda x: bool(own(*(x[name] for name in ARGUMENTS)))


def hyperplanes() -> Iterator[Rule]:
    stream = synth.Hyperplane(1, n_drift_features=5, mag_change=0.01)
    for _ in stream:
        weights = list(stream._weights)
        middle = sum(weights) / 2.0
        yield lambda x, w=weights, m=middle: sum(w[j] * x[j] for j in range(len(w))) >= m


def halves(first: Rule, second: Rule) -> Iterator[Rule]:
    return chain(repeat(first, 2000), repeat(second))


#: What Agrawal's rules take, in order.
ARGUMENTS = "salary", "commission", "age", "elevel", "car", "zipcode", "hvalue", "hyears", "loan"
#: Rules by stream: those of every row, and how many labels are turned round.
RULES: dict[str, tuple[Callable[[], Iterator[Rule]], float]] = {
    "SEA, changes once": (lambda: halves(sea(8.0), sea(9.5)), 0.1),
    "Agrawal, changes once": (lambda: halves(agrawal(0), agrawal(3)), 0.0),
    "Hyperplane, turns": (hyperplanes, 0.04),
}


def best(name: str, rows: list[Any], draws: int = 300) -> float:
    """The ratio for a model that knows the rule."""
    if name == "Bananas":
        return estimated(rows)
    rules, noise = RULES[name]
    chance, whole, found = random.Random(0), [x for x, _ in rows], 0.0
    for (x, _), rule in zip(hidden(rows, 0), rules(), strict=False):
        there = {key: cell for key, cell in x.items() if cell is not None}
        others = chance.choices(whole, k=draws) if len(there) < len(x) else [x]
        if "salary" in x and x["commission"] is not None:  # which there is up to a salary
            fitting = [o for o in others if (o["commission"] > 0) == (x["commission"] > 0)]
            others = fitting or others
        share = sum(rule({**other, **there}) for other in others) / len(others)
        found += noise + (1.0 - 2.0 * noise) * max(share, 1.0 - share)
    return found / len(rows) / (1.0 - noise)


def estimated(rows: list[Any]) -> float:
    """The ratio for nearest neighbours that see both columns, one of them, or none."""
    X, y = np.array([list(x.values()) for x, _ in rows]), np.array([y for _, y in rows])
    folds = StratifiedKFold(10, shuffle=True, random_state=0)

    def right(columns: list[int]) -> float:
        models = map(KNeighborsClassifier, (15, 25, 50, 100, 200, 400))
        scores = (cross_val_score(each, X[:, columns], y, cv=folds).mean() for each in models)
        return float(max(scores))

    whole, none = right([0, 1]), max(y.mean(), 1.0 - y.mean())
    return (0.81 * whole + 0.09 * (right([0]) + right([1])) + 0.01 * none) / whole


def balanced(rows: list[Any], **options: Any) -> float:
    """The balanced accuracy of the classifier."""
    model, told = RiverTraceNormClassifier(**options), []
    for x, y in rows:
        told.append(model.predict_one(x) if model.classes else y)
        model.learn_one(x, y)
    return float(balanced_accuracy_score([y for _, y in rows], told))


def rare(rows: list[Any]) -> list[Any]:
    """The rows of the most frequent label, and every twentieth of the others."""
    labels = [y for _, y in rows]
    most = max(sorted(set(labels)), key=labels.count)  # a set of texts has no fixed order
    others = [k for k, y in enumerate(labels) if y != most][::20]
    kept = {*others, *(k for k, y in enumerate(labels) if y == most)}
    return [row for k, row in enumerate(rows) if k in kept]


def main() -> None:
    streams = {
        name: make(False)[0][:ROWS] for name, make in LABELS.items() if "Shuttle" not in name
    }
    ratios = "river's linear: ratio", "boosting, shuffled: ratio", "best possible: ratio"
    table = [["share of right labels", "whole", "with gaps", "ratio", *ratios]]
    for name, rows in streams.items():
        whole, holed = of_gaps(right, RiverTraceNormClassifier, rows)
        two = len({y for _, y in rows}) <= 2
        other = of_gaps(right, partial(linear, two, rows[0][0]), rows)
        numbers = f"{whole:.3f}", f"{holed:.3f}", f"{holed / whole:.3f}"
        numbers += f"{other[1] / other[0]:.3f}", f"{boosted(rows):.3f}"
        table.append(
            [name, *numbers, f"{best(name, rows):.3f}" if name in (*RULES, "Bananas") else ""]
        )
    print(markdown(table), end="\n\n")
    table = [["mean error", "whole", "with gaps", "ratio"]]
    for name, data in (
        ("TrumpApproval", datasets.TrumpApproval),
        ("ChickWeights", datasets.ChickWeights),
    ):
        rows = [({k: v for k, v in x.items() if isinstance(v, int | float)}, y) for x, y in data()]
        whole, holed = of_gaps(error, RiverTraceNormRegressor, rows)
        table.append([name, f"{whole:.3f}", f"{holed:.3f}", f"{holed / whole:.3f}"])
    print(markdown(table), end="\n\n")
    table = [["balanced accuracy, a rare class", "plain", '`class_weight="balanced"`']]
    for name, rows in streams.items():
        few = rare(rows)
        scores = balanced(few), balanced(few, class_weight="balanced")
        table.append([f"{name}, {len(few):,} rows", *(f"{score:.3f}" for score in scores)])
    print(markdown(table))


if __name__ == "__main__":
    main()
