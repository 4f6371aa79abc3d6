"""Draw docs/figures/recall.svg: recall@10 over time, before and after users change their taste.

python docs/figures/recall.py, from the repository's folder, with MovieLens 100K in $DRIFTWOLFE_DATA and, for
its line, `pip install implicit`; some minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from style import HERE, INK, SOFT, canvas, colours, save

sys.path.insert(0, str(HERE.parents[1]))
from benchmarks.ranking import contestants, likes

#: Scored likes in a mean.
WINDOW = 3000
LINES = {
    "`Recommender.prequential`": ("Recommender", "-"),
    "EASE": ("EASE, refitted", "--"),
    "iALS": ("iALS, refitted", "-."),
    "co-occurrence": ("co-occurrence", ":"),
    "popularity": ("popularity", (0, (1, 1))),
}
SHADES = colours(label for label, _ in LINES.values())


def main(folder: Path = HERE) -> None:
    """Rank both streams with every method, and draw their recalls."""
    streams = {"MovieLens 100K, likes in time order": likes()}
    streams["every user gets the taste of another at half time"] = likes(seed=0)
    shape = tuple(int(part.max()) + 1 for part in next(iter(streams.values()))[:2])
    figure = canvas(8.6, 3.6)
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (title, stream) in zip(axes, streams.items(), strict=True):
        half = int(stream.scored[: stream.users.size // 2].sum()) / 1000
        axis.axvline(half, color=SOFT, lw=0.8, ls=":", visible=axis is axes[1])
        for name, ranks_of in contestants(shape).items():
            for start, (label, dash) in LINES.items():
                if name.startswith(start):
                    hits = np.cumsum(np.append(0, ranks_of(stream) < 10))
                    recall = (hits[WINDOW:] - hits[:-WINDOW]) / WINDOW
                    ends = np.arange(WINDOW, hits.size) / 1000
                    look = {"color": SHADES[label], "ls": dash, "lw": 1.6}
                    axis.plot(ends[::200], recall[::200], label=label, **look)
        axis.set_title(title, fontsize=10, color=INK, loc="left")
        axis.set(xlabel="thousand scored likes", ylim=(0, None), xlim=(0, None))
    axes[0].set_ylabel("recall@10, last 3,000")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5)
    save(figure, "recall", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
