"""Losses from functions written in PyTorch or JAX, which find the gradients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from driftwolfe.losses.base import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.whole_point import FunctionLoss, require_array
from driftwolfe.points import norm
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

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss = dw.losses.from_torch(lambda x: (x - 1).square().sum())  # doctest: +SKIP
    >>> loss.value_and_gradient([0.0, 3.0])  # doctest: +SKIP
    (5.0, array([-2.,  4.]))
    """
    torch = device_named("torch").xp

    def evaluate(x: Array, slope: bool) -> tuple[Any, Any]:
        point = torch.tensor(x, requires_grad=slope)
        with torch.set_grad_enabled(slope):
            result = torch.as_tensor(function(point))
        if not slope:
            return result, None
        tied = result.requires_grad
        gradient = torch.autograd.grad(result, point, allow_unused=True)[0] if tied else None
        if gradient is None:
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
    repeated = set[bool]()  # of the first point

    def value(x: Any) -> Any:
        return evaluate(require_array(x, "give the entries that it needs: rows=, cols="), False)[0]

    def gradient(x: Any) -> Any:
        other = None if repeated else loss._number(x)
        result, slope = map(np.asarray, evaluate(x, True))
        if other is not None and abs(result - other) > 1e-6 * max(
            abs(other), norm(slope) * norm(x)
        ):
            raise ValueError(
                f"the function returned {float(result):g} and {other:g} for the same decision: it may draw no "
                "random numbers; switch a model with dropout to evaluation"
            )
        repeated.add(True)
        return slope

    if not callable(function):
        raise TypeError(f"function must be callable, got {type(function).__name__}")
    whole = rows is None and cols is None
    loss = FunctionLoss(
        value, gradient, shape=shape if whole else np.size(rows), lipschitz=lipschitz
    )
    return loss if whole else _Entries(loss, rows, cols, shape)


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
