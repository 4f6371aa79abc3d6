"""Tables of results, and the regrets in them."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from driftwolfe import storage
from driftwolfe.experiments.summary import CALLS, Series, Summary, machines, paired
from driftwolfe.experiments.trial import DataSet, Result, read_file, short
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.terminal import Spread, counted, number, printable, spread, spread_text


def markdown_text(text: str) -> str:
    """A text as Markdown that shows it unchanged, in one line: no HTML, no links, no new cells."""
    line = printable(" ".join(text.split()))
    # What would end a cell, or start a link, a picture or code.
    return html.escape(re.sub(r"([\\|`\[\]])", r"\\\1", line), quote=False)


def csv_cell(value: Any) -> Any:
    """A value as a cell that no spreadsheet takes for a formula; numbers stay as they are."""
    if not isinstance(value, str):
        return value
    try:
        float(value)
    except ValueError:
        formula = value.startswith(("=", "+", "-", "@", "\t", "\r"))
        return ("'" if formula else "") + printable(value)
    return printable(value)


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown of escaped cells, see `markdown_text`; its first `left` columns are flush left."""
    rule = ["---" if place < left else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least loss of a fixed point over ``losses[start:end]``: between value - gap and value."""

    start: int
    end: int
    value: float  # the loss of a point that was found
    gap: float


def minima(data: DataSet, seed: int, folder: str | Path | None = None) -> list[Minimum]:
    """Solve for the best fixed point of every stretch between drifts."""
    stream = data.load(seed, folder)
    assert stream.domain is not None  # every data set has one
    # Relative to the loss of the origin.
    tolerance = 1e-6 if math.prod(stream.domain.shape) <= 10_000 else 1e-2
    found = []
    for start, end in pairwise([0, *stream.drifts, len(stream)]):
        best = offline_minimum(stream.domain, stream.losses[start:end], tolerance=tolerance)
        found.append(Minimum(start, end, best.value, best.gap))
    return found


def stored_minima(
    place: Path, data: DataSet, seed: int, folder: str | Path | None = None, *, solve: bool = True
) -> list[Minimum]:
    """The result of `minima`, kept in the folder of a sweep; empty if not there and not to `solve`."""
    # Where a seed only changes the order of rounds within stretches, all seeds have one file.
    used = 0 if data.source.order_within_stretches else seed
    rounds = "" if data.rounds is None else f"-{data.rounds}"
    path = place / "minima" / f"{data.name}{rounds}-seed{used}.json"
    if not path.exists():
        if not solve:
            return []
        storage.write_bytes(path, msgspec.json.encode(minima(data, seed, folder)) + b"\n")
    remedy = "; delete it, and it is made again"
    return read_file(path, list[Minimum], "a list of offline minima", remedy)


@dataclass(frozen=True)
class RegretRow:
    """The regrets of a method."""

    title: str
    dynamic: Spread | None  # against the best fixed point of each stretch; None where unknown
    adaptive: dict[int, Spread] = field(default_factory=dict)  # the largest over windows, by length
    # Dynamic regret so far: a row for each seed, a column for each of the series' rounds.
    so_far: Array | None = None


def stored_regrets(place: Path, summary: Summary) -> list[RegretRow]:
    """Regrets, as far as offline minima are kept in the folder of a sweep."""
    data = summary.series[0].trial.data
    seeds = {result.trial.seed for series in summary.series for result in series.results}
    known = {seed: stored_minima(place, data, seed, solve=False) for seed in seeds}
    # Windows as long as the shortest stretch, and a tenth of it.
    shortest = min((m.end - m.start for found in known.values() for m in found), default=0)
    return regret_rows(summary, known, (max(1, shortest // 10), shortest) if shortest else ())


def regret_rows(
    summary: Summary, minima: Mapping[int, Sequence[Minimum]], taus: Sequence[int] = ()
) -> list[RegretRow]:
    """Regrets of the methods; where trials did not measure adaptive regret, bounds for `taus`."""
    rows = []
    for title, series in summary.chosen.items():
        dynamic, adaptive, so_far = list[float](), dict[int, list[float]](), list[Array]()
        for result in series.results:
            found: dict[int, float | None] = {each.tau: each.value for each in result.adaptive}
            if series.complete and (best := minima.get(result.trial.seed)):
                dynamic.append(sum(stretch_regrets(result, best)))
                so_far.append(regret_so_far(result, best, series.rounds))
                found = found or {tau: window_regret(result, best, tau) for tau in taus}
            for tau, value in found.items():
                if value is not None:
                    adaptive.setdefault(tau, []).append(value)
        # Only what is known of every seed is a mean over seeds.
        seeds = len(series.results)
        whole = {tau: spread(each) for tau, each in adaptive.items() if len(each) == seeds}
        if len(dynamic) == seeds:
            rows.append(RegretRow(title, spread(dynamic), whole, np.array(so_far)))
        else:
            rows.append(RegretRow(title, None, whole))
    return rows


def regret_so_far(result: Result, minima: Sequence[Minimum], rounds: Indices) -> Array:
    """The loss beyond that of the best fixed points, which is spread evenly over each stretch."""
    edges = [0, *(m.end for m in minima)]
    best = np.cumsum([0.0, *(m.value for m in minima)])
    played = np.interp(rounds, [0, *result.rounds], [0.0, *result.loss])
    return np.asarray(played - np.interp(rounds, edges, best))


def stretch_regrets(result: Result, minima: Sequence[Minimum]) -> list[float]:
    """The loss in each stretch beyond that of the best fixed point, interpolated between readings."""
    edges = [(m.start, m.end) for m in minima]
    losses = np.interp(edges, [0, *result.rounds], [0.0, *result.loss])
    return [float(end - start - m.value) for m, (start, end) in zip(minima, losses, strict=True)]


def window_regret(result: Result, minima: Sequence[Minimum], tau: int) -> float | None:
    """A lower bound on the regret of the worst window of tau rounds; None if no window was read."""
    # The best fixed point of a stretch loses no more in a window inside it: losses are not negative.
    read = dict(zip([0, *result.rounds], [0.0, *result.loss], strict=True))
    found = [
        read[t + tau] - read[t] - m.value
        for m in minima
        for t in read
        if m.start <= t and t + tau <= m.end and t + tau in read
    ]
    return max(found, default=None)


def method_rows(
    summary: Summary, regrets: Sequence[RegretRow] = ()
) -> tuple[list[str], list[list[str]]]:
    """Heads and one row per method: loss, time, oracle calls and regret, mean ± deviation."""
    known = {row.title: row for row in regrets}
    chosen = summary.chosen
    called = [name for name in CALLS if any(each.curve(name).any() for each in chosen.values())]
    rows = []
    for title, series in chosen.items():
        regret = known.get(title, RegretRow(title, None))
        row = {
            "method": title,
            "c": "" if series.c is None else short(series.c),
            "seeds": str(len(series.results)),
            "rounds": f"{series.played:,}",
            "loss per round": spread_text(series.mean_loss),
            "cumulative loss": spread_text(series.total("loss")),
            "seconds": spread_text(series.total("seconds")),
        }
        if len(machines(*chosen.values())) > 1:
            row["machine"] = "; ".join(machines(series))
        for name in called:
            row[f"{CALLS[name].counted} per round"] = number(series.per_round(name), 3)
        if any(each.dynamic for each in regrets):
            row["dynamic regret"] = spread_text(regret.dynamic)
        for tau in sorted({tau for each in regrets for tau in each.adaptive}):
            row[f"regret, worst {tau:,} rounds"] = spread_text(regret.adaptive.get(tau))
        rows.append(row)
    return list(rows[0]), [list(row.values()) for row in rows]


def method_table(summary: Summary, regrets: Sequence[RegretRow] = ()) -> str:
    """The rows of all methods in Markdown."""
    heads, rows = method_rows(summary, regrets)
    return write_table(heads, ([markdown_text(title), *cells] for title, *cells in rows))


def trial_table(results: Iterable[Result]) -> str:
    """One line of CSV for each trial."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for place, result in enumerate(results):
        trial = result.trial
        row: dict[str, Any] = {
            "label": trial.title,
            "method": trial.method,
            "data": trial.data.name,
            "stream_rounds": trial.data.rounds,
            "c": trial.c,
            "options": msgspec.json.encode(trial.options, order="sorted").decode(),
            "seed": trial.seed,
            "first": trial.first,
            "limit": trial.limit,
            "rounds": result.rounds[-1],
            "cut": result.cut,
            "cumulative_loss": repr(result.loss[-1]),
            "processor_seconds": f"{result.seconds[-1]:.3f}",
            **{name: (getattr(result, name) or [0])[-1] for name in CALLS},
        }
        if place == 0:
            writer.writerow(row)
        writer.writerow(map(csv_cell, row.values()))
    return text.getvalue()


def tuning_notes(summary: Summary) -> list[str]:
    """How c was chosen: what was tried, on how many rounds, and what was cut short."""
    notes = []
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) < 2:
            continue
        cut = [series for series in tried if any(result.cut for result in series.results)]
        text = f"{title}: {_c(chosen)} of {', '.join(short(series.c or 0.0) for series in tried)}"
        orders = {result.trial.seed for series in tried for result in series.results}
        if not orders & {result.trial.seed for result in chosen.results}:
            text += f", chosen on {counted(len(orders), 'other order')}"
        if (first := tried[0].trial.first) is not None:
            text += f", chosen on the first {first:,} rounds of one order"
        if cut:
            ended = ", ".join(f"{_c(series)} after {series.played:,}" for series in cut)
            limit = tried[0].trial.limit or 0.0
            text += f"; {limit:,.0f} s of processor time each, which ended {ended} rounds"
        notes.append(text + ".")
        best = next((series for series in tried if series.c == chosen.c), chosen)
        compared = [(series, paired(series, best, "loss")) for series in cut if series is not best]
        if ahead := [_c(series) for series, found in compared if found and found.difference[0] < 0]:
            notes.append(
                f"{title}: {', '.join(ahead)} was ahead of {_c(chosen)} when its time was "
                "up; with more time it might have won."
            )
        if chosen.c in (tried[0].c, tried[-1].c):
            notes.append(f"{title}: the best c lies on the edge of what was tried.")
    return notes


def _c(series: Series) -> str:
    return f"c = {short(series.c or 0.0)}"
