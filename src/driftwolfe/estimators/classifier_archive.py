"""Saved states of the classifiers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from driftwolfe.estimators.classifier_experts import (
    BLOCK,
    FIRST_LEVELS,
    LEARNERS,
    LEVEL_BITS,
    SLACK,
    ClassExperts,
    ClassLearner,
    checked_radii,
)
from driftwolfe.estimators.classifier_features import (
    FULL_FEATURES,
    SMALLEST_WEIGHT,
    FeatureMap,
    renewal_gap,
)
from driftwolfe.estimators.ids import distinct_keys, encode_keys
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, require, write_archive

#: Sums of squares of features and of their weights are smaller, and either 0 or larger.
LARGEST_SQUARE, SMALLEST_SQUARE = 1e250, 1e-260
#: Features and their inverse scales are smaller.
LARGEST_SCALE = 1e150
#: For what holds exactly but for rounding.
ROUNDING = 1.0 + 1e-6

#: Options that both classifiers have.
OPTIONS = {
    "radii": Field((str, list, int, float), items=Field((int, float))),
    "learner": Field(str),
    "fit_intercept": Field((bool, int), least=0, most=1),
}
_REAL, _SCALE = np.float64, (-LARGEST_SCALE, LARGEST_SCALE)
_COUNT = Field(int, least=0, below=1 << 53)
NUMBERS = {
    "radii": Field(list, items=Field(float)),
    "intercept": Field(bool),
    "adaptive": Field(bool),
    "classes": Field(int, least=1, below=1 << 53),
    "t": _COUNT,
    "renewal": _COUNT,
}
#: Arrays of a learner; there are `full` features with moments, `others` with squares only.
ARRAYS = {
    "map.totals": Field(_REAL, (2,), 0.0, LARGEST_SCALE),
    "map.seen": Field(_REAL, ("features",), 0.0),
    "map.mean": Field(_REAL, ("full",), *_SCALE),
    "map.moments": Field(_REAL, ("full", "full")),
    "map.squares": Field(_REAL, ("others",)),
    "map.centre": Field(_REAL, ("full",), *_SCALE),
    "map.table": Field(_REAL, ("full", "full"), *_SCALE),
    "experts.points": Field(_REAL, ("width", "experts classes")),
    "experts.norms": Field(_REAL, (2, "experts"), 0.0),
    "experts.weights": Field(_REAL, ("experts",), 0.0),
}


def write_learner(
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    learner: ClassLearner | None,
    keys: Mapping[str, Iterable[Any]],
) -> None:
    """Write options, learner and named lists of keys to one file."""
    numbers, arrays = (None, {}) if learner is None else learner.state()
    held = {f"keys.{name}": encode_keys(listed) for name, listed in keys.items()}
    write_archive(path, kind, {**options, "learner_state": numbers}, {**arrays, **held})


def read_learner(
    path: str | os.PathLike[str], kind: str, options: Mapping[str, Field], keys: tuple[str, ...]
) -> tuple[dict[str, Any], ClassLearner | None, dict[str, list[Any]]]:
    """Return options, learner and keys that `write_learner` wrote, if they are of that kind."""
    fields = {**options, "learner_state": Field(dict, optional=True)}
    key_fields = {f"keys.{name}": Field(np.uint8, (None,)) for name in keys}

    def check(archive: Archive) -> None:
        settings, arrays = archive.settings, archive.arrays
        check_fields(fields, settings, kind)
        require(settings["learner"] in LEARNERS, "options")
        checked_radii(settings["radii"])
        numbers, seen = settings["learner_state"], arrays.get("map.seen")
        if numbers is None or seen is None:
            require(numbers is None, "arrays of a classifier")
            check_fields(key_fields, arrays, kind)
            return
        check_fields(NUMBERS, numbers, kind)
        features, t = seen.nbytes // 8, numbers["t"]
        require(t < numbers["renewal"] <= t + renewal_gap(features, t), "rounds of a classifier")
        check_fields(ARRAYS | key_fields, arrays, kind, **_sizes(numbers, features))

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        settings, arrays = archive.settings, archive.arrays
        held = {name: distinct_keys(arrays.pop(f"keys.{name}")) for name in keys}
        numbers, learner = settings.pop("learner_state"), None
        if numbers is not None:
            learner = ClassLearner.restored(numbers, arrays)
            _check_map(learner.map)
            _check_experts(learner.experts)
        return settings, learner, held


def _sizes(numbers: Mapping[str, Any], features: int) -> dict[str, int]:
    """Named sizes of a learner; a level joins once its predecessor's interval has been played."""
    radii = checked_radii(numbers["radii"])
    levels = FIRST_LEVELS
    while BLOCK << (LEVEL_BITS * (levels - 1)) <= numbers["t"]:
        levels += 1
    full = features if features <= FULL_FEATURES else 0
    return {
        "features": features,
        "full": full,
        "others": features - full,
        "width": features + 1,
        "experts": levels * len(radii),
        "classes": numbers["classes"],
    }


def _check_map(features: FeatureMap) -> None:
    """Sums of squares are such, and no scale can leave the range of numbers."""
    moments, seen, (weight, lengths) = features.moments, features.seen, features.totals
    squares = np.concatenate((moments.diagonal(), features.squares))
    in_range = (squares == 0.0) | ((squares >= SMALLEST_SQUARE) & (squares <= LARGEST_SQUARE))
    require(in_range.all(), "squares of features")
    # Cauchy and Schwarz: correlations are at most 1.
    roots = np.sqrt(moments.diagonal())
    lower = np.abs(np.tril(moments, -1))
    require((lower <= ROUNDING * roots * roots[:, None]).all(), "moments of features")
    require(weight > 0.0 or (lengths == 0.0 and not squares.any()), "totals")
    require((seen <= ROUNDING * weight).all(), "totals")
    require((seen[squares > 0.0] >= SMALLEST_WEIGHT / 2).all(), "totals")


def _check_experts(experts: ClassExperts) -> None:
    """Weights of sum 1, and matrices no larger than experts may let theirs grow."""
    points, weights = experts.points, experts.weights
    require(abs(weights.sum() - 1.0) < 1e-6, "weights of experts")
    limits = ROUNDING * (1.0 + SLACK) * np.resize(experts.radii, weights.size)
    require((experts.norms[0] <= limits).all(), "norms of experts")
    stacked = points.reshape(len(points), weights.size, -1)
    largest = np.maximum(stacked.max(axis=(0, 2)), -stacked.min(axis=(0, 2)))
    require((largest <= limits).all(), "experts")  # so that squares have a range
    squares = np.einsum("jic,jic->i", stacked, stacked)
    require((squares <= limits**2).all(), "experts")
