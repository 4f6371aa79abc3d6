"""`AdaptiveIntervals`: prediction intervals around any regressor, whose coverage holds under drift."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from statistics import NormalDist
from typing import Annotated, Any, Self

import numpy as np

from driftwolfe import storage
from driftwolfe.domains import Simplex
from driftwolfe.learners.archive import ensemble_kinds
from driftwolfe.learners.saol import SAOL
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Count, Field, Reader, Stateful, Writer, check_fields
from driftwolfe.storage import Archive, require

#: Half-lives of the running means, in rows. All constants were chosen on TrumpApproval, MovieLens and the
#: streams of benchmarks/intervals.py, seeds 10 to 12, 20 to 25 and, of the steady one, 100 to 139;
#: docs/howto/intervals.md shows others.
HALF_LIVES = np.array([4.0, 16.0, 64.0, 256.0])
#: How often each is a candidate for the radius: `SAOL` starts at equal weights, and where nothing changes
#: some weight on short memories costs more than it takes to find them where something does.
COPIES = np.array([1, 1, 1, 9])
#: Candidates for the centre: 0, and the running means but the shortest; how often each.
CENTRE_COPIES = np.array([4, 1, 1, 4])
#: Steps of the logarithms of radii: of each candidate, at least, and of the interval itself.
STEP, LAST_STEP = 0.003, 0.01
#: Weight of a new row in the recent misses: a half-life of 40 rows.
RECENT = 1.0 - 0.5 ** (1.0 / 40.0)
#: Logarithms stay within these distances of their start, for rows that a model predicts exactly: those of
#: candidates, a factor of 148, and theta, a factor of 7.
WIDEST, MOST_OFFSET = 5.0, 2.0
#: Largest gain.
MOST_GAIN = 100.0
#: Rows before the first interval that is finite.
FIRST = 10
#: Largest size of predictions and targets.
LARGEST = 1e100
_RATES = 1.0 - 0.5 ** (1.0 / HALF_LIVES)


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


class AdaptiveIntervals(Stateful, Guarded):
    r"""Intervals around the predictions of a regressor that contain a given fraction of the targets.

    The interval is :math:`\hat y + c \pm \rho\, e^{\theta + g m}`. The centre c follows the median of the
    residuals :math:`y - \hat y`, the radius :math:`\rho` the quantile of :math:`|y - \hat y - c|`: each is a
    mix of running means of four memories (4, 16, 64 and 256 rows; 0 and the last three for the centre), mixed
    by `SAOL` on a simplex with pinball losses. A miss raises :math:`\theta` by 0.01 times the coverage, a hit
    lowers it by 0.01 times the rest; m is the running mean, over 40 rows, of misses less those wanted, and
    g the gain. Nothing need be tuned, and nothing is assumed of the targets.

    Parameters
    ----------
    model
        A regressor with ``predict`` and ``partial_fit`` (scikit-learn, `MatrixCompleter`), or with
        ``predict_one`` and ``learn_one`` (river). It learns what the intervals learn. None: give
        predictions to `observe` and `around`.
    coverage
        The fraction of targets to be inside, between 0 and 1.
    gain
        g, how much recent misses widen the interval: 0.1 too many by a factor of :math:`e^{0.1 g}`. A larger
        one brings the coverage of a hundred rows nearer to the wanted one, and makes intervals longer on
        average: with 8, a third less error and widths 1 % to 4 % longer than with 2.

    Attributes
    ----------
    n_rows_
        Rows that the intervals have learned from.
    offset_
        :math:`\theta` for the next row.
    recent_
        m, the recent misses less those wanted.

    Notes
    -----
    On every window of k rows, after the first ten, exactly

    .. math:: \text{fraction inside} = \text{coverage} - \frac{\theta_{end} - \theta_{start}}{0.01\,k},

    so the fraction is wrong by at most the range of :math:`\theta` over 0.01 k. :math:`\theta` stays between the
    smallest and the largest :math:`\ln(|y - \hat y - c|/\rho) - g m`, up to one step, and within ±2, where
    the equation ends: in practice after thousands of rows that a model predicts exactly. Not promised:
    coverage for each x, short intervals, or a small range of :math:`\theta` on any sequence.
    `pinball_bound` is about :math:`\rho`. docs/howto/intervals.md has proofs and measurements.

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
    _radius: SAOL
    _means: Annotated[
        Array, Field(np.float64, (len(HALF_LIVES),), -2.0 * LARGEST, 2.0 * LARGEST)
    ]  # residuals
    _sizes: Annotated[
        Array, Field(np.float64, (len(HALF_LIVES),), 0.0, 2.0 * LARGEST)
    ]  # around the centre
    #: The logarithm of the quantile over the mean size.
    _levels: Annotated[Array, Field(np.float64, (len(HALF_LIVES),))]
    offset_: Annotated[float, Field(float, None, -MOST_OFFSET, MOST_OFFSET)]
    recent_: Annotated[float, Field(float, None, -1.0, 1.0)]
    n_rows_: Count

    def __init__(self, model: Any = None, coverage: float = 0.9, *, gain: float = 2.0) -> None:
        checks.refuse_class(model)
        self.model, self.coverage = model, checks.positive(coverage, "coverage")
        if self.coverage >= 1.0:
            raise ValueError(f"coverage must lie between 0 and 1, got {coverage!r}")
        self.gain = checks.nonnegative(gain, "gain")
        if self.gain > MOST_GAIN:
            raise ValueError(f"gain must be at most {MOST_GAIN:g}, got {gain!r}")
        size, many, centres = HALF_LIVES.size, int(COPIES.sum()), int(CENTRE_COPIES.sum())
        # Candidates are at most 1, in units of the largest: so are slopes, times their number's root.
        self._centre = SAOL(Simplex(centres), lipschitz=math.sqrt(centres) / 2.0)
        steepest = max(self.coverage, 1.0 - self.coverage)
        self._radius = SAOL(Simplex(many), lipschitz=math.sqrt(many) * steepest)
        self._means, self._sizes = np.zeros(size), np.zeros(size)
        # As for normal residuals, and then what is learned.
        normal = NormalDist().inv_cdf(0.5 + 0.5 * self.coverage) * math.sqrt(0.5 * math.pi)
        self._start = math.log(normal)
        self._levels = np.full(size, self._start)
        self.offset_, self.recent_, self.n_rows_ = 0.0, 0.0, 0

    # -- with a model ------------------------------------------------------------------------------

    @writes
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Predict rows, let the model learn them, and learn from the errors, in the order of rows.

        A model of scikit-learn that has learned nothing yet only learns, the first time.
        """
        targets, predictions = _numbers(y, "y"), None
        learn = self._verb("partial_fit")
        try:
            predictions = _numbers(self._verb("predict")(X), "predictions", targets.shape)
        except ValueError as error:
            if type(error).__name__ != "NotFittedError":  # scikit-learn need not be there
                raise
        learn(X, y)
        if predictions is not None:
            self._observe(predictions, targets)
        return self

    @writes
    def learn_one(self, x: Any, y: Any) -> None:
        """Learn one row: a dict of features, or a (user, item) pair."""
        given, target = _row(x), _numbers([y], "y")
        predictions = _numbers([self._verb("predict_one")(*given)], "predictions")
        self._verb("learn_one")(*given, y)
        self._observe(predictions, target)

    @reads
    def predict(self, X: Any) -> Any:
        """Return what the model predicts."""
        return self._verb("predict")(X)

    @reads
    def predict_one(self, x: Any) -> Any:
        """Return what the model predicts for one row."""
        return self._verb("predict_one")(*_row(x))

    @reads
    def predict_interval(self, X: Any) -> tuple[Any, Any]:
        """Return the lower and the upper ends: arrays for rows, two numbers for a dict of features.

        They are infinite until ten rows have been learned from.
        """
        if isinstance(X, Mapping):
            lower, upper = self.around([self.predict_one(X)])
            return float(lower[0]), float(upper[0])
        if hasattr(self.model, "predict"):
            return self.around(self.predict(X))
        return self.around([self.predict_one(x) for x in X])

    # -- with predictions --------------------------------------------------------------------------

    @writes
    def observe(self, predictions: Any, y: Any) -> Self:
        """Learn from predictions, of any model, and the targets that came."""
        targets = _numbers(y, "y")
        self._observe(_numbers(predictions, "predictions", targets.shape), targets)
        return self

    @reads
    def around(self, predictions: Any) -> tuple[Array, Array]:
        """Return the lower and the upper ends of the next row's interval around each prediction."""
        values = _numbers(predictions, "predictions")
        if self.n_rows_ < FIRST:
            return np.full(values.shape, -math.inf), np.full(values.shape, math.inf)
        centre, radius = self._centre.decision @ self._centres(), self._half_width()
        return values + (centre - radius), values + (centre + radius)

    def pinball_bound(self, tau: int | None = None) -> float:
        r"""Return a bound on how much more :math:`\rho` lost than the best fixed mix of its candidates.

        On all intervals of tau rows; None: on all rows. Losses are pinball losses of
        :math:`|y - \hat y - c|`, each over the largest candidate of its row.
        """
        return self._radius.bound(tau=tau)

    # -- files -------------------------------------------------------------------------------------

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the intervals to a file, without the model, which has its own ways."""
        writer = Writer(ensemble_kinds())
        settings = {"coverage": self.coverage, "gain": self.gain, "state": writer.write_part(self)}
        storage.write_archive(path, type(self).__name__, settings, writer.arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], model: Any = None) -> Self:
        """Return the intervals that `save` wrote, around a model; they resume bit-identically."""
        fields = {
            "coverage": Field(float, least=0.0, most=1.0),
            "gain": Field(float, least=0.0, most=MOST_GAIN),
            "state": Field(dict),
        }

        def check(archive: Archive) -> None:
            check_fields(fields, archive.settings, cls.__name__)

        with storage.enough_memory(path):
            archive = storage.read_archive(path, check, cls.__name__)
            settings = archive.settings
            loaded = cls(model, settings["coverage"], gain=settings["gain"])
            Reader(ensemble_kinds(), archive).restore(loaded)
        return loaded

    def check(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(np.abs(self._levels - self._start).max() <= WIDEST * (1.0 + 1e-9), "radii")
        require(max(0, self.n_rows_ - FIRST) == self._radius.t == self._centre.t, "rows")

    def __repr__(self) -> str:
        numbers = f"coverage={self.coverage:g}, gain={self.gain:g}, rows={self.n_rows_}"
        return f"AdaptiveIntervals({self.model!r}, {numbers})"

    # -- the method --------------------------------------------------------------------------------

    def _observe(self, predictions: Array, targets: Array) -> None:
        """Learn from residuals, one after the other."""
        for residual in (targets - predictions).tolist():
            centres = self._centres()
            distance = abs(residual - float(self._centre.decision @ centres))
            if self.n_rows_ >= FIRST:
                self._learn(residual, distance, centres)
            # Plain means at first.
            rate = np.maximum(_RATES, 1.0 / (self.n_rows_ + 1.0))
            self._sizes = self._sizes + rate * (distance - self._sizes)
            self._means = self._means + rate * (residual - self._means)
            self.n_rows_ += 1

    def _learn(self, residual: float, distance: float, centres: Array) -> None:
        """One row: move theta and m by a hit or a miss, and let both mixes and all candidates learn."""
        excess = float(distance > self._half_width()) - (1.0 - self.coverage)
        candidates, radii = self._candidates(), self._radii()
        self.offset_ = min(max(self.offset_ + LAST_STEP * excess, -MOST_OFFSET), MOST_OFFSET)
        self.recent_ += RECENT * (excess - self.recent_)
        for learner, mixed, target, quantile, others in (
            (self._radius, candidates, distance, self.coverage, 0.0),
            (self._centre, centres, residual, 0.5, float(self._sizes.max())),
        ):
            # In units of the largest candidate, and a target far away pulls no more than a near one.
            unit = max(float(np.abs(mixed).max()), others, 1e-6 * abs(target)) or 1.0
            learner.update(PinballOfMix(mixed / unit, target / unit, quantile))
        # Longer steps at first.
        step = min(0.1, max(STEP, 1.0 / (self.n_rows_ - FIRST + 1)))
        levels = self._levels + step * ((distance > radii) - (1.0 - self.coverage))
        self._levels = np.clip(levels, self._start - WIDEST, self._start + WIDEST)

    def _centres(self) -> Array:
        """The candidates for the centre: none, and running means of residuals."""
        return np.repeat(np.append(0.0, self._means[1:]), CENTRE_COPIES)

    def _radii(self) -> Array:
        """Running means of distances, each times its own factor."""
        return self._sizes * np.exp(self._levels)

    def _candidates(self) -> Array:
        """The candidates for the radius."""
        return np.repeat(self._radii(), COPIES)

    def _half_width(self) -> float:
        moved = self.offset_ + self.gain * self.recent_
        return float(self._radius.decision @ self._candidates()) * math.exp(moved)

    def _verb(self, name: str) -> Any:
        """A method of the model."""
        if not callable(found := getattr(self.model, name, None)):
            raise TypeError(
                f"the model, {type(self.model).__name__}, has no {name}: give a model with predict and "
                "partial_fit, or predict_one and learn_one, or use observe and around"
            )
        return found


def _row(x: Any) -> tuple[Any, ...]:
    """What river's models take for a row."""
    return tuple(x) if isinstance(x, list | tuple) else (x,)


def _numbers(given: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return numbers in a row, checked."""
    found = checks.finite_array(given, name, shape)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got shape {found.shape}")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must lie within ±{LARGEST:g}")
    return found
