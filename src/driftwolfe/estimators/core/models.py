"""What models share: files, known ids, learners on top of a feature map, and the arrays that a loop is given."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Hashable, Mapping
from itertools import pairwise
from operator import is_
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np

from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.core.columns import Columns, Table
from driftwolfe.estimators.core.ids import Ids, plain_keys
from driftwolfe.estimators.core.rows import COUNT, FeatureMap, LoopPart, SparseRows, ends
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, half_written, not_undone, reads, reads_whole
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Count, Field, Part, read_state, write_state
from driftwolfe.storage import require

#: Rows of a block: between looks for features that have a scale at last, and for alarms.
BLOCK = 16


class Watch(Part):
    """Hands the losses of rows to an alarm, a block at a time."""

    t: Count  # rows so far
    losses: Annotated[Array, Field(np.float64, (BLOCK,), most=np.inf)]  # the latest; infinite: none
    alarm: DriftAlarm

    def __init__(self) -> None:
        self.t, self.losses, self.alarm = 0, np.zeros(BLOCK), DriftAlarm()

    def check(self) -> None:
        require(self.alarm.n_updates_ == self.t - self.t % BLOCK, "alarms")

    def take(self, losses: Array) -> None:
        for loss in losses.tolist():
            self.take_one(loss)

    def take_one(self, loss: float) -> None:
        t = self.t + 1
        self.losses[self.t % BLOCK] = loss
        if t % BLOCK == 0:
            self.alarm.take(self.losses)
        self.t = t  # last: it tells whether an interrupted call was done


class Watched:
    """An estimator whose losses an alarm watches."""

    _alarm: Any

    @property
    @reads
    def alarm_(self) -> DriftAlarm:
        """A copy of the `DriftAlarm` that watches the loss of each prediction, in blocks of 16 rows."""
        return copy.deepcopy(self._alarm())

    @property
    @reads
    def changes_(self) -> Indices:
        """For each alarm, the number of rows learned before the one at which it sounded."""
        return self._alarm().changes_.copy()


class SavedModel(Guarded, Watched):
    """A model whose settings and parts make up a file."""

    OPTIONS: ClassVar[Mapping[str, Any]] = {}  # of the constructor, as files have them
    SETTINGS: ClassVar[Mapping[str, Any]]  # all that files have besides parts
    PARTS: ClassVar[Mapping[str, Any]]  # classes of the attributes of these names, after a "_"
    OPTIONAL: ClassVar[str] = ""  # the part that may be None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, without any code; `load` resumes bit-identically.

        Ids must be texts, numbers, booleans, None, bytes or tuples of these.
        """
        self._write(path, type(self).__name__)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model that `save` wrote; it resumes bit-identically."""
        return cls._read(path, cls.__name__)[0]

    @reads_whole
    def _write(self, path: str | os.PathLike[str], kind: str, **settings: Any) -> None:
        """Write everything, for this class or a wrapper of that name, with settings of its own."""
        given = self._settings() | settings  # first: it refuses models that have learned nothing
        write_state(path, kind, given, {name: getattr(self, f"_{name}") for name in self.PARTS})

    @classmethod
    def _read(cls, path: str | os.PathLike[str], kind: str) -> tuple[Self, dict[str, Any]]:
        """Read what `_write` wrote under that name, and the settings."""
        settings, *parts = read_state(path, kind, cls.SETTINGS, cls.PARTS, cls.OPTIONAL)
        return cls._restored(settings, *parts), settings

    def _teach(self, learner: Any, rows: SparseRows, targets: Any, parts: Array) -> bool:
        """Let the learner learn; an interrupt leaves it as before or as after that, or half written."""
        t, weight = learner.t, learner.map.totals.item(0)
        try:
            return learner.learn(rows, targets, parts)
        except BaseException:
            half_written(self, learner.settled, t, weight, rows.number, parts)
            raise

    @classmethod
    def _restored(cls, settings: dict[str, Any], *parts: Any) -> Self:
        """Return the model of these settings and parts, if they fit together."""
        model = cls(**{name: settings[name] for name in cls.OPTIONS})
        for name, part in zip(cls.PARTS, parts, strict=True):
            setattr(model, f"_{name}", part)
        return model

    def _settings(self) -> dict[str, Any]:
        """Return the settings as JSON has them, at least the options."""
        return {name: np.asarray(getattr(self, name)).tolist() for name in self.OPTIONS}


class RowModel(SavedModel):
    """A model of rows by columns: what is new in a row joins before it is learned."""

    _taught: Any  # returns the learner, which rows it learns, their targets, weights, and counts
    _learner: Any
    _columns: Columns
    _classes = Ids()  # none

    def _learn_more(self, rows: Any, targets: Any, parts: Array, more: Any = ()) -> None:
        """Learn rows as `_learn_pieces` does; if nothing in them is new, an interrupt is settled."""
        table = isinstance(rows, Table)
        if isinstance(targets, list) or (table and self._columns.new(rows, self._learner.t)):
            self._learn_growing(rows, targets, parts, more)
        else:
            self._teach(self._learner, self._columns.rows(rows) if table else rows, targets, parts)
            vars(self._learner).update(more)

    def _learn_pieces(self, rows: Any, targets: Any, parts: Array, more: Any = ()) -> None:
        """Learn checked rows, and set attributes of the learner; targets are a list of labels if some are new."""
        columns, classes = self._columns, self._classes
        table, labels = isinstance(rows, Table), targets if isinstance(targets, list) else []
        new = columns.new(rows, self._learner.t) if table else {}
        firsts = {labels.index(label) for label in set(labels) if label not in classes.numbers}
        # What is new has its first row at the start of a piece: it joins there, not before.
        for first, last in pairwise(sorted({0, *firsts, *new.values(), len(parts)})):
            columns.add(key for key, row in new.items() if row == first)
            classes.add(labels[first : first + 1])
            self._grow()
            own = slice(first, last)
            some = columns.rows(rows.taken(own)) if table else rows.stretch(first, last)
            aims = classes.find(labels[own]) if labels else targets[own]
            self._learner.learn(some, aims, parts[own])
        vars(self._learner).update(more)

    _learn_growing = not_undone(_learn_pieces)  # an interrupt leaves the model half written

    def _grow(self) -> None:
        """Let the learner make room for what is known."""
        sizes = len(self._classes), self._columns.size
        self._learner.grow(*sizes[-len(self._learner.sizes) :])


def not_fitted(model: Any) -> Exception:
    """Return scikit-learn's error for a model that has learned nothing, or one like it."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        NotFittedError = type("NotFittedError", (ValueError, AttributeError), {})
    return NotFittedError(f"this {type(model).__name__} has learned nothing yet: call partial_fit")


class UsersAndItems(SavedModel):
    """The ids that recommenders know."""

    COUNTED: ClassVar[str]  # what they learn
    KNOWN: ClassVar[dict[str, Any]] = {"users": Ids, "items": Ids, "watch": Watch}
    _pool: Any
    _users: Ids
    _items: Ids
    _watch: Watch

    def _alarm(self) -> DriftAlarm:
        return self._watch.alarm

    @property
    @reads
    def users_(self) -> list[Any]:
        """Users known, in order of appearance, less those forgotten."""
        return list(self._users.names)

    @property
    @reads
    def items_(self) -> list[Any]:
        """Items known, in order of appearance."""
        return list(self._items.names)

    def __repr__(self) -> str:
        sizes = f"users={self.n_users_}, items={self.n_items_}, {self.COUNTED}"
        return f"{type(self).__name__}({sizes}={self._pool.t})"

    def _user(self, user: Hashable) -> tuple[Any, int]:
        """Return the id of a user as it is kept, and its number, -1 for a new one."""
        (key,) = plain_keys([user], "the id of one user")
        return key, self._users.numbers.get(key, -1)

    def _unknown(self, key: Any) -> KeyError:
        """Return the error for a user who is to be forgotten and is not known."""
        near = next((each for each in self._users.names if str(each) == str(key)), None)
        hint = "" if near is None else f"; there is {near!r}, of type {type(near).__name__}"
        return KeyError(f"no user {key!r:.80}, of type {type(key).__name__}, is known{hint}")

    @property
    def n_users_(self) -> int:
        """Number of users known."""
        return len(self._users)

    @property
    def n_items_(self) -> int:
        """Number of items known."""
        return len(self._items)

    @classmethod
    def _restored(cls, settings: dict[str, Any], *parts: Any) -> Self:
        pool, users, items, watch, *_ = parts
        require((len(users), len(items), watch.t) == (*pool.sizes, pool.t), "ids or rows")
        return super()._restored(settings, *parts)


SEED_OPTION = Field(int, least=0, below=1 << 32)
#: By which fraction the trace norm may pass the radius before an expert is projected. Measured losses
#: are the same for 0 and for 1; projections are over twenty times fewer than with 0.
SLACK = 0.5


#: The map is recomputed after so many rounds, as a fraction of those played.
RENEWAL = 0.05


def renewal_gap(features: int, t: int) -> int:
    """Rounds from round t to the next renewal of the map, which takes the time of many rows."""
    return max(1, features // 16, int(RENEWAL * t))


#: The weight of one row, those of rows to predict, and what the loop does not write to.
ONE, NO_PARTS, NO_TABLE = np.ones(1), np.zeros(0), np.zeros((0, 0))


class Bound(NamedTuple):
    """What a loop is given of arrays; they stay where they are as long as this is kept."""

    held: tuple[Any, ...]  # arrays, and tuples of arrays
    at: int  # address of sizes, and then of addresses: those of the arrays, and of `spare`
    spare: Any  # working memory
    kept: Any = None
    loops: Any = None  # the module, where asking for it takes too long
    latest: Any = None  # `LoopPart.latest` when the arrays were these


UNBOUND = Bound((None,), 0, None)


def bound(known: Bound, held: tuple[Any, ...], sizes: Callable[[], Any]) -> Bound:
    """Return what a loop is given of these arrays: what is known, unless one has been replaced."""
    if all(map(is_, held, known.held)) and len(held) == len(known.held):
        return known._replace(latest=LoopPart.latest)
    groups = (each if isinstance(each, tuple) else (each,) for each in held)
    arrays = [array for group in groups for array in group]
    if not all(array.flags.carray for array in arrays):
        raise ValueError("the arrays of an estimator must be contiguous, aligned and writable")
    numbers, room = sizes()
    spare = np.zeros(room)
    places = [array.__array_interface__["data"][0] for array in (*arrays, spare)]
    at = np.array([*numbers, *places])
    return Bound(held, at.__array_interface__["data"][0], spare, at, latest=LoopPart.latest)


class MappedLearner(LoopPart):
    """What learners share: a feature map, and experts on top of it that a compiled loop lets learn and predict.

    They have `names`, what each expert is; `expert_weights`, with a row for each output if there may be several;
    `sizes`, how many classes, if any, and features; `predict`, which returns nothing if a number is out of range.
    """

    t: Any  # rounds played
    losses: Any  # of the rows of this block
    map: FeatureMap
    renewal: Annotated[int, COUNT]  # the round after which the map is recomputed
    alarm: DriftAlarm
    seed: Annotated[int, SEED_OPTION]  # of random features
    _bound: Any = UNBOUND  # no part of the state
    _limits: Array  # to which norms experts may grow
    _held: Any  # returns the arrays that the loop is given
    _sizes: Any  # returns the sizes that the loop is given, and that of working memory
    _follow: Any  # lets the loop learn rows, or predict those without labels or weights
    project: Any  # projects the experts of norms above these limits onto their balls
    _ended: Any  # counts the row that was learned, and returns whether no expert is to be projected

    def __init__(self, features: int, seed: Any) -> None:
        self.seed = checks.count(seed, "random_state", least=0, most=(1 << 32) - 1)
        self.map = FeatureMap(features)
        self.renewal, self.alarm = 1, DriftAlarm()

    def check(self) -> None:
        gap = renewal_gap(self.map.features, self.t)
        require(self.t < self.renewal <= self.t + gap, "rounds")
        require(self.alarm.n_updates_ == self.t - self.t % BLOCK, "alarms")

    def _renew(self, t: int) -> None:
        """Recompute the map, if it is time, and at the end of a block let the alarm see its losses."""
        ended = t % BLOCK == 0
        if ended:
            self.alarm.take(self.losses)
        if t >= self.renewal or (ended and self.map.is_behind):
            self.map.renew()
            self.renewal = t + renewal_gap(self.map.features, t)

    def learn(self, rows: SparseRows, targets: Any, parts: Array) -> bool:
        """Learn rows with weights; return False, and do nothing, if the only one has a number out of range."""
        done, count, t = 0, rows.number, self.t
        some, aims, weights = rows, targets, parts
        while done < count:
            # Up to the next renewal of the map or end of a round at a time.
            end = done + min(BLOCK - t % BLOCK, self.renewal - t, count - done)
            if count > 1:
                own = slice(done, end)
                some, aims, weights = rows.stretch(done, end), targets[own], parts[own]
            given = self.mapped(some, weights)
            if given is None or not self._learn(given, aims, weights):
                return False
            done, t = end, t + end - done
            self._renew(t)
        return True

    def settled(self, t: int, weight: float, number: int, parts: Array) -> bool:
        """Complete what was interrupted after the only row, of round t; return whether it was, or not begun."""
        least = parts.min(initial=1.0)
        if weight + least == weight:  # then the weight of all rows does not tell
            return False
        if self.map.totals[0] == weight:
            return True
        t += 1
        quiet = number == 1 and self.map.full and t % BLOCK > 0 and t < self.renewal
        return quiet and self._ended(t)

    def _given(self, learning: bool) -> tuple[int, Array]:
        """Return the address of what the loop is given, and working memory."""
        known = self._bound
        if known.latest is not LoopPart.latest:
            known = self._bound = bound(known, self._held(), self._sizes)
        # Several threads may predict.
        return known.at, known.spare if learning else np.empty(known.spare.size)

    def _learn(self, rows: SparseRows, targets: Any, parts: Array) -> bool:
        """Learn rows of one round, those of many features mapped."""
        done, count = 0, rows.number
        while done < count:
            found = self._follow(rows, targets, parts, done, NO_TABLE)
            if found == done:
                return False
            if found < 0:
                self.project(self._limits)
            done = abs(found)
        return True

    def mapped(self, rows: SparseRows, parts: Array) -> SparseRows | None:
        """Return rows of many features mapped, None if one is out of range; rows of few features as they are."""
        return rows if self.map.full else self.map.rows(rows, parts)

    def one_row(self, places: Indices, values: Array) -> SparseRows:
        """Return one row, its entries sorted by place where sums depend on it; -1 is an unknown place."""
        if not self.map.full:
            order = places.argsort()
            places, values = places[order], values[order]
        return SparseRows(ends(places.size), places, values)
