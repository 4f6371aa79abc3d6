"""Projection-free online learning in changing environments.

A set is its linear minimisation oracle (`domains`), a loss is convex (`losses`), a learner plays a
point of the set each round and then sees the loss (`learners`, `play`); `regret` measures how it
did against comparators that move.
"""

from importlib.metadata import version as _version

from driftwolfe import domains, ensemble, learners, losses, oracles, points, regret, streams
from driftwolfe.domains import *
from driftwolfe.game import History, play
from driftwolfe.learners import *
from driftwolfe.learners import bounds
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix

__version__ = _version("driftwolfe")

__all__ = [
    "FactoredMatrix",
    "History",
    "__version__",
    "bounds",
    "domains",
    "ensemble",
    "infeasible_projection",
    "learners",
    "losses",
    "oracles",
    "play",
    "points",
    "regret",
    "streams",
]
__all__ += domains.__all__
__all__ += learners.__all__
