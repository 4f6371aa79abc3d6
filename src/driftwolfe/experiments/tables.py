"""Tables of results."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from driftwolfe import storage
from driftwolfe.experiments.result import Result
from driftwolfe.experiments.summary import CALLS, Calls, Series, Spread, Summary, spread
from driftwolfe.experiments.trial import DataSet, short
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.streams.data_files import Folder
from driftwolfe.terminal import printable


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits and thousands separators.

    >>> number(1234.56), number(0.0123456), number(1000000.0), number(3.0)
    ('1,235', '0.01235', '1,000,000', '3')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def spread_text(spread: Spread) -> str:
    """A mean and its deviation, to two digits of the deviation; the mean alone where there is none.

    >>> spread_text(Spread(0.81234, 0.0123)), spread_text(Spread(2345.6, 78.9))
    ('0.812 ± 0.012', '2,346 ± 79')
    """
    if not spread.deviation:
        return number(spread.mean)
    decimals = max(0, 1 - math.floor(math.log10(spread.deviation)))
    return f"{spread.mean:,.{decimals}f} ± {spread.deviation:,.{decimals}f}"


def brief(values: Iterable[Any], digits: int = 6) -> list[float | None]:
    """Numbers for a chart: rounded, so that they take little room; None for nan.

    >>> brief([1 / 3, 2.0, float("nan")])
    [0.333333, 2, None]
    """
    rounded = [float(f"{value:.{digits}g}") for value in values]
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in rounded
    ]


#: What a spreadsheet takes for the start of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What would end a cell, or start a link, a picture or code.
_SIGNS = re.compile(r"([\\|`\[\]])")


def markdown_text(text: str) -> str:
    r"""A text as Markdown that shows it as it stands, in one line: no HTML, no links, no new cells.

    >>> print(markdown_text("<b>POLA</b> | [x](y)"))
    &lt;b&gt;POLA&lt;/b&gt; \| \[x\](y)
    """
    line = printable(" ".join(text.split()))
    return html.escape(_SIGNS.sub(r"\\\1", line), quote=False)


def markdown_code(text: str) -> str:
    """A text as code in a line of Markdown.

    >>> markdown_code("driftwolfe sweep a.toml")
    '`driftwolfe sweep a.toml`'
    """
    return f"`{printable(' '.join(text.split())).replace('`', chr(39))}`"


def csv_cell(value: Any) -> Any:
    """A value as a cell that no spreadsheet takes for a formula or an end of a row.

    Numbers stay as they are.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell(-0.5), csv_cell("POLA")
    ("'=1+1", '-0.5', -0.5, 'POLA')
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if value.startswith(_FORMULA) and not _is_number(value) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


#: Gap of the minima, as a share of the loss of the origin: for few entries, and for more than these.
_FINE, _ROUGH, _FEW = 1e-6, 1e-2, 10_000


class Minimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least loss of a fixed point over some rounds: it lies between value - gap and value.

    Attributes
    ----------
    start, end
        The rounds, counted from 0, as in ``losses[start:end]``.
    value, gap
        What a point of the set was found to suffer, and the width of the certified interval.
    """

    start: int
    end: int
    value: float
    gap: float


def stretches(rounds: int, drifts: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of rounds between drifts.

    >>> stretches(10, [4, 8])
    [(0, 4), (4, 8), (8, 10)]
    """
    ends = [t for t in drifts if 0 < t < rounds]
    return list(zip([0, *ends], [*ends, rounds], strict=True))


def minima(data: DataSet, seed: int, folder: Folder | None = None) -> list[Minimum]:
    """Solve for the best fixed point of every stretch between drifts.

    >>> [round(m.value, 6) for m in minima(DataSet(name="jumping-target", rounds=40), seed=0)]
    [0.0, 0.0, 0.0, 0.0]
    """
    stream = data.load(seed, folder)
    assert stream.domain is not None  # every data set has one
    tolerance = _FINE if math.prod(stream.domain.shape) <= _FEW else _ROUGH
    found = []
    for start, end in stretches(len(stream), stream.drifts):
        best = offline_minimum(stream.domain, stream.losses[start:end], tolerance=tolerance)
        found.append(Minimum(start, end, best.value, best.gap))
    return found


def minima_path(place: Path, data: DataSet, seed: int) -> Path:
    """Where the minima are kept in the folder of a sweep.

    Where a seed only changes the order of rounds within stretches, all seeds share one file.
    """
    used = 0 if data.order_within_stretches else seed
    rounds = "" if data.rounds is None else f"-{data.rounds}"
    return place / "minima" / f"{data.name}{rounds}-seed{used}.json"


def stored_minima(
    place: Path, data: DataSet, seed: int, folder: Folder | None = None
) -> list[Minimum]:
    """As `minima`, solved once and kept in the folder of a sweep."""
    path = minima_path(place, data, seed)
    if path.exists():
        return read_minima(path)
    found = minima(data, seed, folder)
    storage.write_bytes(path, msgspec.json.encode(found) + b"\n")
    return found


def read_minima(path: Path) -> list[Minimum]:
    """Read what `stored_minima` has kept."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[Minimum])
    except msgspec.MsgspecError as problem:
        raise ValueError(
            f"{path} is not a list of offline minima ({problem}); delete it, and it is made again"
        ) from problem


#: Offline minima of the stretches between drifts, by seed.
Minima = Mapping[int, Sequence[Minimum]]


@dataclass(frozen=True)
class RegretRow:
    """The regrets of a method.

    Attributes
    ----------
    title
        The method.
    dynamic
        Against the best fixed point of each stretch between drifts; None where that is not known
        or the method did not play all rounds.
    adaptive
        The largest regret over windows, by their length.
    """

    title: str
    dynamic: Spread | None
    adaptive: dict[int, Spread] = field(default_factory=dict)


def regret_rows(summary: Summary, minima: Minima, taus: Sequence[int] = ()) -> list[RegretRow]:
    """The regrets of the series that stand for the methods.

    Adaptive regret is that measured in the trials, over all windows; where they did not measure it,
    a lower bound for each of `taus`, see `window_regret`.
    """
    return [
        RegretRow(title, _dynamic(series, minima), _adaptive(series, minima, taus))
        for title, series in summary.chosen.items()
    ]


def stretch_regrets(result: Result, minima: Sequence[Minimum]) -> list[float]:
    """What a result suffered in each stretch beyond its best fixed point.

    The curves are read every few rounds: where a drift lies between readings, the loss is
    interpolated.
    """
    loss = np.interp(
        [edge for m in minima for edge in (m.start, m.end)],
        [0, *result.rounds],
        [0.0, *result.loss],
    ).reshape(-1, 2)
    return [float(end - start - m.value) for m, (start, end) in zip(minima, loss, strict=True)]


def window_regret(result: Result, minima: Sequence[Minimum], tau: int) -> float | None:
    """A lower bound on the regret of the worst window of tau rounds.

    Over windows inside stretches whose ends the curves were read at, against the best fixed point of
    the whole stretch, which suffers no more in a part of it than in all of it if losses are never
    negative. None where there is no such window.
    """
    read = dict(zip([0, *result.rounds], [0.0, *result.loss], strict=True))
    found = [
        read[t + tau] - read[t] - m.value
        for m in minima
        for t in read
        if m.start <= t and t + tau <= m.end and t + tau in read
    ]
    return max(found, default=None)


def _dynamic(series: Series, minima: Minima) -> Spread | None:
    if not series.complete or any(r.trial.seed not in minima for r in series.results):
        return None
    return spread(sum(stretch_regrets(r, minima[r.trial.seed])) for r in series.results)


def _adaptive(series: Series, minima: Minima, taus: Sequence[int]) -> dict[int, Spread]:
    measured: dict[int, list[float]] = {}
    for result in series.results:
        for regret in result.adaptive:
            measured.setdefault(regret.tau, []).append(regret.value)
        if not result.adaptive and series.complete and result.trial.seed in minima:
            for tau in taus:
                if (bound := window_regret(result, minima[result.trial.seed], tau)) is not None:
                    measured.setdefault(tau, []).append(bound)
    everywhere = len(series.results)
    return {tau: spread(found) for tau, found in measured.items() if len(found) == everywhere}


_NAMES: dict[Calls, str] = {
    "lmo": "LMO",
    "projection": "projections",
    "gauge": "gauges",
    "membership": "membership tests",
}


def method_table(summary: Summary, regrets: Sequence[RegretRow] = ()) -> str:
    """One row for each method: loss, time, calls of oracles and regret, mean ± deviation."""
    series = list(summary.chosen.values())
    calls = [name for name in CALLS if any(each.curve(name).any() for each in series)]
    taus = sorted({tau for row in regrets for tau in row.adaptive})
    heads = ["method", "c", "seeds", "rounds", "loss a round", "cumulative loss", "seconds"]
    heads += [f"{_NAMES[name]} a round" for name in calls]
    heads += ["dynamic regret"] if any(row.dynamic for row in regrets) else []
    heads += [f"regret, worst {tau:,} rounds" for tau in taus]
    by_title = {row.title: row for row in regrets}
    rows = []
    for each in series:
        row = _figures(each, calls)
        found = by_title.get(each.title)
        if "dynamic regret" in heads:
            row.append(_told(found.dynamic if found else None))
        row += [_told(found.adaptive.get(tau) if found else None) for tau in taus]
        rows.append(row)
    return markdown(heads, rows)


def _figures(series: Series, calls: Sequence[Calls]) -> list[str]:
    played = int(series.rounds[-1])
    return [
        markdown_text(series.title),
        "" if series.c is None else short(series.c),
        str(len(series.results)),
        f"{played:,}",
        spread_text(series.mean_loss),
        spread_text(series.total("loss")),
        spread_text(series.total("seconds")),
        *(number(series.total(name).mean / played, 3) for name in calls),
    ]


def _told(value: Spread | None) -> str:
    return "–" if value is None else spread_text(value)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown: the first column to the left, the others to the right.

    >>> print(markdown(["a", "b"], [["x", "1"]]))
    | a | b |
    | --- | ---: |
    | x | 1 |
    """
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def trial_table(results: Iterable[Result]) -> str:
    """One line of CSV for each trial."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for i, result in enumerate(results):
        row = _columns(result)
        if i == 0:
            writer.writerow(row)
        writer.writerow(map(csv_cell, row.values()))
    return text.getvalue()


def _columns(result: Result) -> dict[str, Any]:
    trial = result.trial
    return {
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
