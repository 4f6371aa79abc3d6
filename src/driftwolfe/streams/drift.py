"""Drift: streams that change abruptly, gradually, or again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from driftwolfe import losses
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.streams.stream import Seed, Stream, change_points

__all__ = ["abrupt", "gradual", "recurring", "sign_flip"]


def sign_flip(stream: Stream, every: int) -> Stream:
    r"""Negate the data of every second block of rounds.

    In rounds ``every, ..., 2 * every - 1``, counted from 0, and in every second block after them,
    the loss becomes :math:`f_t(-x)`: features, targets or gradients change their sign. Comparators
    become :math:`-u_t`, so the set must be symmetric.

    Parameters
    ----------
    stream, every
        The stream to change, and the rounds between flips.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.hard_linear(dw.L1Ball(2), 5, seed=0)
    >>> flipped = dw.streams.drift.sign_flip(stream, every=2)
    >>> [bool((new.g == old.g).all()) for new, old in zip(flipped, stream)]
    [True, True, False, False, True]
    """
    length = checks.count(every, "every")
    different = {id(loss): loss for loss in stream}  # rounds may share a loss
    mirrors = {key: reflected(loss) for key, loss in different.items()}
    points = stream.comparators
    mirrored = replace(
        stream,
        losses=[mirrors[id(loss)] for loss in stream],
        comparators=None if points is None else [u * -1.0 for u in points],
    )
    choices = [t // length % 2 for t in range(len(stream))]
    return _pick([stream, mirrored], choices, f"{stream.name}, signs flipped")


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
    first, second
        The streams, of one length.
    start, end
        Before round `start`, counted from 0, losses come from the first stream, from `end` on from
        the second; between, from the second with a probability that grows linearly.
    seed
        Of the draws.

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
    share = (np.arange(len(first)) - begin) / (finish - begin)
    choices = np.random.default_rng(seed).random(len(first)) < share
    name = f"{first.name}, slowly {second.name}"
    return _pick([first, second], choices.astype(int), name, sudden=False)


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
    if make := _REFLECTIONS.get(type(loss)):
        return make(loss)
    return losses.FunctionLoss(
        lambda x: loss.value(x * -1.0), lambda x: loss.gradient(x * -1.0) * -1.0, shape=loss.shape
    )


#: By exact class: a subclass may compute something else.
_REFLECTIONS: dict[type[Loss], Callable[[Any], Loss]] = {
    losses.AbsoluteEntries: lambda f: type(f)(f.rows, f.cols, -f.targets, f.shape),
    losses.SquaredEntries: lambda f: type(f)(f.rows, f.cols, -f.targets, f.shape),
    losses.HuberEntries: lambda f: type(f)(f.rows, f.cols, -f.targets, f.width, f.shape),
    losses.HingeLoss: lambda f: type(f)(-f.features, f.labels),
    losses.LogisticLoss: lambda f: type(f)(-f.features, f.labels),
    losses.MulticlassLogistic: lambda f: type(f)(-f.features, f.labels, f.n_classes, f.reduction),
    losses.LinearLoss: lambda f: type(f)(f.g * -1.0, f.constant),
    losses.SquaredDistance: lambda f: type(f)(f.target * -1.0, f.weight),
}
