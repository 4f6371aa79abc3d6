"""How soon errors are back where they were before a change."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

#: Ratings before the change whose mean error is the level, and ratings whose mean must be back at it.
BEFORE, WINDOW = 5_000, 500
#: How much above the level is back.
ALLOWED = 1.1


def recovery(errors: np.ndarray, change: int, end: int | None = None) -> int | None:
    """Ratings after a change until the mean error of the last 500, all after it, is near its level.

    The level is the mean error of the 5,000 ratings before; near is within 10 %. None: not before
    `end`, where the next change is.
    """
    level = errors[max(change - BEFORE, 0) : change].mean()
    sums = np.concatenate([[0.0], np.cumsum(errors[change:end])])
    back = np.flatnonzero(sums[WINDOW:] - sums[:-WINDOW] <= ALLOWED * level * WINDOW)
    return int(back[0]) + WINDOW if back.size else None


def recoveries(errors: np.ndarray, changes: tuple[int, ...]) -> list[int | None]:
    """The same for several changes, each until the next."""
    return [recovery(errors, change, end) for change, end in pairwise((*changes, None))]
