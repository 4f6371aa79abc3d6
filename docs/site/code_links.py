"""Names in code lead to the reference, so that pages can stay plain Markdown."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode


def targets(names: list[str]) -> dict[str, str]:
    """Full names by every way to write them; short ones only where they are unique."""
    found: dict[str, str] = {}
    lasts = [name.rsplit(".", 1)[-1] for name in names]
    for name, last in zip(names, lasts, strict=True):
        for written in (name, name.replace("driftwolfe", "dw", 1)):
            found[written] = name
            found[written.removeprefix("dw.").removeprefix("driftwolfe.")] = name
        if lasts.count(last) == 1 and len(last) > 2:
            found[last] = name
    return found


#: Public names that mean other things in running text.
_WORDS = {"play", "load", "norm", "inner", "distance", "against", "abrupt", "gradual", "recurring"}


class CodeLinks(SphinxPostTransform):
    """Make ``POLA`` in a page a link to its reference."""

    default_priority = 200

    def run(self, **_: Any) -> None:
        """Visit every piece of code in running text."""
        names = targets(self.config.public_names)
        domain = self.env.domains.python_domain
        here = self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            if any(isinstance(each, nodes.reference | nodes.title) for each in _above(literal)):
                continue
            text = literal.astext().partition("(")[0].removeprefix("dw.")
            name = names.get(text, f"driftwolfe.{text}")
            if literal.astext() in _WORDS or name not in domain.objects:
                continue
            entry = domain.objects[name]
            if entry.docname == here:
                continue
            link = make_refnode(
                self.app.builder, here, entry.docname, entry.node_id, literal.deepcopy(), name
            )
            literal.replace_self(link)


def _above(node: nodes.Node) -> list[nodes.Node]:
    found = []
    while node.parent is not None:
        node = node.parent
        found.append(node)
    return found


def resolve(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Names in backticks in docstrings: links if they are public, plain code otherwise."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    domain = env.domains.python_domain
    name = targets(app.config.public_names).get(target.lstrip("~"))
    if name in domain.objects:
        entry = domain.objects[name]
        return make_refnode(
            app.builder, node["refdoc"], entry.docname, entry.node_id, content, name
        )
    return content


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_post_transform(CodeLinks)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
