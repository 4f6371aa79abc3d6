"""Learners: the paper's methods, their ancestors and their contenders."""

from driftwolfe.learners.ader import Ader, OneOracleAder
from driftwolfe.learners.base import Learner
from driftwolfe.learners.bogd_ip import BOGDIP, LOOBOGD
from driftwolfe.learners.frank_wolfe import KalhanOFW, LineSearchOFW, OnlineFrankWolfe
from driftwolfe.learners.multi_ocg import MultiOCG
from driftwolfe.learners.ogd import OGD
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
