"""Learners in files: what they were made from, and their state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from driftwolfe import domains
from driftwolfe.domains import Domain
from driftwolfe.ensemble.saved_kinds import ensemble_kinds
from driftwolfe.learners.base import Learner
from driftwolfe.storage import Archive, read_archive, write_archive
from driftwolfe.storage.state import read_state, write_state
from driftwolfe.storage.tree import TreeReader, TreeWriter


def save_learner(learner: Learner, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file."""
    writer = TreeWriter(ensemble_kinds())
    settings = learner_settings(learner, writer)
    write_archive(path, type(learner).__name__, settings, writer.arrays)


def restored(learner: Learner, archive: Archive) -> Learner:
    """Return a learner made as the given one, in the state that an archive holds."""
    writer = TreeWriter(ensemble_kinds())
    made = {**learner_settings(learner, writer), "kind": type(learner).__name__}
    held = {**archive.settings, "kind": archive.settings.get("learner")}
    for name in ("kind", "domain", "arguments"):
        if made[name] != held.get(name):
            raise ValueError(f"it was written by another learner: their {name}s differ")
    copy = learner.clone()
    read_state(
        copy, _section(archive.settings, "state"), TreeReader(ensemble_kinds(), archive.arrays)
    )
    return copy


def load_learner(
    path: str | os.PathLike[str], classes: Mapping[str, type[Learner]], domain: Domain | None = None
) -> Learner:
    """Read a learner of one of these classes; `domain` is needed where the file does not have it."""
    archive = read_archive(path)
    reader = TreeReader(ensemble_kinds(), archive.arrays)
    if archive.kind not in classes:
        raise ValueError(f"{path} holds a {archive.kind!r}, which is no learner")
    arguments = _section(archive.settings, "arguments")
    given = {name: reader.read(value) for name, value in arguments.items()}
    found = domain if domain is not None else _domain(archive, reader, path)
    try:
        learner = classes[archive.kind](found, **given)
    except TypeError as error:
        raise ValueError(f"{path} holds arguments that {archive.kind} does not take") from error
    read_state(learner, _section(archive.settings, "state"), reader)
    return learner


def learner_settings(learner: Learner, writer: TreeWriter) -> dict[str, Any]:
    """Return what a learner was made from, and its state, as JSON."""
    given = {name: value for name, value in learner._arguments.items() if name != "domain"}
    return {
        "domain": _written_domain(learner.domain, writer),
        "arguments": {name: writer.write(value) for name, value in given.items()},
        "state": write_state(learner, writer),
    }


def _written_domain(domain: Domain, writer: TreeWriter) -> Any:
    """A set as its name and arguments; None for one that cannot be written."""
    if type(domain) is not getattr(domains, type(domain).__name__, None):
        return None
    try:
        given = domain.arguments()
    except NotImplementedError:
        return None
    written = {}
    for name, value in given.items():
        if isinstance(value, Domain):
            written[name] = {"set": _written_domain(value, writer)}
        elif isinstance(value, tuple) and value and isinstance(value[0], Domain):
            written[name] = {"sets": [_written_domain(each, writer) for each in value]}
        else:
            written[name] = writer.write(value)
    nested = [each for value in written.values() for each in _nested(value)]
    return None if None in nested else {"kind": type(domain).__name__, "arguments": written}


def _domain(archive: Archive, reader: TreeReader, path: str | os.PathLike[str]) -> Domain:
    written = archive.settings.get("domain")
    if written is None:
        raise ValueError(
            f"the set of {path} holds functions and is not in the file: make it anew, and load with "
            "driftwolfe.load(path, domain=...)"
        )
    return _read_domain(written, reader)


def _read_domain(written: Any, reader: TreeReader, depth: int = 0) -> Domain:
    if not isinstance(written, dict) or set(written) != {"kind", "arguments"} or depth > 8:
        raise ValueError("this archive holds a set that is none")
    kind = getattr(domains, str(written["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, Domain)) or kind is Domain:
        raise ValueError(f"this archive holds a set of an unknown kind, {written['kind']!r}")
    given: dict[str, Any] = {}
    for name, value in _section(written, "arguments").items():
        nested = [_read_domain(each, reader, depth + 1) for each in _nested(value)]
        plural = isinstance(value, dict) and "sets" in value
        given[name] = nested if plural else nested[0] if nested else reader.read(value)
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(
            f"this archive holds arguments that {kind.__name__} does not take"
        ) from error


def _nested(value: Any) -> list[Any]:
    """The sets within an argument of a set."""
    if isinstance(value, dict) and set(value) == {"set"}:
        return [value["set"]]
    if isinstance(value, dict) and set(value) == {"sets"} and isinstance(value["sets"], list):
        return value["sets"]
    return []


def _section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = settings.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"this archive has no {name}")
    return section
