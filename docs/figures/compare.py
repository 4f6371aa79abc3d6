"""Draw docs/figures/compare.svg: what the program of docs/howto/compare.md draws.

python docs/figures/compare.py, from the repository's folder; some seconds.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from style import HERE, canvas, save

import driftwolfe as dw


def main(folder: Path = HERE) -> None:
    """Run the first block of the page, and draw regret and losses of its result."""
    page = (HERE.parent / "howto" / "compare.md").read_text(encoding="utf-8")
    (program, *_) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    made: dict[str, Any] = {}
    exec(program, made)
    figure = canvas(8.6, 3.2)
    left, right = figure.subplots(1, 2)
    dw.plot.regret(made["result"], ax=left)
    dw.plot.losses(made["result"], ax=right)
    right.get_legend().remove()
    save(figure, "compare", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
