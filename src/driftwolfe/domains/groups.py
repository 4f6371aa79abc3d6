"""Partitions of the coordinates, as people write them."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.kinds import Indices


def group_labels(groups: Any, name: str) -> Indices:
    """Return the number of each coordinate's group, counted from 0.

    `groups` is a label for each coordinate (numbered in sorted order), or a list of lists of
    indices that together hold each of 0, 1, ..., n - 1 once.

    >>> group_labels(["b", "a", "b"], "groups")
    array([1, 0, 1])
    >>> group_labels([[0, 3], [1, 2]], "groups")
    array([0, 1, 1, 0])
    """
    checks.refuse_masked(groups, name)
    items = groups if isinstance(groups, np.ndarray) else list(groups)
    if len(items) == 0:
        raise ValueError(f"{name} must hold at least one group, got none")
    dimensions = {np.ndim(item) for item in items}
    if dimensions == {0}:
        labels = np.asarray(items)
        if labels.dtype.kind in "fcmM" and (labels != labels).any():  # NaN and NaT
            raise ValueError(f"{name} has labels that are missing (NaN)")
        return np.unique(labels, return_inverse=True)[1]
    if dimensions != {1}:
        raise ValueError(f"{name} must be one label per coordinate, or a list of lists of indices")
    return _labels_from_lists([np.asarray(item) for item in items], name)


def _labels_from_lists(lists: list[Any], name: str) -> Indices:
    sizes = [len(indices) for indices in lists]
    if 0 in sizes:
        raise ValueError(f"{name}[{sizes.index(0)}] is empty; leave it out")
    members = np.concatenate(lists)
    if members.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold whole numbers, got {members.dtype}")
    if not np.array_equal(np.sort(members), np.arange(members.size)):
        raise ValueError(
            f"{name} must hold each of 0, 1, ..., {members.size - 1} exactly once "
            f"(it has {members.size} entries)"
        )
    labels = np.empty(members.size, dtype=np.intp)
    labels[members] = np.repeat(np.arange(len(lists)), sizes)
    return labels
