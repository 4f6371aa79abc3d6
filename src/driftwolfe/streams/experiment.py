"""The streams of the paper's two experiments, from any data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from driftwolfe.losses import AbsoluteEntries, MulticlassLogistic
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.inputs import batch_of_features, batch_of_indices, batch_of_numbers
from driftwolfe.points import checks
from driftwolfe.streams.stream import Stream, boundaries, steepest


def matrix_completion(
    rows: Any,
    cols: Any,
    ratings: Any,
    shape: tuple[int, int],
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: int | np.random.Generator | None = None,
) -> Stream:
    r"""Return rounds of known entries, from copies of the data with changing signs.

    Every copy holds all entries once, multiplied by its number from `copies` and cut into rounds of
    `per_round` entries; the last round of a copy holds what is left. With ``(1, -1, 1)`` the truth
    is negated for the middle third: abrupt drift. Where neighbouring copies differ, the stream
    notes it in its `drifts`.

    Parameters
    ----------
    rows, cols
        Indices of the known entries, from 0.
    ratings
        Their values.
    shape
        ``(m, n)`` of the matrix.
    per_round
        Entries a round.
    copies
        The factor of each copy.
    loss
        Makes a loss of rows, cols, targets and ``shape=``: `AbsoluteEntries` or another loss on
        entries.
    seed
        Shuffles every copy on its own; None keeps the order given.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.matrix_completion([0, 1, 2], [0, 1, 0], [5, 3, 1], (3, 2), per_round=2)
    >>> len(stream), [loss.targets.tolist() for loss in stream[:4]]
    (6, [[5.0, 3.0], [1.0], [-5.0, -3.0], [-1.0]])
    >>> stream.drifts
    (2, 4)

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, section "Experiments".
    """
    rows, cols = batch_of_indices(rows, "rows"), batch_of_indices(cols, "cols")
    ratings = batch_of_numbers(ratings, "ratings", rows.size)
    if cols.size != rows.size:
        raise ValueError(f"rows and cols must be of one length, got {rows.size} and {cols.size}")
    step = checks.count(per_round, "per_round")
    factors = batch_of_numbers(copies, "copies")
    rng = None if seed is None else np.random.default_rng(seed)
    losses = []
    for factor in factors:
        order = np.arange(rows.size) if rng is None else rng.permutation(rows.size)
        for start in range(0, rows.size, step):
            batch = order[start : start + step]
            losses.append(loss(rows[batch], cols[batch], factor * ratings[batch], shape=shape))
    length = -(-rows.size // step)
    drifts = tuple(copy * length for copy in boundaries(factors))
    return Stream(losses, "matrix completion", steepest(losses), drifts=drifts)


def multiclass(
    features: Any,
    labels: Any,
    n_classes: int,
    per_round: int = 10,
    flip_every: int | None = 1000,
    seed: int | np.random.Generator | None = None,
) -> Stream:
    r"""Return rounds of labelled rows, with the features' signs flipped now and then.

    Rows are cut into rounds of `per_round`, the last of which holds what is left; each is a
    `MulticlassLogistic` loss, the mean over its rows. Features are negated in rounds ``flip_every,
    ..., 2 * flip_every - 1``, counted from 0, and in every second block after them; the stream
    notes the flips in its `drifts`.

    Parameters
    ----------
    features
        The rows, shape (rows, n_features); a dense array or a scipy sparse matrix.
    labels
        The classes, from 0 to n_classes - 1.
    n_classes
        Number of classes.
    per_round
        Rows a round.
    flip_every
        Rounds between flips; None for none.
    seed
        Shuffles the rows; None keeps their order.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.multiclass([[1.0], [2.0], [3.0]], [0, 1, 1], 2, per_round=1, flip_every=2)
    >>> [float(loss.features[0, 0]) for loss in stream]
    [1.0, 2.0, -3.0]
    >>> stream.drifts
    (2,)

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, section "Experiments".
    """
    table, classes = batch_of_features(features), batch_of_indices(labels, "labels", n_classes)
    if classes.size != table.shape[0]:
        raise ValueError(
            f"labels must hold one class for each of {table.shape[0]} rows, got {classes.size}"
        )
    step = checks.count(per_round, "per_round")
    rounds = -(-classes.size // step)
    block = rounds if flip_every is None else checks.count(flip_every, "flip_every")
    if seed is not None:
        order = np.random.default_rng(seed).permutation(classes.size)
        table, classes = table[order], classes[order]
    losses = []
    for t in range(rounds):
        batch = slice(t * step, (t + 1) * step)
        rows = table[batch] if t // block % 2 == 0 else -table[batch]
        losses.append(MulticlassLogistic(rows, classes[batch], n_classes))
    drifts = tuple(range(block, rounds, block))
    return Stream(losses, "multiclass", steepest(losses), drifts=drifts)
