"""Ensembles over a grid of step sizes."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from driftwolfe.domains import OracleCalls
from driftwolfe.ensemble import Hedge, threads
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.evaluate import combine, products, require_finite, stack, values_and_slopes
from driftwolfe.ensemble.experts import Experts, descent
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.ensemble.list import ListDescent, Path
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Round, as_loss
from driftwolfe.learners.options import EpochLearner
from driftwolfe.losses import FunctionLoss, Loss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require


class View(NamedTuple):
    """One round as an ensemble sees it.

    Attributes
    ----------
    value
        :math:`f_t(x_t)`.
    played
        What the meta holds against the experts: value, or the linearised loss at :math:`x_t`.
    experts
        The experts' losses, or their linearised losses.
    slopes
        What `prepare` takes: a slope for all experts, or one for each; where they are stacked,
        their gradients.
    """

    value: float
    played: float
    experts: Array
    slopes: Any


def view(loss: Loss, experts: Experts, weights: Array, linear: bool) -> View:
    r"""Look at the loss through every expert, once.

    As :math:`A\sum_i w_i x_i = \sum_i w_i A x_i`, the combined decision is never formed. With linear
    feedback all is done with :math:`\ell_t(x) = \langle\nabla f_t(x_t), x\rangle`: one gradient for
    everybody.
    """
    if isinstance(experts, DenseDescent) and not linear:
        losses, gradients, suffered = experts.round_of(loss, weights)
        require_finite(suffered, losses)
        return View(suffered, suffered, losses, gradients)
    scores = experts.evaluate(loss)
    combined = combine(weights, scores)
    if linear:
        value, slope = loss.value_and_slope_at(combined)
        require_finite(value, slope)
        losses = products(slope, scores)
        return View(float(value), float(weights @ losses), losses, slope)
    losses, slopes, suffered = values_and_slopes(loss, scores, combined)
    require_finite(suffered, losses, slopes)
    return View(suffered, suffered, losses, slopes)


class HedgedEnsemble(EpochLearner):
    """A fixed number of experts in each epoch, combined by exponential weights.

    A named one sets up its experts and its meta in `_begin`.
    """

    STATE = ("_experts", "_meta")

    _experts: Descent | Leaders
    _meta: Hedge

    def check_state(self) -> None:
        """As `EpochLearner.check_state`; a weight for each expert."""
        super().check_state()
        number = self._number_of_experts(self._epoch_length)
        require(self._experts.size == self._meta.size == number, "experts and weights")

    @abstractmethod
    def _number_of_experts(self, horizon: int) -> int:
        """How many there are in an epoch of that length."""

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts' points."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_weights(self) -> Array:
        """The weights of the experts."""
        return self._meta.weights

    def update(self, loss: Any) -> float:
        """Play the mean, weigh the experts by their losses, let each take its step."""
        f = as_loss(loss)
        seen = view(f, self._experts, self._meta.weights, self.options.linear)
        prepared = self._experts.prepare(f, seen.slopes, shared=self.options.linear)
        self._meta.update(seen.experts)
        self._experts.commit(prepared)
        self._advance()
        return seen.value

    @property
    def runs_ahead(self) -> bool:
        """With several threads, where experts follow their own gradients at their own steps."""
        experts = self._experts
        alone = isinstance(experts, ListDescent) and experts.independent
        return alone and not self.options.linear and threads.threads() > 1

    def update_many(self, losses: Sequence[Any]) -> list[Round]:
        """As `Learner.update_many`; experts run ahead in threads, and are combined afterwards.

        A user's own functions are asked in order and in one thread.
        """
        own = any(isinstance(as_loss(loss), FunctionLoss) for loss in losses)
        if own or not (self.runs_ahead and cast(ListDescent, self._experts).ahead_pays):
            return super().update_many(losses)
        rounds: list[Round] = []
        while len(rounds) < len(losses):
            rounds += self._run_ahead(losses[len(rounds) :][: self._rounds_left()])
        return rounds

    def _run_ahead(self, losses: Sequence[Any]) -> list[Round]:
        experts, meta = cast(ListDescent, self._experts), copy.copy(self._meta)
        rounds = []
        try:
            paths = experts.run_ahead([as_loss(loss) for loss in losses])
            for t, loss in enumerate(losses):
                combined = combine(meta.weights, stack([path.scores[t] for path in paths]))
                value = float(as_loss(loss).value_at(combined))
                values = to_host(stack([path.values[t] for path in paths]))
                require_finite(value, values, *(path.slopes[t] for path in paths))
                meta.update(values)
                rounds.append(Round(value, *_calls_in(paths, t)))
        except Exception:  # nothing has changed: play up to the loss that is refused
            return super().update_many(losses)
        experts.arrive(paths, [as_loss(loss) for loss in losses])
        self._meta = meta
        for done in rounds:
            self._counted.calls.add(*done[1:])
            self._advance()
        return rounds

    def _restart_point(self) -> Point:
        weights = self._meta.weights
        return current_point(self._experts, weights, int(near_largest(weights)[0]))

    def _largest_gradient(self) -> float:
        return self._experts.largest_gradient


def _calls_in(paths: Sequence[Path], t: int) -> list[int]:
    """The calls of all experts in one round of a run ahead, as `OracleCalls.numbers` has them."""
    now = zip(*(path.calls[t].numbers() for path in paths), strict=True)
    before = zip(
        *((path.calls[t - 1] if t else OracleCalls()).numbers() for path in paths), strict=True
    )
    return [sum(later) - sum(earlier) for later, earlier in zip(now, before, strict=True)]


def current_point(experts: Experts, weights: Array, heaviest: int) -> Point:
    """The combined point, or, where forming that would pile up factors, the heaviest expert's.

    Experts that have not parted yet have the same weights but for rounding: who calls says which of
    them is meant, by a rule of its own.
    """
    if isinstance(experts, DenseDescent):
        return experts.mean(weights)
    leader = experts.point(heaviest)
    return leader if isinstance(leader, FactoredMatrix) else experts.mean(weights)


class GridEnsemble(HedgedEnsemble):
    """A grid of step sizes, an expert for each, and exponential weights.

    A named one says what its grid is (`_plans`).
    """

    _experts: Descent

    @property
    def expert_names(self) -> list[str]:
        """The step sizes; relative to c where that is learned."""
        c = self.options.step_scale
        if c is None:
            return [f"h = {step:.3g}" for step in self._experts.steps]
        return [f"η = {float(f'{c * step:.3g}'):,g}" for step in self._experts.steps]

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the best expert's bound plus the price of finding it; see `Learner.bound`.

        The range of losses B in the price is `lipschitz` * diameter; a learned B was never larger.
        """
        path_length, tau = bounds.asked(path_length, tau)
        if tau is not None:
            return super().bound(path_length, tau)
        G = self.lipschitz
        total = 0.0
        for horizon, rounds, first in self._epochs():
            meta = self._make_meta(horizon)
            spread = G * self.domain.diameter
            total += min(
                self._expert_bound(plan, rounds, path_length, first)
                + (meta.regret_bound(i, rounds, spread) if spread > 0 else 0.0)
                for i, plan in enumerate(self._plans(horizon), start=1)
            )
        return total

    def _expert_bound(self, plan: Plan, rounds: int, path_length: float, first: bool) -> float:
        G = self.lipschitz
        return bounds.blocked_descent(
            G,
            2.0 * self.domain.radius,
            rounds,
            self._experts.scale_for(G) * plan.step,
            plan.block,
            self._experts.tolerance_for(plan),
            path_length,
            bounds.AT_CENTER if first else bounds.ANYWHERE,
            shrinking_steps=self.options.step_scale is None,
            delay_factor=self.options.delay_factor,
        )

    @abstractmethod
    def _plans(self, horizon: int) -> Sequence[Plan]:
        """The experts for an epoch of that length, smallest step first."""

    def _number_of_experts(self, horizon: int) -> int:
        return len(self._plans(horizon))

    def _make_meta(self, horizon: int) -> Hedge:
        size = len(self._plans(horizon))
        return Hedge(size, horizon=horizon, loss_scale=self.options.loss_scale)

    def _begin(self, horizon: int, start: Point) -> None:
        before = self._experts if self.t else None
        self._experts = descent(self._counted, self.options.oracle, self.options.step_scale)
        self._experts.remember(before)
        self._experts.add(start, self._plans(horizon))
        self._meta = self._make_meta(horizon)
