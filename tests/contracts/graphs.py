"""Compare two objects with everything that they hold."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy

from driftwolfe.domains import Domain
from driftwolfe.domains.programs import LinearMinimiser
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.completer_experts import CompleterPool
from driftwolfe.estimators.regressor import RegressionLearner
from driftwolfe.oracles.frank_wolfe import Atoms
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import Device, is_array, to_host

#: Recomputed from the rest when needed.
CACHES = {(FactoredMatrix, "_transposed"), (FactoredMatrix, "_scale"), (Atoms, "_table")}
CACHES |= {(owner, "_bound") for owner in (ClassLearner, RegressionLearner, CompleterPool)}
CACHES |= {(LinearMinimiser, name) for name in ("_solver", "_lock")}

#: The first point is the current one until that changes; a file stores it twice.
SHARED_AT_FIRST = "OnlineFrankWolfe._x"
PLAIN = (type(None), bool, int, str, bytes, type)


def differences(one: Any, other: Any, *, sets: bool = True) -> list[str]:
    """Return where two objects differ: values bit by bit, types, and shared parts.

    `sets`: whether to look into the sets that they hold.
    """
    walk = _Walk(sets)
    walk.compare(one, other, type(one).__name__)
    return walk.found


class _Walk:
    def __init__(self, sets: bool) -> None:
        self.found: list[str] = []
        self._sets = sets
        # Both ways: shared objects must stay shared, and separate ones separate.
        self._partners: dict[int, int] = {}
        self._reverse: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is reused

    def compare(self, one: Any, other: Any, path: str) -> None:
        if type(one) is not type(other):
            self._differs(path, f"{type(one).__name__} and {type(other).__name__}")
        elif isinstance(one, Device):
            if one is not other:
                self._differs(path, f"{one!r} and {other!r}")
        elif isinstance(one, LinearMinimiser):
            self.compare(one.__getstate__(), other.__getstate__(), path)
        elif isinstance(one, PLAIN) or (callable(one) and not isinstance(one, partial)):
            if one != other:
                self._differs(path, f"{one!r} and {other!r}")
        elif isinstance(one, float):
            if math.copysign(1, one) != math.copysign(1, other) or one.hex() != other.hex():
                self._differs(path, f"{one!r} and {other!r}")
        elif isinstance(one, tuple):
            self._items(one, other, path)
        elif isinstance(one, partial):
            self.compare((one.func, one.args), (other.func, other.args), path)
        elif self._new_pair(one, other, path):
            self._contents(one, other, path)

    def _contents(self, one: Any, other: Any, path: str) -> None:
        if is_array(one):
            self._arrays(to_host(one), to_host(other), path)
        elif scipy.sparse.issparse(one) or hasattr(one, "on_host"):
            for part in ("shape", "indptr", "indices", "data"):
                self.compare(getattr(one, part), getattr(other, part), f"{path}.{part}")
        elif isinstance(one, list):
            self._items(one, other, path)
        elif isinstance(one, dict):
            self.compare(list(one), list(other), f"{path}.keys()")
            for key in one.keys() & other.keys():
                self.compare(one[key], other[key], f"{path}[{key!r}]")
        elif isinstance(one, Domain) and not self._sets and type(one).__name__ != "CountedDomain":
            pass
        else:
            self._attributes(one, other, path)

    def _attributes(self, one: Any, other: Any, path: str) -> None:
        names = sorted(_names(one) | _names(other))
        hidden = not names and type(one).__module__.partition(".")[0] != "driftwolfe"
        assert not hidden, f"{path} is a {type(one).__name__}, which cannot be looked into"
        for name in names:
            if hasattr(one, name) and hasattr(other, name):
                self.compare(getattr(one, name), getattr(other, name), f"{path}.{name}")
            elif hasattr(one, name) or hasattr(other, name):
                self._differs(f"{path}.{name}", "only one has it")

    def _items(self, one: Any, other: Any, path: str) -> None:
        if len(one) != len(other):
            self._differs(path, f"{len(one)} and {len(other)} items")
        for i, (a, b) in enumerate(zip(one, other, strict=False)):
            self.compare(a, b, f"{path}[{i}]")

    def _arrays(self, one: Any, other: Any, path: str) -> None:
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            self._differs(path, f"{one.dtype}{one.shape} and {other.dtype}{other.shape}")
        elif one.tobytes() != other.tobytes():
            self._differs(path, "other numbers")

    def _new_pair(self, one: Any, other: Any, path: str) -> bool:
        known = id(one) in self._partners or id(other) in self._reverse
        if not known:
            self._partners[id(one)], self._reverse[id(other)] = id(other), id(one)
            self._kept += (one, other)
            return True
        partners = self._partners.get(id(one)), self._reverse.get(id(other))
        if partners != (id(other), id(one)) and path != SHARED_AT_FIRST:
            self._differs(path, "shared in one and not in the other")
        return False

    def _differs(self, path: str, how: str) -> None:
        self.found.append(f"{path}: {how}")


def _names(thing: Any) -> set[str]:
    slots = {
        name
        for base in type(thing).__mro__
        for name in np.atleast_1d(base.__dict__.get("__slots__", ())).tolist()
    }
    caches = {name for kind, name in CACHES if isinstance(thing, kind)}
    names = slots | set(getattr(thing, "__dict__", ()))
    return names - caches - {"__weakref__", "__dict__"}
