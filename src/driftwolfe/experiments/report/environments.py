"""The machines and versions behind the results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from driftwolfe.experiments.result import Result
from driftwolfe.experiments.summary import Summary

_NAMES = {
    "cpu": "Processor",
    "cores": "Cores",
    "memory_gib": "Memory (GiB)",
    "system": "System",
    "python": "Python",
    "blas": "BLAS",
    "date": "Measured",
    "commit": "Commit",
}


def environments(summaries: Iterable[Summary]) -> list[dict[str, str]]:
    """Each environment once, as names and texts; they are the same if only the time differs."""
    found: dict[str, tuple[dict[str, Any], list[str], int]] = {}
    for result in _results(summaries):
        facts = {name: _in_order(value) for name, value in result.environment.items()}
        facts.pop("date", None)
        key = json.dumps(facts, sort_keys=True, default=str)
        _, dates, count = found.get(key, (facts, [], 0))
        dates.append(str(result.environment.get("date", "")))
        found[key] = facts, dates, count + 1
    return [_texts(facts, dates, count) for facts, dates, count in found.values()]


def _results(summaries: Iterable[Summary]) -> list[Result]:
    return [
        result for summary in summaries for series in summary.series for result in series.results
    ]


def _in_order(value: Any) -> Any:
    """Libraries in the order of their names, whatever the order that they were loaded in."""
    return sorted(value, key=_text) if isinstance(value, list) else value


def _texts(facts: dict[str, Any], dates: list[str], count: int) -> dict[str, str]:
    known = {name: value for name, value in facts.items() if value not in (None, "", [])}
    texts = {_NAMES.get(name, name): _text(value) for name, value in known.items()}
    first, last = min(dates)[:10], max(dates)[:10]
    if first:
        texts[_NAMES["date"]] = first if first == last else f"{first} to {last}"
    return {**texts, "Trials": f"{count:,}"}


def _text(value: Any) -> str:
    """A fact as people read it; libraries of linear algebra come as a list of small tables."""
    if isinstance(value, dict):
        parts = [str(value[name]) for name in ("internal_api", "version") if value.get(name)]
        threads = value.get("num_threads")
        return " ".join(parts) + ("" if threads is None else f" (threads: {threads})")
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(_text(part) for part in value))
    return str(value)
