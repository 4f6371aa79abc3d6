"""Modules of compiled loops, loaded when they are first needed: numba takes its time."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import ModuleType


def compiled(name: str) -> Callable[[], ModuleType]:
    """Return a function that returns the module of that name, and loads it when first called."""
    return cache(partial(import_module, name))
