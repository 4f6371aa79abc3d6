"""Write figures, tables and report of a folder of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from driftwolfe import storage
from driftwolfe.experiments import figure_style, paper
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import CALLS, Series, Summary, summarise
from driftwolfe.experiments.tables import (
    Minimum,
    RegretRow,
    markdown_code,
    markdown_text,
    method_table,
    minima_path,
    number,
    read_minima,
    regret_rows,
    spread_text,
    trial_table,
    tuning_notes,
)
from driftwolfe.terminal import printable, table


def publish(store: Store, command: str | None = None) -> list[Path]:
    """Write tables, figures and the report of what is there into the sweep's folder.

    Parameters
    ----------
    store
        The sweep, finished or not.
    command
        What made it, to be told in the report.

    Returns
    -------
    list of Path
        The files written, the tables first and the report last.
    """
    from driftwolfe.experiments import figures, report

    results = store.results
    if not results:
        raise ValueError(f"{store.folder} holds no results yet; run the sweep first")
    summaries = summarise(results)
    regrets = [_regrets(store, summary) for summary in summaries]
    written = [store.folder / "summary.md", store.folder / "trials.csv"]
    storage.write_text(written[0], as_text(store.title, summaries, regrets, command))
    storage.write_text(written[1], trial_table(results))
    for i, summary in enumerate(summaries):
        place = store.folder / "figures" / ("" if len(summaries) == 1 else f"{i + 1}")
        written += figures.draw_all(summary, regrets[i], place)
    written.append(store.folder / "report.html")
    report.write_report(
        summaries,
        written[-1],
        title=store.title,
        regrets=regrets,
        command=command,
    )
    return written


def as_text(
    title: str,
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[RegretRow]],
    command: str | None = None,
) -> str:
    """The summary as Markdown: a table for each stream, how c was chosen, and the claims."""
    parts = [f"# {markdown_text(title)}"]
    parts += [f"Made by {markdown_code(command)}."] if command else []
    for summary, rows in zip(summaries, regrets, strict=True):
        parts += [f"## {markdown_text(summary.name)}", method_table(summary, rows)]
        if notes := tuning_notes(summary):
            parts.append("\n".join(f"- {markdown_text(note)}" for note in notes))
        if found := paper.claims(summary):
            parts += ["### The paper's claims", paper.as_markdown(found)]
    return "\n\n".join(parts) + "\n"


def _regrets(store: Store, summary: Summary) -> list[RegretRow]:
    """Regrets, as far as offline minima are kept in the sweep's folder."""
    data, minima = summary.series[0].data, dict[int, list[Minimum]]()
    seeds = {result.trial.seed for series in summary.series for result in series.results}
    for seed in seeds:
        path = minima_path(store.folder, data, seed)
        if path.exists():
            minima[seed] = read_minima(path)
    return regret_rows(summary, minima, _taus(minima))


def _taus(minima: dict[int, list[Minimum]]) -> tuple[int, ...]:
    """The shortest whole stretch, and a tenth of it."""
    lengths = [m.end - m.start for found in minima.values() for m in found]
    return () if not lengths else (max(1, min(lengths) // 10), min(lengths))


_HEADS = ("stream, method", "rounds", "loss a round", "seconds", "oracle calls a round")


def overview(places: Iterable[Path]) -> list[str]:
    """Lines that tell what lies in folders of sweeps and in files, and what to open first.

    Parameters
    ----------
    places
        Folders of sweeps or of experiments, and pictures.
    """
    rows: list[list[str]] = []
    notices: list[str] = []
    opened: list[tuple[str, str]] = []
    for place in places:
        if place.is_file():
            opened.append((str(place), "picture"))
            continue
        store = Store(place)
        for summary in summarise(store.results):
            rows += _rows(summary)
            notices.append(figure_style.notice(summary) or "")
        opened += _to_open(place, store.title)
    made = [*table(_HEADS, rows), *filter(None, notices), ""] if rows else []
    widest = max((len(path) for path, _ in opened), default=0)
    listed = ["to open:", *(printable(f"  {path:{widest}}  {what}") for path, what in opened)]
    return made + (listed if opened else [])


def _rows(summary: Summary) -> list[list[str]]:
    """The stream on a line of its own, then a line for each method."""
    rows = [[summary.name, *[""] * (len(_HEADS) - 1)]]
    for title, series in summary.chosen.items():
        played = int(series.rounds[-1])
        cells = [spread_text(series.mean_loss), spread_text(series.total("seconds"))]
        rows.append([f"  {title}", f"{played:,}", *cells, _calls(series)])
    return rows


def _calls(series: Series) -> str:
    """The oracle calls of a round, by their kinds."""
    each = {name: series.total(name).mean / int(series.rounds[-1]) for name in CALLS}
    return ", ".join(f"{number(n, 3)} {figure_style.CALLS[name]}" for name, n in each.items() if n)


def _to_open(folder: Path, title: str) -> Sequence[tuple[str, str]]:
    """The report and the main figures of a sweep, as far as they are drawn."""
    wanted = [(folder / "report.html", f"report: {title}")]
    wanted += [(path, "figure") for path in sorted(folder.glob("figures/**/panels.png"))]
    return [(str(path), what) for path, what in wanted if path.exists()]
