"""Learners: the paper's methods, their ancestors and their contenders."""

from driftwolfe.learners.base import Learner
from driftwolfe.learners.bogd_ip import BOGDIP, LOOBOGD
from driftwolfe.learners.constrained import CutBOGDIP, LongTerm
from driftwolfe.learners.contenders import PAMO, SAOL, Ader, MultiOCG
from driftwolfe.learners.mixture import Mixture
from driftwolfe.learners.newton import OnlineNewtonStep
from driftwolfe.learners.one_oracle_ader import OneOracleAder
from driftwolfe.learners.one_projection import OneProjectionAder, OneProjectionSAOL
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.polar import POLAR
from driftwolfe.learners.pold import POLD
from driftwolfe.learners.single_point import (
    OGD,
    Constant,
    KalhanOFW,
    LineSearchOFW,
    OnlineFrankWolfe,
)

__all__ = [
    "BOGDIP",
    "LOOBOGD",
    "OGD",
    "PAMO",
    "POLA",
    "POLAR",
    "POLD",
    "SAOL",
    "Ader",
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
]
