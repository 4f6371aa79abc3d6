"""The hinge loss."""

from __future__ import annotations

import numpy as np

from driftwolfe.losses.margins import MarginLoss
from driftwolfe.points.kinds import Array


class HingeLoss(MarginLoss):
    r"""Binary classification by margins.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \max(0,\; 1 - y_k \langle a_k, x\rangle)

    A subgradient is :math:`-\frac1b \sum_k y_k a_k` over the rows with margin below 1. Its norm is
    at most the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The signs :math:`y_k`, each -1 or +1.

    Examples
    --------
    >>> from driftwolfe.losses import HingeLoss
    >>> loss = HingeLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1])
    >>> loss.value_and_gradient([2.0, 0.0])
    (0.5, array([0., 1.]))
    """

    def value_at(self, scores: Array) -> Array:
        """Return the mean of what the margins lack to 1."""
        value: Array = np.maximum(0.0, 1.0 - self.labels * scores).mean(axis=-1)
        return value

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label where the margin is below 1, over the number of rows."""
        return (self.labels * scores < 1.0) * (-self.labels / self.labels.size)
