"""Convex functions: what a decision costs."""

from driftwolfe.losses.absolute_entries import AbsoluteEntries
from driftwolfe.losses.base import Loss
from driftwolfe.losses.function import FunctionLoss
from driftwolfe.losses.hinge import HingeLoss
from driftwolfe.losses.huber_entries import HuberEntries
from driftwolfe.losses.linear import LinearLoss
from driftwolfe.losses.logistic import LogisticLoss
from driftwolfe.losses.multiclass_logistic import MulticlassLogistic
from driftwolfe.losses.squared_distance import SquaredDistance
from driftwolfe.losses.squared_entries import SquaredEntries

__all__ = [
    "AbsoluteEntries",
    "FunctionLoss",
    "HingeLoss",
    "HuberEntries",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "MulticlassLogistic",
    "SquaredDistance",
    "SquaredEntries",
]
