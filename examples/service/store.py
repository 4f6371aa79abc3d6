"""What the service knows, and its log: what was acknowledged is not lost, and nothing is learned twice.

A folder holds a file, `state`, and parts of a log, `log-00000001` and so on. A line is a group of events that were
written together: a checksum and JSON. The state names the first part that is not in it; those before are removed.
"""

import errno
import os
from collections import OrderedDict, deque
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated
from zlib import crc32

import msgspec
import numpy as np

import driftwolfe as dw
from driftwolfe.estimators import Recommender
from driftwolfe.storage import lock, read_archive, write_archive

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Event(msgspec.Struct, forbid_unknown_fields=True):
    """A user took an item; no other event has this id. In the log, one without an item erases the user."""

    id: Id
    user: Id
    item: Id
    weight: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 1.0


def mark(event):
    """Return 64 bits that stand for the id of an event: what is kept of it has no names."""
    return int.from_bytes(blake2b(event.id.encode(), digest_size=8).digest(), "little")


def line_of(content):
    """Return a line of the log."""
    return b"%08x %b\n" % (crc32(content), content)


class Store:
    """A model, the ids of the latest events, and the log."""

    def __init__(self, folder, most_users, most_ids):
        self.folder, self.most_users = Path(folder), most_users
        self.folder.mkdir(parents=True, exist_ok=True)
        self.locked = (self.folder / "lock").open("ab")
        if not lock(self.locked):
            raise ValueError(f"another process uses {folder}: stop it, or take another folder")
        self.model, self.log, self.part, self.since = Recommender(), None, 1, 0
        self.users, self.ids = OrderedDict(), deque(maxlen=most_ids)  # the latest last
        if (self.folder / "state").exists():
            _, settings, arrays = read_archive(self.folder / "state", kind="Service")
            self.part, self.model = settings["part"], dw.from_bytes(arrays["model"].tobytes())
            names = self.model.users_
            self.users.update((names[place], None) for place in arrays["users"].tolist())
            self.ids.extend(arrays["ids"].tolist())
        self.items, self.known = set(self.model.items_), set(self.ids)
        parts = [number for number in self._parts() if number >= self.part]
        if parts and parts != list(range(self.part, parts[-1] + 1)):
            raise ValueError(f"the log lacks a part from {self.part} to {parts[-1]}: put it back")
        for number in parts:
            self._replay(self._path(number), last=number == parts[-1])
        self.begin(max(parts, default=self.part))

    def _path(self, number):
        return self.folder / f"log-{number:08}"

    def _parts(self):
        return sorted(int(path.name[4:]) for path in self.folder.glob("log-*"))

    def _replay(self, path, last):
        """Learn what was logged; cut a last line that was not written to its end."""
        with path.open("r+b") as file:
            while line := file.readline():
                if line == line_of(line[9:-1]):
                    for values in msgspec.json.decode(line[9:-1]):
                        self.learn(Event(*values))
                elif last and not file.read(1):
                    file.truncate(file.tell() - len(line))
                else:
                    told = (
                        f"{path} has a broken line up to byte {file.tell()}, and more after it: put"
                    )
                    raise ValueError(
                        f"{told} a backup back, or remove the line and lose its events"
                    )

    def fresh(self, events, others):
        """Return the events with ids that are neither known nor among others, and add theirs to the others."""
        new = []
        for event in events:
            if (number := mark(event)) not in self.known and number not in others:
                others.add(number)
                new.append(event)
        return new

    def append(self, events):
        """Write events to the disk; what a call that failed has written goes with the next one."""
        line = line_of(msgspec.json.encode([msgspec.structs.astuple(event) for event in events]))
        os.ftruncate(self.log, self.end)
        if os.write(self.log, line) < len(line):
            raise OSError(errno.ENOSPC, "the disk is full")
        os.fsync(self.log)
        self.end += len(line)

    def learn(self, event):
        """Learn an event; of too many users, the one not heard of for longest is forgotten."""
        gone = [event.user]
        if event.item:
            self.model.partial_fit([(event.user, event.item)], weights=[event.weight])
            self.items.add(event.item)
            self.users[event.user] = None
            self.users.move_to_end(event.user)
            gone = list(islice(self.users, max(0, len(self.users) - self.most_users)))
        for user in gone:
            if self.users.pop(user, "") is None:
                self.model.forget(user)
        if len(self.ids) == self.ids.maxlen:
            self.known.discard(self.ids[0])
        self.ids.append(mark(event))
        self.known.add(self.ids[-1])
        self.since += 1

    def begin(self, number):
        """Begin a part of the log, or go on with it; return the state of this moment, as `save` needs it."""
        log = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._synchronise()
        if self.log is not None:
            os.ftruncate(self.log, self.end)
            os.close(self.log)
        self.log, self.part, self.end, self.since = log, number, os.fstat(log).st_size, 0
        return number, self.model.snapshot(), list(self.users), list(self.ids)

    def save(self, part, model, users, ids):
        """Write the state before a part of the log, and remove the parts before it."""
        places = {name: place for place, name in enumerate(model.users_)}
        order = np.array([places[name] for name in users], np.int64)
        content = np.frombuffer(model.to_bytes(), np.uint8)
        arrays = {"model": content, "users": order, "ids": np.array(ids, np.uint64)}
        write_archive(self.folder / "state", "Service", {"part": part}, arrays)
        self._synchronise()
        for number in self._parts():
            if number < part:
                self._path(number).unlink()
        self._synchronise()

    def _synchronise(self):
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
