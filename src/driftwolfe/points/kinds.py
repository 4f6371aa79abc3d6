"""The types that cross the layers, and the loader of compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.integer[Any]]
Shape: TypeAlias = tuple[int, ...]

#: What a decision is: a dense float64 array, a `FactoredMatrix` or a `ProductPoint`. All three add,
#: subtract and scale; `driftwolfe.points.inner` and `norm` measure them.
Point: TypeAlias = Any


def compiled(name: str) -> Callable[[], ModuleType]:
    """Return a function that returns the module of that name, and loads it, with numba, when first called."""
    return cache(partial(import_module, name))
