"""What ensembles share: the look of each round, and its combination."""

from __future__ import annotations

from typing import Any, NamedTuple

from driftwolfe.ensemble.dense_descent import DenseDescent
from driftwolfe.ensemble.experts import Experts
from driftwolfe.ensemble.scores import combine, products, require_finite, values_and_slopes
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array


class View(NamedTuple):
    """One round as an ensemble sees it.

    Attributes
    ----------
    value
        :math:`f_t(x_t)`.
    played
        What the meta holds against the experts: value, or the linearised loss at :math:`x_t`.
    experts
        The experts' losses, or their linearised losses.
    slopes
        What `prepare` takes: a slope for all experts, or one for each; where they are stacked,
        their gradients.
    """

    value: float
    played: float
    experts: Array
    slopes: Any


def view(loss: Loss, experts: Experts, weights: Array, linear: bool) -> View:
    r"""Look at the loss through every expert, once.

    As :math:`A\sum_i w_i x_i = \sum_i w_i A x_i`, the combined decision is never formed. With linear
    feedback all is done with :math:`\ell_t(x) = \langle\nabla f_t(x_t), x\rangle`: one gradient for
    everybody.
    """
    if isinstance(experts, DenseDescent) and not linear:
        losses, gradients, suffered = experts.round_of(loss, weights)
        require_finite(suffered, losses)
        return View(suffered, suffered, losses, gradients)
    scores = experts.look(loss)
    combined = combine(weights, scores)
    if linear:
        value, slope = loss.value_and_slope_at(combined)
        require_finite(value, slope)
        losses = products(slope, scores)
        return View(float(value), float(weights @ losses), losses, slope)
    losses, slopes, suffered = values_and_slopes(loss, scores, combined)
    require_finite(suffered, losses, slopes)
    return View(suffered, suffered, losses, slopes)
