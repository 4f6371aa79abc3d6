"""Losses of different kinds in one block: no gradient is lost, whatever the order."""

import itertools

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.learners import polar
from driftwolfe.losses import AbsoluteEntries, FunctionLoss, LinearLoss, SquaredDistance
from driftwolfe.points import FactoredMatrix
from learners.families import project_trace_norm

SHAPE, RADIUS = (7, 6), 3.0
BALL = dw.TraceNormBall(SHAPE, RADIUS, representation="factored")


def entries(rng):
    """Signs at four places, the last one twice."""
    rows, cols = rng.integers(0, 7, 3).tolist(), rng.integers(0, 6, 3).tolist()
    rows, cols = [*rows, rows[-1]], [*cols, cols[-1]]
    targets = rng.standard_normal(4)

    def gradient(X):
        table = np.zeros(SHAPE)
        for i, j, target in zip(rows, cols, targets, strict=True):
            table[i, j] += np.sign(X[i, j] - target)
        return table

    return AbsoluteEntries(rows, cols, targets, shape=SHAPE), gradient


def squares(rng):
    target = rng.standard_normal(SHAPE)
    return SquaredDistance(target), lambda X: X - target


def slopes(rng):
    slope = rng.standard_normal(SHAPE)
    return LinearLoss(slope), lambda X: slope


def functions(rng):
    """Half the squared norm of A X, by plain functions."""
    A = rng.standard_normal((2, 7))

    def value(X):
        return 0.5 * float(np.sum((A @ _dense(X)) ** 2))

    return FunctionLoss(value, lambda X: A.T @ (A @ _dense(X))), lambda X: A.T @ (A @ X)


def _dense(X):
    return X.toarray() if isinstance(X, FactoredMatrix) else X


KINDS = (entries, squares, slopes, functions)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4), 3)))
def test_a_sum_of_gradients_is_the_sum_of_the_gradients(order):
    rng = np.random.default_rng(list(order))
    x = FactoredMatrix(
        rng.standard_normal((7, 2)), np.array([1.0, 0.3]), rng.standard_normal((6, 2))
    )
    held, plain = GradientSum(), np.zeros(SHAPE)
    for number in (*order, order[0]):
        loss, gradient = KINDS[number](rng)
        before = held
        held, size = held.plus(loss, loss.slope_at(loss.scores(x)), x, BALL)
        wanted = gradient(x.toarray())
        plain = plain + wanted
        assert size is None or size == pytest.approx(np.linalg.norm(wanted))
        assert held is not before
        np.testing.assert_allclose(_dense(held.total(x)), plain, atol=1e-12)


@pytest.mark.parametrize("representation", ["dense", "factored"])
def test_blocked_descent_steps_along_all_of_a_blocks_gradients(representation):
    """Blocks of seven rounds with four kinds of losses, against a plain loop."""
    T, G, D = 56, 2.0, 2 * RADIUS
    rng = np.random.default_rng(2)
    stream = [KINDS[t % 4](rng) for t in range(T)]
    ball = dw.TraceNormBall(SHAPE, RADIUS, representation=representation)
    learner = dw.BOGDIP(ball, horizon=T, lipschitz=G, oracle="exact")
    x, total = np.zeros(SHAPE), np.zeros(SHAPE)
    for t, (loss, gradient) in enumerate(stream, start=1):
        np.testing.assert_allclose(_dense(learner.decision), x, atol=1e-10)
        learner.update(loss)
        total = total + gradient(x)
        if t % 7 == 0:  # floor(sqrt(56))
            x, total = project_trace_norm(x - D / G * T**-0.75 * total, RADIUS), np.zeros(SHAPE)
    assert np.linalg.svd(x, compute_uv=False).sum() > 0.99 * RADIUS


def test_leaders_sum_all_of_an_epochs_gradients(monkeypatch):
    """Entries, tables and functions in one epoch: factored experts against dense ones."""
    monkeypatch.setattr(polar, "SHORTEST_FACTORED", polar.SHORTEST)
    rng = np.random.default_rng(4)
    balls = [dw.TraceNormBall(SHAPE, RADIUS, representation=how) for how in ("dense", "factored")]
    dense, factored = (dw.POLAR(b, None, 2.0, experts=("origin",), oracle="exact") for b in balls)
    for loss, _ in (KINDS[t % 4](rng) for t in range(70)):
        np.testing.assert_allclose(factored.decision.toarray(), dense.decision, atol=1e-9)
        assert factored.update(loss) == pytest.approx(dense.update(loss), abs=1e-8)
    assert dense.expert_weights.size == 5
