"""Running ahead: experts that need nothing of each other play several rounds by themselves, in threads.

They are combined afterwards, round by round; decisions and oracle calls are those of single updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from driftwolfe.domains import CountedDomain
from driftwolfe.ensemble import threads
from driftwolfe.ensemble.descent import PLAN_COLUMNS
from driftwolfe.ensemble.experts import Evaluation, combine, require_finite, stack
from driftwolfe.ensemble.list import ListDescent
from driftwolfe.learners.base import Round, all_or_nothing, as_loss
from driftwolfe.losses import FunctionLoss, Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import HOST, to_host
from driftwolfe.points.kinds import Indices


def possible(learner: Any) -> bool:
    """Whether there are several threads, and experts that follow their own gradients at their own steps."""
    experts = learner._experts
    alone = isinstance(experts, ListDescent) and experts.step_scale is not None
    return alone and experts.independent and not learner.options.linear and threads.threads() > 1


def _pays(learner: Any, losses: Sequence[Any]) -> bool:
    """Whether experts are quicker one by one: on a device, once one keeps it busy.

    A user's own functions are evaluated in order and in one thread.
    """
    if not possible(learner) or any(isinstance(as_loss(loss), FunctionLoss) for loss in losses):
        return False
    experts = learner._experts
    return experts.domain.device is HOST or any(map(experts.wide, range(experts.size)))


def update_many(learner: Any, losses: Sequence[Any]) -> list[Round]:
    """Reveal the losses of several rounds at once, up to the first that is refused."""
    if not _pays(learner, losses):
        return [learner.counted_update(loss) for loss in losses]
    rounds: list[Round] = []
    while len(rounds) < len(losses):
        end = learner._epoch_start + learner._epoch_length
        batch = losses[len(rounds) :][: None if learner.options.horizon else end - learner.t]
        try:
            rounds += _together(learner, batch)
        except Exception:  # nothing has changed
            rounds += [learner.counted_update(loss) for loss in batch]
    return rounds


@all_or_nothing
def _together(learner: Any, losses: Sequence[Any]) -> list[Round]:
    """Let experts run ahead, and weigh them by what they met in each round."""
    functions, rounds = [as_loss(loss) for loss in losses], []
    experts, met = run_ahead(learner._experts, functions)
    for f, each in zip(functions, met, strict=True):
        scores, values, slopes, calls = zip(*each, strict=True)
        value = float(f.value_at(combine(learner._meta.weights, stack(scores))))
        suffered = to_host(stack(values))
        require_finite(value, suffered, *slopes)
        learner._meta.update(suffered)
        rounds.append(Round(value, *map(sum, zip(*calls, strict=True))))
    learner._experts = experts
    for done in rounds:
        learner._counted.calls.add(*done[1:])
        learner._next_round()
    return rounds


def run_ahead(
    experts: ListDescent, losses: Sequence[Loss]
) -> tuple[ListDescent, list[tuple[Any, ...]]]:
    """Return experts after several rounds, and for each the scores, losses, slopes and oracle calls."""
    rounds = np.arange(1, len(losses) + 1)[:, None]
    ends = (experts.clocks + rounds) % experts.blocks == 0
    # The numbers that projections would have round by round.
    numbers = experts.projections + np.cumsum(ends).reshape(ends.shape) - ends
    jobs = [partial(_alone, experts, i, losses, numbers[:, i]) for i in range(experts.size)]
    if isinstance(experts.x[0], FactoredMatrix):
        for loss in losses:
            if isinstance(loss, EntryLoss):
                loss.places(experts.domain.device)  # cached before threads need it
    # Those of high rank spend their time in matrix products, those of low rank in Python.
    ranks = [getattr(x, "rank", 0) for x in experts.x]
    workers = experts.domain.device.workers
    found = threads.run_from_both_ends(experts.on_streams(jobs), ranks, workers)
    alone, met = zip(*found, strict=True)
    after = copy(experts)
    for name in ("x", "y", "sums"):
        setattr(after, name, [getattr(one, name)[0] for one in alone])
    for name in ("largest_gradient", "largest_distance"):
        setattr(after, name, max(getattr(one, name) for one in alone))
    after.clocks = experts.clocks + len(losses)
    after.projections = experts.projections + int(ends.sum())
    return after, list(zip(*met, strict=True))


def _alone(
    experts: ListDescent, i: int, losses: Sequence[Loss], numbers: Indices
) -> tuple[ListDescent, list[Any]]:
    """Expert i after several rounds by itself, and what it met in each."""
    one, met = copy(experts), []
    one.domain = counted = CountedDomain(experts.domain.unwrapped)
    for name in (*PLAN_COLUMNS, "lazy", "clocks", "x", "y", "sums"):
        setattr(one, name, getattr(experts, name)[i : i + 1])
    for loss, number in zip(losses, numbers.tolist(), strict=True):
        counted.calls.reset()
        scores = loss.scores(one.x[0])
        value, slope = loss.value_and_slope_at(scores)
        one.projections = number
        one.step(loss, Evaluation(0.0, 0.0, np.empty(0), slope, True))
        met.append((scores, value, slope, counted.calls.numbers()))
    return one, met
