"""What the classifiers learn with: experts on the features, on waves and on ferns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from driftwolfe.estimators.core.ids import decode_keys, encode_keys
from driftwolfe.estimators.core.models import (
    BLOCK,
    NO_PARTS,
    SLACK,
    UNBOUND,
    MappedLearner,
    RowModel,
)
from driftwolfe.estimators.core.rows import (
    COUNT,
    FERNS,
    FULL_FEATURES,
    ROUNDING,
    TESTS,
    WAVES,
    RandomViews,
    SparseRows,
    copies,
    longer,
    weights_of_rows,
)
from driftwolfe.points.devices import eigh, one_blas_thread
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.lanczos import threshold_falling
from driftwolfe.state import Field
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.classifier_kernels")

#: What experts may see: features as they are, or random features too.
KINDS = ("random", "linear")
#: Of the cover's lengths 1, 2, 4, ... rounds of `BLOCK` rows every second is used, five from the first row on.
LEVEL_BITS, FIRST_LEVELS = 2, 5
#: Up to so many classes projections are a compiled loop (with more, LAPACK is quicker), tables have no room for
#: more, there are random views (ferns would take 0.25 MB for each, and most of the time), and there is memory.
FEW_CLASSES, EXACT_CLASSES, RANDOM_CLASSES, MOST_CLASSES = 12, 64, 256, 10_000
#: Interval lengths of the experts of other views than the first, and how many radii, the largest, they
#: have: with radii 40 and 160 all six step sizes differ, which lengths of ratio 16 would not give.
LENGTHS, OTHER_RADII = (256, 2048, 16_384), 2
#: Rows over which the last experts of such a view are running means of the others, and between the moves of these
#: from row 512 on, as each goes through all leaves of ferns.
WINDOWS, MOVES = (512, 4096), 64
#: A view with less weight rests for 1, 3, then 7 rounds at a time; one that does not exist, or not yet, for ever.
IDLE, LONGEST_REST, FOREVER = 0.001, 7, -1
#: Tables of points, one for each view.
VIEWS = ("points", "noisy", "waves", "ferns")
#: Rows before random features are drawn, from the features and scales known by then.
START = 32
_REAL, _SOME = np.float64, (len(VIEWS),)
_NO_LABELS = np.zeros(0, np.int64)


#: With balanced classes rows of the rarest weigh 1 and others less, at least this. Rows that weigh more are copies,
#: and the experts of short intervals follow these: on normal classes of 3 % and 97 % the balanced accuracy is 0.86
#: with weights up to 1, 0.71 with weights of mean 1, 0.64 without.
LEAST_BALANCE = 0.01
#: Each class counts as so many rows more.
BALANCE = 10.0


class ClassLearner(MappedLearner):
    r"""A feature map and experts for the multiclass logistic loss on top of it: see `TraceNormClassifier`.

    The expert for a radius :math:`\rho` and intervals of length L holds a matrix Y, predicts softmax(Y z), takes
    steps

    .. math:: Y \leftarrow P(Y - \eta \nabla f(Y)), \qquad \eta = D/(G \sqrt L) = \rho/\sqrt{2 L}

    with D = 2 rho and :math:`G = 2\sqrt2`, a bound on the gradients for rows of norm at most 2. P projects onto the
    ball once a bound on the trace norm passes 1.5 rho: no point of the ball gets farther away. When its interval
    ends, an expert restarts at the heaviest one of its radius, and keeps its weight. A fixed share 1/(t+1) of all
    weight is spread evenly.

    The logarithmic loss is 1-mixable, so the mixture loses at most :math:`\ln(N e)` to any of N experts over the
    rows s to e. An expert loses at most :math:`\lVert Y_s - Z\rVert^2/(2\eta) + \eta G^2 L/2 \le 1.3\, G D \sqrt L`
    to any Z in its ball on each of its intervals, as :math:`\lVert Y_s - Z\rVert \le 2.5 \rho`.

    The last two experts of each other view take no steps: every 64 rows they move to the mean of the view's others
    by 64/512 or 64/4,096 of the way, by 16/t every 16 rows at first. While a view rests, its experts keep their
    weights, as if they had said what the others say (Freund et al. 1997).
    """

    #: For rows of usual length, scores range from soft to certain.
    RADII: ClassVar[tuple[float, ...]] = (10.0, 40.0, 160.0)
    random: RandomViews
    counts: Annotated[Array, Field(_REAL, ("counted",), 0.0)]  # rows of each class, if balanced
    views: Annotated[int, Field(int, among=(1, len(VIEWS)), size="views")]
    classes: Annotated[int, Field(int, least=1, below=1 << 53, size="classes")]
    t: Annotated[int, COUNT]  # rounds played
    # A row per entry of what a view sees; classes within experts.
    points: Annotated[Array, Field(_REAL, ("width", "plain classes"))]
    noisy: Annotated[Array, Field(_REAL, ("width", "side classes"))]
    waves: Annotated[Array, Field(_REAL, ("seen_waves", "side classes"))]
    ferns: Annotated[Array, Field(_REAL, ("leaves", "side classes"))]
    rests: Annotated[Indices, Field(np.int64, _SOME, FOREVER, LONGEST_REST)]  # rounds
    last_rests: Annotated[Indices, Field(np.int64, _SOME, 0, LONGEST_REST)]  # how long before
    norms: Annotated[Array, Field(_REAL, (2, "experts"), 0.0)]  # bounds on trace norms, squares
    weights: Annotated[Array, Field(_REAL, ("experts",), 0.0)]  # within each view
    view_weights: Annotated[Array, Field(_REAL, ("views",), 0.0, sums=True)]
    losses: Annotated[Array, Field(_REAL, (BLOCK,), 0.0)]  # of the rows of this block

    def __init__(self, classes: int, features: int, kind: Any = "random", seed: Any = 0) -> None:
        if kind not in KINDS:
            raise ValueError(f'features must be "random" or "linear", got {kind!r}')
        check_number(classes)
        super().__init__(features, seed or 0)
        random, width = kind == "random", features + 1
        self.random, self.counts = RandomViews(), np.zeros(0)
        self.views, self.classes, self.t = len(VIEWS) if random else 1, classes, 0
        self.points = np.zeros((width, FIRST_LEVELS * len(self.RADII) * classes))
        self.rests = np.array([0, 0 if random else FOREVER, FOREVER, FOREVER])
        self.last_rests = np.zeros(len(VIEWS), np.int64)
        self.view_weights = np.full(self.views, 1.0 / self.views)
        self.losses = np.zeros(BLOCK)
        self.derive()
        numbers = np.array(self.numbers)
        side = int(numbers[-1]) * classes if random else 0
        self.noisy, self.waves, self.ferns = (np.zeros((n, side)) for n in (width, 0, 0))
        self.norms, self.weights = np.zeros((2, numbers.sum())), np.repeat(1.0 / numbers, numbers)

    def derive(self) -> None:
        self.width, self.room = len(self.points), self.classes  # columns of each expert
        self.radii = np.array(self.RADII)
        self.side: Array = np.sort(self.radii)[-OTHER_RADII:]  # of the other views
        self.moving = len(LENGTHS) * self.side.size  # experts of each of them that take steps
        self.set_steps()

    def check(self) -> None:
        super().check()
        random, levels = self.random, FIRST_LEVELS
        drawn = random.offsets.size > 0
        require(self.counts.size <= self.classes, "counts")
        fits = self.width == self.map.features + 1 and (random.inputs < self.width).all()
        require(bool(fits), "features")
        rows = (WAVES + 1 + self.width, FERNS << TESTS) if drawn else (0, 0)
        require((len(self.waves), len(self.ferns)) == rows, "random features")
        require(not drawn or (self.map.full and self.views > 1), "random features")
        require(drawn or (self.rests[2:] == FOREVER).all(), "rests")
        while BLOCK << (LEVEL_BITS * (levels - 1)) <= self.t:  # the next joins once that is played
            levels += 1
        require(self.plain == levels * self.radii.size, "experts")
        side = self.numbers[-1] * self.classes if self.views > 1 else 0
        require(self.noisy.shape[1] == side and self.weights.size == sum(self.numbers), "experts")
        require(self.rests[0] == 0, "rests")
        first = 0
        for table, number in zip(self.tables, self.numbers, strict=False):
            own = slice(first, first + number)
            require(abs(self.weights[own].sum() - 1.0) < 1e-6, "weights of experts")
            # No matrix is larger than experts let it grow.
            limits = ROUNDING * self._limits[own]
            require((self.norms[0, own] <= limits).all(), "norms of experts")
            stacked = table.reshape(len(table), number, self.classes)
            squares = np.einsum("jic,jic->i", stacked, stacked)
            require((squares <= limits**2).all(), "experts")
            first = own.stop

    def __getstate__(self) -> dict[str, Any]:
        packed = {}  # without room to grow
        for name in VIEWS:
            table = getattr(self, name)[: self.width if name in VIEWS[:2] else None]
            number = table.shape[1] // self.room
            stacked = table.reshape(len(table), number, self.room)[..., : self.classes]
            packed[name] = stacked.reshape(len(table), number * self.classes)
        return super().__getstate__() | packed

    @property
    def plain(self) -> int:
        """Number of experts of the first view."""
        return int(self.points.shape[1] // self.room)

    @property
    def numbers(self) -> list[int]:
        """Number of experts of every view."""
        return [self.plain, *[self.moving + len(WINDOWS)] * (self.views - 1)]

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.classes, self.map.features

    @property
    def names(self) -> list[str]:
        views = np.repeat(("", "doubtful, ", "waves, ", "ferns, ")[: self.views], self.numbers)
        kinds = (
            f"radius {radius:g}, {length:,} rows" if step else f"mean of {length:,} rows"
            for step, radius, length in zip(self._steps, self._radii, self.lengths, strict=True)
        )
        return [view + kind for view, kind in zip(views.tolist(), kinds, strict=True)]

    def set_steps(self) -> None:
        """Set interval lengths in rows, of means those averaged over, radii and step sizes of all experts."""
        plain, means = self.plain, len(WINDOWS)

        def of_all(first: Any, other: Any) -> Array:
            return np.array([*first, *[*other] * (self.views - 1)])

        first = BLOCK << (LEVEL_BITS * (np.arange(plain) // self.radii.size))
        self.lengths = of_all(first, [*np.repeat(LENGTHS, self.side.size), *WINDOWS])
        other = *np.resize(self.side, self.moving), *[self.side[-1]] * means
        self._radii = of_all(np.resize(self.radii, plain), other)
        self._limits = (1.0 + SLACK) * self._radii
        moves = of_all([1.0] * plain, [1.0] * self.moving + [0.0] * means)
        self._steps = moves * self._radii / np.sqrt(2.0 * self.lengths)

    @property
    def expert_weights(self) -> Array:
        return np.repeat(self.view_weights, self.numbers) * self.weights

    @property
    def tables(self) -> tuple[Array, ...]:
        """The points of the experts, a table for each view."""
        return self.points[: self.width], self.noisy[: self.width], self.waves, self.ferns

    def predict(self, rows: SparseRows) -> Array:
        out, mapped = np.zeros((rows.number, self.classes)), self.mapped(rows, NO_PARTS)
        return out[: self._follow(mapped, _NO_LABELS, NO_PARTS, 0, out) if mapped else 0]

    def _learn(self, rows: SparseRows, labels: Indices, parts: Array) -> bool:
        """Learn mapped rows of one round of the cover; at its end, restart experts."""
        if not super()._learn(rows, labels, parts):
            return False
        self.t += labels.size
        if self.t % BLOCK == 0:
            self._end_round()
        return True

    def _ended(self, t: int) -> bool:
        self.t = t
        return bool((self.norms[0] <= self._limits).all())

    def _follow(
        self, rows: SparseRows, labels: Indices, parts: Array, begin: int, out: Array
    ) -> int:
        at, spare = self._given(labels.size > 0)
        return kernels().follow.unchecked(*rows, labels, parts, begin, self.t, at, out, spare)

    def _held(self) -> tuple[Any, ...]:
        held = (self.losses, self.rests, self.view_weights, self.weights, self.norms, self._steps)
        tables = self._limits, self.points, self.noisy, self.waves, self.ferns
        random = self.random.held if self.map.full and self.views > 1 else ()
        return *held, *tables, *(self.map.held if self.map.full else ()), *random

    def _sizes(self) -> tuple[list[int], int]:
        full, random = self.map.full, self.random
        features = self.map.features if full else -1
        waves, ferns = (random.offsets.size, len(random.tests)) if full else (0, 0)
        side = self.noisy.shape[1] // self.room
        row = max(self.plain * self.room, side * self.room, features + waves + 2)
        # A few more, or rows of working memory would compete for the same places of the cache.
        row = max(row, len(VIEWS), kernels().MOST_WAYS * ferns + 8)
        sizes = [features, self.classes, self.views, self.plain, side, waves, ferns, row]
        return [*sizes, self.room], kernels().WORK * row

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers; weights of new ones are 0."""
        if classes > RANDOM_CLASSES and self.random.offsets.size:
            self._stop_views()
        if self.map.full and features > FULL_FEATURES:
            # The map for many features, with the same classifiers in terms of features.
            old, new = self.map, self.map.diagonal()
            self._stop_views()
            if self.t:
                for name, table in zip(VIEWS[:2], self.tables, strict=False):
                    points = new.from_features(*old.to_features(table))
                    setattr(self, name, np.ascontiguousarray(points))
                self.project()
            self.map = new
        if features > self.map.features:
            self.map.grow(features)
        if classes > self.room:
            self._widen(max(classes, self.room * 5 // 4) if classes > EXACT_CLASSES else classes)
        if classes > self.classes:
            self.classes, self._bound = classes, UNBOUND
        if (width := features + 1) > len(self.points):
            room = max(width, 2 * len(self.points))
            self.points, self.noisy = longer(self.points, room), longer(self.noisy, room)
        if len(self.waves) and width > self.width:  # z is behind them
            self.waves = longer(self.waves, len(self.waves) + width - self.width)
        self.width = max(self.width, width)

    def _widen(self, room: int) -> None:
        """Make room for so many classes."""
        for name in VIEWS:
            table = getattr(self, name)
            number = table.shape[1] // self.room
            wider = np.zeros((len(table), number, room))
            used = table.any(axis=1).nonzero()[0]  # the others take no memory
            wider[used, :, : self.room] = table[used].reshape(used.size, number, self.room)
            setattr(self, name, wider.reshape(len(wider), number * room))
        self.room = room

    def _renew(self, t: int) -> None:
        """Recompute the maps, if it is time; draw random features at the start."""
        super()._renew(t)
        if t % BLOCK == 0 and self.views > 1:
            few = self.classes <= RANDOM_CLASSES
            if t == START and self.map.full and self.map.features and few:
                self.random.start(self.map, self.seed)
                waves = self.random.offsets.size + 1 + self.width
                self._see_views(waves, self.random.counts.size)
            if self.rests[2] == 0:
                self.random.renew(t)

    def _see_views(self, waves: int, ferns: int) -> None:
        """Let experts see waves and ferns, with so many entries each; 0 for no longer."""
        self.waves = np.zeros((waves, self.waves.shape[1]))
        self.ferns = np.zeros((ferns, self.ferns.shape[1]))
        self.norms[:, sum(self.numbers[:2]) :] = 0.0
        self.rests[2:], self.last_rests[2:] = (0 if waves else FOREVER), 0

    def _stop_views(self) -> None:
        self.random = RandomViews()
        self._see_views(0, 0)

    def _end_round(self) -> None:
        """Restart the experts whose interval has ended, and add those for longer intervals."""
        first, heaviest = 0, np.empty(self.radii.size, np.int64)
        for v, (table, size) in enumerate(zip(self.tables, self.numbers, strict=False)):
            if self.rests[v] == 0:
                steady = v and self.last_rests[v] == 0 and self.t >= WINDOWS[0]
                gap = MOVES if steady else BLOCK
                if self.t % gap == 0:
                    rates = gap / np.minimum(WINDOWS, self.t) if v else NO_PARTS
                    sources = np.empty(self.side.size, np.int64) if v else heaviest
                    held = self.weights, self.norms, self.lengths, rates, sources
                    kernels().end_round.unchecked(table, *held, first, self.t, self.room)
                idle = v and self.view_weights[v] < IDLE
                rest = min(2 * self.last_rests[v] + 1, LONGEST_REST) if idle else 0
                self.last_rests[v] = self.rests[v] = rest
            elif self.rests[v] > 0:
                self.rests[v] -= 1
            first += size
        if self.lengths[self.plain - 1] <= self.t:
            self._lengthen(heaviest)

    def _lengthen(self, sources: Indices) -> None:
        """Add experts for longer intervals to the first view, which start at these."""
        number, plain, points = self.radii.size, self.plain, self.tables[0]
        starts = points.reshape(self.width, -1, self.room)[:, sources]
        self.points = np.hstack((points, starts.reshape(self.width, -1)))
        self.norms = np.insert(self.norms, [plain] * number, self.norms[:, sources], axis=1)
        share = number / (plain + number) / (self.t + 1.0)
        self.weights[:plain] *= 1.0 - share
        self.weights = np.insert(self.weights, [plain] * number, share / number)
        self.noisy = self.noisy[: self.width].copy()  # as long as the points
        self.set_steps()

    def project(self, limits: Any = 0.0) -> None:
        tables, by = self.tables, few_columns if self.classes <= FEW_CLASSES else project_columns
        for i in (self.norms[0] > limits).nonzero()[0].tolist():
            view, place = 0, i
            while place >= self.numbers[view]:
                view, place = view + 1, place - self.numbers[view]
            given = place * self.room, self.classes, float(self._radii[i])
            self.norms[:, i] = by(tables[view], *given)

    def coefficients(self) -> tuple[Array, Array]:
        """Return the linear experts' mean in units of the features: weights per class, intercepts."""
        both = np.hstack(self.tables[:2]).reshape(self.width, -1, self.room)[..., : self.classes]
        weights = self.expert_weights[: both.shape[1]]
        mean = np.einsum("jic,i->jc", both, weights / weights.sum())
        weights, intercepts = self.map.to_features(mean)
        return np.ascontiguousarray(weights.T), intercepts


def few_columns(table: Array, first: int, columns: int, radius: float) -> tuple[float, float]:
    """Do as `project_columns`, by a compiled loop."""
    work = np.zeros((2 * columns + 1, columns)), np.empty((columns + 1, len(table)))
    return kernels().project_columns.unchecked(table, first, radius, *work)


def project_columns(table: Array, first: int, columns: int, radius: float) -> tuple[float, float]:
    """Project columns of a table onto the ball; return their trace norm and squared norm."""
    own, used = table[:, first : first + columns], np.arange(0)
    if columns > EXACT_CLASSES:  # most leaves of ferns are not used at first
        used = np.flatnonzero(own.any(axis=1))
    wide = columns > EXACT_CLASSES and used.size < columns
    point = own[used] if wide else own
    with one_blas_thread():
        squares, vectors = eigh(point @ point.T if wide else point.T @ point)
        values = np.sqrt(np.maximum(squares, 0.0))[::-1]
        if values.sum() <= radius:
            return float(values.sum()), float(values @ values)
        kept = threshold_falling(values, radius)
        factors = np.divide(kept, values, out=np.zeros_like(kept), where=kept > 0.0)[::-1]
        turned = vectors * factors @ vectors.T
        own[used if wide else ...] = turned @ point if wide else point @ turned
    return radius, float(kept @ kept)


def check_number(classes: int) -> None:
    """Refuse more classes than there is memory for."""
    if classes > MOST_CLASSES:
        raise ValueError(
            f"there may be at most {MOST_CLASSES:,} classes, got {classes:,}: are labels numbers to "
            "predict, or ids? Merge rare ones, or take a regressor or a recommender"
        )


class ClassModel(RowModel):
    """What classifiers of rows share."""

    OPTIONS: ClassVar[dict[str, Any]] = {
        "features": Field(str, among=KINDS),
        "class_weight": Field(str, optional=True),
    }
    features: Any
    class_weight: Any

    def _new_learner(self, seed: Any, classes: int, features: int) -> ClassLearner:
        return ClassLearner(classes, features, self.features, seed)

    def _weighed(
        self, learner: ClassLearner, keys: list[Any], labels: Indices, given: Any, what: str
    ) -> tuple[Indices, Array, dict[str, Array]]:
        """Return which rows to learn, with which weights, and how many of each class there are then.

        Labels are keys and their numbers; weights are those given times those of classes.
        """
        option, counts, number = self.class_weight, learner.counts, labels.size
        if isinstance(option, Mapping):
            factors = [option.get(key, 1.0) for key in keys]
            given = weights_of_rows(given, number, what)
            given = given * weights_of_rows(factors, number, "class_weight")
        elif isinstance(option, str) and option == "balanced":
            given = np.array(weights_of_rows(given, number, what))
            counts = longer(counts, max(counts.size, labels.max(initial=-1) + 1))
            for k, label in enumerate(labels.tolist()):
                counts[label] += given[k]
                rarest = max(counts[counts > 0.0].min(initial=np.inf), LEAST_BALANCE * counts.max())
                given[k] *= min(1.0, (rarest + BALANCE) / (counts[label] + BALANCE))
        elif option is not None:
            kinds = 'None, "balanced" or a dict of weights by label'
            raise ValueError(f"class_weight must be {kinds}, got {option!r:.80}")
        return *copies(given, number, what), {"counts": counts}

    def _settings(self) -> dict[str, Any]:
        weight = self.class_weight
        if isinstance(weight, Mapping):
            pairs = [(key, float(each)) for key, each in weight.items()]
            weight = encode_keys(pairs).tobytes().decode("ascii")
        return super()._settings() | {"class_weight": weight}

    @classmethod
    def _restored(cls, settings: dict[str, Any], *parts: Any) -> Self:
        weight = settings["class_weight"]
        if weight not in (None, "balanced"):
            weight = dict(decode_keys(np.frombuffer(weight.encode(), np.uint8)))
        return super()._restored(settings | {"class_weight": weight}, *parts)
