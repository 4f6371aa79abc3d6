"""`python -m benchmarks.budget --short`: what it plays, keeps to and writes."""

import json
import math

import pytest

from benchmarks.budget.__main__ import FOLDERS, main
from benchmarks.budget.games import Store, plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where = tmp_path_factory.mktemp("budget")
    assert main(["--short", "--out", str(where)]) == 0
    return where


@pytest.fixture(scope="module")
def runs(folder):
    return json.loads((folder / "results.json").read_text())["runs"]


def part(runs, name):
    found = [run for run in runs.values() if run.get("part") == name]
    assert found
    return found


@pytest.mark.slow
def test_a_short_run_writes_records_tables_and_figures(folder, runs):
    drawn = {path.name for path in (folder / "figures").iterdir()}
    assert drawn == {"vectors.png", "movielens.png", "bounds.png"}
    assert not (folder / "runs").exists()
    rows = [row.split(" | ")[0] for row in (folder / "summary.md").read_text().splitlines()]
    firsts = [first for first in rows if first.startswith("| ") and ": " in first]
    assert len(firsts) == len(set(firsts)) > 90
    for run in part(runs, "sets"):
        numbers = (run["static_regret"], run["dynamic_regret"], run["window_regret"])
        assert all(math.isfinite(number) for number in numbers)


def test_a_few_games_keep_their_budgets(tmp_path):
    store, games = Store(tmp_path), list(plan(True))
    assert len({game.key for game in games}) == len(games) > 90
    for game in games[::20]:
        run = store.get(game.key, lambda game=game: game.play(store))
        assert run["budget"] is None or run["lmo_calls"] <= run["budget"] * run["rounds"] + 1e-6


@pytest.mark.slow
def test_budgets_are_never_exceeded(runs):
    played = [run for run in runs.values() if run.get("budget")]
    for run in played:
        assert run["lmo_calls"] <= run["budget"] * run["rounds"] + 1e-6, run
    even = [run for run in played if run["kind"] == "even"]
    assert even
    assert all(run["worst_round"] <= math.ceil(run["budget"]) for run in even)


@pytest.mark.slow
def test_exact_projections_make_no_calls_and_no_limit_makes_more_than_a_budget(runs):
    games = part(runs, "sets")
    assert all(run["lmo_calls"] == 0 for run in games if run["kind"] == "exact")
    for stream in ("vectors", "matrices", "flows"):
        pold = [run for run in games if run["stream"] == stream and run["learner"] == "POLD"]
        (free,) = [run["lmo_calls"] for run in pold if run["kind"] == "unlimited"]
        assert free > max(run["lmo_calls"] for run in pold if run["kind"] == "budget")


@pytest.mark.slow
def test_polar_plays_beside_the_others(runs):
    ours = [run for run in part(runs, "sets") if run["learner"] == "POLAR"]
    kinds = {stream: set() for stream in ("vectors", "matrices", "flows")}
    for run in ours:
        kinds[run["stream"]].add(run["kind"])
    assert kinds["vectors"] == {"budget", "even", "unlimited", "exact", "cached"}
    assert kinds["matrices"] == kinds["vectors"] - {"cached"}
    assert kinds["flows"] == kinds["vectors"] - {"exact"}


def test_stored_games_have_polar_below_all_others_with_one_call_per_round():
    stored = json.loads((FOLDERS[False] / "results.json").read_text())["runs"]
    one = [run for run in part(stored, "sets") if run["budget"] == 1.0]
    for stream in ("vectors", "matrices", "flows", "slow vectors"):
        for seed in range(3):
            played = [run for run in one if run["stream"] == stream and run["seed"] == seed]
            regrets = {(run["learner"], run["kind"]): run["dynamic_regret"] for run in played}
            others = [regret for (name, _), regret in regrets.items() if name != "POLAR"]
            assert len(others) >= 8
            assert regrets["POLAR", "budget"] < min(others)


@pytest.mark.slow
def test_regret_lies_between_what_none_can_beat_and_the_bound(runs):
    games = part(runs, "bounds")
    assert {run["budget"] for run in games} == {0.25, 1.0, 4.0}
    for run in games:
        assert run["guarantee"] * (1 - 1e-12) <= run["static_regret"] <= run["bound"], run


def test_games_that_are_done_are_not_played_again(tmp_path):
    store = Store(tmp_path)
    assert store.get("one", lambda: {"loss": 1.0}) == {"loss": 1.0}
    assert Store(tmp_path).get("one", lambda: pytest.fail("played again")) == {"loss": 1.0}
    store.get("two", lambda: {"loss": 5.0})
    store.forget("tw")
    assert store.get("two", lambda: {"loss": 2.0}) == Store(tmp_path).records["two"]
    store.close(["one"], {"cpu": "made up"})
    assert not (tmp_path / "runs").exists()
    store = Store(tmp_path)
    assert store.get("one", lambda: pytest.fail("played again")) == {"loss": 1.0}
    store.close(["one"], {"cpu": "another"})
    assert json.loads((tmp_path / "results.json").read_text())["machine"] == {"cpu": "made up"}
