import numpy as np
import pytest

from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.ops import ProductPoint


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


def test_copies_share_nothing(a):
    twin = a.copy()
    twin.parts[0][:] = 9.0
    assert np.array_equal(a.parts[0], [1.0, 2.0])


def test_points_cannot_be_changed(a):
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
