"""The source of the site: pages of docs/, pages from elsewhere, and generated pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import api
import command_line
from contents import BELOW, FROM_ROOT, ROOT, SIDEBAR

import examples

#: Files of docs/ that are copied unchanged.
_PICTURES = {".png", ".svg"}
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\](?:\([^)]*\))?)*\])\(([^)\s:]*?)(#[^)\s]*)?\)")


def stage(source: Path, cache: Path) -> bool:
    """Write the source; unchanged files stay, so that Sphinx reads only the others.

    Returns whether the list of pages changed: then every sidebar has to be written anew.
    """
    runs = examples.run_all(cache / "examples")
    texts = {**_written(), **examples.pages(runs), **api.pages()}
    texts["command-line.md"] = command_line.page()
    texts = _with_contents(texts)
    pictures = {
        str(path.relative_to(ROOT / "docs")): path
        for path in (ROOT / "docs").rglob("*")
        if path.suffix in _PICTURES and "site" not in path.parts
    }
    pictures |= {f"examples/{run.name}.png": Path(run.figure) for run in runs if run.figure}
    changed = [place for place, text in texts.items() if _put(source / place, text.encode())]
    gone = False
    for place, path in pictures.items():
        _put(source / place, path.read_bytes())
    for path in source.rglob("*"):
        if path.is_file() and str(path.relative_to(source)) not in {*texts, *pictures}:
            path.unlink()
            gone = True
    return gone or "index.md" in changed or "api/index.rst" in changed


def reports(extra: Path) -> None:
    """The interactive reports of the paper's experiments, made from the trials if missing."""
    for folder in sorted(path.parent for path in (ROOT / "docs/results").glob("*/sweep.json")):
        place = extra / "results" / folder.name
        report = folder / "report.html"
        if not report.exists():
            report = place / "report.html"
        if not report.exists():
            copy = extra.parent / "reports" / folder.name
            shutil.copytree(folder, copy, dirs_exist_ok=True)
            run = [sys.executable, "-m", "driftwolfe.cli", "report", str(copy)]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
            report = copy / "report.html"
        _put(place / "report.html", report.read_bytes())


def _written() -> dict[str, str]:
    """Written pages, with links adapted to the site."""
    places = {
        str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs"))
        for path in (ROOT / "docs").rglob("*.md")
        if "site" not in path.relative_to(ROOT).parts
    }
    places |= FROM_ROOT
    places |= {
        f"examples/{path.name}": f"examples/{path.stem}.md" for path in examples.FOLDER.glob("*.py")
    }
    places |= {"examples": "examples/index.md", "docs/results": "results/README.md"}
    pages = {
        origin: place
        for origin, place in places.items()
        if origin.endswith(".md") and origin != "README.md"
    }
    return {place: _relinked(origin, place, places) for origin, place in pages.items()}


def _relinked(origin: str, place: str, places: dict[str, str]) -> str:
    def one(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        if not target:
            return found[0]
        meant = os.path.normpath(os.path.join(os.path.dirname(origin), target))
        if meant in places:
            there = os.path.relpath(places[meant], os.path.dirname(place) or ".")
            if words == f"[{target}]":  # a path as text is for readers of the repository
                words = f"[{_title(meant)}]"
            return f"{words}({there}{anchor})"
        if meant.startswith("docs/") and Path(meant).suffix in _PICTURES:
            there = os.path.relpath(meant.removeprefix("docs/"), os.path.dirname(place) or ".")
            return f"{words}({there})"
        return words[1:-1]  # a file of the repository that the site does not show

    text = (ROOT / origin).read_text()
    parts = re.split(r"(^```.*?^```\s*?$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(one, part) for part in parts)


def _title(page: str) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.*)$", (ROOT / page).read_text(), re.MULTILINE)
    return found[1] if found else page


def _with_contents(texts: dict[str, str]) -> dict[str, str]:
    """The same pages, some with a table of contents, which plain Markdown lacks."""
    known = {place.rsplit(".", 1)[0] for place in texts}

    def tree(pages: dict[str, str], above: str, caption: str = "") -> str:
        inside = []
        for page, title in pages.items():
            if page in known:
                there = os.path.relpath(page, os.path.dirname(above) or ".")
                inside.append(f"{title} <{there}>" if title else there)
        head = f":caption: {caption}\n" if caption else ""
        return "\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(inside) + "\n```\n"

    listed = dict(texts)
    for above, pages in BELOW.items():
        if above in known:
            listed[f"{above}.md"] += tree(pages | dict.fromkeys(_unplaced(known, above), ""), above)
    sidebar = {**SIDEBAR, "More": dict.fromkeys(_unplaced(known, None), "")}
    listed["index.md"] += "".join(
        tree(pages, "index", caption)
        for caption, pages in sidebar.items()
        if any(page in known for page in pages)
    )
    listed["results/README.md"] = re.sub(  # the site has the reports, the repository does not
        r"\]\(([\w-]+)/summary\.md\)\.",
        r"](\1/summary.md). <a href='\1/report.html'>Interactive report</a>.",
        listed["results/README.md"],
    )
    return listed


def _unplaced(known: set[str], above: str | None) -> list[str]:
    """Pages without a place in the sidebar; those of a folder go below its first page."""
    placed = {page for pages in (*SIDEBAR.values(), *BELOW.values()) for page in pages} | {"index"}
    left = [page for page in known - placed if not page.startswith(("api/", "examples/"))]
    return sorted(page for page in left if _home(page) == above)


def _home(page: str) -> str | None:
    """The first page of a folder, if there is one."""
    return next((above for above in BELOW if page.startswith(os.path.dirname(above) + "/")), None)


def _put(path: Path, content: bytes) -> bool:
    """Write a file if its content changed; return whether it did."""
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True
