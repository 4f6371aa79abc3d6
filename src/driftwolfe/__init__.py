"""Projection-free online learning in changing environments."""

from driftwolfe.domains import *
