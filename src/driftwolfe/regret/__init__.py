"""Measuring play: static, dynamic and adaptive regret, each with its certificate."""

from driftwolfe.regret.measures import (
    adaptive_regret,
    dynamic_regret,
    function_variation,
    path_length,
    static_regret,
    violation,
    weak_adaptive_regret,
    worst_case_dynamic_regret,
)
from driftwolfe.regret.offline import OfflineMinimum, offline_minimum
from driftwolfe.regret.windows import Certified, Record, Regret

__all__ = [
    "Certified",
    "OfflineMinimum",
    "Record",
    "Regret",
    "adaptive_regret",
    "dynamic_regret",
    "function_variation",
    "offline_minimum",
    "path_length",
    "static_regret",
    "violation",
    "weak_adaptive_regret",
    "worst_case_dynamic_regret",
]
