"""Matrices that share their columns, and products of points."""

import copy

import numpy as np
import pytest

from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.ops import FactorBuffer, ProductPoint, without_idle_columns


def low_rank(rank, seed, shape=(12, 9), stored=0):
    rng = np.random.default_rng(seed)
    U, V = (rng.standard_normal((size, rank)) for size in shape)
    A = FactoredMatrix(U, rng.standard_normal(rank), V)
    places = (rng.integers(size, size=stored) for size in shape)
    return A + FactoredMatrix.from_entries(shape, *places, rng.standard_normal(stored))


def test_matrices_in_a_buffer_are_what_they_were():
    A, B = low_rank(3, 0), low_rank(2, 1, stored=7)
    buffer, placed = FactorBuffer.holding([A, B], room=4)
    assert (buffer.used, buffer.room) == (5, 4)
    for before, after in zip((A, B), placed, strict=True):
        assert buffer.holds(after)
        assert not buffer.holds(before)
        np.testing.assert_array_equal(after.toarray(), before.toarray())
        np.testing.assert_array_equal(without_idle_columns(after).U, before.U)


def test_mixing_needs_no_new_columns_and_changes_no_older_matrix():
    buffer, (x, y) = FactorBuffer.holding([low_rank(3, 0), low_rank(2, 1, stored=5)], room=2)
    for seed in (2, 3):
        atom, before = low_rank(1, seed), x.toarray()
        mixed = buffer.mix(0.7, x, 0.3, atom)
        expected = 0.7 * before + 0.3 * atom.toarray()
        np.testing.assert_allclose(mixed.toarray(), expected, atol=1e-13)
        np.testing.assert_array_equal(x.toarray(), before)
        assert buffer.holds(mixed)
        assert buffer.holds(mixed - y)
        x = mixed
    assert buffer.room == 0


def test_two_lines_from_one_matrix_do_not_meet():
    buffer, (x,) = FactorBuffer.holding([low_rank(2, 0)], room=2)
    atoms = [low_rank(1, seed) for seed in (1, 2)]
    mixed = [buffer.mix(0.5, x, 0.5, atom) for atom in atoms]
    for one, atom in zip(mixed, atoms, strict=True):
        expected = 0.5 * (x.toarray() + atom.toarray())
        np.testing.assert_allclose(one.toarray(), expected, atol=1e-13)


@pytest.mark.parametrize("atom", [low_rank(2, 5), low_rank(1, 5, stored=3), np.ones((12, 9))])
def test_what_does_not_fit_is_added_as_ever(atom):
    buffer, (x,) = FactorBuffer.holding([low_rank(3, 0)], room=4)
    mixed = buffer.mix(0.5, x, 2.0, atom)
    dense = atom if isinstance(atom, np.ndarray) else atom.toarray()
    expected = 0.5 * x.toarray() + 2.0 * dense
    found = mixed if isinstance(mixed, np.ndarray) else mixed.toarray()
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(buffer.inner(atom, x), [np.vdot(dense, x.toarray())], rtol=1e-10)
    full, (x,) = FactorBuffer.holding([low_rank(3, 0)], room=0)
    assert not full.holds(full.mix(0.5, x, 0.5, low_rank(1, 1)))


def test_inner_products_in_one_pass():
    buffer, (x, y) = FactorBuffer.holding([low_rank(3, 0), low_rank(2, 1, stored=5)], room=2)
    atom = low_rank(1, 2)
    expected = [inner(atom, x - y), inner(atom, x)]
    np.testing.assert_allclose(buffer.inner(atom, x - y, x), expected, rtol=1e-12)


def test_copies_stay_in_a_buffer_of_their_own():
    buffer, (x,) = FactorBuffer.holding([low_rank(3, 0)], room=1)
    other, y = copy.deepcopy((buffer, x))
    assert other.holds(y)
    other.mix(0.5, y, 0.5, low_rank(1, 1))
    assert (buffer.room, other.room) == (1, 0)
    assert not buffer.U[:, 3].any()


@pytest.fixture
def a():
    return ProductPoint([np.array([1.0, 2.0]), np.array([[3.0]])])


@pytest.fixture
def b():
    return ProductPoint([np.array([0.5, -1.0]), np.array([[2.0]])])


def flat(point):
    return np.concatenate([part.ravel() for part in point.parts])


def test_arithmetic_is_that_of_the_joined_vector(a, b):
    assert np.array_equal(flat(a + b), flat(a) + flat(b))
    assert np.array_equal(flat(a - b), flat(a) - flat(b))
    assert np.array_equal(flat(-a), -flat(a))
    for factor in (2, 0.5, np.float64(3.0), np.int64(2)):
        assert np.array_equal(flat(factor * a), factor * flat(a))
        assert np.array_equal(flat(a * factor), factor * flat(a))
        assert np.array_equal(flat(a / factor), flat(a) / factor)


def test_measures(a, b):
    assert a.inner(b) == flat(a) @ flat(b)
    assert np.isclose(a.norm(), np.linalg.norm(flat(a)))
    assert inner(a, b) == a.inner(b)
    assert norm(a) == a.norm()
    assert a.shape == ((2,), (1, 1))


def test_parts_may_be_factored():
    matrix = FactoredMatrix(np.eye(3)[:, :1], np.array([2.0]), np.eye(2)[:, :1])
    point = ProductPoint([matrix, np.array([1.0])])
    assert np.isclose((2 * point - point).norm(), np.sqrt(5))
    assert np.isclose(point.inner(point), 5.0)


def test_points_cannot_be_changed_and_copies_share_nothing(a):
    twin = a.copy()
    twin.parts[0][:] = 9.0
    assert np.array_equal(a.parts[0], [1.0, 2.0])
    with pytest.raises(AttributeError):
        a.parts = ()
    with pytest.raises(TypeError):
        a.parts[0] = np.zeros(2)


def test_what_does_not_fit_is_refused(a):
    with pytest.raises(ValueError, match="shapes differ"):
        a + ProductPoint([np.zeros(2)])
    with pytest.raises(ValueError, match="shapes differ"):
        a.inner(ProductPoint([np.zeros(3), np.zeros((1, 1))]))
    for wrong in (lambda: a + np.zeros(2), lambda: a * a, lambda: a * np.zeros(2), lambda: a / a):
        with pytest.raises(TypeError):
            wrong()
