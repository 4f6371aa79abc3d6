"""Measuring play: static, dynamic and adaptive regret, each with its certificate."""

from driftwolfe.regret.measures import (
    Certified,
    Regret,
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

__all__ = ["Certified", "OfflineMinimum", "Regret", "offline_minimum"]
__all__ += ["adaptive_regret", "dynamic_regret", "static_regret", "violation"]
__all__ += ["function_variation", "path_length"]
__all__ += ["weak_adaptive_regret", "worst_case_dynamic_regret"]
