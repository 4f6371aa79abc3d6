"""`AdaptiveIntervals` and `AdaptiveSets`: what models predict, with a coverage that holds under drift.

Both have a threshold that scores exceed at a given rate, whatever they do: of all rows, and by group.
"""

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

#: Half-lives of the running means, in rows. All constants were chosen on streams that docs/howto/intervals.md
#: does not show.
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
#: Candidates for the centre: 0, and the running means but the shortest; how often each.
CENTRE_COPIES = np.array([4, 1, 1, 4])
#: Smaller probabilities count as this.
LEAST = 1e-12
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
    offset_: Annotated[float, Field(float, None, -MOST_OFFSET, MOST_OFFSET)]  # theta
    recent_: Annotated[float, Field(float, None, -1.0, 1.0)]  # m
    n_rows_: Count

    def __deepcopy__(self, memo: Any) -> GroupScale:
        copied = GroupScale()
        vars(copied).update(vars(self))  # arrays are replaced, never written to
        return copied

    def _radii(self) -> Array:
        return self._sizes * np.exp(self._levels)

    def _candidates(self) -> Array:
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
        for each in (self, *self._groups.values()):
            distance = np.abs(each._levels - self._start).max()
            require(distance <= WIDEST * (1.0 + 1e-9), "radii")
        require(max(0, self.n_rows_ - FIRST) == self._radius.t, "rows")

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
        moved = scale.offset_ + self.gain * scale.recent_
        return float(self._radius.decision @ scale._candidates()) * math.exp(moved)

    def _by_group(self, groups: list[Any], say: Callable[[GroupScale], float]) -> Array:
        found = {group: say(self._groups.get(group, self)) for group in {*groups}}
        return np.array([found[group] for group in groups])

    def _grouped(self, rows: Any) -> list[Any] | None:
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
        if not callable(found := getattr(self.model, name, None)):
            one, other = self._VERBS
            raise TypeError(
                f"the model, {type(self.model).__name__}, has no {name}: give a model with {one} and "
                f"partial_fit, or {other} and learn_one, or use observe and around"
            )
        return found


class AdaptiveIntervals(AdaptiveThreshold):
    r"""Intervals around the predictions of a regressor that contain a given fraction of the targets.

    The interval is :math:`\hat y + c \pm \rho\, e^{\theta + g m}`. The centre c follows the median of the
    residuals :math:`y - \hat y`, the radius :math:`\rho` the quantile of :math:`|y - \hat y - c|`: each is a
    mix of running means of four memories (4, 16, 64 and 256 rows; 0 and the last three for the centre), mixed
    by `SAOL` on a simplex with pinball losses. A miss raises :math:`\theta` by 0.01 times the coverage, a hit
    lowers it by 0.01 times the rest; m is the running mean, over 40 rows, of misses less those wanted, and
    g the gain. Nothing is assumed of the targets.

    Parameters
    ----------
    model
        A regressor with ``predict`` and ``partial_fit`` (scikit-learn, `MatrixCompleter`), or with ``predict_one``
        and ``learn_one`` (river). It learns what the intervals learn. None: use `observe` and `around`.
    coverage
        The fraction of targets to be inside, between 0 and 1.
    gain
        g, how much recent misses widen the interval: 0.1 too many by a factor of :math:`e^{0.1 g}`. A larger
        one brings the coverage of a hundred rows nearer to the wanted one, and makes intervals longer.
    group
        The name of a feature, or a function of a row: rows for which it is the same are a group, with a scale,
        :math:`\theta` and m of its own, and the coverage below holds in each. A new one starts with those of
        all rows. 10,000 are remembered.

    Attributes
    ----------
    n_rows_
        Rows that the intervals have learned from.
    offset_
        :math:`\theta` for the next row; of a group, `group_offset`.
    recent_
        m, the recent misses less those wanted.

    Notes
    -----
    On every window of k rows, after the first ten, exactly

    .. math:: \text{fraction inside} = \text{coverage} - \frac{\theta_{end} - \theta_{start}}{0.01\,k},

    so the fraction is wrong by at most the range of :math:`\theta` over 0.01 k. :math:`\theta` stays between the
    smallest and the largest :math:`\ln(|y - \hat y - c|/\rho) - g m`, up to one step, and within ±2, where
    the equation ends. Not promised: coverage for each x, or short intervals. `pinball_bound` is about
    :math:`\rho`. docs/howto/intervals.md has proofs and measurements.

    References
    ----------
    Gibbs and Candès (2021), Adaptive conformal inference under distribution shift, NeurIPS; Bhatnagar,
    Wang, Xiong and Bai (2023), Improved online conformal prediction via strongly adaptive online
    learning, ICML; Angelopoulos, Candès and Tibshirani (2023), Conformal PID control, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 2))
    >>> y = X @ [1.0, 2.0] + np.where(np.arange(600) < 300, 0.1, 1.0) * rng.normal(size=600)
    >>> model, inside = AdaptiveIntervals(SGDRegressor(), coverage=0.9), []
    >>> for k in range(0, 600, 10):
    ...     if k >= 20:
    ...         lower, upper = model.predict_interval(X[k : k + 10])
    ...         inside += [*(lower <= y[k : k + 10]) & (y[k : k + 10] <= upper)]
    ...     model = model.partial_fit(X[k : k + 10], y[k : k + 10])
    >>> bool(0.87 < np.mean(inside) < 0.93)
    True
    """

    _centre: SAOL

    def __init__(
        self, model: Any = None, coverage: float = 0.9, *, gain: float = 2.0, group: Any = None
    ) -> None:
        super().__init__(model, coverage, gain=gain, group=group)
        centres = int(CENTRE_COPIES.sum())
        self._centre = SAOL(Simplex(centres), lipschitz=math.sqrt(centres) / 2.0)

    @reads
    def predict_interval(self, X: Any) -> tuple[Any, Any]:
        """Return the lower and the upper ends: arrays for rows, two numbers for a dict of features.

        They are infinite until ten rows have been learned from.
        """
        lower, upper = self.around(*self._ask(X))
        return (float(lower[0]), float(upper[0])) if isinstance(X, Mapping) else (lower, upper)

    @reads
    def around(self, predictions: Any, groups: Any = None) -> tuple[Array, Array]:
        """Return the lower and the upper ends of the next row's interval around each prediction."""
        values = self._told(predictions)
        named = as_groups(groups, values.size)
        if self.n_rows_ < FIRST:
            return np.full(values.shape, -math.inf), np.full(values.shape, math.inf)
        centres, radii = (self._by_group(named, say) for say in (self._middle, self._limit))
        return values + (centres - radii), values + (centres + radii)

    def check(self) -> None:
        super().check()
        require(self._radius.t == self._centre.t, "rows")

    def _targets(self, y: Any) -> Array:
        return _numbers(y, "y")

    def _told(self, predictions: Any, count: int | None = None) -> Array:
        return _numbers(predictions, "predictions", None if count is None else (count,))

    def _observe(self, told: Array, targets: Array, groups: list[Any]) -> None:
        for residual, group in zip((targets - told).tolist(), groups, strict=True):
            scales = self._scales(group)
            distances = [abs(residual - self._middle(each)) for each in scales]
            if self.n_rows_ >= FIRST:
                own = scales[-1]
                learn_mix(self._centre, _centres(own), residual, 0.5, float(own._sizes.max()))
            for each in scales:
                each._means = each._means + each._rates() * (residual - each._means)
            self._learn_all(scales, distances)

    def _middle(self, scale: GroupScale) -> float:
        return float(self._centre.decision @ _centres(scale))


class AdaptiveSets(AdaptiveThreshold):
    r"""Sets of labels, from a classifier's probabilities p, that hold the true one in a fraction of rows.

    A set holds the labels with :math:`-\ln p \le \rho\, e^{\theta + g m}`, most probable first, and the most
    probable one in any case. The right side is that of `AdaptiveIntervals`, learned from :math:`-\ln p` of
    the true labels; a label that the classifier does not know is missed. The fraction inside is exactly that
    of `AdaptiveIntervals`, on every window and in every group, with ``allow_empty=True``, where the most
    probable label is as all others; else it is at least that. docs/howto/sets.md has proofs and measurements.

    Parameters
    ----------
    model
        A classifier with ``predict_proba`` and ``partial_fit`` (scikit-learn), or with ``predict_proba_one`` and
        ``learn_one`` (river). It learns what the sets learn. None: use `observe` and `around`.
    coverage, gain, group
        As of `AdaptiveIntervals`; its attributes, too.

    Examples
    --------
    >>> import numpy as np
    >>> rng, sets, inside = np.random.default_rng(0), AdaptiveSets(coverage=0.8), []
    >>> for t in range(600):
    ...     p, y = rng.dirichlet(np.ones(5)), int(rng.integers(5))  # which say nothing of y
    ...     inside.append(y in sets.around([p])[0])
    ...     sets = sets.observe([p], [y])
    >>> bool(0.78 < np.mean(inside) < 0.85), sets.around([{"a": 0.7, "b": 0.3, "c": 0.0}])[0]
    (True, ['a', 'b'])
    """

    _VERBS = ("predict_proba", "predict_proba_one")

    @reads
    def predict_set(self, X: Any, allow_empty: bool = False) -> list[Any]:
        """Return the labels of a row, a dict of features, or a list of them for each of many rows."""
        found = self.around(*self._ask(X), allow_empty)
        return found[0] if isinstance(X, Mapping) else found

    @reads
    def around(
        self, predictions: Any, groups: Any = None, allow_empty: bool = False
    ) -> list[list[Any]]:
        """Return the next row's set of labels for each row of probabilities: all, in the first ten rows.

        Probabilities are a list of dicts by label, or rows of numbers for the model's classes, or 0, 1, ...
        """
        scored, found = self._told(predictions), []
        limits = self._by_group(as_groups(groups, len(scored)), self._limit)
        for (labels, scores), limit in zip(scored, limits, strict=True):
            inside = int((scores <= limit).sum()) if self.n_rows_ >= FIRST else len(labels)
            order = np.argsort(scores, kind="stable")[: max(inside, not allow_empty)]
            found.append([labels[k] for k in order.tolist()])
        return found

    def _targets(self, y: Any) -> list[Any]:
        return plain_keys(several(y, "y"), "a label")

    def _observe(self, told: list[Any], targets: list[Any], groups: list[Any]) -> None:
        for (labels, scores), label, group in zip(told, targets, groups, strict=True):
            known, scales = label in labels, self._scales(group)
            score = float(scores[labels.index(label)] if known else -np.log(LEAST))
            self._learn_all(scales, [score] * len(scales), miss=not known)

    def _told(self, given: Any, count: int | None = None) -> list[tuple[list[Any], Array]]:
        """Return the labels of each row, and their scores."""
        if isinstance(given, list | tuple) and all(isinstance(row, Mapping) for row in given):
            pairs = [(plain_keys([*row], "a label"), [*row.values()]) for row in given]
        else:
            table = checks.finite_array(given, "probabilities")
            if table.ndim != 2:
                raise ValueError("probabilities must be dicts by label, or rows of numbers")
            names = [*getattr(self.model, "classes_", range(table.shape[1]))]
            pairs = [(plain_keys(names, "a label"), row) for row in table]
        found = []
        for labels, row in pairs:
            values = checks.finite_array(row, "probabilities", (len(labels),))
            if values.min(initial=0.0) < 0.0 or values.sum() > 1.0 + 1e-6:
                raise ValueError("probabilities must be at least 0, with a sum of at most 1")
            found.append((labels, -np.log(np.clip(values, LEAST, 1.0))))
        if count not in (None, len(found)):
            raise ValueError(f"y must hold a label for each of {len(found)} rows, got {count}")
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


def _centres(scale: GroupScale) -> Array:
    return np.repeat(np.append(0.0, scale._means[1:]), CENTRE_COPIES)


def _numbers(given: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    found = checks.finite_array(given, name, shape)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got shape {found.shape}")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must lie within ±{LARGEST:g}")
    return found
