"""The demo as a person meets it: it fits the terminal, and says what was measured."""

import io
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import cli, demo
from driftwolfe.demo import PlayedGame, best_in_hindsight, chart, hunt, play_both
from driftwolfe.terminal import LETTERS, Terminal
from reliability.children import python


@pytest.fixture(scope="module")
def made():
    return hunt(seed=0)


@pytest.fixture(scope="module")
def both(made):
    return play_both(made)


@pytest.fixture
def played(both, monkeypatch):
    """The command, without playing again what was played."""
    monkeypatch.setattr(demo, "play_both", lambda hunt: both)
    monkeypatch.setattr(demo, "best_in_hindsight", lambda hunt: (16, 40.0))


def places(made):
    """Where the target is, in each round."""
    return np.argmax(made.comparators, axis=1)


def run_by_hand(made, name, decisions, **counts):
    """A game whose decisions are given."""
    rounds = len(made.losses)
    losses = np.array([f.value(x) for f, x in zip(made.losses, decisions, strict=True)])
    calls = {name: np.zeros(rounds, dtype=np.int64) for name in ("lmo", "projection", "gauge")}
    for kind, number in counts.items():
        calls[kind][0] = number
    history = dw.History(
        made.domain, losses, np.zeros(rounds), **calls, functions=made.losses, decisions=decisions
    )
    return PlayedGame(name, made, history)


def test_the_target_jumps_and_every_loss_is_known(made):
    assert len(made) == 1000 and made.drifts == (300, 400, 500, 600, 700, 800, 900)
    moved = np.flatnonzero(np.diff(places(made))) + 1
    assert tuple(moved.tolist()) == made.drifts
    assert np.sum(made.comparators, axis=1).tolist() == [1.0] * len(made.losses)
    assert made.lipschitz >= max(np.linalg.norm(loss.g) for loss in made.losses)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_polar_follows_the_target_and_ogd_loses_it_on_every_seed_tried(both, seed):
    polar, ogd = play_both(hunt(seed)) if seed else both
    assert polar.regret < 0.3 * ogd.regret
    assert np.median(polar.waits) < 0.3 * np.median(ogd.waits)
    assert ogd.on_target[:300].mean() > 0.9  # while it is calm, OGD finds it too


def test_polar_never_projects_and_ogd_is_told_more(both, made):
    polar, ogd = both
    assert not polar.history.projection.any() and polar.history.lmo.any()
    assert ogd.history.projection.sum() == len(made.losses) and not ogd.history.lmo.any()
    free, given = demo.learners(made).values()
    assert given.options.horizon == 1000 and given.lipschitz == pytest.approx(made.lipschitz)
    assert free.options.horizon is None and free.options.lipschitz is None


def test_measures_are_those_of_their_definitions(made):
    still = run_by_hand(made, "still", [np.eye(8)[places(made)[0]]] * 1000)
    assert still.regret == pytest.approx(still.excess.sum())
    windows = [still.excess[i : i + 100].sum() for i in range(901)]
    assert still.worst_window == pytest.approx(max(windows))
    expected = np.where(places(made)[list(made.drifts)] == places(made)[0], 0, 100)
    assert still.waits == expected.tolist()
    assert run_by_hand(made, "best", made.comparators).regret == pytest.approx(0.0)


def test_the_step_of_hindsight_is_the_best_of_those_tried(both, made, monkeypatch):
    monkeypatch.setattr(demo, "HINDSIGHT", (1, 16))
    times, regret = best_in_hindsight(made)
    assert times == 16 and regret < both[1].regret
    monkeypatch.setattr(demo, "HINDSIGHT", (1,))
    assert best_in_hindsight(made) == (1, pytest.approx(both[1].regret))


def test_what_is_said_follows_from_the_numbers(both, made):
    told = demo.findings(both)
    polar, ogd = both
    share = round(100 * polar.regret / ogd.regret)
    assert f"POLAR's regret is {share} % of OGD's" in told
    assert f"OGD takes {np.median(ogd.waits):.0f} rounds" in told
    assert f"POLAR takes {np.median(polar.waits):.0f} rounds" in told
    assert f"{polar.history.lmo.sum():,} linear minimisations in place of 1,000 projections" in told
    even = run_by_hand(made, "OGD", [np.full(8, 1 / 8)] * 1000, projection=7)
    perfect = run_by_hand(made, "POLAR", made.comparators, lmo=3)
    told = demo.findings([perfect, even])
    assert "OGD takes 100 rounds (median of 7 jumps)" in told
    assert "POLAR takes 0 rounds until half its weight" in told
    assert "POLAR's regret is 0 % of OGD's, with 3 linear minimisations in place of 7 proj" in told
    lines = demo.measures(both)
    rows = {line[:26].strip(): line[26:].split() for line in lines}
    assert rows[""] == ["POLAR", "OGD"]
    assert rows["mean loss"] == [f"{run.history.losses.mean():.3f}" for run in both]
    assert rows["regret against the target"] == [f"{run.regret:.1f}" for run in both]
    assert rows["projections"] == ["0", "1,000"]
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(("width", "unicode"), [(40, True), (57, False), (100, True)])
def test_the_chart_fits_and_uses_letters_that_can_be_printed(both, width, unicode):
    terminal = Terminal(sys.stdout, width, unicode)
    for run in both:
        lines = chart(run, terminal)
        assert len(lines) == 8 + 2 and max(map(len, lines)) <= width
        assert set("".join(lines)) - set(LETTERS) <= set(map(chr, range(32, 127)))
        assert unicode or "".join(lines).isascii()
        assert lines[-2].count("┴" if unicode else "+") == 7


def test_the_chart_shows_where_the_weight_is_and_where_the_target_is_missed(made):
    terminal = Terminal(sys.stdout, 80)
    follows = chart(run_by_hand(made, "POLAR", made.comparators), terminal)
    still = chart(run_by_hand(made, "OGD", [np.eye(8)[places(made)[0]]] * 1000), terminal)
    row = 7 - places(made)[0]
    assert follows[row].count("█") >= 20 and "○" not in "".join(follows)
    assert still[row].split()[1].count("█") == 76
    assert 30 < "".join(still).count("○") < 60


def test_colours_are_for_terminals_where_nobody_forbids_them(monkeypatch, both):
    class Screen(io.StringIO):
        encoding = "utf-8"

        def isatty(self):
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal.of(Screen())
    assert terminal.colour
    coloured = chart(both[0], terminal)
    plain = chart(both[0], replace(terminal, colour=False))
    assert [re.sub(r"\x1b\[[\d;]*m", "", line) for line in coloured] == plain
    assert coloured != plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert not Terminal.of(Screen()).colour
    assert not Terminal.of(io.StringIO()).colour


def test_the_demo_prints_and_writes_its_picture(played, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo"]) == 0
    told = capsys.readouterr().out
    picture = os.path.join("results", "demo.png")
    assert told.endswith(f"picture: {picture}\n")
    assert "\x1b" not in told and "█" in told and "○" in told
    assert "16 times as large would have given OGD a regret of 40.0" in told
    written = (tmp_path / picture).read_bytes()
    assert written.startswith(b"\x89PNG")
    assert os.listdir(tmp_path / "results") == ["demo.png"]
    assert cli.main(["demo"]) == 0
    assert (tmp_path / picture).read_bytes() == written


@pytest.mark.parametrize("columns", ["1", "66"])
def test_narrow_terminals_are_not_overrun(columns, played, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", columns)
    assert cli.main(["demo", "--no-picture"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= max(40, int(columns))


def test_without_unicode_all_is_ascii(played, tmp_path, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert cli.main(["demo", "--out", str(tmp_path / "Bär.png")]) == 0
    told = raw.getvalue().decode("ascii")
    assert "####" in told and r"B\xe4r.png" in told
    assert "\n.:+# weight on a place, from little to all; o the target" in told
    assert (tmp_path / "Bär.png").exists()


def test_without_a_picture(played, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--no-picture"]) == 0
    assert "picture" not in capsys.readouterr().out and not os.listdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert cli.main(["demo"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "no picture: it needs matplotlib, which pip install 'driftwolfe[plot]' brings" in told
    assert not os.listdir(tmp_path)


def test_the_terminal_part_needs_no_extras_and_nothing_is_compiled(tmp_path):
    extras = ("matplotlib", "plotly", "msgspec", "jinja2", "sklearn", "river", "pandas")
    hidden = "".join(f"sys.modules[{name!r}] = None; " for name in extras)
    code = (
        f"import sys; {hidden}\n"
        "from driftwolfe import cli, demo\n"
        "hunt = demo.hunt\n"
        "demo.hunt = lambda seed: hunt(seed, rounds=400)\n"
        "sys.exit(cli.main(['demo']))"
    )
    done = python("-c", code, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")})
    assert "POLAR's regret is" in done.stdout and "driftwolfe[plot]" in done.stdout
    assert not os.listdir(tmp_path)
