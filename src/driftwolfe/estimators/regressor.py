"""What the regressors learn with."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from driftwolfe.estimators.core.models import BLOCK, NO_PARTS, NO_TABLE, SLACK, MappedLearner
from driftwolfe.estimators.core.rows import (
    FULL_FEATURES,
    LARGEST,
    LARGEST_SCALE,
    SMALLEST_WEIGHT,
    SparseRows,
    longer,
    weights_of_rows,
)
from driftwolfe.points import checks
from driftwolfe.points.devices import svd
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.lanczos import threshold_falling
from driftwolfe.state import Field, declared
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.regressor_kernels")

#: Radii of balls, in units of the deviation of targets for a row of usual length.
RADII = (4.0, 32.0)
#: Interval lengths whose best step sizes the experts in balls have.
LENGTHS = (256, 4096, 65_536)
#: Random features use up to so many features each; their number, as files have it.
MOST_INPUTS, OPTION = 3, Field(int, least=0, most=1 << 12)
_REAL, _WINDOWS = np.float64, ("windows",)
#: Arrays with a row for each feature, and for each window and feature.
_BY_FEATURE, _BY_WINDOW = ("directions",), ("means", "moments", "cross", "narrow", "wide")
#: Features and targets are smaller, their inverse scales too.
_LARGE = (-LARGEST_SCALE, LARGEST_SCALE)


class RegressionState(NamedTuple):
    """All that is learned, but for the feature map. Windows of changes follow the others."""

    clock: Annotated[Indices, Field(np.int64, (1,), 0, below=1 << 53)]  # rows learned
    # Lowest, highest, last; mean error; squared deviations: a column for each output.
    targets: Annotated[Array, Field(_REAL, (5, "outputs"), -1e250, 1e250)]
    weights: Annotated[Array, Field(_REAL, ("outputs", "experts"), 0.0, 1.0, sums=True)]
    # Experts in balls: a row for each mapped feature, outputs within experts.
    points: Annotated[Array, Field(_REAL, ("mapped", "balls outputs"), *_LARGE)]
    norms: Annotated[Array, Field(_REAL, (2, "balls"), 0.0)]  # bounds on trace norms; squared norms
    directions: Annotated[Array, Field(_REAL, ("full", "drawn"), *_LARGE)]  # of random features
    offsets: Annotated[Array, Field(_REAL, ("drawn",), *_LARGE)]
    totals: Annotated[Array, Field(_REAL, _WINDOWS, 0.0)]  # sums of the weights of rows
    ages: Annotated[Indices, Field(np.int64, _WINDOWS, 0)]  # rows since the last fit
    means: Annotated[Array, Field(_REAL, (*_WINDOWS, "width"))]  # of features, random ones last
    centres: Annotated[Array, Field(_REAL, (*_WINDOWS, "outputs"), *_LARGE)]  # means of targets
    moments: Annotated[Array, Field(_REAL, (*_WINDOWS, "width", "width"))]  # lower triangles
    cross: Annotated[Array, Field(_REAL, (*_WINDOWS, "width", "outputs"))]  # features and targets
    # Coefficients without random features, and with them.
    narrow: Annotated[Array, Field(_REAL, (*_WINDOWS, "width", "outputs"))]
    wide: Annotated[Array, Field(_REAL, (*_WINDOWS, "width", "outputs"))]
    losses: Annotated[Array, Field(_REAL, (BLOCK,))]  # of the rows of this block: mean errors


class RegressionLearner(MappedLearner):
    r"""A feature map and the experts on top of it: see `TraceNormRegressor`.

    The expert for a radius :math:`\rho` and lengths L holds a matrix Y, predicts
    :math:`\bar y + s Y z` with :math:`\bar y, s` the mean and deviation of the targets so far, and
    after each row takes a gradient step of size :math:`\rho/\sqrt{m L}` for m outputs, projected onto
    the ball once a bound on its trace norm passes 1.5 rho.
    """

    random: Annotated[int, OPTION]  # number of random features
    state: RegressionState

    def __init__(self, seed: int, features: int, outputs: int, random: int = 64) -> None:
        self.random = checks.count(random, "random_features", least=0, most=1 << 12)
        super().__init__(features, seed)
        self.state = self._empty(features, outputs)
        self.derive()

    def _empty(self, features: int, outputs: int) -> RegressionState:
        """Return the state before the first row, with random features of one to three features each."""
        rng = np.random.default_rng(self.seed)
        full = features if features <= FULL_FEATURES else 0
        drawn, balls = self.random if full else 0, len(RADII) * len(LENGTHS)
        sizes = {"outputs": outputs, "experts": kernels().PLAIN + balls, "mapped": features + 1}
        sizes |= {"balls": balls, "balls outputs": balls * outputs, "full": full, "drawn": drawn}
        sizes |= {"windows": 2 * len(kernels().WINDOWS), "width": full + drawn}
        fields = cast(dict[str, Field], declared(RegressionState)).items()
        shapes = {
            name: [sizes.get(size, size) for size in field.shape or ()] for name, field in fields
        }
        state = RegressionState(**{name: np.zeros(shapes[name], own.kind) for name, own in fields})
        for column in state.directions.T:
            used = rng.permutation(full)[: rng.integers(1, MOST_INPUTS + 1)]
            column[used] = rng.normal(size=used.size) / np.sqrt(used.size)
        state.offsets[:] = rng.uniform(0.0, 2.0 * np.pi, drawn)
        state.weights[:] = 1.0 / sizes["experts"]
        return state

    def derive(self) -> None:
        # The radius and the step size of every expert in a ball.
        self._radii: Array = np.repeat(RADII, len(LENGTHS))
        self._limits = (1.0 + SLACK) * self._radii
        lengths = np.resize(LENGTHS, self._radii.size)
        self._steps: Array = self._radii / np.sqrt(self.outputs * lengths)

    def check(self) -> None:
        super().check()
        loops, state, full = kernels(), self.state, self.map.mean.size
        drawn, balls = self.random if full else 0, self._radii.size
        sizes = len(state.points), state.norms.shape[1], state.offsets.size, state.totals.size
        expected = self.map.features + 1, balls, drawn, 2 * len(loops.WINDOWS)
        require(sizes == expected and balls > 0, "features or experts")
        require(state.weights.shape[1] == loops.PLAIN + balls and self.outputs > 0, "experts")
        require(state.means.shape[1] == full + drawn, "features")
        low, high, last, error, squares = state.targets
        ordered = (low <= last) & (last <= high) & (error >= 0.0) & (squares >= 0.0)
        require(ordered.all(), "targets")

    @property
    def t(self) -> int:
        return int(self.state.clock.item(0))

    @property
    def losses(self) -> Array:
        return self.state.losses

    @property
    def outputs(self) -> int:
        return len(self.state.weights)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.map.features,)

    @property
    def expert_weights(self) -> Array:
        return self.state.weights.copy()

    @property
    def names(self) -> list[str]:
        loops, found = kernels(), ["last target"]
        for k, window in enumerate(loops.WINDOWS):
            rows = f"{window:g} rows" if window < np.inf else "all rows"
            wide = ["ridge with random features"] if k >= loops.FIRST_WIDE else []
            kinds = ("mean", "ridge", *wide, "ridge of changes")
            found += [f"{kind}, {rows}" for kind in kinds]
        return found + [f"radius {r:g}, {n:,} rows" for r in RADII for n in LENGTHS]

    def _ended(self, t: int) -> bool:
        return bool((self.state.norms[0] <= self._limits).all())

    def project(self, limits: Any) -> None:
        norms, m = self.state.norms, self.outputs
        for i in (norms[0] > limits).nonzero()[0]:
            own = self.state.points[:, i * m : (i + 1) * m]
            left, values, right = svd(own)
            kept = threshold_falling(values, self._radii[i])
            own[:] = left * kept @ right
            norms[:, i] = kept.sum(), (kept * kept).sum()

    def predict(self, rows: SparseRows) -> Array:
        out, mapped = np.empty((rows.number, self.outputs)), self.mapped(rows, NO_PARTS)
        return out[: self._follow(mapped, NO_TABLE, NO_PARTS, 0, out) if mapped else 0]

    def _follow(
        self, rows: SparseRows, targets: Array, parts: Array, begin: int, out: Array
    ) -> int:
        at, spare = self._given(parts.size > 0)
        return kernels().follow.unchecked(*rows, targets, parts, begin, at, out, spare)

    def _held(self) -> tuple[Any, ...]:
        return self.state, *self.map.held, self._steps, self._limits

    def _sizes(self) -> tuple[list[int], int]:
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
        points = longer(self.state.points[: known + 1], max(features + 1, 2 * known))
        self.state = self.state._replace(points=points)
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same experts in balls; the others keep only means.
            weights, intercepts = self.map.to_features(points[: known + 1])
            self.map = self.map.diagonal()
            if self.t:
                points[: known + 1] = self.map.from_features(weights, intercepts)
                self.state.norms[0] = np.inf
                self.project(self._limits)
            self._move(0)
        elif self.map.full:
            self._move(features)
        self.map.grow(features)

    def _move(self, features: int) -> None:
        """Make room for so many features in all windows, or take it away for none."""
        old, state = len(self.state.directions), self.state
        if old and features:  # else nothing is known of random features either
            more = [old] * (features - old)  # random ones come last
            changed = {name: np.insert(getattr(state, name), more, 0.0, 0) for name in _BY_FEATURE}
            for name in _BY_WINDOW:
                changed[name] = np.insert(getattr(state, name), more, 0.0, axis=1)
            changed["moments"] = np.insert(changed["moments"], more, 0.0, axis=2)
        else:
            empty = self._empty(features, self.outputs)
            names = *_BY_FEATURE, "offsets", *_BY_WINDOW
            changed = {name: getattr(empty, name) for name in names}
        self.state = state._replace(**changed)

    def __getstate__(self) -> dict[str, Any]:
        points = self.state.points[: self.map.features + 1]  # without room to grow
        return super().__getstate__() | {"state": self.state._replace(points=points)}


def checked(targets: Array, given: Any, what: str) -> tuple[Indices, Array, Array]:
    """Return the rows of positive weight, their targets and their weights."""
    if not (np.abs(targets) <= LARGEST).all():
        raise ValueError(f"y must lie between -{LARGEST:g} and {LARGEST:g}, no NaN: rescale it")
    weights = weights_of_rows(given, len(targets), what)
    order = (weights >= SMALLEST_WEIGHT).nonzero()[0]
    return order, targets[order], weights[order]
