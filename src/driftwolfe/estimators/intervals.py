"""`AdaptiveIntervals`: prediction intervals around any regressor, whose coverage holds under drift."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.estimators.threshold import (
    FIRST,
    LARGEST,
    AdaptiveThreshold,
    GroupScale,
    as_groups,
    learn_mix,
)
from driftwolfe.learners.saol import SAOL
from driftwolfe.points import checks
from driftwolfe.points.access import reads
from driftwolfe.points.kinds import Array
from driftwolfe.storage import require

#: Candidates for the centre: 0, and the running means but the shortest; how often each. Chosen where those
#: of the threshold were.
CENTRE_COPIES = np.array([4, 1, 1, 4])


class AdaptiveIntervals(AdaptiveThreshold):
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
        """Refuse a state, read from a file, whose parts do not fit together."""
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
        """The centre, for the next row of a group."""
        return float(self._centre.decision @ _centres(scale))


def _centres(scale: GroupScale) -> Array:
    """The candidates for the centre: none, and running means of residuals."""
    return np.repeat(np.append(0.0, scale._means[1:]), CENTRE_COPIES)


def _numbers(given: Any, name: str, shape: tuple[int, ...] | None = None) -> Array:
    """Return numbers in a row, checked."""
    found = checks.finite_array(given, name, shape)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, got shape {found.shape}")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} must lie within ±{LARGEST:g}")
    return found
