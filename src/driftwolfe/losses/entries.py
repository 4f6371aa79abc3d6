"""Losses of single entries of a matrix."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from driftwolfe.losses import base
from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape


class EntryLoss(base.Loss, base.OfErrors):
    r"""A sum of losses of single entries, :math:`f(X) = \sum_k \varphi(X_{i_k j_k} - M_k)`.

    The gradient at a `FactoredMatrix` is sparse. Terms of a pair (i, j) that comes several times add up.
    A new one says what phi and its slope are, by `losses_of` and `slopes_of`.
    """

    on_devices = True
    #: Functions of errors: phi and its slope.
    losses_of: Any
    slopes_of: Any
    #: The largest slope of phi, where there is one.
    steepest: float = 1.0

    def __init__(self, rows: Any, cols: Any, targets: Any, shape: Any = None) -> None:
        self.rows = base.batch_of_indices(rows, "rows")
        self.cols = base.batch_of_indices(cols, "cols", size=self.rows.size)
        self.targets = base.batch_of_numbers(targets, "targets", self.rows.size)
        self._cache = base.DeviceCache(self.rows, self.cols, self.targets)
        self._least = (int(self.rows.max()) + 1, int(self.cols.max()) + 1)
        if shape is not None:
            self.shape = checks.shape(shape)
            self.check_shape(self.shape)

    def check_shape(self, shape: Shape) -> None:
        if self.shape not in (None, shape):
            super().check_shape(shape)
        m, n = self._least
        if len(shape) != 2 or shape[0] < m or shape[1] < n:
            raise ValueError(
                f"{type(self).__name__} takes matrices of at least {m} rows and {n} columns, "
                f"which have all its entries, got shape {shape}"
            )

    def places(self, device: Device) -> tuple[Any, Any]:
        """Return the rows and columns on a device."""
        return self._cache[device.name][:2]

    def errors(self, scores: Any) -> Any:
        """Return scores minus targets; leading axes are kept."""
        return scores - self._cache[device_of(scores).name][2]

    def value_at(self, scores: Array) -> Array:
        return self.losses_of(self.errors(scores)).sum(axis=-1)

    def slope_at(self, scores: Array) -> Array:
        return self.slopes_of(self.errors(scores))

    def scores(self, x: Point) -> Array:
        self.check_shape(x.shape)
        if isinstance(x, FactoredMatrix):
            return x.entries_at(*self.places(x.device))
        return x[self.rows, self.cols]

    def pull_back(self, slope: Array, like: Point) -> Point:
        if isinstance(like, FactoredMatrix):
            return FactoredMatrix._stored(like.shape, *self.places(like.device), slope)
        return self.stacked_pull_back(slope[None], like[None])[0]

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        rows, cols = self.places(device_of(stack))
        return to_host(stack[:, rows, cols])  # few, and what follows is quicker there

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        number, m, n = stack.shape
        if (device := device_of(stack)) is not HOST:
            rows, cols = self.places(device)
            return device.summed(device.put(slopes), rows * n + cols, m * n).reshape(stack.shape)
        gradients = np.zeros(stack.shape)
        # One flat index is twice as fast as indexing three axes.
        flat = (np.arange(number) * (m * n))[:, None] + (self.rows * n + self.cols)
        np.add.at(gradients.reshape(-1), flat.ravel(), slopes.ravel())
        return gradients

    def gradient_norms(self, slopes: Any) -> Array:
        """Return the norm of the gradient that each row of a table of slopes stands for."""
        device, (pairs, counts) = device_of(slopes), self._pairs
        if counts.size < self.rows.size:  # slopes of the same pair add up
            slopes = device.summed(slopes, device.put(pairs), counts.size)
        return np.asarray(device.host(device.xp.linalg.vector_norm(slopes, axis=1)))

    def lipschitz(self, domain: base.Ball) -> float:
        return self.steepest * float(np.linalg.norm(self._pairs[1]))

    @cached_property
    def _pairs(self) -> tuple[Indices, Array]:
        """For each entry the number of its pair (row, col), and how often each pair comes."""
        keys = self.rows * self._least[1] + self.cols
        pairs = np.unique(keys, return_inverse=True)[1]
        return pairs, np.bincount(pairs).astype(np.float64)


class AbsoluteEntries(base.Absolute, EntryLoss):
    r"""Robust matrix completion: :math:`f(X) = \sum_k |X_{i_k j_k} - M_k|`.

    The subgradient has :math:`\mathrm{sign}(X_{i_k j_k} - M_k)` at :math:`(i_k, j_k)`, with
    sign(0) = 0; its norm is at most :math:`\sqrt m` for m pairs, each given once.

    Parameters
    ----------
    rows, cols, targets, shape
        Indices :math:`i_k, j_k` from 0, numbers :math:`M_k`; the shape of the matrices, if it is fixed.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> dw.losses.AbsoluteEntries([0, 1], [2, 0], [3.0, -1.0]).value_and_gradient(np.zeros((2, 3)))
    (4.0, array([[ 0.,  0., -1.],
           [ 1.,  0.,  0.]]))

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning, AAAI, section "Experiments".
    """


class SquaredEntries(base.Squared, EntryLoss):
    r"""Matrix completion by squares: :math:`f(X) = \sum_k (X_{i_k j_k} - M_k)^2`.

    There is no factor 1/2: the gradient has :math:`2 (X_{i_k j_k} - M_k)` at :math:`(i_k, j_k)`.

    Parameters
    ----------
    rows, cols, targets, shape
        Indices :math:`i_k, j_k` from 0, numbers :math:`M_k`; the shape of the matrices, if it is fixed.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> dw.losses.SquaredEntries([0, 1], [2, 0], [3.0, -1.0]).value_and_gradient(np.zeros((2, 3)))
    (10.0, array([[ 0.,  0., -6.],
           [ 2.,  0.,  0.]]))
    """

    def lipschitz(self, domain: base.Ball) -> float:
        r"""Return :math:`\lVert\nabla f(c)\rVert + 2 m R`: 2 m for a pair that comes m times is the curvature."""
        center = domain.center
        scores = np.zeros(self.rows.size) if center is None else self.scores(center)
        at_center = self.gradient_norms(self.slope_at(scores)[None])[0]
        return float(at_center + 2.0 * self._pairs[1].max() * domain.radius)


class HuberEntries(base.Huber, EntryLoss):
    r"""Smooth robust matrix completion: :math:`f(X) = \sum_k h(X_{i_k j_k} - M_k)`.

    .. math:: h(e) = e^2/2 \text{ if } |e| \le w, \quad w(|e| - w/2) \text{ else.}

    The gradient has the error, clipped to [-w, w], at :math:`(i_k, j_k)`.

    Parameters
    ----------
    rows, cols, targets, shape
        Indices :math:`i_k, j_k` from 0, numbers :math:`M_k`; the shape of the matrices, if it is fixed.
    width
        The error w > 0 from which on h is linear, in units of the targets.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> loss = dw.losses.HuberEntries([0, 1], [2, 0], [3.0, -0.5], width=1.0)
    >>> loss.value_and_gradient(np.zeros((2, 3)))
    (2.625, array([[ 0. ,  0. , -1. ],
           [ 0.5,  0. ,  0. ]]))
    """

    def __init__(
        self, rows: Any, cols: Any, targets: Any, width: float = 1.0, shape: Any = None
    ) -> None:
        super().__init__(rows, cols, targets, shape)
        self._set_width(width)
