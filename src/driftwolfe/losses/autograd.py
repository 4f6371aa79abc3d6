"""Losses from functions written in PyTorch or JAX, which find the gradients."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np

from driftwolfe.losses.base import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.whole_point import FunctionLoss, require_array
from driftwolfe.points.devices import device_named, device_of, to_host
from driftwolfe.points.kinds import Array


def from_torch(
    function: Any, rows: Any = None, cols: Any = None, *, shape: Any = None, lipschitz: Any = None
) -> Loss:
    """Make a loss of a convex function written in PyTorch.

    Parameters
    ----------
    function
        Takes an array, as a float64 tensor on the CPU, and returns a tensor with one number, always the same.
    rows, cols
        Entries of a matrix: `function` takes the vector of these. The gradient at a `FactoredMatrix` is sparse.
    shape, lipschitz
        As for `FunctionLoss`.
    """
    torch = device_named("torch").xp

    def evaluate(x: Array, slope: bool) -> tuple[Any, Any]:
        point, gradient = torch.tensor(x, requires_grad=slope), None
        with torch.set_grad_enabled(slope):
            result = torch.as_tensor(function(point))
        if result.requires_grad:
            (gradient,) = torch.autograd.grad(result, point, allow_unused=True)
        if slope and gradient is None:
            raise ValueError(
                "PyTorch sees no way from the decision to the result: compute it by PyTorch's functions "
                "alone, without NumPy, Python's max, item() or detach()"
            )
        return result.detach(), gradient

    return _loss(function, evaluate, rows, cols, shape, lipschitz)


def from_jax(
    function: Any, rows: Any = None, cols: Any = None, *, shape: Any = None, lipschitz: Any = None
) -> Loss:
    """Make a loss of a convex function written in JAX, evaluated in double precision.

    Parameters
    ----------
    function
        Takes an array and returns one number, always the same; constants are best arrays of NumPy.
    rows, cols, shape, lipschitz
        As for `from_torch`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.from_jax(lambda x: ((x - 1) ** 2).sum()).value_and_gradient([0.0, 3.0])
    (5.0, array([-2.,  4.]))
    """
    try:
        jax: Any = import_module("jax")
    except ImportError:
        raise ImportError('from_jax needs JAX: pip install "driftwolfe[jax]"') from None

    def evaluate(x: Array, slope: bool) -> tuple[Any, Any]:
        with jax.enable_x64(True):
            point = jax.numpy.asarray(x)
            return jax.value_and_grad(function)(point) if slope else (function(point), None)

    return _loss(function, evaluate, rows, cols, shape, lipschitz)


def _loss(function: Any, evaluate: Any, rows: Any, cols: Any, shape: Any, lipschitz: Any) -> Loss:
    if not callable(function):
        raise TypeError(f"function must be callable, got {type(function).__name__}")
    repeats = False

    def value(x: Any) -> Any:
        return evaluate(require_array(x, "give the entries that it needs: rows=, cols="), False)[0]

    def gradient(x: Any) -> Any:
        nonlocal repeats
        before = math.nan if repeats else loss._number(x)
        result, slope = evaluate(x, True)
        repeats = repeats or math.isclose(result, before, rel_tol=1e-6, abs_tol=1e-9)
        if not repeats:
            raise ValueError(
                f"for one decision the function returned {before:g}, then {float(result):g}: it may "
                "not draw random numbers; switch a model with dropout to evaluation"
            )
        return slope

    seen = shape if rows is None and cols is None else np.size(rows)
    loss = FunctionLoss(value, gradient, shape=seen, lipschitz=lipschitz)
    return loss if rows is None and cols is None else _Entries(loss, rows, cols, shape)


class _Entries(EntryLoss):
    """A function of the vector of some entries of a matrix."""

    def __init__(self, function: FunctionLoss, rows: Any, cols: Any, shape: Any) -> None:
        super().__init__(rows, cols, np.zeros(np.size(rows)), shape)
        self._function = function

    def value_at(self, scores: Array) -> Array:
        return self._function.value_at(to_host(scores))

    def slope_at(self, scores: Array) -> Any:
        return device_of(scores).put(self._function.slope_at(to_host(scores)))

    def lipschitz(self, domain: Any) -> Any:
        return self._function.lipschitz(domain)
