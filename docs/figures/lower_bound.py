"""Draw docs/figures/lower_bound.svg: dynamic regret between its lower and upper bound, over the path length.

python docs/figures/lower_bound.py, from the repository's folder; some minutes, most of them for games.
It prints the table of docs/theory/lower_bound.md, and one of docs/theory/budget.md.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from style import HERE, INK, SOFT, canvas, colours, save

import driftwolfe as dw
from driftwolfe import bounds
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.plan import budgeted_grid, budgeted_plan, budgeted_step

#: Rounds of the games, and of the picture without games.
PLAYED, LONG = 2048, 10**6
SEGMENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TICKS = (0.5, 1, 2, 5, 10, 20)
CERTIFIED = {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=1.0)}
LEARNERS: dict[str, tuple[type[dw.Learner], dict[str, Any], str]] = {
    "POLD": (dw.POLD, CERTIFIED, "o"),
    "BOGD_IP": (dw.BOGDIP, CERTIFIED, "s"),
    "OnlineFrankWolfe": (dw.OnlineFrankWolfe, {}, "^"),
}
SHADES = colours(LEARNERS)


def lower(rounds: int, segments: float) -> float:
    """The least regret of every learner with one call per round, in units of G D."""
    return rounds / 2.0 / math.sqrt(1.0 + math.sqrt(2.0 * (rounds // segments)))


def upper(rounds: int, path: float, split: str) -> float:
    """The bound of POLD with one call per round, for a path length in units of D."""
    plans, found = budgeted_grid(rounds, 0.125, 1.0), list[float]()
    if split == "mixed":  # half of the budget in equal parts
        parts = [(plan.reserved + 1.0 / len(plans)) / 2.0 for plan in plans]
        steps = [2.0**i * budgeted_step(rounds, 0.125, part) for i, part in enumerate(parts)]
        plans = [budgeted_plan(*each) for each in zip(steps, parts, strict=True)]
    meta = Hedge(len(plans), rounds, 1.0)
    for i, plan in enumerate(plans, 1):
        numbers = plan.step, plan.block, plan.tolerance, path, bounds.AT_CENTER
        expert = bounds.blocked_descent(1.0, 1.0, rounds, *numbers)
        found.append(expert + meta.regret_bound(i, rounds, 1.0))
    return min(found)


def game(name: str, segments: int) -> tuple[float, float]:
    """The regret of a learner, in units of G D, and the path length in units of D."""
    make, options, *_ = LEARNERS[name]
    oracle = dw.streams.ResistingOracle(PLAYED, segments=segments)
    learner = make(oracle.domain, horizon=PLAYED, lipschitz=1.0, **options)
    dw.play(learner, oracle.losses(learner), keep_losses=False, progress=False)
    if name != "OnlineFrankWolfe":  # which has no bound for comparators that move
        assert oracle.lower_bound <= learner.bound(path_length=oracle.path_length)
    assert oracle.lower_bound >= oracle.guarantee * (1.0 - 1e-12)
    return oracle.lower_bound / 2.0, oracle.path_length / 2.0


def main(folder: Path = HERE) -> None:
    """Play all games, print them and draw both pictures."""
    figure = canvas(8.6, 4.3)
    for axis, rounds in zip(figure.subplots(1, 2), (PLAYED, LONG), strict=True):
        unit, most = rounds**0.75, rounds / 2
        segments = np.unique(np.geomspace(1, most, 60).astype(int)).tolist()
        paths = [(S - 1) / math.sqrt(2.0) for S in segments]
        places = [1.0 + math.sqrt(2.0) * path for path in paths]
        least = [lower(rounds, S) / unit for S in segments]
        axis.plot(places, least, color=INK, lw=2, label="every learner, at least")
        for split, dash in (("prior", "-"), ("mixed", "--")):
            most_regret = [min(upper(rounds, path, split), rounds) / unit for path in paths]
            label = f"POLD, at most ({split} split)"
            axis.plot(places, most_regret, color=SHADES["POLD"], ls=dash, lw=1.3, label=label)
        axis.axhline(rounds / unit, color=SOFT, ls=":", lw=1, label="G D T, trivial")
        axis.set(xscale="log", yscale="log", xlabel="1 + √2 P/D")
        axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.tick_params(axis="y", which="minor", left=False, labelleft=False)
        axis.set_ylim(0.35, 1.15 * rounds / unit)
        axis.set_title(f"T = {rounds:,}, one call per round", fontsize=10, color=INK, loc="left")
    left, right = figure.axes
    left.set_ylabel("dynamic regret / (G D T$^{3/4}$)")
    right.plot([1e1, 1e4], [0.9, 0.9 * 1e3**0.25], color=SOFT, lw=1)
    right.text(4e2, 1.5, "slope 1/4", color=SOFT)
    for split in ("prior", "mixed"):  # a table of docs/theory/budget.md
        row = [f"{upper(LONG, path, split) / LONG**0.75:.3g}" for path in (0, 1, 3, 10, 100, 1000)]
        print(split, *row, sep=" | ")
    print("| $S$ | at least |", " | ".join(LEARNERS), "| POLD at most |")
    for S in SEGMENTS:
        found = {name: game(name, S) for name in LEARNERS}
        for name, (regret, _) in found.items():
            *_, marker = LEARNERS[name]
            label = f"{name}, played" if S == 1 else None
            style = {"color": SHADES[name], "marker": marker, "ms": 5, "ls": "none", "label": label}
            left.plot([S], [regret / PLAYED**0.75], **style)
        cells = [f"{regret:.0f} ({moved:.3g})" for regret, moved in found.values()]
        bound = min(upper(PLAYED, (S - 1) / math.sqrt(2.0), "prior"), PLAYED)
        print(f"| {S} | {lower(PLAYED, S):.0f} |", " | ".join(cells), f"| {bound:.0f} |")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    save(figure, "lower_bound", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
