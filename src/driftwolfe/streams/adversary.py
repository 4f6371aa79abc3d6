"""Losses that react to the learner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.learners.base import Learner
from driftwolfe.losses import LinearLoss
from driftwolfe.points import checks, inner
from driftwolfe.points.kinds import Point
from driftwolfe.streams.geometry import wide_direction, width_along


class SignAdversary:
    r"""Answers every decision with the linear loss that hurts it.

    Along a unit vector e the set reaches from a to b, with the middle :math:`m = (a + b)/2`. The
    answer to x is

    .. math:: f(z) = \pm G (\langle e, z\rangle - m), \qquad f(x) = G\,|\langle e, x\rangle - m|,

    with the sign that makes f(x) non-negative, while the far end has the loss :math:`-G (b - a)/2`:
    every round costs at least that much against its minimiser.

    Parameters
    ----------
    domain
        The set.
    direction
        The vector e, scaled to unit length here; if not given, one in which the set is wide.
    lipschitz
        G, the norm of every gradient, in units of the loss over those of x.
    seed
        Of the direction, where none is given.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> adversary = SignAdversary(dw.L2Ball(2), direction=[1.0, 0.0])
    >>> adversary.answer(np.array([0.25, 0.0])).value([0.25, 0.0])
    0.25
    >>> adversary.answer(np.array([-0.5, 0.0])).value([-0.5, 0.0])
    0.5
    """

    def __init__(
        self,
        domain: Domain,
        direction: Any = None,
        lipschitz: float = 1.0,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self.lipschitz = checks.positive(lipschitz, "lipschitz")
        if direction is None:
            width = wide_direction(domain, np.random.default_rng(seed))
        else:
            width = width_along(domain, domain.check_point(direction, "direction"))
        self.direction = width.direction
        self.middle = sum(width.ends) / 2.0
        slope, height = self.direction * self.lipschitz, self.lipschitz * self.middle
        self._rising = LinearLoss(slope, constant=-height)
        self._falling = LinearLoss(slope * -1.0, constant=height)

    def answer(self, decision: Point) -> LinearLoss:
        """Return the loss that hurts this decision."""
        above = inner(self.direction, decision) >= self.middle
        return self._rising if above else self._falling


def against(
    learner: Learner,
    rounds: int,
    lipschitz: float = 1.0,
    direction: Any = None,
    seed: int | np.random.Generator | None = None,
) -> Iterator[LinearLoss]:
    """Yield losses that each look at the learner's decision first; see `SignAdversary`.

    Parameters
    ----------
    learner
        The one to play against, and to pass to `play` along with this.
    rounds
        Number of losses.
    lipschitz, direction, seed
        As in `SignAdversary`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(2), horizon=30, lipschitz=1.0)
    >>> history = dw.play(learner, dw.streams.against(learner, 30, seed=0))
    >>> bool(history.losses.min() >= 0)
    True
    """
    adversary = SignAdversary(learner.domain, direction, lipschitz, seed)
    for _ in range(checks.count(rounds, "rounds")):
        yield adversary.answer(learner.decision)
