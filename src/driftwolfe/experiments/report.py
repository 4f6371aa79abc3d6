"""What a folder of results becomes: tables, figures, and the self-contained interactive report."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import Any

from driftwolfe import storage, terminal
from driftwolfe.comparison import CALL_NAMES
from driftwolfe.experiments import figures, paper
from driftwolfe.experiments.figure import Figure, extra
from driftwolfe.experiments.summary import (
    CALLS,
    RegretRow,
    Summary,
    machines,
    stored_regrets,
)
from driftwolfe.experiments.summary import summaries as summaries_of
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import short
from driftwolfe.streams.datasets import RATINGS, ROWS, DataFile
from driftwolfe.terminal import counted, markdown_text, number, printable, spread_text

WIDTH = 100  # letters in a line of a terminal
_POINTS = 120  # on a curve of the report, at most
_REAL: dict[DataFile | None, str] = {
    RATINGS: f"Real data: MovieLens 100K by GroupLens, file {RATINGS.path}, from {RATINGS.source}; for "
    "research use, and not redistributed here.",
    ROWS: "Real data: Statlog (Shuttle) of the UCI Machine Learning Repository, CC BY 4.0, "
    f"file {ROWS.path}, from {ROWS.source}.",
}


def publish(store: Store, command: str | None = None) -> list[Path]:
    """Write tables, figures and the report of a sweep, finished or not; return the paths, in order.

    Without a `command`, the summary names the one that it named before.
    """
    summaries, title = summaries_of(store), store.title
    if not summaries:
        raise ValueError(f"{store.folder} holds no results yet; run the sweep first")
    regrets = [stored_regrets(store.folder, summary) for summary in summaries]
    written = [store.folder / "summary.md"]
    old = written[0].read_text("utf-8", "replace") if written[0].is_file() else ""
    if not command and (named := re.search(r"^Made by `(.+)`\.$", old, re.MULTILINE)):
        command = named[1]
    storage.write_text(written[0], as_text(title, summaries, regrets, command))
    folder, name = store.folder / "figures", paper.FIGURES.get(paper.experiment_of(title), "")
    file = name.lower().replace(" ", "-") or "panels"
    for rest, ending in ((False, ""), (True, "-rest")):
        if found := figures.panels(*summaries, name=name, rest=rest):
            written += figures.save(found, folder, file + ending)
    for i, (summary, rows) in enumerate(zip(summaries, regrets, strict=True), start=1):
        place = folder / ("" if len(summaries) == 1 else str(i))
        _, *others = figures.all_figures(summary, rows)
        written += [path for each in others for path in figures.save(each, place)]
    written.append(store.folder / "report.html")
    write_report(written[-1], title, summaries, regrets, command)
    return written


def as_text(
    title: str,
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[RegretRow]],
    command: str | None = None,
) -> str:
    """The summary as Markdown: a table for each stream, how c was chosen, and the claims."""
    parts = [f"# {markdown_text(title)}"]
    if command:
        code = printable(" ".join(command.split())).replace("`", "'")
        parts.append(f"Made by `{code}`.")
    for summary, rows in zip(summaries, regrets, strict=True):
        parts += [f"## {markdown_text(summary.name)}", method_table(summary, rows)]
        if notes := tuning_notes(summary):
            parts.append("\n".join(f"- {markdown_text(note)}" for note in notes))
        found, missing = paper.claims(summary, title)
        if found or missing:
            parts += ["### The paper's claims", missing or paper.as_markdown(found)]
    return "\n\n".join(parts) + "\n"


def method_rows(summary: Summary, regrets: Sequence[RegretRow] = ()) -> list[dict[str, str]]:
    """One row per method: loss, time, oracle calls and regret, mean ± deviation."""
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
            row[f"{CALLS[name]} per round"] = number(series.per_round(name), 3)
        if any(each.dynamic for each in regrets):
            row["dynamic regret"] = spread_text(regret.dynamic)
        for tau in sorted({tau for each in regrets for tau in each.adaptive}):
            row[f"regret, worst {tau:,} rounds"] = spread_text(regret.adaptive.get(tau))
        rows.append(row)
    return rows


def method_table(summary: Summary, regrets: Sequence[RegretRow] = ()) -> str:
    """The rows of all methods in Markdown."""
    rows = method_rows(summary, regrets)
    cells = ([markdown_text(title), *others] for title, *others in (row.values() for row in rows))
    return terminal.write_table(list(rows[0]), cells)


def tuning_notes(summary: Summary) -> list[str]:
    """How c was chosen: what was tried, and on which orders."""
    notes = []
    for title, chosen in summary.chosen.items():
        tried = {series.c or 0.0: series for series in summary.tuning(title)}
        if len(tried) < 2:
            continue
        c = chosen.c or 0.0
        text = f"{title}: c = {short(c)} of {', '.join(map(short, tried))}"
        orders = {result.trial.seed for series in tried.values() for result in series.results}
        if not orders & {result.trial.seed for result in chosen.results}:
            text += f", chosen on {counted(len(orders), 'other order')}"
        notes.append(text + ".")
        if c in (min(tried), max(tried)):
            notes.append(f"{title}: the best c lies on the edge of what was tried.")
    return notes


def write_report(
    path: Path,
    title: str,
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[RegretRow]],
    command: str | None = None,
) -> None:
    """Write an HTML page that needs nothing else: no network, no other files; a section per summary.

    `regrets` has a list for each of them; `command` makes the results again, for a shell.
    """
    page, code, style = (
        files(__package__).joinpath(f"page.{ending}").read_text(encoding="utf-8")
        for ending in ("html.jinja", "js", "css")
    )
    jinja = extra("jinja2")
    options = {"undefined": jinja.StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    template = jinja.Environment(autoescape=True, **options).from_string(page)
    scripts = [extra("plotly.offline").get_plotlyjs(), code]
    # The page's security policy knows scripts by these, and runs no other.
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()) for each in scripts]
    shown = [figures.all_figures(*pair) for pair in zip(summaries, regrets, strict=True)]
    charts = [[(figure, figure.page_json(_POINTS)) for figure in each] for each in shown]
    text = template.render(
        title=title,
        counted=counted,
        short=short,
        spread_text=spread_text,
        command=command,
        sections=[
            _section(title, *parts) for parts in zip(summaries, regrets, charts, strict=True)
        ],
        machines=machines(*chain(*(summary.series for summary in summaries))),
        style=style,
        scripts=scripts,
        digests=[f"sha256-{digest.decode()}" for digest in digests],
    )
    storage.write_text(path, text)


def _section(
    title: str, summary: Summary, regrets: Sequence[RegretRow], charts: list[tuple[Figure, str]]
) -> dict[str, Any]:
    """What the page says about a stream."""
    found, missing = paper.claims(summary, title)
    rows = method_rows(summary, regrets)
    costs = {"seconds", "machine", *(f"{name} per round" for name in CALLS.values())}
    tables = []
    for name in ("Loss and regret", "Cost"):
        heads = [
            each for each in rows[0] if each == "method" or (each in costs) == (name == "Cost")
        ]
        cells = [[row[head] for head in heads] for row in rows]
        tables.append({"name": name, "heads": heads, "rows": cells})
    methods = summary.chosen.values()
    best = min(methods, key=lambda each: each.mean_loss.mean) if len(methods) > 1 else None
    return {
        "summary": summary,
        "real": _REAL.get(summary.series[0].trial.data.source.file),
        "tables": tables,
        "best": best,
        "charts": charts,
        "notes": tuning_notes(summary),
        "claims": found,
        "quotes": paper.quotes(found),
        "no_verdict": missing,
    }


def overview(places: Iterable[Path]) -> list[str]:
    """Lines that say what lies in folders of sweeps and which reports and pictures to open."""
    lines, opened = list[str](), dict[Path, str]()
    for place in (inner for outer in places for inner in _sweeps_in(outer) or [outer]):
        if place.is_file():
            opened[place] = "picture"
            continue
        lines += in_brief(Store(place))
        if (place / "report.html").exists():
            opened[place / "report.html"] = "report"
        for name in ("figure-?", "panels"):
            opened |= dict.fromkeys(sorted(place.glob(f"figures/{name}.png")), "figure")
    if opened:
        widest = max(len(str(path)) for path in opened)
        lines.append("to open:")
        lines += [printable(f"  {path!s:{widest}}  {what}") for path, what in opened.items()]
    return lines


def in_brief(store: Store) -> list[str]:
    """Lines with what all methods came to, and what became of the claims."""
    lines, title = list[str](), store.title
    for summary in summaries_of(store):
        rows = []
        for series in summary.chosen.values():
            # Not the products: summary.md has room for them.
            calls = {name: series.per_round(kind) for kind, name in CALL_NAMES.items()}
            called = ", ".join(f"{number(n, 3)} {name}" for name, n in calls.items() if n)
            loss, seconds = spread_text(series.mean_loss), spread_text(series.total("seconds"))
            rows.append([f"  {series.title}", loss, seconds, called])
        heads = ("method", "loss per round", "seconds", "per round")
        found, notes = paper.claims(summary, title)
        if found:
            held = sum(claim.held is True for claim in found)
            notes = f"The paper's claims: {held} of {len(found)} parts held (`driftwolfe claims`)."
        lines += [*wrap(printable(summary.name), WIDTH), *terminal.table(heads, rows)]
        lines += [*wrap(summary.notice or "", WIDTH), *wrap(notes, WIDTH), ""]
    return lines


def _sweeps_in(place: Path) -> list[Path]:
    """The sweeps in a folder and the pictures beside them; none where there is nothing of that."""
    if not place.is_dir() or (place / "sweep.json").exists():
        return [place]
    found = []  # without the tuning of experiments, which lies in their own folders
    for each in sorted(place.iterdir()):
        if each.is_dir() and not each.is_symlink():
            found += _sweeps_in(each)
        elif each.suffix == ".png":
            found.append(each)
    return found
