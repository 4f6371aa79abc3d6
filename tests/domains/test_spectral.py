"""The trace-norm ball, dense and factored, against conic solvers and plain decompositions."""

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_projection
from driftwolfe.domains import spectral
from driftwolfe.points import FactoredMatrix, devices
from learners.families import project_trace_norm


def low_rank_plus_sparse(shape, rng, rank=3, stored=40):
    m, n = shape
    factors = FactoredMatrix(
        rng.standard_normal((m, rank)), np.ones(rank), rng.standard_normal((n, rank))
    )
    rows, cols = rng.integers(0, m, stored), rng.integers(0, n, stored)
    return factors + FactoredMatrix.from_entries(shape, rows, cols, rng.standard_normal(stored))


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (3, 4), (6, 4)])
def test_lmo_against_a_conic_solver(shape, rng):
    ball = dw.TraceNormBall(shape, radius=2.5)
    X, A = cp.Variable(shape), cp.Parameter(shape)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(A, X))), [cp.normNuc(X) <= 2.5])
    for _ in range(3):
        A.value = rng.standard_normal(shape)
        problem.solve(solver=cp.CLARABEL)
        answer = ball.lmo(A.value)
        assert np.vdot(A.value, answer) == pytest.approx(problem.value, rel=1e-6)
        assert np.linalg.matrix_rank(answer) == 1


def test_projection_against_a_conic_solver(rng):
    check_projection(dw.TraceNormBall((4, 5), radius=3.0), lambda X: [cp.normNuc(X) <= 3.0], rng)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 4), (1, 6)])
def test_stacks_of_small_matrices_are_projected_as_by_their_decompositions(shape, rng):
    """Clearly inside, doubtful by the rows' norms though inside, and outside."""
    ball = dw.TraceNormBall(shape, radius=2.0)
    directions = rng.standard_normal((12, *shape))
    directions[6:] = [np.outer(d[:, 0], d[0]) for d in directions[6:]]  # rank 1
    sizes = np.array([0.01, 0.5, 0.99, 1.01, 3.0, 100.0] * 2)
    trace_norms = np.linalg.norm(directions, "nuc", axis=(1, 2))
    stack = directions * (2.0 * sizes / trace_norms)[:, None, None]
    before = stack.copy()
    projected = ball.project_many(stack)
    for answer, matrix in zip(projected, stack, strict=True):
        np.testing.assert_allclose(answer, project_trace_norm(matrix, 2.0), rtol=0, atol=1e-13)
    np.testing.assert_array_equal(projected[[0, 6]], stack[[0, 6]])
    np.testing.assert_array_equal(stack, before)
    assert not np.shares_memory(projected, stack)


@pytest.mark.parametrize("shape", [(30, 40), (70, 60), (260, 210)])
def test_factored_and_dense_points_get_the_same_answers(shape, rng):
    """The larger shapes go through Lanczos and through the Gram matrix."""
    ball = dw.TraceNormBall(shape, radius=25.0, representation="factored")
    y = low_rank_plus_sparse(shape, rng)
    dense = y.toarray()
    s = np.linalg.svd(dense, compute_uv=False)
    assert ball.gauge(y) == pytest.approx(s.sum() / 25.0, rel=1e-9)
    assert ball.lmo(y).inner(y) == pytest.approx(-25.0 * s[0], rel=1e-9)
    assert np.vdot(ball.lmo(dense), dense) == pytest.approx(-25.0 * s[0], rel=1e-9)
    expected = project_trace_norm(dense, 25.0)
    np.testing.assert_allclose(ball.project(y).toarray(), expected, atol=1e-6)
    np.testing.assert_allclose(ball.project(dense), expected, atol=1e-6)
    assert isinstance(ball.project(y), FactoredMatrix)
    np.testing.assert_allclose(
        ball.gauge_subgradient(y).toarray(), ball.gauge_subgradient(dense), atol=1e-6
    )


def test_the_error_of_a_rough_oracle_is_a_true_bound(rng):
    shape = (300, 200)
    ball = dw.TraceNormBall(shape, radius=2.0)
    y = low_rank_plus_sparse(shape, rng, rank=30, stored=3000)
    best = -2.0 * np.linalg.norm(y.toarray(), 2)
    for accuracy in (0.3, 0.03, 1e-6):
        atom, error = ball.lmo_with_error(y, accuracy)
        assert best <= atom.inner(y) + 1e-9 <= best + error + 2e-9
        assert error <= accuracy * -best


@pytest.mark.parametrize("spike", [pytest.param(1.5, marks=pytest.mark.slow), 1.25])
@pytest.mark.parametrize(
    ("representation", "accuracy", "trials"),
    [
        *(("factored", 0.1, 600), ("dense", 0.3, 200)),
        pytest.param("factored", 0.3, 600, marks=pytest.mark.slow),
        pytest.param("dense", 0.1, 200, marks=pytest.mark.slow),
    ],
)
def test_a_rough_oracle_misses_no_more_often_than_it_says(
    representation, accuracy, trials, spike, rng
):
    """At most once in 1,000 calls; 6 misses in 600 trials would have a chance of 5e-5."""
    (m, n), missed = (150, 200), 0
    ball = dw.TraceNormBall((m, n), radius=1.0, representation=representation)
    U, V = (np.linalg.qr(rng.standard_normal((size, m)))[0] for size in (m, n))
    for trial in range(trials):  # the numbers of a matrix seed the oracle's start
        s = np.r_[spike, np.linspace(1.0, 0.5, m - 1) + 1e-9 * trial]
        if representation == "factored":
            direction = FactoredMatrix.from_orthonormal(U, s, V)
            atom, error = ball.lmo_with_error(direction, accuracy)
            value = -atom.inner(direction)
        else:
            direction = (U * s) @ V.T
            atom, error = ball.lmo_with_error(direction, accuracy)
            value = -float(np.vdot(atom, direction))
        assert error <= accuracy * spike
        missed += value + error < spike * (1 - 1e-9)
    assert missed <= 5


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])  # squares of two leave the range of numbers
def test_a_vertex_that_is_enough_needs_no_certificate(scale, rng):
    """Below `enough` it is near the minimiser, in fewer products; else nothing changes."""
    ball = dw.TraceNormBall((150, 200), radius=2.0)
    direction = scale * low_rank_plus_sparse((150, 200), rng, rank=30, stored=3000)
    best = -2.0 * np.linalg.norm(direction.toarray() / scale, 2) * scale

    def asked(enough):
        before = devices.counted_products()
        atom, error = ball.lmo_with_error(direction, 1e-3, enough)
        return atom.inner(direction), error, devices.counted_products() - before

    value, error, products = asked(None)
    assert best * (1 + 1e-9) <= value <= best + error
    for share in (0.0, 0.5, 0.9):
        rough, unknown, fewer = asked(share * best)
        assert unknown == np.inf
        assert rough <= share * best
        assert rough - best <= 0.1 * -best
        assert fewer < 0.8 * products
    assert asked(1.01 * best) == (value, error, products)


def test_representation_follows_the_size_unless_told():
    kinds = {"dense": np.ndarray, "factored": FactoredMatrix}
    shapes = {(100, 120): "dense", (80, 151): "factored"}  # 12,000 entries and 12,080
    shapes |= {(64, 1000): "dense", (1001, 64): "factored"}  # 64,000 and 64,064
    for shape, chosen in shapes.items():
        for told, kind in (("auto", kinds[chosen]), *kinds.items()):
            assert isinstance(dw.TraceNormBall(shape, representation=told).origin(), kind)


def test_what_would_be_too_large_says_what_to_use_instead(monkeypatch, rng):
    monkeypatch.setattr(spectral, "FULL_SVD_ENTRIES", 100)
    ball = dw.TraceNormBall((30, 40))
    with pytest.raises(NotImplementedError, match="infeasible_projection"):
        ball.project(low_rank_plus_sparse((30, 40), rng))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3, 4), 0.0), "radius"),
        (((3,), 1.0), "a matrix has two sizes, got shape"),
        (((3, 0), 1.0), "shape"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dw.TraceNormBall(*arguments)


def test_bad_points_are_refused():
    ball = dw.TraceNormBall((3, 4))
    with pytest.raises(ValueError, match=r"shape \(3, 4\)"):
        ball.lmo(FactoredMatrix.zeros((4, 3)))
    with pytest.raises(ValueError, match="representation"):
        dw.TraceNormBall((3, 4), representation="sparse")


@pytest.mark.parametrize("shape", [(90, 300), (300, 90)])
@pytest.mark.parametrize("stored", [1, 20, 60, 5000])
def test_sparse_steps_from_low_rank_points_project_as_dense_ones_do(shape, stored):
    """Few lines with entries are decomposed by themselves, many as a dense matrix."""
    rng = np.random.default_rng(stored)
    ball = dw.TraceNormBall(shape, radius=3.0)
    x = FactoredMatrix(*(rng.standard_normal(s) for s in ((shape[0], 4), (4,), (shape[1], 4))))
    rows, cols = (rng.integers(0, size, stored) for size in shape)
    y = x + FactoredMatrix.from_entries(shape, rows, cols, rng.standard_normal(stored))
    expected = project_trace_norm(y.toarray(), 3.0)
    np.testing.assert_allclose(ball.project(y).toarray(), expected, atol=1e-9)
    assert ball.gauge(y) == pytest.approx(np.linalg.norm(y.toarray(), "nuc") / 3.0, rel=1e-10)
    assert not ball.contains(y)


@pytest.mark.parametrize("shape", [(210, 260), (260, 210)])
@pytest.mark.parametrize("touched", ["new", "held", "both"])
def test_a_few_entries_on_a_projected_point_project_as_a_dense_matrix_does(shape, touched):
    """Rows that the factors span already, as an isolated entry's, add nothing to them."""
    rng, radius = np.random.default_rng(3), 40.0
    ball = dw.TraceNormBall(shape, radius)
    start = FactoredMatrix.from_entries(
        shape, *(rng.integers(0, 100, 60) for _ in range(2)), [9.0] * 60
    )
    x = ball.project(start)  # isolated entries: unit vectors among its factors
    lines = {"new": (100, 200), "held": (0, 100), "both": (0, 200)}[touched]
    places = [rng.integers(*lines, 30) for _ in range(2)]
    y = x + FactoredMatrix.from_entries(shape, *places, rng.standard_normal(30))
    for point in (y, 0.01 * y + x.to("cpu"), y - FactoredMatrix(x.U, 0.5 * x.s, x.V)):
        found, expected = ball.project(point), project_trace_norm(point.toarray(), radius)
        np.testing.assert_allclose(found.toarray(), expected, atol=1e-9)
        if found.orthonormal:
            for factor in (found.U, found.V):
                np.testing.assert_allclose(factor.T @ factor, np.eye(found.rank), atol=1e-11)


def test_many_small_steps_keep_factors_orthonormal():
    """Errors of a projection that starts from the last one's factors do not grow."""
    rng, ball = np.random.default_rng(0), dw.TraceNormBall((220, 240), 30.0)
    x, dense = ball.origin(), np.zeros((220, 240))
    for _ in range(25):
        places = rng.integers(0, 220, 25), rng.integers(0, 240, 25)
        step = FactoredMatrix.from_entries((220, 240), *places, rng.standard_normal(25))
        x = ball.project(x + step)
        dense = project_trace_norm(dense + step.toarray(), 30.0)
    np.testing.assert_allclose(x.toarray(), dense, atol=1e-8)
    for factor in (x.U, x.V):
        np.testing.assert_allclose(factor.T @ factor, np.eye(x.rank), atol=1e-10)
