"""Results over seeds, and which of them stand for a method."""

import numpy as np
import pytest

from driftwolfe.experiments.summary import CALLS, Series, group, summaries, summarise
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DataSet
from experiments.small import made_up, trial


def test_results_are_grouped_by_all_but_their_seed():
    results = [
        made_up(trial("POLD", c=c, seed=seed, **more))
        for seed in (1, 0)
        for c in (1.0, 2.0)
        for more in ({}, {"options": {"grid": "paper"}})
    ]
    found = group(results)
    assert len(found) == 4
    assert all([r.trial.seed for r in series.results] == [0, 1] for series in found)
    for series in found:
        assert len({(r.trial.c, *r.trial.options) for r in series.results}) == 1


def test_what_splits_a_group_and_what_does_not():
    methods = ["POLA", "Ader", "OGD", "POLA", "BOGDIP"]
    found = group(made_up(trial(m, seed=s)) for s, m in enumerate(methods))
    assert [series.title for series in found] == ["POLA", "Ader", "OGD", "BOGDIP"]
    one = made_up(trial("POLA", options={"start": "origin", "seed": 1}, taus=(5,)))
    other = made_up(trial("POLA", options={"seed": 1, "start": "origin"}, seed=1))
    assert len(group([one, other])) == 1
    one, other = made_up(trial(label="mine")), made_up(trial(label="yours", seed=1))
    assert [series.title for series in group([one, other])] == ["mine", "yours"]
    spelt_out = made_up(trial(label="OGD", seed=2))
    assert len(group([made_up(), spelt_out])) == 1
    (series,) = group([made_up(), made_up(taus := trial(taus=(5,)))])
    assert [r.trial for r in series.results] == [taus]


def test_curves_are_read_where_all_seeds_have_a_reading():

    def cut_at(seed, *rounds):
        curves = {key: [float(t) for t in rounds] for key in ("loss", "seconds")}
        calls = {key: [2 * t for t in rounds] for key in ("lmo", "projection", "gauge")}
        return made_up(trial(seed=seed), rounds=[*rounds], **curves, **calls)

    series = Series((made_up(), cut_at(1, 10, 17)))
    assert series.rounds.tolist() == [10]
    assert series.curve("loss").tolist() == [[1.0], [10.0]]
    assert series.total("loss").mean == 5.5
    assert series.mean_loss.mean == 0.55
    series = Series((cut_at(0, 3), cut_at(1, 7)))
    assert series.rounds.tolist() == [3]
    np.testing.assert_allclose(series.curve("loss"), [[3.0], [3.0]])
    np.testing.assert_allclose(series.curve("lmo"), [[6.0], [6.0]])
    assert series.mean_loss.mean == pytest.approx(1.0)


def test_every_curve_is_what_the_results_hold():
    more = {"membership": [7, 8, 9], "products": [4, 8, 9]}
    results = tuple(made_up(trial(seed=seed), **more) for seed in range(3))
    for name in ("loss", "seconds", *CALLS):
        curve = Series(results).curve(name)
        assert curve.shape == (3, 3)
        np.testing.assert_array_equal(curve, [getattr(r, name) for r in results])


def _result(method="OGD", rounds=30, loss=1.0, **fields):
    curve = [loss * rounds / 2, loss * rounds]
    calls = {key: [1, 2] for key in ("lmo", "projection", "gauge")}
    options = {"rounds": [rounds // 2, rounds], "loss": curve, "seconds": [0.1, 0.2]}
    return made_up(trial(method, **fields), **options, **calls)


def _only(results):
    (summary,) = summarise(results)
    return summary


def test_there_is_a_summary_for_each_data_set_in_order():
    sets = [DataSet(name=name) for name in ("shuttle-twin", "jumping-target")]
    sets.append(DataSet(name="jumping-target", rounds=40))
    results = [_result(data=data, seed=seed) for seed in (0, 1) for data in sets]
    summaries = summarise(results)
    assert [s.series[0].trial.data for s in summaries] == sets
    assert all(len(s.series) == 1 and len(s.series[0].results) == 2 for s in summaries)
    assert summarise([]) == []


def test_how_c_is_chosen():
    summary = _only([_result(c=c, loss=abs(c - 2.0) + 1) for c in (4.0, 2.0, 1.0)])
    assert summary.chosen["OGD"].c == 2.0
    assert [s.c for s in summary.tuning("OGD")] == [1.0, 2.0, 4.0]
    once = [_result(c=2.0, loss=0.9)]
    twice = [_result(c=3.0, loss=1.5, seed=seed) for seed in range(2)]
    assert _only(once + twice).chosen["OGD"].c == 3.0
    lucky = [_result(c=1.0, loss=loss, seed=seed) for seed, loss in enumerate((0.1, 3.0))]
    steady = [_result(c=2.0, loss=1.0, seed=seed) for seed in range(2)]
    assert _only(lucky + steady).chosen["OGD"].c == 2.0
    assert _only([_result()]).tuning("OGD") == []


def test_methods_are_in_the_order_of_the_sweep_and_named_by_their_labels():
    results = [_result("POLA"), _result("POLA", label="cold"), _result("Ader")]
    summary = _only(results)
    assert summary.titles == ["POLA", "cold", "Ader"]
    assert list(summary.chosen) == summary.titles
    assert summary.stream == "made up"
    assert summary.of("nobody") == []


def test_orders_that_c_was_chosen_on_do_not_count(tmp_path):
    lucky = [_result(c=c, loss=c, seed=seed) for c in (1.0, 2.0) for seed in (1000, 1001)]
    fair = [_result(c=1.0, loss=3.0, seed=seed) for seed in (0, 1)]
    for folder, results in ((tmp_path, fair), (tmp_path / "tuning", lucky)):
        store = Store(folder)
        store.add("Small", [each.trial for each in results])
        for each in results:
            store.write(each)
    (summary,) = summaries(Store(tmp_path))
    assert [r.trial.seed for r in summary.chosen["OGD"].results] == [0, 1]
    assert [(s.c, len(s.results)) for s in summary.tuning("OGD")] == [(1.0, 2), (2.0, 2)]


def test_drifts_that_differ_between_seeds_are_not_marked():
    same = [made_up(trial(seed=seed), drifts=[10]) for seed in (0, 1)]
    assert _only(same).drifts == [10]
    assert _only([*same, made_up(trial(seed=2), drifts=[20])]).drifts == []
