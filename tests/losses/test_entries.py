"""Losses on entries: known values, indices, duplicates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from devices import DEVICES
from driftwolfe.losses import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.points.devices import device_named, to_host
from driftwolfe.points.factored import FactoredMatrix

ENTRY_LOSSES = [AbsoluteEntries, SquaredEntries, HuberEntries]
every_entry_loss = pytest.mark.parametrize("kind", ENTRY_LOSSES)


def test_known_values():
    X = np.array([[1.0, -2.0], [0.0, 4.0]])
    given = ([0, 0, 1], [0, 1, 1], [1.0, 0.0, 4.5])  # errors 0, -2, -0.5
    assert AbsoluteEntries(*given).value(X) == 2.5
    assert SquaredEntries(*given).value(X) == 4.25
    assert HuberEntries(*given).value(X) == 1.5 + 0.125
    assert AbsoluteEntries(*given).gradient(X).tolist() == [[0.0, -1.0], [0.0, -1.0]]
    assert SquaredEntries(*given).gradient(X).tolist() == [[0.0, -4.0], [0.0, -1.0]]
    assert HuberEntries(*given).gradient(X).tolist() == [[0.0, -1.0], [0.0, -0.5]]


def test_the_sign_of_a_zero_error_is_zero():
    assert not AbsoluteEntries([0, 1], [1, 0], [0.0, 0.0]).gradient(np.zeros((2, 2))).any()


@every_entry_loss
def test_duplicates_add_up(kind):
    X = np.arange(6.0).reshape(2, 3)
    twice, once = kind([1, 1], [2, 2], [0.0, 3.0]), [kind([1], [2], [t]) for t in (0.0, 3.0)]
    assert twice.value(X) == sum(loss.value(X) for loss in once)
    total = sum(loss.gradient(X) for loss in once)
    assert np.array_equal(twice.gradient(X), total)
    sparse = twice.gradient(FactoredMatrix.from_dense(X))
    np.testing.assert_allclose(sparse.toarray(), total, atol=1e-12)
    assert sparse.rank == 0
    assert sparse.nnz == 1


def test_the_lipschitz_bound_is_attained():
    rows, cols, targets = [0, 0, 1, 0], [0, 0, 1, 0], [1.0, 2.0, 3.0, 4.0]
    domain = None  # these bounds hold on any set
    assert AbsoluteEntries(rows, cols, targets).lipschitz(domain) == pytest.approx(10**0.5)
    assert HuberEntries(rows, cols, targets, width=2.0).lipschitz(domain) == pytest.approx(40**0.5)
    for loss in (AbsoluteEntries(rows, cols, targets), HuberEntries(rows, cols, targets)):
        gradient = loss.gradient(np.full((2, 2), -9.0))
        assert np.linalg.norm(gradient) == pytest.approx(loss.lipschitz(domain))
    distinct = AbsoluteEntries(np.arange(100), np.arange(100), np.ones(100))
    assert distinct.lipschitz(domain) == 10.0


@every_entry_loss
def test_a_gradient_of_a_large_factored_matrix_stays_sparse(kind):
    shape = (10**6, 10**6)
    loss = kind([10**6 - 1, 5], [7, 10**6 - 1], [1.0, 2.0], shape=shape)
    gradient = loss.gradient(FactoredMatrix.zeros(shape))
    assert gradient.nnz == 2
    assert gradient.nbytes < 10**8


@every_entry_loss
@pytest.mark.parametrize("x", [np.zeros((3, 3)), FactoredMatrix.zeros((3, 3))])
def test_an_index_out_of_range_is_named(kind, x):
    tall, wide = (
        "takes matrices of at least 4 rows and 2",
        "takes matrices of at least 2 rows and 4",
    )
    for rows, cols, message in (([0, 3], [1, 1], tall), ([1, 1], [0, 3], wide)):
        loss = kind(rows, cols, [0.0, 0.0])
        for look in (loss.value, loss.gradient, loss.value_and_gradient):
            with pytest.raises(ValueError, match=message):
                look(x)
    with pytest.raises(ValueError, match=tall):
        kind([0, 3], [1, 1], [0.0, 0.0], shape=(3, 3))
    with pytest.raises(ValueError, match=tall):
        kind([0, 3], [1, 1], [0.0, 0.0]).stacked_scores(np.zeros((2, 3, 3)))


def test_bad_shapes_and_widths_are_refused_and_a_given_shape_is_the_only_one():
    for shape in ((3,), (3, 3, 3)):
        with pytest.raises(ValueError, match="takes matrices"):
            AbsoluteEntries([0], [0], [0.0], shape=shape)
    for width in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="width"):
            HuberEntries([0], [0], [0.0], width=width)
    for places in ([], [[0]], 0):
        with pytest.raises(ValueError, match="rows must be a non-empty vector"):
            AbsoluteEntries(places, places, places)
    loss = AbsoluteEntries([0], [0], [1.0], shape=(2, 2))
    with pytest.raises(ValueError, match=r"takes points of shape \(2, 2\), got \(3, 3\)"):
        loss.value(np.zeros((3, 3)))


def test_whole_numbers_may_come_as_floats():
    assert AbsoluteEntries([1.0], [0.0], [2]).value(np.zeros((2, 2))) == 2.0


@every_entry_loss
def test_pairs_are_told_apart_and_counted(kind):
    rng = np.random.default_rng(0)
    for shape in ((2, 4), (4, 2), (3, 3), (1, 5), (5, 1)):
        # (0, 3) and (1, 0) are neighbours: a key that counts one column too few takes them for one.
        rows, cols = rng.integers(0, shape[0], 12), rng.integers(0, shape[1], 12)
        rows, cols = np.append(rows, [0, shape[0] - 1]), np.append(cols, [shape[1] - 1, 0])
        loss = kind(rows, cols, np.zeros(14), shape=shape)
        counts = Counter(zip(rows.tolist(), cols.tolist(), strict=True))
        assert sorted(loss._pairs[1].tolist()) == sorted(counts.values())
        slope = rng.standard_normal(14)
        dense = loss.pull_back(slope, np.zeros(shape))
        assert loss.gradient_norms(slope[None]) == pytest.approx(np.linalg.norm(dense))


@pytest.mark.parametrize("device", DEVICES)
@every_entry_loss
def test_gradients_of_a_stack_on_a_device_stand_where_the_entries_are(kind, device):
    rng = np.random.default_rng(0)
    rows, cols = np.array([0, 2, 2, 1, 2]), np.array([3, 0, 0, 2, 3])
    loss, slopes = kind(rows, cols, np.zeros(5), shape=(3, 4)), rng.standard_normal((2, 5))
    expected = np.zeros((2, 3, 4))
    for point, slope in zip(expected, slopes, strict=True):
        for row, col, value in zip(rows, cols, slope, strict=True):
            point[row, col] += value
    stack = device_named(device).put(np.zeros((2, 3, 4)))
    np.testing.assert_allclose(to_host(loss.stacked_pull_back(slopes, stack)), expected, atol=1e-12)
