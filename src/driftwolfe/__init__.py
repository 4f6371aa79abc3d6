"""Projection-free online learning in changing environments."""

from driftwolfe import domains, losses, oracles, points
from driftwolfe.domains import *
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix
