"""What the service knows, and its log: what was acknowledged is not lost, and nothing is learned twice."""

import asyncio
import os
from array import array
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated
from zlib import crc32

import msgspec
import numpy as np

from driftwolfe.estimators import Recommender
from driftwolfe.storage import lock, read_archive, write_archive

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=128, pattern=r"\A[^\x00-\x1f\x7f]+\Z")]
LINE = b"%08x %b\n"  # of the log: a checksum, and events that were written together


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A user took an item; no other event has this id. In the log, one without an item erases the user."""

    id: Id
    user: Id
    item: Id
    weight: Annotated[float, msgspec.Meta(ge=0.0, le=1e6)] = 1.0


class Store:
    """A model, users by when last heard of, the log, and a ring of marks of ids (64 bits), oldest at `place`."""

    def __init__(self, folder, most_users, most_ids, every):
        self.folder, self.most_users, self.every = Path(folder), most_users, every
        self.path = lambda number, kind="log": self.folder / f"{kind}-{number:08}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.open_folder, self.log, self.part = os.open(folder, os.O_RDONLY), None, 1
        if not lock(self.open_folder):
            raise ValueError(f"another process uses {folder}: stop it, or take another folder")
        self.waiting, self.saved, self.since, self.task, self.place = [], 0, 0, None, 0
        self.writing, self.saving = asyncio.Lock(), asyncio.Lock()
        self.model, self.users, self.marks = Recommender(), {}, array("Q", bytes(8 * most_ids))
        if (self.folder / "state").exists():
            _, settings, held = read_archive(self.folder / "state", kind="Service")
            self.part = settings["part"]  # of the log, which comes after the model
            self.model = Recommender.load(self.path(self.part, "model"))
            self.users = dict.fromkeys(msgspec.json.decode(held["users"].tobytes()))
            self.marks = (self.marks + array("Q", held["marks"].tobytes()))[-most_ids:]
        self.items, self.known = set(self.model.items_), set(self.marks)
        parts = sorted(p for p in self.folder.glob("log-*") if p >= self.path(self.part))
        if parts != [self.path(self.part + number) for number in range(len(parts))]:
            raise ValueError(f"the log lacks a part from {self.part} on: put it back into {folder}")
        for path in parts:
            self.replay(path, last=path == parts[-1])
        self.begin(self.part + max(0, len(parts) - 1))

    def replay(self, path, last):
        """Learn what was logged; cut a last line that was not written to its end."""
        with path.open("r+b") as file:
            while line := file.readline():
                if line == LINE % (crc32(content := line[9:-1]), content):
                    self.learn([Event(*values) for values in msgspec.json.decode(content)])
                elif last and not file.read(1):
                    file.truncate(file.tell() - len(line))
                else:
                    raise ValueError(f"{path} is broken up to byte {file.tell()}: restore a backup")

    def learn(self, events):
        """Learn events that are not known; of too many users, those not heard of for longest go."""
        new, before = [], self.since
        for event in events:
            mark = int.from_bytes(blake2b(event.id.encode(), digest_size=8).digest(), "little")
            if mark in self.known:
                continue
            self.known.discard(self.marks[self.place])
            self.known.add(mark)
            self.marks[self.place], self.place = mark, (self.place + 1) % len(self.marks)
            self.since += 1
            if event.item:
                new.append(event)
                self.items.add(event.item)
                self.users.pop(event.user, None)
                self.users[event.user] = None
            if not event.item or len(self.users) > self.most_users:  # several: each call takes time
                new = self.fit(new)
                oldest = islice(self.users, 1 + self.most_users // 1000)
                for gone in list(oldest) if event.item else [event.user]:
                    if self.users.pop(gone, "") is None:
                        self.model.forget(gone)
        self.fit(new)
        return self.since - before

    def fit(self, events):
        if pairs := [(event.user, event.item) for event in events]:
            self.model.partial_fit(pairs, weights=[event.weight for event in events])
        return []

    async def add(self, events):
        """Return how many events are new, once they and all that wait with them are on the disk and learned."""
        self.waiting.append(own := [events, None])
        async with self.writing:
            if own[1] is None:  # the first that waits writes for all
                group = self.waiting.copy()
                try:
                    await asyncio.to_thread(self.append, [e for part, _ in group for e in part])
                    del self.waiting[: len(group)]
                    for each in group:
                        for first in range(0, len(each[0]), 50):
                            each[1] = (each[1] or 0) + self.learn(each[0][first : first + 50])
                            await asyncio.sleep(0)  # others get a turn
                except OSError:  # of the disk
                    del self.waiting[0]
                    raise
                except BaseException:
                    os._exit(1)  # learned in part: the next start learns all of it from the log
        if self.since >= self.every and not self.saving.locked():
            self.task = asyncio.create_task(self.checkpoint())
        return own[1]

    def append(self, events):
        """Write events to the disk; what a call that failed has written goes with the next one."""
        content = msgspec.json.encode([msgspec.structs.astuple(event) for event in events])
        line = LINE % (crc32(content), content)
        os.ftruncate(self.log, self.end)
        if os.write(self.log, line) < len(line):
            raise OSError("the disk is full: nothing was learned")
        os.fsync(self.log)
        self.end += len(line)

    async def checkpoint(self):
        """Save a state that is later than this call, and remove the log before it."""
        asked = self.part
        async with self.saving:
            if self.saved <= asked:
                async with self.writing:
                    await asyncio.to_thread(self.begin, self.part + 1)
                    self.since = 0
                    marks = self.marks[self.place :] + self.marks[: self.place]
                    state = self.model.snapshot(), list(self.users), marks
                await asyncio.to_thread(self.save, *state)

    def begin(self, number):
        """Begin a part of the log, or go on with it."""
        log = os.open(self.path(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.fsync(self.open_folder)
        if self.log is not None:
            os.ftruncate(self.log, self.end)
            os.close(self.log)
        self.log, self.part, self.end = log, number, os.fstat(log).st_size

    def save(self, model, users, marks):  # the state before this part of the log
        model.save(self.path(self.part, "model"))
        os.fsync(self.open_folder)
        held = {"users": np.frombuffer(msgspec.json.encode(users), np.uint8), "marks": marks}
        write_archive(self.folder / "state", "Service", {"part": self.part}, held)
        os.fsync(self.open_folder)
        for path in [*self.folder.glob("log-*"), *self.folder.glob("model-*")]:
            if int(path.name[-8:]) < self.part:
                path.unlink()
        os.fsync(self.open_folder)
        self.saved = self.part
