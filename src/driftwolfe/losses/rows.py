"""Losses of products with rows of features, classification and regression, or of returns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.losses import base
from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point, Shape, compiled

kernels = compiled("driftwolfe.points.kernels")

#: Multiplications up to which one compiled loop is quicker than calls of BLAS.
_COMPILED = 50_000


class FeatureLoss(base.Loss, base.OfErrors):
    r"""A mean over rows of losses of their products with a vector, or with each row of a matrix.

    .. math:: f(X) = \frac1b \sum_{k=1}^b \sum_c \varphi_c(\langle X_c, a_k\rangle - y_{kc})

    Targets of shape (b,) have one output, and points are vectors; targets of shape (b, outputs) make
    points of shape (outputs, features). A new one says what :math:`\varphi_c` and its slope are, by
    `losses_of` and `slopes_of`, and `steepest` where slopes are not in [-1, 1].
    """

    on_devices = True
    #: Functions of errors: each phi and its slope.
    losses_of: Any
    slopes_of: Any
    #: The largest slope of each phi, one number for all outputs or one for each.
    steepest: Any = 1.0

    def __init__(self, features: Any, targets: Any) -> None:
        self._take(features)
        rows = self.features.shape[0]
        given = base.read_only(checks.finite_array(targets, "targets"))
        if given.ndim not in (1, 2) or 0 in given.shape or len(given) != rows:
            raise ValueError(
                f"targets must have shape ({rows},) or ({rows}, outputs), got {given.shape}"
            )
        self.targets, self.shape = given, (*given.shape[1:], *self.shape)

    def _take(self, features: Any, *outputs: int) -> None:
        """Check and keep the features; points have a row for each output, or are vectors."""
        self.features = base.batch_of_features(features)
        self.shape: Shape = (*outputs, self.features.shape[1])
        self._cache = base.DeviceCache(self.features)

    def _take_signs(self, features: Any, labels: Any) -> None:
        """Check and keep the features, and labels of binary classification."""
        self._take(features)
        self.labels: Any = base.batch_of_numbers(labels, "labels", self.features.shape[0])
        if (strange := self.labels[np.abs(self.labels) != 1.0]).size:
            raise ValueError(f"labels must be -1 or +1, got {strange[0]:g}")

    def scores(self, x: Point) -> Array:
        self.check_shape(x.shape)
        if not isinstance(x, FactoredMatrix):
            return (self.features @ x.T).T
        columns = self.features.T
        return x.times(columns) if x.device is HOST else to_host(x @ columns)

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        device, points = device_of(stack), stack.reshape(-1, stack.shape[-1])
        (rows,) = self._cache[device.name]
        products = points @ rows.T if device is HOST else device.host(rows @ points.T).T
        return products.reshape(*stack.shape[:-1], -1)

    def pull_back(self, slope: Array, like: Point) -> Point:
        if not isinstance(like, FactoredMatrix):
            return slope @ self.features
        classes, rows = slope.shape
        if rows <= classes:
            return FactoredMatrix(slope, np.ones(rows), base.dense_features(self.features).T)
        return FactoredMatrix(np.eye(classes), np.ones(classes), self.features.T @ slope.T)

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        device = device_of(stack)
        weights = device.put(slopes.reshape(-1, slopes.shape[-1]))
        return (weights @ self._cache[device.name][0]).reshape(stack.shape)

    def errors(self, scores: Array) -> Array:
        """Return scores minus targets; leading axes are kept."""
        return scores - self.targets.T

    def value_at(self, scores: Array) -> Array:
        losses = self.losses_of(self.errors(scores))
        if self.targets.size == 1:  # half of the time of a sum
            return losses.reshape(losses.shape[: -self.targets.ndim])
        axes = tuple(range(-self.targets.ndim, 0))
        return losses.sum(axis=axes) / len(self.targets)

    def slope_at(self, scores: Array) -> Array:
        return self.slopes_of(self.errors(scores)) / len(self.targets)

    def lipschitz(self, domain: base.Ball) -> float:
        steepest = np.broadcast_to(self.steepest, self.shape[:-1])
        return float(np.linalg.norm(steepest) * base.row_norms(self.features).mean())


class HingeLoss(FeatureLoss):
    r"""Binary classification by margins.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \max(0,\; 1 - y_k \langle a_k, x\rangle)

    A subgradient is :math:`-\frac1b \sum_k y_k a_k` over the rows with margin below 1, at most as long
    as the :math:`a_k` on average.

    Parameters
    ----------
    features, labels
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and signs :math:`y_k`, -1 or +1.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.HingeLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1]).value_and_gradient([2.0, 0.0])
    (0.5, array([0., 1.]))
    """

    def __init__(self, features: Any, labels: Any) -> None:
        self._take_signs(features, labels)

    def value_at(self, scores: Array) -> Array:
        return np.maximum(0.0, 1.0 - self.labels * scores).mean(axis=-1)

    def slope_at(self, scores: Array) -> Array:
        return (self.labels * scores < 1.0) * (-self.labels / self.labels.size)


class LogisticLoss(FeatureLoss):
    r"""Binary classification by probabilities.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \log\big(1 + e^{-y_k \langle a_k, x\rangle}\big)

    The gradient is :math:`-\frac1b \sum_k \sigma(-y_k \langle a_k, x\rangle)\, y_k a_k` with
    :math:`\sigma(m) = 1/(1 + e^{-m})`, at most as long as the :math:`a_k` on average.

    Parameters
    ----------
    features, labels
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and signs :math:`y_k`, -1 or +1.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.LogisticLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1]).gradient([0.0, 0.0])
    array([-0.25,  0.5 ])
    """

    def __init__(self, features: Any, labels: Any) -> None:
        self._take_signs(features, labels)

    def value_at(self, scores: Array) -> Array:
        return np.logaddexp(0.0, -self.labels * scores).mean(axis=-1)

    def slope_at(self, scores: Array) -> Array:
        # 1 / (1 + exp(z)) through its logarithm: no overflow for any z.
        other = np.exp(-np.logaddexp(0.0, self.labels * scores))
        return other * (-self.labels / self.labels.size)


class MulticlassLogistic(FeatureLoss):
    r"""Classification by a matrix with one row per class.

    .. math::

        f(X) = \frac1b \sum_{k=1}^b \Big(\log \sum_c e^{\langle X_c, a_k\rangle}
               - \langle X_{y_k}, a_k\rangle\Big), \qquad
        \nabla f(X) = \frac1b \sum_k (p_k - e_{y_k})\, a_k^\top

    with :math:`p_k` the class probabilities of row k. Every gradient has norm at most
    :math:`\sqrt2` times the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features, labels
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and classes :math:`y_k`, from 0.
    n_classes
        Number of classes; points have shape (n_classes, n_features).

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> loss = dw.losses.MulticlassLogistic([[1.0, 0.0], [0.0, 2.0]], [0, 2], n_classes=3)
    >>> loss.gradient(np.zeros((3, 2))).round(3)
    array([[-0.333,  0.333],
           [ 0.167,  0.333],
           [ 0.167, -0.667]])

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning, AAAI, section "Experiments".
    """

    def __init__(self, features: Any, labels: Any, n_classes: int) -> None:
        self.n_classes = checks.count(n_classes, "n_classes", least=2)
        self._take(features, self.n_classes)
        rows = self.features.shape[0]
        self.labels = base.batch_of_indices(labels, "labels", self.n_classes, rows)
        self._row_weight = 1.0 / rows
        self._label_places = self.labels * rows + np.arange(rows)
        self._indicator = np.zeros((self.n_classes, rows))
        self._indicator.flat[self._label_places] = self._row_weight

    def value_at(self, scores: Array) -> Array:
        return self.value_and_slope_at(scores)[0]

    def slope_at(self, scores: Array) -> Array:
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores: Array) -> tuple[Array, Array]:
        shifted = scores - scores.max(axis=-2, keepdims=True)
        label_scores = shifted.reshape(*shifted.shape[:-2], -1).take(self._label_places, axis=-1)
        slope = np.exp(shifted, out=shifted)
        totals = slope.sum(axis=-2)
        value = (np.log(totals) - label_scores).sum(axis=-1)
        slope *= self._row_weight / totals[..., None, :]
        slope -= self._indicator
        return value * self._row_weight, slope

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        self.check_shape(tuple(stack.shape[1:]))
        dense = isinstance(stack, np.ndarray) and isinstance(self.features, np.ndarray)
        if not dense or stack.size * self.labels.size > _COMPILED:
            return super().stacked_round(stack, weights)
        points = np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T)
        values, pulled = np.zeros(len(stack)), np.zeros(points.shape)
        given = points, weights, self.features, self.labels, self._row_weight
        value = kernels().logistic_round(*given, values, pulled)
        return values, np.ascontiguousarray(pulled.T).reshape(stack.shape), value

    def lipschitz(self, domain: base.Ball) -> float:
        return math.sqrt(2.0) * self._row_weight * float(base.row_norms(self.features).sum())


class SquaredRows(base.Squared, FeatureLoss):
    r"""Least squares: :math:`f(X) = \frac1b \sum_k \lVert X a_k - y_k\rVert^2`.

    There is no factor 1/2: the gradient is :math:`\frac2b \sum_k (X a_k - y_k)\, a_k^\top`.

    Parameters
    ----------
    features, targets
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and numbers :math:`y_k`: of shape
        (b,) for points of shape (n_features,), or (b, outputs) for points of shape (outputs, n_features).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.SquaredRows([[1.0, 0.0], [0.0, 2.0]], [3.0, -1.0])
    >>> loss.value_and_gradient([1.0, 1.0])
    (6.5, array([-2.,  6.]))
    """

    def slope_at(self, scores: Array) -> Array:
        # A rounding less than twice the mean.
        return (2.0 / len(self.targets)) * self.errors(scores)

    def lipschitz(self, domain: base.Ball) -> float:
        r"""Return :math:`\lVert\nabla f(c)\rVert + 2 \lambda R`, 2 :math:`\lambda` the largest curvature."""
        zeros, A = np.zeros(self.shape), self.features
        slope = self.slope_at(self.scores(zeros if domain.center is None else domain.center))
        at_center = np.linalg.norm(self.pull_back(slope, zeros))
        rows, columns = A.shape
        largest = np.linalg.norm(base.dense_features(A @ A.T if rows < columns else A.T @ A), 2)
        return float(at_center + 2.0 * largest / rows * domain.radius)


class AbsoluteRows(base.Absolute, FeatureLoss):
    r"""Least absolute deviations: :math:`f(X) = \frac1b \sum_k \lVert X a_k - y_k\rVert_1`.

    The subgradient is :math:`\frac1b \sum_k \mathrm{sign}(X a_k - y_k)\, a_k^\top` with sign(0) = 0.
    Its norm is at most :math:`\sqrt{\text{outputs}}` times the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features, targets
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and numbers :math:`y_k`: of shape
        (b,) for points of shape (n_features,), or (b, outputs) for points of shape (outputs, n_features).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.AbsoluteRows([[1.0, 0.0], [0.0, 2.0]], [3.0, -1.0])
    >>> loss.value_and_gradient([1.0, 1.0])
    (2.5, array([-0.5,  1. ]))
    """


class HuberRows(base.Huber, FeatureLoss):
    r"""Robust least squares: :math:`f(X) = \frac1b \sum_k \sum_c h(\langle X_c, a_k\rangle - y_{kc})`.

    .. math:: h(e) = e^2/2 \text{ if } |e| \le w, \quad w(|e| - w/2) \text{ else.}

    The gradient is that of `AbsoluteRows` with the error, clipped to [-w, w], for its sign.

    Parameters
    ----------
    features, targets
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and numbers :math:`y_k`: of shape
        (b,) for points of shape (n_features,), or (b, outputs) for points of shape (outputs, n_features).
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
        self._set_width(width)


class PinballRows(FeatureLoss):
    r"""Quantile regression at level :math:`\tau`.

    .. math:: f(X) = \frac1b \sum_k \sum_c p(y_{kc} - \langle X_c, a_k\rangle), \qquad
              p(e) = \max(\tau e, (\tau - 1) e)

    In expectation it is least where :math:`\langle X_c, a\rangle` is the :math:`\tau`-quantile of
    the target. At the kink the subgradient is 0. For one output its norm is at most
    :math:`\max(\tau, 1 - \tau)` times the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features, targets
        The b rows :math:`a_k`, a dense array or a scipy sparse matrix, and numbers :math:`y_k`: of shape
        (b,) for points of shape (n_features,), or (b, outputs) for points of shape (outputs, n_features).
    level
        The number :math:`\tau`, above 0 and below 1.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.PinballRows([[1.0], [1.0]], [3.0, -1.0], level=0.75)
    >>> loss.value_and_gradient([1.0])
    (1.0, array([-0.25]))

    References
    ----------
    Koenker and Bassett (1978), Regression quantiles, Econometrica.
    """

    def __init__(self, features: Any, targets: Any, level: float = 0.5) -> None:
        super().__init__(features, targets)
        self.level = checks.positive(level, "level")
        if self.level >= 1.0:
            raise ValueError(f"level must lie above 0 and below 1, got {level!r}")
        self.steepest = max(self.level, 1.0 - self.level)

    def losses_of(self, errors: Array) -> Array:
        return np.maximum((1.0 - self.level) * errors, -self.level * errors)

    def slopes_of(self, errors: Array) -> Array:
        return (errors > 0.0) - self.level * (errors != 0.0)


class PortfolioLoss(FeatureLoss):
    r""":math:`f(w) = -\ln\langle r, w\rangle`: minus the logarithmic growth of a portfolio w in one period.

    For points of the simplex; of several rows of returns, the mean. It is exp-concave with :math:`\alpha = 1`.

    Parameters
    ----------
    returns
        Price relatives r > 0, the price of each asset after the period over that before; or rows of them.
    centred
        Whether to take :math:`-\ln(\langle r, w\rangle/\sum_i w_i)`, on the simplex the same. Its
        gradients lack the part that all weights share, so learners with steps D/G take far larger ones.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.PortfolioLoss([1.2, 0.8])
    >>> loss.value([0.5, 0.5]), loss.gradient([0.5, 0.5])
    (-0.0, array([-1.2, -0.8]))
    """

    only_on = "Simplex"
    on_devices = False

    def __init__(self, returns: Any, *, centred: bool = False) -> None:
        rows = np.atleast_2d(checks.finite_array(returns, "returns"))
        if rows.ndim != 2 or not rows.size or not (rows > 0.0).all():
            raise ValueError(
                "returns must be price relatives, all > 0, one for each asset or rows of them; "
                f"got shape {np.shape(returns)} and least {rows.min(initial=np.inf):g}"
            )
        self.returns, self.centred = base.read_only(rows), bool(centred)
        self._take(np.vstack((rows, np.ones_like(rows[:1]))) if centred else rows)

    def value_at(self, scores: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):  # outside the simplex: not finite
            logs = np.log(scores)
        number = len(self.returns)
        growth = np.add.reduce(logs[..., :number], axis=-1) / number
        return logs[..., -1] - growth if self.centred else -growth

    def slope_at(self, scores: Array) -> Array:
        with np.errstate(divide="ignore"):
            slopes = -1.0 / (len(self.returns) * scores)
        if self.centred:
            slopes[..., -1] *= -len(self.returns)
        return slopes

    def lipschitz(self, domain: base.Ball) -> Any:
        return None
