"""Draw docs/figures/changes.svg: errors of a regressor on river's WaterFlow, its experts' weights, and alarms.

python docs/figures/changes.py, from the repository's folder; some seconds. The code is in docs/howto/changes.md.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from style import HERE, save


def main(folder: Path = HERE) -> None:
    """Run the page, and save its picture here."""
    page = (HERE.parent / "howto" / "changes.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec("".join(code).replace('axes[0].figure.savefig("changes.png")', ""), names)
    save(names["axes"][0].figure, "changes", folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
