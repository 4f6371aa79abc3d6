"""Draw docs/figures/intervals.svg: an interval around a series whose noise jumps, and its coverage over time.

python docs/figures/intervals.py, from the repository's folder; some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from style import HERE, INK, SOFT, canvas, colours, save

sys.path.insert(0, str(HERE.parents[1]))
from benchmarks.intervals import COVERAGE, FIRST, WINDOW, aci, ours, synthetic

#: Rows of the series that are shown.
SHOWN = slice(1250, 1750)


def main(folder: Path = HERE) -> None:
    """Play both methods on the same errors of a model that knows the mean of the series."""
    residuals = synthetic(3000, 1)["scale jumps by 4"]
    t = np.arange(residuals.size)
    mean = 10.0 * np.sin(2.0 * np.pi * t / 800.0)
    lines = {
        "AdaptiveIntervals": (ours(residuals), "-"),
        "ACI, step 0.005": (aci(0.005, 500)(residuals), "--"),
    }
    shades = colours(lines)
    figure = canvas(8.6, 5.0)
    above, below = figure.subplots(2, 1, height_ratios=(3, 2))
    above.plot(t[SHOWN], (mean + residuals)[SHOWN], ".", color=SOFT, ms=2.5, label="targets")
    for name, (ends, dash) in lines.items():
        colour = shades[name]
        low, high = (mean + end for end in ends)
        if name == "AdaptiveIntervals":
            band = {"color": colour, "alpha": 0.15, "lw": 0}
            above.fill_between(t[SHOWN], low[SHOWN], high[SHOWN], **band)
        for end, label in ((low, None), (high, name)):
            above.plot(t[SHOWN], end[SHOWN], color=colour, ls=dash, lw=1.3, label=label)
        inside = (ends[0] <= residuals) & (residuals <= ends[1])
        share = np.convolve(inside[FIRST:], np.ones(WINDOW) / WINDOW, "valid")
        below.plot(t[FIRST + WINDOW - 1 :], share, color=colour, ls=dash, lw=1.3)
    below.axhline(COVERAGE, color=SOFT, lw=0.8, ls=":")
    for jump in range(500, residuals.size, 500):
        below.axvline(jump, color=SOFT, lw=0.8, ls=":")
        if SHOWN.start < jump < SHOWN.stop:
            above.axvline(jump, color=SOFT, lw=0.8, ls=":")
    above.set_title(
        "90 % intervals; the noise jumps at row 1,500", fontsize=10, color=INK, loc="left"
    )
    below.set_title("share inside, last 100 rows", fontsize=10, color=INK, loc="left")
    above.set(xlim=(SHOWN.start, SHOWN.stop - 1), ylabel="target")
    below.set(xlim=(0, residuals.size), ylim=(0.4, 1.02), xlabel="row")
    figure.legend(*above.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, "intervals", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
