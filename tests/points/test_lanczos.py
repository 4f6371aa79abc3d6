"""The leading singular triplet against full and ARPACK decompositions."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from devices import EVERYWHERE, needs_torch
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import device_named, device_of, to_host
from driftwolfe.points.lanczos import (
    _FactoredBasis,
    _seed,
    lanczos,
    leading_triplet,
    leading_triplet_of_each,
)
from points.factored_cases import parts

RUNS_ON = EVERYWHERE


def sparse_plus_low_rank(m, n, stored, rank, seed=0):
    rng = np.random.default_rng(seed)
    S = sp.random(m, n, density=stored / (m * n), format="csr", random_state=rng)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    return FactoredMatrix(U, np.linspace(0.1, 1.0, rank) / np.sqrt(m * n), V, S)


def check_triplet(found, dense, place):
    u, v = to_host(found.u), to_host(found.v)
    assert device_of(found.u) is device_of(found.v) is device_named(place)
    expected = np.linalg.norm(dense, 2)
    np.testing.assert_allclose(found.s, expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose([u @ u, v @ v], 1.0, atol=1e-9)
    np.testing.assert_allclose(dense @ v, u * found.s, atol=1e-7 * expected)
    assert np.linalg.norm(dense.T @ u - found.s * v) <= 1.1e-8 * expected + 1e-12


SHAPES = [(1, 1), (1, 5), (5, 1), (7, 9), (20, 15), (60, 50), (60, 130), (200, 131)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("rank", "stored"), [(1, 0), (2, 0), (9, 0), (0, 200), (5, 200)])
def test_against_numpy(place, device, shape, rank, stored):
    """A Krylov space ends with the rank."""
    H, dense = parts(shape, rank, stored)
    A = H.to(place)
    for operator, matrix in ((A, dense), (A.T, dense.T), (device.put(dense), dense)):
        check_triplet(leading_triplet(operator), matrix, place)


@pytest.mark.parametrize("shape", [(60, 5), (5, 60)])
def test_a_short_side_is_decomposed_at_once(shape):
    dense = np.random.default_rng(0).standard_normal(shape)
    assert leading_triplet(dense).products == 5


def test_a_start_in_an_invariant_space_ends_the_run(place, device):
    """Where singular values are alike, one step spans what a start can reach."""
    n = 60
    unit = np.linalg.qr(np.random.default_rng(2).standard_normal((120, n)))[0]
    A = FactoredMatrix(device.put(np.eye(n)), np.full(n, 2.0), device.put(np.eye(n)))
    two = np.repeat([3.0, 1.0], [1, n - 1])
    other = A * 0.0 + FactoredMatrix(A.U, two, A.V)
    entry = FactoredMatrix.from_entries((n, n), [7], [9], device.put([-5.0]))
    one = np.zeros((n, n))
    one[7, 9] = -5.0
    pairs = ((A, 2.0 * np.eye(n)), (other, np.diag(two)), (entry, one), (device.put(unit), unit))
    for operator, dense in pairs:
        check_triplet(leading_triplet(operator), dense, place)
    assert leading_triplet(A).error <= 1e-9
    for nothing in (FactoredMatrix.zeros((90, 70), place), device.put(np.zeros((90, 70)))):
        zero = leading_triplet(nothing)
        assert zero.s == zero.error == 0.0
        for vector in (zero.u, zero.v):
            assert float(vector @ vector) == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-315, 1e-200, 1e-100, 1e-70, 1e70, 1e100, 1e200, 1e300])
def test_leading_triplets_at_any_scale(place, scale):
    """Squares of what is computed, which are fourth powers, leave the range of numbers."""
    H, dense = parts((70, 55))
    first = FactoredMatrix.from_entries((70, 55), [0] * 55, range(55), dense[0])
    dense[0] = 0.0
    A = (scale * (H - first)).to(place)
    expected = np.linalg.svd(dense, compute_uv=False)[0]
    for operator in (A, A.device.put(scale * dense)):
        found = leading_triplet(operator)
        assert found.s == pytest.approx(scale * expected, rel=1e-6)
        assert found.error <= 1e-6 * found.s
        np.testing.assert_allclose(to_host(found.u) @ dense @ to_host(found.v), expected, rtol=1e-6)


def test_leading_triplets_of_several_matrices_are_those_of_each(place):
    made = [parts((70, 55), rank, stored, rank) for rank, stored in ((3, 0), (1, 40), (5, 9))]
    found = leading_triplet_of_each([A.to(place) for A, _ in made], [1e-8, 1e-4, 1e-8])
    for pair, tolerance, (_, dense) in zip(found, (1e-8, 1e-4, 1e-8), made, strict=True):
        values = np.linalg.svd(dense, compute_uv=False)
        assert pair.s == pytest.approx(values[0], rel=tolerance)
        assert pair.error <= tolerance * pair.s
        u, v = to_host(pair.u), to_host(pair.v)
        np.testing.assert_allclose(dense @ v, pair.s * u, atol=1e-9 * values[0])
        assert np.linalg.norm(dense.T @ u - pair.s * v) <= 1.1 * tolerance * pair.s + 1e-9


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3, 1e-6, 1e-10])
def test_the_error_is_a_true_bound(tolerance):
    A = sparse_plus_low_rank(300, 200, 3000, 20)
    found = leading_triplet(A, tolerance=tolerance)
    exact = np.linalg.svd(A.toarray(), compute_uv=False)[0]
    assert found.error <= tolerance * found.s
    assert found.s <= exact * (1 + 1e-12)
    assert exact <= found.s + found.error + 1e-12
    residual = np.linalg.norm(A.transpose_times(found.u) - found.v * found.s)
    assert residual <= found.error * (1 + 1e-6) + 1e-12
    if tolerance < 0.05:  # a rough error is also a bound on what may have been missed
        np.testing.assert_allclose(residual, found.error, rtol=1e-6, atol=1e-12)


def test_against_svds_on_sparse_plus_low_rank():
    A = sparse_plus_low_rank(500, 800, 20_000, 30)
    expected = spla.svds(A.toarray(), 4, return_singular_vectors=False, random_state=0)[-1]
    np.testing.assert_allclose(leading_triplet(A).s, expected, rtol=1e-9)


def test_restarts_when_the_basis_is_full(monkeypatch):
    from driftwolfe.points import lanczos

    monkeypatch.setattr(lanczos, "_LARGEST_BASIS", 12)
    A = sparse_plus_low_rank(200, 150, 3000, 10)
    exact = np.linalg.svd(A.toarray(), compute_uv=False)[0]
    for operator in (A, A.toarray()):
        np.testing.assert_allclose(leading_triplet(operator, tolerance=1e-7).s, exact, rtol=1e-10)


def test_a_spent_budget_is_told_by_the_error(monkeypatch):
    A = sparse_plus_low_rank(300, 200, 3000, 20)
    monkeypatch.setattr("driftwolfe.points.lanczos._MOST_PRODUCTS", 6)
    found = leading_triplet(A, tolerance=1e-14)
    assert found.products <= 6
    assert found.error > 1e-14 * found.s


def test_repeats_exactly():
    A = sparse_plus_low_rank(100, 90, 900, 5)
    for operator in (A, A.toarray()):
        first, second = leading_triplet(operator), leading_triplet(operator)
        np.testing.assert_array_equal(first.v, second.v)
        assert _seed(operator) == _seed((1.0 + 1e-15) * operator) != _seed(A.low_rank)


@pytest.mark.parametrize("stored", [3, 30, 3000])
def test_another_matrix_starts_from_another_direction(stored):
    places = (np.arange(stored) % 60, np.arange(stored) // 60)
    A, B = (FactoredMatrix.from_entries((60, 70), *places, np.arange(stored) + k) for k in (1, 2))
    assert _seed(A) != _seed(B) and _seed(A.toarray()) != _seed(B.toarray())


def test_a_basis_may_be_filled_to_its_last_row():
    A = sparse_plus_low_rank(60, 50, 300, 4)
    basis = _FactoredBasis(A, np.eye(50)[0], 6)
    basis.grow(6)
    np.testing.assert_allclose(basis._inner, basis._rows @ A.V, atol=1e-12)
    np.testing.assert_allclose(basis._rows @ basis._rows.T, np.eye(7), atol=1e-12)


def spiked(spike, others, shape=(300, 260), seed=0):
    """A flat bulk of singular values 1 and one leading value."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((size, others + 1)))[0] for size in shape)
    return FactoredMatrix(U, np.r_[spike, np.ones(others)], V)


@pytest.mark.parametrize("spike", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("tolerance", [0.1, 0.02])
@pytest.mark.parametrize("dense", [False, True])
def test_no_larger_singular_value_is_missed_by_much(spike, tolerance, dense, monkeypatch):
    """What a run may miss with probability 0.001 at most; 3 in 200 trials has chance 0.001."""
    A = spiked(spike, 200)
    A = A.toarray() if dense else A
    missed = 0
    for seed in range(200 if not dense else 60):
        monkeypatch.setattr("driftwolfe.points.lanczos._seed", lambda A, seed=seed: seed)
        found = leading_triplet(A, tolerance=tolerance)
        assert found.error <= tolerance * found.s * (1 + 1e-12)
        rough = found.s + found.error if tolerance >= 0.05 else 1.05 * found.s
        missed += spike > rough * (1 + 1e-12)
    assert missed <= 2


ON_TORCH = pytest.param(6, "torch", marks=needs_torch)


@pytest.mark.parametrize(("number", "where"), [(1, "cpu"), ON_TORCH])
@pytest.mark.parametrize("tolerance", [0.3, 0.1, 0.05, 0.01])
def test_starts_that_are_not_too_unlucky_miss_nothing(number, where, tolerance):
    """No chance is left once a start's leading component is at least the delta of the proof.

    Of several starts that may be larger: that all are below it has the same small probability.
    """
    n, spike = 260, 1.5
    flat = spiked(spike, 200)
    A = FactoredMatrix(flat.U, np.r_[spike, np.linspace(1.0, 0.5, 200)], flat.V).to(where)
    top, put = flat.V[:, 0], A.device.put
    delta = 1e-3 ** (1 / number) * np.sqrt(np.pi / (2 * n))
    for seed in range(20):
        other = np.random.default_rng(seed).standard_normal((number, n))
        other -= np.outer(other @ top, top)
        unit = other / np.linalg.norm(other, axis=1, keepdims=True)
        lucky = unit + np.outer(np.r_[1.01 * delta, np.zeros(number - 1)], top)
        found = lanczos([A], [put(lucky)], [tolerance])[0]
        rough = found.s + found.error if tolerance >= 0.05 else 1.05 * found.s
        assert spike <= rough * (1 + 1e-12)
    if tolerance >= 0.05:  # in few steps: in many, rounding would bring the leading vector back
        blind = lanczos([A], [put(unit)], [tolerance])[0]
        assert blind.s + blind.error < spike  # such a start does miss it: the delta matters


@pytest.mark.parametrize("tolerance", [1e-8, 1e-3, 1e-2])
def test_clustered_values_under_cancelling_parts(tolerance):
    """Errors in what Lanczos keeps up by subtraction grew twentyfold a step on such a matrix."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, 24)))[0] for size in (60, 55))
    large = FactoredMatrix(U, np.full(24, 2.0), V)
    small = FactoredMatrix(U, 2.0 - np.linspace(0.08, 0.078, 24), V)
    A = large - FactoredMatrix(small.U.copy(), small.s, small.V.copy())
    found = leading_triplet(A, tolerance=tolerance)
    assert found.s == pytest.approx(0.08, rel=max(1e-8, 3 * tolerance))
    assert found.s <= 0.08 * (1 + 1e-9)


@pytest.mark.parametrize("largest_basis", [None, 12])
def test_the_triplet_is_as_accurate_as_was_asked(largest_basis, monkeypatch):
    # The leading values lie close together.
    monkeypatch.setattr("driftwolfe.points.lanczos._MOST_PRODUCTS", 20_000)
    if largest_basis is not None:
        monkeypatch.setattr("driftwolfe.points.lanczos._LARGEST_BASIS", largest_basis)
    rng = np.random.default_rng(0)
    s = 5.0 - 0.05 * np.arange(70)
    U, V = (np.linalg.qr(rng.standard_normal((n, 70)))[0] for n in (90, 70))
    A = (U * s) @ V.T
    found = leading_triplet(A, tolerance=1e-6)
    residual = np.linalg.norm(A.T @ found.u - found.v * found.s)
    assert residual <= 1e-6 * found.s * (1 + 1e-6)
    # Within the residual there is a singular value; these are 0.05 apart.
    np.testing.assert_allclose(found.s, s[0], atol=1e-5)
