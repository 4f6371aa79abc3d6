"""Learners: the paper's methods, their ancestors and their contenders."""

from driftwolfe.learners.ader import Ader, OneProjectionAder
from driftwolfe.learners.aflh import AFLH
from driftwolfe.learners.bandit import Bandit, SemiBandit
from driftwolfe.learners.base import Learner
from driftwolfe.learners.bogd_ip import BOGDIP, LOOBOGD, SOOGD
from driftwolfe.learners.constrained import CutBOGDIP, LongTerm
from driftwolfe.learners.ftpl import FTPL
from driftwolfe.learners.mixture import Mixture
from driftwolfe.learners.multi_ocg import MultiOCG
from driftwolfe.learners.newton import OnlineNewtonStep
from driftwolfe.learners.one_oracle_ader import OneOracleAder
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.polar import POLAR
from driftwolfe.learners.pold import POLD
from driftwolfe.learners.sacs import SACS
from driftwolfe.learners.saol import PAMO, SAOL, OneProjectionSAOL
from driftwolfe.learners.scream import Scream
from driftwolfe.learners.single_point import (
    OGD,
    Constant,
    KalhanOFW,
    LineSearchOFW,
    OnlineFrankWolfe,
)
from driftwolfe.learners.strongly_convex import StronglyConvexOFW
from driftwolfe.learners.sword import Sword

__all__ = [
    "AFLH",
    "BOGDIP",
    "FTPL",
    "LOOBOGD",
    "OGD",
    "PAMO",
    "POLA",
    "POLAR",
    "POLD",
    "SACS",
    "SAOL",
    "SOOGD",
    "Ader",
    "Bandit",
    "Constant",
    "CutBOGDIP",
    "KalhanOFW",
    "Learner",
    "LineSearchOFW",
    "LongTerm",
    "Mixture",
    "MultiOCG",
    "OneOracleAder",
    "OneProjectionAder",
    "OneProjectionSAOL",
    "OnlineFrankWolfe",
    "OnlineNewtonStep",
    "Scream",
    "SemiBandit",
    "StronglyConvexOFW",
    "Sword",
]
