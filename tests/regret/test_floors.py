"""Lower bounds on single losses."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import FunctionLoss, LinearLoss
from driftwolfe.regret.objective import floor
from regret.games import KINDS, some_losses


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
    # On the cube, <(3, -4), x> + 1 falls to -6; half of the best vertex says -2.5.
    slope = np.array([3.0, -4.0])
    tangent = FunctionLoss(lambda x: slope @ x + 1.0, lambda x: slope, shape=(2,))
    for loss in (LinearLoss(slope, constant=1.0), tangent):
        assert floor(loss, dw.LinfBall(2)) == pytest.approx(-6.0)
        assert floor(loss, Sloppy(2)) == pytest.approx(-6.0)
    off = FunctionLoss(lambda x: float(((x - 3.0) ** 2).sum()), lambda x: 2.0 * (x - 3.0))
    # By the tangent at 0, 18 - 12 on the cube; the least is (1 - 3)^2 twice.
    assert floor(off, dw.LinfBall(2)) == pytest.approx(6.0)
