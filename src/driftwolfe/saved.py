"""`load`: reads any saved learner or estimator from its file."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from driftwolfe import estimators, learners
from driftwolfe.domains import Domain
from driftwolfe.learners.archive import OWN, held_class, load_learner
from driftwolfe.learners.base import Learner
from driftwolfe.storage import Archive, Header, enough_memory, read_header


def load(
    path: str | os.PathLike[str], domain: Domain | None = None, device: str | None = None
) -> Any:
    """Read a saved learner or estimator; this is `driftwolfe.load`."""
    kind = read_header(path).kind
    if kind in estimators.__all__ and device not in (None, "cpu"):
        raise ValueError(
            f"{path} holds a {kind}, which is for the cpu only; load it without device"
        )
    with enough_memory(path):
        if kind in estimators.__all__:
            return getattr(estimators, kind).load(path)
        return load_learner(path, partial(_class_of, path), domain, device)


def _class_of(path: str | os.PathLike[str], header: Header | Archive) -> type[Learner]:
    """The class that a file names, if the library has it; nothing else is imported."""
    name = held_class(header)
    if header.kind == OWN:
        raise ValueError(
            f"{path} holds a {name}, a learner of your own: load it with its class, {name}.load(path)"
        )
    cls = getattr(learners, name, None) if name in learners.__all__ else None
    if not (isinstance(cls, type) and issubclass(cls, Learner)):
        raise ValueError(f"{path} holds a {name!r}, which is no learner to load")
    return cls
