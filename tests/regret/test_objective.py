"""What a sum of losses says of itself."""

import numpy as np
import pytest

from driftwolfe.losses import AbsoluteEntries, FunctionLoss, HingeLoss, LinearLoss, SquaredDistance
from driftwolfe.regret.objective import Objective, Term


class Own(LinearLoss):
    """A loss of a user's own: nothing is known of its kinks."""


KNOWN = [
    SquaredDistance(np.ones(2)),
    HingeLoss(np.ones((1, 2)), [1]),
    AbsoluteEntries([0], [1], [0.5]),
]
UNKNOWN = [FunctionLoss(lambda x: float(abs(x[0])), lambda x: np.sign(x) * [1, 0])]


@pytest.mark.parametrize("loss", KNOWN, ids=lambda loss: type(loss).__name__)
def test_kinks_of_our_losses_are_known(loss):
    assert not Objective([Term(1.0, loss)]).unknown
    assert Objective([Term(1.0, loss), Term(1.0, UNKNOWN[0])]).unknown


def test_kinks_of_a_users_losses_are_not():
    assert Objective([Term(1.0, UNKNOWN[0])]).unknown
    assert Objective([Term(1.0, Own(np.ones(2)))]).unknown
