"""Ticks that people can read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from driftwolfe.experiments.figures.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def count_axis(axis: Axes, which: str, ticks: int = 5) -> None:
    """Thousands separators, and not too many ticks."""
    ticker = extra("matplotlib.ticker")
    chosen = axis.xaxis if which == "x" else axis.yaxis
    if chosen.get_scale() == "linear":
        chosen.set_major_locator(ticker.MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
        chosen.set_major_formatter(
            ticker.FuncFormatter(lambda value, _: alike(value, chosen.get_majorticklocs()))
        )
    else:
        low, high = chosen.get_view_interval()
        parts = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
        chosen.set_major_locator(ticker.LogLocator(subs=parts, numticks=ticks + 2))
        chosen.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        chosen.set_minor_formatter(ticker.NullFormatter())


def alike(value: float, ticks: Iterable[float]) -> str:
    """A tick's number with as many decimals as all the ticks need.

    >>> alike(1.0, [0.8, 1.0, 1.2]), alike(1000.0, [0.0, 1000.0])
    ('1.0', '1,000')
    """
    texts = [f"{tick:.10f}".rstrip("0") for tick in ticks]
    return f"{value:,.{max(len(text.partition('.')[2]) for text in texts)}f}"
