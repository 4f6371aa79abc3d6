"""Games made by hand, and losses of every kind, for the regret tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

import driftwolfe as dw
from driftwolfe import losses
from driftwolfe.game import History

Generator = np.random.Generator

VECTOR, MATRIX = (5,), (4, 4)


def game(domain: dw.Domain, functions: Sequence[losses.Loss], decisions: Sequence) -> History:
    """The history of a learner that played these decisions."""
    suffered = [f.value(x) for f, x in zip(functions, decisions, strict=True)]
    none = np.zeros(len(functions))
    return History(domain, np.array(suffered), none, none, none, none, list(functions))


def lagging_game(domain: dw.Domain, functions: Sequence[losses.Loss], step: float) -> History:
    """The history of projected gradient steps, which lag behind every change."""
    x, decisions = domain.origin(), []
    for f in functions:
        decisions.append(x)
        x = domain.project(x - step * f.gradient(x))
    return game(domain, functions, decisions)


def entries(rng: Generator, size: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, cols = rng.integers(0, MATRIX[0], size), rng.integers(0, MATRIX[1], size)
    return rows, cols, 2 * rng.standard_normal(size)


def signs(rng: Generator, size: int) -> np.ndarray:
    return rng.choice([-1, 1], size)


def absolute_function(rng: Generator) -> losses.FunctionLoss:
    target = rng.standard_normal(VECTOR)
    return losses.FunctionLoss(
        lambda x: np.abs(x - target).sum(), lambda x: np.sign(x - target), lipschitz=5**0.5
    )


def quartic_function(rng: Generator) -> losses.FunctionLoss:
    target = rng.standard_normal(VECTOR)
    return losses.FunctionLoss(lambda x: ((x - target) ** 4).sum(), lambda x: 4 * (x - target) ** 3)


#: name -> (makes one loss, shape of its points)
KINDS: dict[str, tuple[Callable[[Generator], losses.Loss], tuple[int, ...]]] = {
    "AbsoluteEntries": (lambda rng: losses.AbsoluteEntries(*entries(rng)), MATRIX),
    "SquaredEntries": (lambda rng: losses.SquaredEntries(*entries(rng)), MATRIX),
    "HuberEntries": (lambda rng: losses.HuberEntries(*entries(rng), width=0.7), MATRIX),
    "MulticlassLogistic": (
        lambda rng: losses.MulticlassLogistic(
            rng.standard_normal((3, 4)), rng.integers(0, 4, 3), n_classes=4
        ),
        MATRIX,
    ),
    "LinearLoss": (lambda rng: losses.LinearLoss(rng.standard_normal(VECTOR), 1.0), VECTOR),
    "SquaredDistance": (
        lambda rng: losses.SquaredDistance(
            rng.standard_normal(VECTOR), weight=float(rng.uniform(0.5, 2))
        ),
        VECTOR,
    ),
    "HingeLoss": (lambda rng: losses.HingeLoss(rng.standard_normal((3, 5)), signs(rng, 3)), VECTOR),
    "LogisticLoss": (
        lambda rng: losses.LogisticLoss(rng.standard_normal((3, 5)), signs(rng, 3)),
        VECTOR,
    ),
    "SquaredRows": (
        lambda rng: losses.SquaredRows(rng.standard_normal((3, 5)), rng.standard_normal(3)),
        VECTOR,
    ),
    "AbsoluteRows": (
        lambda rng: losses.AbsoluteRows(rng.standard_normal((3, 4)), rng.standard_normal((3, 4))),
        MATRIX,
    ),
    "HuberRows": (
        lambda rng: losses.HuberRows(rng.standard_normal((3, 4)), rng.standard_normal((3, 4)), 0.7),
        MATRIX,
    ),
    "FunctionLoss, kinked": (absolute_function, VECTOR),
    "FunctionLoss, smooth": (quartic_function, VECTOR),
}


def some_losses(kind: str, count: int, seed: int = 0) -> list[losses.Loss]:
    rng = np.random.default_rng(seed)
    make, _ = KINDS[kind]
    return [make(rng) for _ in range(count)]
