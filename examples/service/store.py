"""What the service knows, and its log: what was acknowledged is not lost, and nothing is learned twice.

A folder holds a file, `state`, and parts of a log, `log-00000001` and so on. A line is a group of records that were
written together: a checksum and JSON. The state names the first part that is not in it; those before are removed.
"""

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


class Event(msgspec.Struct, tag="event", forbid_unknown_fields=True):
    """A user took an item; `id` tells the event from all others."""

    id: Id
    user: Id
    item: Id
    weight: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 1.0


class Erasure(msgspec.Struct, tag="erasure"):
    """All that is stored of a user is to be removed."""

    user: Id


def mark(record):
    """Return 64 bits in the place of the id of an event, so that no name is kept."""
    return int.from_bytes(blake2b(record.id.encode(), digest_size=8).digest(), "little")


class Store:
    """A model, the ids of the latest events, and the log of what changes them."""

    def __init__(self, folder, most_users, most_ids):
        self.folder, self.most_users = Path(folder), most_users
        self.folder.mkdir(parents=True, exist_ok=True)
        self.locked = open(self.folder / "lock", "ab")
        if os.name == "posix" and not lock(self.locked):
            raise ValueError(f"another process uses {folder}: stop it, or set another SERVE_FOLDER")
        self.model, self.log, self.part, self.end = Recommender(), None, 1, 0
        self.users, self.ids = OrderedDict(), deque(maxlen=most_ids)  # the latest ones last
        if (self.folder / "state").exists():
            _, settings, arrays = read_archive(self.folder / "state", kind="Service")
            self.part, self.model = settings["part"], dw.from_bytes(arrays["model"].tobytes())
            names = self.model.users_
            self.users.update((names[place], None) for place in arrays["users"].tolist())
            self.ids.extend(arrays["ids"].tolist())
        self.items, self.known = set(self.model.items_), set(self.ids)
        parts = [number for number in self._parts() if number >= self.part]
        for number in parts:
            if number != self.part + parts.index(number):
                raise ValueError(f"the log lacks a part before {self._path(number)}: put it back")
            self._replay(self._path(number), last=number == parts[-1])
        self.begin(max(parts, default=self.part))

    def _path(self, number):
        return self.folder / f"log-{number:08}"

    def _parts(self):
        return sorted(int(path.name[4:]) for path in self.folder.glob("log-????????"))

    def _replay(self, path, last):
        """Learn what was logged, and cut a last line that was not written to its end."""
        with open(path, "r+b") as file:
            while line := file.readline():
                if line == self._line(line[9:-1]):
                    for record in msgspec.json.decode(line[9:-1], type=list[Event | Erasure]):
                        self.learn(record)
                elif last and not file.read(1):
                    file.truncate(file.tell() - len(line))
                else:
                    raise ValueError(
                        f"{path} is damaged before byte {file.tell()}: put its folder back from a backup, "
                        "or remove the line that ends there, whose events are lost then"
                    )

    def _line(self, content):
        return b"%08x %b\n" % (crc32(content), content)

    def fresh(self, records, group):
        """Return records less the events that are known or in a group, to which the others are added."""
        new = []
        for record in records:
            if isinstance(record, Event):
                if (number := mark(record)) in self.known or number in group:
                    continue
                group.add(number)
            new.append(record)
        return new

    def append(self, records):
        """Write records to the disk; where that fails, the next call removes what was written."""
        line = left = self._line(msgspec.json.encode(records))
        os.ftruncate(self.log, self.end)
        while left:
            left = left[os.write(self.log, left) :]
        os.fsync(self.log)
        self.end += len(line)

    def learn(self, record):
        """Learn a record; where there are too many users, the one not heard of for longest goes."""
        if isinstance(record, Erasure):
            return self._forget([record.user] if record.user in self.users else [])
        self.model.partial_fit([(record.user, record.item)], weights=[record.weight])
        self.items.add(record.item)
        self.users[record.user] = None
        self.users.move_to_end(record.user)
        if len(self.ids) == self.ids.maxlen:
            self.known.discard(self.ids[0])
        self.ids.append(mark(record))
        self.known.add(self.ids[-1])
        return self._forget(islice(self.users, max(0, len(self.users) - self.most_users)))

    def _forget(self, users):
        for user in list(users):
            del self.users[user]
            self.model.forget(user)

    def begin(self, number):
        """Begin a part of the log, or go on with it."""
        if self.log is not None:
            os.ftruncate(self.log, self.end)
        log = os.open(self._path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if self.log is not None:
            os.close(self.log)
        self.log = log
        self.part, self.end = number, os.fstat(self.log).st_size
        self._sync_folder()

    def frozen(self):
        """Return all that `save` needs, as it is now."""
        return self.part, self.model.snapshot(), list(self.users), list(self.ids)

    def save(self, part, model, users, ids):
        """Write the state before a part of the log, then remove the parts before it."""
        place = {name: number for number, name in enumerate(model.users_)}
        arrays = {
            "model": np.frombuffer(model.to_bytes(), np.uint8),
            "users": np.array([place[name] for name in users], np.int64),
            "ids": np.array(ids, np.uint64),
        }
        write_archive(self.folder / "state", "Service", {"part": part}, arrays)
        self._sync_folder()
        for number in self._parts():
            if number < part:
                self._path(number).unlink()
        self._sync_folder()

    def _sync_folder(self):
        if os.name == "posix":
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
