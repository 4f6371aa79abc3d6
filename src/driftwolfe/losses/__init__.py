"""Convex losses."""

from driftwolfe.losses.base import Loss
from driftwolfe.losses.classification import HingeLoss, LogisticLoss, MulticlassLogistic
from driftwolfe.losses.entries import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.whole_point import (
    FunctionLoss,
    LinearLoss,
    PortfolioLoss,
    SquaredDistance,
)

__all__ = [
    "AbsoluteEntries",
    "FunctionLoss",
    "HingeLoss",
    "HuberEntries",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "MulticlassLogistic",
    "PortfolioLoss",
    "SquaredDistance",
    "SquaredEntries",
]
