"""Losses of a whole point: linear, squared distance, functions of the user's; penalties."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from driftwolfe.losses.base import LONGEST, Ball, FixedPoint, Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import FactoredMatrix, checks, ops
from driftwolfe.points.devices import HOST, device_named, device_of, is_array, namespace, to_host
from driftwolfe.points.kinds import Array, Point, Shape, compiled
from driftwolfe.points.ops import ProductPoint

kernels = compiled("driftwolfe.points.kernels")


class LinearLoss(Loss):
    r""":math:`f(x) = \langle g, x\rangle + b`, with gradient g everywhere.

    Parameters
    ----------
    g
        The gradient: an array of any shape, or a `FactoredMatrix`.
    constant
        The number b, in units of the loss.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.LinearLoss([1.0, -2.0], constant=0.5).value_and_gradient([3.0, 1.0])
    (1.5, array([ 1., -2.]))
    """

    on_devices = True

    def __init__(self, g: Any, constant: float = 0.0) -> None:
        self._g = FixedPoint(g, "g")
        self.g, self.shape = self._g.given, self._g.shape
        self.constant = float(checks.finite_array(constant, "constant", ()))
        self.overflows = self._g.overflows

    def scores(self, x: Point) -> Array:
        self.check_shape(x.shape)
        return np.asarray(ops.inner(self.g, x))

    def value_at(self, scores: Array) -> Array:
        return scores + self.constant

    def slope_at(self, scores: Array) -> Array:
        return namespace(scores).ones_like(scores)

    def pull_back(self, slope: Array, like: Point) -> Point:
        return self._g.like(like) * float(slope)

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        return stack.reshape(len(stack), -1) @ self._g.like(stack).ravel()

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        g = self._g.like(stack)
        return slopes.reshape(-1, *(1 for _ in g.shape)) * g

    def lipschitz(self, domain: Ball) -> float:
        return ops.norm(self.g)


class WholePointLoss(Loss):
    """A loss whose scores are the point itself."""

    def scores(self, x: Point) -> Point:
        self.check_shape(x.shape)
        return x

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        return stack

    def pull_back(self, slope: Point, like: Point) -> Point:
        return slope

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        return slopes


class SquaredDistance(WholePointLoss):
    r""":math:`f(x) = w \lVert x - z\rVert^2`, with gradient :math:`2 w (x - z)`.

    Parameters
    ----------
    target
        The point z: an array of any shape, or a `FactoredMatrix`.
    weight
        The factor w > 0, in units of the loss over squared units of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.SquaredDistance([1.0, 2.0]).value_and_gradient([0.0, 0.0])
    (2.5, array([-1., -2.]))
    """

    on_devices = True

    def __init__(self, target: Any, weight: float = 0.5) -> None:
        self._target = FixedPoint(target, "target")
        self.target, self.shape = self._target.given, self._target.shape
        self.weight = checks.positive(weight, "weight")
        self.overflows = self._target.overflows

    def value_at(self, scores: Point) -> Array:
        return self.value_and_slope_at(scores)[0]

    def slope_at(self, scores: Point) -> Point:
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores: Point) -> tuple[Array, Point]:
        offset = scores - self._target.like(scores)
        if is_array(offset):
            flat = offset.reshape(*offset.shape[: offset.ndim - len(self._target.shape)], -1)
            squares = namespace(flat).linalg.vecdot(flat, flat)
        else:
            squares = np.asarray(ops.norm(offset) ** 2)
        return self.weight * squares, offset * (2.0 * self.weight)

    def stacked_round(self, stack: Any, weights: Array) -> tuple[Array, Array, float]:
        self.check_shape(tuple(stack.shape[1:]))
        if not isinstance(stack, np.ndarray):
            return super().stacked_round(stack, weights)
        points, target = stack.reshape(len(stack), -1), self._target.like(stack).ravel()
        values, gradients = np.empty(len(stack)), np.empty(points.shape)
        given = points, target, weights, self.weight, np.zeros(target.size)
        value = kernels().squared_distances(*given, values, gradients)
        return values, gradients.reshape(stack.shape), value

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`2 w (R + \lVert z - c\rVert)`, R the radius and c the centre."""
        center = domain.center
        offset = ops.norm(self.target if center is None else self.target - center)
        return 2.0 * self.weight * (domain.radius + offset)


class FunctionLoss(WholePointLoss):
    """Your own convex function, by its value and a (sub)gradient.

    Both are called with one point at a time: a read-only array, a `FactoredMatrix`, or a `ProductPoint`
    of those. Convexity is not checked. Without a gradient, arrays of n numbers have central differences
    of 2 n values, at points a little outside the set too: eight digits where the function is smooth.

    Parameters
    ----------
    value
        Takes a point, returns a number.
    gradient
        Takes a point, returns a (sub)gradient of the same shape; by default, differences.
    shape
        Shape of the points; by default that of the first one.
    lipschitz
        A bound on the norms of the gradients, if one is known.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> loss = dw.losses.FunctionLoss(lambda x: np.abs(x).sum(), np.sign)
    >>> loss.value_and_gradient([1.0, -2.0])
    (3.0, array([ 1., -1.]))
    """

    def __init__(
        self,
        value: Callable[[Point], Any],
        gradient: Callable[[Point], Any] | None = None,
        *,
        shape: Any = None,
        lipschitz: float | None = None,
    ) -> None:
        gradient, self._warned = self._differences if gradient is None else gradient, False
        for name, given in (("value", value), ("gradient", gradient)):
            if not callable(given):
                raise TypeError(f"{name} must be callable, got {type(given).__name__}")
        self._value, self._gradient = value, gradient
        self.shape = None if shape is None else checks.shape(shape)
        self._bound = None if lipschitz is None else checks.nonnegative(lipschitz, "lipschitz")

    def check_shape(self, shape: Shape) -> None:
        super().check_shape(shape)
        self.shape = shape  # that of the first point: a matrix is no stack of vectors

    def value_at(self, scores: Point) -> Array:
        points, leading = self._points(scores)
        return np.reshape([self._number(point) for point in points], leading)

    def slope_at(self, scores: Point) -> Point:
        points, _ = self._points(scores)
        gradients = [_checked_gradient(self._gradient(point), point) for point in points]
        is_array = isinstance(scores, np.ndarray)
        return np.array(gradients).reshape(scores.shape) if is_array else gradients[0]

    def stacked_scores(self, stack: Array) -> Array:
        return super().stacked_scores(stack).copy()  # the points given to users never change

    def lipschitz(self, domain: Ball) -> float | None:
        return self._bound

    def _number(self, point: Point) -> float:
        result = self._value(point)
        try:
            return float(checks.finite_array(result, "value(x)", ()))
        except ValueError:
            text = f"value(x) must return a finite number, it returned {result!r:.80}"
            raise ValueError(text) from None

    def _differences(self, x: Any) -> Array:
        """Return central differences of the values."""
        x = _require_array(x, "give gradient=")
        if not self._warned:
            text = f"FunctionLoss takes differences of {2 * x.size} values for each gradient; give gradient=, "
            warnings.warn(f"{text}or use losses.from_torch or losses.from_jax", stacklevel=2)
            self._warned = True
        # The error, of order step^2, is then about that of rounding.
        step = np.finfo(float).eps ** (1 / 3) * (np.abs(x).max(initial=0.0) or 1.0)
        gradient, apart = np.empty(x.shape), np.zeros(x.shape)
        for i in range(x.size):
            apart.flat[i] = step
            gradient.flat[i] = (self._number(x + apart) - self._number(x - apart)) / (2.0 * step)
            apart.flat[i] = 0.0
        return gradient

    def _points(self, scores: Point) -> tuple[Any, Shape]:
        """Return the single points in scores, read-only, and the axes before theirs."""
        if not isinstance(scores, np.ndarray):
            return [_guarded(scores)], ()
        axes = 0 if self.shape is None else scores.ndim - len(self.shape)
        return _guarded(scores.reshape(-1, *scores.shape[axes:])), scores.shape[:axes]


def _require_array(x: Any, instead: str) -> Array:
    if isinstance(x, np.ndarray):
        return x
    raise ValueError(f"this function takes arrays, got {type(x).__name__}: {instead}")


def _guarded(point: Point) -> Point:
    """Return the same point, protected against writing by the user's functions."""
    if isinstance(point, np.ndarray):
        view = point.view()
        view.setflags(write=False)
        return view
    if isinstance(point, ProductPoint):
        return ProductPoint(map(_guarded, point.parts))
    if point.device is not HOST:  # tensors cannot be made read-only
        return point.copy()
    U, s, V = map(_guarded, (point.U, point.s, point.V))
    stored = None if point.sparse is None else point.sparse.copy()
    return FactoredMatrix._of(U, s, V, stored, point.orthonormal)


def _checked_gradient(result: Any, like: Point) -> Point:
    """A gradient as the kind of point that `like` is, of its shape."""
    if isinstance(like, ProductPoint):
        parts = getattr(result, "parts", ())
        if len(parts) != len(like.parts):
            raise ValueError(
                f"gradient(x) must return a ProductPoint of {len(like.parts)} parts, "
                f"it returned {result!r:.80}"
            )
        pairs = zip(parts, like.parts, strict=True)
        return ProductPoint(_checked_gradient(part, each) for part, each in pairs)
    gradient = FixedPoint(result, "what gradient(x) returned")
    if gradient.shape != like.shape:
        raise ValueError(
            f"gradient(x) must return a point of shape {like.shape}, "
            f"it returned one of shape {gradient.shape}"
        )
    if gradient.overflows:
        most = f"the largest allowed is {LONGEST:.3g}: use other units"
        raise ValueError(
            f"the gradient of this loss has the norm {ops.norm(gradient.given):.3g}; {most}"
        )
    return gradient.like(like)


def from_torch(function: Any, rows: Any = None, cols: Any = None) -> Loss:
    """Make a loss of a convex function written in PyTorch.

    Parameters
    ----------
    function
        Takes an array, as a float64 tensor on the CPU, and returns a tensor with one number, always the same.
    rows, cols
        Entries of a matrix: `function` takes the vector of these. The gradient at a `FactoredMatrix` is sparse.
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

    return _loss(function, evaluate, rows, cols)


def from_jax(function: Any, rows: Any = None, cols: Any = None) -> Loss:
    """Make a loss of a convex function written in JAX, evaluated in double precision.

    Parameters
    ----------
    function
        Takes an array and returns one number, always the same; much quicker under `jax.jit`. Constants are best
        arrays of NumPy.
    rows, cols
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

    return _loss(function, evaluate, rows, cols)


def _loss(function: Any, evaluate: Any, rows: Any, cols: Any) -> Loss:
    if not callable(function):
        raise TypeError(f"function must be callable, got {type(function).__name__}")
    repeats = False

    def value(x: Any) -> Any:
        return evaluate(_require_array(x, "give the entries that it needs: rows=, cols="), False)[0]

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

    whole = rows is None and cols is None
    loss = FunctionLoss(value, gradient, shape=None if whole else np.size(rows))
    return loss if whole else _Entries(loss, rows, cols)


class _Entries(EntryLoss):
    """A function of the vector of some entries of a matrix."""

    def __init__(self, function: FunctionLoss, rows: Any, cols: Any) -> None:
        super().__init__(rows, cols, np.zeros(np.size(rows)))
        self._function = function

    def value_at(self, scores: Array) -> Array:
        return self._function.value_at(to_host(scores))

    def slope_at(self, scores: Array) -> Any:
        return device_of(scores).put(self._function.slope_at(to_host(scores)))

    def lipschitz(self, domain: Any) -> Any:
        return None


class Penalised(Loss):
    r""":math:`f(x) + w \max(g(x), 0)`: a loss and the violation of a constraint :math:`g(x) \le 0`.

    Parameters
    ----------
    loss, constraint
        The convex functions f and g, both losses of this library.
    weight
        The number w >= 0, in units of f over those of g.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> f, g = dw.losses.LinearLoss([1.0, 0.0]), dw.losses.LinearLoss([0.0, 1.0], constant=-1.0)
    >>> loss = dw.losses.Penalised(f, g, weight=10.0)
    >>> loss.value([2.0, 0.5]), loss.value_and_gradient([2.0, 1.5])
    (2.0, (7.0, array([ 1., 10.])))
    """

    def __init__(self, loss: Loss, constraint: Loss, weight: float = 1.0) -> None:
        for name, given in (("loss", loss), ("constraint", constraint)):
            if not isinstance(given, Loss):
                raise TypeError(f"{name} must be a Loss, got {type(given).__name__}")
        self.loss, self.constraint = loss, constraint
        self.weight = checks.nonnegative(weight, "weight")
        self.shape = constraint.shape if loss.shape is None else loss.shape
        self._shapes: tuple[Shape, Shape] | None = None  # of both scores; None: those are points

    def check_shape(self, shape: Shape) -> None:
        self.loss.check_shape(shape)
        self.constraint.check_shape(shape)

    def scores(self, x: Point) -> Any:
        """The scores of both, end to end; the point itself where they are no arrays."""
        parts = self.loss.scores(x), self.constraint.scores(x)
        if not all(isinstance(part, np.ndarray | np.generic) for part in parts):
            self._shapes = None
            return x
        self._shapes = np.shape(parts[0]), np.shape(parts[1])
        return np.concatenate([np.ravel(part) for part in parts])

    def stacked_scores(self, stack: Array) -> Array:
        parts = self.loss.stacked_scores(stack), self.constraint.stacked_scores(stack)
        self._shapes = parts[0].shape[1:], parts[1].shape[1:]
        return np.concatenate([part.reshape(len(stack), -1) for part in parts], axis=1)

    def value_at(self, scores: Any) -> Array:
        own, of_constraint = self._parts(scores)
        violation = np.maximum(self.constraint.value_at(of_constraint), 0.0)
        return self.loss.value_at(own) + self.weight * violation

    def slope_at(self, scores: Any) -> Any:
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores: Any) -> tuple[Array, Any]:
        own, of_constraint = self._parts(scores)
        value, slope = self.loss.value_and_slope_at(own)
        excess, normal = self.constraint.value_and_slope_at(of_constraint)
        factor = self.weight * (np.asarray(excess) > 0.0)
        total = value + self.weight * np.maximum(excess, 0.0)
        if self._shapes is None:
            first = self.loss.pull_back(slope, scores)
            return total, first + float(factor) * self.constraint.pull_back(normal, scores)
        leading, axes = scores.shape[:-1], (1,) * len(self._shapes[1])
        slopes = slope, factor.reshape((*leading, *axes)) * normal
        flat = [np.reshape(part, (*leading, -1)) for part in slopes]
        return total, np.concatenate(flat, axis=-1)

    def pull_back(self, slope: Any, like: Point) -> Point:
        if self._shapes is None:
            return slope
        own, normal = self._parts(slope)
        gradient = self.loss.pull_back(own, like)
        return gradient + self.constraint.pull_back(normal, like) if normal.any() else gradient

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        own, normals = self._parts(slopes)
        gradients = self.loss.stacked_pull_back(own, stack)
        return gradients + self.constraint.stacked_pull_back(normals, stack)

    def lipschitz(self, domain: Ball) -> float | None:
        own, other = self.loss.lipschitz(domain), self.constraint.lipschitz(domain)
        return None if own is None or other is None else own + self.weight * other

    def _parts(self, scores: Any) -> tuple[Any, Any]:
        if self._shapes is None:
            return self.loss.scores(scores), self.constraint.scores(scores)
        first, second = self._shapes
        leading, cut = scores.shape[:-1], math.prod(first)
        own, other = scores[..., :cut], scores[..., cut:]
        return own.reshape((*leading, *first)), other.reshape((*leading, *second))
