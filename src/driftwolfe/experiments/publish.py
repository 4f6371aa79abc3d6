"""From the results of a sweep to tables, figures and the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftwolfe.experiments.cells import markdown_code, markdown_text
from driftwolfe.experiments.comparators import Minimum, minima_path, read_minima
from driftwolfe.experiments.paper import claims
from driftwolfe.experiments.regret_table import RegretRow, regret_rows
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import Summary, summarise
from driftwolfe.experiments.tables import method_table, trial_table
from driftwolfe.experiments.tuning_notes import tuning_notes
from driftwolfe.storage import files


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
    files.write_text(written[0], as_text(store.title, summaries, regrets, command))
    files.write_text(written[1], trial_table(results))
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
        if found := claims.claims(summary):
            parts += ["### The paper's claims", claims.as_markdown(found)]
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
