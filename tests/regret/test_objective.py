"""Sums of losses: pooling, curvature, known kinks, and lower bounds on single losses."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import losses
from driftwolfe.losses import AbsoluteEntries, FunctionLoss, HingeLoss, LinearLoss, SquaredDistance
from driftwolfe.regret.objective import Objective, Term, floor, pool
from regret.games import KINDS, some_losses


class Own(LinearLoss):
    """A loss of a user's own: nothing is known of its kinks."""


def test_kinks_of_our_losses_are_known_and_those_of_a_users_are_not():
    unknown = Term(1.0, FunctionLoss(lambda x: float(abs(x[0])), lambda x: np.sign(x) * [1, 0]))
    assert Objective([unknown]).unknown and Objective([Term(1.0, Own(np.ones(2)))]).unknown
    hinge, entry = HingeLoss(np.ones((1, 2)), [1]), AbsoluteEntries([0], [1], [0.5])
    for known in (SquaredDistance(np.ones(2)), hinge, entry):
        assert not Objective([Term(1.0, known)]).unknown
        assert Objective([Term(1.0, known), unknown]).unknown


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "Function" not in kind])
def test_pooling_changes_nothing_but_the_speed(kind):
    functions = some_losses(kind, 9)
    rng = np.random.default_rng(1)
    x = rng.standard_normal(KINDS[kind][1])
    pooled = pool(functions)
    assert len(pooled.terms) == 1
    assert pooled.value(x) == pytest.approx(sum(f.value(x) for f in functions), rel=1e-12)
    seen = pooled.evaluate(x)
    assert seen.value == pytest.approx(pooled.value(x), rel=1e-12)
    np.testing.assert_allclose(seen.gradient, sum(f.gradient(x) for f in functions), atol=1e-12)


def test_what_is_wrong_with_one_of_many_functions_is_said():
    wide = FunctionLoss(lambda x: x.sum(), lambda x: np.ones(1))
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        pool([wide, wide]).evaluate(np.zeros(2))


def test_losses_that_differ_are_not_pooled():
    class Doubled(losses.LinearLoss):
        def value_at(self, scores):
            return 2 * super().value_at(scores)

    functions = [losses.HuberEntries([0], [0], [1.0], width) for width in (1.0, 2.0)]
    functions += [losses.LogisticLoss(np.ones((size, 2)), [1] * size) for size in (1, 2)]
    functions += [losses.LinearLoss([1.0, 1.0]), Doubled([1.0, 1.0])]
    assert len(pool(functions).terms) == 6


def test_curvature_is_that_of_the_gradients():
    rng = np.random.default_rng(3)
    for kind, (_, shape) in KINDS.items():
        if "Function" in kind:
            continue
        objective = pool(some_losses(kind, 4)).smoothed(0.5)
        x, direction = 0.3 * rng.standard_normal(shape), rng.standard_normal(shape)
        step = 1e-6
        ahead = objective.evaluate(x + step * direction).gradient
        behind = objective.evaluate(x - step * direction).gradient
        expected = (ahead - behind).ravel() / (2 * step)
        found, room = objective.hessian(x) @ direction.ravel(), 1e-6 * (1 + abs(expected).max())
        np.testing.assert_allclose(found, expected, atol=room)


class Sloppy(dw.LinfBall):
    """A cube whose oracle returns half of the best vertex, and says by how much that may be wrong."""

    def lmo_with_error(self, gradient):
        return -0.5 * np.sign(gradient), 0.5 * float(np.abs(gradient).sum())


@pytest.mark.parametrize("kind", list(KINDS))
def test_no_loss_falls_below_its_floor(kind):
    domain = dw.LinfBall(KINDS[kind][1], 2.0)
    rng = np.random.default_rng(0)
    points = rng.choice([-2.0, -1.0, 0.0, 1.0, 2.0], (200, *domain.shape))
    for loss in some_losses(kind, 3):
        assert floor(loss, domain) <= min(loss.value(x) for x in points)


def test_what_the_oracle_may_miss_is_below_the_floor():
    assert floor(LinearLoss([3.0, -4.0]), dw.L1Ball(2)) == -4.0
    # On the cube, <(3, -4), x> + 1 falls to -6; half of the best vertex says -2.5.
    slope = np.array([3.0, -4.0])
    tangent = FunctionLoss(lambda x: slope @ x + 1.0, lambda x: slope, shape=(2,))
    for loss in (LinearLoss(slope, constant=1.0), tangent):
        assert floor(loss, dw.LinfBall(2)) == pytest.approx(-6.0)
        assert floor(loss, Sloppy(2)) == pytest.approx(-6.0)
    off = FunctionLoss(lambda x: float(((x - 3.0) ** 2).sum()), lambda x: 2.0 * (x - 3.0))
    # By the tangent at 0, 18 - 12 on the cube; the least is (1 - 3)^2 twice.
    assert floor(off, dw.LinfBall(2)) == pytest.approx(6.0)
