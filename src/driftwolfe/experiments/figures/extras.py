"""Packages that only figures and reports need."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def extra(module: str) -> ModuleType:
    """Import a module of an extra dependency; where it is missing, say how to get it.

    >>> extra("no_such_package.part")
    Traceback (most recent call last):
        ...
    ImportError: this needs no_such_package: pip install 'driftwolfe[experiments]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        package = (missing.name or module).partition(".")[0]
        raise ImportError(
            f"this needs {package}: pip install 'driftwolfe[experiments]'"
        ) from missing
