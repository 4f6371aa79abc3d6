"""Factored matrices agree with dense arithmetic on every device, and stay small where dense ones cannot."""

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from devices import EVERYWHERE
from driftwolfe.points import FactoredMatrix, distance, inner, norm
from driftwolfe.points.devices import device_named, device_of, to_host
from driftwolfe.points.lanczos import leading_triplet
from points.factored_cases import RELATIVE, close, lives_on, parts
from reliability.children import python

RUNS_ON = EVERYWHERE


@st.composite
def cases(draw):
    shape = (draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    scale = 10.0 ** draw(st.integers(-6, 6))
    return [
        parts(
            shape,
            draw(st.integers(0, 4)),
            draw(st.integers(0, 15)),
            draw(st.integers(0, 2**32 - 1)),
            scale,
        )
        for _ in range(2)
    ]


@settings(max_examples=25)
@given(case=cases(), scalar=st.floats(-1e3, 1e3))
def test_arithmetic_agrees_with_dense_arithmetic(place, case, scalar):
    (A, dense_a), (B, dense_b) = case
    A, B = A.to(place), B.to(place)
    scale = np.abs(dense_a).max() + np.abs(dense_b).max() + A.nuclear_norm_bound()
    results = {
        "sum": (A + B, dense_a + dense_b),
        "difference": (A - B, dense_a - dense_b),
        "negative": (-A, -dense_a),
        "shared factors": (3.0 * A - 0.5 * A, 2.5 * dense_a),
        "transpose": (A.T, dense_a.T),
        "twice": (A.T.T, dense_a),
        "transposes": ((A + B).T - B.T, dense_a.T),
        "low rank": (A.low_rank, dense_a - (A - A.low_rank).to("cpu").toarray()),
    }
    for name, (actual, expected) in results.items():
        assert lives_on(actual, place), name
        close(actual, expected, 10 * scale)
    close(scalar * A, scalar * dense_a, abs(scalar) * scale)
    close(A * scalar - B / 3.0, scalar * dense_a - dense_b / 3.0, 1e3 * scale)
    assert A.toarray().shape == A.shape == dense_a.shape


@settings(max_examples=25)
@given(case=cases())
def test_measures_agree_with_dense_arithmetic(place, case):
    (A, dense_a), (B, dense_b) = case
    A, B = A.to(place), B.to(place)
    sizes = [each.nuclear_norm_bound() for each in (A, B)]
    assert A.norm() == pytest.approx(np.linalg.norm(dense_a), rel=RELATIVE, abs=1e-13 * sizes[0])
    close(A.inner(B), np.vdot(dense_a, dense_b), sizes[0] * sizes[1])
    close(A.inner(dense_b), np.vdot(dense_a, dense_b), sizes[0] * np.linalg.norm(dense_b))
    close(A.inner(device_named(place).put(dense_b)), np.vdot(dense_a, dense_b), np.prod(sizes))
    nuclear = np.linalg.svd(dense_a, compute_uv=False).sum()
    assert nuclear <= sizes[0] * (1 + 1e-12)
    low_rank = A.low_rank
    expected = np.linalg.svd(to_host(low_rank.toarray()), compute_uv=False).sum()
    assert low_rank.nuclear_norm() == pytest.approx(expected, rel=1e-9, abs=1e-13 * sizes[0])
    away = A - B
    lost = 1e-14 * sum(sizes)
    assert away.norm() == pytest.approx(np.linalg.norm(dense_a - dense_b), rel=1e-9, abs=lost)


@settings(max_examples=25)
@given(case=cases(), fraction=st.floats(0.0, 1.5))
def test_recompression_is_exact_and_truncation_tells_its_error(place, case, fraction):
    A, dense = case[0]
    A = A.to(place)
    scale = A.nuclear_norm_bound() + 1e-300
    compact = A.recompress()
    assert lives_on(compact, place) and compact.orthonormal
    close(compact, dense, scale)
    unit = to_host(compact.U.T @ compact.U), to_host(compact.V.T @ compact.V)
    for gram in unit:
        np.testing.assert_allclose(gram, np.eye(compact.rank), atol=1e-12)
    values = np.linalg.svd(to_host(A.low_rank.toarray()), compute_uv=False)
    np.testing.assert_allclose(compact.s, values[: compact.rank], atol=1e-12 * scale)
    cut, error = A.truncate(fraction * scale)
    assert error <= fraction * scale and lives_on(cut, place)
    lost = np.linalg.norm(to_host(cut.toarray()) - dense)
    assert lost == pytest.approx(error, rel=1e-9, abs=1e-12 * scale)


def test_products_with_blocks_of_any_kind(place, device):
    H, dense = parts()
    A, rng = H.to(place), np.random.default_rng(1)
    right, left = rng.standard_normal((7, 2)), rng.standard_normal((9, 3))
    for there in (np.asarray, np.asfortranarray, device.put, lambda x: device.put(x.T).T):
        close(A @ there(right), dense @ right, 10)
        close(A.transpose_times(there(left)), dense.T @ left, 10)
        close(there(left).T @ A, left.T @ dense, 10)
    for there in (np.asarray, device.put):
        close(A @ there(right[:, 0]), dense @ right[:, 0], 10)
        close(A.transpose_times(there(left[:, 0])), dense.T @ left[:, 0], 10)
        close(there(left[:, 0]) @ A, left[:, 0] @ dense, 10)
    for whole in (np.arange(7), list(range(7)), device.put(np.arange(7))):
        close(A @ whole, dense @ np.arange(7), 100)
    rough = right.astype(np.float32)
    close(A @ rough, dense @ rough, 10)
    answers = A @ right, A.transpose_times(left), left.T @ A, right[:, 0] @ A.T
    assert all(device_of(answer) is device for answer in answers)
    close(H @ device.put(right), dense @ right, 10)
    close(H.transpose_times(device.put(left)), dense.T @ left, 10)


def test_dense_operands_of_any_kind(place, device):
    H, dense = parts()
    A, X = H.to(place), np.random.default_rng(1).standard_normal((9, 7))
    for there in (np.asarray, device.put):
        Y = there(X)
        for actual, expected in (
            (A + Y, dense + X),
            (Y + A, dense + X),
            (A - Y, dense - X),
            (Y - A, X - dense),
        ):
            assert device_of(actual) is device
            close(actual, expected, 10)
        for answer in (A.inner(Y), inner(A, Y), inner(Y, A), H.inner(Y)):
            assert answer == pytest.approx(np.vdot(dense, X))
        assert inner(Y, X) == pytest.approx(inner(X, Y)) == pytest.approx(np.vdot(X, X))
        assert norm(Y) == pytest.approx(np.linalg.norm(X))
        assert distance(A, Y) == pytest.approx(np.linalg.norm(dense - X))
    assert A.inner(np.ones((9, 7), dtype=int)) == pytest.approx(dense.sum())
    assert A.inner(device.single(device.put(np.ones((9, 7))))) == pytest.approx(dense.sum())


def test_what_is_on_the_host_moves_to_the_device(place):
    (H, dense_h), (other, dense_o) = parts(), parts(seed=1)
    A = other.to(place)
    for mixed, expected in (
        (A + H, dense_o + dense_h),
        (H + A, dense_o + dense_h),
        (A - H, dense_o - dense_h),
        (H - A, dense_h - dense_o),
        (FactoredMatrix.combination([2.0, 3.0], [H, A]), 2 * dense_h + 3 * dense_o),
        (FactoredMatrix.combination([2.0, 3.0], [A, H]), 2 * dense_o + 3 * dense_h),
    ):
        assert lives_on(mixed, place)
        close(mixed, expected, 100)
    assert A.inner(H) == pytest.approx(np.vdot(dense_o, dense_h))
    assert H.inner(A) == pytest.approx(np.vdot(dense_o, dense_h))


def test_moving_there_and_back_changes_nothing(place):
    H, dense = parts()
    there = H.recompress().to(place)
    assert lives_on(there, place) and there.orthonormal
    assert there.to(place) is there
    back = there.to("cpu")
    assert lives_on(back, "cpu") and back.orthonormal and sp.issparse(back.sparse)
    compact = H.recompress()
    np.testing.assert_array_equal(back.toarray(), compact.toarray())
    for part in ("indptr", "indices", "data"):
        one, other = getattr(back.sparse, part), getattr(compact.sparse, part)
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    close(back, dense, 10)


def test_differences_that_cancel_keep_their_digits(place):
    A, dense = parts((12, 9))
    A = A.to(place)
    moved = A + 1e-9 * A
    assert (moved - A).norm() == pytest.approx(1e-9 * np.linalg.norm(dense), rel=1e-4)
    stored = FactoredMatrix(np.empty((12, 0)), np.empty(0), np.empty((9, 0)), sp.csr_array(dense))
    assert (A - stored).norm() <= 1e-13 * A.nuclear_norm_bound()
    assert (A - A).norm() == 0 and (A - A).rank == 0


def test_a_step_away_and_back_leaves_no_factors(place):
    x, _ = parts((8, 6), stored=0)
    x = x.to(place)
    step = FactoredMatrix.from_entries((8, 6), [1, 2], [3, 4], x.device.put([5.0, 6.0]))
    y = x - 0.5 * step
    assert (y - x).rank == 0 and lives_on(y - x, place)
    close(y - x, -0.5 * to_host(step.toarray()))
    assert (y - 0.5 * x).rank == 3
    close(y - 0.5 * x, to_host(y.toarray()) - 0.5 * to_host(x.toarray()), 10)


def test_long_sums_are_recompressed(place):
    total, dense = FactoredMatrix.zeros((8, 6), place), np.zeros((8, 6))
    for seed in range(15):
        A, more = parts((8, 6), rank=3, stored=4, seed=seed)
        total, dense = total + A, dense + more
    assert total.rank <= 6 + 16 and lives_on(total, place)
    close(total, dense, 100)


def test_entries_also_where_stored_and_several_times(place, device):
    H, dense = parts((9, 7), stored=40)
    A, rng = H.to(place), np.random.default_rng(2)
    rows, cols = rng.integers(0, 9, 30), rng.integers(0, 7, 30)
    for there in (np.asarray, list, device.put):
        found = A.entries(there(rows), there(cols))
        assert device_of(found) is device
        close(found, dense[rows, cols], 10)
    stored = FactoredMatrix.from_entries((9, 7), [0, 8, 0], [1, 6, 1], device.put([2.0, 1.0, 3.0]))
    assert stored.nnz == 2 and lives_on(stored, place)
    assert to_host(stored.entries([0, 8, 0, 8, 3], [1, 6, 0, 1, 3])).tolist() == [5, 1, 0, 0, 0]
    assert len(A.entries([], [])) == 0


def test_combinations_put_factors_side_by_side(place):
    made = [parts(seed=seed, stored=seed) for seed in range(4)]
    weights = np.array([0.5, -1.0, 2.0, 0.0])
    total = FactoredMatrix.combination(weights, [A.to(place) for A, _ in made])
    assert total.rank == 12 and lives_on(total, place)
    close(total, sum(w * dense for w, (_, dense) in zip(weights, made, strict=True)), 100)


def test_copies_share_nothing_and_remember_everything(place):
    H, dense = parts()
    A = H.to(place)
    shallow = copy.copy(A)
    assert shallow.U is A.U and shallow.device is A.device
    for other in (A.copy(), copy.deepcopy(A), pickle.loads(pickle.dumps(A))):
        assert lives_on(other, place) and other.orthonormal == A.orthonormal
        close(other, dense, 10)
        for part in (other.U, other.s, other.V, other.sparse.data):
            part *= 3.0
        close(A, dense, 10)
    assert A.recompress().copy().orthonormal


def test_operands_are_never_changed(place):
    H, dense = parts()
    A = H.to(place)
    _ = A * 3.0, A + A, A - A, -A, A.recompress(), A.truncate(9.0), A.copy() * 2, A.single()
    _ = A.norm(), A.T @ np.ones(9), A.inner(A), A.entries([0], [0]), leading_triplet(A)
    close(A, dense, 10)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_single_precision_keeps_the_direction_at_any_scale(place, scale):
    H, dense = parts()
    rough = (scale * H.to(place)).single()
    assert str(rough.U.dtype) == str(rough.sparse.data.dtype)
    assert str(rough.U.dtype).removeprefix("torch.") == "float32"
    assert rough.s.dtype == np.float32
    found = to_host(rough.toarray()).astype(float)
    expected = dense / np.linalg.norm(dense)
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=1e-5)
    block = np.ones((7, 2), dtype=np.float32)
    product = to_host(rough @ block).astype(float)
    np.testing.assert_allclose(product, found @ block, atol=1e-4)
    back = to_host(rough.transpose_times(np.ones(9, dtype=np.float32)))
    np.testing.assert_allclose(back, found.sum(axis=0), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_norms_that_would_leave_the_range_when_squared(place, scale):
    H, dense = parts()
    A = scale * H.to(place)
    assert A.norm() == pytest.approx(scale * np.linalg.norm(dense), rel=1e-10)


def test_what_it_says_of_itself(place):
    H, _ = parts()
    A = H.to(place)
    assert repr(A) == repr(H) == f"FactoredMatrix(shape=(9, 7), rank=3, stored={H.nnz})"
    assert (A.nbytes, A.nnz, A.rank, A.shape) == (H.nbytes, H.nnz, H.rank, H.shape)
    assert repr(A.device) == f"Device('{place}')"
    with pytest.raises(ValueError, match="sparse part"):
        A.nuclear_norm()
    zero = FactoredMatrix.zeros((4, 3), place)
    assert lives_on(zero, place) and zero.norm() == zero.nuclear_norm() == 0.0
    close(zero, np.zeros((4, 3)))


def test_matrices_live_where_their_arrays_do(place, device):
    rng = np.random.default_rng(3)
    U, s, V = rng.standard_normal((5, 2)), rng.standard_normal(2), rng.standard_normal((4, 2))
    stored = sp.random_array((5, 4), density=0.4, rng=rng, format="coo")
    dense, put = (U * s) @ V.T, device.put
    for made in (
        FactoredMatrix(put(U), s, put(V)),
        FactoredMatrix(put(U), put(s), V),
        FactoredMatrix(put(U.T).T, s[::1], put(V)),
    ):
        assert lives_on(made, place)
        close(made, dense, 10)
    assert lives_on(FactoredMatrix(U, s, put(V)), "cpu")
    for sparse in (stored, FactoredMatrix(put(U), s, put(V), stored).sparse):
        both = FactoredMatrix(put(U), s, V, sparse)
        assert lives_on(both, place)
        close(both, dense + stored.toarray(), 10)
        close(FactoredMatrix(U, s, V, sparse), dense + stored.toarray(), 10)
    close(FactoredMatrix.from_dense(put(dense)), dense, 10)
    assert lives_on(FactoredMatrix.from_dense(put(dense)), place)
    assert FactoredMatrix.from_dense(put(dense)).rank == 2


LARGE = """
import resource
import numpy as np
import driftwolfe as dw
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.lanczos import leading_triplet

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
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(python("-c", LARGE).stdout) * unit < 2 * 2**30


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: FactoredMatrix(t([[np.nan]]), [1.0], [[1.0]]), "U has entries that are not"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0], t([[np.inf]])), "V has entries that are not"),
        (lambda t: FactoredMatrix(t([[1.0]]), t([np.nan]), [[1.0]]), "s has entries that are not"),
        (lambda t: FactoredMatrix(t([[1j]]), [1.0], [[1.0]]), "U must be .* of real"),
        (lambda t: FactoredMatrix(t([1.0]), [1.0], t([[1.0]])), "two axes"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0, 2.0], t([[1.0]])), "agree on the rank"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0], t([[1.0]]), sp.eye_array(2)), "shape"),
        (lambda t: FactoredMatrix.from_entries((2, 2), t([2]), [0], t([1.0])), r"rows .* 0\.\.1"),
        (lambda t: FactoredMatrix.from_entries((2, 2), [0], t([-1]), t([1.0])), r"cols .* 0\.\.1"),
        (lambda t: FactoredMatrix.from_entries((2, 2), t([0.5]), [0], t([1.0])), "whole numbers"),
        (lambda t: FactoredMatrix.from_entries((2, 2), t([0, 1]), [0], t([1.0])), "one length"),
        (lambda t: FactoredMatrix.from_entries((2, 2), [0], [0], t([np.nan])), "not finite"),
        (lambda t: FactoredMatrix.from_entries((2, 2), [0], [0], t([1.0, 2.0])), "shape"),
        (lambda t: FactoredMatrix.from_entries((2,), [0], [0], t([1.0])), "two sizes"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0], [[1.0]]).entries(t([1]), [0]), r"in 0\.\.0"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0], [[1.0]]) + t([1.0, 2.0]), "shapes differ"),
        (lambda t: FactoredMatrix(t([[1.0]]), [1.0], [[1.0]]).inner(t([[1.0, 2.0]])), "differ"),
        (lambda t: FactoredMatrix.zeros((2, 3)) + FactoredMatrix.zeros((3, 2)), "shapes differ"),
        (lambda t: FactoredMatrix.from_dense(t([[np.nan]])), "not finite"),
    ],
)
def test_bad_input_is_refused(device, make, message):
    def put(values):
        return device.put(np.asarray(values))

    with pytest.raises(ValueError, match=message):
        make(put)


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
    assert A.nbytes == sum(part.nbytes for part in A.stored_arrays)
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


@given(st.integers(0, 5), st.integers(0, 20), st.floats(-10, 10))
def test_what_is_called_orthonormal_is_and_measures_the_same(rank, stored, scalar):
    A, _ = parts((9, 7), rank, stored)
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


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_quick_bound_is_attained_by_the_identity(n):
    # Frobenius norm sqrt(n), rank n, nuclear norm n.
    identity = FactoredMatrix.from_entries((n, n + 1), range(n), range(n), np.ones(n))
    assert identity.nuclear_norm_bound() == pytest.approx(n)
    assert (identity * -2.0).nuclear_norm_bound() == pytest.approx(2 * n)
