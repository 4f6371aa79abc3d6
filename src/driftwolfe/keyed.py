"""`Keyed`: one model per key, the least recently used in a file."""

from __future__ import annotations

import copy
import json
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

#: What tells our files from other databases (PRAGMA application_id), and the version of their tables.
_APPLICATION, _VERSION = int.from_bytes(b"dwKy"), 1
_TABLES = """
CREATE TABLE models (key PRIMARY KEY NOT NULL, content BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY NOT NULL, value NOT NULL);
"""
#: The least recently used leave memory together, this share of `most`: with them, all that is new is written.
_SHARE = 4
_LARGEST = 1 << 63  # integers of SQLite are smaller


class NotOwnerError(RuntimeError):
    """Someone else has opened the file of a `Keyed` that has an owner."""


class Keyed:
    """One model per key (shop, sensor, user): `most` of them in memory, all in one SQLite file.

    The models used least recently leave memory in groups. All that was learned since the last transaction is
    written in one, with the offset of the latest event: when a group leaves, after `every` events, in `commit`
    and in `close`. After a crash the file is as after the latest transaction, and `offset` says where the
    source goes on; events at or below it are skipped. So none is lost, and none is learned twice.

    One process has the file open at a time. An event that a model refuses changes nothing.

    Parameters
    ----------
    factory
        Makes the model of a new key. It has `learn_one` and `predict_one`, as in river, or `partial_fit` and
        `predict`; all are of one class and the same settings.
    store
        The path of the file.
    most
        The number of models that may be in memory.
    prior
        A model like those of `factory` that learns all events; a new key starts with a copy of it.
    every
        The number of events between two transactions, at most.
    to_bytes, from_bytes
        Functions that write and read a model that is not of this library. Ours have `to_bytes`, which never
        holds code; a pickle runs what is in it.
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
        to_bytes: Callable[[Model], bytes] | None = None,
        from_bytes: Callable[[bytes], Model] | None = None,
        owner: str | None = None,
    ) -> None:
        if not callable(factory):
            raise TypeError(
                f"factory must be a function or class without arguments that makes a model, "
                f"got {type(factory).__name__}"
            )
        self.factory, self.owner = factory, owner
        self.most, self.every = checks.count(most, "most"), checks.count(every, "every")
        first = factory()
        self._learn, self._predict = _verbs(first)
        self._write, self._read = _functions(first, to_bytes, from_bytes)
        if prior is not None and type(prior) is not type(first):
            raise TypeError(
                f"prior must be like the models of factory, a {type(first).__name__}, "
                f"got {type(prior).__name__}"
            )
        self._prior = prior
        self._models: dict[Key, Model] = {}  # the most recently used last
        self._changed: dict[Key, None] = {}  # since the last transaction, in order of first change
        self._unwritten, self._learned = False, 0  # whether the offset or a model is; events
        self._store = _Store(Path(store), _described(first, to_bytes), owner)
        try:
            self._offset, content = self._store.facts(prior is not None)
            if prior is not None and content is not None:
                self._prior = self._read(content)
            self._count = self._store.count()
        except BaseException:
            self._store.close()
            raise

    # -- events ------------------------------------------------------------------------------------

    @writes
    def learn(self, key: Key, /, *event: Any, offset: int | None = None, **named: Any) -> bool:
        """Let the model of a key learn an event: the arguments of its `learn_one` or `partial_fit`.

        Return False, and do nothing, if its offset in the stream is not above `offset`. What raises
        an error changes nothing.
        """
        if offset is not None:
            offset = _whole(offset, "offset")
            if offset <= self._offset:
                return False
        key = checked_key(key)
        if self._learned >= self.every:
            self.commit()
        model = self._find(key)
        new = model is None
        if new:
            self._make_room()
            model = self.factory() if self._prior is None else copy.deepcopy(self._prior)
        if self._prior is not None:  # first: it knows more, so it refuses whatever a model refuses
            getattr(self._prior, self._learn)(*event, **named)
        getattr(model, self._learn)(*event, **named)
        if new:
            self._models[key] = model
            self._count += 1
        self._changed[key] = None
        self._learned += 1
        if offset is not None:
            self._offset = offset
        self._unwritten = True
        return True

    def learn_many(self, events: Iterable[tuple[Any, ...]], offset: int | None = None) -> int:
        """Learn events `(key, ...)`, one after the other; return how many were not skipped.

        `offset` is that of the first; each has the next one. If one raises an error, those before it have been
        learned, and `offset` is that of the last of these.
        """
        learned = 0
        first = None if offset is None else _whole(offset, "offset")
        for number, (key, *event) in enumerate(events):
            place = None if first is None else first + number
            learned += self.learn(key, *event, offset=place)
        return learned

    @writes
    def predict(self, key: Key, /, *given: Any, **named: Any) -> Any:
        """Return what the model of a key predicts: by its `predict_one`, or `predict`.

        For a key without a model the prior answers, or a new model where there is none.
        """
        model = self._find(checked_key(key))
        if model is None:
            model = self.factory() if self._prior is None else self._prior
        return getattr(model, self._predict)(*given, **named)

    # -- keys --------------------------------------------------------------------------------------

    @property
    def offset(self) -> int:
        """The offset of the latest event learned, -1 before the first."""
        return self._offset

    @property
    def prior(self) -> Model:
        """The model that learns all events, or None."""
        return self._prior

    @reads
    def keys(self) -> list[Key]:
        """Return all keys, in order of appearance."""
        known = dict.fromkeys(self._store.keys())
        return [*(known | self._changed)]

    @writes
    def __getitem__(self, key: Key) -> Model:
        """Return a copy of the model of a key."""
        model = self._find(checked_key(key))
        if model is None:
            raise KeyError(f"there is no model of {key!r:.80}")
        return self._read(self._write(model))

    @writes
    def forget(self, key: Key) -> None:
        """Remove the model of a key from memory and, overwritten with zeros, from the file.

        The prior has learned its events, and keeps what it learned.
        """
        key = checked_key(key)
        if key not in self._models and not self._store.has(key):
            raise KeyError(f"there is no model of {key!r:.80}")
        self._commit(key)
        self._models.pop(key, None)
        self._count -= 1

    @reads
    def __contains__(self, key: object) -> bool:
        try:
            known = checked_key(key)
        except (TypeError, ValueError):
            return False
        return known in self._models or self._store.has(known)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys())

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        kind = self._store.described["kind"]
        return f"Keyed({kind}, keys={self._count}, offset={self._offset})"

    # -- the file ----------------------------------------------------------------------------------

    @writes
    def commit(self, offset: int | None = None) -> None:
        """Write all that is new, and the offset, in one transaction: it survives what comes after.

        With `offset`, that of an event of which no model is to learn, the source goes on after that one.
        """
        if offset is not None and (place := _whole(offset, "offset")) > self._offset:
            self._offset, self._unwritten = place, True
        if self._unwritten:
            self._commit()

    def close(self) -> None:
        """Commit, and close the file; what an interrupt (Ctrl-C) left half learned is not written."""
        try:
            if self._store.is_open and not is_half_written(self):
                self.commit()
        finally:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _find(self, key: Key) -> Model | None:
        """The model of a key, now the most recently used; None for a new key."""
        model = self._models.pop(key, None)
        if model is None:
            content = self._store.read(key)
            if content is None:
                return None
            model = self._read(content)
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
        models = ((key, self._write(self._models[key])) for key in changed)
        prior = None if self._prior is None else self._write(self._prior)
        self._store.write(models, self._offset, prior, forgotten)
        self._changed, self._unwritten, self._learned = {}, False, 0


class _Store:
    """The file: contents of models by key, and facts, among them the offset."""

    def __init__(self, path: Path, described: dict[str, Any], owner: str | None) -> None:
        self.path, self.described, self.owner = path, described, owner
        self.is_open = True
        with storage.explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with self._explained():
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            with self._explained():
                self._begin()
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Lock the file, make what is not there, and refuse what is not ours."""
        alone = self.owner is None
        # Several owners may be on several machines, which share no memory: no write-ahead log.
        self._db.execute(f"PRAGMA locking_mode = {'EXCLUSIVE' if alone else 'NORMAL'}")
        self._db.execute(f"PRAGMA busy_timeout = {1_000 if alone else 60_000}")
        application = self._value("PRAGMA application_id")
        if application != _APPLICATION and self._value("SELECT count(*) FROM sqlite_schema"):
            raise ValueError(f"{self.path} is a database of something else; choose another path")
        self._db.execute(f"PRAGMA journal_mode = {'WAL' if alone else 'DELETE'}")
        self._db.execute("PRAGMA secure_delete = ON")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._transaction(check=False):
            if not self._value("SELECT count(*) FROM sqlite_schema"):
                for statement in _TABLES.strip().splitlines():
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {_VERSION}")
                self._set("described", json.dumps(self.described))
            version = self._value("PRAGMA user_version")
            if version != _VERSION:
                raise ValueError(
                    f"{self.path} has version {version} of the format, this driftwolfe reads {_VERSION}: "
                    "open it with the version that wrote it"
                )
            held = json.loads(self._fact("described"))
            if held != json.loads(json.dumps(self.described)):
                raise ValueError(
                    f"{self.path} holds models of another factory, {_in_words(held)}, and this one makes "
                    f"{_in_words(self.described)}; give that factory, or another path"
                )
            if not alone:
                self._set("owner", self.owner)

    def facts(self, with_prior: bool) -> tuple[int, bytes | None]:
        """Return the offset, and the content of the prior if there is one."""
        with self._explained():
            offset, content = self._fact("offset"), self._fact("prior")
        if content is not None and not with_prior:
            raise ValueError(f"{self.path} has a prior; give `prior` as when it was made")
        return -1 if offset is None else offset, content and zlib.decompress(content)

    def count(self) -> int:
        """Return the number of keys."""
        with self._explained():
            return int(self._value("SELECT count(*) FROM models"))

    def keys(self) -> list[Key]:
        """Return all keys in order of their first transaction."""
        with self._explained():
            return [key for (key,) in self._db.execute("SELECT key FROM models ORDER BY rowid")]

    def has(self, key: Key) -> bool:
        """Whether there is a model of a key."""
        with self._explained():
            return self._value("SELECT 1 FROM models WHERE key = ?", key) is not None

    def read(self, key: Key) -> bytes | None:
        """Return the content of a model, None if there is none."""
        with self._explained():
            content = self._value("SELECT content FROM models WHERE key = ?", key)
            return None if content is None else zlib.decompress(content)

    def write(
        self,
        models: Iterable[tuple[Key, bytes]],
        offset: int,
        prior: bytes | None,
        forgotten: Key | None,
    ) -> None:
        """Write all of this, and remove the model of one key, in one transaction."""
        with self._explained():
            with self._transaction():
                self._db.executemany(
                    "INSERT INTO models VALUES (?, ?) "
                    "ON CONFLICT (key) DO UPDATE SET content = excluded.content",
                    ((key, zlib.compress(content, 1)) for key, content in models),
                )
                self._set("offset", offset)
                if prior is not None:
                    self._set("prior", zlib.compress(prior, 1))
                if forgotten is not None:
                    self._db.execute("DELETE FROM models WHERE key = ?", (forgotten,))
            if forgotten is not None:  # it is still in the log
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file."""
        self.is_open = False
        self._db.close()

    @contextmanager
    def _transaction(self, check: bool = True) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if check and self.owner is not None and self._fact("owner") != self.owner:
                raise NotOwnerError(
                    f"{self.path} has a new owner, which goes on from its latest transaction; close this one"
                )
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # a full disk ends it
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of SQLite into sentences that say what to do."""
        if not self.is_open:
            raise ValueError(f"this Keyed is closed; make one of {self.path} again")
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise BlockingIOError(
                    f"{self.path} is open in another process, or by another Keyed of this one; close that first"
                ) from error
            raise OSError(f"could not use {self.path}: {error}") from error
        except (sqlite3.DatabaseError, zlib.error) as error:
            raise ValueError(f"{self.path} is no store of Keyed, or is damaged: {error}") from error

    def _value(self, query: str, *given: Any) -> Any:
        row = self._db.execute(query, given).fetchone()
        return row and row[0]

    def _fact(self, name: str) -> Any:
        return self._value("SELECT value FROM facts WHERE name = ?", name)

    def _set(self, name: str, value: Any) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))


def _verbs(model: Model) -> tuple[str, str]:
    """The names of the methods that learn and predict."""
    for learn, predict in (("learn_one", "predict_one"), ("partial_fit", "predict")):
        if hasattr(model, learn) and hasattr(model, predict):
            return learn, predict
    raise TypeError(
        "factory must make models with learn_one and predict_one, or partial_fit and predict; "
        f"a {type(model).__name__} has neither"
    )


def _functions(first: Model, to_bytes: Any, from_bytes: Any) -> tuple[Any, Any]:
    """The functions that write and read models."""
    if (to_bytes is None) != (from_bytes is None):
        raise TypeError("give both of to_bytes and from_bytes, or none of them")
    if to_bytes is not None:
        return to_bytes, from_bytes
    kind = type(first)
    if hasattr(kind, "to_bytes") and hasattr(kind, "from_bytes"):
        return kind.to_bytes, kind.from_bytes
    raise TypeError(
        f"a {kind.__name__} has no to_bytes, and we write no pickle, which may run code when it is read; "
        "give to_bytes= and from_bytes=, functions that write and read one"
    )


def _described(first: Model, to_bytes: Any) -> dict[str, Any]:
    """What all models of a factory have in common: their class, and the settings of ours."""
    settings: dict[str, Any] = {}
    if to_bytes is None:
        header = storage.read_header(storage.InMemory(first.to_bytes()))  # type: ignore[arg-type]
        settings = {name: value for name, value in header.settings.items() if name != "state"}
    return {"kind": type(first).__name__, "settings": settings}


def _in_words(described: Any) -> str:
    """A class with its settings."""
    settings = ", ".join(f"{name}={value!r}" for name, value in described["settings"].items())
    return f"{described['kind']}({settings})"[:200]


def checked_key(key: Any) -> Key:
    """Return a key as a plain text or whole number; raise an error for others."""
    if isinstance(key, str):
        try:
            key.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"the key {key!r:.80} is not valid Unicode") from error
        return str(key)
    return _whole(key, "a key", -_LARGEST, "a text or a whole number")


def _whole(value: Any, name: str, least: int = 0, kind: str = "a whole number") -> int:
    """Return a whole number that SQLite can keep."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name} must be {kind}, got {value!r:.80} of type {type(value).__name__}")
    if not least <= number < _LARGEST:
        raise ValueError(f"{name} must lie between {least} and {_LARGEST - 1}, got {number}")
    return number
