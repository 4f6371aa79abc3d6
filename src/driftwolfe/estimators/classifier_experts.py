"""The experts behind the classifiers, and the saved state of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from driftwolfe.estimators.classifier_features import (
    FULL_FEATURES,
    LARGEST,
    SMALLEST,
    SMALLEST_WEIGHT,
    FeatureMap,
    MappedLearner,
    Rows,
    make_writable,
    renewal_gap,
)
from driftwolfe.estimators.ids import distinct_keys, encode_keys
from driftwolfe.estimators.random_views import (
    FERNS,
    LOOKS,
    START,
    TESTS,
    WAVES,
    RandomViews,
)
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.rounding import near_largest
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, require, write_archive

kernels = compiled("driftwolfe.estimators.classifier_kernels")

#: Default radii: scores of rows of usual length range from soft to certain.
RADII = (10.0, 40.0, 160.0)
#: Squares of scores do not overflow.
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-100, 1e100
LEARNERS = ("pola", "pold")
#: What experts may see: features as they are, or random features too.
KINDS = ("random", "linear")
#: Rows in a round of the cover: no expert lives shorter.
BLOCK = 16
#: Of the cover's lengths 1, 2, 4, ... rounds, every second is used: 1, 4, 16, ...
LEVEL_BITS = 2
#: Interval lengths that are there from the first row on: 16, 64, 256, 1,024 and 4,096 rows.
FIRST_LEVELS = 5
#: By which share the trace norm may pass the radius before an expert is projected. Measured losses
#: are the same for 0 and for 1; projections are over twenty times fewer than with 0.
SLACK = 0.5
#: Rows that are mapped together where nothing is learned, which bounds the memory for it.
CHUNK = 4096
#: Interval lengths of the experts of other views than the first, and how many radii, the largest, they have.
LENGTHS, OTHER_RADII = (256, 4096, 65_536), 2
#: A view with less weight rests for 1, 3, then 7 rounds at a time; the first view never does.
IDLE, LONGEST_REST = 0.001, 7
#: What a view rests that does not exist, or not yet.
FOREVER = -1
#: Tables of points, one for each view.
VIEWS = ("points", "noisy", "waves", "ferns")


class ClassExperts:
    r"""POLA's experts for the multiclass logistic loss, weighted by their likelihood.

    The expert for a radius :math:`\rho` and intervals of length L holds a matrix Y, predicts class
    probabilities softmax(Y z), and after each row takes a step

    .. math:: Y \leftarrow P(Y - \eta \nabla f(Y)), \qquad \eta = \frac{D}{G \sqrt L}
              = \frac{\rho}{\sqrt{2 L}}

    with D = 2 rho and :math:`G = 2\sqrt2`, a bound on the gradients for rows of norm at most 2. P
    projects Y onto the ball once a bound on its trace norm passes 1.5 rho; only probabilities are
    played, and no point of the ball gets farther away, which is all that the regret needs.

    When an interval ends, the expert of the next one of that length starts at the heaviest expert of
    its radius, with the weight of the one before. A share 1/(t+1) of all weight is spread evenly. With
    `adaptive` False experts never restart and shares are :math:`1/(t+1)^2`, as in POLD.

    The guarantee of `TraceNormClassifier`: the logarithmic loss is 1-mixable, so the mixture loses at
    most :math:`\ln(N e)` to any of N experts over the rows s to e. An expert loses at most
    :math:`\lVert Y_s - Z\rVert^2/(2\eta) + \eta G^2 L/2 \le 1.3\, G D \sqrt L` to any Z in its ball on
    each of its intervals, as :math:`\lVert Y_s - Z\rVert \le 2.5 \rho`.

    There may be further views. The second sees the same z and takes every label for drawn at random with
    probability 0.1. The third and fourth see waves and ferns (`RandomViews`). A view with less than a
    thousandth of all weight rests for 1, 3 and then 7 of 8 rounds: its experts neither predict nor learn,
    and keep their weights, as if they had said what the others say (Freund et al. 1997). The bound above
    is for the first view, which never rests; N counts the experts of all.
    """

    STATE = ("points", "norms", "weights")
    OTHERS = (*VIEWS[1:], "rests", "naps", "credits")

    def __init__(
        self,
        radii: tuple[float, ...],
        classes: int,
        features: int,
        adaptive: bool,
        views: int = 1,
    ) -> None:
        kernels()  # compiled now, not in a round
        self.views = views
        self.adaptive = adaptive
        self.radii: Array = np.array(radii)
        self.classes, self.width, self.t = classes, features, 0
        plain = FIRST_LEVELS * len(radii)
        self.points: Array = np.zeros((features, plain * classes))  # a row per entry of z
        self.side = np.sort(radii)[-OTHER_RADII:] if views > 1 else np.zeros(0)
        side = len(LENGTHS) * self.side.size * classes
        self.noisy: Array = np.zeros((features, side))
        self.waves: Array = np.zeros((0, side if views > 2 else 0))
        self.ferns: Array = self.waves.copy()
        self.rests: Indices = np.array([0, 0 if views > 1 else FOREVER, FOREVER, FOREVER])  # rounds
        self.naps: Indices = np.zeros(4, np.int64)  # how long a view rested last
        number = plain + (views - 1) * len(LENGTHS) * self.side.size
        self.norms: Array = np.zeros((2, number))  # bounds on trace norms; squared Frobenius norms
        sizes = np.array([plain, *[len(LENGTHS) * self.side.size] * (views - 1)])
        self.weights: Array = np.repeat(1.0 / sizes, sizes)  # within each view
        self.credits: Array = np.full(views, 1.0 / views)  # weights of the views
        self.set_steps()

    @property
    def plain(self) -> int:
        """Number of experts of the first view."""
        return int(self.points.shape[1] // self.classes)

    @property
    def lengths(self) -> Indices:
        """The interval length of every expert, in rows."""
        first = BLOCK << (LEVEL_BITS * (np.arange(self.plain) // self.radii.size))
        return np.concatenate((first, *[np.repeat(LENGTHS, self.side.size)] * (self.views - 1)))

    @property
    def names(self) -> list[str]:
        views = ("", "doubtful, ", "waves, ", "ferns, ")
        ends = self.plain + np.arange(self.views) * len(LENGTHS) * self.side.size
        kinds = [views[v] for v in ends.searchsorted(np.arange(self.weights.size), "right")]
        each = zip(kinds, self._radii.tolist(), self.lengths.tolist(), strict=True)
        return [f"{kind}radius {radius:g}, {length:,} rows" for kind, radius, length in each]

    def set_steps(self) -> None:
        """Set the radius and the step size of every expert."""
        others = np.resize(self.side, self.weights.size - self.plain)
        self._radii: Array = np.concatenate((np.resize(self.radii, self.plain), others))
        self._lengths = self.lengths.tolist()
        self._steps: Array = self._radii / np.sqrt(2.0 * self.lengths)

    @property
    def shares(self) -> Array:
        """The weight of every expert: that within its view times that of the view."""
        sizes = [self.plain, *[len(LENGTHS) * self.side.size] * (self.views - 1)]
        return np.repeat(self.credits, sizes) * self.weights

    @property
    def tables(self) -> tuple[Array, ...]:
        """The points of the experts, a table for each view."""
        return self.points[: self.width], self.noisy[: self.width], self.waves, self.ferns

    @property
    def scales(self) -> tuple[Array, Array]:
        """The step size and the radius of every expert."""
        return self._steps, self._radii

    def probabilities(self, *rows: Rows) -> Array:
        """Return the probabilities of classes; rows come as the views see them, the first two alike."""
        out = np.zeros((rows[0].number, self.classes))
        kernels().probabilities(
            _sights(rows), self.tables, self.rests, self.credits, self.weights, out
        )
        return out

    def learn(self, rows: Rows, labels: Indices, parts: Array, *others: Rows) -> None:
        """Learn rows of one round of the cover; at its end, restart experts."""
        clock = self.t + 2.0 + np.arange(labels.size)
        shares = 1.0 / clock if self.adaptive else clock**-2.0
        kernels().learn_rows(
            *(_sights((rows, *others)), labels, parts, shares, self._steps, self._radii, SLACK),
            *(self.tables, self.rests, self.credits, self.weights, self.norms),
        )
        self.count(labels.size)

    def count(self, rows: int) -> None:
        """Count rows of one round; at its end, restart experts."""
        self.t += rows
        if self.t % BLOCK == 0:
            self._end_round()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        make_writable(self, (*self.STATE, *self.OTHERS))

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and for more entries of z, with weights 0."""
        if classes > self.classes:
            for name in VIEWS:
                table = getattr(self, name)
                number = table.shape[1] // self.classes
                stacked = table.reshape(len(table), number, self.classes)
                wider = np.pad(stacked, ((0, 0), (0, 0), (0, classes - self.classes)))
                setattr(self, name, wider.reshape(len(wider), number * classes))
            self.classes = classes
        if features > len(self.points):
            room = max(features, 2 * len(self.points))
            self.points, self.noisy = _longer(self.points, room), _longer(self.noisy, room)
        if len(self.waves):  # z is behind them
            self.waves = _longer(self.waves, len(self.waves) + max(features - self.width, 0))
        self.width = max(self.width, features)

    def start_views(self, waves: int, ferns: int) -> None:
        """Let experts see waves and ferns, with so many entries each; 0 for no longer."""
        self.waves = np.zeros((waves, self.waves.shape[1]))
        self.ferns = np.zeros((ferns, self.ferns.shape[1]))
        self.norms[:, self.plain + len(LENGTHS) * self.side.size :] = 0.0
        self.rests[2:], self.naps[2:] = (0 if waves else FOREVER), 0

    def _end_round(self) -> None:
        """Restart the experts whose interval has ended, and add those for longer intervals."""
        first = 0
        for v, table in enumerate(self.tables[: self.views]):
            last, radii = first + table.shape[1] // self.classes, self.side if v else self.radii
            if self.rests[v] == 0:
                sources = self._heaviest(first, last, radii.size)
                if self.adaptive:
                    self._restart(table, first, last, sources)
                if v and self.credits[v] < IDLE:
                    self.naps[v] = self.rests[v] = min(2 * self.naps[v] + 1, LONGEST_REST)
                else:
                    self.naps[v] = 0
            elif self.rests[v] > 0:
                self.rests[v] -= 1
            first = last
        if self.lengths[self.plain - 1] <= self.t:
            self._lengthen()

    def _heaviest(self, first: int, last: int, radii: int) -> Indices:
        """The heaviest expert of every radius in a view, by its place there."""
        # Among equally heavy ones, rounding apart, the one of the longest interval.
        levels = self.weights[first:last].reshape(-1, radii)
        return np.array([near_largest(column)[-1] * radii + r for r, column in enumerate(levels.T)])

    def _restart(self, table: Array, first: int, last: int, sources: Indices) -> None:
        """Let the experts of a view whose interval has ended start at the heaviest ones."""
        number, norms = sources.size, self.norms[:, first:last]
        for place in range(0, last - first, number):
            if self.t % self._lengths[first + place] == 0:
                norms[:, place : place + number] = norms[:, sources]
                kernels().copy_experts(table, sources, place, self.classes)

    def _lengthen(self) -> None:
        """Add experts for longer intervals to the first view."""
        number, plain, points = self.radii.size, self.plain, self.tables[0]
        sources = self._heaviest(0, plain, number)
        starts = points.reshape(self.width, -1, self.classes)[:, sources]
        self.points = np.hstack((points, starts.reshape(self.width, -1)))
        self.norms = np.insert(self.norms, [plain] * number, self.norms[:, sources], axis=1)
        share = number / (plain + number) / (self.t + 1.0)
        self.weights[:plain] *= 1.0 - share
        self.weights = np.insert(self.weights, [plain] * number, share / number)
        self.noisy = self.noisy[: self.width].copy()  # as long as the points
        self.set_steps()

    def project(self) -> None:
        """Project the experts of the linear views onto their balls, and compute their norms."""
        first = 0
        for table in self.tables[:2]:
            for i in range(table.shape[1] // self.classes):
                place = i * self.classes, self.classes
                found = kernels().project_columns(table, *place, self._radii[first + i])
                self.norms[:, first + i] = found
            first += table.shape[1] // self.classes


def _longer(table: Array, rows: int) -> Array:
    """Return the table with rows of zeros below it."""
    longer = np.zeros((rows, table.shape[1]))
    longer[: len(table)] = table
    return longer


_NO_ROWS = Rows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))


def _sights(rows: tuple[Rows, ...]) -> tuple[Any, ...]:
    """Rows as the views see them, none for those that are not given."""
    return tuple(tuple(each) for each in (*rows, _NO_ROWS, _NO_ROWS)[:3])


class ClassLearner(MappedLearner):
    """A feature map and the experts on top of it, with the options of `TraceNormClassifier`."""

    def __init__(
        self,
        radii: Any,
        learner: Any,
        fit_intercept: Any,
        classes: int,
        features: int,
        kind: Any = "random",
        seed: Any = 0,
    ) -> None:
        if learner not in LEARNERS:
            raise ValueError(f'learner must be "pola" or "pold", got {learner!r}')
        if kind not in KINDS:
            raise ValueError(f'features must be "random" or "linear", got {kind!r}')
        self.seed = checks.count(seed or 0, "random_state", least=0, most=(1 << 32) - 1)
        self.map, self.random = FeatureMap(features, bool(fit_intercept)), RandomViews()
        self.experts = ClassExperts(
            *(checked_radii(radii), classes, features + 1, learner == "pola"),
            views=len(VIEWS) if kind == "random" else 1,
        )
        self.renewal = 1  # the round after which the map is recomputed

    @property
    def t(self) -> int:
        return self.experts.t

    def learn(self, rows: Rows, labels: Indices, parts: Array) -> None:
        """Learn rows with weights, up to the next renewal of the map or end of a round at a time."""
        done = 0
        while done < rows.number:
            end = done + min(BLOCK - self.t % BLOCK, self.renewal - self.t)
            own = slice(done, end)
            mapped, *others = self._sights(rows.stretch(done, end), parts[own])
            self.experts.learn(mapped, labels[own], parts[own], *others)
            self._renew()
            done = end

    def _renew(self) -> None:
        """Recompute the maps, if it is time; draw random features at the start."""
        super()._renew()
        if self.t % BLOCK == 0 and self.experts.views > 2:
            if self.t == START and self.map.full and self.map.features:
                self.random.start(self.map, self.seed)
                waves = self.random.offsets.size + 1 + self.experts.width
                self.experts.start_views(waves, self.random.counts.size)
            if self.experts.rests[2] == 0:
                self.random.renew(self.t)

    def _sights(self, rows: Rows, parts: Array | None = None) -> tuple[Rows, ...]:
        """Return rows as the views see them; count them if their weights `parts` are given."""
        z = self.map.rows(rows, parts)
        if not (self.experts.rests[2:] == 0).any():
            return (z,)
        weights = np.zeros(0) if parts is None else parts
        seen = self.random.rows(rows, z, weights, self.map.features, self.experts.rests)
        return tuple(Rows(*each) for each in seen)

    def learn_one(self, places: Indices, values: Array, label: int) -> bool:
        """Learn one row, `in_order`; return False, and do nothing, if a value is out of range."""
        experts, clock = self.experts, self.t + 2.0
        share = 1.0 / clock if experts.adaptive else clock**-2.0
        given = places, values, LARGEST, SMALLEST, self.map.parts
        if experts.views == 1:
            sound = kernels().learn_linear_row(
                *(*given, label, share, *experts.scales, SLACK),
                *(experts.points[: experts.width], experts.weights, experts.norms),
            )
        else:
            sound = kernels().learn_one_row(
                *(*given, self.random.parts, label, share, *experts.scales, SLACK),
                *(experts.tables, experts.rests, experts.credits, experts.weights, experts.norms),
            )
        if sound:
            experts.count(1)
            self._renew()
        return sound

    def predict_one(self, places: Indices, values: Array) -> Array:
        """Return the class probabilities of one row, `in_order`, none if a value is out of range."""
        experts, given = self.experts, (places, values, LARGEST, SMALLEST, self.map.parts)
        if experts.views == 1:
            points = experts.points[: experts.width]
            return kernels().predict_linear_row(*given, points, experts.weights)
        return kernels().predict_one_row(
            *(*given, self.random.parts, experts.tables),
            *(experts.rests, experts.credits, experts.weights),
        )

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row."""
        if rows.number <= CHUNK:
            return self.experts.probabilities(*self._sights(rows))
        parts = [rows.stretch(k, k + CHUNK) for k in range(0, rows.number, CHUNK)]
        return np.concatenate([self.probabilities(part) for part in parts])

    def coefficients(self) -> tuple[Array, Array]:
        """Return the linear experts' mean in units of the features: weights per class, intercepts."""
        experts = self.experts
        both = np.hstack(experts.tables[:2]).reshape(experts.width, -1, experts.classes)
        weights = experts.shares[: both.shape[1]]
        mean = np.einsum("jic,i->jc", both, weights / weights.sum())
        weights, intercepts = self.map.to_features(mean)
        return np.ascontiguousarray(weights.T), intercepts

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers."""
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same classifiers in terms of features.
            old, new, experts = self.map, self.map.diagonal(), self.experts
            if self.t:
                for name, table in zip(VIEWS[:2], experts.tables, strict=False):
                    points = new.from_features(*old.to_features(table))
                    setattr(experts, name, np.ascontiguousarray(points))
                experts.project()
            self.map = new
            self.random.stop()
            experts.start_views(0, 0)
        if features > self.map.features:
            self.map.grow(features)
        self.experts.grow(classes, features + 1)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the numbers and arrays of a saved state."""
        experts = self.experts
        numbers = {
            "radii": experts.radii.tolist(),
            "intercept": self.map.constant > 0.0,
            "adaptive": experts.adaptive,
            "classes": experts.classes,
            "t": experts.t,
            "renewal": self.renewal,
            "views": experts.views,
            "seed": self.seed,
            "wave_renewal": self.random.renewal,
        }
        arrays = {f"experts.{name}": getattr(experts, name) for name in ClassExperts.STATE}
        arrays |= {f"map.{name}": getattr(self.map, name) for name in FeatureMap.STATE}
        arrays["experts.points"] = experts.tables[0]
        if experts.views > 1:
            arrays |= {f"experts.{name}": getattr(experts, name) for name in ClassExperts.OTHERS}
            arrays["experts.noisy"] = experts.tables[1]
        if experts.views > 2:
            arrays |= {f"random.{name}": getattr(self.random, name) for name in RandomViews.STATE}
            waves = self.random.waves
            arrays |= {f"waves.{name}": getattr(waves, name) for name in FeatureMap.STATE}
        return numbers, arrays


def checked_radii(radii: Any) -> tuple[float, ...]:
    """Return the radii as numbers, from one or several, or the default ones for "auto"."""
    if isinstance(radii, str) and radii == "auto":
        return RADII
    given = [] if isinstance(radii, str) else np.atleast_1d(radii).tolist()
    if not given:
        raise ValueError(f'radii must be "auto", a number or several, got {radii!r:.60}')
    found = tuple(checks.positive(radius, "each of radii") for radius in given)
    if not SMALLEST_RADIUS <= min(found) <= max(found) <= LARGEST_RADIUS:
        raise ValueError(
            f"each of radii must lie between {SMALLEST_RADIUS:g} and {LARGEST_RADIUS:g}, got {radii!r}"
        )
    return found


#: Sums of squares of features and of their weights are smaller, and either 0 or larger.
LARGEST_SQUARE, SMALLEST_SQUARE = 1e250, 1e-260
#: Features and their inverse scales are smaller.
LARGEST_SCALE = 1e150
#: For what holds exactly but for rounding.
ROUNDING = 1.0 + 1e-6

#: Options that both classifiers have.
OPTIONS = {
    "radii": Field((str, list, int, float), items=Field((int, float))),
    "learner": Field(str),
    "fit_intercept": Field((bool, int), least=0, most=1),
    "features": Field(str, newer=True),
}
_REAL, _SCALE = np.float64, (-LARGEST_SCALE, LARGEST_SCALE)
_COUNT = Field(int, least=0, below=1 << 53)
NUMBERS = {
    "radii": Field(list, items=Field(float)),
    "intercept": Field(bool),
    "adaptive": Field(bool),
    "classes": Field(int, least=1, below=1 << 53),
    "t": _COUNT,
    "renewal": _COUNT,
    "views": Field(int, least=1, most=len(VIEWS), newer=True),
    "seed": Field(int, least=0, below=1 << 32, newer=True),
    "wave_renewal": Field(int, least=0, below=1 << 53, newer=True),
}
#: Arrays of a learner; there are `full` features with moments, `others` with squares only.
ARRAYS = {
    "map.totals": Field(_REAL, (2,), 0.0, LARGEST_SCALE),
    "map.seen": Field(_REAL, ("features",), 0.0),
    "map.mean": Field(_REAL, ("full",), *_SCALE),
    "map.moments": Field(_REAL, ("full", "full")),
    "map.squares": Field(_REAL, ("others",)),
    "map.centre": Field(_REAL, ("full",), *_SCALE),
    "map.table": Field(_REAL, ("full", "full"), *_SCALE),
    "experts.points": Field(_REAL, ("width", "plain classes")),
    "experts.norms": Field(_REAL, (2, "experts"), 0.0),
    "experts.weights": Field(_REAL, ("experts",), 0.0),
}
#: Those of further views, and of random features: none, or all that there are.
OTHER_ARRAYS = {
    "experts.noisy": Field(_REAL, ("width", "side classes")),
    "experts.waves": Field(_REAL, ("seen_waves", "random classes")),
    "experts.ferns": Field(_REAL, ("leaves", "random classes")),
    "experts.rests": Field(np.int64, (len(VIEWS),), FOREVER, LONGEST_REST),
    "experts.naps": Field(np.int64, (len(VIEWS),), 0, LONGEST_REST),
    "experts.credits": Field(_REAL, ("views",), 0.0),
}
RANDOM_ARRAYS = {
    "random.looks": Field(np.int64, ("waves", LOOKS), 0, below="width"),
    "random.slopes": Field(_REAL, ("waves", LOOKS), *_SCALE),
    "random.offsets": Field(_REAL, ("waves",), *_SCALE),
    "random.tests": Field(np.int64, ("ferns", TESTS), 0, below="features"),
    "random.cuts": Field(_REAL, ("ferns", TESTS)),
    "random.counts": Field(_REAL, ("leaves",), 0.0),
    "random.totals": Field(_REAL, (2,), 0.0, LARGEST_SCALE),
}
_WAVES = {"features": "waves", "full": "waves", "others": "none"}
for _name, _field in list(ARRAYS.items())[:7]:
    _shape = tuple(_WAVES.get(size, size) for size in _field.shape or ())
    RANDOM_ARRAYS[_name.replace("map", "waves")] = replace(_field, shape=_shape)


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    learner: ClassLearner | None,
    keys: Mapping[str, Iterable[Any]],
) -> None:
    """Write options, learner and named lists of keys to one file."""
    numbers, arrays = (None, {}) if learner is None else learner.state()
    radii = np.asarray(options["radii"]).tolist()  # a text stays one
    held = {f"keys.{name}": encode_keys(listed) for name, listed in keys.items()}
    settings = {**options, "radii": radii, "learner_state": numbers}
    write_archive(path, kind, settings, {**arrays, **held})


def read_model(
    path: str | os.PathLike[str], kind: str, options: Mapping[str, Field], keys: tuple[str, ...]
) -> tuple[dict[str, Any], ClassLearner | None, dict[str, list[Any]]]:
    """Return options, learner and keys that `write_model` wrote, if they are of that kind."""
    fields = {**options, "learner_state": Field(dict, optional=True)}
    key_fields = {f"keys.{name}": Field(np.uint8, (None,)) for name in keys}

    def check(archive: Archive) -> None:
        settings, arrays = archive.settings, archive.arrays
        check_fields(fields, settings, kind)
        require(settings["learner"] in LEARNERS, "options")
        require(settings.get("features", "linear") in KINDS, "options")
        checked_radii(settings["radii"])
        numbers, seen = settings["learner_state"], arrays.get("map.seen")
        if numbers is None or seen is None:
            require(numbers is None, "arrays of a classifier")
            check_fields(key_fields, arrays, kind)
            return
        check_fields(NUMBERS, numbers, kind)
        features, t = seen.nbytes // 8, numbers["t"]
        require(t < numbers["renewal"] <= t + renewal_gap(features, t), "rounds of a classifier")
        levels = FIRST_LEVELS
        while BLOCK << (LEVEL_BITS * (levels - 1)) <= t:  # the next joins once that is played
            levels += 1
        full = features if features <= FULL_FEATURES else 0
        sizes = {"features": features, "full": full, "others": features - full}
        sizes |= {"width": features + 1, "classes": numbers["classes"]}
        radii, views = len(checked_radii(numbers["radii"])), numbers.get("views", 1)
        side = len(LENGTHS) * min(radii, OTHER_RADII)
        sizes |= {"plain": levels * radii, "side": side, "random": side if views > 2 else 0}
        sizes |= {"experts": levels * radii + (views - 1) * side, "views": views, "none": 0}
        drawn = "random.looks" in arrays and arrays["random.looks"].shape[0] > 0
        sizes |= {"waves": WAVES if drawn else 0, "ferns": FERNS if drawn else 0}
        sizes["leaves"] = sizes["ferns"] << TESTS
        sizes["seen_waves"] = WAVES + 1 + features + 1 if drawn else 0
        expected = ARRAYS | (OTHER_ARRAYS if views > 1 else {}) | key_fields
        check_fields(expected | (RANDOM_ARRAYS if views > 2 else {}), arrays, kind, **sizes)

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        settings, arrays = archive.settings, archive.arrays
        held = {name: distinct_keys(arrays.pop(f"keys.{name}")) for name in keys}
        numbers = settings.pop("learner_state")
        settings.setdefault("features", "linear")  # files from before there were random ones
        return settings, None if numbers is None else _restored(numbers, arrays), held


def check_map(given: FeatureMap) -> None:
    """Refuse a map, read from a file, with scales that could leave the range of numbers."""
    moments, seen, (weight, lengths) = given.moments, given.seen, given.totals
    squares = np.concatenate((moments.diagonal(), given.squares))
    in_range = (squares == 0.0) | ((squares >= SMALLEST_SQUARE) & (squares <= LARGEST_SQUARE))
    require(in_range.all(), "squares of features")
    # Cauchy and Schwarz: correlations are at most 1.
    roots = np.sqrt(moments.diagonal())
    lower = np.abs(np.tril(moments, -1))
    require((lower <= ROUNDING * roots * roots[:, None]).all(), "moments of features")
    require(weight > 0.0 or (lengths == 0.0 and not squares.any()), "totals")
    require((seen <= ROUNDING * weight).all(), "totals")
    require((seen[squares > 0.0] >= SMALLEST_WEIGHT / 2).all(), "totals")


def _restored(numbers: dict[str, Any], arrays: dict[str, Array]) -> ClassLearner:
    """Return the learner of a state whose parts have been checked one by one, if they fit together."""
    method = "pola" if numbers["adaptive"] else "pold"
    options = numbers["radii"], method, numbers["intercept"], numbers["classes"], 0
    learner = ClassLearner(*options, seed=numbers.get("seed", 0))
    views = numbers.get("views", 1)
    radii = checked_radii(numbers["radii"])
    experts = ClassExperts(radii, numbers["classes"], 0, method == "pola", views)
    learner.experts, learner.renewal = experts, numbers["renewal"]
    learner.random.renewal = numbers.get("wave_renewal", 0)
    owners = {"map": learner.map, "experts": experts, "random": learner.random}
    owners["waves"] = learner.random.waves
    for name, array in arrays.items():
        part, _, own = name.partition(".")
        setattr(owners[part], own, array)
    learner.map.full = learner.map.mean.size == learner.map.seen.size
    experts.t, experts.width = numbers["t"], len(experts.points)
    experts.set_steps()
    for each in (learner.map, learner.random.waves):
        check_map(each)
    require(experts.rests[0] == 0, "rests")
    drawn = learner.random.offsets.size > 0
    require(drawn or (experts.rests[2:] == FOREVER).all(), "rests")
    require(learner.map.full or not drawn, "random features")
    # No matrix is larger than experts let it grow.
    require(abs(experts.credits.sum() - 1.0) < 1e-6, "weights of views")
    first = 0
    for table in experts.tables[:views]:
        last = first + table.shape[1] // experts.classes
        require(abs(experts.weights[first:last].sum() - 1.0) < 1e-6, "weights of experts")
        limits = ROUNDING * (1.0 + SLACK) * experts.scales[1][first:last]
        require((experts.norms[0, first:last] <= limits).all(), "norms of experts")
        stacked = table.reshape(len(table), last - first, experts.classes)
        largest = np.abs(stacked).max(axis=(0, 2), initial=0.0)
        require((largest <= limits).all(), "experts")  # so that squares have a range
        squares = np.einsum("jic,jic->i", stacked, stacked)
        require((squares <= limits**2).all(), "experts")
        first = last
    return learner
