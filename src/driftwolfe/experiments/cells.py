"""Texts from outside (titles, labels, names of data) in Markdown and in CSV."""

from __future__ import annotations

import html
import re
from typing import Any

from driftwolfe.terminal import printable

#: What a spreadsheet takes for the start of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
#: What would end a cell, or start a link, a picture or code.
_SIGNS = re.compile(r"([\\|`\[\]])")


def markdown_text(text: str) -> str:
    r"""A text as Markdown that shows it as it stands, in one line: no HTML, no links, no new cells.

    >>> print(markdown_text("<b>POLA</b> | [x](y)"))
    &lt;b&gt;POLA&lt;/b&gt; \| \[x\](y)
    """
    line = printable(" ".join(text.split()))
    return html.escape(_SIGNS.sub(r"\\\1", line), quote=False)


def markdown_code(text: str) -> str:
    """A text as code in a line of Markdown.

    >>> markdown_code("driftwolfe sweep a.toml")
    '`driftwolfe sweep a.toml`'
    """
    return f"`{printable(' '.join(text.split())).replace('`', chr(39))}`"


def csv_cell(value: Any) -> Any:
    """A value as a cell that no spreadsheet takes for a formula or an end of a row.

    Numbers stay as they are.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell(-0.5), csv_cell("POLA")
    ("'=1+1", '-0.5', -0.5, 'POLA')
    """
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if value.startswith(_FORMULA) and not _is_number(value) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
