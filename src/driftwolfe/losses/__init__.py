"""Convex losses."""

from driftwolfe.losses.base import Loss
from driftwolfe.losses.entries import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.rows import (
    AbsoluteRows,
    HingeLoss,
    HuberRows,
    LogisticLoss,
    MulticlassLogistic,
    PinballRows,
    PortfolioLoss,
    SquaredRows,
)
from driftwolfe.losses.whole_point import (
    FunctionLoss,
    LinearLoss,
    Penalised,
    SquaredDistance,
    from_jax,
    from_torch,
)

__all__ = ["AbsoluteEntries", "AbsoluteRows", "FunctionLoss", "HingeLoss", "HuberEntries"]
__all__ += ["HuberRows", "LinearLoss", "LogisticLoss", "Loss", "MulticlassLogistic", "Penalised"]
__all__ += ["PinballRows", "PortfolioLoss", "SquaredDistance", "SquaredEntries", "SquaredRows"]
__all__ += ["from_jax", "from_torch"]
