"""Sphinx settings of the site; used by `build.py`."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import api  # noqa: E402
from contents import ROOT  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402

import driftwolfe  # noqa: E402

project = "driftwolfe"
author = "driftwolfe maintainers"
copyright = "driftwolfe maintainers, BSD-3-Clause"
version = release = driftwolfe.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "code_links",
    "formulas",
]
nitpicky = True
default_role = "py:obj"
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 4
smartquotes_action = "D"  # dashes; quotes stay as they are
# A word in backticks that several classes have (`expert_names`) may lead to any of them.
suppress_warnings = ["ref.python"]

autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {name: name for name in ("Array", "Indices", "Point", "Shape", "Seed")}
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False
maximum_signature_line_length = 88

html_theme = "furo"
pygments_dark_style = "a11y-high-contrast-dark"
html_title = f"driftwolfe {release}"
html_logo = html_favicon = str(ROOT / "docs/figures/logo.svg")
html_static_path = [str(HERE / "static")]
html_css_files = ["style.css"]
html_extra_path = [str(ROOT / "build/site/extra")]
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "light_css_variables": {"color-brand-primary": "#a84300", "color-brand-content": "#0b5f94"},
    "dark_css_variables": {"color-brand-primary": "#ff9a57", "color-brand-content": "#6cb8e6"},
    "navigation_with_keys": True,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Formulas need no network: one self-contained script, copied below.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {"svg": {"fontCache": "global"}, "options": {"enableMenu": False}}


def copy_mathjax(app: Any, problem: Exception | None) -> None:
    """Copy MathJax to the pages."""
    found = find_spec("sphinx-mathjax-offline")
    if problem is not None or found is None or found.origin is None:
        return
    script = Path(found.origin).parent / "static" / mathjax_path
    place = Path(app.outdir) / "_static" / mathjax_path
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists() or place.stat().st_size != script.stat().st_size:
        shutil.copyfile(script, place)


def skip_borrowed(app: Any, kind: str, name: str, value: Any, skip: bool, options: Any) -> bool:
    """Omit the methods that scikit-learn adds to every estimator, and how states are saved."""
    borrowed = name.startswith("set_") and name.endswith("_request")
    return skip or borrowed or name in ("check", "derive", "own_sizes")


def own_signature(
    app: Any, kind: str, name: str, value: Any, options: Any, signature: str, returns: str
) -> tuple[str, str] | None:
    """Show the signature of `__init__`; learners have a `__new__` that takes anything."""
    if "<class '" in (signature or ""):  # a default, shown by its name
        return re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", signature), returns
    if kind != "class" or not (signature or "").startswith("(*given"):
        return None
    given = inspect.signature(value.__init__)
    own = given.replace(
        parameters=list(given.parameters.values())[1:], return_annotation=given.empty
    )
    return stringify_signature(own, unqualified_typehints=True), returns


def keep_colons(app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]) -> None:
    """Break the line of a property after its first colon, which Napoleon takes for the end of a type."""
    if what in ("attribute", "property") and lines and ": " in lines[0]:
        lines[:1] = lines[0].replace(": ", ":\n", 1).split("\n")


def setup(app: Any) -> None:
    """Register our functions with Sphinx."""
    app.connect("autodoc-process-signature", own_signature)
    app.connect("autodoc-process-docstring", keep_colons, priority=100)  # before Napoleon
    app.connect("autodoc-skip-member", skip_borrowed)
    app.connect("build-finished", copy_mathjax)
    app.add_config_value("public_names", api.full_names(), "env")
