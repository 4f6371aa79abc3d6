"""The ratios as a table for people."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.ratio import Ratio

HEAD = ("row", "what", "ours", "theirs", "ratio", "limit", "threads", "verdict")
VERDICTS = {True: "ok", False: "MISSED", None: "shown"}


def as_table(ratios: Sequence[Ratio]) -> str:
    """A Markdown table, one line for each ratio."""
    lines = [HEAD, *(_cells(ratio) for ratio in ratios)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(line, widths) for line in (lines[0], rule, *lines[1:]))


def as_notes(ratios: Sequence[Ratio]) -> str:
    """How each was measured, one line for each that says so."""
    return "\n".join(f"{each.row}: {each.name}: {each.note}" for each in ratios if each.note)


def limit_text(ratio: Ratio) -> str:
    """The limit with its direction."""
    if ratio.limit is None:
        return ""
    return f"{'>=' if ratio.at_most is None else '<='} {ratio.limit:g}"


def number(value: float) -> str:
    """Four digits, or all that stand before the point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A number with a unit that suits its size."""
    if unit == "s":
        for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if value >= size:
                return f"{number(value / size)} {name}"
    return f"{number(value)} {unit}"


def _cells(ratio: Ratio) -> tuple[str, ...]:
    return (
        ratio.row,
        ratio.name,
        quantity(ratio.ours, ratio.unit),
        quantity(ratio.theirs, ratio.unit),
        number(ratio.ratio),
        limit_text(ratio),
        str(ratio.threads),
        VERDICTS[ratio.holds],
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = [cells[i].ljust(widths[i]) for i in (0, 1)]
    right = [cells[i].rjust(widths[i]) for i in range(2, len(HEAD))]
    return f"| {' | '.join((*left, *right))} |"
