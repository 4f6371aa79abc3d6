"""For drifting streams, with scikit-learn and river APIs: models, recommenders, intervals, sets, alarms.

`MatrixCompleter` (ratings), `Recommender` (events), `AdaptiveIntervals`, `AdaptiveSets` and `DriftAlarm` need
nothing else;
`TraceNormClassifier`, `TraceNormRegressor` and `MatrixCompletionRegressor` need scikit-learn
(``pip install 'driftwolfe[estimators]'``); the classes named River... need river
(``pip install 'driftwolfe[river]'``).
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from driftwolfe.points.checks import meant as _meant

#: Where each class lives, and the extra that installs what it needs.
_HOMES = {
    "AdaptiveIntervals": ("intervals", None),
    "AdaptiveSets": ("intervals", None),
    "DriftAlarm": ("alarm", None),
    "MatrixCompleter": ("completer", None),
    "MatrixCompletionRegressor": ("completer_sklearn", "estimators"),
    "Recommender": ("recommender", None),
    "RiverMatrixCompleter": ("river", "river"),
    "RiverRecommender": ("river", "river"),
    "RiverTraceNormClassifier": ("river", "river"),
    "RiverTraceNormRegressor": ("river", "river"),
    "TraceNormClassifier": ("sklearn", "estimators"),
    "TraceNormRegressor": ("sklearn", "estimators"),
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> _Any:
    if name not in _HOMES:
        hint = _meant(name, _HOMES) if name[:1].isupper() else ""
        raise AttributeError(f"module 'driftwolfe.estimators' has no attribute {name!r}{hint}")
    module, extra = _HOMES[name]
    try:
        return getattr(_import_module(f"driftwolfe.estimators.{module}"), name)
    except ModuleNotFoundError as error:
        if extra is None or (error.name or "").startswith("driftwolfe"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}; install it with: pip install 'driftwolfe[{extra}]'",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
