"""`load`: whatever was saved, from its file."""

from __future__ import annotations

import os
from typing import Any

from driftwolfe import estimators, learners
from driftwolfe.domains import Domain
from driftwolfe.learners.archive import load_learner
from driftwolfe.learners.base import Learner
from driftwolfe.storage import enough_memory, read_header


def load(
    path: str | os.PathLike[str], domain: Domain | None = None, device: str | None = None
) -> Any:
    """Return what was saved to a file; see `driftwolfe.load`, which is this."""
    kind = read_header(path).kind
    if kind in estimators.__all__ and device not in (None, "cpu"):
        raise ValueError(
            f"{path} holds a {kind}, which is for the cpu only; load it without device"
        )
    with enough_memory(path):
        if kind in estimators.__all__:
            return getattr(estimators, kind).load(path)
        return load_learner(path, _learners(), domain, device)


def _learners() -> dict[str, type[Learner]]:
    classes = (getattr(learners, name) for name in learners.__all__)
    return {
        each.__name__: each
        for each in classes
        if isinstance(each, type) and issubclass(each, Learner)
    }
