"""Many readers or one writer: which threads may use an object that changes, at the same time.

A method that changes an object is marked with `writes`, one that reads what changes with `reads`.
Then, for calls on the same object in different threads,

- reads run beside each other;
- a read while another thread writes is refused with a RuntimeError, and so is a write while another
  thread reads or writes;
- a refused call changes nothing, and does not wait: with waiting, results would depend on who came
  first.

A thread never refuses itself: marked methods may call each other. The exception is what keeps the
whole state in a file, marked with `reads_whole`: within an update of the same object (in a loss, or in
a signal handler) the state is between two rounds, and the call is refused.

A process forked while another thread wrote has that thread's half-finished changes, and not the
thread. There all calls on that object are refused, for good; objects at rest work as before.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, TypeVar
from weakref import ref

Method = TypeVar("Method", bound=Callable[..., Any])


class _Access:
    """The threads that are in marked methods of one object.

    No lock is needed, as every operation on a list is atomic, and every thread first says that it is
    there and then looks for others: of a reader and a writer who come at the same moment, at least
    one sees the other.

    Attributes
    ----------
    thing
        A weak reference to the object.
    writers
        Threads in methods that write, once for each call. The first is at work; others are about to
        be refused. `HALF_WRITTEN` takes the first place for ever.
    readers
        Threads in methods that read, once for each call.
    """

    __slots__ = ("readers", "thing", "writers")

    def __init__(self, thing: ref[Any]) -> None:
        self.thing = thing
        self.writers: list[int] = []
        self.readers: list[int] = []


#: No thread has this number: it stands for one that a fork has left behind.
HALF_WRITTEN = 0
#: By id: beside the objects, as this is no part of their state. An entry goes with its object.
_ACCESS: dict[int, _Access] = {}


def writes(method: Method) -> Method:
    """Mark a method that changes its object: one thread at a time, and none that reads."""

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        access = _ACCESS.get(id(self)) or _new_access(self)
        me, writers, readers = get_ident(), access.writers, access.readers
        within = me in writers
        try:
            writers.append(me)  # in here: an interrupt may come right after it
            if not within and (writers[0] != me or readers.count(me) != len(readers)):
                raise _refusal(self, access)
            return method(self, *given, **named)
        finally:
            writers.remove(me)

    return guarded  # type: ignore[return-value]


def reads(method: Method) -> Method:
    """Mark a method that reads what changes: many threads at a time, and none that writes."""

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        access = _ACCESS.get(id(self)) or _new_access(self)
        me, writers, readers = get_ident(), access.writers, access.readers
        if writers and me not in writers:  # before a writer can see this thread, too
            raise _refusal(self, access)
        try:
            readers.append(me)
            if writers and me not in writers:
                raise _refusal(self, access)
            return method(self, *given, **named)
        finally:
            readers.remove(me)

    return guarded  # type: ignore[return-value]


def reads_whole(method: Method) -> Method:
    """Mark a method that keeps the whole state, as `reads` does; not within an update of the object."""

    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        refuse_within_update(self)
        return method(self, *given, **named)

    return reads(guarded)  # type: ignore[return-value]


def refuse_within_update(thing: Any) -> None:
    """Raise RuntimeError where this thread is in the middle of an update of the object."""
    access = _ACCESS.get(id(thing))
    if access is not None and get_ident() in access.writers:
        raise RuntimeError(
            f"this {type(thing).__name__} is in the middle of an update, in this same thread: save it "
            "after the update has returned"
        )


class Guarded:
    """Copies of an object are reads of it, too.

    Pickling is refused while another thread writes. Do not write before it is complete: Python
    gives no way to notice that.
    """

    @reads
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        state = copy.deepcopy(self.__getstate__(), memo)
        if hasattr(copied, "__setstate__"):
            copied.__setstate__(state)
            return copied
        plain, slots = state if isinstance(state, tuple) else (state, {})
        copied.__dict__.update(plain or {})
        for name, value in slots.items():
            setattr(copied, name, value)
        return copied

    @reads
    def __getstate__(self) -> Any:
        return super().__getstate__()


def _new_access(thing: Any) -> _Access:
    key, entries = id(thing), _ACCESS

    def forget(dead: ref[Any]) -> None:
        if key in entries and entries[key].thing is dead:
            del entries[key]

    return entries.setdefault(key, _Access(ref(thing, forget)))


def _refusal(thing: Any, access: _Access) -> RuntimeError:
    name = type(thing).__name__
    if HALF_WRITTEN in access.writers:
        return RuntimeError(
            f"this {name} is half updated: another thread was updating it when this process was "
            "forked; load it from a file or make a new one, and fork between updates"
        )
    return RuntimeError(
        f"this {name} is at work in another thread; give each thread its own, or let them take turns"
    )


# -- forks -----------------------------------------------------------------------------------------


def _after_fork_in_child() -> None:
    """Only the thread that forked is here: reads of others have ended, their writes never will."""
    me = get_ident()
    for access in list(_ACCESS.values()):
        access.readers[:] = [reader for reader in access.readers if reader == me]
        others = access.writers and access.writers[0] != me
        access.writers[:] = [HALF_WRITTEN] if others else [w for w in access.writers if w == me]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
