"""The experts behind the classifiers, and the saved state of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from driftwolfe.ensemble import GeometricCover
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
_COVER = GeometricCover()


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
    """

    STATE = ("points", "norms", "weights")

    def __init__(
        self, radii: tuple[float, ...], classes: int, features: int, adaptive: bool
    ) -> None:
        kernels()  # compiled now, not in a round
        self.adaptive = adaptive
        self.radii: Array = np.array(radii)
        self.classes, self.width, self.t = classes, features, 0
        number = FIRST_LEVELS * len(radii)
        self.points: Array = np.zeros((features, number * classes))  # a row per entry of z
        self.norms: Array = np.zeros((2, number))  # bounds on trace norms; squared Frobenius norms
        self.weights: Array = np.full(number, 1.0 / number)
        self.set_steps()

    @property
    def lengths(self) -> Indices:
        """The interval length of every expert, in rows."""
        levels = np.arange(self.weights.size) // self.radii.size
        return BLOCK << (LEVEL_BITS * levels)

    @property
    def names(self) -> list[str]:
        pairs = zip(self._radii.tolist(), self.lengths.tolist(), strict=True)
        return [f"radius {radius:g}, {length:,} rows" for radius, length in pairs]

    def set_steps(self) -> None:
        """Set the radius and the step size of every expert."""
        self._radii: Array = np.resize(self.radii, self.weights.size)
        self._steps: Array = self._radii / np.sqrt(2.0 * self.lengths)

    @property
    def scales(self) -> tuple[Array, Array]:
        """The step size and the radius of every expert."""
        return self._steps, self._radii

    def probabilities(self, rows: Rows) -> Array:
        out = np.zeros((rows.number, self.classes))
        kernels().probabilities(*rows, self.points, self.weights, out)
        return out

    def learn(self, rows: Rows, labels: Indices, parts: Array) -> None:
        """Learn rows of one round of the cover; at its end, restart experts."""
        clock = self.t + 2.0 + np.arange(labels.size)
        shares = 1.0 / clock if self.adaptive else clock**-2.0
        kernels().learn_rows(
            *(*rows, labels, parts, shares, self._steps, self._radii, SLACK),
            *(self.points[: self.width], self.weights, self.norms),
        )
        self.count(labels.size)

    def count(self, rows: int) -> None:
        """Count rows of one round; at its end, restart experts."""
        self.t += rows
        if self.t % BLOCK == 0:
            self._end_round()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        make_writable(self, self.STATE)

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and for more entries of z, with weights 0."""
        if classes > self.classes:
            stacked = self.points.reshape(len(self.points), -1, self.classes)
            wider = np.pad(stacked, ((0, 0), (0, 0), (0, classes - self.classes)))
            self.points, self.classes = wider.reshape(len(wider), -1), classes
        if features > len(self.points):
            room = max(features, 2 * len(self.points))
            wider = np.zeros((room, self.points.shape[1]))
            wider[: len(self.points)] = self.points
            self.points = wider
        self.width = max(self.width, features)

    def _end_round(self) -> None:
        """Restart the experts whose interval has ended, and add those for longer intervals."""
        lengths = _COVER.starting(self.t // BLOCK) if self.adaptive else []
        # Among equally heavy ones, rounding apart, the one of the longest interval.
        number = self.radii.size
        levels = self.weights.reshape(-1, number)
        heaviest = np.array([near_largest(column)[-1] for column in levels.T])
        sources = heaviest * number + np.arange(number)
        points = self.points[: self.width]
        for length in lengths[::LEVEL_BITS]:
            first = (length.bit_length() - 1) // LEVEL_BITS * number
            if first < self.weights.size:
                self.norms[:, first : first + number] = self.norms[:, sources]
                kernels().copy_experts(points, sources, first, self.classes)
        if self.lengths[-1] <= self.t:
            starts = points.reshape(self.width, -1, self.classes)[:, sources]
            self.points = np.hstack((points, starts.reshape(self.width, -1)))
            self.norms = np.hstack((self.norms, self.norms[:, sources]))
            share = number / (self.weights.size + number) / (self.t + 1.0)
            new = np.full(number, share / number)
            self.weights = np.concatenate(((1.0 - share) * self.weights, new))
            self.set_steps()

    def project(self) -> None:
        """Project all experts onto their balls, and compute their norms."""
        for i, radius in enumerate(self._radii.tolist()):
            place = i * self.classes, self.classes
            self.norms[:, i] = kernels().project_columns(self.points[: self.width], *place, radius)


class ClassLearner(MappedLearner):
    """A feature map and the experts on top of it, with the options of `TraceNormClassifier`."""

    def __init__(
        self, radii: Any, learner: Any, fit_intercept: Any, classes: int, features: int
    ) -> None:
        if learner not in LEARNERS:
            raise ValueError(f'learner must be "pola" or "pold", got {learner!r}')
        self.map = FeatureMap(features, bool(fit_intercept))
        self.experts = ClassExperts(checked_radii(radii), classes, features + 1, learner == "pola")
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
            mapped = self.map.rows(rows.stretch(done, end), parts[own])
            self.experts.learn(mapped, labels[own], parts[own])
            self._renew()
            done = end

    def learn_one(self, places: Indices, values: Array, label: int) -> bool:
        """Learn one row, `in_order`; return False, and do nothing, if a value is out of range."""
        experts, clock = self.experts, self.t + 2.0
        sound = kernels().learn_one_row(
            *(places, values, LARGEST, SMALLEST, self.map.parts, label),
            *(1.0 / clock if experts.adaptive else clock**-2.0, *experts.scales, SLACK),
            *(experts.points[: experts.width], experts.weights, experts.norms),
        )
        if sound:
            experts.count(1)
            self._renew()
        return sound

    def predict_one(self, places: Indices, values: Array) -> Array:
        """Return the class probabilities of one row, `in_order`, none if a value is out of range."""
        experts = self.experts
        return kernels().predict_one_row(
            *(places, values, LARGEST, SMALLEST, self.map.parts, experts.points),
            *(experts.weights, experts.classes),
        )

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row."""
        if rows.number <= CHUNK:
            return self.experts.probabilities(self.map.rows(rows))
        parts = [rows.stretch(k, k + CHUNK) for k in range(0, rows.number, CHUNK)]
        return np.concatenate([self.probabilities(part) for part in parts])

    def coefficients(self) -> tuple[Array, Array]:
        """Return the experts' mean in units of the features: a row of weights per class, intercepts."""
        experts = self.experts
        stacked = experts.points[: experts.width].reshape(experts.width, -1, experts.classes)
        mean = np.einsum("jic,i->jc", stacked, experts.weights)
        weights, intercepts = self.map.to_features(mean)
        return np.ascontiguousarray(weights.T), intercepts

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers."""
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same classifiers in terms of features.
            weights, intercepts = self.map.to_features(self.experts.points[: self.experts.width])
            self.map = self.map.diagonal()
            if self.t:
                points = self.map.from_features(weights, intercepts)
                self.experts.points = np.ascontiguousarray(points)
                self.experts.project()
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
        }
        arrays = {f"map.{name}": getattr(self.map, name) for name in FeatureMap.STATE}
        arrays |= {f"experts.{name}": getattr(experts, name) for name in ClassExperts.STATE}
        return numbers, arrays | {"experts.points": experts.points[: experts.width]}


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
    "experts.points": Field(_REAL, ("width", "experts classes")),
    "experts.norms": Field(_REAL, (2, "experts"), 0.0),
    "experts.weights": Field(_REAL, ("experts",), 0.0),
}


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
        sizes["experts"] = levels * len(checked_radii(numbers["radii"]))
        check_fields(ARRAYS | key_fields, arrays, kind, **sizes)

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        settings, arrays = archive.settings, archive.arrays
        held = {name: distinct_keys(arrays.pop(f"keys.{name}")) for name in keys}
        numbers = settings.pop("learner_state")
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
    learner = ClassLearner(numbers["radii"], method, numbers["intercept"], numbers["classes"], 0)
    for name, array in arrays.items():
        part, _, own = name.partition(".")
        setattr(getattr(learner, part), own, array)
    learner.map.full = learner.map.mean.size == learner.map.seen.size
    experts, learner.renewal = learner.experts, numbers["renewal"]
    experts.t, experts.width = numbers["t"], len(experts.points)
    experts.set_steps()
    check_map(learner.map)
    # No matrix is larger than experts let it grow.
    points, weights = experts.points, experts.weights
    require(abs(weights.sum() - 1.0) < 1e-6, "weights of experts")
    limits = ROUNDING * (1.0 + SLACK) * np.resize(experts.radii, weights.size)
    require((experts.norms[0] <= limits).all(), "norms of experts")
    stacked = points.reshape(len(points), weights.size, -1)
    largest = np.maximum(stacked.max(axis=(0, 2)), -stacked.min(axis=(0, 2)))
    require((largest <= limits).all(), "experts")  # so that squares have a range
    squares = np.einsum("jic,jic->i", stacked, stacked)
    require((squares <= limits**2).all(), "experts")
    return learner
