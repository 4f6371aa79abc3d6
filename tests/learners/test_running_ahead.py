"""Experts that run ahead in threads play the same game, to the last bit."""

import copy
import threading

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import AbsoluteEntries
from learners.families import play_all, some_entries

SHAPE = (90, 80)
ROUNDS = 70  # beyond the first epoch


@pytest.fixture(autouse=True)
def reset():
    yield
    dw.set_threads(None)


def losses(rounds, seed=0):
    return some_entries(rounds, (70, 60), 15, seed)


def pold(horizon=ROUNDS, **options):
    ball = dw.TraceNormBall(SHAPE, radius=20.0, representation="factored")
    return dw.POLD(ball, horizon=horizon, lipschitz=4.0, **options)


LEARNERS = {
    "POLD": pold,
    "POLD by doubling": lambda: pold(horizon=None),
    "POLD with a budget": lambda: pold(tuning="certified", oracle=dw.Oracle(lmo_budget=60.0)),
    "POLD exact": lambda: pold(oracle="exact"),
    "POLD, asking for membership": lambda: pold(oracle="corrective", tuning="certified"),
    "Ader": lambda: dw.Ader(
        dw.TraceNormBall(SHAPE, radius=20.0, representation="factored"), ROUNDS, 4.0
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name.endswith(("exact", "budget")) else ())
        for name in LEARNERS
    ],
)
def test_the_same_game_for_any_number_of_threads(name):
    games, stream = [], losses(ROUNDS)
    for number in (1, 2, 3) if name == "POLD" else (1, 2):
        dw.set_threads(number)
        learner = LEARNERS[name]()
        assert learner.runs_ahead == (number > 1)
        games.append((dw.play(learner, stream), learner))
    alone, first = games[0]
    for history, learner in games[1:]:
        np.testing.assert_array_equal(history.losses, alone.losses)
        np.testing.assert_array_equal(history.lmo, alone.lmo)
        np.testing.assert_array_equal(history.projection, alone.projection)
        np.testing.assert_array_equal(history.membership, alone.membership)
        np.testing.assert_array_equal(learner.expert_weights, first.expert_weights)
        np.testing.assert_array_equal(learner.decision.toarray(), first.decision.toarray())
        assert learner.t == first.t == ROUNDS
        if name != "POLD by doubling":  # random columns of later projections are numbered on
            blocks = learner._experts.blocks.tolist()
            assert learner._experts.projections == sum(ROUNDS // block for block in blocks)
        assert learner.oracle_calls == first.oracle_calls
        assert learner.lipschitz == first.lipschitz
        assert learner.bound() == first.bound()
        later, twin = losses(15, seed=1), copy.deepcopy(first)
        assert [learner.update(f) for f in later] == [twin.update(f) for f in later]
        assert history.seconds.shape == (ROUNDS,) and (history.seconds > 0).all()


@pytest.mark.parametrize("name", [name for name in LEARNERS if not name.endswith("exact")])
def test_what_can_run_ahead_does(name, monkeypatch):
    """Where that fails, rounds are played one by one, to the same decisions: it would be seen by no other test."""
    dw.set_threads(2)
    learner = LEARNERS[name]()
    monkeypatch.delattr(dw.Learner, "counted_update")
    assert len(learner.update_many(losses(20))) == learner.t == 20


def test_a_loss_that_is_refused_ends_the_game_where_it_stands():
    class Broken(AbsoluteEntries):
        def value_and_slope_at(self, score):
            raise RuntimeError("broken")

        value_at = value_and_slope_at

    good = losses(20)
    bad = [*good[:11], Broken([0], [0], [1.0]), *good[12:]]
    dw.set_threads(2)
    ahead, alone = pold(), pold()
    with pytest.raises(RuntimeError, match="broken"):
        dw.play(ahead, bad)
    dw.set_threads(1)
    play_all(alone, good[:11])
    assert ahead.t == alone.t == 11
    assert ahead.oracle_calls == alone.oracle_calls
    np.testing.assert_array_equal(ahead.decision.toarray(), alone.decision.toarray())


def test_nobody_runs_ahead_of_what_is_not_known_yet():
    dw.set_threads(2)
    ball = dw.TraceNormBall(SHAPE, radius=20.0, representation="factored")
    assert not dw.POLD(ball, 90).runs_ahead  # steps wait for the largest gradient of all
    assert not dw.POLD(ball, 90, 4.0, feedback="linear").runs_ahead
    assert not dw.POLA(ball, lipschitz=4.0).runs_ahead
    assert not dw.POLAR(ball, lipschitz=4.0).runs_ahead
    assert not dw.POLD(dw.L1Ball(3), 90, 4.0).runs_ahead
    learner, stream = pold(), losses(30)

    def reacting():
        for t, loss in enumerate(stream):
            assert learner.t == t
            yield loss

    dw.play(learner, reacting())
    watched = pold()
    dw.play(watched, stream, callbacks=[lambda one, value: None], record_weights=True)
    np.testing.assert_array_equal(watched.expert_weights, learner.expert_weights)


def test_many_updates_at_once_are_as_many_updates():
    learner, other = dw.OGD(dw.L1Ball(2), 20, 1.0), dw.OGD(dw.L1Ball(2), 20, 1.0)
    stream = [dw.losses.LinearLoss([1.0, t % 3]) for t in range(20)]
    rounds = learner.update_many(stream)
    assert [done.value for done in rounds] == [other.update(loss) for loss in stream]
    assert [done.projection for done in rounds] == [1] * 20
    assert learner.update_many([]) == []


def test_a_users_own_functions_are_asked_in_order_and_in_one_thread():
    asked = []

    class Own:
        def __init__(self, number, loss):
            self.number, self.loss = number, loss

        def value(self, x):
            asked.append((self.number, threading.get_ident()))
            return self.loss.value(x)

        def gradient(self, x):
            return self.loss.gradient(x)

    dw.set_threads(2)
    learner, stream = pold(), losses(12)
    history = dw.play(learner, [Own(t, loss) for t, loss in enumerate(stream)])
    numbers, idents = zip(*asked, strict=True)
    assert list(numbers) == sorted(numbers)
    assert set(idents) == {threading.get_ident()}
    np.testing.assert_allclose(history.losses, dw.play(pold(), stream).losses, rtol=1e-9)
