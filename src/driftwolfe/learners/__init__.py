"""Learners: the paper's methods, their ancestors and their contenders."""

from driftwolfe.learners.ader import Ader
from driftwolfe.learners.base import Learner
from driftwolfe.learners.bogd_ip import BOGDIP
from driftwolfe.learners.kalhan_ofw import KalhanOFW
from driftwolfe.learners.line_search_ofw import LineSearchOFW
from driftwolfe.learners.loo_bogd import LOOBOGD
from driftwolfe.learners.multi_ocg import MultiOCG
from driftwolfe.learners.ogd import OGD
from driftwolfe.learners.one_oracle_ader import OneOracleAder
from driftwolfe.learners.online_frank_wolfe import OnlineFrankWolfe
from driftwolfe.learners.pamo import PAMO
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.pold import POLD
from driftwolfe.learners.saol import SAOL

__all__ = [
    "BOGDIP",
    "LOOBOGD",
    "OGD",
    "PAMO",
    "POLA",
    "POLD",
    "SAOL",
    "Ader",
    "KalhanOFW",
    "Learner",
    "LineSearchOFW",
    "MultiOCG",
    "OneOracleAder",
    "OnlineFrankWolfe",
]
