"""The trace-norm ball, dense and factored, against conic solvers and plain decompositions."""

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_gauge, check_gauge_subgradient, check_projection
from driftwolfe.domains import trace_norm_ball
from driftwolfe.points import FactoredMatrix


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def low_rank_plus_sparse(shape, rng, rank=3, stored=40):
    m, n = shape
    factors = FactoredMatrix(
        rng.standard_normal((m, rank)), np.ones(rank), rng.standard_normal((n, rank))
    )
    rows, cols = rng.integers(0, m, stored), rng.integers(0, n, stored)
    return factors + FactoredMatrix.from_entries(shape, rows, cols, rng.standard_normal(stored))
