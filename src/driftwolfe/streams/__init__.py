"""Sequences of losses: made up with known comparators, or from real data."""

from driftwolfe.streams import drift, synthetic
from driftwolfe.streams.adversary import SignAdversary, against
from driftwolfe.streams.files import DataUnavailable
from driftwolfe.streams.matrix_completion import matrix_completion
from driftwolfe.streams.movielens import movielens_100k
from driftwolfe.streams.multiclass import multiclass
from driftwolfe.streams.resisting_oracle import ResistingOracle
from driftwolfe.streams.shuttle import shuttle
from driftwolfe.streams.stream import Stream
from driftwolfe.streams.twins import movielens_twin, shuttle_twin

__all__ = [
    "DataUnavailable",
    "ResistingOracle",
    "SignAdversary",
    "Stream",
    "against",
    "drift",
    "matrix_completion",
    "movielens_100k",
    "movielens_twin",
    "multiclass",
    "shuttle",
    "shuttle_twin",
    "synthetic",
]
