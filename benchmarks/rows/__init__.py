"""The rows of the budget, in its order: each measures and returns its ratios."""

from benchmarks.rows import (
    linear_oracle,
    matrix_completion,
    paper_algorithms,
    recommender,
    scale,
    small_matrices,
    startup,
    threads,
    vectors,
)

ROWS = {
    "matrix_completion": matrix_completion,
    "paper_algorithms": paper_algorithms,
    "linear_oracle": linear_oracle,
    "small_matrices": small_matrices,
    "vectors": vectors,
    "recommender": recommender,
    "scale": scale,
    "threads": threads,
    "startup": startup,
}
