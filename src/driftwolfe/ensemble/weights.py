"""Weights of experts, from their losses. `docs/theory/bounds.md` proves the bounds on their regret."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import scipy  # its parts load when first named

from driftwolfe.ensemble.plan import ader_prior
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, compiled
from driftwolfe.state import POSITIVE, Count, Field, Size, Stateful
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")

#: The range B of the losses: a number that is certified, or learned from what was seen.
LossScale: TypeAlias = float | Literal["auto"]

#: Share of the losses up to which differences between them may be all rounding. Experts at one point
#: differ by that much, and a range learned from it would turn it into weights.
ROUNDING = 64 * 2.0**-52

#: What weights keep: how many experts there are, and numbers and parts of 1 for each.
Number: TypeAlias = Annotated[int, Field(int, least=1, size="experts")]
Totals: TypeAlias = Annotated[Array, Field(np.float64, ("experts",), 0.0)]
HORIZON = Field(int, least=1, below=1 << 62, optional=True)
PARTS = Field(np.float64, ("experts",), POSITIVE, sums=True)


def first_scale(loss_scale: Any) -> float:
    """Return the range to start with, checked: 0 where it is learned."""
    if not isinstance(loss_scale, str):
        return checks.positive(loss_scale, "loss_scale")
    if loss_scale != "auto":
        raise ValueError(f'loss_scale must be "auto" or a positive number, got {loss_scale!r}')
    return 0.0


@dataclass(eq=False)
class Hedge(Stateful):
    r"""Exponential weights: :math:`w_{t,i} \propto p_i \exp(-a L_{t-1,i})`.

    :math:`L_{t,i}` is the total loss of expert i up to round t, :math:`p_i = (1 + 1/N)/(i(i+1))` the prior, and
    :math:`a = \sqrt{8/T}/B` the rate. Totals are kept, not weights, so a new rate reweighs the whole past, and no
    weight can overflow.

    Parameters
    ----------
    size, horizon
        Number N of experts; rounds T.
    loss_scale
        The range B of the losses of a round, or ``"auto"``: the largest difference between two experts so far,
        rounding apart. Then multiplying all losses by a number changes nothing; where B = 0, w is the prior.

    Examples
    --------
    >>> hedge = Hedge(2, horizon=8, loss_scale=1.0)
    >>> hedge.update([0.0, 1.0])
    >>> hedge.weights.round(4)
    array([0.8908, 0.1092])

    References
    ----------
    Cesa-Bianchi and Lugosi (2006), Prediction, Learning, and Games, chapter 2; for the prior Zhang,
    Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.
    """

    size: Number
    horizon: Annotated[int, HORIZON]
    loss_scale: LossScale = "auto"
    prior: Annotated[Array, PARTS] = field(init=False)
    totals: Totals = field(init=False)  # L_i, less the smallest of them
    rounds: Count = field(init=False, default=0)  # updates so far
    scale: Size = field(init=False)  # the range B in use
    _weights: Array = field(init=False, repr=False)  # computed once per round

    def __post_init__(self) -> None:
        self.size = checks.count(self.size, "size")
        self.horizon = checks.count(self.horizon, "horizon")
        self.scale, self.prior = first_scale(self.loss_scale), ader_prior(self.size)
        self.totals = np.zeros(self.size)
        self.derive()

    def check(self) -> None:
        # The best has total 0, so that no rate can make all weights vanish.
        require(self.totals.min() == 0.0, "weights")

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        return self._weights.copy()

    def derive(self) -> None:
        rate = math.sqrt(8.0 / self.horizon) / self.scale if self.scale > 0.0 else 0.0
        pairs = zip(self.prior.tolist(), self.totals.tolist(), strict=True)
        # A given scale may be absurdly small, and the rate infinite: the best alone keep weight.
        weights = [p * math.exp(-rate * L) if L > 0.0 else p for p, L in pairs]
        total = sum(weights)
        self._weights = np.array([weight / total for weight in weights])

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
        self.derive()

    def regret_bound(self, expert: int, rounds: int, scale: float) -> float:
        r"""Return a bound on the loss of the weighted mean less that of one expert.

        .. math:: \sqrt{H/8}\,\big(b \ln(1/p_i) + q B^2/b\big) + q'

        with H the horizon, q = rounds/H, and b the `loss_scale`. For ``"auto"``, b = B, q is doubled and
        q' = 2B, else q' = 0.

        Parameters
        ----------
        expert, rounds, scale
            Its number i, from 1; rounds played; B: no two losses of one round differed by more.
        """
        number = checks.count(rounds, "rounds")
        index = checks.count(expert, "expert") - 1
        if index >= self.size:
            raise ValueError(f"expert must lie in 1..{self.size}, got {expert}")
        surprise, horizon = -math.log(self.prior[index]), self.horizon
        excess = number / horizon
        spread = checks.positive(scale, "scale")
        if self.loss_scale == "auto":
            return spread * (math.sqrt(horizon / 8.0) * (surprise + 2.0 * excess) + 2.0)
        return math.sqrt(horizon / 8.0) * (self.scale * surprise + excess * spread**2 / self.scale)


@dataclass(eq=False)
class ExpConcaveHedge(Stateful):
    r"""Exponential weights at the natural rate of exp-concave losses: :math:`w_i \propto p_i e^{-\alpha L_i}`.

    For losses with :math:`e^{-\alpha f}` concave the regret of the weighted mean against expert i is at most
    :math:`\ln(1/p_i)/\alpha`, whatever the range of the losses and the number of rounds. For the loss
    :math:`-\ln\langle r, x\rangle` of a portfolio, :math:`\alpha = 1`, this is a fund of funds: each
    expert is given the part p_i of the money at the start, and no money moves between them again.

    Parameters
    ----------
    size, alpha
        Number N of experts; the exp-concavity :math:`\alpha`, over units of the loss.
    prior
        N positive numbers; they are divided by their sum. All alike if not given.

    Examples
    --------
    >>> meta = ExpConcaveHedge(2, prior=[3.0, 1.0])
    >>> meta.update([0.0, -math.log(3.0)])  # the second has tripled its money
    >>> meta.weights
    array([0.5, 0.5])
    >>> round(meta.regret_bound(1), 4)
    1.3863

    References
    ----------
    Cover and Ordentlich (1996), Universal portfolios with side information, IEEE Transactions on
    Information Theory; Cesa-Bianchi and Lugosi (2006), Prediction, Learning, and Games, chapter 3.
    """

    size: Number
    alpha: float = 1.0
    prior: Annotated[Any, PARTS] = None
    totals: Totals = field(init=False)  # L_i, less the smallest of them

    def __post_init__(self) -> None:
        self.size = checks.count(self.size, "size")
        self.alpha = checks.positive(self.alpha, "alpha")
        prior = np.ones(self.size) if self.prior is None else self.prior
        given = checks.finite_array(prior, "prior", (self.size,))
        if not (given > 0.0).all():
            raise ValueError(f"prior must be positive, got {given.min():g}")
        self.prior = given / given.sum()
        self.totals = np.zeros(self.size)

    def check(self) -> None:
        require(self.totals.min() == 0.0, "weights")

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        with np.errstate(over="ignore"):  # an absurd alpha: the best alone keep weight
            weights: Array = self.prior * np.exp(-self.alpha * self.totals)
        return weights / weights.sum()

    def update(self, losses: Any) -> None:
        """Take the losses of the experts in this round."""
        totals = self.totals + checks.finite_array(losses, "losses", (self.size,))
        self.totals = totals - totals.min()

    def regret_bound(self, expert: int) -> float:
        r"""Return :math:`\ln(1/p_i)/\alpha` for an expert i, counted from 0."""
        return -math.log(self.prior[expert]) / self.alpha


@dataclass(eq=False)
class AdaHedge(Stateful):
    r"""Exponential weights that set their own rate, with a share for all, to follow the best expert.

    .. math:: \tilde w_i \propto w_i e^{-l_{t,i}/a_t}, \qquad
              w_i \leftarrow (1 - \alpha_t)\,\tilde w_i + \alpha_t/N, \qquad a_{t+1} = a_t + \delta_t/\ln N

    with :math:`\delta_t = \langle w, l_t\rangle + a_t\ln\langle w, e^{-l_t/a_t}\rangle`, the mixability gap,
    :math:`a_1 = 0` (the best alone keep weight) and :math:`\alpha_t = \min(1/2, f/t)`. There is no range and
    no rate to set: multiplying all losses by a number, or adding one to all, changes nothing. Experts
    may join at any time. `docs/theory/polar.md` has the proof of `regret_bound`.

    Parameters
    ----------
    size
        Number N of experts at the start.
    factor
        f, at most 1. A smaller one moves less weight to experts that have not been good so far.

    Examples
    --------
    >>> meta = AdaHedge(2)
    >>> for _ in range(20):
    ...     meta.update([0.0, 1.0])
    >>> meta.weights.round(2)
    array([0.94, 0.06])

    References
    ----------
    De Rooij, van Erven, Grünwald and Koolen (2014), Follow the leader if you can, hedge if you must,
    JMLR; Herbster and Warmuth (1998), Tracking the best expert, Machine Learning.
    """

    size: Number
    factor: float = 1.0
    weights: Annotated[Array, PARTS] = field(init=False)  # for the coming round
    inverse_rate: Size = field(init=False, default=0.0)  # a, in units of the loss
    rounds: Count = field(init=False, default=0)  # updates so far
    forgotten: Count = field(init=False, default=0)  # updates before the last `forget`
    kept: Size = field(init=False, default=0.0)  # a after that
    past: Size = field(init=False, default=0.0)  # bounds of stretches that have ended, together
    past_rate: Size = field(init=False, default=0.0)  # the largest a of these

    def __post_init__(self) -> None:
        self.size = checks.count(self.size, "size")
        self.factor = checks.positive(self.factor, "factor")
        if self.factor > 1.0:
            raise ValueError(f"factor must lie in (0, 1], got {self.factor}")
        self.weights = np.full(self.size, 1.0 / self.size)

    @property
    def share(self) -> float:
        """The share of the last round; before the first, all."""
        return min(0.5, self.factor / self.rounds) if self.rounds else 1.0

    def add(self, number: int) -> None:
        """Add experts behind the present ones: the share of the last round is for them too."""
        new = checks.count(number, "number", least=0)
        before, after = self.share / self.size, self.share / (self.size + new)
        self.size += new
        self.weights = np.concatenate((self.weights - before + after, np.full(new, after)))

    def update(self, losses: Any) -> None:
        """Take the losses of the experts in this round."""
        suffered = checks.finite_array(losses, "losses", (self.size,))
        ahead = suffered - suffered.min()
        ahead[ahead <= ROUNDING * np.abs(suffered).max()] = 0.0
        weights, a = self.weights, self.inverse_rate
        self.rounds += 1
        with np.errstate(over="ignore"):  # what is infinitely far behind keeps its share alone
            kept = np.exp(-ahead / a) if a > 0.0 else (ahead == 0.0).astype(np.float64)
        total = float(weights @ kept)
        gap = float(weights @ ahead) + (a * math.log(total) if a > 0.0 else 0.0)
        if self.size > 1:
            self.inverse_rate = a + max(0.0, gap) / math.log(self.size)
        self.weights = (1.0 - self.share) / total * (weights * kept) + self.share / self.size

    def forget(self) -> None:
        """Begin a new stretch: the inverse rate is what it grew by in the one that ends."""
        self.past, self.past_rate = self.regret_bound(), max(self.past_rate, self.inverse_rate)
        self.forgotten = self.rounds
        self.inverse_rate = self.kept = max(0.0, self.inverse_rate - self.kept)

    def regret_bound(self, changes: int = 0) -> float:
        r"""Return a bound on the loss of the weighted mean less that of a sequence of experts.

        .. math:: a\Big[\ln N + (S + 1)\ln\frac{N}{\alpha_T} + \ln(2 T^f)\Big]

        with the inverse rate a and the T rounds that were played. With stretches, the sum of that over all of
        them, :math:`f\ln(T/T_0)` in place of :math:`\ln(2T^f)` for one that began after round :math:`T_0`;
        each change in the one with the largest a.

        Parameters
        ----------
        changes
            S, how often the expert changes.
        """
        number, played = checks.count(changes, "changes", least=0), self.rounds
        if self.size == 1 or not played:
            return 0.0
        ways, f = math.log(self.size), self.factor
        change = ways + math.log(max(2.0, played / f))
        a, started = self.inverse_rate, self.forgotten
        falling = f * math.log(played / started) if started else math.log(2.0 * played**f)
        last = a * (ways + change + falling) if played > started else 0.0
        return self.past + last + number * max(a, self.past_rate) * change


@dataclass(eq=False)
class OptimisticHedge(Stateful):
    r"""Exponential weights that know a hint of the coming losses, and set their own rate.

    .. math:: w_i \propto e^{-(L_i + m_i)/a}, \qquad a \leftarrow a + \delta^+/\ln N, \qquad
              \delta = \langle w, l\rangle - \Phi_a(L + l) + \Phi_a(L)

    with :math:`L_i` the total losses, :math:`m_i` the hint (0 after each update, until `expect`) and
    :math:`\Phi_a(L) = -a\ln\tfrac1N\sum_i e^{-L_i/a}`, or the smallest :math:`L_i` at a = 0. The regret
    against any expert is at most :math:`2 a\ln N` (`regret_bound`), and

    .. math:: 2 a\ln N \le 2 s + \sqrt{\ln N\ \textstyle\sum_t s_t^2}, \qquad
              s_t = \max_i(l_i - m_i) - \min_i(l_i - m_i),\quad s = \max_t s_t

    : nothing but the errors of the hints. Multiplying all losses by a number, or adding one to all, changes
    nothing. `docs/theory/benign.md` has the proof.

    Parameters
    ----------
    size, start
        Number N of experts; a at the beginning, in units of the loss. Larger ones keep weights from moving
        much, and add `start` ln N to the bound.

    Examples
    --------
    >>> meta = OptimisticHedge(2)
    >>> for loss in ([1.0, 0.0], [0.0, 1.0]):
    ...     meta.expect(loss)  # hints that are right
    ...     meta.update(loss)
    >>> meta.inverse_rate, meta.weights
    (0.0, array([0.5, 0.5]))

    References
    ----------
    Rakhlin and Sridharan (2013), Online learning with predictable sequences, COLT; de Rooij, van Erven,
    Grünwald and Koolen (2014), Follow the leader if you can, hedge if you must, JMLR; Flaspohler et al.
    (2021), Online learning with optimism and delay, ICML.
    """

    size: Number
    start: float = 0.0
    totals: Totals = field(init=False)  # L_i, less the smallest of them
    hint: Annotated[Array, Field(np.float64, ("experts",))] = field(init=False)  # of coming losses
    inverse_rate: Size = field(init=False)  # a, in units of the loss
    rounds: Count = field(init=False, default=0)  # updates so far

    def __post_init__(self) -> None:
        self.size = checks.count(self.size, "size")
        self.start = self.inverse_rate = checks.nonnegative(self.start, "start")
        self.totals, self.hint = np.zeros((2, self.size))
        kernels("exponential_weights", "optimistic_update")  # compiled now, not in a round

    def check(self) -> None:
        require(self.totals.min() == 0.0 and self.inverse_rate >= self.start, "weights")

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        weights: Array = kernels().exponential_weights(self.totals, self.hint, self.inverse_rate)
        return weights

    def expect(self, losses: Any) -> None:
        """Take a hint of the losses of the coming round."""
        self.hint = checks.finite_array(losses, "losses", (self.size,)).copy()

    def update(self, losses: Any) -> None:
        """Take the losses of the experts in this round."""
        suffered = checks.finite_array(losses, "losses", (self.size,))
        self.totals, self.inverse_rate = kernels().optimistic_update(
            self.totals, self.hint, np.ascontiguousarray(suffered), self.inverse_rate
        )
        self.hint = np.zeros(self.size)
        self.rounds += 1

    def regret_bound(self) -> float:
        """Return a bound on the loss of the weighted mean less that of any expert, so far."""
        return (2.0 * self.inverse_rate - self.start) * math.log(self.size)


@dataclass(eq=False)
class NormalPredictors(Stateful):
    """Weights by a chain of discounted normal predictors: the i-th mixes expert i with all before it.

    For experts on shorter and shorter time scales; `docs/theory/benign.md` says what they promise.
    """

    scale: Size  # the largest range of the losses in a round so far
    size: Number
    horizon: Annotated[int, HORIZON]
    deviations: Annotated[Array, Field(np.float64, ("experts",))] = field(init=False)

    def __post_init__(self) -> None:
        self.deviations = np.zeros(self.size)
        self.derive()

    def derive(self) -> None:
        self.lengths = self.horizon * 0.5 ** np.arange(self.size)
        self.limits = np.sqrt(16.0 * self.lengths * math.log(max(2, self.horizon)))

    @property
    def shares(self) -> Array:
        """The share of each expert against all before it; 1 for the first."""
        x, n = np.clip(self.deviations, 0.0, self.limits), self.lengths
        root = np.sqrt(math.pi * n / 32.0) * scipy.special.erf(x / np.sqrt(8.0 * n))
        shares = np.minimum(1.0, root * np.exp(x * x / (16.0 * n)) / self.horizon)
        return np.append(1.0, shares[1:])

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        shares = self.shares
        return shares * np.cumprod(np.append(1.0, 1.0 - shares[:0:-1]))[::-1]

    def check(self) -> None:
        require(bool((abs(self.deviations) <= self.limits + 1.0).all()), "weights")

    def update(self, losses: Array) -> None:
        """Take the losses of the experts: what each gains on those before it, over the range so far."""
        x, shares, mixed = self.deviations, self.shares, float(losses[0])
        gains, spread = np.zeros(self.size), float(np.ptp(losses))
        for i in range(1, self.size):
            gains[i] = mixed - losses[i]
            mixed -= shares[i] * gains[i]
        if spread <= ROUNDING * float(abs(losses).max()):
            spread, gains = 0.0, 0.0 * gains
        bits = np.clip(gains / self.scale, -1.0, 1.0) if self.scale > 0.0 else 0.0 * gains
        settled = ((x < 0.0) & (bits < 0.0)) | ((shares == 1.0) & (bits > 0.0))
        x = x - x / self.lengths + np.where(settled, 0.0, bits)
        grown = max(self.scale, spread)
        self.deviations, self.scale = x * (self.scale / grown if grown > 0.0 else 1.0), grown
