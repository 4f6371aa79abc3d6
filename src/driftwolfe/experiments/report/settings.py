"""The parameters of all trials."""

from __future__ import annotations

from dataclasses import dataclass

from driftwolfe.experiments.series import Series
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.trial import short


@dataclass(frozen=True, slots=True)
class Setting:
    """What the trials of a series had in common, as text.

    Attributes
    ----------
    title, method, c, options
        What was run.
    rounds
        What was played of what there is.
    seeds
        The orders of the data.
    limit
        On processor time.
    windows
        Lengths of the windows of adaptive regret.
    chosen
        Whether it stands for its method.
    """

    title: str
    method: str
    c: str
    options: str
    rounds: str
    seeds: str
    limit: str
    windows: str
    chosen: bool


def settings(summary: Summary) -> list[Setting]:
    """All series, in the order of the sweep."""
    chosen = list(summary.chosen.values())
    return [_setting(series, series in chosen) for series in summary.series]


def _setting(series: Series, chosen: bool) -> Setting:
    trial = series.trial
    windows = sorted({tau for result in series.results for tau in result.trial.taus})
    return Setting(
        title=series.title,
        method=trial.method,
        c="–" if trial.c is None else short(trial.c),
        options=", ".join(f"{name}={value}" for name, value in sorted(trial.options.items()))
        or "–",
        rounds=_rounds(series),
        seeds=", ".join(str(result.trial.seed) for result in series.results),
        limit="–" if trial.limit is None else f"{trial.limit:,g} s",
        windows=", ".join(f"{tau:,}" for tau in windows) or "–",
        chosen=chosen,
    )


def _rounds(series: Series) -> str:
    played = f"{series.rounds[-1]:,}"
    if any(result.cut for result in series.results):
        return f"{played} (out of time)"
    return played if series.trial.first is None else f"{played} (first only)"
