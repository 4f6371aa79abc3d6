"""The paper's experiments, small, and its claims against results made by hand."""

from __future__ import annotations

import pytest

from driftwolfe.experiments.paper import (
    EXPERIMENTS,
    Contender,
    Experiment,
    as_markdown,
    claims,
    experiment,
    find_data,
    reproduce,
)
from driftwolfe.experiments.summary import summarise
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DATA_SETS, make_learner
from experiments.results_by_hand import result
from experiments.small import Here


def verdicts(*results):
    (summary,) = summarise(results)
    return {claim.text.split(" (")[0]: claim for claim in claims(summary)}


def test_faster_at_slightly_higher_loss_holds():
    found = verdicts(
        result([10.5, 21.0], "POLD", seconds=1.0), result([10.0, 20.0], "Ader", seconds=50.0)
    )
    speed = found["POLD is much faster than Ader"]
    loss = found["POLD pays for it with a slightly higher loss than Ader"]
    assert speed.held and "50 times" in speed.measured
    assert loss.held and "+5.0%" in loss.measured


def test_claims_can_fail():
    found = verdicts(
        result([15.0, 30.0], "POLD", seconds=1.0), result([10.0, 20.0], "Ader", seconds=2.0)
    )
    assert not any(claim.held for claim in found.values())
    assert "DID NOT HOLD" in str(next(iter(found.values())))
    assert as_markdown(list(found.values())).count("**no**") == 2


def test_a_method_that_was_cut_is_compared_over_the_rounds_it_played():
    found = verdicts(
        result([10.0, 30.0, 90.0], "POLA"),
        result([10.0, 20.0], "Ader", cut=True, seconds=100.0),
    )
    assert (
        "after 20 rounds: +50.0%"
        in found["POLA pays for it with a slightly higher loss than Ader"].measured
    )


def test_only_seeds_that_both_have_are_compared():
    found = verdicts(
        result([10.0], "POLD", seed=0),
        result([999.0], "POLD", seed=1),
        result([20.0], "MultiOCG", seed=0, label="Multi-OCG"),
    )
    claim = found["POLD has a lower cumulative loss than Multi-OCG"]
    assert claim.held and "10 against 20" in claim.measured


def test_claims_about_absent_methods_are_not_made():
    assert verdicts(result([1.0], "OGD")) == {}


FASTER = "{} is much faster than {}"
SLIGHT = "{} pays for it with a slightly higher loss than {}"
LOWER = "{} has a lower cumulative loss than {}"
OURS = {"BOGD_IP": "BOGDIP", "POLD": "POLD", "POLA": "POLA"}


def two_seeds(name, losses, seconds=(1.0, 1.0), **options):
    """What two seeds came to after ten rounds."""
    method = {"BOGD_IP": "BOGDIP", "Multi-OCG": "MultiOCG"}.get(name, name)
    return [
        result([loss], method, seed=seed, seconds=second, label=name, **options)
        for seed, (loss, second) in enumerate(zip(losses, seconds, strict=True))
    ]


@pytest.mark.parametrize("other", ["Ader", "PAMO"])
@pytest.mark.parametrize(
    ("mean", "held"),
    [(20.0, True), (22.0 - 1e-6, True), (22.1, False), (21.0, True), (23.0, False)],
)
def test_a_slightly_higher_loss_is_one_tenth_and_no_more_in_the_mean_of_the_seeds(
    mean, held, other
):
    # The first seed alone would say the opposite.
    ours = (mean + 10.0, mean - 10.0) if held else (mean - 10.0, mean + 10.0)
    found = verdicts(*two_seeds("POLA", ours), *two_seeds(other, (25.0, 15.0)))
    claim = found[SLIGHT.format("POLA", other)]
    assert claim.held == held
    assert f"{mean / 20.0 - 1.0:+.1%}" in claim.measured


def test_a_much_lower_loss_is_not_held_against_a_method():
    found = verdicts(*two_seeds("POLD", (10.0, 11.0)), *two_seeds("Ader", (20.0, 22.0)))
    claim = found[SLIGHT.format("POLD", "Ader")]
    assert claim.held and "-50.0%" in claim.measured


@pytest.mark.parametrize(
    ("mean", "held"), [(10.0, True), (9.99, False), (9.6, False), (30.0, True)]
)
def test_much_faster_is_five_times_in_the_mean_of_the_seeds(mean, held):
    theirs = (mean - 8.0, mean + 8.0) if held else (mean + 8.0, mean - 8.0)
    found = verdicts(
        *two_seeds("POLD", (1.0, 1.0), seconds=(1.0, 3.0)),
        *two_seeds("Ader", (1.0, 1.0), seconds=theirs),
    )
    claim = found[FASTER.format("POLD", "Ader")]
    assert claim.held == held
    assert f"2 s against {mean:g} s for 10 rounds: {mean / 2.0:.3g} times" in claim.measured


@pytest.mark.parametrize("name", OURS)
@pytest.mark.parametrize(("mean", "held"), [(20.0, False), (20.01, False), (19.99, True)])
def test_a_lower_loss_is_lower_in_the_mean_of_the_seeds(name, mean, held):
    ours = (mean + 5.0, mean - 5.0) if held else (mean - 5.0, mean + 5.0)
    found = verdicts(*two_seeds(name, ours), *two_seeds("Multi-OCG", (18.0, 22.0)))
    assert found[LOWER.format(name, "Multi-OCG")].held == held


def test_every_claim_is_made_about_every_method_that_it_names():
    names = [*OURS, "Ader", "PAMO", "Multi-OCG"]
    found = verdicts(*(each for name in names for each in two_seeds(name, (1.0, 1.0))))
    assert [(claim.number, text) for text, claim in found.items()] == [
        *(("i", text.format(name, "Ader")) for name in OURS for text in (FASTER, SLIGHT)),
        *(("ii", LOWER.format(name, "Multi-OCG")) for name in OURS),
        *(("iii", text.format("POLA", "PAMO")) for text in (FASTER, SLIGHT)),
    ]


def test_a_round_that_both_were_read_at_is_looked_up_in_each_of_them():
    # Read every 10 rounds and every 20: the last that both have is 40, the fourth and the second reading.
    found = verdicts(
        result([1.0, 2.0, 3.0, 4.0, 50.0], "POLD", every=10),
        result([6.0, 8.0], "MultiOCG", every=20, label="Multi-OCG"),
    )
    claim = found[LOWER.format("POLD", "Multi-OCG")]
    assert claim.measured == "4 against 8 after 40 rounds"


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
