"""Hostile losses, points and numbers."""

import numpy as np

from driftwolfe.losses import AbsoluteEntries, FunctionLoss, LinearLoss, Loss, SquaredDistance
from driftwolfe.points import FactoredMatrix

#: What a function may return instead of a number.
NO_NUMBERS = {
    "nan": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "complex": 1j,
    "text": "much",
    "none": None,
    "list": [1.0, 2.0],
    "empty": [],
    "object": np.array([object()]),
    "nothing of its kind": np.array(np.datetime64("2024-01-01")),
}


class BrokenError(Exception):
    """Raised by the failing losses."""


def raising(x):
    raise BrokenError


def on_call(number, good):
    """A function that fails at its n-th call."""
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) == number:
            raise BrokenError
        return good(x)

    return function


def writing(x):
    """Tries to change the point it is given."""
    array = x.U if isinstance(x, FactoredMatrix) else x
    array[...] = 7.0
    return 0.0


def no_gradients(shape):
    """What a function may return instead of a gradient."""
    infinite = np.zeros(shape)
    infinite.flat[-1] = np.inf
    yield "nan", np.full(shape, np.nan)
    yield "one infinity", infinite
    yield "complex", np.full(shape, 1j)
    yield "text", np.full(shape, "a")
    yield "objects", np.full(shape, None)
    yield "none", None
    yield "number", 1.0
    yield "longer", np.zeros((shape[0] + 1, *shape[1:]))
    yield "one axis more", np.zeros((*shape, 1))
    yield "one axis less", np.zeros(shape[1:])
    yield "empty", np.zeros(0)


def bad_losses(domain):
    """Invalid losses by name; each must be refused."""
    shape = domain.shape
    zero, flat = (lambda x: 0.0), (lambda x: np.zeros(shape))
    for name, value in NO_NUMBERS.items():
        yield f"value is {name}", FunctionLoss(lambda x, value=value: value, flat)
    for name, gradient in no_gradients(shape):
        yield f"gradient is {name}", FunctionLoss(zero, lambda x, g=gradient: g)
    yield "value raises", FunctionLoss(raising, flat)
    yield "gradient raises", FunctionLoss(zero, raising)
    yield "writes to its point", FunctionLoss(writing, flat)
    yield "shape of another set", SquaredDistance(np.zeros(99))
    yield "linear on another set", LinearLoss(np.zeros((2, 2, 2)))
    yield "entries that are not there", AbsoluteEntries([500], [0], [1.0])
    yield "half a loss", type("Half", (), {"value": zero})()
    yield "a loss class", Loss
    yield "text", "loss"
    yield "none", None


def late_losses(domain):
    """Losses that raise at a later evaluation, for learners that evaluate so often."""
    shape = domain.shape
    zero, flat = (lambda x: 0.0), (lambda x: np.zeros(shape))
    for number in (2, 3, 5):
        yield f"value {number}", FunctionLoss(on_call(number, zero), flat)
        yield f"gradient {number}", FunctionLoss(zero, on_call(number, flat))


def wild_losses(domain, rng):
    """Valid losses of extreme size."""
    shape = domain.shape
    direction = rng.standard_normal(shape)
    for scale in (1e3, 1e12, 1e100, 1e-100, 1e-300, 0.0):
        yield LinearLoss(scale * direction)
        yield FunctionLoss(lambda x: 0.0, lambda x, s=scale: s * direction)
    yield SquaredDistance(1e6 * direction)
    yield SquaredDistance(direction, weight=1e-12)
    if len(shape) == 2:
        twice = [0, 0, 1, 0, 0]
        yield AbsoluteEntries(twice, twice, 1e9 * rng.standard_normal(5))
