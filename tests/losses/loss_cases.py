"""One small loss of every kind, for the tests that all of them must pass."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from devices import HAS_TORCH
from driftwolfe import losses
from driftwolfe.points.factored import FactoredMatrix

MATRIX = (4, 6)
VECTOR = (5,)

Generator = np.random.Generator


def factored(rng: Generator, shape: tuple[int, int] = MATRIX) -> FactoredMatrix:
    """A matrix with both a low-rank and a sparse part, of small whole numbers."""
    m, n = shape
    U, V = rng.integers(-2, 3, (m, 2)), rng.integers(-2, 3, (n, 2))
    rows, cols = rng.integers(0, m, 3), rng.integers(0, n, 3)
    stored = FactoredMatrix.from_entries(shape, rows, cols, rng.integers(-3, 4, 3))
    return FactoredMatrix(U, np.array([1.0, 0.5]), V) + stored


def entries(rng: Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seven entries of which at least one comes twice; targets are whole numbers."""
    rows, cols = rng.integers(0, MATRIX[0], 7), rng.integers(0, MATRIX[1], 7)
    rows[-1], cols[-1] = rows[0], cols[0]
    return rows, cols, rng.integers(-2, 3, 7).astype(float)


def signs(rng: Generator, size: int) -> np.ndarray:
    return rng.choice([-1, 1], size)


def table(rng: Generator, rows: int, columns: int) -> np.ndarray:
    return rng.integers(-2, 3, (rows, columns)).astype(float)


def many_rows(rng: Generator) -> losses.MulticlassLogistic:
    return losses.MulticlassLogistic(table(rng, 9, 6), rng.integers(0, 4, 9), 4)


def few_sparse_rows(rng: Generator) -> losses.MulticlassLogistic:
    features = sp.csr_array(table(rng, 3, 6))
    return losses.MulticlassLogistic(features, rng.integers(0, 4, 3), 4)


def row_targets(rng: Generator, *shape: int) -> np.ndarray:
    # Between whole numbers: where a prediction meets its target, rounding chooses the slope.
    return rng.integers(-3, 4, shape) + 0.3


def huber_function(rng: Generator) -> losses.FunctionLoss:
    target = rng.integers(-2, 3, VECTOR).astype(float)

    def value(x: np.ndarray) -> float:
        near = np.minimum(np.abs(x - target), 1.0)
        return float((near * (np.abs(x - target) - 0.5 * near)).sum())

    return losses.FunctionLoss(value, lambda x: np.clip(x - target, -1, 1), lipschitz=5**0.5)


@functools.cache  # JAX compiles it once
def smooth(name: str, size: int) -> Callable[[Any], Any]:
    """Absolute errors without the kink, in PyTorch or JAX."""
    target = np.random.default_rng(0).integers(-2, 3, size).astype(float)
    if name == "torch":
        import torch

        target = torch.tensor(target)
        return lambda x: torch.sqrt(1.0 + (x - target) ** 2).sum() + x[0]
    import jax

    return jax.jit(lambda x: jax.numpy.sqrt(1.0 + (x - target) ** 2).sum() + x[0])


def by_autograd(rng: Generator, name: str, of_entries: bool = False) -> losses.Loss:
    places = entries(rng)[:2] if of_entries else ()
    make = losses.from_torch if name == "torch" else losses.from_jax
    return make(smooth(name, 7 if of_entries else 5), *places)


def _autograd_cases(
    name: str,
) -> dict[str, tuple[Callable[[Generator], losses.Loss], tuple[int, ...]]]:
    return {
        f"from_{name}": (lambda rng: by_autograd(rng, name), VECTOR),
        f"from_{name}, entries": (lambda rng: by_autograd(rng, name, True), MATRIX),
    }


#: name -> (makes the loss, shape of its points)
CASES: dict[str, tuple[Callable[[Generator], losses.Loss], tuple[int, ...]]] = {
    "AbsoluteEntries": (lambda rng: losses.AbsoluteEntries(*entries(rng)), MATRIX),
    "SquaredEntries": (lambda rng: losses.SquaredEntries(*entries(rng)), MATRIX),
    "HuberEntries": (lambda rng: losses.HuberEntries(*entries(rng), width=1.5), MATRIX),
    "MulticlassLogistic": (many_rows, MATRIX),
    "MulticlassLogistic, sparse": (few_sparse_rows, MATRIX),
    "LinearLoss": (lambda rng: losses.LinearLoss(rng.standard_normal(VECTOR), 2.0), VECTOR),
    "LinearLoss, matrix": (lambda rng: losses.LinearLoss(rng.standard_normal(MATRIX)), MATRIX),
    "LinearLoss, factored": (lambda rng: losses.LinearLoss(factored(rng)), MATRIX),
    "SquaredDistance": (
        lambda rng: losses.SquaredDistance(rng.standard_normal(VECTOR), weight=1.5),
        VECTOR,
    ),
    "SquaredDistance, matrix": (
        lambda rng: losses.SquaredDistance(rng.standard_normal(MATRIX)),
        MATRIX,
    ),
    "SquaredDistance, factored": (lambda rng: losses.SquaredDistance(factored(rng)), MATRIX),
    "HingeLoss": (lambda rng: losses.HingeLoss(table(rng, 7, 5), signs(rng, 7)), VECTOR),
    "HingeLoss, sparse": (
        lambda rng: losses.HingeLoss(sp.csc_matrix(table(rng, 7, 5)), signs(rng, 7)),
        VECTOR,
    ),
    "LogisticLoss": (lambda rng: losses.LogisticLoss(table(rng, 7, 5), signs(rng, 7)), VECTOR),
    "SquaredRows": (lambda rng: losses.SquaredRows(table(rng, 7, 5), row_targets(rng, 7)), VECTOR),
    "SquaredRows, matrix": (
        lambda rng: losses.SquaredRows(table(rng, 3, 6), row_targets(rng, 3, 4)),
        MATRIX,
    ),
    "AbsoluteRows": (
        lambda rng: losses.AbsoluteRows(table(rng, 7, 5), row_targets(rng, 7)),
        VECTOR,
    ),
    "AbsoluteRows, matrix, sparse": (
        lambda rng: losses.AbsoluteRows(sp.csr_array(table(rng, 9, 6)), row_targets(rng, 9, 4)),
        MATRIX,
    ),
    "HuberRows": (
        lambda rng: losses.HuberRows(sp.csc_matrix(table(rng, 7, 5)), row_targets(rng, 7), 1.5),
        VECTOR,
    ),
    "HuberRows, matrix": (
        lambda rng: losses.HuberRows(table(rng, 9, 6), row_targets(rng, 9, 4), width=0.7),
        MATRIX,
    ),
    "PinballRows": (
        lambda rng: losses.PinballRows(table(rng, 7, 5), row_targets(rng, 7), level=0.3),
        VECTOR,
    ),
    "PinballRows, matrix": (
        lambda rng: losses.PinballRows(table(rng, 9, 6), row_targets(rng, 9, 4), 0.8),
        MATRIX,
    ),
    "PortfolioLoss": (lambda rng: losses.PortfolioLoss(np.exp(table(rng, 3, 5) / 4)), VECTOR),
    "Penalised": (
        lambda rng: losses.Penalised(
            losses.SquaredRows(table(rng, 7, 5), row_targets(rng, 7)),
            losses.LinearLoss(rng.standard_normal(VECTOR), 0.3),
            2.5,
        ),
        VECTOR,
    ),
    "Penalised, entries": (
        lambda rng: losses.Penalised(
            losses.AbsoluteEntries(*entries(rng)), losses.LinearLoss(factored(rng)), 0.5
        ),
        MATRIX,
    ),
    "Penalised, function": (
        lambda rng: losses.Penalised(huber_function(rng), huber_function(rng), 3.0),
        VECTOR,
    ),
    "FunctionLoss": (huber_function, VECTOR),
    "FunctionLoss, matrix": (
        lambda rng: losses.FunctionLoss(lambda X: X.sum() ** 2, lambda X: 2 * X.sum() + 0 * X),
        MATRIX,
    ),
    **_autograd_cases("jax"),
    **(_autograd_cases("torch") if HAS_TORCH else {}),
}

#: Losses of points whose coordinates are positive.
POSITIVE = ("PortfolioLoss",)


class PositiveGenerator:
    """Draws as the generator inside, but positive numbers."""

    def __init__(self, rng: Generator) -> None:
        self.standard_normal = lambda size: 0.1 + np.abs(rng.standard_normal(size))
        self.normal = self.standard_normal
        self.integers = lambda low, high, size: rng.integers(1, high - low + 1, size)


MATRIX_CASES = [
    name for name, (_, shape) in CASES.items() if shape == MATRIX and "Function" not in name
]
