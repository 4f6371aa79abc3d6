"""Saved states of `TraceNormClassifier`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.classifier_experts import (
    BLOCK,
    FIRST_LEVELS,
    FULL_FEATURES,
    LEARNERS,
    LEVEL_BITS,
    RENEWAL,
    SLACK,
    SMALLEST_WEIGHT,
    ClassLearner,
    checked_radii,
)
from driftwolfe.points.kinds import Array
from driftwolfe.storage import (
    Archive,
    Described,
    Header,
    decode_keys,
    encode_keys,
    enough_memory,
    read_archive,
    require,
    write_archive,
)

NUMBERS = {"radii", "intercept", "adaptive", "classes", "t", "renewal"}
#: Sums of squares of features and of their weights are smaller, and either 0 or larger.
LARGEST_SQUARE, SMALLEST_SQUARE = 1e250, 1e-260
#: Features and their inverse scales are smaller.
LARGEST_SCALE = 1e150
#: For what holds exactly but for rounding.
ROUNDING = 1.0 + 1e-6


def check_shapes(numbers: Any, described: Mapping[str, Described]) -> None:
    """Raise ValueError unless arrays of these types and shapes make a learner; none is read yet."""
    require(isinstance(numbers, dict) and set(numbers) == NUMBERS, "numbers of a classifier")
    _check_numbers(numbers)
    require(set(described) >= {"map.seen", "experts.weights"}, "arrays of a classifier")
    features, experts = (
        math.prod(described[name].shape) for name in ("map.seen", "experts.weights")
    )
    require(experts == _number_of_experts(numbers), "experts of a classifier")
    shapes = _shapes(features, experts, numbers["classes"])
    expected = {name: (np.dtype(np.float64), shape) for name, shape in shapes.items()}
    require(expected == described, "arrays of a classifier")


def check_state(numbers: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Raise ValueError unless numbers and arrays make a learner: the loops trust all of it.

    Shapes are known to fit.
    """
    require(all(np.isfinite(array).all() for array in arrays.values()), "arrays of a classifier")
    features = arrays["map.seen"].size
    gap = max(1, features // 16, int(RENEWAL * numbers["t"]))
    require(numbers["t"] < numbers["renewal"] <= numbers["t"] + gap, "rounds of a classifier")
    _check_map({name[4:]: each for name, each in arrays.items() if name.startswith("map.")})
    _check_experts(numbers, arrays)


def _check_numbers(numbers: Mapping[str, Any]) -> None:
    answers = all(type(numbers[name]) is bool for name in ("intercept", "adaptive"))
    counts = [numbers[name] for name in ("classes", "t", "renewal")]
    whole = all(type(count) is int and 0 <= count < 1 << 53 for count in counts)
    require(answers and whole and counts[0] >= 1, "numbers of a classifier")
    radii = numbers["radii"]
    require(isinstance(radii, list) and all(type(each) is float for each in radii), "radii")
    checked_radii(radii)


def _number_of_experts(numbers: Mapping[str, Any]) -> int:
    """A level joins once its predecessor's interval has been played."""
    levels = FIRST_LEVELS
    while BLOCK << (LEVEL_BITS * (levels - 1)) <= numbers["t"]:
        levels += 1
    return levels * len(numbers["radii"])


def _shapes(features: int, experts: int, classes: int) -> dict[str, tuple[int, ...]]:
    full = features if features <= FULL_FEATURES else 0
    return {
        "map.totals": (2,),
        "map.seen": (features,),
        "map.mean": (full,),
        "map.moments": (full, full),
        "map.squares": (features - full,),
        "map.centre": (full,),
        "map.table": (full, full),
        "experts.points": (features + 1, experts * classes),
        "experts.norms": (2, experts),
        "experts.weights": (experts,),
    }


def _check_map(own: Mapping[str, Array]) -> None:
    """Sums of squares are such, and no scale can leave the range of numbers."""
    squares = np.concatenate((own["moments"].diagonal(), own["squares"]))
    in_range = (squares == 0.0) | ((squares >= SMALLEST_SQUARE) & (squares <= LARGEST_SQUARE))
    require(in_range.all(), "squares of features")
    # Cauchy and Schwarz: correlations are at most 1.
    roots = np.sqrt(own["moments"].diagonal())
    lower = np.abs(np.tril(own["moments"], -1))
    require((lower <= ROUNDING * roots * roots[:, None]).all(), "moments of features")
    for name in ("mean", "centre", "table"):
        require((np.abs(own[name]) <= LARGEST_SCALE).all(), "scales of features")
    weight, lengths = own["totals"]
    require(0.0 <= weight <= LARGEST_SCALE and 0.0 <= lengths <= LARGEST_SCALE, "totals")
    require(weight > 0.0 or (lengths == 0.0 and not squares.any()), "totals")
    seen = own["seen"]
    require((seen >= 0.0).all() and (seen <= ROUNDING * weight).all(), "totals")
    require((seen[squares > 0.0] >= SMALLEST_WEIGHT / 2).all(), "totals")


def _check_experts(numbers: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Weights of sum 1, and matrices no larger than experts may let theirs grow."""
    weights, norms, points = (arrays[f"experts.{name}"] for name in ("weights", "norms", "points"))
    require((weights >= 0.0).all() and abs(weights.sum() - 1.0) < 1e-6, "weights of experts")
    limits = ROUNDING * (1.0 + SLACK) * np.resize(np.array(numbers["radii"]), weights.size)
    require((norms >= 0.0).all() and (norms[0] <= limits).all(), "norms of experts")
    stacked = points.reshape(len(points), weights.size, -1)
    largest = np.maximum(stacked.max(axis=(0, 2)), -stacked.min(axis=(0, 2)))
    require((largest <= limits).all(), "experts")  # so that squares have a range
    squares = np.einsum("jic,jic->i", stacked, stacked)
    require((squares <= limits**2).all(), "experts")


class SavedLearner(NamedTuple):
    """What an archive of a classifier holds."""

    settings: dict[str, Any]
    learner: ClassLearner | None
    keys: dict[str, list[Any]]


def write_learner(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    learner: ClassLearner | None,
    keys: Mapping[str, Iterable[Any]],
) -> None:
    """Write settings, learner and named lists of keys to one file."""
    numbers, arrays = (None, {}) if learner is None else learner.state()
    held = {f"keys.{name}": encode_keys(listed) for name, listed in keys.items()}
    write_archive(path, kind, {**settings, "learner_state": numbers}, {**arrays, **held})


def read_learner(path: str | os.PathLike[str], kind: str) -> SavedLearner:
    """Read what `write_learner` wrote, if it is of that kind."""

    def check(header: Header) -> None:
        if header.kind != kind:
            raise ValueError(f"{path} holds a {header.kind[:40]}, not a {kind}")
        described = {n: each for n, each in header.described.items() if not n.startswith("keys.")}
        if header.settings.get("learner_state") is not None:
            check_shapes(header.settings["learner_state"], described)
        else:
            require(not described, "arrays of a classifier")

    with enough_memory(path):
        return _from_archive(read_archive(path, check))


def _from_archive(archive: Archive) -> SavedLearner:
    settings, arrays, keys = dict(archive.settings), {}, {}
    numbers = settings.pop("learner_state", None)
    for name, array in archive.arrays.items():
        if name.startswith("keys."):
            keys[name.removeprefix("keys.")] = distinct_keys(array)
        else:
            arrays[name] = array
    if numbers is None:
        return SavedLearner(settings, None, keys)
    check_state(numbers, arrays)
    return SavedLearner(settings, ClassLearner.restored(numbers, arrays), keys)


def distinct_keys(encoded: NDArray[Any]) -> list[Any]:
    """Return the keys, if there is none twice."""
    keys = decode_keys(encoded)
    require(len(set(keys)) == len(keys) and all(key == key for key in keys), "keys")
    return keys


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are options that both faces of the classifier have."""
    radii = options.get("radii")
    numbers = radii if isinstance(radii, list) else [radii]
    plain = radii == "auto" or all(type(each) in (int, float) for each in numbers)
    require(plain and options.get("fit_intercept") in (True, False), "options")
    require(options.get("learner") in LEARNERS, "options")
    checked_radii(radii)
