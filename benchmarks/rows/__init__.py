"""The rows of the speed budget in order; each measures and returns its ratios."""

from benchmarks import classifier, completer, ranking
from benchmarks.rows import (
    ensembles,
    first_use,
    linear_oracle,
    movielens,
    paper_algorithms,
    resources,
)

ROWS = {
    "matrix_completion": movielens.matrix_completion,
    "one_projection": movielens.one_projection,
    "pola": movielens.pola_against_ader,
    "paper_algorithms": paper_algorithms.paper_algorithms,
    "linear_oracle": linear_oracle.linear_oracle,
    "small_matrices": ensembles.small_matrices,
    "vectors": ensembles.vectors,
    "completer": completer.row,
    "one_row": classifier.row,
    "ranking": ranking.row,
    "scale": resources.scale,
    "threads": movielens.two_threads,
    "startup": resources.startup,
    "cold": first_use.cold,
    "plain": first_use.plain,
}
