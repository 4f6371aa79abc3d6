"""Models of others with river's API: the last label, MOA's forests through CapyMOA, and discounted VAW."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import compose, ensemble, forest, neighbors, preprocessing, tree

from benchmarks.measure import Skipped

Row = dict[str, Any]
#: Trees, or other models, in each ensemble.
MODELS = 10


class LastValue:
    """Predicts that the last label, or number, comes again."""

    last: Any = None

    def predict_one(self, _: Row) -> Any:
        return self.last

    def learn_one(self, _: Row, y: Any) -> None:
        self.last = y


def encoded(make: Callable[..., Any], strings: bool, scaled: bool = False, **options: Any) -> Any:
    """A model that gets a column of 0 and 1 for each string, and standardised numbers if `scaled`."""
    if strings:
        numbers = compose.SelectType(float)
        numbers = numbers | preprocessing.StandardScaler() if scaled else numbers
        words = compose.SelectType(str) | preprocessing.OneHotEncoder()
        return (numbers + words) | make(**options)
    return preprocessing.StandardScaler() | make(**options) if scaled else make(**options)


def bagging(seed: int) -> Any:
    trees = tree.HoeffdingTreeClassifier()
    return ensemble.LeveragingBaggingClassifier(trees, n_models=MODELS, seed=seed)


def forests(strings: bool) -> dict[str, list[Any]]:
    """River's ensembles and nearest neighbours; trees read strings, but for AMF's."""
    amf = partial(encoded, forest.AMFClassifier, strings, n_estimators=MODELS)
    return {
        "ARF": [partial(forest.ARFClassifier, n_models=MODELS, seed=0)],
        "AMF": [partial(amf, split_pure=pure, seed=0) for pure in (False, True)],
        "SRP": [partial(ensemble.SRPClassifier, n_models=MODELS, seed=0)],
        "bagging": [partial(bagging, seed=0)],
        "kNN": [partial(encoded, neighbors.KNNClassifier, strings, True)],
    }


class Moa:
    """A classifier of MOA's, through CapyMOA; it is told all labels, and all words of each column, before."""

    def __init__(self, name: str, rows: Sequence[tuple[Row, Any]], seed: int) -> None:
        try:
            if not shutil.which("java"):
                raise ImportError("no Java")
            from capymoa import classifier
            from capymoa.core import LabeledInstance
            from capymoa.stream import Schema
        except ImportError as error:
            raise Skipped(f"MOA's models need capymoa and Java: {error}") from None
        self.names = list(rows[0][0])
        self.labels = sorted({y for _, y in rows})
        values = {name: [x[name] for x, _ in rows] for name in self.names}
        words = {n: sorted(set(v)) for n, v in values.items() if isinstance(v[0], str)}
        self.places = {n: {word: k for k, word in enumerate(v)} for n, v in words.items()}
        target = "the label"
        kinds = words | {target: list(map(str, self.labels))}
        self.schema = Schema.from_custom([*map(str, self.names), target], target, kinds)
        self.row = LabeledInstance.from_array
        self.model = getattr(classifier, name)(self.schema, random_seed=seed, ensemble_size=MODELS)

    def _instance(self, x: Row, label: int = 0) -> Any:
        values = (self.places[n][x[n]] if n in self.places else x[n] for n in self.names)
        return self.row(self.schema, np.fromiter(values, np.float64, len(x)), label)

    def predict_one(self, x: Row) -> Any:
        found = self.model.predict(self._instance(x))
        return None if found is None else self.labels[found]

    def learn_one(self, x: Row, y: Any) -> None:
        self.model.train(self._instance(x, self.labels.index(y)))


def moa(rows: Sequence[tuple[Row, Any]]) -> dict[str, list[Any]]:
    names = {"MOA ARF": "AdaptiveRandomForestClassifier", "MOA SRP": "StreamingRandomPatches"}
    return {short: [partial(Moa, name, rows, seed=1)] for short, name in names.items()}


class DiscountedVaw:
    """Forecasters of Vovk, Azoury and Warmuth that forget, each at its own rate, and their combination.

    Jacobsen and Cutkosky (2024), Online linear regression in dynamic environments via discounting, ICML: their
    forecaster, with its hint the number 0 or the last target, and their grid of discounts, in powers of two from
    2 d / (1 + 2 d) to d T / (1 + d T), and 0. As there, predictions are clipped to the range of targets seen and
    weighed by their squared errors, with a fixed share; `only` takes one of them instead, to choose in hindsight.
    What is ours: features are standardised by the rows before and have a constant, the share is 1 / t, and 1e-9
    of the mean of its diagonal is added to each matrix, as discounts forget the regulariser.
    """

    def __init__(self, rounds: int, follow: bool, only: int | None = None) -> None:
        self.rounds, self.follow, self.only = rounds, follow, only
        self.scaler = preprocessing.StandardScaler()
        self.names: list[str] = []
        self.hint = self.last = self.reach = 0.0
        self.seen = 0

    @staticmethod
    def size_of_grid(rounds: int) -> int:
        """How many discounts there are."""
        return math.ceil(math.log2(max(rounds, 2) / 2.0)) + 2

    def _start(self, x: Row) -> None:
        self.names, size = list(x), len(x) + 1
        powers = 2.0 * size * 2.0 ** np.arange(self.size_of_grid(self.rounds) - 1)
        speeds = np.minimum(powers, size * max(self.rounds, 2))
        discounts = np.concatenate([[0.0], speeds / (1.0 + speeds)])
        self.discounts = discounts if self.only is None else discounts[[self.only]]
        self.matrices = np.tile(np.eye(size), (self.discounts.size, 1, 1))
        self.sums = np.zeros((self.discounts.size, size))
        self.weights = np.full(self.discounts.size, 1.0 / self.discounts.size)

    def predictions(self, x: Row) -> np.ndarray:
        """The predictions of all discounts; that of discount 0 is the hint."""
        if not self.names:
            self._start(x)
        scaled = self.scaler.transform_one(x)
        row = self.row = np.array([1.0, *(scaled.get(name, 0.0) for name in self.names)])
        self.hint = self.last if self.follow else 0.0
        found = np.full(self.discounts.size, self.hint)
        kept = self.discounts > 0.0
        now = self.discounts[kept, None, None] * self.matrices[kept] + np.outer(row, row)
        floor = 1e-9 * np.trace(now, axis1=1, axis2=2) / row.size
        now += floor[:, None, None] * np.eye(row.size)
        asked = self.discounts[kept, None] * self.sums[kept] + self.hint * row
        found[kept] = np.linalg.solve(now, asked[:, :, None])[:, :, 0] @ row
        return found

    def predict_one(self, x: Row) -> float:
        self.each = np.clip(self.predictions(x), self.hint - self.reach, self.hint + self.reach)
        return float(self.weights @ self.each)

    def learn_one(self, x: Row, y: float) -> None:
        self.seen += 1
        if self.reach:  # half the square is exp-concave with this rate where both are within reach
            near = min(max(y, self.hint - self.reach), self.hint + self.reach)
            losses = 0.5 * (self.each - near) ** 2 / (2.0 * self.reach) ** 2
            weights = self.weights * np.exp(losses.min() - losses)
            share = 1.0 / (self.seen + 1)
            self.weights = (1.0 - share) * weights / weights.sum() + share / weights.size
        self.reach = max(self.reach, abs(y - self.hint))
        self.matrices *= self.discounts[:, None, None]
        self.matrices += np.outer(self.row, self.row)
        self.sums = self.discounts[:, None] * self.sums + y * self.row
        self.last = y
        self.scaler.learn_one(x)


def vaw(rounds: int) -> list[Any]:
    """The combination, and each discount alone, with either hint."""
    alone = range(1, DiscountedVaw.size_of_grid(rounds))
    return [
        partial(DiscountedVaw, rounds, hint, k) for hint in (False, True) for k in (None, *alone)
    ]
