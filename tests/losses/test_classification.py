"""Logistic, multiclass logistic and hinge losses."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from driftwolfe.losses import HingeLoss, LogisticLoss, MulticlassLogistic
from driftwolfe.points.factored import FactoredMatrix


def test_multiclass_agrees_with_a_direct_computation():
    rng = np.random.default_rng(0)
    features, labels = rng.standard_normal((5, 9)), rng.integers(0, 7, 5)
    X = rng.standard_normal((7, 9))
    by_hand = 0.0
    for row, label in zip(features, labels, strict=True):
        by_hand += np.log(np.exp(X @ row).sum()) - X[label] @ row
    assert MulticlassLogistic(features, labels, 7).value(X) == pytest.approx(by_hand / 5)


def test_two_classes_are_the_binary_logistic_loss():
    rng = np.random.default_rng(1)
    features, labels, x = rng.standard_normal((6, 4)), rng.integers(0, 2, 6), rng.normal(size=4)
    two = MulticlassLogistic(features, labels, 2).value(np.stack([np.zeros(4), x]))
    assert LogisticLoss(features, 2 * labels - 1).value(x) == pytest.approx(two)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e300])
def test_huge_scores_neither_overflow_nor_lose_the_value(size):
    features = [[1.0, 0.0], [0.0, 1.0]]
    X = np.array([[size, 0.0], [0.0, size]])
    right, wrong = MulticlassLogistic(features, [0, 1], 2), MulticlassLogistic(features, [1, 0], 2)
    assert right.value(X) == 0.0
    assert wrong.value(X) == pytest.approx(size)
    assert np.array_equal(wrong.gradient(X), [[0.5, -0.5], [-0.5, 0.5]])
    assert LogisticLoss(features, [1, 1]).value([size, size]) == 0.0
    assert LogisticLoss(features, [-1, -1]).value([size, size]) == pytest.approx(size)
    assert np.array_equal(LogisticLoss(features, [-1, -1]).gradient([size, size]), [0.5, 0.5])


def test_small_losses_keep_their_digits():
    # The mean of log(1 + exp(-40)), far below the rounding of the scores themselves.
    X = np.array([[40.0], [0.0]])
    assert MulticlassLogistic([[1.0]], [0], 2).value(X) <= 1e-16
    assert LogisticLoss([[1.0]], [1]).value([40.0]) == pytest.approx(np.exp(-40.0))


@pytest.mark.parametrize("wrap", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_features_give_what_dense_ones_give(wrap):
    rng = np.random.default_rng(2)
    features = rng.standard_normal((8, 5)) * (rng.random((8, 5)) < 0.4)
    stack, labels = rng.standard_normal((3, 4, 5)), rng.integers(0, 4, 8)
    dense, sparse = (MulticlassLogistic(f, labels, 4) for f in (features, wrap(features)))
    for loss in (dense, sparse):
        scores = loss.stacked_scores(stack)
        assert type(scores) is np.ndarray
        assert type(loss.gradient(stack[0])) is np.ndarray
    np.testing.assert_allclose(sparse.gradient(stack[0]), dense.gradient(stack[0]), atol=1e-14)
    assert sparse.lipschitz(None) == pytest.approx(dense.lipschitz(None))


@pytest.mark.parametrize(("rows", "rank"), [(2, 2), (50, 3)])
def test_the_gradient_of_a_factored_matrix_has_the_lower_rank(rows, rank):
    rng = np.random.default_rng(3)
    loss = MulticlassLogistic(rng.standard_normal((rows, 6)), rng.integers(0, 3, rows), 3)
    assert loss.gradient(FactoredMatrix.zeros((3, 6))).rank == rank


def test_the_lipschitz_bounds_are_attained():
    features = np.array([[3.0, 4.0], [0.0, 1.0]])
    loss = MulticlassLogistic(features[:1], [0], 3)
    assert loss.lipschitz(None) == pytest.approx(5 * 2**0.5)
    steep = np.array([[-1e3, -1e3], [1e3, 1e3], [0.0, 0.0]])
    assert np.linalg.norm(loss.gradient(steep)) == pytest.approx(loss.lipschitz(None))
    assert MulticlassLogistic(features, [0, 1], 3).lipschitz(None) == pytest.approx(3 * 2**0.5)
    assert HingeLoss(features, [1, -1]).lipschitz(None) == pytest.approx(3.0)


def test_hinge_at_the_kink_and_away_from_it():
    loss = HingeLoss([[1.0], [1.0]], [1, -1])
    assert loss.value_and_gradient([1.0]) == (1.0, 0.5)  # margins 1 and -1
    assert loss.value_and_gradient([0.0]) == (1.0, 0.0)


def test_labels_out_of_range_are_named():
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2, got 3"):
        MulticlassLogistic([[1.0]], [3], 3)
    with pytest.raises(ValueError, match="labels must be whole numbers >= 0, got -1"):
        MulticlassLogistic([[1.0]], [-1], 3)
    with pytest.raises(ValueError, match=r"labels must be -1 or \+1, got 0"):
        HingeLoss([[1.0]], [0])
    with pytest.raises(ValueError, match="n_classes"):
        MulticlassLogistic([[1.0]], [0], 1)
