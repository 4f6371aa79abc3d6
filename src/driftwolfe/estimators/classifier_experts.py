"""The experts behind `TraceNormClassifier`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains import TraceNormBall
from driftwolfe.ensemble import GeometricCover
from driftwolfe.points import checks
from driftwolfe.points.compiled import compiled
from driftwolfe.points.decompositions import eigh
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.rounding import near_largest, ramp

#: Features of larger size are refused, smaller ones count as 0: their squares could leave the range
#: of numbers.
LARGEST, SMALLEST = 1e100, 1e-100


class Rows(NamedTuple):
    """Entries that are not zero (or below 1e-100): those of row k stand from ``starts[k]`` to ``starts[k + 1]``.

    The places of a row rise. Dense and sparse inputs with the same content give the same rows, so
    nothing that is learned from them depends on the format.
    """

    starts: Indices
    places: Indices
    values: Array

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.starts.size - 1

    def taken(self, order: Indices) -> Rows:
        """The rows of those numbers, in that order.

        >>> as_rows(np.array([[1.0, 0.0], [2.0, 3.0]])).taken(np.array([1, 1])).values
        array([2., 3., 2., 3.])
        """
        lengths = (self.starts[1:] - self.starts[:-1])[order]
        starts = np.concatenate((np.zeros(1, np.int64), lengths.cumsum()))
        shift = np.repeat(self.starts[:-1][order] - starts[:-1], lengths)
        chosen = np.arange(starts[-1]) + shift
        return Rows(starts, self.places[chosen], self.values[chosen])

    def stretch(self, first: int, last: int) -> Rows:
        """The rows from number `first` up to `last`, that one not included."""
        starts = self.starts[first : last + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return Rows(starts - starts[0], self.places[entries], self.values[entries])


def as_rows(X: Any) -> Rows:
    """Return the rows of a dense array or of a sparse matrix, both checked before.

    >>> as_rows(np.array([[0.0, 2.0], [3.0, 4.0]]))
    Rows(starts=array([0, 1, 3]), places=array([1, 0, 1]), values=array([2., 3., 4.]))
    """
    check_range(X.data if scipy.sparse.issparse(X) else X)
    if scipy.sparse.issparse(X):
        table = scipy.sparse.csr_array(X, copy=True)
        table.sum_duplicates()
        table.data[np.abs(table.data) < SMALLEST] = 0.0
        table.eliminate_zeros()
        return Rows(
            table.indptr.astype(np.int64),
            table.indices.astype(np.int64),
            np.asarray(table.data, np.float64),
        )
    mask = np.abs(X) >= SMALLEST
    starts = np.concatenate((np.zeros(1, np.int64), mask.sum(axis=1).cumsum()))
    places = np.ascontiguousarray(mask.nonzero()[1])
    return Rows(starts, places, np.asarray(X[mask], np.float64))


def check_range(values: Any) -> None:
    """Refuse values whose squares would leave the range of numbers."""
    if values.size and float(np.abs(values).max()) > LARGEST:
        raise ValueError(f"features must lie between -{LARGEST:g} and {LARGEST:g}: rescale them")


#: Copies in which a row of large weight is learned, at most.
MOST_COPIES = 100
#: Larger weights are refused, smaller ones count as 0.
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e9, 1e-12


class Labelled(NamedTuple):
    """Rows, the number of the class of each, and the weight of each."""

    rows: Rows
    labels: Indices
    parts: Array

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.labels.size

    @classmethod
    def from_weights(cls, rows: Rows, labels: Indices, weights: Array | None) -> Labelled:
        """Return rows of weight w > 1 as the fewest equal copies of weight at most 1.

        So whole weights stand for repeated rows. From 100 on, there are 100 copies of larger weight.
        Rows of weight 0 are left out.

        >>> from driftwolfe.estimators.classifier_experts import as_rows
        >>> rows, labels = as_rows(np.eye(3)), np.arange(3)
        >>> Labelled.from_weights(rows, labels, np.array([1.0, 0.0, 1.5]))[1:]
        (array([0, 2, 2]), array([1.  , 0.75, 0.75]))
        """
        if weights is None:
            return cls(rows, labels, np.ones(labels.size))
        check_weights(weights)
        numbers = np.minimum(np.ceil(weights), MOST_COPIES).astype(np.int64)
        numbers[weights < SMALLEST_WEIGHT] = 0
        order = np.repeat(np.arange(weights.size), numbers)
        return cls(rows.taken(order), labels[order], weights[order] / numbers[order])

    def taken(self, order: Indices) -> Labelled:
        """The rows of those numbers, in that order."""
        return Labelled(self.rows.taken(order), self.labels[order], self.parts[order])

    def stretch(self, first: int, last: int) -> Labelled:
        """The rows from number `first` up to `last`, that one not included."""
        own = slice(first, last)
        return Labelled(self.rows.stretch(first, last), self.labels[own], self.parts[own])


def check_weights(weights: Array) -> None:
    """Refuse weights that are negative, not finite, or beyond reason."""
    if not ((weights >= 0.0) & (weights <= LARGEST_WEIGHT)).all():
        raise ValueError(f"weights of rows must lie between 0 and {LARGEST_WEIGHT:g}")


def in_fixed_order(given: Labelled) -> Labelled:
    """Return labelled rows in an order that does not depend on the one they came in.

    Rows are compared by six digits of their values first, so that rounding errors reorder only rows
    that are nearly the same.

    >>> from driftwolfe.estimators.classifier_experts import as_rows
    >>> rows = as_rows(np.array([[3.0], [1.0], [2.0]]))
    >>> in_fixed_order(Labelled(rows, np.array([1, 0, 1]), np.ones(3))).rows.values
    array([1., 2., 3.])
    """
    rows, labels, parts = given
    exact, rough = rows.values.astype(">f8"), _rounded(rows.values)

    def key(k: int) -> tuple[int, float, bytes, bytes, bytes]:
        own = slice(rows.starts[k], rows.starts[k + 1])
        entries = rows.places[own].tobytes(), rough[own].tobytes(), exact[own].tobytes()
        return int(labels[k]), float(parts[k]), *entries

    return given.taken(np.array(sorted(range(labels.size), key=key), dtype=np.int64))


def _rounded(values: Array) -> Array:
    """Return values with 20 bits.

    Between them lie no numbers of few bits: whole numbers and halves are not rounded by their last.
    """
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.floor(mantissas * 2.0**20 + 0.37), exponents - 20)


kernels = compiled("driftwolfe.estimators.classifier_kernels")

#: Features up to which second moments are kept, and correlations are taken out.
FULL_FEATURES = 256
#: Exponent of that: 0 would only standardise, 1 whiten. Measured: 0.5 has up to a tenth less log loss
#: on small tables (digits, breast cancer), 1 has a fortieth less on Shuttle with flipped signs.
POWER = 0.75
#: Rows' worth of uncorrelated data that the correlations are mixed with.
PRIOR_ROWS = 30.0
#: A feature whose scale is at most this share of its mean is constant: what varies is rounding.
CONSTANT = 1e-12
#: The map is worked out anew after so many rounds, as a share of those played.
RENEWAL = 0.05


class FeatureMap:
    r"""Rows of features, made comparable with what was seen so far.

    Up to 256 features a row x becomes

    .. math:: z = \tfrac1g (1, A (x - m)), \qquad A = (K + \tfrac{30}{n} I)^{-3/8} S^{-1}

    with m the running mean, S the scales, K the correlations, n the rows counted, and g the root
    mean square of the norms. So z has norm about 1, features that go together do not crowd out the
    others, and multiplying the features by a constant changes nothing. The scale of a feature is
    its standard deviation, or that of its entries other than 0 about its mean if larger: a rare
    feature is not blown up when it comes, and one that first comes late has its scale at once. One
    whose scale is at most 1e-12 of its mean counts as constant and is left out.
    Beyond 256 features nothing is centred and a row stays as sparse as it is: m = 0, K = I, and the
    scale is the root mean square of the entries other than 0.

    No z is longer than 2: a longer one is shortened. The first entry is the intercept's; without an
    intercept it is 0, and so is m.

    Parameters
    ----------
    features
        Number of features; `grow` adds more.
    intercept
        Whether there is one.

    Attributes
    ----------
    totals
        State: weight of all rows, and sum of their squared norms.
    seen
        State: weight of the rows in which a feature was not 0.
    mean, moments
        State: means and second moments about them, lower triangle; up to 256 features.
    squares
        State: sums of squares; beyond.
    centre, table
        State: m and A transposed, of the last renewal.

    Examples
    --------
    >>> from driftwolfe.estimators.classifier_experts import as_rows
    >>> features = FeatureMap(2, intercept=True)
    >>> rows = as_rows(np.array([[1.0, 10.0], [3.0, 10.0], [5.0, 40.0]]))
    >>> mapped = features.rows(rows, np.ones(3))
    >>> features.renew()
    >>> features.centre
    array([ 3., 20.])
    >>> features.rows(rows.stretch(0, 1)).values.round(2)  # the intercept's entry first
    array([ 1.  , -0.49, -0.27])
    """

    def __init__(self, features: int, intercept: bool) -> None:
        self.constant = 1.0 if intercept else 0.0
        self.totals: Array = np.zeros(2)
        self.seen: Array = np.zeros(features)
        self.full = features <= FULL_FEATURES
        width = features if self.full else 0
        self.mean: Array = np.zeros(width)
        self.moments: Array = np.zeros((width, width))
        self.centre: Array = np.zeros(width)
        self.table: Array = np.zeros((width, width))
        self.squares: Array = np.zeros(0 if self.full else features)

    @property
    def features(self) -> int:
        """Number of features."""
        return self.seen.size

    def gap(self, t: int) -> int:
        """Rounds from round t to the next renewal, which takes the time of many rows."""
        return max(1, self.features // 16, int(RENEWAL * t))

    def rows(self, given: Rows, parts: Array | None = None) -> Rows:
        """Return the rows mapped; count them, with their weights `parts`, if these are given."""
        if not self.totals.flags.writeable:  # as they may be where they were mapped from a file
            for name, array in self.state().items():
                setattr(self, name, array.copy())
        learning = parts is not None
        weights = parts if parts is not None else np.zeros(0)
        if self.full:
            width = self.features + 1
            out = np.empty(given.number * width)
            kernels().full_rows(
                *given,
                weights,
                learning,
                self.constant,
                self.totals,
                self.seen,
                self.mean,
                self.moments,
                self.centre,
                self.table,
                out,
            )
            starts = np.arange(0, out.size + 1, width)
            return Rows(starts, np.arange(out.size) % width, out)
        out = np.empty(given.values.size + given.number)
        kernels().diagonal_rows(
            *given, weights, learning, self.constant, self.totals, self.seen, self.squares, out
        )
        places = np.insert(given.places + 1, given.starts[:-1], 0)
        return Rows(given.starts + np.arange(given.starts.size), places, out)

    def renew(self) -> None:
        """Work out the map anew; up to 256 features it stays as it is in between."""
        if not self.full or self.totals[0] == 0.0:
            return
        scales = self._scales()
        trust = ramp(scales, CONSTANT * np.abs(self.mean))
        known = (trust > 0.0).nonzero()[0]
        weight, scales, trust = self.totals[0], scales[known], trust[known]
        lower = self.moments[np.ix_(known, known)] / weight / scales / scales[:, None]
        lower *= trust * trust[:, None]
        # A rare feature has a larger scale than its deviation. The rest of its variance is taken
        # for noise of its own, or whitening would blow it up after all.
        correlations = np.tril(lower, -1) + np.tril(lower, -1).T + np.eye(known.size)
        values, vectors = eigh(correlations)
        powers = (np.maximum(values, 0.0) + PRIOR_ROWS / weight) ** (-POWER / 2.0)
        root = (vectors * powers) @ vectors.T
        self.table = np.zeros_like(self.moments)
        self.table[np.ix_(known, known)] = root * (trust / scales)[:, None]
        self.centre = self.mean.copy()

    @property
    def is_behind(self) -> bool:
        """Whether a feature has a scale by now that the map does not know of."""
        rounding = self.totals[0] * (CONSTANT * self.mean) ** 2
        varies = self.moments.diagonal() > rounding
        return bool((varies & (self.table.diagonal() == 0.0)).any())

    def grow(self, features: int) -> None:
        """Make room for more features, up to `features` in all; they were 0 so far."""
        more = features - self.features
        self.seen = np.pad(self.seen, (0, more))
        if self.full:
            self.mean, self.centre = np.pad(self.mean, (0, more)), np.pad(self.centre, (0, more))
            self.moments = np.pad(self.moments, (0, more))
            self.table = np.pad(self.table, (0, more))
        else:
            self.squares = np.pad(self.squares, (0, more))

    def diagonal(self) -> FeatureMap:
        """Return the map for many features that has counted the same rows."""
        other = FeatureMap(0, self.constant > 0.0)
        other.full = False
        other.seen = self.seen.copy()
        other.squares = self.moments.diagonal() + self.totals[0] * self.mean**2
        # The mean of (x / scale)^2 is the share of rows in which x is not 0.
        other.totals = self.totals * [1.0, 0.0]
        other.totals[1] = self.seen.sum() + self.constant * self.totals[0]
        return other

    def to_features(self, inner: Array) -> tuple[Array, Array]:
        """Return weights of features and intercepts from weights of z, one column each."""
        length = np.sqrt(self.totals[1] / self.totals[0]) if self.totals[1] > 0.0 else 1.0
        if self.full:
            weights = self.table @ inner[1:] / length
            return weights, self.constant * inner[0] / length - self.centre @ weights
        inverse = np.divide(1.0, self._scales(), where=self.squares > 0.0, out=0.0 * self.squares)
        return inverse[:, None] * inner[1:] / length, self.constant * inner[0] / length

    def from_features(self, weights: Array, intercepts: Array) -> Array:
        """Return weights of z from weights of features and intercepts; for many features only."""
        length = np.sqrt(self.totals[1] / self.totals[0])
        return np.vstack((intercepts, self._scales()[:, None] * weights)) * length

    def state(self) -> dict[str, Array]:
        """All that is to be kept."""
        names = ("totals", "seen", "mean", "moments", "squares", "centre", "table")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def restored(cls, intercept: bool, state: dict[str, Any]) -> FeatureMap:
        """Return the map of that state."""
        restored = cls(0, intercept)
        for name, array in state.items():
            setattr(restored, name, array)
        restored.full = restored.mean.size == restored.seen.size
        return restored

    def _scales(self) -> Array:
        """The scales of the features, 0 where not known."""
        present = np.maximum(self.seen, np.finfo(np.float64).tiny)
        if not self.full:
            return np.sqrt(self.squares / present)
        weight, total = self.totals[0], self.moments.diagonal()
        # The zeros of a feature lie at the mean's distance from it.
        others = np.maximum(total - (weight - self.seen) * self.mean**2, 0.0)
        return np.sqrt(np.maximum(total / weight, others / present))


#: Rows in a round of the cover: no expert lives shorter.
BLOCK = 16
#: Of the cover's lengths 1, 2, 4, ... rounds, every second is used: 1, 4, 16, ...
LEVEL_BITS = 2
#: Interval lengths that are there from the first row on: 16, 64, 256, 1,024 and 4,096 rows.
FIRST_LEVELS = 5
#: By which share the trace norm may pass the radius before an expert is projected. Measured losses
#: are the same for 0 and for 1; projections are over twenty times fewer than with 0.
SLACK = 0.5


class ClassExperts:
    r"""POLA's experts for the multiclass logistic loss, weighted by their likelihood.

    There is an expert for each radius :math:`\rho` and each length L = 16, 64, 256, ... of intervals
    of the geometric cover. It holds a matrix Y, predicts class probabilities softmax(Y z), and
    after each row takes a step

    .. math:: Y \leftarrow P(Y - \eta \nabla f(Y)), \qquad \eta = \frac{D}{G \sqrt L}
              = \frac{\rho}{\sqrt{2 L}}

    with D = 2 rho and :math:`G = 2\sqrt2`, a bound on the gradients for rows of norm at most 2. P is
    an infeasible projection onto the trace-norm ball of radius rho: it leaves Y where it is while a
    running bound on its trace norm is at most 1.5 rho, and projects it otherwise. Either brings no
    point of the ball farther away, which is all that the regret needs; and as only the
    probabilities are played, Y itself may be outside.

    When an interval ends, the expert of the next one of that length starts at the heaviest of the
    experts of its radius, with the weight of the one before.

    What is played are the experts' probabilities, averaged. The weights are multiplied by the
    probability that an expert gave to the label; then a share 1/(t+1) of them is spread evenly.

    Notes
    -----
    The logarithmic loss is 1-mixable, so this mixture has, over the rows s to e, at most the loss of
    any expert plus :math:`\ln(N e)` (rounded up by less than 0.01 for experts that join later), N
    experts. An expert has, on each of its intervals, at most the loss of any fixed matrix in its ball plus
    :math:`1.3\, G D \sqrt L`: the usual sum :math:`\lVert Y_s - Z\rVert^2/(2\eta) + \eta G^2 L/2`
    with :math:`\lVert Y_s - Z\rVert \le 2.5 \rho`. Together, on every interval of the cover,

    .. math:: \sum_{t \in I} f_t - \min_{\lVert Z\rVert_* \le \rho} \sum_{t \in I} f_t(Z)
              \le 1.3\, G D \sqrt{|I|} + \ln(N e)

    conditional on nothing but what z is: matrices and losses are in terms of the rescaled rows.

    Parameters
    ----------
    radii
        The radii, in units of scores for a row of norm 1.
    classes, features
        Numbers of classes and of entries of z; both can grow.
    adaptive
        False: experts never restart and shares are :math:`1/(t+1)^2`, which is POLD: lengths are
        then only names of step sizes.

    Examples
    --------
    >>> from driftwolfe.estimators.classifier_experts import as_rows
    >>> experts = ClassExperts((10.0,), classes=2, features=1, adaptive=True)
    >>> row = as_rows(np.ones((1, 1)))
    >>> for _ in range(20):
    ...     experts.learn(Labelled(row, np.zeros(1, np.int64), np.ones(1)))
    >>> experts.probabilities(row).round(2)
    array([[0.96, 0.04]])
    >>> experts.names[:2]
    ['radius 10, 16 rows', 'radius 10, 64 rows']

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI; for mixing experts on intervals under such losses Hazan and Seshadhri
    (2009), Efficient learning algorithms for changing environments, ICML; for the share Herbster
    and Warmuth (1998), Tracking the best expert, Machine Learning.
    """

    def __init__(
        self, radii: tuple[float, ...], classes: int, features: int, adaptive: bool
    ) -> None:
        kernels()  # compiled now, not in a round
        self.adaptive = adaptive
        self.radii: Array = np.array(radii)
        self.classes, self.width, self.t = classes, features, 0
        number = FIRST_LEVELS * len(radii)
        self.points: Array = np.zeros((features, number * classes))
        self.norms: Array = np.zeros((2, number))  # bounds on trace norms; squared Frobenius norms
        self.weights: Array = np.full(number, 1.0 / number)
        self._set_steps()

    @property
    def lengths(self) -> Indices:
        """The interval length of every expert, in rows."""
        levels = np.arange(self.weights.size) // self.radii.size
        return BLOCK << (LEVEL_BITS * levels)

    @property
    def names(self) -> list[str]:
        """The radius and the interval length of every expert."""
        pairs = zip(self._radii.tolist(), self.lengths.tolist(), strict=True)
        return [f"radius {radius:g}, {length:,} rows" for radius, length in pairs]

    @property
    def rows_to_end(self) -> int:
        """Rows until the present round of the cover ends."""
        return BLOCK - self.t % BLOCK

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row."""
        out = np.zeros((rows.number, self.classes))
        kernels().probabilities(*rows, self.points, self.weights, out)
        return out

    def mean(self) -> Array:
        """The weighted mean of the experts' matrices, one column per class."""
        stacked = self.points[: self.width].reshape(self.width, -1, self.classes)
        mean: Array = np.einsum("jic,i->jc", stacked, self.weights)
        return mean

    def learn(self, given: Labelled) -> None:
        """Learn rows of one round of the cover, and turn over at its end."""
        rows, labels, parts = given
        if not self.points.flags.writeable:  # as they may be where they were mapped from a file
            self.points, self.norms = self.points.copy(), self.norms.copy()
            self.weights = self.weights.copy()
        clock = self.t + 2.0 + np.arange(labels.size)
        shares = 1.0 / clock if self.adaptive else clock**-2.0
        done = 0
        while done < labels.size:
            done = kernels().learn_rows(
                done,
                self.width,
                *rows,
                labels,
                parts,
                shares,
                self._steps,
                self._radii,
                SLACK,
                self.points,
                self.weights,
                self.norms,
            )
            self._project((self.norms[0] > (1.0 + SLACK) * self._radii).nonzero()[0])
        self.t += labels.size
        if self.t % BLOCK == 0:
            self._turn_over()

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and for more entries of z, with weights 0."""
        if classes > self.classes:
            stacked = self.points.reshape(len(self.points), -1, self.classes)
            wider = np.pad(stacked, ((0, 0), (0, 0), (0, classes - self.classes)))
            self.points, self.classes = wider.reshape(len(wider), -1), classes
        if features > len(self.points):
            room = max(features, 2 * len(self.points))
            self.points = np.pad(self.points, ((0, room - len(self.points)), (0, 0)))
        self.width = max(self.width, features)

    def replace(self, points: Array) -> None:
        """Put all experts elsewhere, into their balls."""
        self.points = np.ascontiguousarray(points)
        self._project(np.arange(self.weights.size))

    def state(self) -> dict[str, Array]:
        """All that is to be kept, besides the numbers."""
        points = self.points[: self.width]
        return {"points": points, "norms": self.norms, "weights": self.weights}

    @classmethod
    def restored(
        cls,
        radii: tuple[float, ...],
        classes: int,
        adaptive: bool,
        t: int,
        state: dict[str, Any],
    ) -> ClassExperts:
        """Return the experts of that state."""
        restored = cls(radii, classes, 0, adaptive)
        restored.width, restored.t = len(state["points"]), t
        for name, array in state.items():
            setattr(restored, name, array)
        restored._set_steps()
        return restored

    def _turn_over(self) -> None:
        """Restart the experts whose interval has ended, and let longer ones join."""
        lengths = GeometricCover().starting(self.t // BLOCK) if self.adaptive else []
        # Of those that are as heavy but for rounding, the one of the longest interval.
        levels = self.weights.reshape(-1, self.radii.size)
        heaviest = np.array([near_largest(column)[-1] for column in levels.T])
        sources = heaviest * self.radii.size + np.arange(self.radii.size)
        stacked = self.points.reshape(len(self.points), -1, self.classes)
        starts, norms = stacked[:, sources], self.norms[:, sources]
        for length in lengths[::LEVEL_BITS]:
            first = (length.bit_length() - 1) // LEVEL_BITS * self.radii.size
            if first < self.weights.size:
                stacked[:, first : first + self.radii.size] = starts
                self.norms[:, first : first + self.radii.size] = norms
        if self.lengths[-1] <= self.t:
            self._add_level(starts, norms)

    def _add_level(self, starts: Array, norms: Array) -> None:
        """Let experts for longer intervals join, at those points."""
        number = self.radii.size
        self.points = np.hstack((self.points, starts.reshape(len(self.points), -1)))
        self.norms = np.hstack((self.norms, norms))
        share = number / (self.weights.size + number) / (self.t + 1.0)
        new = np.full(number, share / number)
        self.weights = np.concatenate(((1.0 - share) * self.weights, new))
        self._set_steps()

    def _project(self, experts: Indices) -> None:
        """Project experts onto their balls, and take stock of their trace norms."""
        for i in experts.tolist():
            own = slice(i * self.classes, (i + 1) * self.classes)
            ball = TraceNormBall((self.width, self.classes), self._radii[i], representation="dense")
            point, radius = self.points[: self.width, own], self._radii[i]
            norm = ball.gauge(point) * radius
            if norm > radius:
                self.points[: self.width, own] = ball.project(point)
            self.norms[:, i] = min(norm, radius), (self.points[: self.width, own] ** 2).sum()

    def _set_steps(self) -> None:
        """Note the radius and the step size of every expert."""
        self._radii: Array = np.resize(self.radii, self.weights.size)
        self._steps: Array = self._radii / np.sqrt(2.0 * self.lengths)


#: Rows that are mapped together where nothing is learned, which bounds the memory for it.
CHUNK = 4096


class ClassLearner:
    """A feature map, and on top of it the experts; classes and features are numbers.

    Rows are learned one by one: how they are cut into calls makes no difference, to the last bit.

    The weight of a row multiplies its loss, and its part in the statistics of features.

    Parameters
    ----------
    radii, intercept, adaptive
        As for `ClassExperts` and `FeatureMap`.
    classes, features
        How many there are; `grow` adds more.
    """

    def __init__(
        self,
        radii: tuple[float, ...],
        intercept: bool,
        adaptive: bool,
        classes: int,
        features: int,
    ) -> None:
        self.map = FeatureMap(features, intercept)
        self.experts = ClassExperts(radii, classes, features + 1, adaptive)
        self.renewal = 1  # the round after which the map is worked out anew

    @property
    def t(self) -> int:
        """Rows learned, copies counted."""
        return self.experts.t

    def learn(self, given: Labelled) -> None:
        """Learn rows."""
        done = 0
        while done < given.number:
            upto = done + min(self.experts.rows_to_end, self.renewal - self.t)
            self._learn_stretch(given.stretch(done, upto))
            done = upto

    def probabilities(self, rows: Rows) -> Array:
        """Return the class probabilities of every row; nothing changes."""
        if rows.number <= CHUNK:
            return self.experts.probabilities(self.map.rows(rows))
        parts = [rows.stretch(k, k + CHUNK) for k in range(0, rows.number, CHUNK)]
        return np.concatenate([self.probabilities(part) for part in parts])

    def coefficients(self) -> tuple[Array, Array]:
        """Return the mean of the experts in units of the features: weights, one row per class, and intercepts."""
        weights, intercepts = self.map.to_features(self.experts.mean())
        return np.ascontiguousarray(weights.T), intercepts

    def grow(self, classes: int, features: int) -> None:
        """Make room for more classes and features, up to these numbers."""
        if self.map.full and features > FULL_FEATURES:
            self._change_map()
        if features > self.map.features:
            self.map.grow(features)
        self.experts.grow(classes, features + 1)

    def state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Numbers and arrays that `restored` makes the same learner of."""
        experts = self.experts
        numbers = {
            "radii": experts.radii.tolist(),
            "intercept": self.map.constant > 0.0,
            "adaptive": experts.adaptive,
            "classes": experts.classes,
            "t": experts.t,
            "renewal": self.renewal,
        }
        arrays = {f"map.{name}": array for name, array in self.map.state().items()}
        return numbers, arrays | {f"experts.{k}": array for k, array in experts.state().items()}

    @classmethod
    def restored(cls, numbers: dict[str, Any], arrays: dict[str, Array]) -> ClassLearner:
        """Return the learner of that state."""
        parts: dict[str, dict[str, Array]] = {"map": {}, "experts": {}}
        for name, array in arrays.items():
            part, _, own = name.partition(".")
            parts[part][own] = array
        learner = cls.__new__(cls)
        learner.map = FeatureMap.restored(numbers["intercept"], parts["map"])
        learner.experts = ClassExperts.restored(
            tuple(numbers["radii"]),
            numbers["classes"],
            numbers["adaptive"],
            numbers["t"],
            parts["experts"],
        )
        learner.renewal = numbers["renewal"]
        return learner

    def _learn_stretch(self, given: Labelled) -> None:
        """Learn rows up to the next one after which something else happens."""
        rows, labels, parts = given
        self.experts.learn(Labelled(self.map.rows(rows, parts), labels, parts))
        round_ends = self.experts.rows_to_end == BLOCK
        if self.t >= self.renewal or (round_ends and self.map.is_behind):
            self.map.renew()
            self.renewal = self.t + self.map.gap(self.t)

    def _change_map(self) -> None:
        """Go over to the map for many features, with the same classifiers in terms of features."""
        points = self.experts.points[: self.experts.width]
        weights, intercepts = self.map.to_features(points)
        self.map = self.map.diagonal()
        if self.t:
            self.experts.replace(self.map.from_features(weights, intercepts))


#: Radii that are used where none are given: scores of rows of usual length reach from soft to certain.
RADII = (10.0, 40.0, 160.0)
LEARNERS = ("pola", "pold")
#: Squares of scores stay in the range of numbers.
SMALLEST_RADIUS, LARGEST_RADIUS = 1e-100, 1e100


def make_learner(
    radii: Any, learner: Any, fit_intercept: Any, classes: int, features: int
) -> ClassLearner:
    """Return a new learner, or say which option is not what it may be."""
    if learner not in LEARNERS:
        raise ValueError(f'learner must be "pola" or "pold", got {learner!r}')
    adaptive = learner == "pola"
    return ClassLearner(checked_radii(radii), bool(fit_intercept), adaptive, classes, features)


def checked_radii(radii: Any) -> tuple[float, ...]:
    """Return the radii as numbers.

    >>> checked_radii("auto"), checked_radii(3)
    ((10.0, 40.0, 160.0), (3.0,))
    """
    if isinstance(radii, str):
        if radii != "auto":
            raise ValueError(f'radii must be "auto", a number or several, got {radii!r}')
        return RADII
    given = np.atleast_1d(radii).tolist()
    if not given:
        raise ValueError('radii must be "auto", a number or several, got none')
    found = tuple(checks.positive(radius, "each of radii") for radius in given)
    if not SMALLEST_RADIUS <= min(found) <= max(found) <= LARGEST_RADIUS:
        raise ValueError(
            f"each of radii must lie between {SMALLEST_RADIUS:g} and {LARGEST_RADIUS:g}, got {radii!r}"
        )
    return found


def plain_radii(radii: Any) -> Any:
    """Return the radii as an archive can hold them."""
    return radii if isinstance(radii, str) else np.asarray(radii).tolist()
