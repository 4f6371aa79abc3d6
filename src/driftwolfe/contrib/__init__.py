"""Methods beyond the paper: other structure of losses, less feedback, constraints, mixtures.

CONTRIBUTING says what may be added here, and how.
"""

from driftwolfe.contrib.aflh import AFLH
from driftwolfe.contrib.bandit import Bandit, SemiBandit
from driftwolfe.contrib.constrained import CutBOGDIP, LongTerm
from driftwolfe.contrib.ftpl import FTPL
from driftwolfe.contrib.mixture import Mixture
from driftwolfe.contrib.newton import OnlineNewtonStep
from driftwolfe.contrib.sacs import SACS
from driftwolfe.contrib.scream import Scream
from driftwolfe.contrib.strongly_convex import StronglyConvexOFW
from driftwolfe.contrib.sword import Sword

__all__ = [
    "AFLH",
    "FTPL",
    "SACS",
    "Bandit",
    "CutBOGDIP",
    "LongTerm",
    "Mixture",
    "OnlineNewtonStep",
    "Scream",
    "SemiBandit",
    "StronglyConvexOFW",
    "Sword",
]
