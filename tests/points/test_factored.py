"""Factored matrices agree with dense arithmetic, and stay small where dense ones could not exist."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe.points import FactoredMatrix, leading_triplet

RELATIVE = 1e-10


@st.composite
def matrices(draw, shape=None):
    m, n = shape or (draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(0, 5))
    stored = draw(st.integers(0, 20))
    scale = 10.0 ** draw(st.integers(-6, 6))
    low_rank = FactoredMatrix(
        rng.standard_normal((m, rank)),
        scale * rng.standard_normal(rank),
        rng.standard_normal((n, rank)),
    )
    rows, cols = rng.integers(0, m, stored), rng.integers(0, n, stored)
    values = scale * rng.standard_normal(stored)
    return low_rank + FactoredMatrix.from_entries((m, n), rows, cols, values)


@st.composite
def pairs(draw):
    shape = (draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    return draw(matrices(shape)), draw(matrices(shape))


def close(actual, expected, scale):
    assert np.abs(actual - expected).max(initial=0.0) <= RELATIVE * scale


@given(pairs(), st.floats(-1e3, 1e3))
def test_arithmetic_agrees_with_dense_arithmetic(pair, scalar):
    A, B = pair
    dense_a, dense_b = A.toarray(), B.toarray()
    scale = np.abs(dense_a).max() + np.abs(dense_b).max()
    close((A + B).toarray(), dense_a + dense_b, scale)
    close((A - B).toarray(), dense_a - dense_b, scale)
    close((-A).toarray(), -dense_a, scale)
    close((scalar * A).toarray(), scalar * dense_a, abs(scalar) * scale)
    close((A * scalar - B / 3.0).toarray(), scalar * dense_a - dense_b / 3.0, 1e3 * scale)
    close(A.T.toarray(), dense_a.T, scale)
    close(A + dense_b, dense_a + dense_b, scale)
    close(dense_b - A, dense_b - dense_a, scale)


@given(pairs())
def test_inner_products_and_norms_agree_with_dense_arithmetic(pair):
    A, B = pair
    dense_a, dense_b = A.toarray(), B.toarray()
    norm_a, norm_b = np.linalg.norm(dense_a), np.linalg.norm(dense_b)
    assert A.norm() == pytest.approx(norm_a, rel=RELATIVE, abs=1e-300)
    parts = A.low_rank.norm() + np.linalg.norm(0.0 if A.sparse is None else A.sparse.data)
    parts_b = B.low_rank.norm() + np.linalg.norm(0.0 if B.sparse is None else B.sparse.data)
    close(A.inner(B), np.vdot(dense_a, dense_b), parts * parts_b)
    close(A.inner(dense_b), np.vdot(dense_a, dense_b), parts * norm_b)
    assert (A - B).norm() == pytest.approx(
        np.linalg.norm(dense_a - dense_b), rel=RELATIVE, abs=1e-14 * (parts + parts_b)
    )


@given(matrices())
def test_a_difference_that_cancels_keeps_its_digits(A):
    moved = A + 1e-9 * A
    expected = 1e-9 * np.linalg.norm(A.toarray())
    parts = A.low_rank.norm() + np.linalg.norm(0.0 if A.sparse is None else A.sparse.data)
    assert (moved - A).norm() == pytest.approx(expected, rel=1e-4, abs=1e-14 * parts)
    stored = sp.csr_array(A.toarray())
    same = FactoredMatrix(np.empty((A.shape[0], 0)), np.empty(0), np.empty((A.shape[1], 0)), stored)
    assert (A - same).norm() <= 1e-13 * parts


@given(matrices(), st.integers(0, 2**32 - 1))
def test_products_and_entries_agree_with_dense_arithmetic(A, seed):
    rng = np.random.default_rng(seed)
    m, n = A.shape
    dense = A.toarray()
    scale = np.abs(dense).max(initial=0.0) * (m + n) * 10 + 1e-300
    right, left = rng.standard_normal((n, 3)), rng.standard_normal((m, 2))
    close(A @ right, dense @ right, scale)
    close(A @ right[:, 0], dense @ right[:, 0], scale)
    close(A.transpose_times(left), dense.T @ left, scale)
    close(left.T @ A, left.T @ dense, scale)
    rows, cols = rng.integers(0, m, 15), rng.integers(0, n, 15)
    close(A.entries(rows, cols), dense[rows, cols], scale)


@given(matrices(), st.floats(0.0, 1.5))
def test_recompression_is_exact_and_truncation_tells_its_error(A, fraction):
    compact = A.recompress()
    scale = max(np.abs(A.low_rank.toarray()).max(initial=0.0), A.low_rank.norm()) + 1e-300
    close(compact.toarray(), A.toarray(), scale)
    assert compact.rank <= min(*A.shape, A.rank)
    np.testing.assert_allclose(compact.U.T @ compact.U, np.eye(compact.rank), atol=1e-12)
    assert (np.diff(compact.s) <= 0).all()
    nuclear = np.linalg.svd(A.low_rank.toarray(), compute_uv=False).sum()
    assert compact.s.sum() <= nuclear * (1 + 1e-12)
    cut, error = A.truncate(fraction * scale)
    assert error <= fraction * scale
    lost = np.linalg.norm(cut.toarray() - A.toarray())
    assert lost == pytest.approx(error, rel=1e-9, abs=1e-13 * scale)
    assert cut.s.sum() <= nuclear * (1 + 1e-12)


def test_scales_that_would_overflow_when_squared():
    for scale in (1e-150, 1e150):
        A = FactoredMatrix([[scale]], [1.0], [[3.0]]) + FactoredMatrix.from_entries(
            (1, 1), [0], [0], [scale]
        )
        assert A.norm() == pytest.approx(4.0 * scale, rel=1e-12)


LARGE = """
import resource
import numpy as np
import driftwolfe as dw
from driftwolfe.points import FactoredMatrix, leading_triplet

rng = np.random.default_rng(0)
shape, stored, rank = (150_000, 60_000), 400_000, 20
rows, cols = rng.integers(0, shape[0], stored), rng.integers(0, shape[1], stored)
A = FactoredMatrix(
    rng.standard_normal((shape[0], rank)), np.ones(rank), rng.standard_normal((shape[1], rank))
) + FactoredMatrix.from_entries(shape, rows, cols, rng.standard_normal(stored))
atom, error = dw.TraceNormBall(shape).lmo_with_error(A, accuracy=1e-2)
assert atom.rank == 1 and A.inner(atom) < 0 and error <= 1e-2 * A.norm()
assert abs(A.inner(A) / A.norm() ** 2 - 1) < 1e-10
assert A.entries(rows[:100], cols[:100]).shape == (100,)
assert (A + A).recompress().rank == rank
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def test_large_matrices_are_never_made_dense():
    """150,000 x 60,000 would be 72 GB dense; a whole process doing everything fits 2 GiB."""
    done = subprocess.run([sys.executable, "-c", LARGE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 2 * 2**30


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactoredMatrix(np.ones((2, 1)), [1.0, 2.0], np.ones((3, 1))), "agree on the rank"),
        (lambda: FactoredMatrix(np.ones(2), [1.0], np.ones((3, 1))), "two axes"),
        (lambda: FactoredMatrix([[np.nan]], [1.0], [[1.0]]), "not finite"),
        (lambda: FactoredMatrix([[1.0]], [1.0], [[1.0]], sp.eye_array(2)), "shape"),
        (lambda: FactoredMatrix.from_entries((2, 2), [2], [0], [1.0]), r"rows must lie in 0\.\.1"),
        (lambda: FactoredMatrix.from_entries((2, 2), [0], [-1], [1.0]), r"cols must lie in 0\.\.1"),
        (lambda: FactoredMatrix.from_entries((2, 2), [0.5], [0], [1.0]), "whole numbers"),
        (lambda: FactoredMatrix.from_entries((2, 2), [0, 1], [0], [1.0]), "one length"),
        (lambda: FactoredMatrix.from_entries((2, 2), [0], [0], [np.inf]), "not finite"),
        (lambda: FactoredMatrix.from_entries((2,), [0], [0], [1.0]), "two sizes"),
        (lambda: FactoredMatrix.zeros((2, 3)) + FactoredMatrix.zeros((3, 2)), "shapes differ"),
        (lambda: FactoredMatrix.zeros((2, 3)).inner(np.zeros((3, 2))), "shapes differ"),
        (lambda: FactoredMatrix.zeros((2, 3)).entries([2], [0]), r"rows must lie in 0\.\.1"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_operands_are_never_changed():
    A = FactoredMatrix.from_entries((2, 3), [0], [1], [2.0]) + FactoredMatrix(
        np.ones((2, 1)), [1.0], np.ones((3, 1))
    )
    before = A.toarray()
    _ = A * 3.0, A + A, A - A, -A, A.recompress(), A.truncate(9.0), A.copy() * 2
    np.testing.assert_array_equal(A.toarray(), before)


def test_repeated_entries_add_up_and_nbytes_counts_all_parts():
    A = FactoredMatrix.from_entries((2, 3), [0, 0], [1, 1], [2.0, 3.0])
    assert A.entries([0], [1]) == [5.0]
    assert A.nnz == 1
    assert A.nbytes == A.sparse.data.nbytes + A.sparse.indices.nbytes + A.sparse.indptr.nbytes
    with pytest.raises(ValueError, match="sparse part"):
        A.nuclear_norm()


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=5))
def test_combinations_put_factors_side_by_side(seeds):
    rng = np.random.default_rng(seeds)
    parts = [
        FactoredMatrix(rng.standard_normal((4, 3)), np.ones(3), rng.standard_normal((5, 3)))
        + FactoredMatrix.from_entries((4, 5), [seed % 4], [seed % 5], [1.0])
        for seed in seeds
    ]
    weights = rng.standard_normal(len(parts))
    total = FactoredMatrix.combination(weights, parts)
    expected = sum(w * part.toarray() for w, part in zip(weights, parts, strict=True))
    np.testing.assert_allclose(total.toarray(), expected, atol=1e-12)
    assert total.rank == 3 * len(parts)


@given(st.integers(0, 2**32 - 1), st.integers(0, 60))
def test_entries_given_in_any_order_and_several_times_add_up(seed, stored):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 9, 2)
    rows, cols = rng.integers(0, m, stored), rng.integers(0, n, stored)
    values = rng.standard_normal(stored)
    dense = np.zeros((m, n))
    np.add.at(dense, (rows, cols), values)
    A = FactoredMatrix.from_entries((m, n), rows, cols, values)
    np.testing.assert_allclose(A.toarray(), dense, atol=1e-14)
    assert A.nnz == len(set(zip(rows.tolist(), cols.tolist(), strict=True)))
    A.sparse.check_format()
    for i in range(m):
        assert (np.diff(A.sparse[[i]].indices) > 0).all()


def test_many_entries_take_the_other_way_to_the_same_matrix():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 40, 10_001), rng.integers(0, 30, 10_001)
    values = rng.standard_normal(10_001)
    dense = np.zeros((40, 30))
    np.add.at(dense, (rows, cols), values)
    many = FactoredMatrix.from_entries((40, 30), rows, cols, values)
    few = FactoredMatrix.from_entries((40, 30), rows[:-1], cols[:-1], values[:-1])
    last = FactoredMatrix.from_entries((40, 30), rows[-1:], cols[-1:], values[-1:])
    np.testing.assert_allclose(many.toarray(), dense, atol=1e-12)
    np.testing.assert_allclose((few + last).toarray(), dense, atol=1e-12)
    assert many.sparse.indices.dtype == few.sparse.indices.dtype == np.int32


@given(matrices(shape=(9, 7)), st.floats(-10, 10))
def test_what_is_called_orthonormal_is_and_measures_the_same(A, scalar):
    compact = A.recompress()
    shifted = scalar * compact + FactoredMatrix.from_entries((9, 7), [0, 3], [2, 2], [1.0, -1.0])
    for B in (compact, shifted, shifted.T, shifted.copy(), shifted.low_rank, compact.recompress()):
        assert B.orthonormal
        np.testing.assert_allclose(B.U.T @ B.U, np.eye(B.rank), atol=1e-12)
        np.testing.assert_allclose(B.V.T @ B.V, np.eye(B.rank), atol=1e-12)
        assert B.norm() == pytest.approx(np.linalg.norm(B.toarray()), rel=1e-9, abs=1e-12)
    expected = np.linalg.svd(compact.low_rank.toarray(), compute_uv=False).sum()
    assert compact.low_rank.nuclear_norm() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert not (compact + A.low_rank).orthonormal or not A.rank or not compact.rank


def test_a_step_away_and_back_leaves_no_factors():
    rng = np.random.default_rng(1)
    x = FactoredMatrix(*(rng.standard_normal(s) for s in ((8, 3), (3,), (6, 3))))
    step = FactoredMatrix.from_entries((8, 6), [1, 2], [3, 4], [5.0, 6.0])
    y = x - 0.5 * step
    assert (y - x).rank == 0
    np.testing.assert_array_equal((y - x).toarray(), -0.5 * step.toarray())
    half = y - 0.5 * x
    assert half.rank == 3
    np.testing.assert_allclose(half.toarray(), y.toarray() - 0.5 * x.toarray(), atol=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_single_precision_keeps_the_direction_at_any_scale(scale):
    rng = np.random.default_rng(2)
    A = FactoredMatrix(*(rng.standard_normal(s) for s in ((8, 3), (3,), (6, 3))))
    A = scale * (A + FactoredMatrix.from_entries((8, 6), [1], [3], [5.0]))
    rough, exact = A.single(), A.toarray() / scale
    assert rough.U.dtype == rough.sparse.dtype == np.float32
    dense = rough.toarray()
    np.testing.assert_allclose(
        dense / np.linalg.norm(dense), exact / np.linalg.norm(exact), atol=1e-5
    )


def test_arrays_of_any_layout_will_do():
    rng = np.random.default_rng(3)
    U, s, V = (rng.standard_normal(size) for size in ((8, 6), 6, (10, 6)))
    A = FactoredMatrix(np.asfortranarray(U)[:, ::2], s[::-2], V[::-1, ::2])
    places = np.arange(16).reshape(8, 2) % 8
    places.setflags(write=False)
    dense = (U[:, ::2] * s[::-2]) @ V[::-1, ::2].T
    np.testing.assert_allclose(
        A.entries(places[:, 0], places[:, 1]), dense[places.T[0], places.T[1]]
    )
    B = A + FactoredMatrix.from_entries(
        (8, 10), places[::-1, 0], places[::2, 1].repeat(2), s[[0] * 8]
    )
    assert B.norm() == pytest.approx(np.linalg.norm(B.toarray()))
    assert leading_triplet(B.T).s == pytest.approx(np.linalg.norm(B.toarray(), 2))


def test_factors_that_cancel_without_a_sparse_part_keep_their_digits():
    # u v^T - (u + h w) v^T = -h w v^T: the square of h is lost in products of u and v.
    rng = np.random.default_rng(0)
    u, w = rng.standard_normal((2, 30))
    v = rng.standard_normal((20, 1))
    for h in (1e-4, 1e-6, 1e-9):
        U = np.column_stack((u, u + h * w))
        A = FactoredMatrix(U, np.array([1.0, -1.0]), np.hstack((v, v)))
        # What the factors say, in exact terms: their difference, to a rounding of u each.
        exact = np.linalg.norm(U[:, 0] - U[:, 1]) * np.linalg.norm(v)
        rounding = 100 * np.finfo(float).eps * np.linalg.norm(u) * np.linalg.norm(v)
        assert abs(A.norm() - exact) <= rounding


@given(matrices())
def test_the_quick_bound_on_the_nuclear_norm_is_one(A):
    exact = np.linalg.svd(A.toarray(), compute_uv=False).sum()
    assert A.nuclear_norm_bound() >= exact * (1 - 1e-12)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_quick_bound_is_attained_by_the_identity(n):
    # Frobenius norm sqrt(n), rank n, nuclear norm n.
    identity = FactoredMatrix.from_entries((n, n + 1), range(n), range(n), np.ones(n))
    assert identity.nuclear_norm_bound() == pytest.approx(n)
    assert (identity * -2.0).nuclear_norm_bound() == pytest.approx(2 * n)
