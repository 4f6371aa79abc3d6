"""What the terminal can show, and tables and paragraphs that fit it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TextIO

#: Every letter beyond ASCII that charts are drawn with.
LETTERS = "░▒▓█○─┴"
_NARROWEST, _WIDEST = 40, 100
#: Letters that a terminal obeys, or that turn the direction of writing, and halves of letters; lines
#: may end, and tabs are harmless.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: Colours and weights, as `Terminal.paint` gives them.
_PAINT = re.compile("(\x1b\\[[0-9;]*m)")


def printable(text: str) -> str:
    r"""A text from outside that a terminal shows, and does not obey.

    >>> printable("\x1b[2Jred\n")
    '\\x1b[2Jred\n'
    """
    return _COMMANDS.sub(_spelt, text)


def show(text: str, stream: TextIO | None = None) -> None:
    """Print a text from outside, by default to the standard output."""
    print(printable(text), file=sys.stdout if stream is None else stream, flush=True)


def _spelt(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


@dataclass(frozen=True, slots=True)
class Terminal:
    """A stream of text, its width, and whether it takes charts in Unicode and colours.

    Attributes
    ----------
    stream
        Where text goes.
    width
        Columns to fill.
    unicode
        Whether `LETTERS` can be printed.
    colour
        Whether colours are shown.
    """

    stream: TextIO
    width: int = 80
    unicode: bool = True
    colour: bool = False

    @classmethod
    def of(cls, stream: TextIO | None = None) -> Terminal:
        """Look at a stream, by default the standard output.

        The width is the terminal's, or what COLUMNS says, within 40 to 100. Colours are for
        terminals where NO_COLOR is not set.
        """
        chosen = sys.stdout if stream is None else stream
        columns = shutil.get_terminal_size().columns
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(
            chosen,
            min(max(columns, _NARROWEST), _WIDEST),
            _encodes(chosen, LETTERS),
            bool(chosen.isatty() and not plain),
        )

    def say(self, text: str = "") -> None:
        """Print a line; letters that the stream does not know, or would obey, are spelt out.

        All but the colours, where they are shown.
        """
        known = self.stream.encoding or "ascii"
        parts = _PAINT.split(text) if self.colour else [text]
        text = "".join(part if place % 2 else printable(part) for place, part in enumerate(parts))
        if not self.unicode:
            text = text.replace("±", "+-")
        print(text.encode(known, "backslashreplace").decode(known), file=self.stream, flush=True)

    def tell(self, text: str, indent: str = "") -> None:
        """Print a paragraph, broken into lines that fit."""
        for line in self.lines(text, indent):
            self.say(line)

    def lines(self, text: str, indent: str = "") -> list[str]:
        """Break a text into lines that fit, all but the first indented; paths stay whole."""
        return wrap(
            text,
            self.width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def paint(self, text: str, code: str) -> str:
        """Give a text a colour or a weight by its ANSI code, where they are shown."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right.

    >>> table(["", "OGD", "POLA"], [["mean loss", "0.31", "0.12"]])
    ['            OGD  POLA', 'mean loss  0.31  0.12']
    """
    lines = [[_cell(text) for text in line] for line in (heads, *rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def _cell(text: str) -> str:
    """A text from outside in one line."""
    return printable(" ".join(text.splitlines()))


def _encodes(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
