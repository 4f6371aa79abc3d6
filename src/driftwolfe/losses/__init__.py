"""Convex losses."""

from driftwolfe.losses.base import Loss
from driftwolfe.losses.classification import HingeLoss, LogisticLoss, MulticlassLogistic
from driftwolfe.losses.entries import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.penalised import Penalised
from driftwolfe.losses.regression import AbsoluteRows, HuberRows, PinballRows, SquaredRows
from driftwolfe.losses.whole_point import (
    FunctionLoss,
    LinearLoss,
    PortfolioLoss,
    SquaredDistance,
)

__all__ = [
    "AbsoluteEntries",
    "AbsoluteRows",
    "FunctionLoss",
    "HingeLoss",
    "HuberEntries",
    "HuberRows",
    "LinearLoss",
    "LogisticLoss",
    "Loss",
    "MulticlassLogistic",
    "Penalised",
    "PinballRows",
    "PortfolioLoss",
    "SquaredDistance",
    "SquaredEntries",
    "SquaredRows",
]
