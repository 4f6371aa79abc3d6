r"""Smooth stand-ins for losses with kinks.

A loss with kinks is a maximum, :math:`\varphi(s) = \max_u \langle u, s\rangle - \varphi^*(u)` with u
in a box. Taking :math:`\frac w2\lVert u\rVert^2` away inside the maximum makes it differentiable
(Nesterov 2005) and lowers it by at most that much. The maximiser u(s) is the slope of the stand-in,
and since it lies in the box, :math:`\langle u, z\rangle - \varphi^*(u)` is below :math:`\varphi(z)`
itself for all z: that is what certificates are made of, and it is tight as w falls to 0.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from driftwolfe.losses import AbsoluteEntries, HingeLoss, Loss
from driftwolfe.points.kinds import Array


class SoftLoss(Loss):
    """A loss with smoothed kinks."""

    #: How far from a kink it differs from the loss, in units of the scores.
    width: float

    @abstractmethod
    def slack_at(self, scores: Array) -> float:
        """Return by how much the bound on the loss itself lies above the value here, at scores."""


class SoftAbsoluteEntries(SoftLoss, AbsoluteEntries):
    """The absolute loss, quadratic where an error is below the width."""

    def __init__(self, loss: AbsoluteEntries, width: float) -> None:
        super().__init__(loss.rows, loss.cols, loss.targets, loss.shape)
        self.width = width

    def value_at(self, scores: Array) -> Array:
        """Return the sum of the Huber function of the errors over its width."""
        errors = np.abs(self.errors(scores))
        near = np.minimum(errors, self.width)
        total: Array = (near * (errors - 0.5 * near)).sum(axis=-1)
        return total / self.width

    def slope_at(self, scores: Array) -> Array:
        """Return every error in units of the width, clipped to [-1, 1]."""
        return np.clip(self.errors(scores) / self.width, -1.0, 1.0)

    def slack_at(self, scores: Array) -> float:
        """Return half the width times the squared slopes."""
        slopes = self.slope_at(scores)
        return 0.5 * self.width * float(slopes @ slopes)


class SoftHinge(SoftLoss, HingeLoss):
    """The hinge loss, quadratic where a margin lacks less than the width to 1."""

    def __init__(self, loss: HingeLoss, width: float) -> None:
        super().__init__(loss.features, loss.labels)
        self.width = width

    def value_at(self, scores: Array) -> Array:
        """Return the mean of what the margins lack to 1, less the smoothing."""
        lacking = 1.0 - self.labels * scores
        active = np.clip(lacking / self.width, 0.0, 1.0)
        mean: Array = (active * (lacking - 0.5 * self.width * active)).mean(axis=-1)
        return mean

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label times the active share of a row, over the number of rows."""
        return self._active(scores) * (-self.labels / self.labels.size)

    def slack_at(self, scores: Array) -> float:
        """Return half the width times the mean squared active share."""
        active = self._active(scores)
        return 0.5 * self.width * float(active @ active) / self.labels.size

    def _active(self, scores: Array) -> Array:
        return np.clip((1.0 - self.labels * scores) / self.width, 0.0, 1.0)


def can_soften(loss: Loss) -> bool:
    """Whether the loss has kinks that are known here."""
    return type(loss) in (AbsoluteEntries, HingeLoss)


def soften(loss: Loss, share: float) -> SoftLoss:
    """Return a smooth stand-in whose width is that share of the natural size of the scores."""
    if isinstance(loss, AbsoluteEntries):
        size = float(np.abs(loss.targets).mean())
        return SoftAbsoluteEntries(loss, share * (size if size > 0 else 1.0))
    assert isinstance(loss, HingeLoss)
    return SoftHinge(loss, share)
