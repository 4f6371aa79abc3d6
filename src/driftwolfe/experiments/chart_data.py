"""What figures and interactive charts show, described once: lines, regrets, expert weights."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from driftwolfe.experiments import figure_style as fs
from driftwolfe.experiments.figure_style import Band, LineStyle, settled_range
from driftwolfe.experiments.summary import CALLS, Curve, Series, Summary, machines
from driftwolfe.experiments.tables import RegretRow
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.terminal import Spread, counted, number, spread_text

P = TypeVar("P")
MOST = 6  # methods in a panel


class Chart(NamedTuple, Generic[P]):
    """The panels of a chart; none where there is nothing to show."""

    name: str  # of its kind, such as "panels"
    shown: str  # which seeds
    description: str  # for those who do not see it
    panels: Sequence[P]


class Line(NamedTuple):
    """A line of a method."""

    title: str  # of the method
    label: str  # for a legend
    style: LineStyle
    band: Band
    chosen: int | None = None  # the place of the c that the method was run with
    partial: bool = False  # whether c was chosen on fewer rounds than the method was run on


class Panel(NamedTuple):
    """Lines that share their axes."""

    title: str
    unit: str  # of the vertical axis
    lines: list[Line]
    log: bool = False  # whether the vertical axis is logarithmic
    low: float | None = None  # where it starts and ends; None: at the last point
    high: float | None = None
    over_c: bool = False  # whether the lines run over c, with a logarithmic axis, or over rounds


class Dot(NamedTuple):
    """A regret of a method, or its loss per round and what it spent on all rounds."""

    label: str  # of the method
    style: LineStyle
    value: Spread | None  # None where it is not known
    spent: float = 0.0


#: A measure of regret or a unit of cost, and a dot for each method of which any measure is known.
Dots = tuple[str, list[Dot]]


class ExpertTable(NamedTuple):
    """Expert weights of a method in its first seed."""

    label: str
    rounds: Indices
    experts: list[str]  # by rising step size, epoch or length
    values: Array  # by expert, then by round; nan where it was not active


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts in ([], [1]):
        return "one seed"
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean ± standard deviation over {number} seeds"


def band(series: Series, curve: Curve, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    return Band.of(series.rounds, series.curve(curve) / (series.rounds if average else 1))


def rows(summary: Summary) -> list[list[str]]:
    """Titles by row of panels, at most `MOST` in each: what to look at first, and all others.

    The first are tuned methods, in the order of `METHODS`, without the variants if there are too many.
    """

    def order(title: str) -> tuple[bool, int]:
        return title.removesuffix(fs.UNTUNED) != fs.family(title), fs.rank(title)

    untuned = {title for title, series in summary.chosen.items() if series.untuned}
    titles = sorted(summary.chosen, key=lambda title: (title in untuned, *order(title)))
    end = min(MOST, len(titles) - len(untuned) or MOST)
    rest = sorted(titles[end:], key=lambda title: (title not in untuned, *order(title)))
    parts = [titles[:end], *(rest[i : i + MOST] for i in range(0, len(rest), MOST))]
    return [[title for title in summary.chosen if title in part] for part in parts]


def loss_chart(summary: Summary, titles: Collection[str] | None = None) -> Chart[Panel]:
    """Average loss, cumulative loss and run time, of all methods or of some."""
    chosen = {t: each for t, each in summary.chosen.items() if titles is None or t in titles}

    def lines(curve: Curve, *, average: bool = False) -> list[Line]:
        return [
            Line(title, series.label, summary.styles[title], band(series, curve, average=average))
            for title, series in chosen.items()
        ]

    losses, seconds = lines("loss", average=True), lines("seconds")
    low, high = settled_range([line.band for line in losses])
    log = _wide([float(line.band.mean[-1]) for line in seconds])
    # The first rounds would take half of a logarithmic axis.
    start = min(float(line.band.mean[len(line.band.mean) // 50]) for line in seconds)
    ends = ", ".join(
        f"{line.label} {number(float(line.band.mean[-1]))} in {number(each.band.mean[-1], 3)} s"
        for line, each in zip(losses, seconds, strict=True)
    )
    told = f"Three line charts over {counted(summary.length, 'round')}: average loss, "
    told += f"cumulative loss and run time. At the end the average losses are: {ends}."
    several = len(machines(*chosen.values())) > 1
    panels = [
        Panel("Average loss", "loss per round", losses, low=low, high=high),
        Panel("Cumulative loss", "loss", lines("loss")),
        Panel(
            "Run time, machines differ" if several else "Run time",
            "processor time (s)",
            seconds,
            log,
            start if log else None,
        ),
    ]
    return Chart("panels", seeds(chosen.values()), told, panels)


def price_chart(summary: Summary) -> Chart[Dots]:
    """Loss against seconds, products and LMO calls, of the methods that played all rounds."""
    whole = [series for series in summary.chosen.values() if series.played == summary.length]
    units: dict[Curve, str] = {
        "seconds": "processor time (s)",
        "products": CALLS["products"].counted,
        "lmo": CALLS["lmo"].counted,
    }
    panels, parts = [], []
    for name, unit in units.items():
        if name == "seconds" and len(machines(*whole)) > 1:
            unit += ", machines differ"
        dots = [
            Dot(each.label, summary.styles[each.title], each.mean_loss, spent)
            for each in whole
            if (spent := each.total(name).mean) > 0.0  # others have no place on a logarithmic axis
        ]
        if len(dots) > 1:
            panels.append((unit, dots))
            each = (f"{d.label} {spread_text(d.value)} for {number(d.spent, 3)}" for d in dots)
            parts.append(f"{unit}: {', '.join(each)}")
    told = f"Dot charts of the loss per round against what all rounds cost. {'; '.join(parts)}."
    return Chart("prices", seeds(whole), told, panels)


def regret_curves(summary: Summary, regrets: Sequence[RegretRow]) -> Chart[Panel]:
    """Dynamic regret so far, of the methods of which it is known."""
    lines = []
    for row in regrets:
        if row.so_far is not None and row.title in summary.chosen:
            series = summary.chosen[row.title]
            found = Band.of(series.rounds, row.so_far)
            lines.append(Line(row.title, series.label, summary.styles[row.title], found))
    ends = ", ".join(f"{line.label} {number(float(line.band.mean[-1]))}" for line in lines)
    told = f"Line chart of dynamic regret over rounds. At the end: {ends}."
    panels = [Panel("", "dynamic regret so far", lines)] if lines else []
    return Chart("regret-curves", seeds(summary.chosen.values()), told, panels)


def _wide(values: Sequence[float]) -> bool:
    """Whether only a logarithmic axis shows them all."""
    return 0.0 < 20.0 * min(values) < max(values)


def call_chart(summary: Summary) -> Chart[Panel]:
    """Calls of each oracle so far; the dash says which oracle."""
    lines = []
    for title, series in summary.chosen.items():
        for kind, oracle in CALLS.items():
            calls = band(series, kind)
            if calls.mean[-1] > 0:
                dashed = replace(summary.styles[title], dash=oracle.dash)
                lines.append(Line(title, f"{series.label}: {oracle.label}", dashed, calls))
    ends = [f"{line.label} {number(line.band.mean[-1] / line.band.x[-1], 3)}" for line in lines]
    told = f"Line chart of oracle calls over rounds. Calls per round: {', '.join(ends)}."
    panels = [Panel("", "oracle calls so far", lines, log=True)] if lines else []
    return Chart("calls", seeds(summary.chosen.values()), told, panels)


def scale_chart(summary: Summary) -> Chart[Panel]:
    """Mean loss per round by c, of the methods that were run with several."""
    lines, means, ranges = [], list[float](), []
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
        lines.append(Line(title, label, summary.styles[title], points, best, partial))
        means += losses.tolist()
        choice = "" if best is None else f", chosen c = {chosen.c:,g}"
        ranges.append(f"{label} {number(losses.min())} to {number(losses.max())}{choice}")
    shown = seeds(series for line in lines for series in summary.tuning(line.title))
    told = f"Line chart of the mean loss per round against c. Losses: {', '.join(ranges)}."
    panels = [Panel("", "mean loss per round", lines, _wide(means), over_c=True)] if lines else []
    return Chart("scales", shown, told, panels)


def regret_chart(summary: Summary, regrets: Sequence[RegretRow]) -> Chart[Dots]:
    """Dynamic regret, and adaptive regret for each length of window, as far as they are known."""
    known = [row for row in regrets if row.dynamic or row.adaptive]
    measures = {"Dynamic regret": [row.dynamic for row in known]}
    for tau in sorted({tau for row in known for tau in row.adaptive}):
        measures[f"Adaptive regret, τ = {tau:,}"] = [row.adaptive.get(tau) for row in known]
    panels, parts = [], []
    for measure, values in measures.items():
        if any(values):
            dots = [
                Dot(summary.chosen[row.title].label, summary.styles[row.title], value)
                for row, value in zip(known, values, strict=True)
            ]
            panels.append((measure, dots))
            values_told = [f"{dot.label} {spread_text(dot.value)}" for dot in dots if dot.value]
            parts.append(f"{measure}: {', '.join(values_told)}")
    told = f"Dot charts of regret. {'; '.join(parts)}."
    return Chart("regret", seeds(summary.chosen.values()), told, panels)


def weight_chart(summary: Summary) -> Chart[ExpertTable]:
    """Expert weights of the methods with experts."""
    tables, heaviest, of = [], [], set[int]()
    for series in summary.chosen.values():
        result, weights = series.results[0], series.results[0].weights
        if weights is not None and weights.experts and weights.rounds:
            order = np.argsort([fs.expert_size(name) for name in weights.experts], kind="stable")
            names = [weights.experts[place] for place in order]
            values = np.array(weights.values, dtype=float).T[order]
            rounds = np.array(weights.rounds)
            tables.append(ExpertTable(series.label, rounds, names, values))
            of.add(result.trial.seed)
            last = np.nan_to_num(values[:, -1], nan=-1.0)
            heaviest.append(f"{series.label}, {names[last.argmax()]} with {last.max():.2f}")
    shown = f"expert weights of seed {', '.join(map(str, sorted(of)))}"
    told = "Heat maps of the weight of each expert over rounds. The heaviest experts at the end: "
    return Chart("weights", shown, f"{told}{'; '.join(heaviest)}.", tables)
