"""Sequences of losses: made up with known comparators, or from real data."""

from driftwolfe.streams import drift, synthetic
from driftwolfe.streams.adversary import SignAdversary, against
from driftwolfe.streams.matrix_completion import matrix_completion
from driftwolfe.streams.movielens import movielens_100k
from driftwolfe.streams.multiclass import multiclass
from driftwolfe.streams.shuttle import shuttle
from driftwolfe.streams.stream import Stream

__all__ = [
    "SignAdversary",
    "Stream",
    "against",
    "drift",
    "matrix_completion",
    "movielens_100k",
    "multiclass",
    "shuttle",
    "synthetic",
]
