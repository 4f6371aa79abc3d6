"""`SumLoss`: a loss whose rows lie on workers; points, values and sums of gradients travel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from copy import copy
from functools import partial, reduce
from operator import add
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from distributed import Client, Future
from distributed.scheduler import KilledWorker

from driftwolfe.losses import Loss
from driftwolfe.losses.base import Ball, Block, BlockSum
from driftwolfe.losses.whole_point import WholePointLoss
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Shape


class SumLoss(WholePointLoss):
    r""":math:`f(x) = \sum_p w_p f_p(x)`, with each part :math:`f_p` on a worker of a Dask cluster.

    Parts go to the workers once. Then points go there, and from every part a number and a vector for each come
    back, however many rows it has. They are added in the order of the parts: answers are those of the same sum
    in one process, bit by bit. Over a list from `rounds`, `BOGDIP` and `POLD` with a given `lipschitz` send
    points and gradients once for each block of an expert.

    Parameters
    ----------
    client
        A `distributed.Client`.
    parts
        Losses, or functions without arguments that make one on a worker (from its files), or futures of losses.
        A worker that dies takes losses with it, which raises RuntimeError; functions are called again.
    weights
        The numbers :math:`w_p > 0`, by default 1: where parts are means over rows, their shares of the rows.

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
        self._send(client, parts, weights, None)

    @classmethod
    def rounds(
        cls, client: Client, parts: Sequence[Any], number: int, weights: Any = None
    ) -> list[Self]:
        """Return the losses of so many rounds, whose parts go to the workers together.

        Here a part is a sequence, with the loss of round t as item t, which may be made when it is asked for; or
        a function that makes one; or a future of a sequence.
        """
        first = cls.__new__(cls)
        first._send(client, parts, weights, 0)
        losses = [copy(first) for _ in range(checks.count(number, "number"))]
        for t, loss in enumerate(losses):
            loss._round = t
        return losses

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless that is the shape of the points; the first point sets it."""
        super().check_shape(shape)
        self.shape = shape  # which tells a matrix from a stack of vectors

    def value_at(self, scores: Any) -> Array:
        return self._at(scores, slopes=False)[0]

    def slope_at(self, scores: Any) -> Any:
        return self._at(scores)[1]

    def value_and_slope_at(self, scores: Any) -> tuple[Array, Any]:
        return self._at(scores)

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        mean = (weights @ stack.reshape(len(stack), -1)).reshape(1, *stack.shape[1:])
        values, gradients = self._at(self.stacked_scores(np.concatenate((stack, mean))))
        return values[:-1], gradients[:-1], float(values[-1])

    def exchange(self, blocks: Sequence[Block]) -> list[BlockSum]:
        """Return what blocks of losses from the same `rounds` come to, all asked for together."""
        if any(loss._held is not self._held for block in blocks for loss in block.losses):
            raise ValueError("only losses from one call of `SumLoss.rounds` go together")
        asked = [Block(x, [loss._round for loss in losses], s) for x, losses, s in blocks]
        answers = zip(*self._run(partial(_answers, asked)), strict=True)
        return [_weighted_sum(self.weights, of_parts) for of_parts in answers]

    def lipschitz(self, domain: Ball) -> float | None:
        ball, t = SimpleNamespace(center=domain.center, radius=domain.radius), self._round
        found = self._run(lambda held: _loss(held, t).lipschitz(ball))
        return None if None in found else float(np.dot(self.weights, found))

    def _at(self, scores: Any, slopes: bool = True) -> tuple[Any, Any]:
        """Return the value and the gradient at a point, or those at the points of a stack."""
        stacked = isinstance(scores, np.ndarray) and scores.ndim > len(self.shape or scores.shape)
        found = self.exchange([Block(x, [self], slopes) for x in (scores if stacked else [scores])])
        values, gradients = [each.values[0] for each in found], [each.gradient for each in found]
        return (np.array(values), np.array(gradients)) if stacked else (values[0], gradients[0])

    def _send(self, client: Client, parts: Sequence[Any], weights: Any, t: int | None) -> None:
        """Send the parts to workers, in turn, and find out what points they take."""
        if not isinstance(client, Client) or client.asynchronous:
            raise TypeError(f"client must be a distributed.Client that waits, got {client!r:.80}")
        if not isinstance(parts, list | tuple) or not parts:
            raise ValueError(f"parts must be a list of one or more parts, got {parts!r:.80}")
        shares = np.ones(len(parts)) if weights is None else checks.finite_array(weights, "weights")
        if shares.shape != (len(parts),) or not (shares > 0.0).all():
            raise ValueError(f"weights must be {len(parts)} numbers > 0, got {weights!r:.80}")
        if not (workers := sorted(client.nthreads())):
            raise ValueError("this cluster has no workers yet: call client.wait_for_workers(1)")
        self.client, self.weights, self._round = client, tuple(shares.tolist()), t
        self._workers = [workers[p % len(workers)] for p in range(len(parts))]
        self._held = [self._sent(part, w) for part, w in zip(parts, self._workers, strict=True)]
        found = zip(*self._run(partial(_description, t)), strict=True)
        shapes, only_on, self.overflows = set(next(found)) - {None}, next(found), any(next(found))
        if len(shapes) > 1:
            raise ValueError(f"parts must take points of one shape, got {sorted(shapes)}")
        self.shape, self.only_on = next(iter(shapes), None), max(only_on)

    def _sent(self, part: Any, worker: str) -> Future[Any]:
        """Return a part as a future on a worker."""
        if isinstance(part, Future):
            return part
        if callable(part) and not isinstance(part, Loss):
            return self.client.submit(part, workers=[worker], allow_other_workers=True, pure=False)
        return self.client.scatter([part], workers=[worker], hash=False)[0]

    def _run(self, ask: Callable[[Any], Any]) -> list[Any]:
        """Call a function of what is held for each part, on its worker."""
        where = {"allow_other_workers": True, "pure": False}
        each = zip(self._held, self._workers, strict=True)
        try:
            sent = [self.client.submit(ask, held, workers=[w], **where) for held, w in each]
            return self.client.gather(sent)
        except (CancelledError, KilledWorker) as error:
            raise RuntimeError(
                "a worker died and took a part of this loss with it: make the loss again, or give functions "
                "that make the parts on workers, which are called again by themselves"
            ) from error


def _loss(held: Any, t: int | None) -> Loss:
    """The loss that a worker holds, or that of a round."""
    loss = held if t is None else held[t]
    if not isinstance(loss, Loss):
        raise TypeError(f"a part must be a driftwolfe.losses.Loss, got {type(loss).__name__}")
    return loss


def _description(t: int | None, held: Any) -> tuple[Shape | None, str, bool]:
    return (loss := _loss(held, t)).shape, loss.only_on, loss.overflows


def _answers(blocks: list[Block], held: Any) -> list[BlockSum]:
    """What blocks, whose losses are those of numbered rounds, come to for what a worker holds."""
    answers = []
    for point, rounds, slopes in blocks:
        values, total, largest = list[float](), 0.0, 0.0
        for t in rounds:
            loss = _loss(held, t)
            value, gradient = loss.value_and_gradient(point) if slopes else (loss.value(point), 0.0)
            total = total + gradient if values else gradient
            largest = max(largest, norm(gradient)) if slopes else 0.0
            values.append(value)
        answers.append(BlockSum(np.array(values), total, largest))
    return answers


def _weighted_sum(weights: Sequence[float], found: Sequence[BlockSum]) -> BlockSum:
    """What parts have found, added in their order: the norms of parts bound that of the sum."""
    scaled = [[w * each for each in one] for w, one in zip(weights, found, strict=True)]
    return BlockSum(*(reduce(add, column) for column in zip(*scaled, strict=True)))
