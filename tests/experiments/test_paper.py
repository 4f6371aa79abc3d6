"""The paper's experiments, small."""

from __future__ import annotations

import pytest

from driftwolfe.experiments.paper import (
    EXPERIMENTS,
    Contender,
    Experiment,
    experiment,
    find_data,
    reproduce,
)
from driftwolfe.experiments.summary import summarise
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DATA_SETS, make_learner
from experiments.small import Here


def small(*contenders, **options):
    return Experiment("Small", "jumping-target", contenders, rounds=60, **options)


def test_c_is_chosen_on_one_order_and_then_all_orders_are_played(tmp_path):
    store, said = Store(tmp_path), []
    tried = small(Contender("OGD", "OGD", (0.01, 1.0, 100.0), tuning_limit=60.0), seeds=3)
    assert reproduce(tried, store, Here(), None, said.append) == 0
    (summary,) = summarise(store.results)
    chosen = summary.chosen["OGD"]
    losses = {series.c: series.results[0].loss[-1] for series in summary.tuning("OGD")}
    assert chosen.c == min(losses, key=losses.get)
    assert [result.trial.seed for result in chosen.results] == [0, 1, 2]
    assert len(store.results) == 3 + 2  # the first order counts for both
    assert f"OGD: c = {chosen.c:g}" in said


def test_the_grid_is_widened_where_the_best_c_lies_on_its_edge(tmp_path):
    store = Store(tmp_path)
    reproduce(small(Contender("OGD", "OGD", (1e-4, 1e-3)), seeds=1), store, Here(), None, print)
    tried = [trial.c for trial in store.trials]
    assert tried == pytest.approx([1e-4, 1e-3, 1e-2, 1e-1, 1, 10])  # at most four times
    none = Store(tmp_path / "none")
    reproduce(
        small(Contender("OGD", "OGD", (1e-4, 1e-3)), seeds=1, widest=0), none, Here(), None, print
    )
    assert len(none.trials) == 2


def test_nothing_is_run_twice(tmp_path):
    tried = small(Contender("OGD", "OGD", (0.1, 1.0, 10.0), limit=60.0), seeds=2)
    first, again = Here(), Here()
    reproduce(tried, Store(tmp_path), first, None, print)
    reproduce(tried, Store(tmp_path), again, None, print)
    assert len({trial.identity for trial in first.given}) == len(first.given)
    assert again.given == []


def test_c_can_be_chosen_on_fewer_rounds(tmp_path):
    slow = Contender("POLA", "POLA", (1.0, 2.0, 4.0), tuning_first=20)
    store = Store(tmp_path)
    reproduce(small(slow, seeds=3, widest=0), store, Here(), None, print)
    (summary,) = summarise(store.results)
    assert [series.rounds[-1] for series in summary.tuning("POLA")] == [20, 20, 20]
    assert len(summary.chosen["POLA"].results) == 3
    assert summary.chosen["POLA"].rounds[-1] == 60


def test_without_the_data_their_twin_is_used_and_that_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path))
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "1")
    said = []
    assert find_data(experiment("classification"), None, said.append).name == "shuttle-twin"
    assert "made-up" in said[-1] and "shuttle" in said[0]


def test_a_mistyped_folder_is_not_answered_with_made_up_data(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        find_data(experiment("classification"), str(tmp_path / "nowhere"), print)


def test_a_truncated_file_is_refused_by_name_and_checksum(tmp_path):
    (tmp_path / "shuttle").mkdir()
    (tmp_path / "shuttle/shuttle.scale").write_text("1 1:0.5\n")
    with pytest.raises(ValueError, match=r"shuttle\.scale is not the published file.*SHA-256"):
        find_data(experiment("classification"), str(tmp_path), print)


@pytest.mark.parametrize(
    ("name", "preset"), [(name, preset) for name, sizes in EXPERIMENTS.items() for preset in sizes]
)
def test_every_contender_of_every_preset_can_be_made(name, preset):
    chosen = experiment(name, preset)
    data = chosen.data(twin=True)
    stream = data.load(seed=0)
    assert chosen.real in DATA_SETS
    for contender in chosen.contenders:
        trial = chosen.tuning(contender, data, contender.scales[0])
        assert make_learner(trial, stream).t == 0
        assert len(chosen.finals(contender, data, 1.0)) == chosen.seeds


def test_the_paper_preset_is_the_papers_setting():
    matrices = experiment("matrix-completion", "paper")
    assert {c.label for c in matrices.contenders} == {
        "BOGD_IP", "POLD", "POLA", "Multi-OCG", "Ader",
    }  # fmt: skip
    assert all(c.scales == tuple(10.0**k for k in range(-1, 7)) for c in matrices.contenders)
    stream = matrices.data(twin=True).load(seed=0)
    assert (len(stream), stream.drifts, stream.domain.radius) == (3000, (1000, 2000), 1e4)
    classes = experiment("classification", "paper")
    assert all(c.scales == tuple(2.0**k for k in range(-4, 5)) for c in classes.contenders)
    stream = classes.data(twin=True).load(seed=0)
    assert (len(stream), stream.drifts[:2], stream.domain.radius) == (4350, (1000, 2000), 100.0)
    assert matrices.seeds == classes.seeds == 5


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="there are matrix-completion"):
        experiment("completion")
    with pytest.raises(ValueError, match="classification has no preset 'short'"):
        experiment("classification", "short")
