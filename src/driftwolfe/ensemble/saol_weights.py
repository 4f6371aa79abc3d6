"""`MultiplicativeWeights`: SAOL's weights for experts that come and go."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from driftwolfe.ensemble.cover import GeometricCover
from driftwolfe.ensemble.meta import ROUNDING, LossScale, check_loss_scale, normalised
from driftwolfe.ensemble.sleeping import checked_losses, kept, largest
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.storage.state import require


@dataclass(eq=False)
class MultiplicativeWeights:
    r"""Multiplicative weights whose rates come from the lengths of the experts' intervals.

    .. math::

        w_I \leftarrow w_I (1 + \eta_I r_I), \qquad r_I = (f_t(x_t) - f_t(x_{t,I}))/B, \qquad
        \eta_I = \min(1/2, 1/\sqrt{|I|})

    from :math:`w_I = \eta_I`. Logarithms are kept. With ``loss_scale="auto"``, B is the largest
    difference so far and the weights of the past stay as they are: a heuristic. Differences
    beyond a given B count as B.

    Parameters
    ----------
    loss_scale
        The bound B on the differences, in units of the loss, or ``"auto"``.

    Attributes
    ----------
    log_weights, rates
        State: logarithms of the :math:`w_I`, and the :math:`\eta_I`, of the experts awake.
    scale
        State: the B in use.
    largest_difference
        State: the largest difference so far, in units of the loss.

    Examples
    --------
    >>> meta = MultiplicativeWeights(loss_scale=1.0)
    >>> meta.add([1, 16])
    >>> meta.weights.round(4)
    array([0.6667, 0.3333])
    >>> meta.update(0.5, [1.0, 0.0])
    >>> meta.weights.round(4)
    array([0.5714, 0.4286])

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz (2015), Strongly adaptive online learning, ICML.
    """

    STATE: ClassVar = ("scale", "log_weights", "rates", "largest_difference")

    loss_scale: LossScale = "auto"
    log_weights: Array = field(init=False)
    rates: Array = field(init=False)
    scale: float = field(init=False)
    largest_difference: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self.loss_scale = check_loss_scale(self.loss_scale)
        self.scale = 0.0 if self.loss_scale == "auto" else self.loss_scale
        self.log_weights = np.zeros(0)
        self.rates = np.zeros(0)

    @property
    def size(self) -> int:
        """Experts that are awake."""
        return int(self.rates.size)

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(self.log_weights.size == self.rates.size, "weights")
        require(min(self.scale, self.largest_difference) >= 0.0, "weights")
        require(((self.rates > 0.0) & (self.rates <= 0.5)).all(), "weights")

    @property
    def weights(self) -> Array:
        """The weights of the experts that are awake."""
        return normalised(self.log_weights)

    def add(self, new: Sequence[int]) -> None:
        """Add experts, given the lengths of their intervals."""
        rates = np.array([_rate(checks.count(length, "length")) for length in new])
        self.rates = np.concatenate((self.rates, rates))
        self.log_weights = np.concatenate((self.log_weights, np.log(rates)))

    def restart(self, number: int) -> None:
        """Put new experts in the places of the first ones, for intervals of the same lengths."""
        self.log_weights = self.log_weights.copy()
        self.log_weights[:number] = np.log(self.rates[:number])

    def remove(self, which: Any) -> None:
        """Remove experts, given their positions or a mask."""
        stay = kept(self.rates.size, which)
        self.rates = self.rates[stay]
        self.log_weights = self.log_weights[stay]

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        """Take the loss of the combined decision and those of the experts that are awake."""
        learner, losses = checked_losses(learner_loss, expert_losses, self.rates.size)
        ahead = learner - losses
        difference = largest(ahead)
        self.largest_difference = max(self.largest_difference, difference)
        rounding = ROUNDING * max(abs(learner), largest(losses))
        if self.loss_scale == "auto" and difference > max(self.scale, rounding):
            self.scale = difference
        if self.scale == 0.0:
            return
        steps = self.rates * np.clip(ahead / self.scale, -1.0, 1.0)
        self.log_weights = self.log_weights + np.log1p(steps)

    def regret_bound(
        self, length: int, end: int, scale: float, created: int | None = None
    ) -> float:
        r"""Return :math:`B(\ln(N_j)/\eta_J + \eta_J |J|)`, a bound on the regret.

        Parameters
        ----------
        length
            Length :math:`|J|` of its interval.
        end
            The last round j of it, counted from 1.
        scale
            B: no difference was larger.
        created
            Number :math:`N_j` of experts ever added up to round j; that of the geometric cover,
            :math:`\sum_k \lfloor j/2^k \rfloor`, if not given.

        Notes
        -----
        The :math:`w_I/\eta_I` start at 1, and by convexity their sum never rises but by new ones:
        each is at most :math:`N_j`. And :math:`\ln(1 + z) \ge z - z^2` for :math:`|z| \le 1/2`.
        """
        number = GeometricCover().created(checks.count(end, "end")) if created is None else created
        rounds = checks.count(length, "length")
        rate = _rate(rounds)
        return scale * (math.log(number) / rate + rate * rounds)


def _rate(length: int) -> float:
    return min(0.5, 1.0 / math.sqrt(length))
