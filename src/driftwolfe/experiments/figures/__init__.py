"""Figures for print: one function each, and `save`."""

from driftwolfe.experiments.figures.call_curves import oracle_calls
from driftwolfe.experiments.figures.loss_panels import panels
from driftwolfe.experiments.figures.regret_dots import Regrets, regret
from driftwolfe.experiments.figures.save import FORMATS, draw_all, save
from driftwolfe.experiments.figures.scale_dots import sensitivity
from driftwolfe.experiments.figures.weight_maps import weights

__all__ = [
    "FORMATS",
    "Regrets",
    "draw_all",
    "oracle_calls",
    "panels",
    "regret",
    "save",
    "sensitivity",
    "weights",
]
