"""Rows of features: sparse, weighted, rescaled online by a `FeatureMap`, or seen through random features."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.devices import eigh, one_blas_thread
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import Field, Part
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.core.shared_kernels")

#: Larger features are refused, smaller ones count as 0: their squares could overflow. As in `shared_kernels`.
LARGEST, SMALLEST = 1e100, 1e-100
#: A feature whose scale is at most this fraction of its mean is constant: what varies is rounding.
CONSTANT = 1e-12
#: Sums of squares of features and of their weights are smaller, and either 0 or larger.
LARGEST_SQUARE, SMALLEST_SQUARE = 1e250, 1e-260
#: Features and their inverse scales are smaller.
LARGEST_SCALE = 1e150
#: For what holds exactly but for rounding.
ROUNDING = 1.0 + 1e-6
_REAL, _SCALE = np.float64, (-LARGEST_SCALE, LARGEST_SCALE)
_TINY = float(np.finfo(np.float64).tiny)


class SparseRows(NamedTuple):
    """Sparse rows: the entries of row k are those from ``starts[k]`` to ``starts[k + 1]``."""

    starts: Indices
    places: Indices
    values: Array

    @property
    def number(self) -> int:
        return self.starts.size - 1

    def taken(self, order: Indices) -> SparseRows:
        """The rows of those numbers, in that order."""
        lengths = (self.starts[1:] - self.starts[:-1])[order]
        starts = np.concatenate((np.zeros(1, np.int64), lengths.cumsum()))
        shift = np.repeat(self.starts[:-1][order] - starts[:-1], lengths)
        chosen = np.arange(starts[-1]) + shift
        return SparseRows(starts, self.places[chosen], self.values[chosen])

    def stretch(self, first: int, last: int) -> SparseRows:
        """The rows from `first` up to, not including, `last`."""
        starts = self.starts[first : last + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return SparseRows(starts - starts[0], self.places[entries], self.values[entries])


def sound(given: Any, name: str) -> Any:
    """Check what scikit-learn does not check: masks, and indices of sparse matrices."""
    checks.refuse_masked(given, name)
    return checks.sound_sparse(given, name)


def as_rows(X: Any) -> SparseRows:
    """Return the rows of an array or a sparse matrix, the same for both; places rise within a row."""
    sparse = scipy.sparse.issparse(X)
    if sparse:
        X = scipy.sparse.csr_array(X, copy=True)
        X.sum_duplicates()
    held = X.data if sparse else X
    if not np.abs(held).max(initial=0.0) <= LARGEST:
        raise ValueError(f"features must lie between -{LARGEST:g} and {LARGEST:g}: rescale them")
    if not sparse:
        return dense_rows(X)
    _say_if_fewer(np.count_nonzero(np.abs(held) >= SMALLEST), held)
    held[np.abs(held) < SMALLEST] = 0.0
    X.eliminate_zeros()
    return SparseRows(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)


def _say_if_fewer(kept: Any, given: Array) -> None:
    """Warn of features that count as 0 and are not 0."""
    if kept < given.size and kept < np.count_nonzero(given):
        text = f"features smaller than {SMALLEST:g} in size count as 0: rescale them"
        warnings.warn(text, UserWarning, stacklevel=2)


def dense_rows(X: Array) -> SparseRows:
    """Return the rows of an array whose range has been checked."""
    width, flat = X.shape[1], X.ravel()
    entries = (np.abs(flat) >= SMALLEST).nonzero()[0]
    _say_if_fewer(entries.size, flat)
    if len(X) == 1:  # which streams have, and which is quicker
        return SparseRows(np.array([0, entries.size]), entries, flat[entries])
    starts = entries.searchsorted(width * np.arange(len(X) + 1))
    return SparseRows(starts, entries % width, flat[entries])


def longer(array: Array, *sizes: int) -> Array:
    """Return an array with zeros after its entries, up to the sizes given; new rows take no memory yet."""
    found = np.zeros((*sizes, *array.shape[len(sizes) :]))
    found[tuple(map(slice, array.shape))] = array
    return found


@lru_cache(256)
def ends(entries: int) -> Indices:
    """Return the starts of one row of so many entries."""
    return np.array((0, entries))


#: A row of larger weight is learned as so many copies; larger weights are refused, smaller ones count as 0.
MOST_COPIES = 100
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e9, 1e-12


def weights_of_rows(given: Any, number: int, what: str) -> Array:
    """Return a weight for each of `number` rows, checked; one number is for all, None is 1."""
    weights = checks.real_array(1.0 if given is None else given, what)
    if weights.ndim and weights.shape != (number,):
        raise ValueError(
            f"{what} must hold one number for each of {number} rows, got {weights.shape}"
        )
    if not ((weights >= 0.0) & (weights <= LARGEST_WEIGHT)).all():
        raise ValueError(f"{what} must lie between 0 and {LARGEST_WEIGHT:g}")
    return np.broadcast_to(weights, (number,))


def as_one_row(model: Any, X: Any) -> SparseRows | None:
    """Return X if it is one row of numbers as a fitted model learned them, which needs no check but range."""
    if type(X) is not np.ndarray or X.shape != (1, model._columns.plain):
        return None
    named = "feature_names_in_" in model.__dict__  # then scikit-learn warns
    if named or X.dtype != np.float64 or not X.flags.c_contiguous:
        return None
    return SparseRows(ends(X.size), np.arange(X.size), X[0])


def copies(given: Any, number: int, what: str) -> tuple[Indices, Array]:
    """Return which of `number` rows to learn, and with which weights, where these weights are given.

    A row of weight w becomes the fewest equal copies of weight at most 1, or 100 copies of larger weight.
    """
    if given is None:
        return np.arange(number), np.ones(number)
    weights = weights_of_rows(given, number, what)
    times = np.minimum(np.ceil(weights), MOST_COPIES).astype(np.int64)
    times[weights < SMALLEST_WEIGHT] = 0
    order = np.repeat(np.arange(number), times)
    return order, weights[order] / times[order]


class LoopPart(Part):
    """A part whose arrays loops find by address; `latest` is another object once one may have been replaced."""

    latest: ClassVar[object] = object()  # of all such parts; no count, as threads could lose one

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_bound" and not isinstance(value, (int, float)):
            LoopPart.latest = object()


#: Up to so many features second moments are kept and correlations removed; up to so few BLAS takes one thread.
FULL_FEATURES, FEW_FEATURES = 256, 24
#: Exponent of that: 0 would only standardise, 1 whiten. Measured: 0.5 is better on small tables by up
#: to a tenth of the log loss, 1 on Shuttle with flipped signs by a fortieth.
POWER = 0.75
#: Rows' worth of uncorrelated data that the correlations are mixed with.
PRIOR_ROWS = 30.0
#: Numbers of rows.
COUNT = Field(int, least=0, below=1 << 53)


class FeatureMap(LoopPart):
    r"""Rescales rows of features by statistics of the rows so far.

    Up to 256 features a row x becomes

    .. math:: z = \tfrac1g (1, A (x - m)), \qquad A = (K + \tfrac{30}{n} I)^{-3/8} S^{-1}

    with m the running mean, S the scales, K the correlations, n the rows counted, and g the root
    mean square of the norms; a z longer than 2 is shortened to 2. Scales are standard deviations, or
    those of the nonzero entries about the mean if larger: so a rare feature is not blown up when it
    comes. Beyond 256 features rows stay sparse: m = 0, K = I, and scales are the root mean squares of
    the nonzero entries.
    """

    # The weight of all rows, and the sum of their squared norms; the weight of rows in which a feature was not 0.
    totals: Annotated[Array, Field(_REAL, (2,), 0.0, LARGEST_SCALE)]
    seen: Annotated[Array, Field(_REAL, ("features",), 0.0)]
    mean: Annotated[Array, Field(_REAL, ("full",), *_SCALE)]
    moments: Annotated[Array, Field(_REAL, ("full", "full"))]  # about the mean, lower triangle
    squares: Annotated[Array, Field(_REAL, ("others",))]  # sums, of many features
    centre: Annotated[Array, Field(_REAL, ("full",), *_SCALE)]  # m of the last renewal
    table: Annotated[Array, Field(_REAL, ("full", "full"), *_SCALE)]  # A transposed
    last: Annotated[Array, Field(_REAL, ("full",), *_SCALE)]  # the row before
    changes: Annotated[Array, Field(_REAL, ("full",), 0.0)]  # sums of squares

    def __init__(self, features: int) -> None:
        self.totals, self.seen = np.zeros(2), np.zeros(features)
        self.full = features <= FULL_FEATURES
        width = features if self.full else 0
        self.mean, self.moments = np.zeros(width), np.zeros((width, width))
        self.centre, self.table = np.zeros(width), np.zeros((width, width))
        self.squares = np.zeros(features - width)
        self.last, self.changes = np.zeros(width), np.zeros(width)

    def derive(self) -> None:
        self.full = self.mean.size == self.seen.size

    def check(self) -> None:
        width = self.features if self.features <= FULL_FEATURES else 0
        sizes = self.mean.size, self.squares.size
        require(sizes == (width, self.features - width), "features")
        # Scales must not leave the range of numbers.
        moments, seen, (weight, lengths) = self.moments, self.seen, self.totals
        squares = np.concatenate((moments.diagonal(), self.squares))
        in_range = (squares == 0.0) | ((squares >= SMALLEST_SQUARE) & (squares <= LARGEST_SQUARE))
        require(in_range.all(), "squares of features")
        # Cauchy and Schwarz: correlations are at most 1.
        roots = np.sqrt(moments.diagonal())
        lower = np.abs(np.tril(moments, -1))
        require((lower <= ROUNDING * roots * roots[:, None]).all(), "moments of features")
        require(weight > 0.0 or (lengths == 0.0 and not squares.any()), "totals")
        require((seen <= ROUNDING * weight).all(), "totals")
        require((seen[squares > 0.0] >= SMALLEST_WEIGHT / 2).all(), "totals")

    @property
    def features(self) -> int:
        return self.seen.size

    @property
    def held(self) -> tuple[Array, ...]:
        """The arrays of a map for few features."""
        known = self.totals, self.seen, self.mean, self.moments, self.centre, self.table
        return *known, self.last, self.changes

    def rows(self, given: SparseRows, parts: Array) -> SparseRows | None:
        """Return rows of many features mapped, None if one is out of range; count them if `parts` are given."""
        room = given.values.size + given.number
        out = np.empty_like(given.starts), np.empty(room, np.int64), np.empty(room)
        held = parts, self.totals, self.seen, self.squares
        return SparseRows(*out) if kernels().diagonal_rows.unchecked(*given, *held, *out) else None

    def renew(self) -> None:
        """Recompute the map; up to 256 features it is constant in between."""
        if not self.full or self.totals[0] == 0.0:
            return
        weight, scales = self.totals[0], self._scales()
        width = np.maximum(CONSTANT * np.abs(self.mean), _TINY)
        trust = (np.minimum(scales, 2.0 * width) - width) / width  # 1 at most
        known = (trust > 0.0).nonzero()[0]
        own: Any = slice(None) if known.size == trust.size else np.ix_(known, known)
        factors = trust[known] / scales[known]
        correlations = self.moments[own] / weight * factors[:, None] * factors  # lower triangle
        # A rare feature has a larger scale than its deviation. The rest of its variance counts as noise of
        # its own, or whitening would blow it up after all: so ones on the diagonal.
        correlations.flat[:: factors.size + 1] = 1.0
        with one_blas_thread() if factors.size > FEW_FEATURES else nullcontext():
            values, vectors = eigh(correlations)
            powers = (np.maximum(values, 0.0) + PRIOR_ROWS / weight) ** (-POWER / 2.0)
            inner = (vectors * powers) @ vectors.T
        # In place: loops need not be given other arrays.
        if known.size < trust.size:
            self.table[:] = 0.0
        self.table[own] = inner * factors[:, None]
        self.centre[:] = self.mean

    @property
    def is_behind(self) -> bool:
        """Whether a feature has a scale by now that the map does not have."""
        rounding = self.totals[0] * (CONSTANT * self.mean) ** 2
        varies = self.moments.diagonal() > rounding
        return bool((varies & (self.table.diagonal() == 0.0)).any())

    def grow(self, features: int) -> None:
        """Make room for more features, which were 0 so far."""
        more = features - self.features
        full = "mean", "centre", "moments", "table", "last", "changes"
        for name in ("seen", *(full if self.full else ("squares",))):
            old = getattr(self, name)
            setattr(self, name, longer(old, *[size + more for size in old.shape]))

    def diagonal(self) -> FeatureMap:
        """Return the map for many features that has counted the same rows."""
        other, weight = FeatureMap(0), self.totals[0]
        other.full, other.seen = False, self.seen.copy()
        other.squares = self.moments.diagonal() + weight * self.mean**2
        # The mean of (x / scale)^2 is the fraction of rows in which x is not 0.
        other.totals = np.array([weight, self.seen.sum() + weight])
        return other

    def to_features(self, inner: Array) -> tuple[Array, Array]:
        """Return weights of features and intercepts from weights of z, one column each."""
        length = np.sqrt(self.totals[1] / self.totals[0]) if self.totals[1] > 0.0 else 1.0
        intercepts = inner[0] / length
        if self.full:
            weights = self.table @ inner[1:] / length
            return weights, intercepts - self.centre @ weights
        inverse = np.divide(1.0, self._scales(), where=self.squares > 0.0, out=0.0 * self.squares)
        return inverse[:, None] * inner[1:] / length, intercepts

    def from_features(self, weights: Array, intercepts: Array) -> Array:
        """Return weights of z from weights of features and intercepts; for many features only."""
        length = np.sqrt(self.totals[1] / self.totals[0])
        return np.vstack((intercepts, self._scales()[:, None] * weights)) * length

    def _scales(self) -> Array:
        """The scales of the features, 0 if unknown."""
        seen = np.maximum(self.seen, _TINY)
        if not self.full:
            return np.sqrt(self.squares / seen)
        weight, total = self.totals[0], self.moments.diagonal()
        # The zeros of a feature are at the distance |mean| from the mean.
        others = np.maximum(total - (weight - self.seen) * self.mean * self.mean, 0.0)
        return np.sqrt(np.maximum(total / weight, others / seen))


#: Number of waves, how many features each uses, if there are as many, and the deviation of slopes.
WAVES, LEAST_INPUTS, MOST_INPUTS, SLOPE = 96, 2, 3, 2.0
#: Number of ferns, and how many tests each has.
FERNS, TESTS = 128, 5
#: The map of the waves is recomputed after so many rounds, as a fraction of those played.
RENEWAL = 0.2


class RandomViews(LoopPart):
    r"""Two ways to see a row through random features.

    Waves are cosines of two or three features of z, with normal slopes of deviation 2 where features
    have deviation 1, decorrelated online by a `FeatureMap` of their own; z follows them. A fern puts a row
    into one of 32 leaves by five tests, each whether a feature x is above a cut: its mean plus a normal
    number of deviations, as of row 32. A leaf with frequency q is the entry :math:`q^{-1/4}`, and all
    entries are divided by their root mean square norm. Where tests ask for what is missing, the row is in each of
    up to four leaves, by their frequencies; a fern of which more are open says nothing.
    """

    inputs: Annotated[Indices, Field(np.int64, ("waves", MOST_INPUTS), 0)]  # places in z
    slopes: Annotated[Array, Field(_REAL, ("waves", MOST_INPUTS), *_SCALE)]
    offsets: Annotated[Array, Field(_REAL, ("waves",), *_SCALE)]
    waves: Annotated[FeatureMap, {"features": "waves", "full": "waves", "others": 0}]
    tests: Annotated[Indices, Field(np.int64, ("ferns", TESTS), 0, below="features")]
    cuts: Annotated[Array, Field(_REAL, ("ferns", TESTS))]
    counts: Annotated[Array, Field(_REAL, ("leaves",), 0.0)]  # weights of rows, by leaf
    totals: Annotated[Array, Field(_REAL, (2,), 0.0, LARGEST_SCALE)]  # as those of a map
    renewal: Annotated[int, COUNT]  # the round after which the map of the waves is recomputed

    def __init__(self) -> None:
        self.inputs, self.slopes = np.zeros((0, MOST_INPUTS), np.int64), np.zeros((0, MOST_INPUTS))
        self.offsets, self.waves = np.zeros(0), FeatureMap(0)
        self.tests, self.cuts = np.zeros((0, TESTS), np.int64), np.zeros((0, TESTS))
        self.counts, self.totals, self.renewal = np.zeros(0), np.zeros(2), 0

    def check(self) -> None:
        sizes = self.offsets.size, len(self.tests), self.counts.size
        require(sizes in ((0, 0, 0), (WAVES, FERNS, FERNS << TESTS)), "random features")

    def start(self, features: FeatureMap, seed: int) -> None:
        """Draw waves and ferns for the features known by now."""
        rng, number = np.random.default_rng(seed), features.features
        self.tests = rng.integers(0, number, (FERNS, TESTS))
        scales = features._scales()
        scales[scales <= CONSTANT * np.abs(features.mean)] = 0.0  # only rounding varies
        scales = scales[self.tests]
        self.cuts = features.mean[self.tests] + rng.normal(size=self.tests.shape) * scales
        # Nothing is to be learned from a constant.
        self.cuts[scales == 0.0] = np.finfo(np.float64).max
        shape = WAVES, MOST_INPUTS
        self.inputs, self.slopes = np.zeros(shape, np.int64), np.zeros(shape)
        for used, slope in zip(self.inputs, self.slopes, strict=True):
            chosen = 1 + rng.permutation(number)[: rng.integers(LEAST_INPUTS, MOST_INPUTS + 1)]
            used[: chosen.size] = chosen
            slope[: chosen.size] = rng.normal(scale=SLOPE, size=chosen.size)
        self.slopes *= np.sqrt(number + 1.0)  # z has norm 1
        self.offsets = rng.uniform(0.0, 2.0 * np.pi, WAVES)
        self.waves = FeatureMap(WAVES)
        self.counts = np.zeros(FERNS << TESTS)

    @property
    def held(self) -> tuple[Any, ...]:
        """The arrays of waves and ferns, those of their map first."""
        waves = self.inputs, self.slopes, self.offsets
        return *self.waves.held, *waves, self.tests, self.cuts, self.counts, self.totals

    def renew(self, t: int) -> None:
        """Recompute the map of the waves, if it is time."""
        if t >= self.renewal:
            self.waves.renew()
            self.renewal = t + max(16, int(RENEWAL * t))
