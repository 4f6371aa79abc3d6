"""Reports as files."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.figures.regret_dots import Regrets
from driftwolfe.experiments.report.environments import environments
from driftwolfe.experiments.report.section import Section, section
from driftwolfe.experiments.summary import Summary
from driftwolfe.storage.files import write_text

#: Characters that the data of all charts may take, and points on a curve, from fine to coarse.
DATA_LIMIT = 1_400_000
_POINTS = (400, 240, 120, 60, 30)


def write_report(
    summaries: Sequence[Summary],
    path: Path,
    *,
    regrets: Sequence[Sequence[Regrets]] = (),
    title: str = "Projection-free online learning in changing environments",
    notes: Sequence[str] = (),
    command: str | None = None,
) -> None:
    """Write an HTML page that needs nothing else: no network, no other files.

    Parameters
    ----------
    summaries
        At least one; each becomes a section.
    path
        The file, which is written whole or not at all.
    regrets
        What is known of regret, for each of the summaries; empty for nothing.
    title
        Of the page.
    notes
        Sentences that stand at the top.
    command
        What makes the results again, for a shell.
    """
    write_text(path, page(summaries, regrets, title, notes, command))


def page(
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[Regrets]],
    title: str,
    notes: Sequence[str],
    command: str | None,
) -> str:
    """The text of the page."""
    if not summaries:
        raise ValueError("a report needs at least one summary")
    known = regrets or [()] * len(summaries)
    if len(known) != len(summaries):
        raise ValueError(f"regrets must hold one list for each of {len(summaries)} summaries")
    plotly = extra("plotly.offline").get_plotlyjs()
    script = _asset("page.js")
    return _template().render(
        title=title,
        notes=notes,
        command=command,
        sections=_sections(summaries, known),
        environments=environments(summaries),
        style=_asset("page.css"),
        scripts=[plotly, script],
        digests=[_digest(plotly), _digest(script)],
    )


def _sections(summaries: Sequence[Summary], regrets: Sequence[Sequence[Regrets]]) -> list[Section]:
    """All sections, their curves as fine as the limit on data allows."""
    for points in _POINTS:
        found = [
            section(summary, rows, points) for summary, rows in zip(summaries, regrets, strict=True)
        ]
        if sum(len(chart.source) for each in found for chart in each.charts) <= DATA_LIMIT:
            break
    return found


def _template() -> Any:
    jinja = extra("jinja2")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_asset("page.html.jinja"))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """What the page's security policy knows a script by; it runs no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
