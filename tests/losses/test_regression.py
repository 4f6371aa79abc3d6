"""Squared, absolute, Huber and pinball losses on rows."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import driftwolfe as dw
from driftwolfe.losses import (
    AbsoluteRows,
    HingeLoss,
    HuberRows,
    LogisticLoss,
    MulticlassLogistic,
    PinballRows,
    SquaredRows,
)

#: The loss of one error, prediction minus target, written anew; width 1 and level 1/2.
BY_HAND = {
    SquaredRows: lambda error: error * error,
    AbsoluteRows: abs,
    HuberRows: lambda error: error * error / 2 if abs(error) <= 1 else abs(error) - 0.5,
    PinballRows: lambda error: abs(error) / 2,
}
KINDS = list(BY_HAND)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
def test_values_are_those_of_a_loop(kind, outputs):
    rng = np.random.default_rng(0)
    features, targets = rng.standard_normal((6, 4)), 2.0 * rng.standard_normal((6, *outputs))
    X, total = rng.standard_normal((*outputs, 4)), 0.0
    for row, target in zip(features, targets, strict=True):
        for error in np.atleast_1d(X @ row - target).tolist():
            total += BY_HAND[kind](error)
    loss = kind(features, targets)
    assert loss.shape == (*outputs, 4)
    assert loss.value(X) == pytest.approx(total / 6)


@pytest.mark.parametrize(("level", "place"), [(0.1, 9), (0.5, 49), (0.9, 89)])
def test_the_least_pinball_loss_is_at_the_quantile(level, place):
    """Of a constant feature, against a linear programme and against sorted targets."""
    targets, x = np.random.default_rng(1).exponential(size=99), cp.Variable()
    loss = PinballRows(np.ones((99, 1)), targets, level)
    pinball = cp.sum(cp.maximum(level * (targets - x), (level - 1.0) * (targets - x)))
    least = cp.Problem(cp.Minimize(pinball / 99)).solve(solver=cp.CLARABEL)
    quantile = np.sort(targets)[[place]]  # of 99
    assert loss.value(quantile) == pytest.approx(least, rel=1e-6)
    assert all(loss.value(quantile + shift) > loss.value(quantile) for shift in (-0.2, 0.2))


def test_the_lipschitz_bounds_are_attained():
    features, far = np.array([[3.0, 4.0]]), np.full((4, 2), 1e3)
    ball = dw.L2Ball((4, 2), radius=2.0)
    for loss in (
        AbsoluteRows(features, np.ones((1, 4))),
        HuberRows(features, np.ones((1, 4)), width=0.3),
        PinballRows(features, np.ones((1, 4)), 0.1),  # steeper above the target
    ):
        assert np.linalg.norm(loss.gradient(far)) == pytest.approx(loss.lipschitz(ball))
    squared = SquaredRows(features, [10.0])
    opposite = -2.0 * features[0] / 5.0  # where the error is largest: -20
    bound = squared.lipschitz(dw.L2Ball(2, radius=2.0))
    assert (
        np.linalg.norm(squared.gradient(opposite)) == pytest.approx(bound) == pytest.approx(200.0)
    )


ROWS = [*KINDS, HingeLoss, LogisticLoss, lambda X, y: MulticlassLogistic(X, y, 2)]
ONES, TABLE = [[1.0]], "features must be a non-empty table"


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize(
    ("features", "targets", "message"),
    [
        *((each, [1, 1], TABLE) for each in ([1.0, 2.0], np.zeros((2, 0)))),
        *((each, [], TABLE) for each in (np.zeros((0, 3)), sp.csr_array((0, 3)))),
        ([[1.0, np.inf]], [1], "features has entries that are not finite"),
        (sp.csr_array([[1.0, np.nan]]), [1], "features has entries that are not finite"),
        (
            [[1.0], [2.0]],
            [1],
            r"labels must hold|targets must have shape \(2,\) or \(2, outputs\), got",
        ),
        (ONES, [[[1.0]]], r"labels must|targets must have shape"),
        (ONES, np.zeros((1, 0)), "labels must|targets must have shape"),
        (ONES, [np.nan], "(targets|labels) has entries that are not finite"),
    ],
)
def test_bad_rows_are_refused(kind, features, targets, message):
    with pytest.raises(ValueError, match=message):
        kind(features, targets)


@pytest.mark.parametrize("kind", ROWS[len(KINDS) :])
def test_labels_are_whole_and_in_range(kind):
    for label in (2, 0.5):
        with pytest.raises(ValueError, match="labels must"):
            kind(ONES, [label])


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, np.nan])
def test_bad_levels_and_widths_are_refused(level):
    with pytest.raises(ValueError, match="level"):
        PinballRows([[1.0]], [1.0], level)
    with pytest.raises(ValueError, match="width"):
        HuberRows([[1.0]], [1.0], width=level - 1.0)
