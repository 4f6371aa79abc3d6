"""`HedgedEnsemble`: experts that are always awake, Hedge over them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

from driftwolfe.domains import OracleCalls
from driftwolfe.ensemble import Hedge, threads
from driftwolfe.ensemble.dense_descent import DenseDescent
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import Experts
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.ensemble.list_descent import ListDescent, Path
from driftwolfe.ensemble.scores import combine, require_finite, stack
from driftwolfe.learners.base import Round, as_loss
from driftwolfe.learners.ensemble import view
from driftwolfe.learners.epochs import EpochLearner
from driftwolfe.losses import FunctionLoss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage.state import require


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
