"""The saved state of the classifiers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from driftwolfe.estimators.classifier_experts import (
    BLOCK,
    FIRST_LEVELS,
    FOREVER,
    KINDS,
    LEARNERS,
    LENGTHS,
    LEVEL_BITS,
    LONGEST_REST,
    OTHER_RADII,
    SLACK,
    VIEWS,
    WINDOWS,
    ClassExperts,
    ClassLearner,
    checked_radii,
)
from driftwolfe.estimators.core.ids import distinct_keys, encode_keys
from driftwolfe.estimators.core.rows import (
    FULL_FEATURES,
    LARGEST_SCALE,
    MAP_FIELDS,
    ROUNDING,
    FeatureMap,
    check_map,
    renewal_gap,
)
from driftwolfe.estimators.random_views import FERNS, MOST_INPUTS, TESTS, WAVES, RandomViews
from driftwolfe.points.kinds import Array
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, require, write_archive

#: Options that both classifiers have.
OPTIONS = {
    "radii": Field((str, list, int, float), items=Field((int, float))),
    "learner": Field(str),
    "fit_intercept": Field((bool, int), least=0, most=1),
    "features": Field(str),
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
    "views": Field(int, least=1, most=len(VIEWS)),
    "seed": Field(int, least=0, below=1 << 32),
    "wave_renewal": Field(int, least=0, below=1 << 53),
}
#: Arrays of a learner; there are `full` features with moments, `others` with squares only.
ARRAYS = {
    **MAP_FIELDS,
    "experts.points": Field(_REAL, ("width", "plain classes")),
    "experts.norms": Field(_REAL, (2, "experts"), 0.0),
    "experts.weights": Field(_REAL, ("experts",), 0.0),
}
#: Those of the views of random features.
OTHER_ARRAYS = {
    "experts.noisy": Field(_REAL, ("width", "side classes")),
    "experts.waves": Field(_REAL, ("seen_waves", "side classes")),
    "experts.ferns": Field(_REAL, ("leaves", "side classes")),
    "experts.rests": Field(np.int64, (len(VIEWS),), FOREVER, LONGEST_REST),
    "experts.last_rests": Field(np.int64, (len(VIEWS),), 0, LONGEST_REST),
    "experts.view_weights": Field(_REAL, (len(VIEWS),), 0.0),
    "random.inputs": Field(np.int64, ("waves", MOST_INPUTS), 0, below="width"),
    "random.slopes": Field(_REAL, ("waves", MOST_INPUTS), *_SCALE),
    "random.offsets": Field(_REAL, ("waves",), *_SCALE),
    "random.tests": Field(np.int64, ("ferns", TESTS), 0, below="features"),
    "random.cuts": Field(_REAL, ("ferns", TESTS)),
    "random.counts": Field(_REAL, ("leaves",), 0.0),
    "random.totals": Field(_REAL, (2,), 0.0, LARGEST_SCALE),
}
_WAVES = {"features": "waves", "full": "waves", "others": "none"}
for _name, _field in MAP_FIELDS.items():
    _shape = tuple(_WAVES.get(size, size) for size in _field.shape or ())
    OTHER_ARRAYS[_name.replace("map", "waves")] = replace(_field, shape=_shape)


def state_of(learner: ClassLearner) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the numbers and arrays of a saved state."""
    experts, random = learner.experts, learner.random
    numbers = {
        "radii": experts.radii.tolist(),
        "intercept": learner.map.constant > 0.0,
        "adaptive": experts.adaptive,
        "classes": experts.classes,
        "t": experts.t,
        "renewal": learner.renewal,
        "views": experts.views,
        "seed": learner.seed,
        "wave_renewal": random.renewal,
    }
    owners = {"experts": (experts, ClassExperts.STATE), "map": (learner.map, FeatureMap.STATE)}
    if experts.views > 1:
        owners["experts"] = experts, ClassExperts.STATE + ClassExperts.OTHERS
        owners |= {"random": (random, RandomViews.STATE), "waves": (random.waves, FeatureMap.STATE)}
    arrays = {
        f"{part}.{name}": getattr(owner, name)
        for part, (owner, names) in owners.items()
        for name in names
    }
    rows = {f"experts.{name}": getattr(experts, name)[: experts.width] for name in VIEWS[:2]}
    return numbers, arrays | {name: table for name, table in rows.items() if name in arrays}


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    learner: ClassLearner | None,
    keys: Mapping[str, Iterable[Any]],
) -> None:
    """Write options, learner and named lists of keys to one file."""
    numbers, arrays = (None, {}) if learner is None else state_of(learner)
    radii = np.asarray(options["radii"]).tolist()  # a text stays one
    held = {f"keys.{name}": encode_keys(listed) for name, listed in keys.items()}
    settings = {**options, "radii": radii, "learner_state": numbers}
    write_archive(path, kind, settings, {**arrays, **held})


def read_model(
    path: str | os.PathLike[str], kind: str, options: Mapping[str, Field], keys: tuple[str, ...]
) -> tuple[dict[str, Any], ClassLearner | None, dict[str, list[Any]]]:
    """Return options, learner and keys that `write_model` wrote, if they are of that kind."""
    fields = {**options, "learner_state": Field(dict, optional=True)}
    key_fields = {f"keys.{name}": Field(np.uint8, (None,)) for name in keys}

    def check(archive: Archive) -> None:
        settings, arrays = archive.settings, archive.arrays
        check_fields(fields, settings, kind)
        require(settings["learner"] in LEARNERS, "options")
        require(settings["features"] in KINDS, "options")
        checked_radii(settings["radii"])
        numbers, seen = settings["learner_state"], arrays.get("map.seen")
        if numbers is None or seen is None:
            require(numbers is None, "arrays of a classifier")
            check_fields(key_fields, arrays, kind)
            return
        check_fields(NUMBERS, numbers, kind)
        features, t = seen.nbytes // 8, numbers["t"]
        require(t < numbers["renewal"] <= t + renewal_gap(features, t), "rounds of a classifier")
        levels = FIRST_LEVELS
        while BLOCK << (LEVEL_BITS * (levels - 1)) <= t:  # the next joins once that is played
            levels += 1
        full = features if features <= FULL_FEATURES else 0
        sizes = {"features": features, "full": full, "others": features - full}
        sizes |= {"width": features + 1, "classes": numbers["classes"]}
        radii, views = len(checked_radii(numbers["radii"])), numbers["views"]
        require(views in (1, len(VIEWS)), "views")
        side = len(LENGTHS) * min(radii, OTHER_RADII) + len(WINDOWS)
        sizes |= {"plain": levels * radii, "side": side, "none": 0}
        sizes["experts"] = levels * radii + (views - 1) * side
        drawn = "random.inputs" in arrays and arrays["random.inputs"].shape[0] > 0
        sizes |= {"waves": WAVES if drawn else 0, "ferns": FERNS if drawn else 0}
        sizes["leaves"] = sizes["ferns"] << TESTS
        sizes["seen_waves"] = WAVES + 1 + features + 1 if drawn else 0
        expected = ARRAYS | (OTHER_ARRAYS if views > 1 else {}) | key_fields
        check_fields(expected, arrays, kind, **sizes)

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        settings, arrays = archive.settings, archive.arrays
        held = {name: distinct_keys(arrays.pop(f"keys.{name}")) for name in keys}
        numbers = settings.pop("learner_state")
        return settings, None if numbers is None else _restored(numbers, arrays), held


def _restored(numbers: dict[str, Any], arrays: dict[str, Array]) -> ClassLearner:
    """Return the learner of a state whose parts have been checked one by one, if they fit together."""
    method = "pola" if numbers["adaptive"] else "pold"
    options = numbers["radii"], method, numbers["intercept"], numbers["classes"], 0
    kind = "linear" if numbers["views"] == 1 else "random"
    learner = ClassLearner(*options, kind, numbers["seed"])
    experts, random, learner.renewal = learner.experts, learner.random, numbers["renewal"]
    random.renewal = numbers["wave_renewal"]
    owners = {"map": learner.map, "experts": experts, "random": random, "waves": random.waves}
    for name, array in arrays.items():
        part, _, own = name.partition(".")
        setattr(owners[part], own, array)
    learner.map.full = learner.map.mean.size == learner.map.seen.size
    experts.t, experts.width = numbers["t"], len(experts.points)
    experts.set_steps()
    for each in (learner.map, random.waves):
        check_map(each)
    require(experts.rests[0] == 0, "rests")
    drawn = random.offsets.size > 0
    require(drawn or (experts.rests[2:] == FOREVER).all(), "rests")
    require(learner.map.full or not drawn, "random features")
    # No matrix is larger than experts let it grow.
    require(abs(experts.view_weights.sum() - 1.0) < 1e-6, "weights of views")
    first = 0
    for table, size in zip(experts.tables, experts.sizes, strict=False):
        last = first + size
        require(abs(experts.weights[first:last].sum() - 1.0) < 1e-6, "weights of experts")
        limits = ROUNDING * (1.0 + SLACK) * experts.scales[1][first:last]
        require((experts.norms[0, first:last] <= limits).all(), "norms of experts")
        stacked = table.reshape(len(table), size, experts.classes)
        largest = np.abs(stacked).max(axis=(0, 2), initial=0.0)
        require((largest <= limits).all(), "experts")  # so that squares have a range
        squares = np.einsum("jic,jic->i", stacked, stacked)
        require((squares <= limits**2).all(), "experts")
        first = last
    return learner
