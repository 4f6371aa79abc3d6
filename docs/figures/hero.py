"""Draw docs/figures/hero.svg: loss while the world changes, and what it costs, from the stored trials.

python docs/figures/hero.py, from any folder; seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from style import BLUE, GREEN, HERE, INK, ORANGE, PINK, SOFT, canvas, save

from driftwolfe.experiments.sweep import Store

#: Rounds in a mean.
WINDOW = 100
#: Colour and dash by label.
LINES = {
    "Ader": (PINK, "--"),
    "POLD": (ORANGE, "-."),
    "Multi-OCG": (GREEN, ":"),
    "POLAR": (BLUE, "-"),
}


def main(folder: Path = HERE) -> None:
    """Draw the mean over all orders of the data."""
    figure = canvas(8.6, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1.0))
    results = Store(HERE.parent / "results" / "matrix-completion").results
    costs, on_gpu = dict[str, float](), dict[str, str]()
    for label, (colour, dash) in LINES.items():
        runs = [r for r in results if r.trial.label == label and r.stream == "MovieLens 100K"]
        rounds = np.array([0, *runs[0].rounds])
        loss = np.mean([[0.0, *run.loss] for run in runs], axis=0)
        ends = np.arange(WINDOW, rounds[-1] + 1, 10)
        recent = np.interp(ends, rounds, loss) - np.interp(ends - WINDOW, rounds, loss)
        left.plot(ends, recent / WINDOW, color=colour, ls=dash, lw=2.0, label=label)
        costs[label] = float(np.mean([run.seconds[-1] for run in runs]))
        on_gpu[label] = " (GPU)" if runs[0].environment.get("gpu") else ""
    for drift, what in zip(results[0].drifts, ("ratings negated", "and back"), strict=True):
        left.axvline(drift, color=SOFT, lw=0.8, ls=":")
        left.annotate(
            what, (drift, 0.99), (5, 0), ("data", "axes fraction"), textcoords="offset points",
            va="top", color=SOFT, fontsize=9,
        )  # fmt: skip
    left.set(xlabel="round", ylim=(0, 600), xlim=(0, 3000))
    left.set_title(f"loss per round, last {WINDOW}", loc="left", fontsize=10, color=INK)
    names = list(costs)
    bars = right.barh(names, list(costs.values()), color=[LINES[name][0] for name in names])
    right.bar_label(
        bars, [f"{costs[name]:,.0f} s{on_gpu[name]}" for name in names], padding=3, color=INK
    )
    right.set(xscale="log", xlim=(5, 20000))
    right.tick_params(axis="x", which="both", length=0, labelbottom=False)
    right.tick_params(axis="y", length=0, labelcolor=INK)
    right.spines["bottom"].set_visible(False)
    right.set_title("3,000 rounds take", loc="left", fontsize=10, color=INK)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, "hero", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
