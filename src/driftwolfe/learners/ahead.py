"""Running ahead: experts that need nothing of each other play several rounds by themselves.

In threads, and combined afterwards, round by round: decisions and oracle calls are those of single updates. Or,
of losses on other machines, over whole blocks, in which experts do not move: one exchange finds out what they lose.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from driftwolfe.domains import CountedDomain
from driftwolfe.ensemble import threads
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.ensemble.descent import PLAN_COLUMNS
from driftwolfe.ensemble.experts import combine, require_finite, stack
from driftwolfe.ensemble.list import ListDescent
from driftwolfe.learners.base import Round, all_or_nothing, as_loss
from driftwolfe.losses import FunctionLoss, Loss
from driftwolfe.losses.base import Block
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.whole_point import WholePointLoss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import HOST, to_host
from driftwolfe.points.kinds import Indices

#: Numbers of decisions that are kept until their losses are asked for.
_MANY = 500_000


def possible(learner: Any) -> bool:
    """Whether there are several threads, and experts that follow their own gradients at their own steps."""
    experts = learner._experts
    alone = isinstance(experts, ListDescent) and experts.step_scale is not None
    together = learner._meta is not None and not learner.options.linear
    return alone and together and experts.independent and threads.threads() > 1


def _pays(learner: Any, losses: Sequence[Any]) -> bool:
    """Whether experts are quicker one by one: on a device, once one keeps it busy.

    A user's own functions are evaluated in order and in one thread.
    """
    if not possible(learner) or any(isinstance(as_loss(loss), FunctionLoss) for loss in losses):
        return False
    experts = learner._experts
    return experts.domain.device is HOST or any(map(experts.wide, range(experts.size)))


def _exchanges(learner: Any, losses: Sequence[Any]) -> bool:
    """Whether sums of gradients over blocks are all that experts need, of losses on other machines.

    What `update` needs says the class that defines it.
    """
    experts = learner._experts
    owner = next(cls for cls in type(learner).__mro__ if "update" in cls.__dict__)
    sums = (
        "by_blocks" in owner.__dict__ and type(experts) is DenseDescent and not experts.lazy.any()
    )
    known = sums and experts.step_scale is not None and not learner.options.linear
    return known and all(isinstance(loss, Loss) and loss.remote for loss in losses)


def update_many(learner: Any, losses: Sequence[Any]) -> list[Round]:
    """Reveal the losses of several rounds at once, up to the first that is refused."""
    play = _by_blocks if _exchanges(learner, losses) else _together
    if play is _together and not _pays(learner, losses):
        return [learner.counted_update(loss) for loss in losses]
    rounds: list[Round] = []
    while len(rounds) < len(losses):
        end = learner._epoch_start + learner._epoch_length
        batch = losses[len(rounds) :][: None if learner.options.horizon else end - learner.t]
        try:
            rounds += play(learner, batch)
        except Exception:  # nothing has changed
            rounds += [learner.counted_update(loss) for loss in batch]
    return rounds


class _Met(WholePointLoss):
    """The loss of a round of which all is known that experts need."""

    def __init__(self, values: Any, gradients: Any) -> None:
        self.values, self.gradients = values, gradients
        self.decision: Any = None  # where it is a mean, whose loss is found out later

    def value_at(self, scores: Any) -> Any:
        return self.values[0]

    def slope_at(self, scores: Any) -> Any:
        return self.gradients[0]

    def stacked_round(self, stack: Any, weights: Any) -> tuple[Any, Any, float]:
        self.decision = (weights @ stack.reshape(len(stack), -1)).reshape(stack.shape[1:])
        return self.values, self.gradients, 0.0


def _by_blocks(learner: Any, losses: Sequence[Any]) -> list[Round]:
    """Play rounds on a copy: each block of an expert is asked for at once, and its sum is its last gradient."""
    trial, number, exchange = learner.clone(), len(losses), losses[0].exchange
    experts, shape = trial._experts, trial.domain.shape
    begins = (experts.clocks + np.arange(number)[:, None]) % experts.blocks == 0
    begins[0] = True  # a block may be under way
    values, sums, largest = np.empty(begins.shape), dict[Any, Any](), experts.largest_gradient
    rounds, means, played = list[Round](), list[Block](), list[float]()
    for t in range(number):
        due = begins[t].nonzero()[0].tolist()
        ends = [next(iter(t + 1 + begins[t + 1 :, i].nonzero()[0]), number) for i in due]
        blocks = [Block(experts.point(i), losses[t:end]) for i, end in zip(due, ends, strict=True)]
        for i, end, found in zip(due, ends, exchange(blocks) if due else (), strict=True):
            values[t:end, i], sums[end - 1, i] = found.values, found.gradient
            largest = max(largest, found.largest)
        gradients = [sums.pop((t, i), np.zeros(shape)) for i in range(experts.size)]
        met = _Met(values[t], np.stack(gradients))
        rounds.append(trial.counted_update(met))
        if met.decision is not None:
            means.append(Block(met.decision, losses[t : t + 1], slopes=False))
            if t == number - 1 or len(means) * met.decision.size > _MANY:
                played += [float(found.values[0]) for found in exchange(means)]
                means = []
    require_finite(*played)
    trial._experts.largest_gradient = largest  # not that of the sums
    learner.__dict__.update(trial.__dict__)
    return [r._replace(value=v) for r, v in zip(rounds, played, strict=True)] if played else rounds


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
        one.step(loss, slope, shared=True)
        met.append((scores, value, slope, counted.calls.numbers()))
    return one, met
