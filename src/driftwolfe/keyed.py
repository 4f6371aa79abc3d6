"""`Keyed`: one model per key, the least recently used in a file."""

from __future__ import annotations

import copy
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any, Self

from driftwolfe import storage
from driftwolfe.points import checks
from driftwolfe.points.access import is_half_written, reads, writes
from driftwolfe.storage import PathLike

Key = str | int
Model = Any

#: What tells our files from other databases, and the version of their tables.
_APPLICATION, _VERSION = int.from_bytes(b"dwKy"), 1
_TABLES = (
    "CREATE TABLE IF NOT EXISTS models (key PRIMARY KEY NOT NULL, content BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY NOT NULL, value)",
    f"PRAGMA application_id = {_APPLICATION}",
)
#: The least recently used leave memory together, this share of `most`: with them, all that is new is written.
_SHARE = 4
_LARGEST = 1 << 63  # integers of SQLite are smaller


class NotOwnerError(RuntimeError):
    """Someone else has opened the file of a `Keyed` that has an owner."""


class Keyed:
    """One model per key (shop, sensor, user): `most` of them in memory, all in one SQLite file.

    All that was learned is written in one transaction, with the offset of the latest event: when the models used
    least recently leave memory, after `every` events, in `commit` and in `close`. After a crash the file is as
    after the latest transaction, and `offset` says where the source goes on; events at or below it are skipped.
    So none is lost, and none is learned twice.

    One process has the file open at a time. An event that a model refuses changes nothing.

    Parameters
    ----------
    factory
        Makes the model of a new key, always of one class and the same settings. It has `learn_one` and
        `predict_one`, as in river, or `partial_fit` and `predict`; and `to_bytes` and, for the class,
        `from_bytes`, as all models of this library.
    store
        The path of the file.
    most
        The number of models that may be in memory.
    prior
        A model like those of `factory` that learns all events; a new key starts with a copy of it.
    every
        The number of events between two transactions, at most.
    owner
        A text, for files that several processes may want: who opens the file last owns it, and the one before
        is refused when it writes. Without it, nobody else can open the file.

    Examples
    --------
    >>> import tempfile, driftwolfe as dw
    >>> from driftwolfe.estimators import RiverTraceNormRegressor
    >>> path = tempfile.mkdtemp() + "/shops.sqlite"
    >>> with dw.Keyed(RiverTraceNormRegressor, path) as shops:
    ...     for offset, (shop, x, y) in enumerate([("Bern", 1.0, 2.0), ("Rome", 1.0, 5.0)]):
    ...         _ = shops.learn(shop, {"size": x}, y, offset=offset)
    >>> with dw.Keyed(RiverTraceNormRegressor, path) as shops:
    ...     shops.learn("Rome", {"size": 1.0}, 5.0, offset=1)  # sent again
    ...     shops.keys(), shops.offset
    False
    (['Bern', 'Rome'], 1)
    """

    def __init__(
        self,
        factory: Callable[[], Model],
        store: PathLike,
        most: int = 10_000,
        prior: Model = None,
        *,
        every: int = 10_000,
        owner: str | None = None,
    ) -> None:
        if not callable(factory):
            raise TypeError(f"factory must be a function that makes a model, got {factory!r:.80}")
        self.most, self.every = checks.count(most, "most"), checks.count(every, "every")
        first = factory()
        (self._learn, self._predict), self._kind = _verbs(first), type(first)
        if prior is not None and type(prior) is not type(first):
            raise TypeError(f"prior must be a {type(first).__name__}, got {prior!r:.80}")
        self.factory, self.prior = factory, prior
        self._models: dict[Key, Model] = {}  # the most recently used last
        self._changed: dict[Key, None] = {}  # since the last transaction, in order of first change
        self._learned = 0  # events since then
        self._file = _File(Path(store), _described(first), owner)
        try:
            offset = self._file.fact("offset")
            self._offset = -1 if offset is None else offset
            self._count = self._file.value("SELECT count(*) FROM models")
            if (content := self._file.fact("prior")) is not None:
                self.prior = self._made(content)
                if prior is None:
                    raise ValueError(f"{store} has a prior, which takes the place of one; give one")
        except BaseException:
            self._file.close()
            raise

    # -- events ------------------------------------------------------------------------------------

    @writes
    def learn(self, key: Key, /, *event: Any, offset: int | None = None, **named: Any) -> bool:
        """Let the model of a key learn an event: the arguments of its `learn_one` or `partial_fit`.

        Return False, and do nothing, if its offset in the stream is not above `offset`. What raises
        an error changes nothing.
        """
        if offset is not None:
            offset = checks.count(offset, "offset", 0)
            if offset <= self._offset:
                return False
        key = checked_key(key)
        if self._learned >= self.every:
            self.commit()
        model = self._find(key)
        new = model is None
        if new:
            self._make_room()
            model = self.factory() if self.prior is None else copy.deepcopy(self.prior)
        if self.prior is not None:  # first: it knows more, so it refuses whatever a model refuses
            getattr(self.prior, self._learn)(*event, **named)
        getattr(model, self._learn)(*event, **named)
        if new:
            self._models[key] = model
            self._count += 1
        self._changed[key] = None
        self._learned += 1
        if offset is not None:
            self._offset = offset
        return True

    def learn_many(self, events: Iterable[tuple[Any, ...]], offset: int | None = None) -> int:
        """Learn events `(key, ...)`, one after the other; return how many were not skipped.

        `offset` is that of the first; each has the next one. If one raises an error, those before it have been
        learned, and `offset` is that of the last of these.
        """
        first = None if offset is None else checks.count(offset, "offset", 0)
        return sum(
            self.learn(key, *event, offset=None if first is None else first + number)
            for number, (key, *event) in enumerate(events)
        )

    @writes
    def predict(self, key: Key, /, *given: Any, **named: Any) -> Any:
        """Return what the model of a key predicts: by its `predict_one`, or `predict`.

        For a key without a model the prior answers, or a new model where there is none.
        """
        model = self._find(checked_key(key))
        if model is None:
            model = self.factory() if self.prior is None else self.prior
        return getattr(model, self._predict)(*given, **named)

    # -- keys --------------------------------------------------------------------------------------

    @property
    def offset(self) -> int:
        """The offset of the latest event learned, -1 before the first."""
        return self._offset

    @reads
    def keys(self) -> list[Key]:
        """Return all keys, in order of appearance."""
        return [*(dict.fromkeys(self._file.keys()) | self._changed)]

    @writes
    def __getitem__(self, key: Key) -> Model:
        """Return a copy of the model of a key."""
        model = self._find(checked_key(key))
        if model is None:
            raise KeyError(f"there is no model of {key!r:.80}")
        return self._made(self._content(model))

    @writes
    def forget(self, key: Key) -> None:
        """Remove the model of a key from memory and, overwritten with zeros, from the file.

        The prior has learned its events, and keeps what it learned.
        """
        key = checked_key(key)
        if key not in self:
            raise KeyError(f"there is no model of {key!r:.80}")
        self._commit(key)
        self._models.pop(key, None)
        self._count -= 1

    @reads
    def __contains__(self, key: Key) -> bool:
        known = checked_key(key)
        query = "SELECT 1 FROM models WHERE key = ?"
        return known in self._models or self._file.value(query, known) is not None

    def __len__(self) -> int:
        return self._count

    # -- the file ----------------------------------------------------------------------------------

    @writes
    def commit(self, offset: int | None = None) -> None:
        """Write all that is new, and the offset, in one transaction: it survives what comes after.

        With `offset`, that of an event of which no model is to learn, the source goes on after that one.
        """
        if offset is not None and (place := checks.count(offset, "offset", 0)) > self._offset:
            self._offset, self._learned = place, self._learned + 1
        if self._learned:
            self._commit()

    def close(self) -> None:
        """Commit, and close the file; what an interrupt (Ctrl-C) left half learned is not written."""
        try:
            if self._file.is_open and not is_half_written(self):
                self.commit()
        finally:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _find(self, key: Key) -> Model | None:
        """The model of a key, now the most recently used; None for a new key."""
        model = self._models.pop(key, None)
        if model is None:
            content = self._file.value("SELECT content FROM models WHERE key = ?", key)
            if content is None:
                return None
            model = self._made(content)
            self._make_room()
        self._models[key] = model
        return model

    def _make_room(self) -> None:
        if len(self._models) >= self.most:
            self.commit()
            for key in [*self._models][: max(1, self.most // _SHARE)]:
                del self._models[key]

    def _commit(self, forgotten: Key | None = None) -> None:
        changed = (key for key in self._changed if key != forgotten)
        models = ((key, self._content(self._models[key])) for key in changed)
        facts: dict[str, Any] = {"offset": self._offset}
        if self.prior is not None and self._changed:
            facts["prior"] = self._content(self.prior)
        self._file.write(models, forgotten, **facts)
        self._changed, self._learned = {}, 0

    def _content(self, model: Model) -> bytes:
        return zlib.compress(model.to_bytes(), 1)

    def _made(self, content: bytes) -> Model:
        try:
            return self._kind.from_bytes(zlib.decompress(content))
        except (zlib.error, ValueError) as error:
            raise ValueError(f"{self._file.path} is damaged or too old: {error}") from error


class _File:
    """The SQLite file: contents of models by key, and facts, among them the offset."""

    def __init__(self, path: Path, described: str, owner: str | None) -> None:
        self.path, self.owner, self.is_open = path, owner, True
        with storage.explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._begin(described)
            except BaseException:
                self.close()
                raise

    def _begin(self, described: str) -> None:
        """Lock the file, make what is not there, and refuse what is not ours."""
        # Several owners may be on several machines, which share no memory: no write-ahead log.
        alone = self.owner is None
        self._db.execute(f"PRAGMA locking_mode = {'EXCLUSIVE' if alone else 'NORMAL'}")
        self._db.execute(f"PRAGMA busy_timeout = {1_000 if alone else 60_000}")
        ours = self.value("PRAGMA application_id") == _APPLICATION
        if not ours and self.value("SELECT count(*) FROM sqlite_schema"):
            raise ValueError(f"{self.path} is a database of something else; choose another path")
        self._db.execute(f"PRAGMA journal_mode = {'WAL' if alone else 'DELETE'}")
        self._db.execute("PRAGMA secure_delete = ON")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            for statement in _TABLES:
                self._db.execute(statement)
            if (held := self.fact("described")) not in (None, described):
                raise ValueError(
                    f"{self.path} is of another factory or version of driftwolfe: {held:.150}, not "
                    f"{described:.150}; give that, or another path"
                )
            self._set(described=described, owner=self.owner)

    def value(self, query: str, *given: Any) -> Any:
        """Return the first value that a query finds, None if there is none."""
        with self._explained():
            row = self._db.execute(query, given).fetchone()
        return row and row[0]

    def fact(self, name: str) -> Any:
        """Return a fact, None if it is not there."""
        return self.value("SELECT value FROM facts WHERE name = ?", name)

    def keys(self) -> list[Key]:
        """Return all keys in order of their first transaction."""
        with self._explained():
            return [key for (key,) in self._db.execute("SELECT key FROM models ORDER BY rowid")]

    def write(
        self, models: Iterable[tuple[Key, bytes]], forgotten: Key | None, **facts: Any
    ) -> None:
        """Write models and facts, and remove the model of one key, in one transaction."""
        with self._explained(), self._transaction():
            if self.fact("owner") != self.owner:
                raise NotOwnerError(f"{self.path} has a new owner, which goes on without this one")
            self._db.executemany(
                "INSERT INTO models VALUES (?, ?) "
                "ON CONFLICT (key) DO UPDATE SET content = excluded.content",
                models,
            )
            self._set(**facts)
            self._db.execute("DELETE FROM models WHERE key = ?", (forgotten,))
        if forgotten is not None:  # it is still in the log
            self.value("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self.is_open = False
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._db:  # which commits, or rolls back
            self._db.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into sentences that say what to do."""
        if not self.is_open:
            raise ValueError(f"{self.path} is closed; make a new Keyed of it")
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise BlockingIOError(
                    f"{self.path} is open in another process or Keyed; close that first"
                ) from error
            raise OSError(f"could not use {self.path}: {error}") from error
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} is no file of Keyed, or is damaged: {error}") from error

    def _set(self, **facts: Any) -> None:
        self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())


def _verbs(model: Model) -> tuple[str, str]:
    """The names of the methods that learn and predict."""
    name = type(model).__name__
    if not (hasattr(model, "to_bytes") and hasattr(model, "from_bytes")):
        raise TypeError(
            f"a {name} has no to_bytes and from_bytes, which write and read its state; extend its class by them"
        )
    for verbs in (("learn_one", "predict_one"), ("partial_fit", "predict")):
        if all(hasattr(model, verb) for verb in verbs):
            return verbs
    raise TypeError(f"a {name} has neither learn_one and predict_one, nor partial_fit and predict")


def _described(model: Model) -> str:
    """What all models of a factory have in common: their class, and the options of ours."""
    names = getattr(model, "OPTIONS", None) or getattr(model, "get_params", tuple)()
    options = ", ".join(f"{name}={getattr(model, name)!r}" for name in names)
    return f"version {_VERSION}, {type(model).__name__}({options})"


def checked_key(key: Any) -> Key:
    """Return a key as a plain text or whole number; raise an error for others."""
    if isinstance(key, str):
        key.encode()  # a UnicodeEncodeError says where the text is not valid
        return str(key)
    if isinstance(key, bool) or not hasattr(key, "__index__"):
        raise TypeError(f"a key must be a text or a whole number, got {key!r:.80}")
    if not -_LARGEST < (number := index(key)) < _LARGEST:
        raise ValueError(f"a key that is a number must lie within 64 bits, got {number:.3g}")
    return number
