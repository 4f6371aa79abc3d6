"""What the methods for sleeping experts share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array


def kept(size: int, which: Any) -> NDArray[np.bool_]:
    """Return the mask of the experts that stay when `which` (a mask or positions) leave.

    >>> kept(3, [0]), kept(3, [True, False, True])
    (array([False,  True,  True]), array([False,  True, False]))
    """
    stay = np.ones(size, dtype=np.bool_)
    try:
        stay[which] = False
    except IndexError:
        raise ValueError(
            f"remove takes positions below {size} or a mask of that length, got {which!r}"
        ) from None
    return stay


def checked_losses(learner_loss: Any, expert_losses: Any, size: int) -> tuple[float, Array]:
    """Return the loss of the combined decision and those of the experts, all finite."""
    losses = np.ascontiguousarray(checks.finite_array(expert_losses, "expert_losses", (size,)))
    if isinstance(learner_loss, float) and math.isfinite(learner_loss):
        return learner_loss, losses
    return float(checks.finite_array(learner_loss, "learner_loss", ())), losses


def largest(values: Array) -> float:
    """Return the largest absolute value, 0 if there is none."""
    return float(np.abs(values).max(initial=0.0))
