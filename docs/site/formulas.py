"""Keep a formula in running text on one line with the punctuation beside it."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class KeepTogether(SphinxPostTransform):
    """Wrap a formula and adjacent punctuation; browsers would break the line between them."""

    default_priority = 300

    def run(self, **_: Any) -> None:
        """Visit every formula in running text."""
        for formula in list(self.document.findall(nodes.math)):
            parent = formula.parent
            place = parent.index(formula)
            before = _cut(parent, place - 1, r"\S+\Z")  # $ would match before a new line
            after = _cut(parent, place + 1, r"^\S+")
            if before or after:
                parent[place] = nodes.inline(classes=["together"])
                parent[place] += [nodes.Text(before), formula, nodes.Text(after)]


def _cut(parent: nodes.Element, place: int, pattern: str) -> str:
    """Remove and return what matches at a place of the text, if anything."""
    if not 0 <= place < len(parent) or not isinstance(parent[place], nodes.Text):
        return ""
    text = parent[place].astext()
    parent[place] = nodes.Text(re.sub(pattern, "", text))
    return "".join(re.findall(pattern, text))


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(KeepTogether)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
