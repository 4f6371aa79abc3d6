"""`FeatureMap`: features rescaled while they stream in."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.estimators.classes.rows import Rows
from driftwolfe.points.compiled import compiled
from driftwolfe.points.decompositions import eigh
from driftwolfe.points.kinds import Array
from driftwolfe.points.ramps import ramp

kernels = compiled("driftwolfe.estimators.classes.feature_kernels")

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
    >>> from driftwolfe.estimators.classes.rows import as_rows
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
