"""Trials that differ only in their seed."""

import numpy as np
import pytest

from driftwolfe.experiments.summary import CALLS, Series, group, spread
from experiments.small import made_up, trial


def test_results_are_grouped_by_all_but_their_seed():
    results = [
        made_up(trial("POLD", c=c, seed=seed, **more), cut="limit" in more)
        for seed in (1, 0)
        for c in (1.0, 2.0)
        for more in ({}, {"first": 30}, {"limit": 9.0}, {"options": {"grid": "paper"}})
    ]
    found = group(results)
    assert len(found) == 8
    assert all([r.trial.seed for r in series.results] == [0, 1] for series in found)
    for series in found:
        alike = {(r.trial.c, r.trial.first, r.trial.limit) for r in series.results}
        assert len(alike) == 1


def test_groups_come_in_the_order_of_their_first_results():
    methods = ["POLA", "Ader", "OGD", "POLA", "BOGDIP"]
    found = group(made_up(trial(m, seed=s)) for s, m in enumerate(methods))
    assert [series.title for series in found] == ["POLA", "Ader", "OGD", "BOGDIP"]


def test_the_order_of_options_and_the_windows_do_not_split_a_group():
    one = made_up(trial("POLA", options={"start": "origin", "seed": 1}, taus=(5,)))
    other = made_up(trial("POLA", options={"seed": 1, "start": "origin"}, seed=1))
    assert len(group([one, other])) == 1


def test_labels_split_a_group():
    one, other = made_up(trial(label="mine")), made_up(trial(label="yours", seed=1))
    assert [series.title for series in group([one, other])] == ["mine", "yours"]
    spelt_out = made_up(trial(label="OGD", seed=2))
    assert len(group([made_up(), spelt_out])) == 1


def test_of_one_seed_there_is_one_result():
    (series,) = group([made_up(), made_up(taus := trial(taus=(5,)))])
    assert [r.trial for r in series.results] == [taus]


def test_curves_are_read_where_all_seeds_have_a_reading():
    short = made_up(
        trial(seed=1),
        rounds=[10, 17],
        loss=[3.0, 4.0],
        seconds=[0.1, 0.2],
        lmo=[1, 2],
        projection=[0, 0],
        gauge=[5, 6],
        cut=True,
    )
    series = Series((made_up(), short))
    assert series.rounds.tolist() == [10]
    assert series.curve("loss").tolist() == [[1.0], [3.0]]
    assert series.total("loss").mean == 2.0
    assert series.mean_loss.mean == 0.2
    assert not series.complete


def test_runs_cut_before_any_common_reading_are_compared_at_the_shorter_ones_end():
    def cut_at(rounds, seed):
        curves = {key: [float(rounds)] for key in ("loss", "seconds")}
        calls = {key: [2 * rounds] for key in ("lmo", "projection", "gauge")}
        return made_up(trial(seed=seed), rounds=[rounds], **curves, **calls, cut=True)

    series = Series((cut_at(3, 0), cut_at(7, 1)))
    assert series.rounds.tolist() == [3]
    np.testing.assert_allclose(series.curve("loss"), [[3.0], [3.0]])
    np.testing.assert_allclose(series.curve("lmo"), [[6.0], [6.0]])
    assert series.mean_loss.mean == pytest.approx(1.0)
    assert not series.complete


def test_every_curve_is_what_the_results_hold():
    results = tuple(made_up(trial(seed=seed), membership=[7, 8, 9]) for seed in range(3))
    for name in ("loss", "seconds", *CALLS):
        curve = Series(results).curve(name)
        assert curve.shape == (3, 3)
        np.testing.assert_array_equal(curve, [getattr(r, name) for r in results])


def test_a_series_is_complete_when_all_played_all_rounds():
    whole = [made_up(trial(seed=seed)) for seed in range(2)]
    assert Series(tuple(whole)).complete
    assert not Series((made_up(trial(first=30)),)).complete
    assert not Series((whole[0], made_up(trial(seed=1), cut=True))).complete


def test_the_spread_is_the_mean_and_the_sample_deviation():
    values = [0.2, 0.5, 0.9, 1.4]
    found = spread(iter(values))
    assert found.mean == pytest.approx(np.mean(values))
    assert found.deviation == pytest.approx(np.std(values, ddof=1))
    assert spread([3.0]) == spread([3.0, 3.0])
    assert spread([3.0]).deviation == 0.0
