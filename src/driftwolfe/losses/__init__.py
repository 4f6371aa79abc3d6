"""Convex functions: what a decision costs."""

from driftwolfe.losses.base import Loss
from driftwolfe.losses.entries import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.function import FunctionLoss
from driftwolfe.losses.linear_quadratic import LinearLoss, SquaredDistance
from driftwolfe.losses.margins import HingeLoss, LogisticLoss
from driftwolfe.losses.multiclass_logistic import MulticlassLogistic

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
