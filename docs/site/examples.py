"""Pages of the examples: each is run, and its output and figure are shown with its code."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from contents import ROOT

FOLDER = ROOT / "examples"


@dataclass(frozen=True)
class Run:
    """An example and its output.

    Attributes
    ----------
    name
        Of the file, without its ending.
    title, about
        The first line of its docstring, and the rest.
    code
        What follows the docstring.
    printed
        What it prints.
    figure
        Path of its figure, if it draws one.
    """

    name: str
    title: str
    about: str
    code: str
    printed: str
    figure: str | None


def run_all(cache: Path) -> list[Run]:
    """Run every example if its code or the library has changed since the last run."""
    library = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        library.update(path.read_bytes())
    return [_run(path, cache, library.copy()) for path in sorted(FOLDER.glob("*.py"))]


def _run(path: Path, cache: Path, digest: hashlib._Hash) -> Run:
    digest.update(path.read_bytes())
    folder = cache / path.stem
    known, key = folder / "run.json", digest.hexdigest()
    if known.exists():
        saved = json.loads(known.read_text())
        if saved.pop("key") == key:
            return Run(**saved)
    folder.mkdir(parents=True, exist_ok=True)
    print(f"running {path.relative_to(ROOT)}", flush=True)
    settings = {**os.environ, "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=settings, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{path} failed:\n{done.stderr}")
    run = _read(path, done.stdout, folder)
    known.write_text(json.dumps({"key": key, **asdict(run)}))
    return run


def _read(path: Path, printed: str, folder: Path) -> Run:
    source = path.read_text()
    tree = ast.parse(source)
    title, _, about = (ast.get_docstring(tree) or path.stem).partition("\n")
    code = "".join(source.splitlines(keepends=True)[tree.body[0].end_lineno :]).lstrip("\n")
    drawn = re.findall(r"^figure: (\S+)$", printed, re.MULTILINE)
    words = re.sub(r"^figure: .*\n?", "", printed, flags=re.MULTILINE)
    figure = str(folder / drawn[0]) if drawn else None
    return Run(path.stem, title.rstrip("."), about.strip(), code, words.rstrip(), figure)


def pages(runs: list[Run]) -> dict[str, str]:
    """The text of every page by its path."""
    found = {f"examples/{run.name}.md": _page(run) for run in runs}
    cards = "\n".join(_card(run) for run in runs)
    names = "\n".join(run.name for run in runs)
    found["examples/index.md"] = (
        "# Examples\n\nEach is one file in `examples/`. Outputs and figures were made together with "
        "these pages; `make examples` runs all examples. Each also says where it does worse.\n\n"
        f"{cards}\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    )
    return found


def _short(run: Run) -> str:
    """The title up to its colon."""
    return run.title.partition(":")[0]


def _card(run: Run) -> str:
    picture = f"\n[![]({run.name}.png)]({run.name}.md)\n" if run.figure else ""
    _, _, rest = run.title.partition(": ")
    words = f"{rest[0].upper()}{rest[1:]}." if rest else ""
    return f"## [{_short(run)}]({run.name}.md)\n\n{words}\n{picture}"


def _page(run: Run) -> str:
    _, _, rest = run.title.partition(": ")
    lead = f"**{rest[0].upper()}{rest[1:]}.**\n\n" if rest else ""
    figure = f"![Figure of this example]({run.name}.png)\n\n" if run.figure else ""
    return (
        f"# {_short(run)}\n\n{lead}{run.about}\n\n{figure}"
        f"## Output\n\n```text\n{run.printed}\n```\n\n"
        f"## The program\n\n`python examples/{run.name}.py`\n\n```python\n{run.code}```\n"
    )
