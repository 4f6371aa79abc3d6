"""Offline minima against cvxpy: the value is right, and the certificate brackets it."""

from __future__ import annotations

from functools import partialmethod

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import losses
from driftwolfe.regret import offline_minimum
from driftwolfe.regret.offline import Bracket
from regret.games import KINDS, MATRIX, VECTOR, some_losses

CORNERS = np.random.default_rng(5).standard_normal((9, *VECTOR))

VECTOR_SETS = {
    "L1Ball": (dw.L1Ball(5, 0.8), lambda x: [cp.norm1(x) <= 0.8]),
    "L2Ball": (dw.L2Ball(5, 0.7), lambda x: [cp.norm2(x) <= 0.7]),
    "LinfBall": (dw.LinfBall(5, 0.5), lambda x: [cp.norm_inf(x) <= 0.5]),
    "Simplex": (dw.Simplex(5, 1.5), lambda x: [x >= 0, cp.sum(x) == 1.5]),
    "ConvexHull": (dw.ConvexHull(CORNERS), lambda x: _in_hull(x)),
}
MATRIX_SETS = {
    "TraceNormBall": (dw.TraceNormBall(MATRIX, 2.0), lambda x: [cp.normNuc(x) <= 2.0]),
    "BirkhoffPolytope": (
        dw.BirkhoffPolytope(4),
        lambda x: [x >= 0, cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) == 1],
    ),
    "L1Ball": (dw.L1Ball(MATRIX, 3.0), lambda x: [cp.sum(cp.abs(x)) <= 3.0]),
}


def _in_hull(x):
    weights = cp.Variable(len(CORNERS), nonneg=True)
    return [cp.sum(weights) == 1, x == CORNERS.T @ weights]


def _expression(loss, x):
    """The loss as cvxpy writes it."""
    match loss:
        case losses.AbsoluteEntries():
            return cp.sum(cp.abs(_picked(loss, x)))
        case losses.SquaredEntries():
            return cp.sum_squares(_picked(loss, x))
        case losses.HuberEntries():
            return 0.5 * cp.sum(cp.huber(_picked(loss, x), loss.width))
        case losses.MulticlassLogistic():
            scores = loss.features @ x.T
            chosen = cp.sum(cp.multiply(np.eye(loss.n_classes)[loss.labels], scores))
            return (cp.sum(cp.log_sum_exp(scores, axis=1)) - chosen) / loss.labels.size
        case losses.LinearLoss():
            return loss.g @ x + loss.constant
        case losses.SquaredDistance():
            return loss.weight * cp.sum_squares(x - loss.target)
        case losses.HingeLoss():
            margins = cp.multiply(loss.labels, loss.features @ x)
            return cp.sum(cp.pos(1 - margins)) / loss.labels.size
        case losses.LogisticLoss():
            margins = cp.multiply(loss.labels, loss.features @ x)
            return cp.sum(cp.logistic(-margins)) / loss.labels.size
        case losses.SquaredRows():
            return cp.sum_squares(loss.features @ x.T - loss.targets) / len(loss.targets)
        case losses.AbsoluteRows():
            return cp.sum(cp.abs(loss.features @ x.T - loss.targets)) / len(loss.targets)
        case losses.HuberRows():
            errors = loss.features @ x.T - loss.targets
            return 0.5 * cp.sum(cp.huber(errors, loss.width)) / len(loss.targets)
    raise TypeError(loss)


def _picked(loss, x):
    return cp.hstack([x[i, j] for i, j in zip(loss.rows, loss.cols, strict=True)]) - loss.targets


def reference(functions, constraints, shape):
    x = cp.Variable(shape)
    problem = cp.Problem(cp.Minimize(sum(_expression(f, x) for f in functions)), constraints(x))
    return problem.solve(solver=cp.CLARABEL)


CASES = [
    (kind, name)
    for kind, (_, shape) in KINDS.items()
    if "Function" not in kind
    for name in (VECTOR_SETS if shape == VECTOR else MATRIX_SETS)
]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_value_is_that_of_cvxpy_and_the_gap_brackets_it(kind, name):
    shape = KINDS[kind][1]
    domain, constraints = (VECTOR_SETS if shape == VECTOR else MATRIX_SETS)[name]
    functions = some_losses(kind, 8)
    best = offline_minimum(domain, functions)
    truth = reference(functions, constraints, shape)
    slack = 1e-6 * (1 + abs(truth))
    assert best.value - best.gap <= truth + slack
    assert truth <= best.value + slack
    assert best.gap <= 1e-4 * (1 + abs(best.value))
    assert domain.contains(best.point, atol=1e-7)
    assert sum(f.value(best.point) for f in functions) == pytest.approx(best.value, rel=1e-9)


@pytest.mark.in_turn
@pytest.mark.parametrize("iterations", [1, 2, 5, 20])
@pytest.mark.parametrize("kind", ["AbsoluteEntries", "HingeLoss", "MulticlassLogistic"])
def test_the_certificate_holds_when_the_work_is_cut_short(kind, iterations, monkeypatch):
    monkeypatch.setattr(Bracket, "__init__", partialmethod(Bracket.__init__, limit=iterations))
    shape = KINDS[kind][1]
    domain, constraints = (VECTOR_SETS if shape == VECTOR else MATRIX_SETS)["L1Ball"]
    functions = some_losses(kind, 8)
    best = offline_minimum(domain, functions, tolerance=0.0)
    truth = reference(functions, constraints, shape)
    slack = 1e-6 * (1 + abs(truth))
    assert best.value - best.gap - slack <= truth <= best.value + slack


def test_losses_of_several_kinds_add_up():
    domain, constraints = VECTOR_SETS["Simplex"]
    kinds = ("LinearLoss", "SquaredDistance", "HingeLoss", "LogisticLoss")
    functions = [loss for kind in kinds for loss in some_losses(kind, 3)]
    best = offline_minimum(domain, functions)
    truth = reference(functions, constraints, VECTOR)
    assert best.value == pytest.approx(truth, abs=2e-5)
    assert best.gap < 1e-4


@pytest.mark.parametrize("name", list(VECTOR_SETS))
def test_functions_with_kinks_that_nobody_told_of(name):
    domain, constraints = VECTOR_SETS[name]
    functions = some_losses("FunctionLoss, kinked", 6)
    x = cp.Variable(5)
    rng = np.random.default_rng(0)  # the one that the functions were made with
    points = [rng.standard_normal(5) for _ in functions]
    truth = cp.Problem(
        cp.Minimize(sum(cp.norm1(x - point) for point in points)), constraints(x)
    ).solve(solver=cp.CLARABEL)
    best = offline_minimum(domain, functions)
    assert best.value - best.gap - 1e-6 <= truth <= best.value + 1e-6
    assert best.gap <= 2e-3 * best.value


def test_smooth_functions_of_unknown_kind():
    functions = some_losses("FunctionLoss, smooth", 6)
    best = offline_minimum(dw.L2Ball(5, 0.3), functions)
    assert best.gap <= 1e-6 * sum(f.value(np.zeros(5)) for f in functions)


@pytest.mark.parametrize("representation", ["dense", "factored"])
def test_points_are_of_the_kind_of_the_set_whatever_the_losses(representation):
    """Of entries alone, of other losses, and of both, with a start of the same kind."""
    domain = dw.TraceNormBall(MATRIX, 2.0, representation=representation)
    start = domain.lmo(np.ones(MATRIX))
    kinds = ("AbsoluteEntries", "MulticlassLogistic", "HuberRows")
    corner = losses.AbsoluteEntries([0, 1], [0, 1], [1.0, -1.0])
    for some in [kinds[:1], kinds[1:], kinds]:
        functions = [corner, *(loss for kind in some[1:] for loss in some_losses(kind, 2))]
        best = offline_minimum(domain, functions, start=start)
        assert type(best.point) is type(domain.origin())
        truth = reference(functions, MATRIX_SETS["TraceNormBall"][1], MATRIX)
        assert best.value - best.gap - 1e-5 <= truth <= best.value + 1e-5


def test_linear_losses_take_one_oracle_call_and_are_exact():
    domain = dw.count_calls(dw.L1Ball(5))
    functions = some_losses("LinearLoss", 50)
    best = offline_minimum(domain, functions)
    total = sum(f.g for f in functions)
    assert domain.calls.lmo == 1
    assert best.value == pytest.approx(50 - np.abs(total).max())
    assert best.gap <= 1e-12


def test_squared_distances_are_one_projection():
    functions = some_losses("SquaredDistance", 20)
    weights = np.array([f.weight for f in functions])
    mean = weights @ np.array([f.target for f in functions]) / weights.sum()
    domain = dw.L1Ball(5, 0.1)
    best = offline_minimum(domain, functions)
    np.testing.assert_allclose(best.point, domain.project(mean), atol=1e-12)
    assert best.gap <= 1e-10


def test_an_inexact_oracle_is_in_the_gap():
    def rough(direction):
        return -direction / np.linalg.norm(direction)

    domain = dw.LMODomain(5, rough, radius=1.0, error=1e-3)
    functions = some_losses("LinearLoss", 5)
    best = offline_minimum(domain, functions)
    assert best.gap >= 1e-3 * np.linalg.norm(sum(f.g for f in functions))


def test_large_matrices_stay_factored_and_small_problems_stay_small():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 300, 40), rng.integers(0, 200, 40)
    functions = [losses.AbsoluteEntries(rows, cols, rng.integers(1, 6, 40))]
    big = dw.TraceNormBall((300, 200), 20.0)
    best = offline_minimum(big, functions, tolerance=1e-4)
    assert isinstance(best.point, dw.FactoredMatrix)
    assert best.point.nuclear_norm() <= 20.0 * (1 + 1e-9)
    assert functions[0].value(best.point) == pytest.approx(best.value)
    places = [np.unique(index, return_inverse=True) for index in (rows, cols)]
    part = dw.TraceNormBall(tuple(values.size for values, _ in places), 20.0)
    small = losses.AbsoluteEntries(places[0][1], places[1][1], functions[0].targets)
    again = offline_minimum(part, [small], tolerance=1e-4)
    assert abs(best.value - again.value) <= best.gap + again.gap
    warm = offline_minimum(big, functions, start=best.point, tolerance=1e-4)
    assert abs(best.value - warm.value) <= best.gap + warm.gap


@pytest.mark.parametrize("kind", [losses.AbsoluteEntries, losses.SquaredEntries])
def test_matrices_with_too_many_entries_for_newton(kind):
    rng = np.random.default_rng(0)
    cells = rng.permutation(18 * 15)[:200]
    functions = [kind(*np.divmod(part, 15), rng.standard_normal(50)) for part in np.split(cells, 4)]
    best = offline_minimum(dw.TraceNormBall((18, 15), 12.0), functions, tolerance=1e-5)
    truth = reference(functions, lambda x: [cp.normNuc(x) <= 12.0], (18, 15))
    assert best.value - best.gap - 1e-5 <= truth <= best.value + 1e-5
    assert best.gap <= 1e-4 * best.value


def test_matrices_too_large_to_decompose_need_only_the_oracle(monkeypatch):
    monkeypatch.setattr("driftwolfe.domains.spectral.FULL_SVD_ENTRIES", 0)
    rng = np.random.default_rng(0)
    cells = rng.permutation(12 * 10)[:90]
    functions = [losses.SquaredEntries(*np.divmod(cells, 10), rng.standard_normal(90))]
    factored = dw.TraceNormBall((12, 10), 3.0, representation="factored")
    best = offline_minimum(factored, functions, tolerance=1e-3)
    assert isinstance(best.point, dw.FactoredMatrix)
    truth = reference(functions, lambda x: [cp.normNuc(x) <= 3.0], (12, 10))
    assert best.value - best.gap - 1e-6 <= truth <= best.value + 1e-6
    assert best.gap <= 2e-3 * best.value


def test_a_start_is_used_and_checked():
    functions = some_losses("LogisticLoss", 10)
    domain = dw.L1Ball(5)
    best = offline_minimum(domain, functions, tolerance=1e-9)
    warm = offline_minimum(domain, functions, start=best.point, tolerance=1e-9)
    assert warm.iterations < best.iterations
    with pytest.raises(ValueError, match="start must be a point of L1Ball"):
        offline_minimum(domain, functions, start=np.ones(5))


def test_refusals_say_why():
    with pytest.raises(ValueError, match="at least one loss"):
        offline_minimum(dw.L1Ball(5), [])
    with pytest.raises(ValueError, match="takes points of shape"):
        offline_minimum(dw.L1Ball(4), some_losses("LinearLoss", 2))
