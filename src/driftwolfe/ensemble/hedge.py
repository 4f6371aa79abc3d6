"""Hedge: exponential weights over experts that are always awake."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.storage import require

#: The range B of the losses: a number that is certified, or learned from what was seen.
LossScale: TypeAlias = float | Literal["auto"]

#: Share of the losses up to which differences between them may be all rounding. Experts at one point
#: differ by that much, and a range learned from it would turn it into weights.
ROUNDING = 64 * 2.0**-52


def check_loss_scale(value: Any) -> LossScale:
    """Return the scale as given, or say what it may be.

    >>> check_loss_scale("automatic")
    Traceback (most recent call last):
        ...
    ValueError: loss_scale must be "auto" or a positive number, got 'automatic'
    """
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'loss_scale must be "auto" or a positive number, got {value!r}')
        return "auto"
    return checks.positive(value, "loss_scale")


def normalised(log_weights: Array) -> Array:
    """Return weights of sum 1 from their logarithms up to a constant; no overflow."""
    weights = np.exp(log_weights - log_weights.max(initial=-np.inf))
    normal: Array = weights / weights.sum()
    return normal


def ader_prior(size: int) -> Array:
    r"""Return the prior :math:`(1 + 1/N)/(i(i+1))`, i = 1..N: small steps weigh most, the sum is 1.

    Parameters
    ----------
    size
        Number N of experts.

    Examples
    --------
    >>> ader_prior(3)
    array([0.66666667, 0.22222222, 0.11111111])
    """
    number = checks.count(size, "size")
    i = np.arange(1.0, number + 1.0)
    prior: Array = (1.0 + 1.0 / number) / (i * (i + 1.0))
    return prior


@dataclass(eq=False)
class Hedge:
    r"""Exponential weights: :math:`w_{t,i} \propto p_i \exp(-a_t L_{t-1,i})`.

    :math:`L_{t,i}` is the total loss of expert i up to round t and p the prior. The rate is
    :math:`a_t = \sqrt{8/T}/B` for a known horizon T and :math:`\sqrt{8/t}/B` without one. Totals
    are kept, not weights, so a new rate reweighs the whole past, and no weight can overflow.

    With ``loss_scale="auto"`` the range B is learned: at each moment it is the largest difference
    between the losses of two experts in one round so far, rounding apart. Multiplying all losses by
    a number then changes nothing, and adding one to all never does. As long as B = 0 the weights
    are the prior.

    Parameters
    ----------
    size
        Number N of experts.
    horizon
        Number T of rounds, if known.
    loss_scale
        The range B, in units of the loss, that the losses of one round never exceed; or ``"auto"``.
    prior
        N positive numbers; they are divided by their sum. `ader_prior` if not given.

    Attributes
    ----------
    totals
        State: :math:`L_i`, less the smallest of them, in units of the loss.
    rounds
        State: number of updates so far.
    scale
        State: the range B in use.

    Examples
    --------
    >>> hedge = Hedge(2, horizon=8, loss_scale=1.0, prior=[0.5, 0.5])
    >>> hedge.update([0.0, 1.0])
    >>> hedge.weights.round(4)
    array([0.7311, 0.2689])

    References
    ----------
    Cesa-Bianchi and Lugosi (2006), Prediction, Learning, and Games, chapter 2; for the prior Zhang,
    Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.
    """

    STATE: ClassVar = ("size", "horizon", "prior", "totals", "scale", "rounds")

    size: int
    horizon: int | None = None
    loss_scale: LossScale = "auto"
    prior: Any = None
    totals: Array = field(init=False)
    rounds: int = field(init=False, default=0)
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        self.size = checks.count(self.size, "size")
        if self.horizon is not None:
            self.horizon = checks.count(self.horizon, "horizon")
        self.loss_scale = check_loss_scale(self.loss_scale)
        self.prior = _check_prior(self.prior, self.size)
        self.totals = np.zeros(self.size)
        self.scale = 0.0 if self.loss_scale == "auto" else self.loss_scale

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(self.size == self.prior.size == self.totals.size, "weights")
        require((self.prior > 0.0).all() and min(self.rounds, self.scale) >= 0, "weights")
        # The best has total 0, so that no rate can make all weights vanish.
        require(self.totals.min() == 0.0 and abs(self.prior.sum() - 1.0) < 1e-6, "weights")
        require(self.horizon is None or self.horizon > 0, "weights")

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        horizon = self.horizon or self.rounds + 1
        rate = math.sqrt(8.0 / horizon) / self.scale if self.scale > 0.0 else 0.0
        pairs = zip(self.prior.tolist(), self.totals.tolist(), strict=True)
        # A given scale may be absurdly small, and the rate infinite: the best alone keep weight.
        weights = [p * math.exp(-rate * L) if L > 0.0 else p for p, L in pairs]
        total = sum(weights)
        return np.array([weight / total for weight in weights])

    def update(self, losses: Any) -> None:
        """Take the losses of the experts in this round."""
        # One by one: for a dozen or two, array operations take three times as long.
        suffered: list[float] = checks.finite_array(losses, "losses", (self.size,)).tolist()
        low, high = min(suffered), max(suffered)
        if self.loss_scale == "auto" and high - low > ROUNDING * max(abs(low), abs(high)):
            self.scale = max(self.scale, high - low)
        # Only differences matter: what all have in common would eat their digits.
        pairs = zip(self.totals.tolist(), suffered, strict=True)
        totals = [total + (loss - low) for total, loss in pairs]
        least = min(totals)
        self.totals = np.array([total - least for total in totals])
        self.rounds += 1

    def regret_bound(self, expert: int, rounds: int, scale: float) -> float:
        r"""Return a bound on the loss of the weighted mean less that of one expert.

        With the default prior, a given `loss_scale` and `rounds` equal to the horizon T it is at
        most :math:`B \sqrt{T/8}\,(1 + 2 \ln(i + 1))`, and in general

        .. math:: \sqrt{H/8}\,\big(b \ln(1/p_i) + q B^2/b\big) + q'

        with H the horizon and q = rounds/H if there is one, else H = rounds and q = 2; b is
        `loss_scale`. For ``"auto"``, b = B, q is doubled and q' = 2B, else q' = 0.

        Parameters
        ----------
        expert
            Its number i, from 1.
        rounds
            Number of rounds played.
        scale
            B: no round had a larger difference between the losses of two experts.

        Notes
        -----
        With falling rates the mix losses :math:`-\frac1{a_t} \ln \sum_i w_{t,i} e^{-a_t l_{t,i}}`
        sum to at most :math:`L_i + \ln(1/p_i)/a_T`, and by Hoeffding's lemma the weighted
        mean exceeds the mix loss by at most :math:`a_t r_t^2/8`, :math:`r_t` the range of round t.
        Learned range: :math:`r_t \le 2 B_{t-1}` gives :math:`r_t^2/B_{t-1} \le 2 B`; in the other
        rounds B more than doubles, and as the excess is at most :math:`r_t`, they cost at most
        :math:`B + B/2 + \dots \le 2B`.
        """
        number = checks.count(rounds, "rounds")
        index = checks.count(expert, "expert") - 1
        if index >= self.size:
            raise ValueError(f"expert must lie in 1..{self.size}, got {expert}")
        price = -math.log(self.prior[index])
        horizon = self.horizon or number
        excess = 2.0 if self.horizon is None else number / horizon
        spread = checks.positive(scale, "scale")
        if self.loss_scale == "auto":
            return spread * (math.sqrt(horizon / 8.0) * (price + 2.0 * excess) + 2.0)
        given = self.loss_scale
        return math.sqrt(horizon / 8.0) * (given * price + excess * spread**2 / given)


def _check_prior(prior: Any, size: int) -> Array:
    if prior is None:
        return ader_prior(size)
    given = checks.finite_array(prior, "prior", (size,))
    if not (given > 0.0).all():
        raise ValueError(f"prior must be positive, got {given.min():g}")
    normal: Array = given / given.sum()
    return normal
