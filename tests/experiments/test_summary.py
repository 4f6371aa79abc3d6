"""Which results stand for a method."""

from driftwolfe.experiments.summary import summarise
from driftwolfe.experiments.trial import DataSet
from experiments.small import made_up, trial


def _result(method="OGD", rounds=30, loss=1.0, **fields):
    curve = [loss * rounds / 2, loss * rounds]
    calls = {key: [1, 2] for key in ("lmo", "projection", "gauge")}
    return made_up(
        trial(method, **fields),
        rounds=[rounds // 2, rounds],
        loss=curve,
        seconds=[0.1, 0.2],
        **calls,
    )


def _only(results):
    (summary,) = summarise(results)
    return summary


def test_there_is_a_summary_for_each_data_set_in_order():
    sets = [
        DataSet(name="shuttle-twin"),
        DataSet(name="jumping-target"),
        DataSet(name="jumping-target", rounds=40),
    ]
    results = [_result(data=data, seed=seed) for seed in (0, 1) for data in sets]
    summaries = summarise(results)
    assert [s.series[0].data for s in summaries] == sets
    assert all(len(s.series) == 1 and len(s.series[0].results) == 2 for s in summaries)
    assert summarise([]) == []


def test_c_is_chosen_by_the_least_loss():
    summary = _only([_result(c=c, loss=abs(c - 2.0) + 1) for c in (4.0, 2.0, 1.0)])
    assert summary.chosen["OGD"].c == 2.0
    assert [s.c for s in summary.tuning("OGD")] == [1.0, 2.0, 4.0]


def test_more_rounds_count_more_than_seeds_and_those_more_than_loss():
    short = [_result(c=1.0, rounds=20, loss=0.1, first=20, seed=seed) for seed in range(5)]
    long = [_result(c=2.0, rounds=40, loss=0.9)]
    assert _only(short + long).chosen["OGD"].c == 2.0
    twice = [_result(c=3.0, rounds=40, loss=1.5, seed=seed) for seed in range(2)]
    assert _only(short + long + twice).chosen["OGD"].c == 3.0


def test_the_mean_over_seeds_decides():
    lucky = [_result(c=1.0, loss=loss, seed=seed) for seed, loss in enumerate((0.1, 3.0))]
    steady = [_result(c=2.0, loss=1.0, seed=seed) for seed in range(2)]
    assert _only(lucky + steady).chosen["OGD"].c == 2.0


def test_methods_are_in_the_order_of_the_sweep_and_named_by_their_labels():
    results = [_result("POLA"), _result("POLA", label="cold"), _result("Ader")]
    summary = _only(results)
    assert summary.titles == ["POLA", "cold", "Ader"]
    assert list(summary.chosen) == summary.titles
    assert summary.stream == "made up"
    assert summary.of("nobody") == []


def test_where_c_was_tuned_on_fewer_rounds_the_tuning_is_those():
    tuning = [_result(c=c, rounds=20, loss=c, first=20) for c in (4.0, 0.5, 1.0)]
    final = [_result(c=0.5, rounds=40, loss=0.5, seed=seed) for seed in range(2)]
    summary = _only(final + tuning)
    assert [s.c for s in summary.tuning("OGD")] == [0.5, 1.0, 4.0]
    assert summary.chosen["OGD"].trial.first is None


def test_a_method_without_c_was_not_tuned():
    assert _only([_result()]).tuning("OGD") == []
