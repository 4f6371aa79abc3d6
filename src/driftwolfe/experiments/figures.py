"""Figures of results: what each shows, and their files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftwolfe.experiments import figure as model
from driftwolfe.experiments.figure import UNTUNED, Axis, Band, Figure, Line, Panel
from driftwolfe.experiments.summary import CALLS, RegretRow, Series, Summary, machines
from driftwolfe.terminal import counted, spread_text

FORMATS = ("png", "pdf", "svg")
MOST = 6  # methods in a panel


def save(figure: Figure, folder: Path, name: str = "") -> list[Path]:
    """Draw a figure and write it as PNG, PDF and SVG, always with the same bytes; return the paths."""
    paths = [folder / f"{name or figure.name}.{ending}" for ending in FORMATS]
    with model.print_style():
        sheet = model.draw(figure)
        for path in paths:
            model.save(sheet, path, dpi=200)
    return paths


def panels(*summaries: Summary, name: str = "", rest: bool = False) -> Figure | None:
    """Average loss, cumulative loss and run time against rounds, with a band of one deviation.

    A row of panels for each summary with its first methods, see `rows`; or rows with the `rest` of them;
    None where there is none. The figure may have a name, such as "Figure 1".
    """
    chosen = slice(1, None) if rest else slice(1)
    found = [(each, row) for each in summaries for row in rows(each)[chosen]]
    if not found:
        return None
    drawn, shown = list[Panel](), list[Series]()
    for summary, row in found:
        series = [summary.chosen[title] for title in row]
        first, *others = _loss_panels(summary, row)
        if rest or len(found) > 1:
            untuned = all(each.untuned for each in series)
            kind = (": untuned, c = D/G" if untuned else ": other methods") if rest else ""
            first = replace(first, title=f"{summary.data_name}{kind}\n{first.title}")
        drawn += [first, *others]
        shown += series
    made = _figure("panels", summaries, drawn, shown=seeds(shown), columns=3, height=2.3)
    name = f"{name}, continued" if name and rest else name
    return replace(made, heading=[*filter(None, [name]), *made.heading])


def all_figures(summary: Summary, regrets: Sequence[RegretRow]) -> list[Figure]:
    """The figures of a summary that there is something for; the first, of losses and times, has all methods."""
    found = [
        _figure("panels", [summary], _loss_panels(summary), columns=3, height=2.3),
        regret_over_rounds(summary, regrets),
        prices(summary),
        weights(summary),
        sensitivity(summary),
    ]
    return [each for each in found if each.panels]


def _loss_panels(summary: Summary, titles: Sequence[str] = ()) -> list[Panel]:
    """Average loss, cumulative loss and run time of some methods; of all, those not first hidden."""
    chosen = [summary.chosen[title] for title in titles or summary.chosen]
    hidden = () if titles else set(summary.chosen) - set(rows(summary)[0])

    def lines(curve: str, *, average: bool = False) -> list[Line]:
        bands = [band(each, curve, average=average) for each in chosen]
        pairs = zip(chosen, bands, strict=True)
        return [_line(summary, each, found, each.title in hidden) for each, found in pairs]

    losses, seconds = lines("loss", average=True), lines("seconds")
    low, high = model.settled_range([line.band for line in losses])
    log = _wide([float(line.band.mean[-1]) for line in seconds])
    # The first rounds would take half of a logarithmic axis.
    start = min(float(line.band.mean[len(line.band.mean) // 50]) for line in seconds)
    times = Axis("processor time (s)", log=log, low=start if log else None)
    over = replace(_rounds(summary), ticks=4)
    parts = [
        Panel("Average loss", over, Axis("loss per round", low=low, high=high), losses),
        Panel("Cumulative loss", over, Axis("loss"), lines("loss")),
        Panel(f"Run time{_differ(chosen)}", over, times, seconds),
    ]
    return [replace(panel, drifts=summary.drifts) for panel in parts]


def regret_over_rounds(summary: Summary, regrets: Sequence[RegretRow]) -> Figure:
    """Dynamic regret so far, of the methods of which it is known."""
    known = {row.title: row.so_far for row in regrets if row.so_far is not None}
    found = [each for each in summary.chosen.values() if each.title in known]
    shown = [each for each in found if each.title in rows(summary)[0]] or found[:MOST]
    lines = [
        _line(summary, each, Band.of(each.rounds, known[each.title]), each not in shown)
        for each in found
    ]
    y = Axis("dynamic regret so far")
    panel = Panel("", _rounds(summary), y, lines, drifts=summary.drifts)
    return _figure("regret-over-rounds", [summary], [panel], height=3.0)


def sensitivity(summary: Summary) -> Figure:
    """Mean loss per round by c, of the methods that were run with several."""
    lines, shown = list[Line](), list[Series]()
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) < 2:
            continue
        scales = np.array([series.c for series in tried], dtype=float)
        best = next((place for place, c in enumerate(scales) if c == chosen.c), None)
        points = Band(scales, *np.array([series.mean_loss for series in tried]).T)
        lines.append(Line(title, title, summary.styles[title], points, best))
        shown += tried
    x = Axis("scale c of the step sizes", "scales", log=True, ticks=8)
    means = [mean for line in lines for mean in line.band.mean.tolist()]
    y = Axis("mean loss per round", log=_wide(means))
    panel = Panel("", x, y, lines, "bars")
    return _figure("sensitivity", [summary], [panel], shown=seeds(shown))


def prices(summary: Summary) -> Figure:
    """Loss against seconds, products and LMO calls."""
    methods, drawn = list(summary.chosen.values()), list[Panel]()
    seconds = f"processor time (s){_differ(methods)}"
    units = {"seconds": seconds, "products": CALLS["products"], "lmo": CALLS["lmo"]}
    for name, unit in units.items():
        # Those that spent nothing have no place on a logarithmic axis.
        spent = [(each, x) for each in methods if (x := each.total(name).mean) > 0.0]
        if len(spent) > 1:
            dots = [_dot(summary, *each) for each in spent]
            drawn.append(Panel("", Axis(unit, log=True), Axis("loss per round"), dots, "dots"))
    return _figure("prices", [summary], drawn, columns=len(drawn), height=2.5)


def weights(summary: Summary) -> Figure:
    """Maps of weights in the first seed, for the methods with experts."""
    drawn, of = list[Panel](), set[int]()
    for series in summary.chosen.values():
        result, found = series.results[0], series.results[0].weights
        if found is not None and found.experts and found.rounds:
            held = [dict(zip(found.experts, row, strict=True)) for row in found.values]
            x, rounds = replace(_rounds(summary), ticks=4), np.array(found.rounds)
            drawn.append(model.weights_panel(series.title, x, rounds, held, summary.drifts))
            of.add(result.trial.seed)
    shown = f"expert weights of seed {', '.join(map(str, sorted(of)))}"
    return _figure("weights", [summary], drawn, shown=shown, columns=1 if len(drawn) <= 3 else 2)


def rows(summary: Summary) -> list[list[str]]:
    """Titles by row of panels, at most `MOST` in each: what to look at first, and all others.

    The first are tuned methods, in the order of `METHODS`, without the variants if there are too many.
    """

    def order(title: str) -> tuple[bool, int]:
        return title.removesuffix(UNTUNED) != model.family(title), model.rank(title)

    untuned = {title for title, series in summary.chosen.items() if series.untuned}
    titles = sorted(summary.chosen, key=lambda title: (title in untuned, *order(title)))
    end = min(MOST, len(titles) - len(untuned) or MOST)
    rest = sorted(titles[end:], key=lambda title: (title not in untuned, *order(title)))
    parts = [titles[:end], *(rest[i : i + MOST] for i in range(0, len(rest), MOST))]
    return [[title for title in summary.chosen if title in part] for part in parts]


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts in ([], [1]):
        return "one seed"
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"mean ± standard deviation over {number} seeds"


def band(series: Series, curve: str, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    return Band.of(series.rounds, series.curve(curve) / (series.rounds if average else 1))


def _line(summary: Summary, series: Series, band: Band, hidden: bool = False) -> Line:
    return Line(series.title, series.title, summary.styles[series.title], band, hidden=hidden)


def _dot(summary: Summary, series: Series, x: float) -> Line:
    value = series.mean_loss
    line = _line(summary, series, Band(*(np.array([each]) for each in (x, *value))))
    return replace(line, hollow=series.untuned, value=spread_text(value))


def _rounds(summary: Summary) -> Axis:
    return Axis("round", "rounds", low=0, high=summary.length)


def _differ(series: Sequence[Series]) -> str:
    """What is said beside times."""
    return ", machines differ" if len(machines(*series)) > 1 else ""


def _wide(values: Sequence[float]) -> bool:
    """Whether only a logarithmic axis shows them all."""
    return bool(values) and 0.0 < 20.0 * min(values) < max(values)


def _figure(
    name: str, summaries: Sequence[Summary], panels: Sequence[Panel], shown: str = "", **layout: Any
) -> Figure:
    """A figure whose heading says which data and seeds are shown; of a twin, with a warning."""
    data = (f"{each.data_name} · {counted(each.length, 'round')}" for each in summaries)
    shown = shown or seeds(each for summary in summaries for each in summary.chosen.values())
    warning = " ".join(dict.fromkeys(each.notice for each in summaries if each.notice))
    filled = [panel for panel in panels if panel.lines or panel.weights]
    return Figure(name, [*dict.fromkeys(data), shown], filled, warning, **layout)
