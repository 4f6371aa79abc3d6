"""Text for terminals: numbers, tables, lines that fit, what they can show, and no control characters."""

from __future__ import annotations

import html
import math
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import wrap
from threading import Lock
from typing import Any, NamedTuple, TextIO

import numpy as np

#: Every letter beyond ASCII that charts are drawn with.
LETTERS = "░▒▓█○─┴"
#: Control characters but tabs and line ends, marks of writing direction, and lone surrogates.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: Colours and weights, as `Terminal.paint` writes them.
_PAINT = re.compile("(\x1b\\[[0-9;]*m)")


class Output:
    """Whether the process runs a command of `driftwolfe`, whose user reads its standard error."""

    command_line = 0  # how many commands run, in threads of a cluster's workers perhaps
    _counting = Lock()

    @classmethod
    @contextmanager
    def of_command(cls) -> Iterator[None]:
        """Within this block it does."""
        with cls._counting:
            cls.command_line += 1
        try:
            yield
        finally:
            with cls._counting:
                cls.command_line -= 1


def printable(text: str) -> str:
    """Return a text with control characters spelt out, so that no terminal obeys them."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def show(text: str, stream: TextIO | None = None) -> None:
    """Print a text from outside without its control characters, by default to standard output."""
    print(printable(text), file=sys.stdout if stream is None else stream, flush=True)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A text stream, its width, and whether it shows charts in Unicode and colours."""

    stream: TextIO
    width: int = 80  # columns to fill
    unicode: bool = True  # whether `LETTERS` can be printed
    colour: bool = False

    @classmethod
    def of(cls, stream: TextIO | None = None) -> Terminal:
        """Find out what a stream can show, by default standard output.

        The width is the terminal's, or COLUMNS, within 40 to 100. Colours are for terminals unless
        NO_COLOR is set.
        """
        chosen = sys.stdout if stream is None else stream
        try:
            LETTERS.encode(chosen.encoding or "ascii")
            unicode = True
        except (UnicodeEncodeError, LookupError):
            unicode = False
        width = min(max(shutil.get_terminal_size().columns, 40), 100)
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        return cls(chosen, width, unicode, bool(chosen.isatty() and not plain))

    def say(self, text: str = "") -> None:
        """Print a line; spell out what the stream cannot encode, and control characters but colours."""
        encoding = self.stream.encoding or "ascii"
        parts = _PAINT.split(text) if self.colour else [text]
        text = "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))
        if not self.unicode:
            text = text.replace("±", "+-")
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        print(text, file=self.stream, flush=True)

    def tell(self, text: str, indent: str = "") -> None:
        """Print a paragraph, broken into lines that fit."""
        for line in self.lines(text, indent):
            self.say(line)

    def lines(self, text: str, indent: str = "") -> list[str]:
        """Break a text into lines that fit, all but the first indented; paths stay whole."""
        whole: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        return wrap(text, self.width, subsequent_indent=indent, **whole)

    def paint(self, text: str, code: str) -> str:
        """Return a text in a colour or weight, by its ANSI code, if colours are shown."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column to the left, the others to the right."""
    cells = [[printable(" ".join(text.splitlines())) for text in row] for row in (heads, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        numbers = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *numbers]).rstrip())
    return lines


def markdown_text(text: str) -> str:
    """A text as Markdown that shows it unchanged, in one line: no HTML, no links, no new cells."""
    line = printable(" ".join(text.split()))
    # What would end a cell, or start a link, a picture or code.
    return html.escape(re.sub(r"([\\|`\[\]])", r"\\\1", line), quote=False)


def write_table(heads: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown of escaped cells, see `markdown_text`; its first `left` columns are flush left."""
    rule = ["---" if place < left else "---:" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))


class Spread(NamedTuple):
    """A mean over seeds and the standard deviation; 0 for a single seed."""

    mean: float
    deviation: float


def spread(values: Iterable[float]) -> Spread:
    """The mean and the standard deviation of a sample."""
    sample = np.array(list(values), dtype=float)
    return Spread(float(sample.mean()), float(sample.std(ddof=1)) if sample.size > 1 else 0.0)


def counted(number: int, noun: str) -> str:
    """A number of things, such as "1 round" or "3,000 rounds"."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits and thousands separators.

    >>> number(1234.56), number(0.0123456), number(1000000.0), number(3.0), number(2.5e-9)
    ('1,235', '0.01235', '1,000,000', '3', '2.5e-09')
    """
    if not 1e-6 <= abs(value) < math.inf:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def spread_text(spread: Spread | None) -> str:
    """A mean and its deviation, to two digits of the deviation; a dash for None.

    The mean alone where the deviation is less than a millionth of it, or no number.

    >>> spread_text(Spread(0.81234, 0.0123)), spread_text(Spread(2345.6, 78.9)), spread_text(None)
    ('0.812 ± 0.012', '2,346 ± 79', '–')
    """
    if spread is None:
        return "–"
    mean, deviation = spread
    if not 1e-6 * abs(mean) < deviation < math.inf:
        return number(mean)
    if deviation < 1e-6:
        return f"{mean:.2g} ± {deviation:.2g}"
    decimals = max(0, 1 - math.floor(math.log10(deviation)))
    return f"{mean:,.{decimals}f} ± {deviation:,.{decimals}f}"
