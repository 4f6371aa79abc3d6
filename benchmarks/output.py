"""Markdown tables, JSON and figure files, as all benchmarks write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from driftwolfe.storage import write_text


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table: the head first, all columns but the first aligned right."""
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    rule = f"| --- |{' ---: |' * (len(rows[0]) - 1)}"
    return "\n".join([head, rule, *rest])


def short_number(value: float) -> str:
    """Three digits, or all before the decimal point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def write_json(path: Path, content: Any) -> None:
    """Write plain data as readable JSON, atomically."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def new_figure(title: str, height: float) -> Any:
    """An empty figure of the report's width with a title."""
    from matplotlib.figure import Figure

    from driftwolfe.experiments.figure import WIDTH

    figure = Figure(figsize=(WIDTH, height), dpi=200, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", va="top", fontsize=7.5, color="#444444")
    return figure


def save_figure(figure: Any, folder: Path, name: str, **options: Any) -> None:
    """Write a figure as PNG."""
    from driftwolfe.experiments.figure import save

    save(figure, folder / f"{name}.png", **options)
