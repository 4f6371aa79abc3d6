"""Regret computed from stored curves."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.experiments.result import AdaptiveRegret
from driftwolfe.experiments.run_trial import run_trial
from driftwolfe.experiments.summary import summarise
from driftwolfe.experiments.tables import (
    Minimum,
    minima,
    regret_rows,
    stored_minima,
    stretch_regrets,
    window_regret,
)
from driftwolfe.experiments.trial import DataSet, Trial
from experiments.results_by_hand import result

STRETCHES = [Minimum(0, 20, 3.0, 0.0), Minimum(20, 40, 1.0, 0.0)]


def test_each_stretch_is_held_against_its_own_minimum():
    played = result([5.0, 8.0, 18.0, 20.0])
    assert stretch_regrets(played, STRETCHES) == [5.0, 11.0]


def test_a_drift_between_readings_is_interpolated():
    played = result([10.0, 20.0])
    halves = [Minimum(0, 15, 0.0, 0.0), Minimum(15, 20, 0.0, 0.0)]
    assert stretch_regrets(played, halves) == [15.0, 5.0]


def test_the_worst_window_lies_inside_a_stretch():
    played = result([5.0, 8.0, 18.0, 20.0])
    assert window_regret(played, STRETCHES, 10) == 10.0 - 1.0
    assert window_regret(played, STRETCHES, 20) == 12.0 - 1.0
    assert window_regret(played, STRETCHES, 30) is None


def test_window_regret_never_exceeds_the_true_adaptive_regret():
    data = DataSet(name="jumping-target", rounds=120)
    stream = data.load(seed=1)
    learner = dw.OGD(stream.domain, horizon=120, lipschitz=stream.lipschitz)
    history = dw.play(learner, stream)
    played = run_trial(Trial(method="OGD", data=data, seed=1))
    true = dw.regret.adaptive_regret(history, 30)
    bound = window_regret(played, minima(data, 1), 30)
    assert 0.5 * true.upper < bound <= true.upper + 1e-9


def test_dynamic_regret_is_that_of_the_library():
    data = DataSet(name="jumping-target", rounds=120)
    stream = data.load(seed=2)
    history = dw.play(dw.POLA(stream.domain, lipschitz=stream.lipschitz), stream)
    true = dw.regret.dynamic_regret(history, stream.comparators)
    played = run_trial(Trial(method="POLA", data=data, seed=2))
    (row,) = regret_rows(summarise([played])[0], {2: minima(data, 2)})
    assert row.dynamic.mean == pytest.approx(float(true), rel=1e-6)


def test_regret_is_unknown_where_a_method_was_cut_or_a_seed_has_no_minimum():
    cut = result([5.0, 8.0], method="OGD", cut=True)
    whole = result([5.0, 8.0, 18.0, 20.0])
    other = result([5.0, 8.0, 18.0, 20.0], method="POLA", seed=7)
    rows = regret_rows(summarise([cut, whole, other])[0], {0: STRETCHES}, taus=[10])
    told = {row.title: row for row in rows}
    assert told["POLD"].dynamic.mean == 16.0
    assert told["POLD"].adaptive[10].mean == 9.0
    assert told["OGD"].dynamic is told["POLA"].dynamic is None
    assert told["OGD"].adaptive == told["POLA"].adaptive == {}


def test_measured_adaptive_regret_is_preferred():
    measured = AdaptiveRegret(10, 7.5, 0.0, (3, 13))
    played = result([5.0, 8.0, 18.0, 20.0], adaptive=[measured])
    (row,) = regret_rows(summarise([played])[0], {0: STRETCHES}, taus=[10])
    assert row.adaptive[10].mean == 7.5


def test_minima_are_solved_once_and_kept(tmp_path):
    data = DataSet(name="shuttle-twin", rounds=40)
    first = stored_minima(tmp_path, data, seed=1)
    (file,) = tmp_path.glob("minima/*.json")
    written = file.read_bytes()
    assert stored_minima(tmp_path, data, seed=1) == first
    assert file.read_bytes() == written
    file.write_bytes(written[:-9])
    with pytest.raises(ValueError, match="delete it, and it is made again"):
        stored_minima(tmp_path, data, seed=1)


def test_minima_are_below_what_any_point_suffers():
    data = DataSet(name="shuttle-twin", rounds=44)
    stream, rng = data.load(seed=3), np.random.default_rng(0)
    for found in minima(data, 3):
        for _ in range(20):
            x = rng.standard_normal((7, 9))
            x *= rng.uniform(0, 100) / np.linalg.norm(x, "nuc")
            suffered = sum(f.value(x) for f in stream.losses[found.start : found.end])
            assert suffered >= found.value - found.gap - 1e-9


def test_seeds_share_minima_where_they_only_change_the_order(tmp_path):
    data = DataSet(name="movielens-100k-twin", rounds=6)
    assert stored_minima(tmp_path, data, 0) == stored_minima(tmp_path, data, 4)
    assert len(list(tmp_path.glob("minima/*.json"))) == 1
