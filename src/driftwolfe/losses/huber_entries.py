"""The Huber loss on some entries of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array


class HuberEntries(EntryLoss):
    r"""Smooth robust matrix completion: :math:`f(X) = \sum_k h(X_{i_k j_k} - M_k)`.

    .. math:: h(e) = e^2/2 \text{ if } |e| \le w, \quad w(|e| - w/2) \text{ else.}

    The gradient has the error, clipped to [-w, w], at :math:`(i_k, j_k)`: the absolute loss (times
    w) made smooth, for methods that need smooth losses.

    Parameters
    ----------
    rows, cols
        Indices :math:`i_k, j_k`, from 0; a pair may come several times.
    targets
        The numbers :math:`M_k`.
    width
        The error w > 0 from which on h is linear, in units of the targets.
    shape
        Shape of the matrices, if the indices are to be checked now.

    Examples
    --------
    >>> import numpy as np
    >>> from driftwolfe.losses import HuberEntries
    >>> loss = HuberEntries([0, 1], [2, 0], [3.0, -0.5], width=1.0)
    >>> loss.value(np.zeros((2, 3)))
    2.625
    >>> loss.gradient(np.zeros((2, 3)))
    array([[ 0. ,  0. , -1. ],
           [ 0.5,  0. ,  0. ]])
    """

    def __init__(
        self, rows: Any, cols: Any, targets: Any, width: float = 1.0, shape: Any = None
    ) -> None:
        super().__init__(rows, cols, targets, shape)
        self.width = checks.positive(width, "width")

    def value_at(self, scores: Array) -> Array:
        """Return the sum of h over the errors."""
        errors = abs(self.errors(scores))
        near = errors.clip(None, self.width)
        # Where |e| <= w this is e^2/2; beyond, w|e| - w^2/2.
        total: Array = (near * (errors - 0.5 * near)).sum(axis=-1)
        return total

    def slope_at(self, scores: Array) -> Array:
        """Return every error, clipped to [-width, width]."""
        clipped: Array = self.errors(scores).clip(-self.width, self.width)
        return clipped

    def lipschitz(self, domain: Ball) -> float:
        """Return the largest norm a gradient can have, on any set."""
        return self.width * float(np.linalg.norm(self.multiplicities()))
