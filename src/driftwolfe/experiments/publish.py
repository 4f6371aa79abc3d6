"""Write tables, figures and the report of a folder of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from driftwolfe import storage, terminal
from driftwolfe.experiments import paper, tables
from driftwolfe.experiments.chart_data import CALL_LABELS
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import Summary, summarise
from driftwolfe.experiments.tables import RegretRow, markdown_text, number, spread_text
from driftwolfe.terminal import printable

_HEADS = ("stream, method", "rounds", "loss per round", "seconds", "oracle calls per round")


def publish(store: Store, command: str | None = None) -> list[Path]:
    """Write tables, figures and the report of a sweep, finished or not, into its folder.

    Returns the paths written, the tables first and the report last. `command` is what made the
    sweep, for the report.
    """
    from driftwolfe.experiments import figures, report

    results = store.results
    if not results:
        raise ValueError(f"{store.folder} holds no results yet; run the sweep first")
    summaries = summarise(results)
    regrets = [_regrets(store, summary) for summary in summaries]
    written = [store.folder / "summary.md", store.folder / "trials.csv"]
    storage.write_text(written[0], as_text(store.title, summaries, regrets, command))
    storage.write_text(written[1], tables.trial_table(results))
    for i, (summary, rows) in enumerate(zip(summaries, regrets, strict=True), start=1):
        place = store.folder / "figures" / ("" if len(summaries) == 1 else str(i))
        written += figures.draw_all(summary, rows, place)
    written.append(store.folder / "report.html")
    report.write_report(summaries, written[-1], title=store.title, regrets=regrets, command=command)
    return written


def as_text(
    title: str,
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[RegretRow]],
    command: str | None = None,
) -> str:
    """The summary as Markdown: a table for each stream, how c was chosen, and the claims."""
    parts = [f"# {markdown_text(title)}"]
    parts += [f"Made by {tables.markdown_code(command)}."] if command else []
    for summary, rows in zip(summaries, regrets, strict=True):
        parts += [f"## {markdown_text(summary.name)}", tables.method_table(summary, rows)]
        if notes := tables.tuning_notes(summary):
            parts.append("\n".join(f"- {markdown_text(note)}" for note in notes))
        if found := paper.claims(summary):
            parts += ["### The paper's claims", paper.as_markdown(found)]
    return "\n\n".join(parts) + "\n"


def _regrets(store: Store, summary: Summary) -> list[RegretRow]:
    """Regrets, as far as offline minima are kept in the sweep's folder.

    Adaptive regret over windows as long as the shortest stretch, and a tenth of it.
    """
    data = summary.series[0].trial.data
    seeds = {result.trial.seed for series in summary.series for result in series.results}
    paths = {seed: tables.minima_path(store.folder, data, seed) for seed in seeds}
    minima = {seed: tables.read_minima(path) for seed, path in paths.items() if path.exists()}
    shortest = min((m.end - m.start for found in minima.values() for m in found), default=0)
    taus = (max(1, shortest // 10), shortest) if shortest else ()
    return tables.regret_rows(summary, minima, taus)


def overview(places: Iterable[Path]) -> list[str]:
    """Lines that say what lies in folders of sweeps and which reports and pictures to open."""
    rows: list[list[str]] = []
    notices: list[str] = []
    opened: dict[Path, str] = {}
    for place in places:
        if place.is_file():
            opened[place] = "picture"
            continue
        store = Store(place)
        for summary in summarise(store.results):
            rows += _rows(summary)
            notices += [summary.notice] if summary.notice else []
        if (place / "report.html").exists():
            opened[place / "report.html"] = f"report: {store.title}"
        for path in sorted(place.glob("figures/**/panels.png")):
            opened[path] = "figure"
    lines = [*terminal.table(_HEADS, rows), *notices, ""] if rows else []
    if opened:
        widest = max(len(str(path)) for path in opened)
        lines.append("to open:")
        lines += [printable(f"  {path!s:{widest}}  {what}") for path, what in opened.items()]
    return lines


def _rows(summary: Summary) -> list[list[str]]:
    """The stream on a line of its own, then a line for each method."""
    rows = [[summary.name, *[""] * (len(_HEADS) - 1)]]
    for title, series in summary.chosen.items():
        calls = {name: series.per_round(name) for name in CALL_LABELS}
        told = ", ".join(f"{number(n, 3)} {CALL_LABELS[name]}" for name, n in calls.items() if n)
        loss, seconds = spread_text(series.mean_loss), spread_text(series.total("seconds"))
        rows.append([f"  {title}", f"{series.played:,}", loss, seconds, told])
    return rows
