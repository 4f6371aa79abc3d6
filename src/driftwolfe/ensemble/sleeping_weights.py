"""Weights of experts that come and go, as with the intervals of a cover."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from driftwolfe.ensemble.plan import GeometricCover
from driftwolfe.ensemble.weights import ROUNDING, LossScale, Totals, first_scale
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import POSITIVE, Field, Size, Stateful
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")


@dataclass(eq=False)
class SleepingMeta(Stateful, ABC):
    """Weights of the experts that are awake: those of the active intervals of a cover.

    Parameters
    ----------
    loss_scale
        The bound B on differences of losses, in units of the loss, or ``"auto"``: the largest so far, rounding
        apart. A larger one is cut to the old B, then what is in units of B takes the new unit; that costs at
        most B in all (docs/theory/bounds.md).
    """

    #: Arrays with an entry for each expert.
    COLUMNS: ClassVar[tuple[str, str]]

    loss_scale: LossScale = "auto"
    scale: Size = field(init=False)  # the B in use
    largest_difference: Size = field(init=False, default=0.0)  # a given B may be too small for it

    def __post_init__(self) -> None:
        self.scale = first_scale(self.loss_scale)
        for name in self.COLUMNS:
            setattr(self, name, np.zeros(0))

    @property
    def size(self) -> int:
        """Number of experts that are awake."""
        return int(getattr(self, self.COLUMNS[0]).size)

    @property
    @abstractmethod
    def weights(self) -> Array:
        """The weights of the experts that are awake, each >= 0, of sum 1; a new array."""

    @abstractmethod
    def add(self, new: Sequence[int]) -> None:
        """Add experts behind the present ones, given the lengths of their intervals in rounds."""

    @abstractmethod
    def restart(self, which: Any) -> None:
        """Replace experts, a slice or positions, by new ones for intervals of the same lengths."""

    @abstractmethod
    def update(self, learner_loss: float, expert_losses: Any) -> None:
        """Take the loss of the combined decision and those of the experts that are awake."""

    def regret_bound(
        self,
        length: float,
        end: int,
        scale: float,
        created: int | None = None,
        awake: int | None = None,
    ) -> float:
        r"""Return the bound on the regret against the expert of one interval.

        Parameters
        ----------
        length, end, scale
            Rounds :math:`\ell` of the interval; its last round j, counted from 1; B: no difference was larger.
        created, awake
            Number :math:`N_j` of experts ever added up to round j, and the most in one round (all, if not
            given); those of the geometric cover, :math:`\sum_k \lfloor j/2^k \rfloor`, if neither is given.
        """
        last = checks.count(end, "end")
        if created is None:
            created, awake = GeometricCover().created(last), last.bit_length()
        found = self._relative_bound(length, last, created, min(awake or created, created))
        return scale * (found + (self.loss_scale == "auto"))  # B more for what was cut

    @abstractmethod
    def _relative_bound(self, length: float, last: int, number: int, awake: int) -> float:
        """The bound on the regret in units of B, for a given B."""

    def _append(self, *columns: Array) -> None:
        for name, new in zip(self.COLUMNS, columns, strict=True):
            setattr(self, name, np.concatenate((getattr(self, name), new)))

    def _checked(self, learner_loss: Any, expert_losses: Any) -> tuple[float, Array]:
        """The losses of an update; an array of the experts' as compiled loops take it."""
        losses = checks.finite_array(expert_losses, "expert_losses", (self.size,))
        if not (isinstance(learner_loss, float) and math.isfinite(learner_loss)):
            learner_loss = float(checks.finite_array(learner_loss, "learner_loss", ()))
        return learner_loss, np.ascontiguousarray(losses)


@dataclass(eq=False)
class AdaNormalHedge(SleepingMeta):
    r"""Weights from each expert's regret R and the total size C of its differences.

    .. math:: w(R, C) = \tfrac12(\Phi(R+1, C+1) - \Phi(R-1, C+1)), \qquad \Phi(R, C) = \exp\big([R]_+^2/(3C)\big)

    .. math:: R_i \leftarrow R_i + r_i, \quad C_i \leftarrow C_i + |r_i|, \quad r_i = (f_t(x_t) - f_t(x_{t,i}))/B

    divided by their sum. There is no learning rate. A new expert starts at R = C = 0. Where all R are at most
    -1 (the combined decision beats all experts) the weights are equal.

    The regret against an expert that was awake for :math:`\ell` rounds, the last of them round j, is at most
    :math:`B \sqrt{3 \ell c(j)}` (`regret_bound`; for :math:`\ell` also, sharper, its C at the end), with
    :math:`c(j) = \ln(N_j + \tfrac32 A_j\,j)`, :math:`A_j` the most experts awake in one round, or
    :math:`c(j) = \ln N_j + \ln\frac{5 + 3 \ln(1 + j)}{2}` if smaller. With ``loss_scale="auto"`` it is at most B
    more, with the first c(j) and B the largest difference so far: nothing needs to be known of the losses.

    Parameters
    ----------
    loss_scale
        The bound B on the differences, in units of the loss, or ``"auto"``.

    Examples
    --------
    >>> meta = AdaNormalHedge(loss_scale=1.0)
    >>> meta.add(2)
    >>> meta.update(0.5, [0.0, 1.0])
    >>> meta.weights.round(4)
    array([0.9191, 0.0809])

    References
    ----------
    Luo and Schapire (2015), Achieving all with no parameters: AdaNormalHedge, COLT; as used by Zhang, Lu and Yang
    (2020), Minimizing dynamic regret and adaptive regret simultaneously, AISTATS.
    """

    COLUMNS: ClassVar = ("regrets", "movements")

    #: R and C of those awake.
    regrets: Annotated[Array, Field(np.float64, ("experts",))] = field(init=False)
    movements: Totals = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        kernels("weights", "update")  # compiled now, not in a round

    def check(self) -> None:
        # A sum is at most the sum of sizes, rounding apart.
        slack = (1.0 + 1e-6) * self.movements + 1e-6
        require((np.abs(self.regrets) <= slack).all(), "weights")

    @property
    def weights(self) -> Array:
        found: Array = np.empty(self.regrets.size)
        kernels().weights(self.regrets, self.movements, found)
        return found

    def add(self, new: int | Sequence[int]) -> None:
        """Add `new` experts, or as many as it lists intervals: their lengths do not matter here."""
        number = len(new) if isinstance(new, Sequence) else checks.count(new, "new", least=0)
        self._append(np.zeros(number), np.zeros(number))

    def restart(self, which: Any) -> None:
        self.regrets, self.movements = self.regrets.copy(), self.movements.copy()
        self.regrets[which] = self.movements[which] = 0.0

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        learner, losses = self._checked(learner_loss, expert_losses)
        self.regrets, self.movements = self.regrets.copy(), self.movements.copy()
        self.scale, difference = kernels().update(
            self.regrets, self.movements, learner, losses, self.scale, self.loss_scale == "auto"
        )
        self.largest_difference = max(self.largest_difference, difference)

    def _relative_bound(self, length: float, last: int, number: int, awake: int) -> float:
        potential = number + 1.5 * awake * last
        if self.loss_scale != "auto":  # the sum of |r|/(C + 1) of one expert grows like a logarithm
            potential = min(potential, number * (2.5 + 1.5 * math.log1p(last)))
        return math.sqrt(3.0 * checks.nonnegative(length, "length") * math.log(potential))


@dataclass(eq=False)
class MultiplicativeWeights(SleepingMeta):
    r"""Multiplicative weights whose rates come from the lengths of the experts' intervals.

    .. math:: w_I \leftarrow w_I (1 + \eta_I r_I), \quad r_I = (f_t(x_t) - f_t(x_{t,I}))/B, \quad
              \eta_I = \min(1/2, 1/\sqrt{|I|})

    from :math:`w_I = \eta_I`. The regret against the expert of an interval of :math:`\ell` rounds, the
    last of them round j, is at most :math:`B(\ln(N_j)/\eta + \eta \ell)` (`regret_bound`). With
    ``loss_scale="auto"`` it is at most B more, with B the largest difference so far; where B grows by a
    factor, all :math:`w_I/\eta_I` are raised to the power of its inverse. Differences beyond a given B count as B.

    Parameters
    ----------
    loss_scale
        The bound B on the differences, in units of the loss, or ``"auto"``.

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

    COLUMNS: ClassVar = ("log_weights", "rates")

    log_weights: Annotated[Array, Field(np.float64, ("experts",))] = field(init=False)  # log w_I
    rates: Annotated[Array, Field(np.float64, ("experts",), POSITIVE, 0.5)] = field(init=False)

    @property
    def weights(self) -> Array:
        return _normalised(self.log_weights)

    def add(self, new: Sequence[int]) -> None:
        rates = np.array([_rate(checks.count(length, "length")) for length in new])
        self._append(np.log(rates), rates)

    def restart(self, which: Any) -> None:
        self.log_weights = self.log_weights.copy()
        self.log_weights[which] = np.log(self.rates[which])

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        learner, losses = self._checked(learner_loss, expert_losses)
        ahead, before = learner - losses, self.scale
        difference = float(np.abs(ahead).max(initial=0.0))
        if self.loss_scale == "auto" and difference > before:
            if difference <= ROUNDING * float(np.abs(losses).max(initial=abs(learner))):
                return
            self.scale = difference
        self.largest_difference = max(self.largest_difference, difference)
        if self.scale > 0.0:
            steps = self.rates * (np.clip(ahead, -self.scale, self.scale) / self.scale)
            self.log_weights = self.log_weights + np.log1p(steps)
        if 0.0 < before < self.scale:
            first = np.log(self.rates)
            self.log_weights = first + before / self.scale * (self.log_weights - first)

    def _relative_bound(self, length: float, last: int, number: int, awake: int) -> float:
        rounds = checks.count(length, "length")
        return math.log(number) / _rate(rounds) + _rate(rounds) * rounds


@dataclass(eq=False)
class SpecialistWeights(Stateful):
    """Weights of experts of which one starts in every round, at the natural rate: `AFLH` has the formulas."""

    alpha: float
    log_weights: Annotated[Array, Field(np.float64, ("experts",), most=1e-6)] = field(init=False)
    births: Annotated[Indices, Field(np.int64, ("experts",), 1)] = field(init=False)  # first rounds

    def __post_init__(self) -> None:
        self.log_weights, self.births = np.array([-math.log(2.0)]), np.array([1])

    @property
    def weights(self) -> Array:
        """The weights of those awake in the coming round."""
        return _normalised(self.log_weights)

    def update(self, losses: Array) -> Indices:
        """Take the losses of those awake; return which stay, before the one that starts with the next round."""
        gains = self.log_weights - self.alpha * (losses - losses.min())
        logs = gains - (_log_sum(gains) - _log_sum(self.log_weights))
        start = int(self.births[-1]) + 1
        stay: Indices = np.flatnonzero(self.births + (self.births & -self.births) > start)
        first = -math.log(start) - math.log(start + 1)
        self.log_weights = np.append(logs[stay], first)
        self.births = np.append(self.births[stay], start)
        return stay

    def check(self) -> None:
        start = int(self.births[-1])
        levels = [1 << k for k in range(start.bit_length() - 1, -1, -1)]
        awake = [start // size * size for size in levels if start // size % 2]
        require(self.births.tolist() == awake, "experts and rounds")


def _normalised(logs: Array) -> Array:
    weights = np.exp(logs - logs.max(initial=-np.inf))  # no overflow
    normal: Array = weights / weights.sum()
    return normal


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(np.exp(logs - largest).sum())


def _rate(length: int) -> float:
    return min(0.5, 1.0 / math.sqrt(length))
