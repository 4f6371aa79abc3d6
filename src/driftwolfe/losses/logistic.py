"""The binary logistic loss."""

from __future__ import annotations

import numpy as np

from driftwolfe.losses.margins import MarginLoss
from driftwolfe.points.kinds import Array


class LogisticLoss(MarginLoss):
    r"""Binary classification by probabilities.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \log\big(1 + e^{-y_k \langle a_k, x\rangle}\big)

    The gradient is :math:`-\frac1b \sum_k \sigma(-y_k \langle a_k, x\rangle)\, y_k a_k` with
    :math:`\sigma(m) = 1/(1 + e^{-m})`. Its norm is at most the mean of the
    :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The signs :math:`y_k`, each -1 or +1.

    Examples
    --------
    >>> from driftwolfe.losses import LogisticLoss
    >>> loss = LogisticLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1])
    >>> round(loss.value([0.0, 0.0]), 6)
    0.693147
    >>> loss.gradient([0.0, 0.0])
    array([-0.25,  0.5 ])
    """

    def value_at(self, scores: Array) -> Array:
        """Return the mean of log(1 + exp(-margin))."""
        value: Array = np.logaddexp(0.0, -self.labels * scores).mean(axis=-1)
        return value

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label times the probability of the other one, over the rows."""
        # 1 / (1 + exp(z)) through its logarithm: no overflow for any z.
        other = np.exp(-np.logaddexp(0.0, self.labels * scores))
        return other * (-self.labels / self.labels.size)
