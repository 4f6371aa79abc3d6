"""The page on the command line, from the parser that reads it."""

from __future__ import annotations

import argparse
import re
import textwrap

from driftwolfe.cli import STATUSES, make_parser

_HEAD = """\
# The command line

`driftwolfe COMMAND --help` prints what stands here. Installing the package brings the command
`driftwolfe`; `python -m driftwolfe` is the same.
"""


def page() -> str:
    """The text of the page, in Markdown."""
    parser = make_parser()
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [_HEAD.rstrip(), "| command | |\n| --- | --- |"]
    parts[1] += "".join(
        f"\n| [`{each.dest}`](#driftwolfe-{each.dest}) | {each.help} |"
        for each in commands._choices_actions
    )
    parts += [_command(name, each) for name, each in commands.choices.items()]
    rows = "".join(f"\n| {status} | {meaning} |" for status, meaning in STATUSES.items())
    parts.append(f"## Exit status\n\n| status | meaning |\n| --- | --- |{rows}")
    return "\n\n".join(parts) + "\n"


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    """One command: how it is called, what it does, its options."""
    actions = [each for each in parser._actions if each.dest != "help"]
    usage = " ".join(_in_usage(each).replace(" ", "\0") for each in actions)  # options stay whole
    head = f"driftwolfe {name} "
    lines = textwrap.fill(
        head + usage, 96, subsequent_indent=" " * len(head), break_on_hyphens=False
    )
    parts = [f"## driftwolfe {name}", f"```console\n{lines.replace(chr(0), ' ')}\n```"]
    parts += [_paragraph(text) for text in (parser.description or "").split("\n\n")]
    rows = "".join(f"\n| `{_spelt(each)}` | {_meaning(each)} |" for each in actions)
    table = [f"| option | meaning |\n| --- | --- |{rows}"] if rows else []
    return "\n\n".join([*parts, *table])


def _spelt(action: argparse.Action) -> str:
    value = action.metavar or (None if action.nargs == 0 else action.dest.upper())
    if not action.option_strings:
        return str(action.metavar or action.dest.upper())
    more = " ..." if action.nargs == "+" else ""
    return action.option_strings[0] + (f" {value}{more}" if value else "")


def _in_usage(action: argparse.Action) -> str:
    needed = not action.option_strings and action.nargs != "?"
    more = " ..." if needed and action.nargs == "+" else ""
    return f"{_spelt(action)}{more}" if needed else f"[{_spelt(action)}]"


def _meaning(action: argparse.Action) -> str:
    choices = ", ".join(f"`{each}`" for each in action.choices or ())
    return "; ".join(filter(None, [choices, action.help]))


def _paragraph(text: str) -> str:
    """Running text, or a list in columns as it is printed."""
    if re.search("^  ", text, re.MULTILINE):
        return f"```text\n{text}\n```"
    return re.sub(r"\$[A-Z_]+|(?<![\w`])--[a-z-]+", r"`\g<0>`", text)
