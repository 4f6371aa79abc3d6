"""How c was chosen, in sentences."""

from __future__ import annotations

import numpy as np

from driftwolfe.experiments.series import Series
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.trial import short


def tuning_notes(summary: Summary) -> list[str]:
    """What to know about the values of c: what was tried, on how much, and what was cut short."""
    return [
        note
        for title, chosen in summary.chosen.items()
        if len(tried := summary.tuning(title)) > 1
        for note in _notes(title, chosen, tried)
    ]


def _notes(title: str, chosen: Series, tried: list[Series]) -> list[str]:
    scales = ", ".join(short(series.c or 0.0) for series in tried)
    text = f"{title}: c = {short(chosen.c or 0.0)} of {scales}"
    if (first := tried[0].trial.first) is not None:
        text += f", chosen on the first {first:,} rounds of one order"
    cut = [series for series in tried if any(result.cut for result in series.results)]
    if cut:
        limit = tried[0].trial.limit or 0.0
        text += f"; {limit:,.0f} s of processor time each, which ended "
        text += ", ".join(
            f"c = {short(series.c or 0.0)} after {series.rounds[-1]:,}" for series in cut
        )
        text += " rounds"
    notes = [text + "."]
    best = next((series for series in tried if series.c == chosen.c), chosen)
    ahead = [series for series in cut if series is not best and _ahead(series, best)]
    if ahead:
        names = ", ".join(f"c = {short(series.c or 0.0)}" for series in ahead)
        notes.append(
            f"{title}: {names} was ahead of c = {short(chosen.c or 0.0)} when its time was up; "
            "with more time it might have won."
        )
    if chosen.c in (tried[0].c, tried[-1].c):
        notes.append(f"{title}: the best c lies on the edge of what was tried.")
    return notes


def _ahead(one: Series, other: Series) -> bool:
    """Whether one had suffered less at the last round that both were read at."""
    rounds = np.intersect1d(one.rounds, other.rounds)
    if not rounds.size:
        return False
    losses = [
        series.curve("loss")[0, int(np.searchsorted(series.rounds, rounds[-1]))]
        for series in (one, other)
    ]
    return bool(losses[0] < losses[1])
