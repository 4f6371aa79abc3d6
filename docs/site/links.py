"""Check the links of the built site: pages, files and anchors."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that point to something.
_POINTERS = {"href", "src"}


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note links and anchors."""
        for name, value in attrs:
            if name in _POINTERS and value is not None:
                self.targets.append(value)
            elif (name == "id" and value is not None) or (
                name == "name" and tag == "a" and value is not None
            ):
                self.anchors.add(value)


def broken(site: Path) -> list[str]:
    """Return 'page: target' for every broken link inside the site."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "report.html"  # contains plotly, without links to the site
    }
    return [
        f"{path.relative_to(site.resolve())}: {target}"
        for path, page in pages.items()
        for target in dict.fromkeys(page.targets)
        if not _leads_somewhere(path, target, pages)
    ]


def outside(site: Path) -> list[str]:
    """Return 'page: target' for everything that a page would load from the network."""
    found = []
    for path in sorted(site.rglob("*.html")):
        if path.name == "report.html":
            continue
        page = Loads(path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: {target}" for target in page.loaded]
    return found


class Loads(HTMLParser):
    """Scripts, styles and pictures that come from the network."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what is loaded, not plain links."""
        given = dict(attrs)
        target = given.get("src") or (given.get("href") if tag == "link" else None) or ""
        if urlsplit(target).netloc and given.get("rel") != "canonical":
            self.loaded.append(target)


def _leads_somewhere(path: Path, target: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if there not in pages:
        return there.is_file()
    return unquote(parts.fragment) in pages[there].anchors
