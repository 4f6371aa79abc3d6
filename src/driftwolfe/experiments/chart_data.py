"""What figures and interactive charts show, described once: lines, regrets, expert weights."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from driftwolfe.experiments.figure_style import LineStyle, line_styles
from driftwolfe.experiments.summary import CALLS, Curve, Series, Spread, Summary, counted
from driftwolfe.experiments.tables import RegretRow, number
from driftwolfe.points.kinds import Array, Indices

#: The part of the rounds whose averages are still noise.
EARLY = 0.05
#: The ratio of positive values from which only a logarithmic axis shows them all.
WIDE = 20.0


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts == [1]:
        return "one seed"
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean ± standard deviation over {number} seeds"


def evenly(size: int, most: int) -> Indices:
    """Up to `most` of the places 0, ..., size - 1, both ends among them."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A mean over seeds and its standard deviation at each of `x`: rounds, or values of c."""

    x: Array | Indices
    mean: Array
    deviation: Array

    @property
    def high(self) -> Array:
        return self.mean + self.deviation

    def low(self, *, positive: bool = False) -> Array:
        """The mean less the deviation; above zero for a logarithmic axis."""
        low = self.mean - self.deviation
        return np.maximum(low, 0.1 * self.mean) if positive else low

    def thinned(self, most: int) -> Band:
        """At most `most` of the points, the first and the last among them."""
        kept = evenly(len(self.x), most)
        return Band(self.x[kept], self.mean[kept], self.deviation[kept])


def band(series: Series, curve: Curve, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    values = series.curve(curve) / (series.rounds if average else 1)
    deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
    return Band(series.rounds, values.mean(axis=0), deviation)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a method."""

    title: str  # of the method
    label: str  # for a legend
    style: LineStyle
    band: Band
    chosen: int | None = None  # the place of the c that the method was run with
    partial: bool = False  # whether c was chosen on fewer rounds than the method was run on


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share their axes."""

    title: str
    unit: str  # of the vertical axis
    lines: list[Line]
    log: bool = False  # whether the vertical axis is logarithmic
    low: float | None = None  # where it starts and ends; None: at the last point
    high: float | None = None
    over_c: bool = False  # whether the lines run over c, with a logarithmic axis, or over rounds


class Chart(NamedTuple):
    """What the report says about a chart, and its panels, side by side, if it is one of lines."""

    name: str  # of its kind, such as "panels"
    heading: str
    caption: str  # how to read it
    description: str  # what it shows, for those who do not see it
    panels: Sequence[Panel] = ()


def loss_chart(summary: Summary) -> Chart:
    """Average loss, cumulative loss and run time.

    The first leaves out what only the first twentieth of the rounds would need; the third is
    logarithmic where the slowest method takes more than 20 times as long as the fastest.
    """
    style = line_styles(summary.titles)

    def lines(curve: Curve, *, average: bool = False) -> list[Line]:
        return [
            Line(title, series.label, style[title], band(series, curve, average=average))
            for title, series in summary.chosen.items()
        ]

    losses, seconds = lines("loss", average=True), lines("seconds")
    low, high = settled_range([line.band for line in losses])
    totals = [float(line.band.mean[-1]) for line in seconds]
    log = 0.0 < WIDE * min(totals) < max(totals)
    # The first rounds would take half of a logarithmic axis.
    start = min(float(line.band.mean[len(line.band.mean) // 50]) for line in seconds)
    ends = ", ".join(
        f"{line.label} {number(float(line.band.mean[-1]))} in {number(each.band.mean[-1], 3)} s"
        for line, each in zip(losses, seconds, strict=True)
    )
    return Chart(
        "panels",
        "Loss and run time",
        f"Lines and bands: {seeds(summary.chosen.values())}. "
        + ("Dotted: abrupt changes. " if summary.drifts else "")
        + "A click on a method hides it in all three panels; drag to zoom, double-click to go back.",
        f"Three line charts over {counted(summary.length, 'round')}: average loss, "
        f"cumulative loss and run time. At the end the average losses are: {ends}.",
        [
            Panel("Average loss", "loss per round", losses, low=low, high=high),
            Panel("Cumulative loss", "loss", lines("loss")),
            Panel("Run time", "processor time (s)", seconds, log, start if log else None),
        ],
    )


def settled_range(bands: Sequence[Band]) -> tuple[float, float]:
    """A range that holds the bands but for their first rounds, which are noise.

    Curves that end before those are held from their middle on.
    """
    last = max(int(each.x[-1]) for each in bands)
    kept = [each.x >= min(EARLY * last, 0.5 * each.x[-1]) for each in bands]
    low = min(float(each.low()[part].min()) for each, part in zip(bands, kept, strict=True))
    high = max(float(each.high[part].max()) for each, part in zip(bands, kept, strict=True))
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return low - margin, high + margin


def call_chart(summary: Summary) -> Chart | None:
    """Calls of each oracle so far; the dash says which oracle. None where no method called any."""
    style = line_styles(summary.titles)
    lines = []
    for title, series in summary.chosen.items():
        for kind, oracle in CALLS.items():
            calls = band(series, kind)
            if calls.mean[-1] > 0:
                dashed = replace(style[title], dash=oracle.dash)
                lines.append(Line(title, f"{series.label}: {oracle.label}", dashed, calls))
    if not lines:
        return None
    ends = [f"{line.label} {number(line.band.mean[-1] / line.band.x[-1], 3)}" for line in lines]
    return Chart(
        "calls",
        "Oracle calls",
        "Solid: linear minimisations (LMO); dashed: projections; dotted: "
        "gauge calls; dash-dotted: membership tests.",
        f"Line chart of oracle calls over rounds. Calls per round: {', '.join(ends)}.",
        [Panel("", "oracle calls so far", lines, log=True)],
    )


def scale_chart(summary: Summary) -> Chart | None:
    """Mean loss per round by c; None where no method was run with several."""
    style = line_styles(summary.titles)
    lines, ranges = [], []
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) < 2:
            continue
        scales = np.array([series.c for series in tried], dtype=float)
        losses, deviations = np.array([series.mean_loss for series in tried]).T
        first = max(series.played for series in tried)
        partial = first < chosen.played
        label = f"{title} (tuned on the first {counted(first, 'round')})" if partial else title
        best = next((place for place, c in enumerate(scales) if c == chosen.c), None)
        points = Band(scales, losses, deviations)
        lines.append(Line(title, label, style[title], points, best, partial))
        told = "" if best is None else f", chosen c = {chosen.c:,g}"
        ranges.append(f"{label} {number(losses.min())} to {number(losses.max())}{told}")
    if not lines:
        return None
    means = [float(mean) for line in lines for mean in line.band.mean]
    log = 0.0 < WIDE * min(means) < max(means)
    return Chart(
        "scales",
        "Sensitivity to c",
        "A ring marks the c that was chosen; hollow markers, that it was chosen on fewer "
        "rounds than the method was run on.",
        f"Line chart of the mean loss per round against c. Losses: {', '.join(ranges)}.",
        [Panel("", "mean loss per round", lines, log, over_c=True)],
    )


def regret_measures(
    summary: Summary, regrets: Sequence[RegretRow]
) -> tuple[dict[str, dict[str, Spread]], dict[str, str]]:
    """Known regrets by measure and then by method, and the labels of these methods."""
    found = {"Dynamic regret": {row.title: row.dynamic for row in regrets if row.dynamic}}
    for tau in sorted({tau for row in regrets for tau in row.adaptive}):
        known = {row.title: row.adaptive[tau] for row in regrets if tau in row.adaptive}
        found[f"Adaptive regret, τ = {tau:,}"] = known
    titles = [row.title for row in regrets if row.dynamic or row.adaptive]
    labels = {title: summary.chosen[title].label for title in titles}
    return {name: values for name, values in found.items() if values}, labels


@dataclass(frozen=True, slots=True, eq=False)
class ExpertTable:
    """Expert weights of a method in its first seed."""

    label: str
    seed: int
    rounds: Indices
    experts: list[str]  # by rising step size, epoch or length
    values: Array  # by expert, then by round; nan where it was not active

    def thinned(self, most: int) -> ExpertTable:
        """At most `most` of the rounds, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        return replace(self, rounds=self.rounds[kept], values=self.values[:, kept])


def expert_tables(summary: Summary) -> list[ExpertTable]:
    """The methods with experts."""
    found = []
    for series in summary.chosen.values():
        result = series.results[0]
        weights = result.weights
        if weights is not None and weights.experts and weights.rounds:
            order = np.argsort([expert_size(name) for name in weights.experts], kind="stable")
            names = [weights.experts[place] for place in order]
            values = np.array(weights.values, dtype=float).T[order]
            rounds = np.array(weights.rounds)
            found.append(ExpertTable(series.label, result.trial.seed, rounds, names, values))
    return found


def expert_size(expert: str) -> float:
    """The number in an expert's name, such as 1024 in "γ = 1,024"; 0 where there is none."""
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0


def largest_weight(tables: Iterable[ExpertTable]) -> float:
    """The largest weight where several experts are active: a single one always has weight 1."""
    contested = [table.values[:, (~np.isnan(table.values)).sum(axis=0) > 1] for table in tables]
    return max((float(np.nanmax(values)) for values in contested if values.size), default=1.0)


def seed_list(tables: Iterable[ExpertTable]) -> str:
    """The seeds of tables, in words."""
    return f"seed {', '.join(map(str, sorted({table.seed for table in tables})))}"
