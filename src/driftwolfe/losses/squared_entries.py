"""The squared loss on some entries of a matrix."""

from __future__ import annotations

from driftwolfe.losses.base import Ball
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import ops
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array


class SquaredEntries(EntryLoss):
    r"""Matrix completion by squares: :math:`f(X) = \sum_k (X_{i_k j_k} - M_k)^2`.

    The plain sum of squares, without a factor 1/2: the gradient has
    :math:`2 (X_{i_k j_k} - M_k)` at :math:`(i_k, j_k)`.

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
    >>> from driftwolfe.losses import SquaredEntries
    >>> loss = SquaredEntries([0, 1], [2, 0], [3.0, -1.0])
    >>> loss.value(np.zeros((2, 3)))
    10.0
    >>> loss.gradient(np.zeros((2, 3)))
    array([[ 0.,  0., -6.],
           [ 2.,  0.,  0.]])
    """

    def value_at(self, scores: Array) -> Array:
        """Return the sum of squared errors."""
        errors = self.errors(scores)
        total: Array = (errors * errors).sum(axis=-1)
        return total

    def slope_at(self, scores: Array) -> Array:
        """Return twice every error."""
        return 2.0 * self.errors(scores)

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`\lVert\nabla f(c)\rVert + 2 m R`, m the most times that a pair comes.

        The Hessian is diagonal with entries at most 2 m, so the gradient moves by at most 2 m R
        within the distance R = `domain.radius` of the centre c.
        """
        curvature = 2.0 * float(self.multiplicities().max())
        return self._norm_at_center(domain) + curvature * domain.radius

    def _norm_at_center(self, domain: Ball) -> float:
        center = domain.center
        if center is None:
            sizes = (self._largest[0] + 1, self._largest[1] + 1)
            center = FactoredMatrix.zeros(sizes if self.shape is None else self.shape)
        return ops.norm(self.gradient(center))
