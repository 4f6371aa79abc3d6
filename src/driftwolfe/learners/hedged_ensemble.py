"""`HedgedEnsemble`: experts that are always awake, Hedge over them."""

from __future__ import annotations

from typing import Any

from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import Experts
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensemble import view
from driftwolfe.learners.epochs import EpochLearner
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Array, Point


class HedgedEnsemble(EpochLearner):
    """A fixed number of experts in each epoch, combined by exponential weights.

    A named one sets up its experts and its meta in `_begin`.
    """

    _experts: Descent | Leaders
    _meta: Hedge

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

    def _restart_point(self) -> Point:
        return current_point(self._experts, self._meta.weights)

    def _largest_gradient(self) -> float:
        return self._experts.largest_gradient


def current_point(experts: Experts, weights: Array) -> Point:
    """The combined point, or, where forming that would pile up factors, the heaviest expert's."""
    leader = experts.point(int(weights.argmax()))
    return leader if isinstance(leader, FactoredMatrix) else experts.mean(weights)
