"""Draw the figure of docs/architecture.md: python docs/figures/architecture.py.

The layers are read from the import contract in pyproject.toml; the script fails if one has no description.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from style import BLUE, GREEN, HERE, INK, ORANGE, PAPER, PINK, SOFT, arrow, canvas, save

#: Contents of each folder or file.
CONTENTS = {
    "cli": "the command line",
    "demo": "a first example",
    "doctor": "what is installed",
    "plot": "pictures of games",
    "distributed": "losses, models on machines",
    "experiments": "the paper's runs, sweeps, reports",
    "comparison": "learners side by side",
    "evaluate": "recall, NDCG, MRR on a stream",
    "keyed": "one model per key",
    "estimators": "recommenders, classifier",
    "game": "play, History, checkpoints",
    "regret": "static, dynamic, adaptive",
    "streams": "sequences of losses",
    "learners": "POLAR; POLA, POLD, BOGD_IP; and their competitors",
    "contrib": "methods beyond the paper",
    "reference": "the algorithms as plain loops",
    "bounds": "regret bounds with constants",
    "ensemble": "grids, covers, weights, experts",
    "oracles": "infeasible projections by five methods",
    "domains": "convex sets: lmo",
    "losses": "convex functions",
    "points": "arrays, low rank plus sparse, products",
    "storage": "atomic files, archives",
    "state": "declared state, its files",
    "terminal": "output to the terminal",
}
COLOURS = {
    "contrib": ORANGE,
    "learners": ORANGE,
    "reference": ORANGE,
    "bounds": ORANGE,
    "ensemble": ORANGE,
    "oracles": BLUE,
    "domains": BLUE,
    "losses": BLUE,
    "game": GREEN,
    "regret": GREEN,
    "streams": GREEN,
    "evaluate": PINK,
    "keyed": PINK,
    "distributed": PINK,
    "estimators": PINK,
}


def layers() -> list[list[str]]:
    """The layers of the import contract, from top to bottom."""
    settings = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())
    contract, _ = settings["tool"]["importlinter"]["contracts"]
    rows = [row.replace("driftwolfe.", "").split(" | ") for row in contract["layers"]]
    unknown = {name for row in rows for name in row} - set(CONTENTS)
    if unknown:
        raise SystemExit(f"describe these in CONTENTS: {', '.join(sorted(unknown))}")
    return rows


def box(axis: Any, left: float, low: float, width: float, name: str) -> None:
    """One folder or file."""
    colour = COLOURS.get(name, SOFT)
    axis.add_patch(
        FancyBboxPatch(
            (left, low),
            width,
            0.72,
            boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=PAPER,
            edgecolor=colour,
            lw=1.5,
        )
    )
    middle = left + width / 2
    axis.text(
        middle, low + 0.47, name, ha="center", va="center", color=colour, fontsize=10, weight="bold"
    )
    axis.text(middle, low + 0.2, CONTENTS[name], ha="center", va="center", color=INK, fontsize=8)


def draw() -> Figure:
    """Layers as rows; imports only point down."""
    rows = layers()
    figure = canvas(9, 0.62 * len(rows) + 0.3)
    axis = figure.subplots()
    for height, row in enumerate(reversed(rows)):
        width = (10 - 0.2 * (len(row) - 1)) / len(row)
        for i, name in enumerate(row):
            box(axis, i * (width + 0.2), height * 0.92, width, name)
    top = len(rows) * 0.92 - 0.2
    arrow(axis, (10.45, top), (10.45, 0.05), SOFT)
    axis.text(
        10.72,
        top / 2,
        "imports only point down",
        rotation=-90,
        va="center",
        ha="center",
        color=SOFT,
    )
    axis.set(xlim=(-0.1, 11), ylim=(-0.1, top + 0.1))
    axis.set_axis_off()
    return figure


if __name__ == "__main__":
    save(draw(), "layers", Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
