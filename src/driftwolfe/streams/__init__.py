"""Sequences of losses: made up with known comparators, or from real data."""

from driftwolfe.streams import drift, synthetic
from driftwolfe.streams.datasets import (
    DataUnavailable,
    matrix_completion,
    movielens_100k,
    movielens_twin,
    multiclass,
    shuttle,
    shuttle_twin,
)
from driftwolfe.streams.drift import Stream
from driftwolfe.streams.synthetic import ResistingOracle

__all__ = ["ResistingOracle", "Stream", "drift", "synthetic"]
__all__ += ["DataUnavailable", "matrix_completion", "multiclass"]
__all__ += ["movielens_100k", "movielens_twin", "shuttle", "shuttle_twin"]
