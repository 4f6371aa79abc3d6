"""Projection-free online learning in changing environments."""

from driftwolfe import domains, ensemble, learners, losses, oracles, points
from driftwolfe.domains import *
from driftwolfe.game import History, play
from driftwolfe.learners import *
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix
