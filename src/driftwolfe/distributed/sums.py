"""`SumLoss`: a loss whose rows lie on workers; only values and sums of gradients travel."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from copy import copy
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from distributed import Client, Future
from distributed.scheduler import KilledWorker

from driftwolfe.losses import Loss
from driftwolfe.losses.base import Ball, Block, BlockSum, block_sum
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point

#: Bytes of points above which they go to a worker as data: tasks are kept by the scheduler.
_LARGE = 5_000_000


class _Question(NamedTuple):
    """What workers are asked: losses at a point, or one loss at the points of a stack."""

    point: Any
    losses: list[tuple[int, int | None]]  # which of the things held has each, and its round there
    slopes: bool = True
    stacked: bool = False


class _Ball(NamedTuple):
    """All that a Lipschitz constant needs to know of a set."""

    center: Any
    radius: float


def _loss(held: Any, t: int | None) -> Loss:
    """The loss that a part is, or that it has for a round."""
    loss = held if t is None else held[t]
    if not isinstance(loss, Loss):
        raise TypeError(f"a part must be a driftwolfe.losses.Loss, got {type(loss).__name__}")
    return loss


def _answers(asked: list[_Question], *held: Any) -> list[BlockSum]:
    """Answer on the worker that holds these parts."""
    found = []
    for question in asked:
        losses = [_loss(held[part], t) for part, t in question.losses]
        if not question.stacked:
            found.append(block_sum(Block(question.point, losses, question.slopes)))
            continue
        (loss,), stack = losses, question.point
        scores = loss.stacked_scores(stack)
        if question.slopes:
            values, slopes = loss.value_and_slope_at(scores)
            found.append(BlockSum(values, loss.stacked_pull_back(slopes, stack), 0.0))
        else:
            found.append(BlockSum(loss.value_at(scores), None, 0.0))
    return found


def _description(held: Any, t: int | None) -> tuple[Any, str, bool]:
    loss = _loss(held, t)
    return loss.shape, loss.only_on, loss.overflows


def _lipschitz(held: Any, t: int | None, ball: _Ball) -> float | None:
    return _loss(held, t).lipschitz(ball)


class SumLoss(Loss):
    r""":math:`f(x) = \sum_p w_p f_p(x)`, with every part :math:`f_p` on a worker of a Dask cluster.

    Parts go to the workers once. An evaluation sends points there, and from each part a number and a vector for
    every point come back, however many rows it has. They are added in the order of the parts, whichever comes
    first: answers are those of the same sum in one process, bit by bit. In games over the losses of `rounds`,
    `BOGDIP` and `POLD` with a given `lipschitz` send points and gradients once for each block of an expert, and
    play the same, equal to rounding.

    Parameters
    ----------
    client
        A `distributed.Client`.
    parts
        One or more losses; or functions without arguments that make one on a worker, say from its files, and
        again elsewhere where that worker dies; or futures of losses.
    weights
        The numbers :math:`w_p > 0`, all 1 if not given. Losses of rows are means: with the shares of the rows as
        weights their sum is the mean over all rows.

    Notes
    -----
    A worker that dies takes losses with it that were given as such: an evaluation raises RuntimeError, and the
    learner is as it was before. Parts that functions make are made again on another worker.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> from distributed import Client
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     parts = [dw.losses.LinearLoss([1.0, 0.0]), dw.losses.LinearLoss([0.0, 3.0])]
    ...     dw.distributed.SumLoss(client, parts).value_and_gradient([1.0, 1.0])
    (4.0, array([1., 3.]))
    """

    remote = True

    def __init__(self, client: Client, parts: Sequence[Any], weights: Any = None) -> None:
        self._send(client, parts, weights)

    @classmethod
    def rounds(
        cls, client: Client, parts: Sequence[Any], number: int, weights: Any = None
    ) -> list[Self]:
        """Return the losses of several rounds, whose parts go to the workers all at once.

        Parameters
        ----------
        client, weights
            As for one loss.
        parts
            Sequences, with the loss of round t as item t; or functions without arguments that make one on a
            worker, whose ``__getitem__`` may make a loss only when asked for it; or futures of sequences.
        number
            Rounds.
        """
        first = cls.__new__(cls)
        first._send(client, parts, weights, 0)
        losses = [copy(first) for _ in range(checks.count(number, "number"))]
        for t, loss in enumerate(losses):
            loss._round = t
        return losses

    def scores(self, x: Point) -> Any:
        self.check_shape(x.shape)
        self.shape = x.shape  # which tells a matrix from a stack of vectors
        return x

    def value_at(self, scores: Any) -> Array:
        return self._at(scores, slopes=False)[0]

    def slope_at(self, scores: Any) -> Any:
        return self._at(scores)[1]

    def value_and_slope_at(self, scores: Any) -> tuple[Array, Any]:
        return self._at(scores)

    def pull_back(self, slope: Any, like: Point) -> Point:
        return slope

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        self.shape = tuple(stack.shape[1:])
        return stack

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        return slopes

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        points, own = self.stacked_scores(stack), [(0, self._round)]
        mean = (weights @ points.reshape(len(points), -1)).reshape(points.shape[1:])
        asked = [_Question(points, own, stacked=True), _Question(mean, own, slopes=False)]
        every, at_mean = self._ask([self._held], asked)
        return every.values, every.gradient, float(at_mean.values[0])

    def exchange(self, blocks: Sequence[Block]) -> list[BlockSum]:
        held: dict[int, list[Future[Any]]] = {}
        asked = []
        for point, losses, slopes in blocks:
            sums = [
                loss for loss in losses if isinstance(loss, SumLoss) and loss._like == self._like
            ]
            if len(sums) < len(losses):
                raise ValueError("only sums of the same client and weights are exchanged together")
            held |= {id(loss._held): loss._held for loss in sums}
            numbers = {each: number for number, each in enumerate(held)}
            places = [(numbers[id(loss._held)], loss._round) for loss in sums]
            asked.append(_Question(point, places, slopes))
        return self._ask([*held.values()], asked)

    def lipschitz(self, domain: Ball) -> float | None:
        ball = _Ball(domain.center, domain.radius)
        found = self._run(_lipschitz, [[each, self._round, ball] for each in self._held])
        if None in found:
            return None
        return float(sum(w * bound for w, bound in zip(self.weights, found, strict=True)))

    def _send(
        self, client: Client, parts: Sequence[Any], weights: Any, number: int | None = None
    ) -> None:
        """Send the parts to the workers, and find out what points they take."""
        if not isinstance(client, Client) or client.asynchronous:
            raise TypeError(f"client must be a distributed.Client that waits, got {client!r:.80}")
        if not isinstance(parts, list | tuple) or not parts:
            raise ValueError(f"parts must be a list of one or more parts, got {parts!r:.80}")
        given = np.ones(len(parts)) if weights is None else checks.finite_array(weights, "weights")
        if given.shape != (len(parts),) or not (given > 0.0).all():
            wanted = f"weights must be {len(parts)} numbers > 0, one for each part"
            raise ValueError(f"{wanted}, got {weights!r:.80}")
        workers = sorted(client.nthreads())
        if not workers:
            raise ValueError("this cluster has no workers yet: call client.wait_for_workers(1)")
        self.client, self.weights, self._round = client, tuple(given.tolist()), number
        self._like = (client.id, self.weights)
        self._workers = [workers[p % len(workers)] for p in range(len(parts))]
        self._held = [self._sent(part, w) for part, w in zip(parts, self._workers, strict=True)]
        described = self._run(_description, [[each, number] for each in self._held])
        shapes, sets, overflow = map(list, zip(*described, strict=True))
        known = {shape for shape in shapes if shape is not None}
        if len(known) > 1:
            raise ValueError(f"parts must take points of one shape, got {sorted(known)}")
        self.shape, self.overflows = next(iter(known), None), any(overflow)
        self.only_on = max(sets)

    def _sent(self, part: Any, worker: str) -> Future[Any]:
        """A part on a worker."""
        if isinstance(part, Future):
            return part
        if callable(part) and not isinstance(part, Loss):
            return self.client.submit(part, workers=[worker], allow_other_workers=True, pure=False)
        return self.client.scatter([part], workers=[worker], hash=False)[0]

    def _at(self, scores: Any, slopes: bool = True) -> tuple[Any, Any]:
        """Values at a point or at stacked ones, and gradients."""
        stacked = isinstance(scores, np.ndarray) and scores.ndim > len(self.shape or scores.shape)
        question = _Question(scores, [(0, self._round)], slopes, stacked)
        ((values, gradients, _),) = self._ask([self._held], [question])
        return values if stacked else values[0], gradients

    def _ask(self, held: list[list[Future[Any]]], asked: list[_Question]) -> list[BlockSum]:
        """Ask every part, and add up its answers to each question, in the order of the parts."""
        sent: Any = asked
        if sum(getattr(question.point, "nbytes", 0) for question in asked) > _LARGE:
            (sent,) = self.client.scatter([asked], hash=False)
        answers = self._run(_answers, [[sent, *parts] for parts in zip(*held, strict=True)])
        return [
            reduce(BlockSum.plus, [one.times(w) for w, one in zip(self.weights, each, strict=True)])
            for each in zip(*answers, strict=True)
        ]

    def _run(self, function: Any, given: list[list[Any]]) -> list[Any]:
        """Call a function for every part, on its worker."""
        try:
            return self.client.gather(
                [
                    self.client.submit(
                        function, *each, workers=[worker], allow_other_workers=True, pure=False
                    )
                    for each, worker in zip(given, self._workers, strict=True)
                ]
            )
        except (CancelledError, KilledWorker) as error:
            raise RuntimeError(
                "a worker died and took a part of this loss with it: make the loss again, or give functions "
                "that make the parts on a worker, which are called again by themselves"
            ) from error
