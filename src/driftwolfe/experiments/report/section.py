"""`Section`: the part of a report that is about one stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.regret_dots import Regrets
from driftwolfe.experiments.numbers import spread_text
from driftwolfe.experiments.paper.claims import Claim, claims
from driftwolfe.experiments.report.call_chart import call_chart
from driftwolfe.experiments.report.chart import Chart
from driftwolfe.experiments.report.panel_chart import panel_chart
from driftwolfe.experiments.report.regret_chart import regret_chart
from driftwolfe.experiments.report.scale_chart import scale_chart
from driftwolfe.experiments.report.score_table import ScoreTable, best, score_table
from driftwolfe.experiments.report.settings import Setting, settings
from driftwolfe.experiments.report.weight_chart import weight_chart
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.tuning_notes import tuning_notes
from driftwolfe.streams.movielens import RATINGS
from driftwolfe.streams.shuttle import ROWS

_REAL = {
    "movielens-100k": f"Real data: MovieLens 100K by GroupLens, file {RATINGS.path}, "
    f"from {RATINGS.source}; for research use, and not redistributed here.",
    "shuttle": f"Real data: Statlog (Shuttle) of the UCI Machine Learning Repository, CC BY 4.0, "
    f"file {ROWS.path}, from {ROWS.source}.",
}


@dataclass(frozen=True, slots=True)
class Section:
    """What the page says about a stream.

    Attributes
    ----------
    name
        What the data are called, and how long they are.
    abstract
        What was found, in a sentence.
    warning
        That the data are made up in place of real ones, where they are.
    data
        Where the data come from.
    scores
        What each method came to.
    charts
        Those that there is something for.
    notes
        How c was chosen, in sentences.
    claims
        The paper's claims that the methods allow to check.
    settings
        The parameters of all trials.
    """

    name: str
    abstract: str
    warning: str | None
    data: str
    scores: ScoreTable
    charts: list[Chart]
    notes: list[str]
    claims: list[Claim]
    settings: list[Setting]


def section(summary: Summary, regrets: Sequence[Regrets], points: int) -> Section:
    """Say all about a summary, with `points` on a curve at the most."""
    charts = [
        panel_chart(summary, points),
        call_chart(summary, points),
        weight_chart(summary, points),
        regret_chart(summary, regrets),
        scale_chart(summary),
    ]
    return Section(
        name=summary.name,
        abstract=_abstract(summary),
        warning=words.notice(summary),
        data=_data(summary),
        scores=score_table(summary, regrets),
        charts=[chart for chart in charts if chart is not None],
        notes=tuning_notes(summary),
        claims=claims(summary),
        settings=settings(summary),
    )


def _abstract(summary: Summary) -> str:
    methods = words.counted(len(summary.chosen), "method")
    played = f"{methods} on {words.counted(words.length(summary), 'round')} of {summary.stream}"
    changes = len(words.drifts(summary))
    drift = f" with {words.counted(changes, 'abrupt change')}" if changes else ""
    winner = best(summary)
    if winner is None:
        return f"{played}{drift}."
    loss = spread_text(winner.mean_loss)
    return f"{played}{drift}: {winner.title} has the least loss, {loss} a round."


def _data(summary: Summary) -> str:
    if words.notice(summary):
        return f"No number below says anything about the real {words.data_name(summary)}."
    return _REAL.get(
        summary.series[0].data.name, f"A stream made by this library: {summary.stream}."
    )
