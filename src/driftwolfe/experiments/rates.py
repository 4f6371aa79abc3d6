"""Losses that an ensemble would have suffered with other rates of its weights, from the same run."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.experts import combine
from driftwolfe.learners.base import Learner
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array

#: s of the rates s/sqrt(T), the grid of Multi-OCG's authors.
RATES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)


def loss_scale(s: float) -> float:
    """The option that gives `Hedge`, whose rate is sqrt(8/T)/B, the rate s/sqrt(T)."""
    return math.sqrt(8.0) / s


def independent(learner: Learner) -> bool:
    """Whether experts are weighted by `Hedge` for a known horizon, and do not depend on the weights."""
    if not isinstance(learner, GridLearner) or learner.options.linear:
        return False
    return isinstance(learner._meta, Hedge) and learner.options.horizon is not None


def losses_by_rate(learner: Learner, loss: Loss) -> Array:
    """The loss of the mean of the learner's experts in the coming round, for each of `RATES`."""
    meta, scores = learner._meta, learner._experts.scores(loss)  # type: ignore[attr-defined]
    found = []
    for s in RATES:
        weights = meta.prior * np.exp(-s / math.sqrt(meta.horizon) * meta.totals)
        found.append(float(loss.value_at(combine(weights / weights.sum(), scores))))
    return np.array(found)
