"""A trial is the same game as one played by hand, also after it was killed."""

import msgspec
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import driftwolfe as dw
from devices import needs_torch
from driftwolfe.ensemble import GeometricCover, threads
from driftwolfe.experiments import running as module
from driftwolfe.experiments.running import make_learner, run_trial, step_options
from driftwolfe.experiments.trial import DataSet
from experiments.small import DATA, outcome_of, trial

HUNDRED = DataSet(name="jumping-target", rounds=100)


@pytest.fixture(scope="module")
def stream():
    return DATA.load(seed=0)


@pytest.mark.parametrize("method", ["OGD", "BOGDIP", "POLD", "POLA", "PAMO", "MultiOCG", "Ader"])
def test_losses_and_calls_are_those_of_a_game_played_by_hand(method, stream):
    result = run_trial(trial(method))
    learner = getattr(dw.learners, method)(stream.domain, horizon=40, lipschitz=stream.lipschitz)
    history = dw.play(learner, stream)
    at = np.array([10, 20, 30, 40]) - 1
    assert result.rounds == [10, 20, 30, 40]
    np.testing.assert_allclose(result.loss, history.cumulative_loss[at], rtol=1e-12)
    for name, calls in history.oracle_calls.items():
        assert getattr(result, name) == np.cumsum(calls)[at].tolist()
    assert result.drifts == [10, 20, 30]
    assert result.stream == stream.name


def test_a_run_can_be_repeated_and_says_what_was_measured():
    one, other = (outcome_of(run_trial(trial("POLA", c=0.5, seed=3, taus=(10,)))) for _ in "ab")
    assert one == other
    assert outcome_of(run_trial(trial("POLA", c=0.5, seed=4, taus=(10,)))) != one
    facts = run_trial(trial()).environment
    assert facts["numpy"] == np.__version__
    assert {"cpu", "cores", "python", "date", "blas", "driftwolfe"} <= facts.keys()
    assert msgspec.json.encode(facts)
    result = run_trial(trial("POLA", data=HUNDRED))
    assert all(a <= b for a, b in zip(result.seconds, result.seconds[1:], strict=False))
    assert 0.0 < result.seconds[0] < result.seconds[-1] < result.wall + 0.01


def test_the_last_reading_is_at_the_end():
    result = run_trial(trial(data=DataSet(name="jumping-target", rounds=43)))
    assert result.rounds == [10, 20, 30, 40, 43]
    assert len(result.loss) == len(result.seconds) == 5


def test_seconds_are_those_of_rounds_and_not_of_reading_weights(monkeypatch):
    now = [5.0]
    monkeypatch.setattr(module.time, "thread_time", lambda: now[0])
    learner = dw.POLA(dw.L1Ball(3), lipschitz=1.0)
    recorder = module.Recorder(learner, 43)
    monkeypatch.setattr(recorder, "_read_weights", lambda: now.append(now.pop() + 100.0))
    for _ in range(43):
        learner.update(dw.losses.LinearLoss(np.ones(3)))
        now[0] += 1.0
        recorder(learner, 0.5)
    assert recorder.curves["seconds"] == recorder.curves["rounds"] == [10, 20, 30, 40, 43]


def test_adaptive_regret_is_that_of_the_game(stream):
    result = run_trial(trial("POLA", taus=(5, 20)))
    learner = dw.POLA(stream.domain, horizon=40, lipschitz=stream.lipschitz)
    history = dw.play(learner, stream)
    for found, tau in zip(result.adaptive, (5, 20), strict=True):
        by_hand = dw.regret.adaptive_regret(history, tau, 1e-3)
        assert found.tau == tau
        assert found.value == pytest.approx(float(by_hand))
        assert found.gap == pytest.approx(by_hand.gap)
        assert found.window == by_hand.window


def test_windows_longer_than_the_game_are_refused_before_it(monkeypatch):
    monkeypatch.setattr(module, "play", None)  # would fail
    with pytest.raises(ValueError, match="taus must be at most the 40 rounds, got 41"):
        run_trial(trial(taus=(10, 41)))


def test_weights_of_a_grid_sum_to_one():
    result = run_trial(trial("POLD", data=HUNDRED))
    table = result.weights
    assert table.rounds == [0, 20, 40, 60, 80, 100]
    assert len(set(table.experts)) == len(table.experts) > 3
    assert None not in [entry for row in table.values for entry in row]
    np.testing.assert_allclose(np.sum(table.values, axis=1), 1.0, atol=1e-4)
    learner = make_learner(trial("POLD", data=HUNDRED), HUNDRED.load(seed=0))
    np.testing.assert_allclose(table.values[0], learner.expert_weights, atol=1e-5)
    assert table.experts == learner.expert_names
    assert table.values[-1] != table.values[0]
    assert run_trial(trial("OGD")).weights is None


def test_weights_of_a_cover_are_missing_where_an_expert_is_asleep():
    stopped = DataSet(name="jumping-target", rounds=47)
    table = run_trial(trial("POLA", data=stopped)).weights
    assert table.rounds == [0, 20, 40, 47]
    lengths = [int(name.split()[0]) for name in table.experts]
    assert lengths[:5] == [1, 2, 4, 8, 16]
    for t, row in zip(table.rounds, table.values, strict=True):
        awake = {end - start + 1 for start, end in GeometricCover().active(t + 1)}
        assert {n for n, entry in zip(lengths, row, strict=True) if entry is not None} == awake
        assert sum(entry or 0.0 for entry in row) == pytest.approx(1.0, abs=1e-4)
    assert None in table.values[0]


@pytest.mark.parametrize("method", ["PAMO", "SAOL", "MultiOCG", "Ader"])
def test_no_expert_gets_lost_in_the_table(method):
    """Two of one name would be one column."""
    for row in run_trial(trial(method, data=HUNDRED)).weights.values:
        assert sum(entry or 0.0 for entry in row) == pytest.approx(1.0, abs=1e-4)


def test_runs_keep_to_one_thread_and_leave_the_setting_as_it_was(monkeypatch):
    seen = []

    def watched(*arguments, **options):
        seen.append((threads.threads(), max(pool["num_threads"] for pool in threadpool_info())))
        return dw.play(*arguments, **options)

    monkeypatch.setattr(module, "play", watched)
    threads.set_threads(2)
    try:
        with threadpool_limits(2):
            before = [pool["num_threads"] for pool in threadpool_info()]
            run_trial(trial())
            with pytest.raises(ValueError, match="taus"):
                run_trial(trial(taus=(41,)))
            assert threads.chosen() == 2
            assert [pool["num_threads"] for pool in threadpool_info()] == before
    finally:
        threads.set_threads(None)
    assert seen == [(1, 1)]


@pytest.mark.parametrize(("method", "step"), [("POLD", 2 * 100**-0.75), ("Ader", 0.2)])
def test_c_gives_the_steps_of_the_papers_experiments(method, step):
    learner = make_learner(trial(method, data=HUNDRED, c=2.0), HUNDRED.load(seed=0))
    first = float(learner.expert_names[0].removeprefix("η = "))
    assert first == pytest.approx(step, rel=5e-3)


def test_an_option_that_is_given_counts_more_than_what_c_implies():
    assert step_options("POLD", 1.0)["grid"] == "experiment"
    learner = make_learner(trial("POLD", c=1.0, options={"grid": "paper"}), DATA.load(seed=0))
    assert learner.grid == "paper"


@pytest.mark.parametrize("method", ["OGD", "BOGDIP", "POLD", "POLA", "PAMO", "Ader", "MultiOCG"])
def test_c_makes_a_difference(method):
    small, large = (run_trial(trial(method, c=c)).loss[-1] for c in (0.01, 1.0))
    assert small != large


@needs_torch
def test_a_trial_on_a_device_is_the_same_trial():
    asked = trial("POLD", data=DataSet(name="movielens-100k-twin", rounds=21), c=1e4)
    here, there = run_trial(asked), run_trial(asked, device="torch")
    assert there.loss == pytest.approx(here.loss, rel=1e-6)
    assert there.lmo == here.lmo
    facts = there.environment
    assert (facts["device"], facts["gpu"]) == ("torch", None)
    assert facts["torch"]
    assert here.environment["device"] == "cpu"


def test_a_set_for_the_cpu_is_refused_on_a_device():
    composite = dw.ProductDomain([dw.L1Ball(2), dw.L1Ball(2)])
    stream = dw.streams.drift.Stream([], "none", 1.0, domain=composite)
    with pytest.raises(ValueError, match="ProductDomain is for the cpu only"):
        module.on_device(stream, "cuda")
