"""The experts behind the regressors, and the saved state of these."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from driftwolfe.estimators.classifier_experts import checked_radii
from driftwolfe.estimators.core.ids import distinct_keys, encode_keys
from driftwolfe.estimators.core.rows import (
    FULL_FEATURES,
    LARGEST,
    MAP_FIELDS,
    SMALLEST_WEIGHT,
    UNBOUND,
    FeatureMap,
    MappedLearner,
    SparseRows,
    bound,
    check_map,
    make_writable,
    renewal_gap,
    weights_of_rows,
)
from driftwolfe.points import checks
from driftwolfe.points.devices import svd
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.orthogonal import threshold_falling
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, require, write_archive

kernels = compiled("driftwolfe.estimators.regressor_kernels")

#: Default radii, in units of the deviation of targets for a row of usual length.
RADII = (4.0, 32.0)
#: Interval lengths whose best step sizes the experts in balls have.
LENGTHS = (256, 4096, 65_536)
_NO_PARTS, _NO_TABLE = np.zeros(0), np.zeros((0, 0))
#: Random features use up to so many features each.
MOST_INPUTS = 3


class RegressionLearner(MappedLearner):
    r"""A feature map and the experts on top of it, with the options of `TraceNormRegressor`.

    The expert for a radius :math:`\rho` and lengths L holds a matrix Y, predicts
    :math:`\bar y + s Y z` with :math:`\bar y, s` the mean and deviation of the targets so far, and
    after each row takes a gradient step of size :math:`\rho/\sqrt{m L}` for m outputs, projected onto
    the ball once a bound on its trace norm passes 1.5 rho.
    """

    _bound: tuple[Any, ...] = UNBOUND

    def __init__(self, radii: Any, random: int, seed: int, features: int, outputs: int) -> None:
        self.radii = _checked_radii(radii)
        self.random = checks.count(random, "random_features", least=0, most=1 << 12)
        self.seed = checks.count(seed, "random_state", least=0, most=(1 << 32) - 1)
        self.map = FeatureMap(features, True)
        self.renewal = 1  # the round after which the map is recomputed
        loops, d = kernels(), features if features <= FULL_FEATURES else 0
        width, windows = d + self.random if d else 0, 2 * len(loops.WINDOWS)
        balls = len(self.radii) * len(LENGTHS)
        experts = loops.PLAIN + balls
        self.state = loops.State(
            clock=np.zeros(1, np.int64),
            targets=np.zeros((5, outputs)),
            weights=np.full((outputs, experts), 1.0 / experts),
            points=np.zeros((features + 1, balls * outputs)),
            norms=np.zeros((2, balls)),
            row=np.zeros(d),
            **self._drawn(d),
            totals=np.zeros(windows),
            ages=np.zeros(windows, np.int64),
            means=np.zeros((windows, width)),
            centres=np.zeros((windows, outputs)),
            moments=np.zeros((windows, width, width)),
            **{name: np.zeros((windows, width, outputs)) for name in ("cross", "narrow", "wide")},
        )
        self._set_steps()

    def _drawn(self, features: int) -> dict[str, Array]:
        """Draw the directions of random features: each uses one to three features."""
        rng = np.random.default_rng(self.seed)
        number = self.random if features else 0
        directions = np.zeros((features, number))
        for column in directions.T:
            used = rng.permutation(features)[: rng.integers(1, MOST_INPUTS + 1)]
            column[used] = rng.normal(size=used.size) / np.sqrt(used.size)
        return {"directions": directions, "offsets": rng.uniform(0.0, 2.0 * np.pi, number)}

    def _set_steps(self) -> None:
        """Set the radius and the step size of every expert in a ball."""
        self._radii: Array = np.repeat(self.radii, len(LENGTHS))
        self._steps: Array = self._radii / np.sqrt(
            self.outputs * np.resize(LENGTHS, self._radii.size)
        )

    @property
    def t(self) -> int:
        return int(self.state.clock[0])

    @property
    def outputs(self) -> int:
        return len(self.state.weights)

    @property
    def names(self) -> list[str]:
        """The names of the experts."""
        loops, found = kernels(), ["last target"]
        for k, window in enumerate(loops.WINDOWS):
            rows = f"{window:g} rows" if window < np.inf else "all rows"
            wide = ["ridge with random features"] if k >= loops.FIRST_WIDE else []
            kinds = ("mean", "ridge", *wide, "ridge of changes")
            found += [f"{kind}, {rows}" for kind in kinds]
        return found + [f"radius {r:g}, {n:,} rows" for r in self.radii for n in LENGTHS]

    def _learn(self, rows: SparseRows, targets: Array, parts: Array) -> bool:
        done = 0
        while done < rows.number:
            found = self._follow(rows, targets, parts, done, _NO_TABLE)
            if found == done:
                return False
            if found < 0:
                self._project()
            done = abs(found)
        return True

    def _project(self) -> None:
        """Project the experts in balls that are too far outside."""
        norms, m = self.state.norms, self.outputs
        for i in (norms[0] > (1.0 + kernels().SLACK) * self._radii).nonzero()[0]:
            own = self.state.points[:, i * m : (i + 1) * m]
            left, values, right = svd(own)
            kept = threshold_falling(values, self._radii[i])
            own[:] = left * kept @ right
            norms[:, i] = kept.sum(), (kept * kept).sum()

    def learn_one(self, row: SparseRows, targets: Array) -> bool:
        sound = all(abs(each) <= LARGEST for each in targets[0].tolist())
        return sound and super().learn_one(row, targets)

    def predict(self, rows: SparseRows) -> Array:
        """Return the predictions for every row, a column for each output; none if one is out of range."""
        out, mapped = np.empty((rows.number, self.outputs)), self.mapped(rows, _NO_PARTS)
        return out[: self._follow(mapped, _NO_TABLE, _NO_PARTS, 0, out) if mapped else 0]

    def _follow(
        self, rows: SparseRows, targets: Array, parts: Array, begin: int, out: Array
    ) -> int:
        """Learn rows, or, where there are no weights, predict them; return what the loop returns."""
        held = (*self.state, *self.map.held, self._steps, self._radii)
        _, at, spare = self._bound = bound(self._bound, held, self._sizes)
        spare = spare if parts.size else np.empty(spare.size)  # several threads may predict
        return kernels().follow.unchecked(*rows, targets, parts, begin, at, out, spare)

    def _sizes(self) -> tuple[list[int], int]:
        """Return the sizes that the loop is given, and that of working memory."""
        (d, random), (outputs, experts) = self.state.directions.shape, self.state.weights.shape
        width, balls = d + random, self._radii.size
        row = max(width, d + 1, experts, balls * outputs)
        sizes = [d, random, outputs, experts, balls, row, int(self.map.full)]
        return sizes, 9 * row + width * (width + outputs)

    def grow(self, features: int) -> None:
        """Make room for more features, which were 0 so far; random ones do not use them."""
        known = self.map.features
        if features <= known:
            return
        points = np.zeros((max(features + 1, 2 * known), self.state.points.shape[1]))
        points[: known + 1] = self.state.points[: known + 1]
        self.state = self.state._replace(points=points)
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same experts in balls; the others keep only means.
            weights, intercepts = self.map.to_features(points[: known + 1])
            self.map = self.map.diagonal()
            if self.t:
                points[: known + 1] = self.map.from_features(weights, intercepts)
                self.state.norms[0] = np.inf
                self._project()
            self._move(0)
        elif self.map.full:
            self._move(features)
        self.map.grow(features)

    def _move(self, features: int) -> None:
        """Make room for so many features in all windows, or take it away for none."""
        old, state = self.state.row.size, self.state
        if not old:  # nothing is known of random features either
            state = state._replace(offsets=self._drawn(features)["offsets"])
        width = features + state.offsets.size if features else 0
        kept = np.r_[:old, features : features + state.offsets.size] if features else np.r_[:0]
        wider: dict[str, Array] = {"row": np.zeros(features)}
        wider["row"][: min(old, features)] = state.row[:features]
        wider["directions"] = np.zeros((features, state.offsets.size if features else 0))
        if old and features:
            wider["directions"][:old] = state.directions
        elif features:
            wider["directions"] = self._drawn(features)["directions"]
        else:
            wider["offsets"] = np.zeros(0)
        for name in ("means", "moments", "cross", "narrow", "wide"):
            given = getattr(state, name)
            axes = 2 if name == "moments" else 1
            shape = (len(given), *[width] * axes, *given.shape[1 + axes :])
            wider[name] = np.zeros(shape)
            if old and features:
                places: Any = (slice(None), *np.ix_(*[kept] * axes))
                wider[name][places] = given
        self.state = state._replace(**wider)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "state": tuple(self.state), "_bound": UNBOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.state = kernels().State(*(np.array(each) for each in self.state))
        make_writable(self, ("_steps", "_radii"))


def checked_weights(given: Any, number: int, what: str) -> tuple[Indices, Array]:
    """Return the rows of positive weight, and their weights; one number is for all rows, None is 1."""
    weights = weights_of_rows(1.0 if given is None else given, number, what)
    order = (weights >= SMALLEST_WEIGHT).nonzero()[0]
    return order, weights[order]


def _checked_radii(radii: Any) -> tuple[float, ...]:
    """Return the radii as numbers, from one or several, or the default ones for "auto"."""
    default = isinstance(radii, str) and radii == "auto"
    return RADII if default else checked_radii(radii)


#: Options that both regressors have.
OPTIONS = {
    "radii": Field((str, list, int, float), items=Field((int, float))),
    "random_features": Field(int, least=0),
    "random_state": Field(int, least=0, below=1 << 32),
}
_REAL, _COUNT = np.float64, Field(int, least=0, below=1 << 53)
_NUMBERS = {"outputs": Field(int, least=1, below=1 << 31), "renewal": _COUNT}
#: Features and targets are smaller, their inverse scales too.
_LARGE = (-1e150, 1e150)
_ARRAYS = {
    **MAP_FIELDS,
    "clock": Field(np.int64, (1,), 0, below=1 << 53),
    "targets": Field(_REAL, (5, "outputs"), -1e250, 1e250),
    "weights": Field(_REAL, ("outputs", "experts"), 0.0, 1.0),
    "points": Field(_REAL, ("mapped", "balls outputs"), *_LARGE),
    "norms": Field(_REAL, (2, "balls"), 0.0),
    "row": Field(_REAL, ("full",), *_LARGE),
    "directions": Field(_REAL, ("full", "random"), *_LARGE),
    "offsets": Field(_REAL, ("random",), *_LARGE),
    "totals": Field(_REAL, ("windows",), 0.0),
    "ages": Field(np.int64, ("windows",), 0),
    "means": Field(_REAL, ("windows", "width")),
    "centres": Field(_REAL, ("windows", "outputs"), *_LARGE),
    "moments": Field(_REAL, ("windows", "width", "width")),
    "cross": Field(_REAL, ("windows", "width", "outputs")),
    "narrow": Field(_REAL, ("windows", "width", "outputs")),
    "wide": Field(_REAL, ("windows", "width", "outputs")),
}


def write_model(
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    learner: RegressionLearner | None,
    names: Iterable[Any],
) -> None:
    """Write options, learner and names of features to one file."""
    numbers, arrays = None, {"names": encode_keys(names)}
    if learner is not None:
        numbers = {"outputs": learner.outputs, "renewal": learner.renewal}
        arrays |= {f"map.{name}": getattr(learner.map, name) for name in FeatureMap.STATE}
        arrays |= learner.state._asdict()
        arrays["points"] = learner.state.points[: learner.map.features + 1]
    radii = np.asarray(options["radii"]).tolist()  # a text stays one
    settings = {**options, "radii": radii, "learner_state": numbers}
    write_archive(path, kind, settings, arrays)


def read_model(
    path: str | os.PathLike[str], kind: str, options: Mapping[str, Field]
) -> tuple[dict[str, Any], RegressionLearner | None, list[Any]]:
    """Return options, learner and names that `write_model` wrote, if they are of that kind."""
    fields = {**options, "learner_state": Field(dict, optional=True)}

    def check(archive: Archive) -> None:
        settings, arrays, own = (
            archive.settings,
            archive.arrays,
            {"names": Field(np.uint8, (None,))},
        )
        check_fields(fields, settings, kind)
        numbers, seen = settings["learner_state"], arrays.get("map.seen")
        if numbers is None or seen is None:
            require(numbers is None, "arrays of a regressor")
            check_fields(own, arrays, kind)
            return
        check_fields(_NUMBERS, numbers, kind)
        features = seen.nbytes // 8
        full = features if features <= FULL_FEATURES else 0
        random = settings["random_features"] if full else 0
        sizes = {"features": features, "full": full, "others": features - full, "random": random}
        sizes |= {"mapped": features + 1, "width": full + random, "outputs": numbers["outputs"]}
        sizes["balls"] = len(_checked_radii(settings["radii"])) * len(LENGTHS)
        sizes["experts"] = sizes["balls"] + kernels().PLAIN
        sizes["windows"] = 2 * len(kernels().WINDOWS)
        check_fields(_ARRAYS | own, arrays, kind, **sizes)

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        settings, arrays = archive.settings, archive.arrays
        names, numbers = distinct_keys(arrays.pop("names")), settings.pop("learner_state")
        if numbers is None:
            return settings, None, names
        return settings, _restored(settings, numbers, arrays), names


def _restored(
    settings: dict[str, Any], numbers: dict[str, Any], arrays: dict[str, Array]
) -> RegressionLearner:
    """Return the learner of a state whose parts have been checked one by one, if they fit together."""
    radii, random, seed = (settings[name] for name in ("radii", "random_features", "random_state"))
    learner = RegressionLearner(radii, random, seed, 0, numbers["outputs"])
    for name in FeatureMap.STATE:
        setattr(learner.map, name, arrays.pop(f"map.{name}"))
    learner.map.full = learner.map.mean.size == learner.map.seen.size
    learner.state, learner.renewal = kernels().State(**arrays), numbers["renewal"]
    check_map(learner.map)
    t, gap = learner.t, renewal_gap(learner.map.features, learner.t)
    require(t < learner.renewal <= t + gap, "rounds of a regressor")
    require((abs(learner.state.weights.sum(axis=1) - 1.0) < 1e-6).all(), "weights of experts")
    low, high, last, error, squares = learner.state.targets
    require(((low <= last) & (last <= high) & (error >= 0.0) & (squares >= 0.0)).all(), "targets")
    return learner
