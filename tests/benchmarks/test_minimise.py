"""The benchmark of `minimise`: what it compares is the same problem, solved."""

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks import minimise


@pytest.mark.parametrize("problem", list(minimise.problems()), ids=lambda problem: problem.name)
def test_the_equations_told_to_scipy_are_the_set(problem):
    rng = np.random.default_rng(0)
    for _ in range(5):
        vertex = problem.domain.lmo(rng.normal(size=problem.domain.shape)).ravel()
        np.testing.assert_allclose(problem.A @ vertex, problem.b, atol=1e-12)
        assert vertex.min() >= 0.0 and vertex.max() <= problem.upper
    assert problem.A.shape[1] - np.linalg.matrix_rank(problem.A) == problem.domain.dimension
    assert dw.minimise(problem.f, problem.domain, minimise.GAP).converged


def test_the_published_example_takes_few_calls():
    (_, printed), *ours = minimise.published()
    assert len(ours) == 5 and all(int(calls) < int(printed) for _, calls in ours)
