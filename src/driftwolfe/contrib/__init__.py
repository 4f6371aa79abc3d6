"""Methods beyond the paper: other structure of losses, less feedback, constraints, mixtures.

Every learner in the files of this folder is here too. CONTRIBUTING says what may be added, and how.
"""

from importlib import import_module as _import_module
from inspect import isabstract as _isabstract
from pkgutil import iter_modules as _iter_modules
from typing import Any as _Any

from driftwolfe.learners import Learner as _Learner
from driftwolfe.points.checks import meant as _meant


def _learners() -> dict[str, type[_Learner]]:
    """All learners that the files of this folder define, by name."""
    names = (f"{__name__}.{file.name}" for file in _iter_modules(__path__))
    classes = (each for name in names for each in vars(_import_module(name)).values())
    return {
        each.__name__: each
        for each in classes
        if isinstance(each, type) and each.__module__.startswith(f"{__name__}.")
        if issubclass(each, _Learner) and not _isabstract(each)
    }


globals().update(_learners())
__all__ = sorted(_learners())


def __getattr__(name: str) -> _Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_meant(name, __all__)}")
