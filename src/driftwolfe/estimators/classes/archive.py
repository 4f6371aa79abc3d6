"""A `ClassLearner`, its settings and its keys in one archive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from driftwolfe.estimators.classes.learner import ClassLearner
from driftwolfe.estimators.classes.options import LEARNERS, checked_radii
from driftwolfe.estimators.classes.saved_state import check_shapes, check_state
from driftwolfe.storage import Archive, read_archive, write_archive
from driftwolfe.storage.archive import Header, enough_memory
from driftwolfe.storage.keys import decode_keys, encode_keys
from driftwolfe.storage.state import require


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
