"""Tables of results."""

from __future__ import annotations

import csv
import io

from driftwolfe.experiments.summary import Spread, summarise
from driftwolfe.experiments.tables import RegretRow, method_table, trial_table, tuning_notes
from experiments.results_by_hand import result


def test_a_row_for_each_method_with_mean_and_deviation():
    results = [
        result([10.0, 20.0], seed=0),
        result([20.0, 40.0], seed=1),
        result([5.0, 6.0], "OGD"),
    ]
    (summary,) = summarise(results)
    head, _, pold, ogd = method_table(summary, [RegretRow("POLD", Spread(7.0, 2.0))]).splitlines()
    assert "LMO a round" in head and "gauges" not in head
    assert pold.startswith("| POLD |  | 2 | 20 | 1.50 ± 0.71 | 30 ± 14 |")
    assert pold.endswith("| 7.0 ± 2.0 |") and ogd.endswith("| – |")


def test_every_trial_is_a_line_of_csv():
    results = [
        result([10.0, 20.0], c=0.5, options={"grid": "tight"}),
        result([5.0, 6.0], "OGD", cut=True, label='a, "b"'),
    ]
    text = trial_table(results)
    assert text.count("\n") == 3 and "\r" not in text  # as other tools of the system end lines
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["label"] for row in rows] == ["POLD", 'a, "b"']
    assert rows[0]["options"] == '{"grid":"tight"}' and rows[1]["cut"] == "True"
    assert float(rows[0]["cumulative_loss"]) == 20.0 and rows[0]["lmo"] == "40"


def test_notes_tell_what_was_tried_and_what_was_cut():
    results = [
        result([10.0, 20.0], c=1.0, limit=60.0),
        result([12.0, 25.0], c=2.0, limit=60.0),
        result([9.0], c=0.5, limit=60.0, cut=True),
    ]
    tried, ahead = tuning_notes(summarise(results)[0])
    assert tried == (
        "POLD: c = 1 of 0.5, 1, 2; 60 s of processor time each, which ended c = 0.5 after 10 rounds."
    )
    assert "c = 0.5 was ahead of c = 1" in ahead


def test_notes_tell_when_the_best_lies_on_the_edge():
    results = [result([10.0], c=1.0, first=10), result([12.0], c=2.0, first=10)]
    assert tuning_notes(summarise(results)[0]) == [
        "POLD: c = 1 of 1, 2, chosen on the first 10 rounds of one order.",
        "POLD: the best c lies on the edge of what was tried.",
    ]


def test_the_whole_row_of_a_method():
    results = [
        result([10.0, 21.0], "POLD", c=0.5, seconds=1.5),
        result([5.0, 6.0, 9.0], "OGD", seconds=1.0),
    ]
    (summary,) = summarise(results)
    regrets = [
        RegretRow("POLD", Spread(7.0, 0.0), {200: Spread(3.0, 0.0), 50: Spread(1.25, 0.0)}),
        RegretRow("OGD", None, {50: Spread(4.0, 0.0)}),
    ]
    assert method_table(summary, regrets).splitlines() == [
        "| method | c | seeds | rounds | loss a round | cumulative loss | seconds | LMO a round | "
        "dynamic regret | regret, worst 50 rounds | regret, worst 200 rounds |",
        "| --- |" + " ---: |" * 10,
        # Two calls of the oracle in each of the 20 and 30 rounds; the clock was read at 1.5 and 3 s.
        "| POLD | 0.5 | 1 | 20 | 1.05 | 21 | 3 | 2 | 7 | 1.25 | 3 |",
        "| OGD |  | 1 | 30 | 0.3 | 9 | 3 | 2 | – | 4 | – |",
    ]
    without = method_table(summary).splitlines()[0]
    assert without.endswith("| LMO a round |")
