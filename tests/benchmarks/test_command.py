"""`python -m benchmarks`: what it prints, writes and returns, and what a limit on a ratio means."""

import json

import pytest

from benchmarks import long, stored
from benchmarks.__main__ import ROWS, main
from benchmarks.measure import Skipped, medians, race
from benchmarks.ratio import Ratio, as_table, quantity


def row(theirs):
    ratio = Ratio("made_up", "speed", 1.0, theirs, at_least=5, timings={"ours": [1.0]})
    other = Ratio("made_up", "loss", 1.0, 1.0, at_most=1.02, unit="loss")
    return lambda short: [ratio, other]


def refuse(short):
    raise Skipped("needs the data")


@pytest.mark.parametrize(("theirs", "status"), [(4.0, 0), (3.0, 1)])
def test_a_run_prints_a_table_and_writes_its_results(theirs, status, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ROWS, "made_up", row(theirs))
    assert main(["--short", "--rows", "made_up", "--out", str(tmp_path)]) == status
    printed = capsys.readouterr()
    assert "| made_up | speed |" in printed.out
    assert ("below its floor" in printed.err) == bool(status)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["variant"] == "short" and results["machine"]["cores"] >= 1
    assert (
        results["ratios"][0] | {"ratio": theirs, "timings": {"ours": [1.0]}} == results["ratios"][0]
    )
    assert {path.name for path in tmp_path.iterdir()} == {"results.json", "results.png"}


def test_rows_are_listed_and_skipped_aloud(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(ROWS, "made_up", refuse)
    assert main(["--rows", "made_up", "--out", str(tmp_path)]) == 0
    assert "skipped made_up: needs the data" in capsys.readouterr().out
    assert main(["--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(ROWS)


def test_contestants_take_turns_after_one_call_that_does_not_count():
    calls = []
    jobs = {name: lambda name=name: calls.append(name) for name in "ab"}
    timings = race(jobs, 2)
    assert "".join(calls) == "ababab"
    assert {name: len(each) for name, each in timings.items()} == {"a": 2, "b": 2}
    assert min(medians(timings).values()) >= 0


class Counter:
    """Suffers 1, 2, 3, ..."""

    def __init__(self):
        self.t = 0

    def update(self, loss):
        if loss == "stop":
            raise KeyboardInterrupt
        self.t += 1
        return float(self.t)


def test_a_long_run_goes_on_where_it_was_stopped(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(stored, "PATH", tmp_path / "long.json")
    stopped = long.Run("count", Counter, lambda: iter(["go"] * 70 + ["stop"]), 150)
    with pytest.raises(KeyboardInterrupt):
        long._play_on(stopped)
    assert stored.record("count")["rounds"] == 50
    long._play_on(long.Run("count", Counter, lambda: iter(["go"] * 150), 150))
    kept = stored.record("count")
    assert kept["cumulative_loss"] == [50 * 51 / 2, 100 * 101 / 2, 150 * 151 / 2]
    assert stored.loss_at(kept, 100) == 5050
    assert stored.loss_at(kept, 120) is None
    assert stored.best("cou", 149) == ("count", kept, 100)
    assert stored.best("other", 149) is None
    assert "150 of 150 rounds" in capsys.readouterr().err
    assert not list(tmp_path.glob("*.pickle"))


@pytest.mark.parametrize(
    ("ratio", "holds", "relaxed"),
    [
        (Ratio("row", "speed", 2.0, 10.0, at_least=5), True, 3.75),
        (Ratio("row", "speed", 2.0, 9.9, at_least=5), False, 3.75),
        (Ratio("row", "bytes", 3.5, 1.0, at_most=3.0), False, 4.0),
        (Ratio("row", "loss", 10.3, 10.0, at_most=1.02, unit="loss"), False, 1.02),
        (Ratio("row", "loss", 10.1, 10.0, at_most=1.02, unit="loss"), True, 1.02),
        (Ratio("row", "shown", 1.0, 0.1), None, None),
    ],
)
def test_limits_and_what_the_short_variant_makes_of_those_on_time(ratio, holds, relaxed):
    assert ratio.holds is holds
    assert ratio.relaxed(0.75).limit == (relaxed and pytest.approx(relaxed))


def test_what_is_said_of_limits():
    with pytest.raises(ValueError, match="not both"):
        Ratio("row", "both", 1.0, 1.0, at_least=1, at_most=2)
    told = Ratio("row", "speed", ours=2.0, theirs=6.0, at_least=5).complaint
    assert told == "row: speed: 3 is below its floor of 5."


def test_the_table_shows_every_ratio_with_its_verdict():
    ratios = [
        Ratio("one", "fast", 1e-3, 1.0, at_least=100),
        Ratio("two", "slow", 1.0, 1.0, at_least=2),
        Ratio("two", "beside", 1.0, 1.5),
    ]
    lines = as_table(ratios).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split("|")[-2].strip() for line in lines[2:]] == ["ok", "MISSED", "shown"]


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [(2.5, "s", "2.5 s"), (0.0025, "s", "2.5 ms"), (8340, "s", "8,340 s"), (1.2, "GiB", "1.2 GiB")],
)
def test_quantities_have_units_of_their_size(value, unit, told):
    assert quantity(value, unit) == told
