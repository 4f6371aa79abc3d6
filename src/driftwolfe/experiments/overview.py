"""Several sweeps in one table, and what to open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.numbers import number, spread_text
from driftwolfe.experiments.series import CALLS, Series
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import Summary, summarise
from driftwolfe.terminal import printable, table

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
            notices.append(words.notice(summary) or "")
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
    return ", ".join(f"{number(n, 3)} {words.CALLS[name]}" for name, n in each.items() if n)


def _to_open(folder: Path, title: str) -> Sequence[tuple[str, str]]:
    """The report and the main figures of a sweep, as far as they are drawn."""
    wanted = [(folder / "report.html", f"report: {title}")]
    wanted += [(path, "figure") for path in sorted(folder.glob("figures/**/panels.png"))]
    return [(str(path), what) for path, what in wanted if path.exists()]
