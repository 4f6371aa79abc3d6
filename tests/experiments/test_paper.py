"""The paper's experiments, small."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from driftwolfe.experiments.paper import (
    EXPERIMENTS,
    Contender,
    Experiment,
    _widened,
    experiment,
    find_data,
    reproduce,
)
from driftwolfe.experiments.running import make_learner
from driftwolfe.experiments.summary import stored_regrets, summarise
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DATA_SETS
from experiments.small import Here


def small(*contenders, **options):
    return Experiment("Small", "jumping-target", contenders, **{"rounds": 40, **options})


def tried(store):
    """The values of c that were tried, and the seeds."""
    trials = Store(store.folder / "tuning").trials
    return sorted({trial.c for trial in trials}), sorted({trial.seed for trial in trials})


def test_c_is_chosen_on_orders_that_are_not_evaluated(tmp_path):
    store, said = Store(tmp_path), []
    one = small(Contender("OGD", "OGD", (1.0, 100.0, 0.01)), seeds=3)
    assert reproduce(one, store, Here(), None, said.append) == 0
    (summary,) = summarise(store.results)
    chosen = summary.chosen["OGD"]
    losses = {}
    for each in Store(tmp_path / "tuning").results:
        losses[each.trial.c] = losses.get(each.trial.c, 0.0) + each.loss[-1]
    assert chosen.c == min(losses, key=losses.get)
    assert [result.trial.seed for result in chosen.results] == [0, 1, 2]
    assert len(store.results) == 3
    assert tried(store)[1] == [1000, 1001]
    assert f"OGD: c = {chosen.c:g}" in said
    assert said[0].startswith("plan: 9 trials, 9 to run, about 0 minutes")
    assert stored_regrets(tmp_path, summary)[0].dynamic is not None  # against minima that are kept


def test_the_grid_is_widened_where_the_best_c_lies_on_its_edge(tmp_path):
    store = Store(tmp_path)
    reproduce(small(Contender("OGD", "OGD", (1e-4, 1e-3)), seeds=1), store, Here(), None, print)
    assert tried(store)[0] == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1, 10])  # at most four times
    none = Store(tmp_path / "none")
    narrow = small(Contender("OGD", "OGD", (1e-4, 1e-3)), seeds=1, widest=0)
    reproduce(narrow, none, Here(), None, print)
    assert len(tried(none)[0]) == 2


@pytest.mark.parametrize(
    ("grid", "best", "wider"),
    [
        ([1e3, 2e3, 5e3], 5e3, [1e3, 2e3, 5e3, 1e4]),
        ([1e3, 2e3, 5e3], 1e3, [5e2, 1e3, 2e3, 5e3]),
        ([5e3, 1e4, 2e4], 2e4, [5e3, 1e4, 2e4, 5e4]),
        ([5e3, 1e4, 2e4], 5e3, [2e3, 5e3, 1e4, 2e4]),
        ([5e3, 1e4, 2e4], 1e4, [5e3, 1e4, 2e4]),
        ([1.0, 2.0, 4.0], 4.0, [1.0, 2.0, 4.0, 8.0]),
        ([1.0, 10.0], 1.0, [0.1, 1.0, 10.0]),
    ],
)
def test_a_grid_goes_on_as_it_began(grid, best, wider):
    assert _widened(grid, best) == pytest.approx(wider, rel=1e-15)


def test_nothing_is_run_twice(tmp_path):
    one = small(Contender("OGD", "OGD", (0.1, 1.0, 10.0)), seeds=2)
    first, again, said = Here(), Here(), []
    reproduce(one, Store(tmp_path), first, None, print)
    reproduce(one, Store(tmp_path), again, None, said.append)
    assert len({trial.identity for trial in first.given}) == len(first.given)
    assert again.given == []
    assert ", 0 to run" in said[0]


def test_a_contender_without_values_runs_with_its_default(tmp_path):
    tuned = Contender("POLD", "POLD", (0.1, 1.0, 10.0), seconds=2.0)
    options = {"seeds": 2, "also": ("shuttle-twin",), "rounds": 44}
    one = small(tuned, tuned.untuned, Contender("OGD", "OGD", (), seconds=3.0), **options)
    store, workers = Store(tmp_path), Here()
    assert reproduce(one, store, workers, None, print) == 0
    (target, shuttle) = summarise(store.results)
    assert target.chosen["POLD, untuned"].c is target.chosen["OGD"].c is None
    assert {c.title for c in target.chosen.values()} == {"POLD", "POLD, untuned", "OGD"}
    # Further data are played with the c of the first, by all that are not there for comparison.
    chosen = {title: each.c for title, each in shuttle.chosen.items()}
    assert chosen == {"POLD": target.chosen["POLD"].c, "OGD": None}
    # What can run beside the choice of c does not wait for it; long ones come first, and further data last.
    first = [trial.title for trial in workers.given[:12]]
    assert first == ["POLD"] * 6 + ["OGD"] * 2 + ["POLD, untuned"] * 2 + ["OGD"] * 2


def test_a_trial_that_fails_does_not_stop_the_others(tmp_path):
    bad = Contender("POLD", "bad", (1.0, 2.0), {"lmo_budget": -1.0})
    one, store = small(bad, Contender("OGD", "OGD", (0.1, 1.0, 10.0)), seeds=1), Store(tmp_path)
    assert reproduce(one, store, Here(), None, print) == 4
    assert {result.trial.title for result in store.results} == {"OGD"}


def test_some_of_the_methods_can_be_asked_for():
    part = experiment("matrix-completion", "paper", only=["POLD", "Ader, untuned"])
    assert [each.label for each in part.contenders] == ["POLD", "Ader, untuned"]
    with pytest.raises(ValueError, match=r"method must be one of .*got 'pold'; did you mean 'POLD"):
        experiment("matrix-completion", "paper", only=["pold"])
    with pytest.raises(ValueError, match="did you mean 'matrix-completion'"):
        experiment("completion")


@pytest.fixture
def without_data(tmp_path, monkeypatch):
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path))
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "1")


def test_without_the_data_their_twin_is_used_and_that_is_said(without_data):
    said = []
    assert find_data(experiment("classification"), None, said.append).name == "shuttle-twin"
    assert "made-up" in said[-1] and "shuttle" in said[0]


def test_data_that_are_named_are_not_answered_with_made_up_ones(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_data(experiment("classification"), str(tmp_path / "nowhere"), print)
    (tmp_path / "shuttle").mkdir()
    (tmp_path / "shuttle/shuttle.scale").write_text("1 1:0.5\n")
    with pytest.raises(ValueError, match=r"shuttle\.scale is not the published file.*SHA-256"):
        find_data(experiment("classification"), str(tmp_path), print)


PRESETS = [(name, preset) for name, sizes in EXPERIMENTS.items() for preset in sizes]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_every_contender_of_every_preset_can_be_made(name, preset):
    chosen = replace(experiment(name, preset), rounds=45)
    data = chosen.data(twin=True)
    stream = data.load(seed=0)
    assert chosen.real in DATA_SETS
    for contender in chosen.contenders:
        for trial in chosen.finals(contender, data, next(iter(contender.scales), None)):
            assert trial.seed < chosen.seeds
        assert make_learner(trial, stream).t == 0


def test_the_paper_preset_is_the_papers_setting():
    matrices = experiment("matrix-completion", "paper")
    tuned = {"BOGD_IP", "POLD", "POLA", "Multi-OCG", "Multi-OCG, K = 1", "Ader"}
    tuned.add("one-projection Ader")
    untuned = {f"{label}, untuned" for label in tuned}
    rated = {"POLD, tuned rate", "Multi-OCG, tuned rate"}
    assert {c.label for c in matrices.contenders} == tuned | untuned | rated | {"POLAR"}
    assert {c.label for c in matrices.contenders if c.scales} == tuned | rated
    rates = {c.options["loss_scale"] for c in matrices.contenders if c.label in rated}
    assert rates == {math.sqrt(8.0) / 0.01}  # s = 0.01, and the trials in docs/results
    opt_in = experiment("matrix-completion", "one-projection").contenders
    exact = {"POLD", "one-projection Ader", "one-projection SAOL"}
    assert {c.label for c in opt_in} - exact == {f"{label}, block" for label in exact - {"POLD"}}
    assert {len(c.scales) for c in opt_in} == {3}
    stream = matrices.data(twin=True).load(seed=0)
    assert (len(stream), stream.drifts, stream.domain.radius) == (3000, (1000, 2000), 1e4)
    classes = experiment("classification", "paper")
    assert {c.scales for c in classes.contenders} == {tuple(2.0**k for k in range(-4, 5)), ()}
    stream = classes.data(twin=True).load(seed=0)
    assert (len(stream), stream.drifts[:2], stream.domain.radius) == (4350, (1000, 2000), 100.0)
    assert matrices.seeds == classes.seeds == 5
    for chosen in (matrices, classes):  # there is nothing to tune
        assert [c.scales for c in chosen.contenders if c.method == "POLAR"] == [()]
