"""summary.md with all tables, and a first README.md around the figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.gpu.figures import FIGURES
from benchmarks.gpu.store import Results
from benchmarks.gpu.summary import SECTIONS, part
from driftwolfe.storage import write_text

HEAD = """# What a GPU brings

Made by `python -m benchmarks.gpu` and its option `--draw`; all numbers are in results.json. Times are
medians, from a device at rest to a device at rest. A floor is what operations must read and write at
least, at the speed at which the device copies its memory.
"""
README = """# What a GPU brings

Measured on {devices} by

```
python -m benchmarks.gpu
python -m benchmarks.gpu --draw
```

`results.json` holds all numbers, [summary.md](summary.md) all tables.

{figures}
"""


def write(results: Results, folder: Path) -> None:
    """Write the tables; the page only where there is none, as people write on it."""
    parts = [part(section, results) for section in SECTIONS if section in results]
    write_text(folder / "summary.md", "\n".join([HEAD, *parts]))
    page = folder / "README.md"
    if not page.exists():
        write_text(page, _readme(results))


def _readme(results: Results) -> str:
    devices = sorted({section["made"]["device"] for section in results.values()})
    shown = [
        f"![{title}](figures/{name}.png)"
        for name, (section, title, _) in FIGURES.items()
        if section in results
    ]
    return README.format(devices=" and ".join(devices), figures="\n".join(shown)).rstrip() + "\n"
