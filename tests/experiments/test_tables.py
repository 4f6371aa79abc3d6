"""Tables of results, and regret computed from stored curves."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.experiments.report import method_table, tuning_notes
from driftwolfe.experiments.running import run_trial
from driftwolfe.experiments.summary import (
    RegretRow,
    StretchMinimum,
    minima,
    regret_rows,
    regret_so_far,
    stored_minima,
    summarise,
    window_regret,
)
from driftwolfe.experiments.trial import AdaptiveRegret, DataSet, Trial
from driftwolfe.terminal import Spread
from experiments.small import result


def test_notes_tell_what_was_tried_and_what_lies_on_the_edge():
    tried = [result([10.0 + abs(c - 2.0)], c=c, seed=1000) for c in (1.0, 2.0, 4.0)]
    assert tuning_notes(summarise(tried)[0]) == ["POLD: c = 2 of 1, 2, 4."]
    assert tuning_notes(summarise([result([9.0], c=4.0)], tried[1:])[0]) == [
        "POLD: c = 4 of 2, 4, chosen on 1 other order.",
        "POLD: the best c lies on the edge of what was tried.",
    ]


def test_the_whole_row_of_a_method():
    results = [
        result([10.0, 20.0], "POLD", c=0.5, seconds=1.5),
        result([20.0, 40.0], "POLD", c=0.5, seconds=1.5, seed=1),
        *(result([5.0, 6.0], "OGD", seconds=1.0, seed=seed) for seed in (0, 1)),
    ]
    (summary,) = summarise(results)
    regrets = [
        RegretRow("POLD", Spread(7.0, 2.0), {200: Spread(3.0, 0.0), 50: Spread(1.25, 0.0)}),
        RegretRow("OGD", None, {50: Spread(4.0, 0.0)}),
    ]
    # The one that lost least first.
    assert method_table(summary, regrets).splitlines() == [
        "| method | c | seeds | rounds | loss per round | cumulative loss | seconds | LMO calls per round | "
        "dynamic regret | regret, worst 50 rounds | regret, worst 200 rounds |",
        "| --- |" + " ---: |" * 10,
        # Two calls of the oracle in each of the 20 rounds; the clock was read at 2 and 3 s.
        "| OGD |  | 2 | 20 | 0.3 | 6 | 2 | 2 | – | 4 | – |",
        "| POLD | 0.5 | 2 | 20 | 1.50 ± 0.71 | 30 ± 14 | 3 | 2 | 7.0 ± 2.0 | 1.25 | 3 |",
    ]
    without = method_table(summary).splitlines()[0]
    assert without.endswith("| LMO calls per round |")


STRETCHES = [StretchMinimum(0, 20, 3.0, 0.0), StretchMinimum(20, 40, 1.0, 0.0)]


def test_regret_by_stretches():
    played = result([5.0, 8.0, 18.0, 20.0])
    found = regret_so_far(played, STRETCHES, np.array([10, 20, 30, 40]))
    assert found.tolist() == [5.0 - 1.5, 8.0 - 3.0, 18.0 - 3.5, 5.0 + 11.0]
    assert window_regret(played, STRETCHES, 10) == 10.0 - 1.0
    assert window_regret(played, STRETCHES, 20) == 12.0 - 1.0
    assert window_regret(played, STRETCHES, 30) is None
    measured = AdaptiveRegret(10, 7.5, 0.0, (3, 13))
    played = result([5.0, 8.0, 18.0, 20.0], adaptive=[measured])
    (row,) = regret_rows(summarise([played])[0], {0: STRETCHES}, taus=[10])
    assert row.adaptive[10].mean == 7.5
    played = result([10.0, 20.0])
    halves = [StretchMinimum(0, 15, 0.0, 0.0), StretchMinimum(15, 20, 0.0, 0.0)]
    assert regret_so_far(played, halves, np.array([15, 20])).tolist() == [15.0, 20.0]


def test_regrets_are_those_of_the_library():
    data = DataSet(name="jumping-target", rounds=120)
    stream = data.load(seed=1)
    learner = dw.OGD(stream.domain, horizon=120, lipschitz=stream.lipschitz)
    history = dw.play(learner, stream)
    played = run_trial(Trial(method="OGD", data=data, seed=1))
    true = dw.regret.adaptive_regret(history, 30)
    bound = window_regret(played, minima(data, 1), 30)
    assert 0.5 * true.upper < bound <= true.upper + 1e-9
    stream = data.load(seed=2)
    history = dw.play(dw.POLA(stream.domain, lipschitz=stream.lipschitz), stream)
    true = dw.regret.dynamic_regret(history, stream.comparators)
    played = run_trial(Trial(method="POLA", data=data, seed=2))
    (row,) = regret_rows(summarise([played])[0], {2: minima(data, 2)})
    assert row.dynamic.mean == pytest.approx(float(true), rel=1e-6)


def test_regret_is_unknown_where_a_seed_has_no_minimum():
    whole = result([5.0, 8.0, 18.0, 20.0])
    other = result([5.0, 8.0, 18.0, 20.0], method="POLA", seed=7)
    rows = regret_rows(summarise([whole, other])[0], {0: STRETCHES}, taus=[10])
    told = {row.title: row for row in rows}
    assert told["POLD"].dynamic.mean == 16.0
    assert told["POLD"].adaptive[10].mean == 9.0
    assert told["POLA"].dynamic is None and told["POLA"].adaptive == {}


def test_minima_are_solved_once_kept_and_shared(tmp_path):
    data = DataSet(name="shuttle-twin", rounds=40)
    first = stored_minima(tmp_path, data, seed=1)
    (file,) = tmp_path.glob("minima/*.json")
    written = file.read_bytes()
    assert stored_minima(tmp_path, data, seed=1) == first
    assert file.read_bytes() == written
    file.write_bytes(written[:-9])
    with pytest.raises(ValueError, match="delete it, and it is made again"):
        stored_minima(tmp_path, data, seed=1)
    data = DataSet(name="movielens-100k-twin", rounds=6)
    assert stored_minima(tmp_path, data, 0) == stored_minima(tmp_path, data, 4)
    assert len(list(tmp_path.glob("minima/*.json"))) == 2


def test_minima_are_below_what_any_point_suffers():
    data = DataSet(name="shuttle-twin", rounds=44)
    stream, rng = data.load(seed=3), np.random.default_rng(0)
    for found in minima(data, 3):
        assert found.gap <= 1e-5 * (found.end - found.start)
        for _ in range(20):
            x = rng.standard_normal((7, 9))
            x *= rng.uniform(0, 100) / np.linalg.norm(x, "nuc")
            suffered = sum(f.value(x) for f in stream.losses[found.start : found.end])
            assert suffered >= found.value - found.gap - 1e-9
