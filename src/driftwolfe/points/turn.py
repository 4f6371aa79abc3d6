"""One thread at a time for what changes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import RLock
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Method = TypeVar("Method", bound=Callable[..., Any])

#: A lock for each object that has been changed; beside the objects, as a lock is no state.
_LOCKS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def one_at_a_time(method: Method) -> Method:
    """Refuse a call while another thread is in one of the methods marked so, on the same object.

    To wait would hide a mistake: what comes out would depend on who was first.
    """

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        lock = _LOCKS.get(self) or _LOCKS.setdefault(self, RLock())
        if not lock.acquire(blocking=False):
            raise RuntimeError(
                f"this {type(self).__name__} is at work in another thread; give each thread its "
                "own, or let them take turns"
            )
        try:
            return method(self, *given, **named)
        finally:
            lock.release()

    return guarded  # type: ignore[return-value]
