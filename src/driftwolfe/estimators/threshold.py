"""A threshold that scores exceed at a given rate, whatever they do: for intervals, and for sets of labels."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from operator import itemgetter
from statistics import NormalDist
from typing import Annotated, Any, Self, cast

import numpy as np

from driftwolfe import storage
from driftwolfe.domains import Simplex
from driftwolfe.estimators.core.ids import Ids, encode_keys, plain_keys, several
from driftwolfe.learners.archive import ensemble_kinds
from driftwolfe.learners.saol import SAOL
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Count, Field, Reader, Stateful, Writer, check_fields, declared
from driftwolfe.storage import Archive, require

#: Half-lives of the running means, in rows. All constants were chosen on TrumpApproval, MovieLens and the
#: streams of benchmarks/intervals.py, seeds 10 to 12, 20 to 25 and, of the steady one, 100 to 139;
#: docs/howto/intervals.md shows others.
HALF_LIVES = np.array([4.0, 16.0, 64.0, 256.0])
#: How often each is a candidate for the radius: `SAOL` starts at equal weights, and where nothing changes
#: some weight on short memories costs more than it takes to find them where something does.
COPIES = np.array([1, 1, 1, 9])
#: Steps of the logarithms of radii: of each candidate, at least, and of the threshold itself.
STEP, LAST_STEP = 0.003, 0.01
#: Weight of a new row in the recent misses: a half-life of 40 rows.
RECENT = 1.0 - 0.5 ** (1.0 / 40.0)
#: Logarithms stay within these distances of their start, for rows that a model predicts exactly: those of
#: candidates, a factor of 148, and theta, a factor of 7.
WIDEST, MOST_OFFSET = 5.0, 2.0
#: Largest gain.
MOST_GAIN = 100.0
#: Rows before the first threshold that is finite.
FIRST = 10
#: Groups that are remembered, and rows that what a new one starts from counts for.
MOST_GROUPS, PRIOR = 10_000, 1
#: Largest size of predictions and targets.
LARGEST = 1e100
_RATES = 1.0 - 0.5 ** (1.0 / HALF_LIVES)
_SIZES = Field(np.float64, (len(HALF_LIVES),), 0.0, 2.0 * LARGEST)


class PinballOfMix(Loss):
    """How badly <candidates, x> misses a quantile of the target."""

    def __init__(self, candidates: Array, target: float, quantile: float) -> None:
        self.candidates, self.target, self.quantile = candidates, target, quantile
        self.shape = candidates.shape

    def scores(self, x: Any) -> Array:
        return np.asarray(self.candidates @ x)

    def value_at(self, scores: Array) -> Array:
        short = self.target - scores
        return np.maximum(self.quantile * short, (self.quantile - 1.0) * short)

    def slope_at(self, scores: Array) -> Array:
        return np.where(self.target > scores, -self.quantile, 1.0 - self.quantile)

    def pull_back(self, slope: Array, like: Any) -> Any:
        return float(slope) * self.candidates

    def stacked_scores(self, stack: Array) -> Array:
        return stack @ self.candidates

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        return slopes[:, None] * self.candidates


class GroupScale(Stateful):
    """How large the scores of a group of rows are, and whether too many exceeded the threshold."""

    _sizes: Annotated[Array, _SIZES]  # running means of scores
    #: The logarithm of the quantile over the mean size.
    _levels: Annotated[Array, Field(np.float64, (len(HALF_LIVES),))]
    #: Running means of the residuals of a regressor; 0 of a classifier.
    _means: Annotated[Array, Field(np.float64, (len(HALF_LIVES),), -2.0 * LARGEST, 2.0 * LARGEST)]
    offset_: Annotated[float, Field(float, None, -MOST_OFFSET, MOST_OFFSET)]
    recent_: Annotated[float, Field(float, None, -1.0, 1.0)]
    n_rows_: Count

    def __deepcopy__(self, memo: Any) -> GroupScale:
        copied = GroupScale()
        vars(copied).update(vars(self))  # arrays are replaced, never written to
        return copied

    def _radii(self) -> Array:
        """Running means of scores, each times its own factor."""
        return self._sizes * np.exp(self._levels)

    def _candidates(self) -> Array:
        """The candidates for the threshold."""
        return np.repeat(self._radii(), COPIES)

    def _learn(self, score: float, excess: float | None, wanted: float, start: float) -> None:
        """Move theta and m by a hit or a miss, if there was one, and let factors and means learn."""
        if excess is not None:
            self.offset_ = min(max(self.offset_ + LAST_STEP * excess, -MOST_OFFSET), MOST_OFFSET)
            self.recent_ += RECENT * (excess - self.recent_)
            # Longer steps at first.
            step = min(0.1, max(STEP, 1.0 / (max(0, self.n_rows_ - FIRST) + 1)))
            levels = self._levels + step * ((score > self._radii()) - wanted)
            self._levels = np.clip(levels, start - WIDEST, start + WIDEST)
        self._sizes = self._sizes + self._rates() * (score - self._sizes)
        self.n_rows_ += 1

    def _rates(self) -> Array:
        return np.maximum(_RATES, 1.0 / (self.n_rows_ + 1.0))  # plain means at first


_PARTS = [*declared(GroupScale)]


class AdaptiveThreshold(Guarded, GroupScale):
    """What `AdaptiveIntervals` and `AdaptiveSets` share: the threshold, of all rows and by group, and files."""

    _radius: SAOL
    _VERBS = ("predict", "predict_one")
    _targets: Callable[[Any], Any]  # checks targets
    _told: Callable[..., Any]  # checks predictions, of so many rows
    _observe: Callable[[Any, Any, list[Any]], None]  # learns from rows, one after the other

    def __init__(
        self, model: Any = None, coverage: float = 0.9, *, gain: float = 2.0, group: Any = None
    ) -> None:
        checks.refuse_class(model)
        self.model, self.coverage = model, checks.positive(coverage, "coverage")
        if self.coverage >= 1.0:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
        self.gain = checks.nonnegative(gain, "gain")
        if self.gain > MOST_GAIN:
            raise ValueError(f"gain must be at most {MOST_GAIN:g}, got {gain!r}")
        self.group = group
        size, many = HALF_LIVES.size, int(COPIES.sum())
        # Candidates are at most 1, in units of the largest: so are slopes, times their number's root.
        steepest = max(self.coverage, 1.0 - self.coverage)
        self._radius = SAOL(Simplex(many), lipschitz=math.sqrt(many) * steepest)
        self._sizes, self._means = np.zeros(size), np.zeros(size)
        # As for normal residuals, and then what is learned.
        normal = NormalDist().inv_cdf(0.5 + 0.5 * self.coverage) * math.sqrt(0.5 * math.pi)
        self._start = math.log(normal)
        self._levels = np.full(size, self._start)
        self.offset_, self.recent_, self.n_rows_ = 0.0, 0.0, 0
        self._groups: dict[Any, GroupScale] = {}  # the one that learned last is the last

    @writes
    def partial_fit(self, X: Any, y: Any, **given: Any) -> Self:
        """Predict rows, let the model learn them, and learn from them, in their order.

        A model of scikit-learn that has learned nothing yet only learns, the first time. What else is given
        (``classes``) is for the model's ``partial_fit``.
        """
        targets = self._targets(y)
        groups = as_groups(self._grouped(X), len(targets))
        learn, ask, told = self._verb("partial_fit"), self._verb(self._VERBS[0]), None
        try:
            told = self._told(ask(X), len(targets))
        except ValueError as error:
            if type(error).__name__ != "NotFittedError":  # scikit-learn need not be there
                raise
        learn(X, y, **given)
        if told is not None:
            self._observe(told, targets, groups)
        return self

    @writes
    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a dict of features, or for numbers a (user, item) pair."""
        given, targets, groups = as_row(x), self._targets([y]), as_groups(self._grouped([x]), 1)
        told = self._told([self._verb(self._VERBS[1])(*given)], 1)
        self._verb("learn_one")(*given, y)
        self._observe(told, targets, groups)

    @writes
    def observe(self, predictions: Any, y: Any, groups: Any = None) -> Self:
        """Learn from predictions, of any model, the targets that came, and the group of each row."""
        targets = self._targets(y)
        count = len(targets)
        self._observe(self._told(predictions, count), targets, as_groups(groups, count))
        return self

    @reads
    def predict(self, X: Any) -> Any:
        """Return what the model predicts."""
        return self._verb("predict")(X)

    @reads
    def predict_one(self, x: Any) -> Any:
        """Return what the model predicts for one row."""
        return self._verb("predict_one")(*as_row(x))

    @reads
    def group_offset(self, group: Any) -> float:
        r"""Return :math:`\theta` for the next row of a group."""
        return self._groups.get(plain_keys([group], "a group")[0], self).offset_

    def pinball_bound(self, tau: int | None = None) -> float:
        r"""Return a bound on how much more :math:`\rho` lost than the best fixed mix of its candidates.

        On all intervals of tau rows; None: on all rows. Losses are pinball losses of :math:`|y - \hat y - c|`,
        or :math:`-\ln p`, each over the largest candidate of its row.
        """
        return self._radius.bound(tau=tau)

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file but the model, which has its own ways, and ``group``."""
        writer = Writer(ensemble_kinds())
        settings = {"coverage": self.coverage, "gain": self.gain, "state": writer.write_part(self)}
        if self._groups:
            rows = [[getattr(each, part) for part in _PARTS] for each in self._groups.values()]
            writer.arrays["groups/names"] = encode_keys(self._groups)
            writer.arrays["groups/scales"] = np.array([np.hstack(row) for row in rows])
        storage.write_archive(path, type(self).__name__, settings, writer.arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Any = None, group: Any = None) -> Self:
        """Return what `save` wrote, around a model; it resumes bit-identically."""
        numbers = [Field(float, least=0.0, most=most) for most in (1.0, MOST_GAIN)]
        fields = {"coverage": numbers[0], "gain": numbers[1], "state": Field(dict)}

        def check(archive: Archive) -> None:
            check_fields(fields, archive.settings, cls.__name__)

        with storage.enough_memory(path):
            archive = storage.read_archive(path, check, cls.__name__)
            settings = archive.settings
            loaded = cls(model, settings["coverage"], gain=settings["gain"], group=group)
            Reader(ensemble_kinds(), archive).restore(loaded)
            loaded._read_groups(archive.arrays)
            loaded.check()
        return loaded

    def _read_groups(self, arrays: dict[str, Any]) -> None:
        """Take the groups of a file, if it has some."""
        size = HALF_LIVES.size
        table = arrays.get("groups/scales", np.empty((0, 3 * size + 3)))
        keys = Ids.read(arrays.get("groups/names", encode_keys([]))).names
        require(table.shape == (len(keys), 3 * size + 3) and np.isfinite(table).all(), "groups")
        for key, row in zip(keys, table, strict=True):
            *numbers, rows = row[3 * size :].tolist()
            values = (*row[: 3 * size].reshape(3, size), *numbers, int(rows))
            self._groups[key] = scale = GroupScale()
            vars(scale).update(zip(_PARTS, values, strict=True))
            check_fields(cast(Any, declared(GroupScale)), vars(scale), "group")

    def check(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        for each in (self, *self._groups.values()):
            distance = np.abs(each._levels - self._start).max()
            require(distance <= WIDEST * (1.0 + 1e-9), "radii")
        require(max(0, self.n_rows_ - FIRST) == self._radius.t, "rows")

    def __repr__(self) -> str:
        numbers = f"coverage={self.coverage:g}, gain={self.gain:g}, rows={self.n_rows_}"
        return f"{type(self).__name__}({self.model!r}, {numbers})"

    def _learn_all(self, scales: list[GroupScale], scores: list[float], miss: bool = False) -> None:
        """Learn from a row's score, in all rows and in its group; whether it was missed in any case."""
        wanted = 1.0 - self.coverage
        excesses: list[float | None] = [None] * len(scales)
        if self.n_rows_ >= FIRST:
            limits = [self._limit(each) for each in scales]
            excesses = [(miss or s > q) - wanted for s, q in zip(scores, limits, strict=True)]
            learn_mix(self._radius, scales[-1]._candidates(), scores[-1], self.coverage)
        for each, score, excess in zip(scales, scores, excesses, strict=True):
            each._learn(score, excess, wanted, self._start)

    def _scales(self, group: Any) -> list[GroupScale]:
        """The scale of all rows, and that of a group, which starts as that."""
        if group is None or self.n_rows_ < FIRST:
            return [self]
        if (scale := self._groups.pop(group, None)) is None:
            scale = GroupScale()
            vars(scale).update({part: getattr(self, part) for part in _PARTS}, n_rows_=PRIOR)
            if len(self._groups) >= MOST_GROUPS:
                del self._groups[next(iter(self._groups))]
        self._groups[group] = scale
        return [self, scale]

    def _limit(self, scale: GroupScale) -> float:
        """The threshold for the next row of a group."""
        moved = scale.offset_ + self.gain * scale.recent_
        return float(self._radius.decision @ scale._candidates()) * math.exp(moved)

    def _by_group(self, groups: list[Any], say: Callable[[GroupScale], float]) -> Array:
        """What is said of the next row of each group."""
        found = {group: say(self._groups.get(group, self)) for group in {*groups}}
        return np.array([found[group] for group in groups])

    def _grouped(self, rows: Any) -> list[Any] | None:
        """The group of each row."""
        if self.group is None:
            return None
        find = self.group if callable(self.group) else itemgetter(self.group)
        try:
            return [find(row) for row in getattr(rows, "to_dict", lambda _: rows)("records")]
        except (LookupError, TypeError) as error:
            raise ValueError(
                f"group={self.group!r} must be a feature of every row, or a function of it: {error!r}"
            ) from error

    def _ask(self, X: Any) -> tuple[Any, list[Any] | None]:
        """What the model says of rows, and their groups."""
        many, one = self._VERBS
        if isinstance(X, Mapping):
            X = [X]
        elif hasattr(self.model, many):
            return self._verb(many)(X), self._grouped(X)
        return [self._verb(one)(*as_row(x)) for x in X], self._grouped(X)

    def _verb(self, name: str) -> Any:
        """A method of the model."""
        if not callable(found := getattr(self.model, name, None)):
            one, other = self._VERBS
            raise TypeError(
                f"the model, {type(self.model).__name__}, has no {name}: give a model with {one} and "
                f"partial_fit, or {other} and learn_one, or use observe and around"
            )
        return found


def learn_mix(saol: SAOL, mixed: Array, target: float, quantile: float, least: float = 0) -> None:
    """Let a mix learn, in units of the largest candidate; a target far away pulls no more than a near one."""
    unit = max(float(np.abs(mixed).max()), least, 1e-6 * abs(target)) or 1.0
    saol.update(PinballOfMix(mixed / unit, target / unit, quantile))


def as_row(x: Any) -> tuple[Any, ...]:
    """What river's models take for a row."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def as_groups(given: Any, count: int) -> list[Any]:
    """A group for each row; None for rows that are in none."""
    if given is None:
        return [None] * count
    groups = plain_keys(several(given, "groups"), "a group")
    if len(groups) != count:
        raise ValueError(f"groups must hold a group for each of {count} rows, got {len(groups)}")
    return groups
