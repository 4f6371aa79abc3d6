"""Reject concurrent calls at once: many threads may read an object, or one may write, and call itself."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from functools import wraps
from threading import get_ident
from typing import Any, NamedTuple, Self, TypeVar, cast
from weakref import finalize

from driftwolfe.points.checks import Constructed
from driftwolfe.storage import InMemory

Method = TypeVar("Method", bound=Callable[..., Any])


class _Access(NamedTuple):
    """The threads in marked methods of one object; the first writer is at work."""

    # No lock is needed: operations on lists are atomic, and a thread enters its number before it
    # looks for others, so of a reader and a writer at the same moment at least one sees the other.
    writers: list[int]
    readers: list[int]


#: No thread has this number: the first writer for ever, where a fork or an interrupt left a write unfinished.
HALF_WRITTEN = 0
UPDATING = (
    "is in the middle of an update, in this same thread: save it after the update has returned"
)
#: Nor this one: a reader for ever, that of a snapshot, and the mark of what a copy that is to be one holds.
FROZEN = -1
#: By id: beside the objects, as this is no part of their state. An entry goes with its object.
_ACCESS: dict[int, _Access] = {}


def writes(method: Method) -> Method:
    """Mark a method that changes its object, one thread at a time; an interrupt leaves it half written."""
    return _guarded(method, writing=True)


def writes_or_undoes(method: Method) -> Method:
    """Mark as by `writes` a method that an interrupt leaves done or undone, and its object in use."""
    return _guarded(method, writing=True, undoes=True)


def reads(method: Method) -> Method:
    """Mark a method that reads what changes: many threads at a time, and none that writes."""
    return _guarded(method)


def reads_whole(method: Method) -> Method:
    """Mark a method that saves the whole state: `reads`, and not within an update of the object."""
    return _guarded(method, whole=True)


def _guarded(
    method: Method, writing: bool = False, whole: bool = False, undoes: bool = False
) -> Method:
    @wraps(method)
    def guarded(self: Any, *given: Any, **named: Any) -> Any:
        writers, readers = _ACCESS.get(id(self)) or _entry(self)
        me = get_ident()
        if me in writers:  # within an update of its own, which stays the first writer
            if whole:
                raise RuntimeError(f"this {type(self).__name__} {UPDATING}")
            return method(self, *given, **named)
        # Before a writer can see this thread, and a reader of a snapshot one that will be refused.
        if (writers and not writing) or (writing and FROZEN in readers):
            raise _refusal(self)
        entered = writers if writing else readers
        try:
            entered.append(me)  # in here: an interrupt may come right after it
            if writing:
                refused = writers[0] != me or (readers and readers.count(me) != len(readers))
            else:
                refused = writers and writers[:1] not in ([], [me])
            if refused:
                raise _refusal(self)
            return method(self, *given, **named)
        except BaseException as error:
            interrupted = writing and not isinstance(error, Exception)
            if interrupted and not undoes and writers[:1] == [me]:
                writers[0] = HALF_WRITTEN
            raise
        finally:
            if me in entered:  # not where an interrupt came before, or left the write unfinished
                entered.remove(me)

    return guarded  # type: ignore[return-value]


def _entry(owner: Any) -> _Access:
    finalize(owner, _ACCESS.pop, id(owner), None).atexit = False
    return _ACCESS.setdefault(id(owner), _Access([], []))


def half_written(owner: Any, settle: Callable[..., bool] = bool, *given: Any) -> None:
    """Mark an object, in a write that was interrupted, as half written; not if `settle` can undo or complete it."""
    writers = _ACCESS[id(owner)].writers
    writers.insert(0, HALF_WRITTEN)  # first: another interrupt may come
    if settle(*given):
        writers.remove(HALF_WRITTEN)


def is_half_written(owner: Any) -> bool:
    """Whether an interrupt or a fork left an object half written."""
    access = _ACCESS.get(id(owner))
    return access is not None and HALF_WRITTEN in access.writers


def not_undone(change: Method) -> Method:
    """Mark a part of a write that leaves its object half written where it is interrupted."""

    @wraps(change)
    def changing(self: Any, *given: Any) -> Any:
        try:
            return change(self, *given)
        except BaseException as error:
            if not isinstance(error, Exception):
                half_written(self)
            raise

    return changing  # type: ignore[return-value]


class Guarded(Constructed):
    """A class that can be saved, and whose copies are reads too; a write during pickling goes unnoticed."""

    def to_bytes(self, **given: Any) -> bytes:
        """Return what `save`, with these arguments, writes to a file."""
        place = InMemory()
        cast(Any, self).save(place, **given)
        return place.content

    @classmethod
    def from_bytes(cls, content: bytes, **given: Any) -> Self:
        """Return what `load`, with these arguments, reads from a file of this content, with the same checks."""
        return cast(Any, cls).load(InMemory(content), **given)

    def snapshot(self) -> Self:
        """Return a frozen copy of the state at this moment, which any number of threads may read.

        What would change it raises RuntimeError; `copy.deepcopy` of a snapshot can learn again.
        """
        shared = getattr(self, "domain", None)  # as copies of learners share their set
        return copy.deepcopy(self, {FROZEN: True, id(shared): shared})

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self._frozen(memo) if FROZEN in memo else self._copied(memo)

    @reads_whole
    def _frozen(self, memo: dict[int, Any]) -> Any:
        copied = self._copied(memo)
        _entry(copied).readers.append(FROZEN)
        return copied

    @reads
    def _copied(self, memo: dict[int, Any]) -> Any:
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


def _refusal(owner: Any) -> RuntimeError:
    name = type(owner).__name__
    if FROZEN in _ACCESS[id(owner)].readers:
        return RuntimeError(
            f"this {name} is a snapshot, which can only be read; what it was taken from learns on, and so "
            "does a copy.deepcopy of the snapshot"
        )
    if is_half_written(owner):
        return RuntimeError(
            f"this {name} is half updated: an update was interrupted, or in progress in another thread "
            "when this process was forked; load it from a file or make a new one"
        )
    return RuntimeError(
        f"this {name} is at work in another thread; give each thread its own, or let them take turns"
    )


def _after_fork_in_child() -> None:
    """Keep the thread that forked: reads of others have ended, their writes never will."""
    me = get_ident()
    for access in list(_ACCESS.values()):
        access.readers[:] = [reader for reader in access.readers if reader in (me, FROZEN)]
        others = access.writers and access.writers[0] != me
        access.writers[:] = [HALF_WRITTEN] if others else [w for w in access.writers if w == me]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_after_fork_in_child)
