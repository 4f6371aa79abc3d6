"""Columns of rows as people have them: numbers, categories and gaps, by name, as numbered features."""

from __future__ import annotations

import reprlib
import zlib
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from driftwolfe.estimators.core.ids import (
    SIMPLE,
    Ids,
    check_keys,
    frame,
    is_frame,
    is_missing,
    plain_key,
)
from driftwolfe.estimators.core.rows import LARGEST, SparseRows, dense_rows
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices

#: First parts of the names of features that are no numbers: (CATEGORY, column, value) and (GAP, column).
CATEGORY, GAP = "\0category", "\0missing"
#: Random features are drawn once so many rows are known. Gaps are features only after that: on streams with a
#: tenth of the cells missing at random, random features of gaps cost one to two points of accuracy.
FIRST_GAPS = 32
#: Types of numbers that need no further check, up to 64 bits.
PLAIN = {float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_}
LONG = 1 << 62


class Table(NamedTuple):
    """Rows by columns, checked."""

    names: list[Any]
    numbers: Array  # NaN where there is none
    is_numeric: list[bool]  # whether a column can only hold numbers
    #: For columns that have categories: the place of each row's among these values, -1 for none.
    categories: dict[int, tuple[Indices, list[Any]]]

    def with_gaps(self, names: Iterable[Any]) -> Table:
        """Return the table with columns of which all is missing."""
        if not (more := list(names)):
            return self
        numbers = np.pad(self.numbers, ((0, 0), (0, len(more))), constant_values=np.nan)
        numeric = [*self.is_numeric, *[False] * len(more)]
        return Table([*self.names, *more], numbers, numeric, self.categories)

    def taken(self, order: Any) -> Table:
        """Return the rows of those numbers, or of a slice."""
        some = {j: (codes[order], values) for j, (codes, values) in self.categories.items()}
        return self._replace(numbers=self.numbers[order], categories=some)


class Columns(Ids):
    """What the features of rows are: the numbers of a column by its name, its categories, and its gaps.

    Of arrays of numbers the first `plain` features are the columns, which have no other names than places.
    """

    plain = 0
    limit = 64  # of the categories of a column that have features of their own
    count = 0  # of columns of numbers that have names

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.categories: dict[Any, list[Any]] = {}  # names of features, by column
        super().__init__(names)

    def __deepcopy__(self, memo: Any) -> Self:
        copied = super().__deepcopy__(memo)
        copied.categories = {column: names.copy() for column, names in self.categories.items()}
        return copied

    def add(self, keys: Iterable[Hashable]) -> None:
        known = len(self)
        super().add(keys)
        for name in self.names[known:]:
            if not _is_mark(name):
                self.count += 1
            elif name[0] == CATEGORY:
                self.categories.setdefault(name[1], []).append(name)

    @property
    def size(self) -> int:
        """Number of features."""
        return self.plain + len(self)

    @property
    def columns(self) -> list[Any]:
        """The names of columns of numbers."""
        return [*range(self.plain), *(name for name in self.names if not _is_mark(name))]

    @property
    def labels(self) -> list[Any]:
        """A name for every feature, for people."""
        found: list[Any] = [*range(self.plain), *self.names]
        for place, name in enumerate(found):
            if _is_mark(name):
                gap = name[0] == GAP
                found[place] = f"{name[1]} is missing" if gap else f"{name[1]}={name[2]}"
        return found

    def place(self, key: Any) -> int:
        """Return the number of a feature, -1 of an unknown one."""
        if type(key) is int and 0 <= key < self.plain:
            return key
        found = self.numbers.get(key, -1)
        return found if found < 0 else found + self.plain

    def feature(self, column: Any, value: Any) -> Any:
        """Return the name of the feature of a category; beyond the limit several share one."""
        key, known = (CATEGORY, column, value), self.categories.get(column, ())
        if key in self.numbers or len(known) < self.limit:
            return key
        text = f"{type(value).__name__}:{value!r}"
        return known[zlib.crc32(text.encode("utf-8", "surrogatepass")) % self.limit]

    def new(self, table: Table, t: int) -> dict[Any, int]:
        """Return the features that rows from round t on bring, each with its first row."""
        found: dict[Any, int] = {}
        gaps, first_gap = np.isnan(table.numbers), max(0, FIRST_GAPS - t)
        for j, name in enumerate(table.names):
            empty = gaps[:, j]
            if self.place(name) < 0:
                rows = np.zeros(1, np.int64) if table.is_numeric[j] else (~empty).nonzero()[0]
                found.update((name, first) for first in rows[:1].tolist())
            if j in table.categories:
                codes, values = table.categories[j]
                empty, room = empty & (codes < 0), self.limit - len(self.categories.get(name, ()))
                known, firsts = np.unique(codes, return_index=True)
                for first in np.sort(firsts[known >= 0]).tolist():
                    key = (CATEGORY, name, values[codes[first]])
                    if key not in self.numbers and room > 0:
                        found[key], room = first, room - 1
            if (GAP, name) not in self.numbers:
                rows = first_gap + empty[first_gap:].nonzero()[0]
                found.update(((GAP, name), first) for first in rows[:1].tolist())
        found = {key: found[key] for key in in_order(found)}
        return dict(sorted(found.items(), key=lambda pair: (pair[1], _is_mark(pair[0]))))

    def mixed(self, x: dict[Any, Any]) -> tuple[Indices, Array, int] | None:
        """Return places and values of a record of numbers and texts, and how many numbers; None if that is not all.

        For speed. The place of what is new is -1.
        """
        places, values, numbers, known = [], [], 0, self.numbers
        for name, value in x.items():
            kind = type(value)
            if kind is str:
                if name in known:  # a column of numbers, too
                    return None
                places.append(known.get(self.feature(name, value), -1))
                values.append(1.0)
            elif kind in PLAIN or (kind is int and -LONG < value < LONG):
                places.append(known.get(name, -1))
                values.append(float(value))
                numbers += places[-1] >= 0
            else:
                return None
        return np.array(places, np.int64), np.array(values), numbers

    def rows(self, table: Table) -> SparseRows:
        """Return the features of rows that are known; the place of what is missing is -2 less its feature's."""
        places = np.fromiter(map(self.place, table.names), np.int64, len(table.names))
        order = places.argsort(kind="stable")[np.count_nonzero(places < 0) :]
        known, gaps = table.numbers[:, order], np.isnan(table.numbers)
        if not table.categories and not gaps.any():
            starts, chosen, values = dense_rows(known)
            return SparseRows(starts, places[order[chosen]], values)
        starts, chosen, values = dense_rows(np.where(gaps[:, order], 0.0, known))
        lines = np.repeat(np.arange(len(known)), np.diff(starts))
        entries = [(lines, places[order[chosen]], values)]
        for j, name in enumerate(table.names):
            empty = gaps[:, j]
            if places[j] >= 0:
                lines = empty.nonzero()[0]
                entries.append((lines, np.full(lines.size, -2 - places[j]), np.zeros(lines.size)))
            if j in table.categories:
                codes, texts = table.categories[j]
                own = [self.place(self.feature(name, text)) for text in texts]
                empty, lines = empty & (codes < 0), (codes >= 0).nonzero()[0]
                entries.append((lines, np.array(own)[codes[lines]], np.ones(lines.size)))
            if (gap := self.place((GAP, name))) >= 0:
                lines = empty.nonzero()[0]
                entries.append((lines, np.full(lines.size, gap), np.ones(lines.size)))
        lines, found, values = map(np.concatenate, zip(*entries, strict=True))
        order = np.lexsort((found, lines))
        starts = lines[order].searchsorted(np.arange(len(known) + 1))
        return SparseRows(starts, found[order], values[order])


def in_order(keys: Iterable[Any]) -> list[Any]:
    """Return new names of features in the order in which they are numbered: that of columns does not matter."""
    return sorted(keys, key=lambda key: (type(key).__name__, repr(key)))


def _is_mark(name: Any) -> bool:
    return type(name) is tuple and len(name) > 1 and name[0] in (CATEGORY, GAP)


#: Types of columns as narwhals calls them, with their parameters cut off.
_TEXTS, _CATEGORIES = {"String", "Binary", "Object", "Unknown"}, {"Categorical", "Enum"}
#: Types of categories that files have; others become texts.
_SAVED = SIMPLE | {float}


def frame_table(X: Any) -> Table:
    """Return the rows of a data frame: columns of numbers, booleans, texts and categories."""
    given, narwhals = frame(X, "X")
    names = list(given.columns)
    numbers, numeric = np.full((len(given), len(names)), np.nan), []
    categories: dict[int, Any] = {}
    for j, name in enumerate(names):
        column, kind = given[:, j], str(given[:, j].dtype).partition("(")[0]
        numeric.append(column.dtype.is_numeric() or kind == "Boolean")
        if numeric[j]:
            numbers[:, j] = column.cast(narwhals.Float64).to_numpy()
        elif kind in _TEXTS | _CATEGORIES:
            numbers[:, j], found = _cells(column.to_list(), name, kind in _CATEGORIES)
            categories |= found and {j: found}
        else:
            raise TypeError(f"feature {name!r} must hold numbers, texts or categories, got {kind}")
    return Table(names, in_range(numbers, names), numeric, categories)


def table_or_numbers(X: Any) -> Any:
    """Return frames, and arrays or lists with texts among them, as tables; others as they are."""
    if is_frame(X):
        return frame_table(X)
    if isinstance(X, list | tuple):
        X, given = np.asarray(X), X
        X = np.array(given, dtype=object) if X.dtype.kind in "US" else X  # numbers as they are
    if isinstance(X, np.ndarray) and X.dtype.kind in "US":
        X = X.astype(object)
    if not isinstance(X, np.ndarray) or X.dtype != object or X.ndim != 2:
        return X
    table = _table(X.T.tolist(), [*range(X.shape[1])], len(X))
    return table if table.categories else table.numbers


def _table(columns: list[list[Any]], names: list[Any], rows: int) -> Table:
    """Return columns of numbers, texts and what is missing as a table."""
    numbers = np.full((rows, len(names)), np.nan)
    categories: dict[int, Any] = {}
    for j, cells in enumerate(columns):
        numbers[:, j], found = _cells(cells, names[j])
        categories |= found and {j: found}
    return Table(names, in_range(numbers, names), [False] * len(names), categories)


def record_table(x: Any) -> Table:
    """Return a dict of features as a table of one row."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}")
    checks.refuse_masked([*x.values()], "the row")
    return _table([[value] for value in x.values()], [*x], 1)


def _cells(cells: list[Any], name: Any, categorical: bool = False) -> Any:
    """Return the numbers of a column, NaN for none, and its categories, if it has some."""
    numbers, codes = [np.nan] * len(cells), [-1] * len(cells)
    known: dict[Any, int] = {}
    for k, cell in enumerate(cells):
        if type(cell) in PLAIN and not categorical:
            numbers[k] = cell
        elif cell is None or is_missing(cell):
            continue
        elif categorical or isinstance(cell, str | bytes):
            key = plain_key(cell)
            if type(key) not in _SAVED:
                key = str(key)
            codes[k] = known.setdefault(key, len(known))
        else:
            numbers[k] = number_of(cell, "feature", name)
    return numbers, (np.array(codes), list(known)) if known else {}


def is_plain(values: list[Any]) -> bool:
    """Whether all are numbers of common types: for speed."""
    if PLAIN.issuperset(map(type, values)):
        return True
    others = set(map(type, values)) - PLAIN
    return others == {int} and max(values) < LONG and min(values) > -LONG


def number_of(value: Any, *what: Any) -> float:
    """Return a number that is not written as text; `what` are a word for it and its name."""
    named = " ".join([what[0], *map(repr, what[1:])])
    try:
        if isinstance(value, str | bytes | complex | np.complexfloating):  # float would read it
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{named} is beyond the range of numbers") from None
    except (TypeError, ValueError):
        kinds = "a number or a text" if what[0] == "feature" else "a number"
        raise TypeError(f"{named} must be {kinds}, got {reprlib.repr(value)}") from None


def in_range(numbers: Array, names: Collection[Hashable]) -> Array:
    """Return numbers if the names of their columns are keys, and they are not too large."""
    check_keys(names, "the name of a feature")
    if any(map(_is_mark, names)):
        raise ValueError('names of features must not be tuples that begin with "\\0"')
    if (wrong := np.abs(numbers) > LARGEST).any():
        row, column = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            f"feature {list(names)[column]!r} must lie between -{LARGEST:g} and {LARGEST:g}, got "
            f"{numbers[row, column]!r}; rescale it, or give NaN where it is missing"
        )
    return numbers
