"""`Band`: a curve over rounds, mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from driftwolfe.experiments.series import Curve, Series
from driftwolfe.points.kinds import Array, Indices

#: The part of the rounds whose averages are still noise.
EARLY = 0.05
#: The ratio from which an axis is logarithmic.
WIDE = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A mean and what surrounds it by a standard deviation.

    Attributes
    ----------
    rounds
        Where it was read.
    mean, deviation
        Over seeds, an entry for each of `rounds`.
    """

    rounds: Indices
    mean: Array
    deviation: Array

    @property
    def low(self) -> Array:
        """The mean less the deviation."""
        return self.mean - self.deviation

    @property
    def high(self) -> Array:
        """The mean and the deviation."""
        return self.mean + self.deviation

    def thinned(self, most: int) -> Band:
        """The same at `most` rounds at the most, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        return Band(self.rounds[kept], self.mean[kept], self.deviation[kept])


def band(series: Series, curve: Curve, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    values = series.curve(curve)
    if average:
        values = values / series.rounds
    several = len(values) > 1
    deviation = values.std(axis=0, ddof=1) if several else np.zeros(values.shape[1])
    return Band(series.rounds, values.mean(axis=0), deviation)


def evenly(size: int, most: int) -> Indices:
    """Up to `most` of the places 0, ..., size - 1, both ends among them.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).round().astype(np.int64)


def settled_range(bands: Sequence[Band]) -> tuple[float, float]:
    """A range that holds the bands but for their first rounds, which are noise.

    Curves that do not outlive those are held whole, from their middle on.
    """
    last = max(int(each.rounds[-1]) for each in bands)
    lows, highs = [], []
    for each in bands:
        kept = each.rounds >= min(EARLY * last, 0.5 * each.rounds[-1])
        lows.append(float(each.low[kept].min()))
        highs.append(float(each.high[kept].max()))
    low, high = min(lows), max(highs)
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return low - margin, high + margin


def spans_widely(values: Iterable[float]) -> bool:
    """Whether positive values lie so far apart that only a logarithmic axis shows them all."""
    found = list(values)
    return bool(found) and min(found) > 0.0 and max(found) > WIDE * min(found)
