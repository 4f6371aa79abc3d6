"""A `ClassLearner`, its settings and its keys in one archive."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from driftwolfe.estimators.classes.learner import ClassLearner
from driftwolfe.storage import read_archive, write_archive
from driftwolfe.storage.keys import decode_keys, encode_keys


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
    archive = read_archive(path)
    if archive.kind != kind:
        raise ValueError(f"{path} holds a {archive.kind}, not a {kind}")
    settings, arrays, keys = dict(archive.settings), {}, {}
    numbers = settings.pop("learner_state")
    for name, array in archive.arrays.items():
        if name.startswith("keys."):
            keys[name.removeprefix("keys.")] = decode_keys(array)
        else:
            arrays[name] = array.copy()
    learner = None if numbers is None else ClassLearner.restored(numbers, arrays)
    return SavedLearner(settings, learner, keys)
