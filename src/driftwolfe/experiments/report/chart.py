"""`Chart`: what plotly is to draw, and what it says in words."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """An interactive chart.

    Attributes
    ----------
    name
        Of its kind, such as ``"panels"``.
    heading
        Its title on the page.
    caption
        How it is to be read.
    description
        What it shows, for those who do not see it.
    traces
        What is drawn.
    wide, narrow
        Layouts for a desk and for a telephone.
    """

    name: str
    heading: str
    caption: str
    description: str
    traces: list[Json]
    wide: Json
    narrow: Json

    @property
    def source(self) -> str:
        """All that plotly needs, as text that may stand inside a script element."""
        return script_json({"traces": self.traces, "wide": self.wide, "narrow": self.narrow})


def script_json(content: Any) -> str:
    r"""JSON that can neither end a script element nor start a comment in it.

    >>> script_json("</script><!--")
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def plain(text: str) -> str:
    """A text that plotly shows as it stands: it reads some tags and entities.

    >>> plain("<b>POLD & co</b>")
    '&lt;b&gt;POLD &amp; co&lt;/b&gt;'
    """
    return html.escape(text, quote=False)
