"""Figures for print: one function each, and `save`.

Each is imported when it is first named: what only needs the look needs no results of sweeps.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from driftwolfe.experiments.figures.call_curves import oracle_calls
    from driftwolfe.experiments.figures.files import FORMATS, draw_all, save
    from driftwolfe.experiments.figures.loss_panels import panels
    from driftwolfe.experiments.figures.regret_dots import Regrets, regret
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
_MODULES = {
    "FORMATS": "files",
    "Regrets": "regret_dots",
    "draw_all": "files",
    "oracle_calls": "call_curves",
    "panels": "loss_panels",
    "regret": "regret_dots",
    "save": "files",
    "sensitivity": "scale_dots",
    "weights": "weight_maps",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
