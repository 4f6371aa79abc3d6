"""`ClassLearner`: what both faces of the classifier learn with."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.estimators.classes.experts import BLOCK, ClassExperts
from driftwolfe.estimators.classes.feature_map import FULL_FEATURES, FeatureMap
from driftwolfe.estimators.classes.labelled import Labelled
from driftwolfe.estimators.classes.rows import Rows
from driftwolfe.points.kinds import Array

#: Rows that are mapped together where nothing is learned, which bounds the memory for it.
CHUNK = 4096


class ClassLearner:
    """A feature map, and on top of it the experts; classes and features are numbers.

    Rows are learned one by one: how they are cut into calls makes no difference, to the last bit.

    The weight of a row multiplies its loss, and its part in the statistics of features.

    Parameters
    ----------
    radii, intercept, adaptive
        As for `ClassExperts` and `FeatureMap`.
    classes, features
        How many there are; `grow` adds more.
    """

    def __init__(
        self,
        radii: tuple[float, ...],
        intercept: bool,
        adaptive: bool,
        classes: int,
        features: int,
    ) -> None:
        self.map = FeatureMap(features, intercept)
        self.experts = ClassExperts(radii, classes, features + 1, adaptive)
        self.renewal = 1  # the round after which the map is worked out anew

    @property
    def t(self) -> int:
        """Rows learned, copies counted."""
        return self.experts.t

    def learn(self, given: Labelled) -> None:
        """Learn rows."""
        done = 0
        while done < given.number:
            upto = done + min(self.experts.rows_to_end, self.renewal - self.t)
            self._learn_stretch(given.stretch(done, upto))
            done = upto

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row; nothing changes."""
        if rows.number <= CHUNK:
            return self.experts.probabilities(self.map.rows(rows))
        parts = [rows.stretch(k, k + CHUNK) for k in range(0, rows.number, CHUNK)]
        return np.concatenate([self.probabilities(part) for part in parts])

    def coefficients(self) -> tuple[Array, Array]:
        """Return the mean of the experts in units of the features: weights, one row per class, and intercepts."""
        weights, intercepts = self.map.to_features(self.experts.mean())
        return np.ascontiguousarray(weights.T), intercepts

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers."""
        if self.map.full and features > FULL_FEATURES:
            self._change_map()
        if features > self.map.features:
            self.map.grow(features)
        self.experts.grow(classes, features + 1)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Numbers and arrays that `restored` makes the same learner of."""
        experts = self.experts
        numbers = {
            "radii": experts.radii.tolist(),
            "intercept": self.map.constant > 0.0,
            "adaptive": experts.adaptive,
            "classes": experts.classes,
            "t": experts.t,
            "renewal": self.renewal,
        }
        arrays = {f"map.{name}": array for name, array in self.map.state().items()}
        return numbers, arrays | {f"experts.{k}": array for k, array in experts.state().items()}

    @classmethod
    def restored(cls, numbers: dict[str, Any], arrays: dict[str, Array]) -> ClassLearner:
        """Return the learner of that state."""
        parts: dict[str, dict[str, Array]] = {"map": {}, "experts": {}}
        for name, array in arrays.items():
            part, _, own = name.partition(".")
            parts[part][own] = array
        learner = cls.__new__(cls)
        learner.map = FeatureMap.restored(numbers["intercept"], parts["map"])
        learner.experts = ClassExperts.restored(
            tuple(numbers["radii"]),
            numbers["classes"],
            numbers["adaptive"],
            numbers["t"],
            parts["experts"],
        )
        learner.renewal = numbers["renewal"]
        return learner

    def _learn_stretch(self, given: Labelled) -> None:
        """Learn rows up to the next one after which something else happens."""
        rows, labels, parts = given
        self.experts.learn(Labelled(self.map.rows(rows, parts), labels, parts))
        round_ends = self.experts.rows_to_end == BLOCK
        if self.t >= self.renewal or (round_ends and self.map.is_behind):
            self.map.renew()
            self.renewal = self.t + self.map.gap(self.t)

    def _change_map(self) -> None:
        """Go over to the map for many features, with the same classifiers in terms of features."""
        points = self.experts.points[: self.experts.width]
        weights, intercepts = self.map.to_features(points)
        self.map = self.map.diagonal()
        if self.t:
            self.experts.replace(self.map.from_features(weights, intercepts))
