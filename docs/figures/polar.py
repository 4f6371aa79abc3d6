"""Draw docs/figures/polar.svg: POLAR's regret as a share of the best of the others, from the stored games.

python docs/figures/polar.py, from any folder; seconds.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from style import BLUE, HERE, INK, SOFT, canvas, save

#: Their games have a loss, not a regret.
REAL = ("MovieLens", "MovieLens with random drifts", "Shuttle")


def main(folder: Path = HERE) -> None:
    """One bar for each stream, the mean over seeds."""
    games = json.loads((HERE.parent / "results/polar/results.json").read_text())
    shares, best = dict[str, float](), dict[str, str]()
    for stream in games.keys() - set(REAL):
        regrets = defaultdict(list)
        for record in games[stream]["records"]:
            if "value" in record and not record["learner"].startswith("POLAR,"):
                regrets[record["learner"]].append(record["value"])
        means = {name: float(np.mean(values)) for name, values in regrets.items()}
        ours = means.pop("POLAR")
        best[stream] = min(means, key=means.__getitem__)
        shares[stream] = 100 * ours / means[best[stream]]
    streams = sorted(shares, key=shares.__getitem__, reverse=True)
    figure = canvas(6.4, 0.4 * len(streams))
    axis = figure.subplots()
    bars = axis.barh(streams, [shares[stream] for stream in streams], color=BLUE)
    labels = [f"{shares[stream]:.0f} % of {best[stream]}" for stream in streams]
    axis.bar_label(bars, labels, padding=3, color=INK)
    axis.axvline(100, color=SOFT, lw=0.9, ls=":")
    axis.set(xlim=(0, 330), xticks=(0, 50, 100), xticklabels=("0", "50 %", "100 %"))
    axis.tick_params(axis="y", length=0, labelcolor=INK)
    axis.set_title(
        "POLAR's dynamic regret against the best other's", loc="left", fontsize=10, color=INK
    )
    save(figure, "polar", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
