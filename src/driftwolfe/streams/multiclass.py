"""Labelled rows as a stream: experiment 2 of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses import MulticlassLogistic
from driftwolfe.losses.inputs import batch_of_features, batch_of_indices
from driftwolfe.points import checks
from driftwolfe.streams.stream import Stream, steepest


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
