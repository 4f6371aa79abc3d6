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
from driftwolfe.learners import BOGDIP, OGD, POLA, POLAR, POLD, Ader, Learner, OnlineFrankWolfe
from driftwolfe.oracles import Oracle, infeasible_projection, minimise
from driftwolfe.points import FactoredMatrix

__version__ = "0.1.0"

__all__ = ["DriftAlarm", "Keyed", "__version__", "compare", "from_bytes", "load", "set_threads"]
__all__ += ["BOGDIP", "OGD", "POLA", "POLAR", "POLD", "Ader", "Learner", "OnlineFrankWolfe"]
__all__ += ["FactoredMatrix", "History", "Oracle", "infeasible_projection", "minimise", "play"]
__all__ += ["domains", "ensemble", "learners", "losses", "oracles", "points"]
__all__ += ["contrib", "estimators", "evaluate", "plot", "reference", "regret", "streams"]
__all__ += domains.__all__

#: Imported when first used, to start quickly.
_LAZY = ("contrib", "estimators", "evaluate", "plot", "reference", "regret", "streams")
_NEEDS_DASK = "distributed"  # not in __all__: with a star too, only who asks for it needs Dask
_ELSEWHERE = {"compare": "comparison", "DriftAlarm": "estimators", "Keyed": "keyed"}


def load(path: _Any, domain: _Any = None, device: _Any = None) -> _Any:
    """Return a saved learner or estimator, which resumes bit-identically.

    Nothing in the file is ever executed; one that is damaged or foreign is refused with a ValueError.
    Learners and sets of your own classes are found by their names once the module that defines them is
    imported; ``MyLearner.load(path)`` names the class itself.

    Parameters
    ----------
    path, domain
        The file, and the learner's set if that holds functions or is of a class without `arguments`: then
        it is not in the file.
    device
        Where to resume: ``"cpu"``, ``"cuda"``, ...; None for where it was, or for the CPU, with a
        warning, if that device is not here.

    Examples
    --------
    >>> import tempfile, driftwolfe as dw
    >>> path = tempfile.mkdtemp() + "/learner.safetensors"
    >>> dw.POLA(dw.L1Ball(3)).save(path)
    >>> dw.load(path).domain.shape
    (3,)
    """
    from driftwolfe import estimators  # slow to import
    from driftwolfe.learners.archive import load_learner
    from driftwolfe.storage import read_header

    kind = read_header(path).kind
    if kind not in estimators.__all__:
        _import_module("driftwolfe.contrib")  # whose learners are found by their names
        return load_learner(path, None, domain, device)
    if device not in (None, "cpu"):
        raise ValueError(
            f"{path} holds a {kind}, which is for the cpu only; load it without device"
        )
    return getattr(estimators, kind).load(path)


def from_bytes(content: bytes, domain: _Any = None, device: _Any = None) -> _Any:
    """Return what `load` reads from a file of this content; every learner and estimator has `to_bytes`.

    Parameters
    ----------
    content, domain, device
        What `to_bytes` returned, or the bytes of a file; and as for `load`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.from_bytes(dw.POLA(dw.L1Ball(3)).to_bytes()).domain.shape
    (3,)
    """
    from driftwolfe.storage import InMemory

    return load(InMemory(content), domain, device)


def __getattr__(name: str) -> _Any:
    if name in (*_LAZY, _NEEDS_DASK):
        return _import_module(f"driftwolfe.{name}")
    if name in _ELSEWHERE:
        return getattr(_import_module(f"driftwolfe.{_ELSEWHERE[name]}"), name)
    hint, homes = "", ("learners", "contrib", "losses", "estimators", "streams", "regret")
    if name[:1].isupper():  # not a module that is about to be imported
        modules = [_import_module(f"driftwolfe.{home}") for home in homes]
        for module in modules[:2]:  # every learner is found here too
            if name in module.__all__:
                return getattr(module, name)
        known = [f"{module.__name__}.{each}" for module in modules for each in module.__all__]
        hint = points.checks.meant(name, [*known, *__all__])
    raise AttributeError(f"module 'driftwolfe' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ELSEWHERE})
