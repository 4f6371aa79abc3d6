"""Decompositions that go on where LAPACK's quickest routine gives up."""

import numpy as np
import pytest
import scipy.linalg

import driftwolfe as dw
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import eigh, singular_values, svd


@pytest.fixture
def failing(monkeypatch):
    """LAPACK as it sometimes is."""

    def fail(*args, **options):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fail)
    monkeypatch.setattr(np.linalg, "eigh", fail)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (3, 5, 4)])
def test_a_second_way_to_singular_values(failing, shape, scale):
    A = scale * np.random.default_rng(0).standard_normal(shape)
    U, s, Vt = svd(A)
    np.testing.assert_allclose((U * s[..., None, :]) @ Vt, A, rtol=0, atol=1e-13 * scale)
    gram = np.swapaxes(U, -1, -2) @ U
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(4), gram.shape)[..., :, :], atol=1e-13)
    assert (np.diff(s) <= 0).all()


def test_a_second_way_to_values_alone_and_to_eigenvectors(failing):
    A = np.random.default_rng(1).standard_normal((6, 6))
    squares = scipy.linalg.eigvalsh(A.T @ A)[::-1]
    np.testing.assert_allclose(singular_values(A), np.sqrt(squares), rtol=1e-9)
    values, vectors = eigh(A + A.T)
    np.testing.assert_allclose((A + A.T) @ vectors, vectors * values, atol=1e-12)
    assert (np.diff(values) >= 0).all()


def test_zero_and_empty_matrices_have_a_second_way_too(failing):
    np.testing.assert_array_equal(svd(np.zeros((3, 2)))[1], 0.0)
    np.testing.assert_array_equal(eigh(np.zeros((2, 2)))[0], 0.0)


def test_points_and_sets_take_it(failing):
    rng = np.random.default_rng(2)
    A = FactoredMatrix(rng.standard_normal((9, 3)), np.ones(3), rng.standard_normal((8, 3)))
    np.testing.assert_allclose(A.recompress().toarray(), A.toarray(), atol=1e-13)
    ball = dw.TraceNormBall((9, 8), 2.0)
    projected = ball.project(A.toarray())
    assert scipy.linalg.svdvals(projected).sum() == pytest.approx(2.0, rel=1e-12)
    np.testing.assert_allclose(ball.project_many(A.toarray()[None])[0], projected, atol=1e-13)
    np.testing.assert_allclose(ball.project(A).toarray(), projected, atol=1e-12)
