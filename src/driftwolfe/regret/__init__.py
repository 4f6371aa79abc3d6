"""Measuring play: static, dynamic and adaptive regret, each with its certificate."""

from driftwolfe.regret.adaptive import adaptive_regret, weak_adaptive_regret
from driftwolfe.regret.certified import Certified, Regret
from driftwolfe.regret.dynamic import dynamic_regret, worst_case_dynamic_regret
from driftwolfe.regret.offline import OfflineMinimum, offline_minimum
from driftwolfe.regret.record import Record
from driftwolfe.regret.static import static_regret
from driftwolfe.regret.variation import function_variation, path_length

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
    "weak_adaptive_regret",
    "worst_case_dynamic_regret",
]
