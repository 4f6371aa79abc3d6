"""Projection-free online learning in changing environments.

A set is its linear minimisation oracle (`domains`), a loss is convex (`losses`), a learner plays a
point of the set each round and then sees the loss (`learners`, `play`); `regret` measures how it
did against comparators that move.
"""

from importlib import import_module as _import_module
from typing import Any as _Any

from driftwolfe import domains, ensemble, learners, losses, oracles, points
from driftwolfe.domains import *
from driftwolfe.ensemble.threads import set_threads
from driftwolfe.game import History, play
from driftwolfe.learners import *
from driftwolfe.learners import bounds
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix

__version__ = "0.1.0"

__all__ = [
    "FactoredMatrix",
    "History",
    "__version__",
    "bounds",
    "domains",
    "ensemble",
    "estimators",
    "infeasible_projection",
    "learners",
    "load",
    "losses",
    "oracles",
    "play",
    "points",
    "regret",
    "set_threads",
    "streams",
]
__all__ += domains.__all__
__all__ += learners.__all__

#: Rooms that not every program enters: imported when first named, which keeps the start quick.
_LAZY = ("estimators", "regret", "streams")


def load(path: _Any, domain: _Any = None, device: _Any = None) -> _Any:
    """Return the learner or estimator that was saved to a file, in the state that it had.

    The file says what it holds; nothing in it is ever executed. A damaged or foreign file is refused
    with a ValueError. A learner whose class is your own is loaded with that: ``MyLearner.load(path)``.

    Parameters
    ----------
    path
        The file.
    domain
        The learner's set, where that holds functions or is of a class of your own, and so is not in
        the file.
    device
        Where to go on: ``"cpu"``, ``"cuda"``, ...; None: where it was, or on the CPU, with a warning,
        where that device is not here.

    Examples
    --------
    >>> import tempfile, driftwolfe as dw
    >>> path = tempfile.mkdtemp() + "/learner.safetensors"
    >>> dw.POLA(dw.L1Ball(3)).save(path)
    >>> dw.load(path).domain.shape
    (3,)
    """
    return _import_module("driftwolfe.saved").load(path, domain, device)


def __getattr__(name: str) -> _Any:
    if name in _LAZY:
        return _import_module(f"driftwolfe.{name}")
    raise AttributeError(f"module 'driftwolfe' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
