"""Draw docs/figures/hero.svg: loss while the world changes, and what it costs, from the stored trials.

python docs/figures/hero.py, from any folder; seconds.

Losses are means over all orders of the data, of docs/results/matrix-completion; times are those of order 0, of
docs/results/one-machine: one thread of one machine without a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from style import HERE, INK, SOFT, canvas, colours, save

from driftwolfe.experiments.sweep import Store

#: Rounds in a mean.
WINDOW = 100
#: Labels, and what the figure calls them; those whose losses are drawn first.
NAMES = {
    "POLAR": "POLAR",
    "POLD": "POLD",
    "Multi-OCG, K = 1": "Multi-OCG",
    "POLA": "POLA",
    "Ader": "Ader",
}
#: Points, so that letters have 9 pixels or more where the figure is 358 pixels wide, as on a phone.
WIDTH, SIZE = 5.2, 10


def main(folder: Path = HERE) -> None:
    """Draw losses above and seconds below."""
    figure = canvas(WIDTH, 5.3)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    above, below = figure.subplots(2, 1, height_ratios=(3.0, 2.0))
    results = Store(HERE.parent / "results" / "matrix-completion").results
    timed = Store(HERE.parent / "results" / "one-machine").results
    machines = {(r.environment["cpu"], r.environment["cores"], r.environment["gpu"]) for r in timed}
    ((_, _, gpu),) = machines  # one, or times cannot be compared
    assert not gpu
    shades, ends = colours(NAMES.values()), dict[str, float]()
    for label, name in reversed(NAMES.items()):
        runs = [r for r in results if r.trial.label == label and r.stream == "MovieLens 100K"]
        rounds = np.array([0, *runs[0].rounds])
        loss = np.mean([[0.0, *run.loss] for run in runs], axis=0)
        at = np.arange(WINDOW, rounds[-1] + 1, 10)
        recent = np.interp(at, rounds, loss) - np.interp(at - WINDOW, rounds, loss)
        wide = 2.6 if name == "POLAR" else 1.5
        above.plot(at, recent / WINDOW, color=shades[name], lw=wide)
        ends[name] = recent[-1] / WINDOW
    height = -np.inf
    for name in sorted(ends, key=ends.__getitem__):
        height = max(ends[name], height + 36)  # names must not overlap
        above.text(3040, height, name, color=shades[name], weight="bold", va="center")
    for drift, what in zip(results[0].drifts, ("signs flip", "flip back"), strict=True):
        above.axvline(drift, color=SOFT, lw=0.8, ls=":")
        above.text(drift + 40, 600, what, va="top", color=SOFT)
    above.set(xlabel="round", ylim=(0, 605), xlim=(0, 3000))
    above.set_xticks(range(0, 3001, 1000), ["0", "1,000", "2,000", "3,000"])
    above.set_title(
        f"loss per round, mean of the last {WINDOW}", loc="left", fontsize=11, color=INK
    )
    seconds = {NAMES[r.trial.label]: r.seconds[-1] for r in timed if r.trial.label in NAMES}
    order = sorted(seconds, key=seconds.__getitem__)
    bars = below.barh(order, [seconds[name] for name in order], color=[shades[n] for n in order])
    below.bar_label(bars, [f"{seconds[name]:,.0f} s" for name in order], padding=3, color=INK)
    below.invert_yaxis()
    below.set(xlim=(0, 1.15 * max(seconds.values())))
    below.tick_params(axis="x", length=0, labelbottom=False)
    below.tick_params(axis="y", length=0, labelcolor=INK)
    below.spines["bottom"].set_visible(False)
    below.set_title(
        "time of all 3,000 rounds, one thread, no GPU", loc="left", fontsize=11, color=INK
    )
    for text in (*above.get_xticklabels(), *above.get_yticklabels(), *below.get_yticklabels()):
        text.set_fontsize(SIZE)
    save(figure, "hero", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
