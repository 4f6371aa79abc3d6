"""Lower bounds on single losses, before any work is done."""

from __future__ import annotations

import math

from driftwolfe.domains import Domain
from driftwolfe.losses import (
    AbsoluteEntries,
    HingeLoss,
    HuberEntries,
    LogisticLoss,
    Loss,
    MulticlassLogistic,
    SquaredDistance,
    SquaredEntries,
)
from driftwolfe.points import inner
from driftwolfe.regret.objective import Objective

_NONNEGATIVE = (
    AbsoluteEntries,
    HingeLoss,
    HuberEntries,
    LogisticLoss,
    MulticlassLogistic,
    SquaredDistance,
    SquaredEntries,
)


def floor(loss: Loss, domain: Domain) -> float:
    """Return a number that the loss does not fall below on the set.

    Exact for linear losses; 0 for those that are sums of squares, distances or negative logarithms
    of probabilities; for others from the tangent at the set's origin, with one oracle call.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> floor(dw.losses.LinearLoss([3.0, -4.0]), dw.L1Ball(2))
    -4.0
    """
    if type(loss) in _NONNEGATIVE:
        return 0.0
    origin = domain.origin()
    value, gradient = loss.value_and_gradient(origin)
    vertex, error = domain.lmo_with_error(gradient)
    return value + inner(gradient, vertex) - inner(gradient, origin) - error


def objective_floor(objective: Objective) -> float:
    """Return a number that the sum does not fall below anywhere; minus infinity if none is known."""
    if all(type(term.loss) in _NONNEGATIVE for term in objective.terms):
        return objective.constant
    return -math.inf
