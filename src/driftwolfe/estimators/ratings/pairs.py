"""Pairs of ids in the forms people have them: lists of pairs, arrays, data frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.points import checks
from driftwolfe.storage.keys import check_keys, plain_key


def columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the users and the items of pairs, or say what is wrong with them.

    >>> columns([("ann", 7), ("bob", 8)])
    (['ann', 'bob'], [7, 8])
    """
    if checks.has_masked_entries(pairs, depth=1):
        raise ValueError("pairs has masked entries; fill them in (with .filled) or leave them out")
    users, items = _split(pairs)
    return _checked(users, "user"), _checked(items, "item")


def _checked(ids: list[Any], name: str) -> list[Any]:
    """Return ids that can be looked up: NumPy's dates would not be found again, plain ones are."""
    check_keys(ids, f"the id of one {name}")
    try:
        distinct = set(ids)
    except TypeError as error:
        raise TypeError(f"{name} ids must be hashable: {error}") from None
    if any(isinstance(key, np.generic) for key in distinct):
        return [plain_key(key) for key in ids]
    return ids


def _split(pairs: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(pairs, "iloc"):  # a data frame: columns of different types stay what they are
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must have two columns, user and item, got shape {pairs.shape}")
        return pairs.iloc[:, 0].tolist(), pairs.iloc[:, 1].tolist()
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (n, 2), got {pairs.shape}")
        return pairs[:, 0].tolist(), pairs[:, 1].tolist()
    try:
        rows = list(pairs)
        if all(len(row) == 2 and not isinstance(row, str | bytes) for row in rows):
            return [row[0] for row in rows], [row[1] for row in rows]
    except (TypeError, KeyError):
        pass
    raise ValueError(
        "pairs must be a list of (user, item) pairs, an array or a frame of two columns"
    )
