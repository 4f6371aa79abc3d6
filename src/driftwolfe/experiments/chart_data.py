"""What figures and interactive charts show, computed once: curves, regrets, values of c, weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from driftwolfe.experiments.figure_style import CALL_DASHES, LineStyle, line_styles
from driftwolfe.experiments.summary import CALLS, Calls, Curve, Series, Spread, Summary, counted
from driftwolfe.experiments.tables import RegretRow
from driftwolfe.points.kinds import Array, Indices

#: The part of the rounds whose averages are still noise.
EARLY = 0.05
#: The ratio from which an axis is logarithmic.
WIDE = 20.0
#: Short names of oracle calls.
CALL_LABELS: dict[Calls, str] = {
    "lmo": "LMO",
    "projection": "projection",
    "gauge": "gauge",
    "membership": "membership",
}


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts == [1]:
        return "one seed"
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean ± standard deviation over {number} seeds"


def evenly(size: int, most: int) -> Indices:
    """Up to `most` of the places 0, ..., size - 1, both ends among them.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).round().astype(np.int64)


def spans_widely(values: Iterable[float]) -> bool:
    """Whether positive values lie so far apart that only a logarithmic axis shows them all."""
    found = list(values)
    return bool(found) and min(found) > 0.0 and max(found) > WIDE * min(found)


# -- curves ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A mean over seeds and its standard deviation, after each of `rounds`."""

    rounds: Indices
    mean: Array
    deviation: Array

    @property
    def high(self) -> Array:
        """The mean and the deviation."""
        return self.mean + self.deviation

    def low(self, *, positive: bool = False) -> Array:
        """The mean less the deviation; above zero for a logarithmic axis."""
        low = self.mean - self.deviation
        return np.maximum(low, 0.1 * self.mean) if positive else low

    def thinned(self, most: int) -> Band:
        """At most `most` of the rounds, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        return Band(self.rounds[kept], self.mean[kept], self.deviation[kept])


def band(series: Series, curve: Curve, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    values = series.curve(curve) / (series.rounds if average else 1)
    deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return Band(series.rounds, values.mean(axis=0), deviation)


@dataclass(frozen=True, slots=True)
class Line:
    """A curve of a method."""

    series: Series
    style: LineStyle
    band: Band
    kind: Calls | None = None  # the oracle whose calls it counts

    @property
    def label(self) -> str:
        """The method, and the oracle whose calls are counted."""
        return self.series.label + (f": {CALL_LABELS[self.kind]}" if self.kind else "")


@dataclass(frozen=True, slots=True)
class Panel:
    """Curves over rounds that share a vertical axis."""

    title: str
    unit: str
    lines: list[Line]
    log: bool = False
    low: float | None = None  # where the axis starts and ends; None: at the last point
    high: float | None = None


def loss_panels(summary: Summary) -> list[Panel]:
    """Average loss, cumulative loss and run time.

    The first leaves out what only the first twentieth of the rounds would need; the third is
    logarithmic where the slowest method takes more than 20 times as long as the fastest.
    """
    style = line_styles(summary.titles)

    def lines(curve: Curve, *, average: bool = False) -> list[Line]:
        return [
            Line(series, style[title], band(series, curve, average=average))
            for title, series in summary.chosen.items()
        ]

    losses, seconds = lines("loss", average=True), lines("seconds")
    low, high = settled_range([line.band for line in losses])
    log = spans_widely(float(line.band.mean[-1]) for line in seconds)
    # The first rounds would take half of a logarithmic axis.
    after_start = [float(line.band.mean[len(line.band.mean) // 50]) for line in seconds]
    return [
        Panel("Average loss", "loss per round", losses, low=low, high=high),
        Panel("Cumulative loss", "loss", lines("loss")),
        Panel("Run time", "processor time (s)", seconds, log, min(after_start) if log else None),
    ]


def settled_range(bands: Sequence[Band]) -> tuple[float, float]:
    """A range that holds the bands but for their first rounds, which are noise.

    Curves that end before those are held from their middle on.
    """
    last = max(int(each.rounds[-1]) for each in bands)
    lows, highs = [], []
    for each in bands:
        kept = each.rounds >= min(EARLY * last, 0.5 * each.rounds[-1])
        lows.append(float(each.low()[kept].min()))
        highs.append(float(each.high[kept].max()))
    low, high = min(lows), max(highs)
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return low - margin, high + margin


def call_panel(summary: Summary) -> Panel | None:
    """Calls of each oracle so far; the dash says which oracle. None where no method called any."""
    style = line_styles(summary.titles)
    lines = []
    for title, series in summary.chosen.items():
        for kind in CALLS:
            calls = band(series, kind)
            if calls.mean[-1] > 0:
                dashed = replace(style[title], dash=CALL_DASHES[kind])
                lines.append(Line(series, dashed, calls, kind))
    return Panel("", "oracle calls so far", lines, log=True) if lines else None


# -- regret ----------------------------------------------------------------------------------------


def measures(regrets: Sequence[RegretRow]) -> dict[str, dict[str, Spread]]:
    """Known regrets, by measure and then by method."""
    found = {"Dynamic regret": {row.title: row.dynamic for row in regrets if row.dynamic}}
    for tau in sorted({tau for row in regrets for tau in row.adaptive}):
        known = {row.title: row.adaptive[tau] for row in regrets if tau in row.adaptive}
        found[f"Adaptive regret, τ = {tau:,}"] = known
    return {name: values for name, values in found.items() if values}


def measured(regrets: Sequence[RegretRow]) -> list[str]:
    """The methods of which any regret is known."""
    return [row.title for row in regrets if row.dynamic is not None or row.adaptive]


# -- values of c -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tuning:
    """The loss of a method by c."""

    title: str
    label: str  # for the legend
    style: LineStyle
    scales: list[float]  # values of c, rising
    losses: list[Spread]  # mean loss per round with each
    chosen: float | None  # the c that it was run with, where that is one of them
    partial: bool  # whether it was tuned on fewer rounds than it was run on


def tunings(summary: Summary) -> list[Tuning]:
    """The methods that were run with several c."""
    style = line_styles(summary.titles)
    found = []
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) > 1:
            scales = [series.c or 0.0 for series in tried]
            first = max(series.played for series in tried)
            partial = first < chosen.played
            label = f"{title} (tuned on the first {counted(first, 'round')})" if partial else title
            losses = [series.mean_loss for series in tried]
            best = chosen.c if chosen.c in scales else None
            found.append(Tuning(title, label, style[title], scales, losses, best, partial))
    return found


# -- expert weights --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class ExpertTable:
    """Expert weights of a method in its first seed."""

    label: str
    seed: int
    rounds: list[int]
    experts: list[str]  # by rising step size, epoch or length
    values: Array  # by expert, then by round; nan where it was not active

    def thinned(self, most: int) -> ExpertTable:
        """At most `most` of the rounds, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        rounds = [self.rounds[place] for place in kept]
        return replace(self, rounds=rounds, values=self.values[:, kept])


def expert_tables(summary: Summary) -> list[ExpertTable]:
    """The methods with experts."""
    found = []
    for series in summary.chosen.values():
        result = series.results[0]
        weights = result.weights
        if weights is not None and weights.experts and weights.rounds:
            sizes = [expert_size(name) for name in weights.experts]
            order = sorted(range(len(sizes)), key=sizes.__getitem__)
            names = [weights.experts[place] for place in order]
            values = np.array(weights.values, dtype=float).T[order]
            seed = result.trial.seed
            found.append(ExpertTable(series.label, seed, weights.rounds, names, values))
    return found


def expert_size(expert: str) -> float:
    """The number in an expert's name; 0 where there is none.

    >>> expert_size("η = 0.0145"), expert_size("γ = 1,024"), expert_size("η = 2e-05")
    (0.0145, 1024.0, 2e-05)
    """
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0


def largest_weight(tables: Iterable[ExpertTable]) -> float:
    """The largest weight where several experts are active: a single one always has weight 1."""
    contested = [table.values[:, (~np.isnan(table.values)).sum(axis=0) > 1] for table in tables]
    return max((float(np.nanmax(values)) for values in contested if values.size), default=1.0)


def seed_list(tables: Iterable[ExpertTable]) -> str:
    """The seeds of tables, in words."""
    return f"seed {', '.join(map(str, sorted({table.seed for table in tables})))}"
