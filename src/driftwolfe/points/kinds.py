"""The types that cross the layers, and the loader of compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.integer[Any]]
Shape: TypeAlias = tuple[int, ...]

#: What a decision is: a dense float64 array, a `FactoredMatrix` or a `ProductPoint`. All three add,
#: subtract and scale; `driftwolfe.points.inner` and `norm` measure them.
Point: TypeAlias = Any


class Loading:
    """Whether loops are loaded as they are written, not compiled, and the module being loaded so."""

    plain = False
    module = ""
    loaders: ClassVar[list[Any]] = []  # which remember what they have loaded


def compiled(name: str) -> Callable[..., ModuleType]:
    """Return a function that returns the module of that name, and loads it, with numba, when first called.

    Loops are compiled when first called, those that are named to that function now.
    """

    @cache
    def load(*loops: str) -> ModuleType:
        module = _as_written(name) if Loading.plain else import_module(name)
        for loop in loops:
            getattr(getattr(module, loop), "ready", bool)()  # what is not compiled is ready
        return module

    Loading.loaders.append(load)
    return load


@contextmanager
def interpreted() -> Iterator[None]:
    """Run loops in Python: for a short game that would be over before they are compiled."""
    _load_again(plain=True)
    try:
        yield
    finally:
        _load_again(plain=False)


def _load_again(plain: bool) -> None:
    Loading.plain = plain
    for load in Loading.loaders:
        load.cache_clear()


@cache
def _as_written(name: str) -> ModuleType:
    """A second copy of a module, whose functions `compiling.jit` leaves as they are."""
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"there is no module {name}", name=name)
    module, Loading.module = module_from_spec(spec), name
    try:
        spec.loader.exec_module(module)
    finally:
        Loading.module = ""
    return module
