"""`Stream`, and streams that change abruptly, gradually, or again and again."""

from __future__ import annotations

import inspect
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from driftwolfe import losses
from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.losses.base import Ball
from driftwolfe.points import checks, distance
from driftwolfe.points.kinds import Point

__all__ = ["abrupt", "gradual", "random_flips", "recurring", "reordered", "sign_flip"]

Seed = int | np.random.Generator | None


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A sequence of losses, one per round, with the comparators to measure a learner against.

    ``play(learner, stream)`` plays it; a slice is a stream again.

    Attributes
    ----------
    losses, name
        The losses :math:`f_t`, and the name of the stream in tables and figures.
    lipschitz, domain
        A bound on the gradient norms, or infinity, over the set the stream was made for, if any.
    comparators, drifts
        The true :math:`u_t`, one per round, if known; and known rounds, counted from 0, whose truth
        differs abruptly from that of the round before.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.linear_signs(dw.L1Ball(2), rounds=6, changes=2, seed=0)
    >>> stream, stream.drifts, stream[1:].drifts
    (Stream('linear signs', 6 rounds, lipschitz=1), (2, 4), (1, 3))
    """

    losses: Sequence[Loss]
    name: str = "losses"
    lipschitz: float = math.inf
    comparators: Sequence[Point] | None = None
    domain: Domain | None = None
    drifts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        rounds, points = len(self.losses), self.comparators
        if points is not None and len(points) != rounds:
            raise ValueError(
                f"comparators must hold one point for each of {rounds} losses, got {len(points)}"
            )
        if self.drifts and not all(a < b for a, b in pairwise((0, *self.drifts, rounds))):
            raise ValueError(
                f"drifts must be rounds from 1 to {rounds - 1} in rising order, got {self.drifts}"
            )

    def __len__(self) -> int:
        return len(self.losses)

    def __iter__(self) -> Iterator[Loss]:
        return iter(self.losses)

    def __getitem__(self, index: int | slice) -> Any:
        if not isinstance(index, slice):
            return self.losses[index]
        comparators = None if self.comparators is None else self.comparators[index]
        # Number the pieces between drifts: where the number changes in the slice, it drifts.
        drifts = change_points(bisect_right(self.drifts, t) for t in range(len(self))[index])
        return replace(self, losses=self.losses[index], comparators=comparators, drifts=drifts)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {len(self)} rounds, lipschitz={self.lipschitz:g})"


def change_points(values: Iterable[object]) -> tuple[int, ...]:
    """Return the indices of values that differ from the one before."""
    return tuple(t for t, (a, b) in enumerate(pairwise(values), start=1) if a != b)


def steepest(losses: Iterable[Loss], domain: Ball | None = None) -> float:
    """Return a bound on all gradient norms, over a set or everywhere; infinite if there is none."""
    ball: Ball = SimpleNamespace(center=None, radius=math.inf) if domain is None else domain
    bounds = [loss.lipschitz(ball) for loss in losses]
    return max((math.inf if bound is None else bound for bound in bounds), default=0.0)


def sign_flip(stream: Stream, every: int) -> Stream:
    r"""Negate the data of every second block of rounds: the second, the fourth, ...

    There the loss becomes :math:`f_t(-x)`, the comparator :math:`-u_t`: the set must be symmetric.

    Parameters
    ----------
    stream, every
        The stream to change, and the rounds of a block.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.hard_linear(dw.L1Ball(2), 5, seed=0)
    >>> [new is old for new, old in zip(dw.streams.drift.sign_flip(stream, every=2), stream)]
    [True, True, False, False, True]
    """
    block = checks.count(every, "every")
    return _flipped(stream, range(block, len(stream), block), "signs flipped")


def random_flips(stream: Stream, number: int, seed: Seed = None) -> Stream:
    """Negate the data like `sign_flip`, with a flip at random rounds.

    They are drawn uniformly and independently from all but the first.

    Parameters
    ----------
    stream, number, seed
        The stream to change, how many rounds to draw, and the seed of the draws.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.hard_linear(dw.L1Ball(2), 10, seed=0)
    >>> dw.streams.drift.random_flips(stream, 2, seed=0).drifts
    (6, 8)
    """
    most = checks.count(number, "number", least=0)
    drawn = np.random.default_rng(seed).integers(1, len(stream), size=most)
    return _flipped(stream, np.sort(drawn).tolist(), "random flips")


def _flipped(stream: Stream, starts: Sequence[int], name: str) -> Stream:
    """Return the stream with losses f_t(-x) from the first of `starts` to the second, and so on."""
    mirrors = {id(loss): reflected(loss) for loss in stream}  # rounds may share a loss
    points = None if stream.comparators is None else [u * -1.0 for u in stream.comparators]
    mirrored = replace(stream, losses=[mirrors[id(f)] for f in stream], comparators=points)
    choices = [bisect_right(starts, t) % 2 for t in range(len(stream))]
    return _pick([stream, mirrored], choices, f"{stream.name}, {name}")


def abrupt(first: Stream, second: Stream, at: int) -> Stream:
    """Change from one stream to another at once.

    Parameters
    ----------
    first, second, at
        The streams, of one length, and the round, counted from 0, where the second takes over.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> one, two = (dw.streams.synthetic.hard_linear(dw.L1Ball(2), 5, seed=s) for s in (0, 1))
    >>> stream = dw.streams.drift.abrupt(one, two, at=3)
    >>> stream[2] is one[2], stream[3] is two[3]
    (True, True)
    """
    change = checks.count(at, "at", least=0)
    choices = [int(t >= change) for t in range(len(first))]
    return _pick([first, second], choices, f"{first.name}, then {second.name}")


def gradual(first: Stream, second: Stream, start: int, end: int, seed: Seed = None) -> Stream:
    """Change from one stream to another little by little.

    Parameters
    ----------
    first, second, start, end, seed
        The streams, of one length. Before round `start`, counted from 0, losses come from the first,
        from `end` on from the second; between, from the second with a probability that grows linearly.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> one, two = (dw.streams.synthetic.hard_linear(dw.L1Ball(2), 100, seed=s) for s in (0, 1))
    >>> stream = dw.streams.drift.gradual(one, two, start=20, end=80, seed=0)
    >>> 20 < sum(a is b for a, b in zip(stream, one)) < 80
    True
    """
    begin, finish = checks.count(start, "start", least=0), checks.count(end, "end", least=0)
    if finish <= begin:
        raise ValueError(f"end must be later than start, got start={start} and end={end}")
    chance = (np.arange(len(first)) - begin) / (finish - begin)
    choices = (np.random.default_rng(seed).random(len(first)) < chance).astype(int)
    return _pick([first, second], choices, f"{first.name}, slowly {second.name}", sudden=False)


def recurring(streams: Sequence[Stream], period: int) -> Stream:
    """Alternate between streams: `period` rounds of each, again and again.

    Parameters
    ----------
    streams, period
        At least one, all of one length, and the rounds of each before the next.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> pair = [dw.streams.synthetic.hard_linear(dw.L1Ball(2), 6, seed=s) for s in (0, 1)]
    >>> stream = dw.streams.drift.recurring(pair, period=2)
    >>> [stream[t] is pair[1][t] for t in range(6)]
    [False, False, True, True, False, False]
    """
    if not streams:
        raise ValueError("streams must hold at least one stream, got none")
    length = checks.count(period, "period")
    choices = [t // length % len(streams) for t in range(len(streams[0]))]
    return _pick(streams, choices, f"{', '.join(stream.name for stream in streams)}, in turn")


def reordered(stream: Stream, seed: Seed) -> Stream:
    """Return the stream with its rounds in another order, none of them moved across a drift.

    Parameters
    ----------
    stream, seed
        A stream whose comparators, if known, change at its drifts only; and what decides the order.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.piecewise_constant(dw.L1Ball(2), rounds=6, pieces=2, seed=0)
    >>> other = dw.streams.drift.reordered(stream, seed=1)
    >>> other.drifts, all(other[t] is stream[t] for t in range(6))  # alike between drifts
    ((3,), True)
    """
    rng, ends = np.random.default_rng(seed), (0, *stream.drifts, len(stream))
    points = stream.comparators
    for start, end in pairwise(ends):
        if points is not None and any(distance(points[start], u) for u in points[start:end]):
            raise ValueError(
                "the comparators of this stream move between its drifts, so that its rounds have no other "
                "order; make a stream for each seed instead"
            )
    order = [start + t for start, end in pairwise(ends) for t in rng.permutation(end - start)]
    return replace(stream, losses=[stream.losses[t] for t in order])


def _pick(
    streams: Sequence[Stream], choices: Iterable[int], name: str, sudden: bool = True
) -> Stream:
    """Return the stream whose round t is that of ``streams[choices[t]]``."""
    lengths = [len(stream) for stream in streams]
    if len(set(lengths)) > 1:
        raise ValueError(f"the streams must be of one length, got {lengths}; cut the longer ones")
    chosen = list(enumerate(choices))
    points = [stream.comparators for stream in streams if stream.comparators is not None]
    known = len(points) == len(streams)
    drifts = {t for t, choice in chosen if t in streams[choice].drifts}
    if sudden:
        drifts.update(change_points(choice for _, choice in chosen))
    return Stream(
        [streams[choice].losses[t] for t, choice in chosen],
        name,
        max(stream.lipschitz for stream in streams),
        [points[choice][t] for t, choice in chosen] if known else None,
        streams[0].domain,
        tuple(sorted(drifts)),
    )


def reflected(loss: Loss) -> Loss:
    r"""Return the loss :math:`x \mapsto f(-x)`, of the same class where that is possible."""
    names = inspect.signature(cls := type(loss)).parameters
    negated = next((each for each in ("features", "targets", "g", "target") if each in names), "")
    if negated and cls.__module__.startswith(losses.__name__):  # another may compute something else
        given = {name: getattr(loss, name) for name in names}
        return cls(**given | {negated: given[negated] * -1.0})
    return losses.FunctionLoss(
        lambda x: loss.value(x * -1.0), lambda x: loss.gradient(x * -1.0) * -1.0, shape=loss.shape
    )
