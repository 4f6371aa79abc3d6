"""`Keyed` on a Dask cluster: keys are hashed to shards, each an actor with its own file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, Self

from distributed.protocol.serialize import deserialize_bytes, serialize_bytes

from driftwolfe import keyed
from driftwolfe.keyed import Key
from driftwolfe.points import checks

#: How often a shard is started again, one time after the other, before that is an error.
_ATTEMPTS = 20
#: Seconds between looks whether the worker that is to answer is still there.
_PATIENCE = 5.0
#: What Dask raises where a worker has died; shards hand on their own errors as answers.
_LOST = (Exception, asyncio.CancelledError)


class Shard:
    """What a worker holds: the models of some keys."""

    models: keyed.Keyed

    def ask(self, method: str, *given: Any) -> tuple[Any, Exception | None]:
        """Ask this shard or its models; return the answer or the error: what Dask raises is about the worker."""
        try:
            value = getattr(self if hasattr(type(self), method) else self.models, method)
            return value(*given) if callable(value) else value, None
        except Exception as error:
            return None, error

    def open(
        self, name: str, folder: Path, factory: Callable[[], Any], most: int, sent: list[bytes]
    ) -> None:
        """Take the file over from whoever had it, and learn what it does not hold yet."""
        for other in folder.glob("shard * of *.sqlite"):
            if other.stem.partition(" of ")[2] != name.partition(" of ")[2]:
                raise ValueError(
                    f"{folder} has files of another number of shards ({other.name}); give that number"
                )
        path, owner = folder / f"{name}.sqlite", uuid.uuid4().hex
        self.models = keyed.Keyed(factory, path, most, owner=owner)
        for batch in sent:
            self.learn(batch)

    def learn(self, events: bytes) -> dict[int, str]:
        """Learn events `(key, offset, ...)`; return what was wrong with those refused, by offset."""
        refused = {}
        for key, offset, *event in deserialize_bytes(events):
            try:
                self.models.learn(key, *event, offset=offset)
            except (OSError, keyed.NotOwnerError):
                raise
            except Exception as error:
                refused[offset] = f"{type(error).__name__}: {error}"
        return refused

    def predict(self, questions: bytes) -> list[Any]:
        """Return the predictions for questions `(key, ...)`."""
        return [self.models.predict(key, *given) for key, *given in deserialize_bytes(questions)]

    def forget(self, key: Key) -> None:
        """Remove the model of a key, if it is still there."""
        if key in self.models:
            self.models.forget(key)


class Keyed:
    """`driftwolfe.Keyed` on the workers of a Dask cluster: keys are hashed to shards, each with its own file.

    A shard is an actor on one worker. When a worker dies, its shards start again elsewhere from their files,
    and are sent again what came after their latest transaction; they skip what they know. So every model is
    bit-identical to that of one process. One object at a time has the folder: a newer one takes the files over,
    and the older one is refused. What this process has not committed when it dies itself, the source sends again.

    Parameters
    ----------
    client
        A `distributed.Client`.
    factory
        Makes the model of a new key, on a worker.
    folder
        Where the files are: all workers see it under this path.
    shards
        The number of files; several per worker, so that others can share those of one that dies.
    most
        The number of models that may be in memory, in all shards together.
    every
        The number of events between two transactions, and so of those that this process keeps to send again.

    Examples
    --------
    >>> import tempfile
    >>> from distributed import Client
    >>> from driftwolfe.distributed import Keyed
    >>> from driftwolfe.estimators import RiverTraceNormRegressor
    >>> events = [("Bern", {"size": 1.0}, 2.0), ("Rome", {"size": 1.0}, 5.0), ("Oslo", {"size": 2.0}, None)]
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     with Keyed(client, RiverTraceNormRegressor, tempfile.mkdtemp(), shards=2) as shops:
    ...         refused = shops.learn_many(events, offset=0)
    ...         sorted(shops.keys()), shops.offset, [*refused]
    (['Bern', 'Rome'], 2, [2])
    """

    def __init__(
        self,
        client: Any,
        factory: Callable[[], Any],
        folder: str | os.PathLike[str],
        shards: int = 16,
        most: int = 10_000,
        every: int = 10_000,
    ) -> None:
        self._client, self._folder = client, Path(folder).absolute()
        self.shards, self.every = checks.count(shards, "shards"), checks.count(every, "every")
        most = max(1, checks.count(most, "most") // self.shards)
        self._given = self._folder, factory, most
        self._actors: dict[int, Any] = {}  # their futures
        self._sent: list[list[bytes]] = [[] for _ in range(self.shards)]  # since the last commit
        self._offset, self._learned = -1, 0
        self._offset = min(self._ask_all("offset"))

    def learn_many(self, events: Iterable[tuple[Any, ...]], offset: int) -> dict[int, str]:
        """Learn events `(key, ...)`; return what was wrong with those that models refused, by offset.

        `offset` is that of the first; each has the next one. Those at or below `offset` of this object are
        skipped. Of an event whose worker dies meanwhile it may not be said that it was refused.
        """
        numbered = enumerate(events, checks.count(offset, "offset", 0))
        given = [(keyed.checked_key(key), place, *event) for place, (key, *event) in numbered]
        new = [event for event in given if event[1] > self._offset]
        batches = self._batches(new)
        try:
            answers = self._ask({number: ("learn", batch) for number, batch in batches.items()})
        finally:  # where a shard could not, the others have learned
            for number, batch in batches.items():
                self._sent[number].append(batch)
        if new:
            self._offset, self._learned = new[-1][1], self._learned + len(new)
        if self._learned >= self.every:
            self.commit()
        return {place: why for refused in answers.values() for place, why in refused.items()}

    def predict_many(self, questions: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return what the models predict for questions `(key, ...)`, in their order."""
        asked = [(keyed.checked_key(key), *given) for key, *given in questions]
        batches = self._batches(asked).items()
        answers = self._ask({number: ("predict", batch) for number, batch in batches})
        rest = {number: iter(answer) for number, answer in answers.items()}
        return [next(rest[self._shard(key)]) for key, *_ in asked]

    @property
    def offset(self) -> int:
        """The offset of the latest event learned, -1 before the first: the source goes on after it."""
        return self._offset

    def keys(self) -> list[Key]:
        """Return all keys, shard by shard."""
        return [*chain.from_iterable(self._ask_all("keys"))]

    def __getitem__(self, key: Key) -> Any:
        """Return a copy of the model of a key."""
        return self._ask_one(key, "__getitem__")

    def forget(self, key: Key) -> None:
        """Remove the model of a key from memory and from its file."""
        if not self._ask_one(key, "__contains__"):
            raise KeyError(f"there is no model of {key!r:.80}")
        self._ask_one(key, "forget")

    def __len__(self) -> int:
        return sum(self._ask_all("__len__"))

    def commit(self) -> None:
        """Let all shards write what is new, each in a transaction, with the offset."""
        self._ask_all("commit", None if self._offset < 0 else self._offset)
        self._sent = [[] for _ in range(self.shards)]
        self._learned = 0

    def close(self) -> None:
        """Commit, and let the workers close the files."""
        if self._actors:
            self.commit()
            self._round(dict.fromkeys(self._actors, ("close",)))
            self._actors = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _shard(self, key: Key) -> int:
        """The number of the shard of a key, the same on each machine."""
        text = f"{type(key).__name__} {key}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % self.shards

    def _batches(self, given: Iterable[Any]) -> dict[int, bytes]:
        """What each shard is sent of `(key, ...)`, as bytes: what Dask cannot send is an error here."""
        batches: dict[int, list[Any]] = {}
        for each in given:
            batches.setdefault(self._shard(each[0]), []).append(each)
        return {
            number: serialize_bytes(batch, on_error="raise") for number, batch in batches.items()
        }

    def _ask_one(self, key: Key, method: str) -> Any:
        known = keyed.checked_key(key)
        number = self._shard(known)
        return self._ask({number: (method, known)})[number]

    def _ask_all(self, *asked: Any) -> Collection[Any]:
        """Ask every shard the same; return their answers."""
        return self._ask(dict.fromkeys(range(self.shards), asked)).values()

    def _ask(self, requests: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask shards, each on its worker; start those again whose worker has died, and repeat."""
        answers: dict[int, Any] = {}
        for _ in range(_ATTEMPTS):
            left = {number: asked for number, asked in requests.items() if number not in answers}
            if not left:
                return {number: answers[number] for number in requests}
            self._start([number for number in left if number not in self._actors])
            answers |= self._round(left)
        raise RuntimeError(
            f"the workers of a shard in {self._folder} died {_ATTEMPTS} times; is there enough memory?"
        )

    def _start(self, numbers: Collection[int]) -> None:
        """Start shards, and send them again what came after the latest commit."""
        requests = {}
        for number in numbers:
            name = f"shard {number:04d} of {self.shards:04d}"
            key = f"{name}, {uuid.uuid4().hex}"
            self._actors[number] = self._client.submit(Shard, actor=True, key=key)
            requests[number] = "open", name, *self._given, self._sent[number]
        try:
            self._round(requests)
        except Exception:
            for number in numbers:
                self._actors.pop(number, None)
            raise

    def _round(self, requests: dict[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Ask shards at the same time; return the answers, and let go of shards whose worker has died."""
        calls, answers = {}, {}
        for number, asked in requests.items():
            with suppress(*_LOST):
                calls[number] = self._actors[number].result().ask(*asked)
        for number, call in calls.items():
            with suppress(*_LOST):
                answers[number] = self._answer(number, call)
        for number in requests.keys() - answers.keys():
            self._actors.pop(number, None)
        for _, error in answers.values():
            if error is not None:
                raise error
        return {number: value for number, (value, _) in answers.items()}

    def _answer(self, number: int, call: Any) -> tuple[Any, Exception | None]:
        """Wait for an answer as long as there is a worker that may give it."""
        while True:
            try:
                return call.result(timeout=_PATIENCE)
            except TimeoutError:
                if self._actors[number].status != "finished":
                    raise
