"""How the loss depends on c."""

from __future__ import annotations

from driftwolfe.experiments.figures.band import spans_widely
from driftwolfe.experiments.figures.scale_dots import Tuning, tunings
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.numbers import brief, number
from driftwolfe.experiments.report.chart import Chart, Json, plain
from driftwolfe.experiments.report.grid import Cell, layout, value_axis
from driftwolfe.experiments.report.traces import MARKERS, WIDTH, dash
from driftwolfe.experiments.summary import Summary


def scale_chart(summary: Summary) -> Chart | None:
    """Mean loss of a round by c; None where no method was run with several."""
    found = tunings(summary)
    if not found:
        return None
    style = looks(summary.titles)
    far_apart = spans_widely(loss.mean for each in found for loss in each.losses)
    across = {
        "title": {"text": "scale c of the step sizes", "standoff": 6},
        "type": "log",
        "exponentformat": "power",
        "dtick": 1,
        "unifiedhovertitle": {"text": "c = %{x:,~g}"},
    }
    up = value_axis("mean loss of a round", logarithmic=far_apart)
    cell = Cell("", across, up, height=300)
    return Chart(
        name="scales",
        heading="Sensitivity to c",
        caption="A ring marks the c that was chosen; hollow markers, that it was chosen on fewer "
        "rounds than the method was run on.",
        description=_description(found),
        traces=[trace for each in found for trace in _traces(each, style[each.title])],
        wide=layout([cell], 1, legend=-(-len(found) // 4)),
        narrow=layout([cell], 1, legend=len(found)),
    )


def _traces(tuning: Tuning, look: Look) -> list[Json]:
    shared: Json = {"type": "scatter", "legendgroup": plain(tuning.title)}
    hollow = "" if tuning.first is None else "-open"
    means = [loss.mean for loss in tuning.losses]
    line: Json = {
        **shared,
        "name": plain(tuning.label),
        "mode": "lines+markers",
        "x": tuning.scales,
        "y": brief(means),
        "line": {"color": look.colour, "width": WIDTH, "dash": dash(look.dash)},
        "marker": {"symbol": MARKERS[look.marker] + hollow, "size": 8, "color": look.colour},
        "hovertemplate": "%{y:,.4~g}",
    }
    deviations = [loss.deviation for loss in tuning.losses]
    if any(deviations):
        line["error_y"] = {"array": brief(deviations, 3), "thickness": 1.2, "width": 3}
        line["hovertemplate"] = "%{y:,.4~g} ± %{error_y.array:,.2~g}"
    if tuning.chosen is None:
        return [line]
    ring: Json = {
        **shared,
        "mode": "markers",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [tuning.chosen],
        "y": brief([means[tuning.scales.index(tuning.chosen)]]),
        "marker": {"symbol": "circle-open", "size": 16, "color": look.colour},
    }
    return [line, ring]


def _description(found: list[Tuning]) -> str:
    ranges = ", ".join(
        f"{each.label} {number(min(loss.mean for loss in each.losses))} to "
        f"{number(max(loss.mean for loss in each.losses))}"
        + ("" if each.chosen is None else f", chosen c = {each.chosen:,g}")
        for each in found
    )
    return f"Line chart of the mean loss of a round against c. Losses: {ranges}."
