"""Regression losses on rows of features: squared, absolute, Huber and pinball."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses import inputs
from driftwolfe.losses.base import Ball
from driftwolfe.losses.classification import FeatureLoss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array


class RowLoss(FeatureLoss):
    r"""A mean over rows of losses of errors, summed over the outputs of a row.

    .. math:: f(X) = \frac1b \sum_{k=1}^b \sum_c \varphi_c(\langle X_c, a_k\rangle - y_{kc})

    Targets of shape (b,) have one output, and points are vectors; targets of shape (b, outputs) make
    points of shape (outputs, features). A new one overrides `value_at` and `slope_at`, and
    `steepest` where slopes of :math:`\varphi_c` are not in [-1, 1].
    """

    #: The largest slope of each phi, one number for all outputs or one for each.
    steepest: Any = 1.0

    def __init__(self, features: Any, targets: Any) -> None:
        rows = inputs.batch_of_features(features).shape[0]
        given = inputs.read_only(checks.finite_array(targets, "targets"))
        if given.ndim not in (1, 2) or 0 in given.shape or len(given) != rows:
            raise ValueError(
                f"targets must have shape ({rows},) or ({rows}, outputs), got {given.shape}"
            )
        super().__init__(features, *given.shape[1:])
        self.targets = given

    def errors(self, scores: Array) -> Array:
        """Return scores minus targets; leading axes are kept."""
        return scores - self.targets.T

    def mean(self, losses: Array) -> Array:
        """Return the sum over the outputs of the mean over the rows."""
        if self.targets.size == 1:  # half of the time of a sum
            return losses.reshape(losses.shape[: -self.targets.ndim])
        axes = tuple(range(-self.targets.ndim, 0))
        return losses.sum(axis=axes) / len(self.targets)

    def lipschitz(self, domain: Ball) -> float:
        steepest = np.broadcast_to(self.steepest, self.targets.shape[1:])
        return float(np.linalg.norm(steepest) * inputs.row_norms(self.features).mean())


class SquaredRows(RowLoss):
    r"""Least squares: :math:`f(X) = \frac1b \sum_k \lVert X a_k - y_k\rVert^2`.

    There is no factor 1/2: the gradient is :math:`\frac2b \sum_k (X a_k - y_k)\, a_k^\top`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    targets
        The numbers :math:`y_k`, shape (b,) for points of shape (n_features,), or (b, outputs) for
        points of shape (outputs, n_features).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.SquaredRows([[1.0, 0.0], [0.0, 2.0]], [3.0, -1.0])
    >>> loss.value_and_gradient([1.0, 1.0])
    (6.5, array([-2.,  6.]))
    """

    def value_at(self, scores: Array) -> Array:
        return self.mean(self.errors(scores) ** 2)

    def slope_at(self, scores: Array) -> Array:
        return (2.0 / len(self.targets)) * self.errors(scores)

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`\lVert\nabla f(c)\rVert + 2 \lambda R`, with c the centre of the set.

        The gradient moves by 2 (X - c) A'A/b, so by at most :math:`2\lambda R` within the distance
        R = `domain.radius`, with :math:`\lambda` the largest eigenvalue of A'A/b.
        """
        center = np.zeros(self.shape or ()) if domain.center is None else domain.center
        slope = self.slope_at(self.scores(center))
        at_center = np.linalg.norm(self.pull_back(slope, np.zeros(self.shape or ())))
        rows, columns = self.features.shape
        gram = (
            self.features @ self.features.T if rows < columns else self.features.T @ self.features
        )
        largest = np.linalg.norm(inputs.dense_features(gram), 2)
        return float(at_center + 2.0 * largest / rows * domain.radius)


class AbsoluteRows(RowLoss):
    r"""Least absolute deviations: :math:`f(X) = \frac1b \sum_k \lVert X a_k - y_k\rVert_1`.

    The subgradient is :math:`\frac1b \sum_k \mathrm{sign}(X a_k - y_k)\, a_k^\top` with sign(0) = 0.
    Its norm is at most :math:`\sqrt{\text{outputs}}` times the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    targets
        The numbers :math:`y_k`, shape (b,) for points of shape (n_features,), or (b, outputs) for
        points of shape (outputs, n_features).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.AbsoluteRows([[1.0, 0.0], [0.0, 2.0]], [3.0, -1.0])
    >>> loss.value_and_gradient([1.0, 1.0])
    (2.5, array([-0.5,  1. ]))
    """

    def value_at(self, scores: Array) -> Array:
        return self.mean(np.abs(self.errors(scores)))

    def slope_at(self, scores: Array) -> Array:
        return np.sign(self.errors(scores)) / len(self.targets)


class HuberRows(RowLoss):
    r"""Robust least squares: :math:`f(X) = \frac1b \sum_k \sum_c h(\langle X_c, a_k\rangle - y_{kc})`.

    .. math:: h(e) = e^2/2 \text{ if } |e| \le w, \quad w(|e| - w/2) \text{ else.}

    The gradient is that of `AbsoluteRows` with the error, clipped to [-w, w], for its sign.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    targets
        The numbers :math:`y_k`, shape (b,) for points of shape (n_features,), or (b, outputs) for
        points of shape (outputs, n_features).
    width
        The error w > 0 from which on h is linear, in units of the targets.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.HuberRows([[1.0, 0.0], [0.0, 2.0]], [3.0, 1.5], width=1.0)
    >>> loss.value_and_gradient([1.0, 1.0])
    (0.8125, array([-0.5,  0.5]))
    """

    def __init__(self, features: Any, targets: Any, width: float = 1.0) -> None:
        super().__init__(features, targets)
        self.width = self.steepest = checks.positive(width, "width")

    def value_at(self, scores: Array) -> Array:
        errors = np.abs(self.errors(scores))
        near = np.minimum(errors, self.width)
        # Where |e| <= w this is e^2/2; beyond, w|e| - w^2/2.
        return self.mean(near * (errors - 0.5 * near))

    def slope_at(self, scores: Array) -> Array:
        return self.errors(scores).clip(-self.width, self.width) / len(self.targets)


class PinballRows(RowLoss):
    r"""Quantile regression at levels :math:`\tau_c`.

    .. math:: f(X) = \frac1b \sum_k \sum_c p_c(y_{kc} - \langle X_c, a_k\rangle), \qquad
              p_c(e) = \max(\tau_c e, (\tau_c - 1) e)

    In expectation it is least where :math:`\langle X_c, a\rangle` is the :math:`\tau_c`-quantile of
    the target. At the kink the subgradient 0 is used. Norms of subgradients are at most the mean of
    the :math:`\lVert a_k\rVert` times the norm of the numbers :math:`\max(\tau_c, 1 - \tau_c)`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    targets
        The numbers :math:`y_k`, shape (b,); or (b, outputs), one column for each level.
    levels
        One level above 0 and below 1, or several. With several and one target per row, points have a
        row for each level.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.PinballRows([[1.0], [1.0]], [3.0, -1.0], levels=[0.5, 0.75])
    >>> loss.value_and_gradient([[0.0], [1.0]])
    (2.0, array([[ 0.  ],
           [-0.25]]))

    References
    ----------
    Koenker and Bassett (1978), Regression quantiles, Econometrica.
    """

    def __init__(self, features: Any, targets: Any, levels: Any = 0.5) -> None:
        self.levels = inputs.read_only(checks.finite_array(levels, "levels"))
        if self.levels.ndim > 1 or not self.levels.size:
            raise ValueError(f"levels must be a number or several, got shape {self.levels.shape}")
        if not ((self.levels > 0.0) & (self.levels < 1.0)).all():
            raise ValueError(f"levels must lie above 0 and below 1, got {levels!r}")
        if self.levels.ndim and np.ndim(targets) == 1:
            targets = np.repeat(
                checks.finite_array(targets, "targets")[:, None], self.levels.size, 1
            )
        super().__init__(features, targets)
        if self.levels.ndim and self.targets.shape[1:] != self.levels.shape:
            raise ValueError(
                f"targets must have one column for each of {self.levels.size} levels, "
                f"got shape {self.targets.shape}"
            )
        self.steepest = np.maximum(self.levels, 1.0 - self.levels)
        self._levels = self.levels[:, None] if self.levels.ndim else self.levels

    def value_at(self, scores: Array) -> Array:
        errors = self.errors(scores)
        return self.mean(np.maximum((1.0 - self._levels) * errors, -self._levels * errors))

    def slope_at(self, scores: Array) -> Array:
        errors = self.errors(scores)
        return ((errors > 0.0) - self._levels * (errors != 0.0)) / len(self.targets)
