"""What a file says of a `ClassLearner`, looked at before anything is made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftwolfe.estimators.classes.experts import BLOCK, FIRST_LEVELS, LEVEL_BITS, SLACK
from driftwolfe.estimators.classes.feature_map import FULL_FEATURES, RENEWAL
from driftwolfe.estimators.classes.labelled import SMALLEST_WEIGHT
from driftwolfe.estimators.classes.options import checked_radii
from driftwolfe.points.kinds import Array
from driftwolfe.storage.archive import Described
from driftwolfe.storage.state import require

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
