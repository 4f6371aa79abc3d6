"""Learners: the paper's methods, their ancestors and their contenders. `contrib` has more."""

from driftwolfe.learners.ader import Ader, OneOracleAder, OneProjectionAder
from driftwolfe.learners.base import Learner
from driftwolfe.learners.bogd_ip import BOGDIP, LOOBOGD, SOOGD
from driftwolfe.learners.multi_ocg import MultiOCG
from driftwolfe.learners.pola import POLA
from driftwolfe.learners.polar import POLAR
from driftwolfe.learners.pold import POLD
from driftwolfe.learners.saol import PAMO, SAOL, OneProjectionSAOL
from driftwolfe.learners.single_point import (
    OGD,
    Constant,
    KalhanOFW,
    LineSearchOFW,
    OnlineFrankWolfe,
)

__all__ = ["BOGDIP", "LOOBOGD", "OGD", "PAMO", "POLA", "POLAR", "POLD", "SAOL", "SOOGD", "Ader"]
__all__ += ["Constant", "KalhanOFW", "Learner", "LineSearchOFW", "MultiOCG", "OneOracleAder"]
__all__ += ["OneProjectionAder", "OneProjectionSAOL", "OnlineFrankWolfe"]
