"""The absolute loss on some entries of a matrix."""

from __future__ import annotations

import numpy as np

from driftwolfe.losses.base import Ball
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points.devices import namespace
from driftwolfe.points.kinds import Array


class AbsoluteEntries(EntryLoss):
    r"""Robust matrix completion: :math:`f(X) = \sum_k |X_{i_k j_k} - M_k|`.

    The subgradient has :math:`\mathrm{sign}(X_{i_k j_k} - M_k)` at :math:`(i_k, j_k)`, with
    sign(0) = 0. Its norm is at most the square root of the sum, over distinct pairs, of the squared
    number of times each comes: :math:`\sqrt m` for m distinct pairs.

    Parameters
    ----------
    rows, cols
        Indices :math:`i_k, j_k`, from 0; a pair may come several times.
    targets
        The numbers :math:`M_k`.
    shape
        Shape of the matrices, if the indices are to be checked now.

    Examples
    --------
    >>> import numpy as np
    >>> from driftwolfe.losses import AbsoluteEntries
    >>> loss = AbsoluteEntries([0, 1], [2, 0], [3.0, -1.0])
    >>> value, subgradient = loss.value_and_gradient(np.zeros((2, 3)))
    >>> value
    4.0
    >>> subgradient
    array([[ 0.,  0., -1.],
           [ 1.,  0.,  0.]])

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, section "Experiments".
    """

    def value_at(self, scores: Array) -> Array:
        """Return the sum of absolute errors."""
        total: Array = abs(self.errors(scores)).sum(axis=-1)
        return total

    def slope_at(self, scores: Array) -> Array:
        """Return the sign of every error."""
        errors = self.errors(scores)
        return namespace(errors).sign(errors)

    def lipschitz(self, domain: Ball) -> float:
        """Return the largest norm a subgradient can have, on any set."""
        return float(np.linalg.norm(self.multiplicities()))
