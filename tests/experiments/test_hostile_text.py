"""Titles and labels that are commands to a terminal, a spreadsheet or a browser are only text."""

from __future__ import annotations

import html
import io
import re
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from driftwolfe import cli
from driftwolfe.experiments import report, sweep
from driftwolfe.experiments.figure import literal
from driftwolfe.experiments.figures import panels, save
from driftwolfe.experiments.report import overview
from driftwolfe.experiments.summary import summarise
from driftwolfe.experiments.sweep import Store
from driftwolfe.terminal import Terminal, printable, table
from experiments.small import result

HOSTILE = (
    "=cmd()|<script>alert(1)</script>\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202e$\\frac{$ "
    "[a](javascript:b) ![c](d) `e` & \x1b[8mf"
)
#: What a terminal would obey: all of C0 but tabs and ends of lines, C1, DEL, and turns of direction.
COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile_results():
    return [
        result([-10.0, -20.0], c=c, label=HOSTILE, seed=seed) for c in (1.0, 2.0) for seed in (0, 1)
    ]


@pytest.fixture
def folder(tmp_path):
    """A finished sweep whose title and labels are hostile, with a failed trial."""
    store = Store(tmp_path / "sweep")
    results = [*hostile_results(), result([1.0, 2.0], "OGD", label="_plain")]
    missing = result([1.0], "POLA", label=HOSTILE + "2").trial
    store.add(HOSTILE, [*(each.trial for each in results), missing])
    for each in results:
        store.write(each)
    store.fail(missing, HOSTILE)
    return tmp_path / "sweep"


@pytest.mark.parametrize("command", ["status", "report", "claims", "overview"])
def test_no_command_reaches_the_terminal(command, folder, capsys, monkeypatch):
    monkeypatch.setattr("driftwolfe.experiments.figures.save", lambda *_: [])
    assert cli.main([command, str(folder)]) == 0
    told = "".join(capsys.readouterr())
    assert not COMMANDS.search(told)
    if command in ("status", "overview"):
        assert "=cmd()|" in told  # the title is there, cut to the width of a table perhaps
        assert command == "overview" or "\\x1b[2J" in told


def test_errors_repeat_no_command(capsys, tmp_path):
    assert cli.main(["sweep", str(tmp_path / "\x1b[2J\udcff.toml")]) == 3
    with pytest.raises(SystemExit):
        cli.main(["demo", "--\x1b[2J"])
    told = "".join(capsys.readouterr())
    assert not COMMANDS.search(told) and told.count("\\x1b[2J") == 2


def test_progress_tells_no_command(folder, capsys):
    store = Store(folder)

    class Failing(ThreadPoolExecutor):
        def submit(self, *_):
            return super().submit(lambda: msgspec.json.encode({"problem": HOSTILE}))

    assert sweep.run_sweep(store, lambda: Failing(1)) == 1
    told = capsys.readouterr().err
    assert "\\x1b[2J" in told
    assert not COMMANDS.search(told.replace("\r", ""))


def test_colours_are_shown_and_commands_are_not():
    stream = io.StringIO()
    terminal = Terminal(stream, colour=True)
    terminal.say(terminal.paint("bold", "1") + " \x1b[2J\x07")
    assert stream.getvalue() == "\x1b[1mbold\x1b[0m \\x1b[2J\\x07\n"
    plain = io.StringIO()
    Terminal(plain).say("\x1b[31mred \x07")
    assert plain.getvalue() == "\\x1b[31mred \\x07\n"
    assert table(["", "a"], [["x\n\x1b[8my", "1"]])[1] == "x \\x1b[8my  1"
    assert printable("Ä ± ░ 漢 \t\n") == "Ä ± ░ 漢 \t\n"


def test_overview_lines_hold_no_command(folder, monkeypatch):
    (folder / "report.html").write_text("")
    assert not any(COMMANDS.search(line) for line in overview([folder]))


def test_markdown_shows_the_text_and_nothing_else():
    results = hostile_results()
    summaries = summarise(results)
    text = report.as_text(HOSTILE, summaries, [[]], command="driftwolfe sweep `<b>`\n# x")
    assert "<script" not in text.lower() and not COMMANDS.search(text)
    assert not re.search(r"(?<!\\)\[a\]\(", text)
    lines = text.splitlines()
    assert "Made by `driftwolfe sweep '<b>' # x`." in lines
    rows = [line for line in lines if line.startswith("|")]
    cells = [re.split(r"(?<!\\)\|", row) for row in rows]
    assert len({len(row) for row in cells}) == 1
    shown = html.unescape(re.sub(r"\\([\\|`\[\]])", r"\1", cells[2][1].strip()))
    assert shown == printable(" ".join(HOSTILE.split()))
    assert [line for line in lines if line.startswith("# ")] == [lines[0]]


def test_figures_are_sound_files_whatever_the_label(tmp_path, monkeypatch):
    monkeypatch.setattr("driftwolfe.experiments.figures.FORMATS", ["svg"])
    (summary,) = summarise(hostile_results())
    (path,) = save(panels(summary), tmp_path)
    ET.parse(path)  # fails on letters that XML has no place for
    assert not COMMANDS.search(path.read_text(encoding="utf-8").replace("\r\n", "\n"))
    assert literal("_a$b\x1b") == "\u200a_a\\$b\\x1b"
