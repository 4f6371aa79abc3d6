"""Playing and recording."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import SquaredDistance


def stream(rounds=30):
    rng = np.random.default_rng(0)
    return [SquaredDistance(rng.standard_normal(3)) for _ in range(rounds)]


def test_the_history_is_what_happened():
    losses, ball = stream(), dw.L1Ball(3)
    learner = dw.POLD(ball, horizon=30, oracle="halfspace")
    history = dw.play(learner, losses, record_decisions=True, record_weights=True)
    assert len(history) == len(history.decisions) == len(history.weights) == 30
    assert history.functions == losses
    assert history.domain is ball
    for suffered, loss, x in zip(history.losses, losses, history.decisions, strict=True):
        assert suffered == pytest.approx(loss.value(x))
    np.testing.assert_allclose(history.cumulative_loss[-1], history.losses.sum())
    np.testing.assert_allclose(history.average_loss[-1], history.losses.mean())
    assert (history.seconds > 0).all()
    assert history.lmo.sum() > 0 == history.projection.sum() == history.gauge.sum()
    assert set(history.oracle_calls) == {"lmo", "projection", "gauge", "membership"}


def test_oracle_calls_are_counted_per_round():
    learner = dw.OnlineFrankWolfe(dw.L1Ball(3), horizon=30)
    assert (dw.play(learner, stream()).lmo == 1).all()
    again = dw.play(learner, stream())
    assert again.lmo.sum() == 30
    assert learner.lmo_calls == 60
    assert (dw.play(dw.OGD(dw.L1Ball(3)), stream()).projection == 1).all()
    gauges = dw.play(dw.learners.PAMO(dw.L1Ball(3), gauge="exact"), stream()).gauge
    assert gauges.sum() > 30
    learner = dw.learners.PAMO(dw.L1Ball(3), lipschitz=1.0)
    assert dw.play(learner, stream()).membership.sum() == learner.oracle_calls.membership > 0


def test_progress_is_quiet_and_only_what_is_wanted_is_kept(capsys):
    dw.play(dw.OGD(dw.L1Ball(3)), stream())
    assert capsys.readouterr().err == ""
    dw.play(dw.OGD(dw.L1Ball(3)), stream(), progress=True)
    assert "round" in capsys.readouterr().err
    history = dw.play(dw.OGD(dw.L1Ball(3)), stream(), keep_losses=False, record_weights=True)
    assert history.functions == history.weights == history.decisions == []


def test_a_history_is_printed_in_one_short_line():
    losses = [dw.losses.LinearLoss([1.0, -0.5])] * 2000
    history = dw.play(dw.OnlineFrankWolfe(dw.L1Ball(2), lipschitz=1.0), losses)
    shown = repr(history)
    assert shown == str(history) and "\n" not in shown and len(shown) < 120
    total = sum(history.losses.tolist())
    assert shown.startswith(f"History(rounds=2,000, total loss={total:.6g}, calls: lmo=2,000, ")
    assert repr(dw.play(dw.OGD(dw.L1Ball(2), horizon=9), [])).startswith(
        "History(rounds=0, total loss=0, calls: none, "
    )
    assert dw.play(dw.OGD(dw.L1Ball(3)), []).cumulative_loss.size == 0


@pytest.mark.parametrize("delay", [2, 7, 50])
@pytest.mark.parametrize("make", [dw.OGD, dw.POLD, dw.POLAR])
def test_a_late_game_is_that_of_tickets_by_hand(make, delay):
    losses = stream()
    learner, other = make(dw.L1Ball(3), horizon=30), make(dw.L1Ball(3), horizon=30)
    history = dw.play(learner, losses, delay=delay, record_decisions=True, record_weights=True)
    tickets, decisions, suffered = [], [], np.empty(30)
    for t in range(30 + delay):
        if 0 <= t - delay < 30:
            suffered[t - delay] = other.update(losses[t - delay], tickets[t - delay])
        if t < 30:
            tickets.append(other.ask())
            decisions.append(tickets[-1].decision)
    np.testing.assert_allclose(history.losses, suffered)
    np.testing.assert_allclose(history.decisions, decisions)
    np.testing.assert_allclose(learner.decision, other.decision)
    assert learner.tickets == [] and learner.t == 30
    assert history.functions == losses
    assert history.lmo.sum() == learner.oracle_calls.lmo
    for weights in history.weights[:delay]:  # no loss is known yet
        np.testing.assert_array_equal(weights, history.weights[0])


def test_a_late_game_tells_callbacks_when_losses_come():
    seen = []
    learner = dw.OGD(dw.L1Ball(3), horizon=5)
    dw.play(learner, stream(5), [lambda own, _: seen.append((own.t, len(own.tickets)))], delay=3)
    assert seen == [(1, 2), (2, 2), (3, 2), (4, 1), (5, 0)]
    at_once, next_round, late = (
        dw.play(dw.POLD(dw.L1Ball(3), 30), stream(), delay=delay).losses for delay in (0, 1, 2)
    )
    assert (at_once == next_round).all() and (at_once != late).any()


class Foreign:
    """Has a decision and an update, and no more."""

    def __init__(self, domain=None):
        self.x, self.seen = np.zeros(3), []

    @property
    def decision(self):
        return self.x

    def update(self, loss):
        self.seen.append(loss)
        self.x += 0.1


def test_a_foreign_learner_plays():
    losses, told = stream(5), []
    learner = Foreign()
    callback = [lambda own, loss: told.append((own, loss))]
    history = dw.play(learner, losses, callback, record_decisions=True, record_weights=True)
    assert learner.seen == losses == history.functions
    np.testing.assert_allclose(history.decisions, 0.1 * np.arange(5)[:, None] * np.ones(3))
    expected = [loss.value(x) for loss, x in zip(losses, history.decisions, strict=True)]
    assert history.losses.tolist() == expected == [loss for _, loss in told]
    assert all(own is learner for own, _ in told)
    assert history.domain is None and history.lmo.size == 0 and history.weights == []
    assert history.oracle_calls["projection"].size == 0 and "calls: none" in repr(history)


def test_a_foreign_learner_sees_losses_late_and_ignores_constraints():
    losses, learner = stream(5), Foreign()
    limits = [SquaredDistance(np.zeros(3))] * 5
    history = dw.play(learner, losses, delay=3, constraints=limits)
    points = 0.1 * np.array([0, 0, 0, 1, 2])[:, None] * np.ones(3)
    np.testing.assert_allclose(
        history.losses, [loss.value(x) for loss, x in zip(losses, points, strict=True)]
    )
    np.testing.assert_allclose(history.constraint_values, 0.5 * (points**2).sum(axis=1))
    assert learner.seen == losses


def test_a_round_without_a_constraint_has_none():
    told, limit = [], SquaredDistance(np.full(3, 0.1))

    class Watching(dw.contrib.LongTerm):
        def update(self, loss, constraint=None):
            told.append(constraint)
            return super().update(loss, constraint=constraint)

    limits = [None, limit, None, limit, limit]
    history = dw.play(Watching(dw.L1Ball(3), lipschitz=1.0), stream(5), constraints=limits)
    assert told == limits
    assert (history.constraint_values == -np.inf).tolist() == [each is None for each in limits]


def test_classes_and_functions_make_the_learner():
    ball = dw.L1Ball(3)
    known = dw.streams.Stream(stream(), domain=ball)
    expected = dw.play(dw.POLAR(ball), stream()).losses.tolist()
    for maker in (dw.POLAR, lambda domain: dw.POLAR(domain), lambda: dw.POLAR(ball)):
        history = dw.play(maker, known)
        assert history.losses.tolist() == expected and history.domain is ball
    assert dw.play(Foreign, known).domain is ball
    assert dw.play(Foreign, stream()).domain is dw.play(lambda: Foreign(), stream()).domain is None


@pytest.mark.parametrize("measure", ["static_regret", "worst_case_dynamic_regret"])
def test_a_game_without_a_set_has_dynamic_regret_only(measure):
    history = dw.play(Foreign(), stream())
    regret = dw.regret.dynamic_regret(history, [loss.target for loss in stream()])
    assert regret == pytest.approx(history.losses.sum())
    with pytest.raises(ValueError, match="the game names no set"):
        getattr(dw.regret, measure)(history)


def test_refused_learners(tmp_path):
    for wrong in (3, None, lambda: 3, np.ones(3)):
        with pytest.raises(TypeError, match="must have decision and update"):
            dw.play(wrong, stream())
    for maker in (dw.POLAR, lambda domain: dw.POLAR(domain)):
        with pytest.raises(ValueError, match=r"name no set; .*Stream\(losses, domain=\.\.\.\)"):
            dw.play(maker, stream())
    learner = Foreign()
    with pytest.raises(ValueError, match=r"only a driftwolfe\.Learner has checkpoints"):
        dw.play(learner, stream(), checkpoint=tmp_path / "game")
    infinite = dw.losses.PortfolioLoss(np.ones(3))
    for bad, told in ((np.ones(3), "LinearLoss"), (infinite, "not finite")):
        with pytest.raises((TypeError, ValueError), match=told):
            dw.play(learner, [bad])
    assert learner.seen == []


def test_refused_delays(tmp_path):
    learner = dw.OGD(dw.L1Ball(3), horizon=30)
    for name, given in {"delay": 2, "record_decisions": True, "record_weights": True}.items():
        with pytest.raises(ValueError, match=f"give {name} or checkpoint, not both"):
            dw.play(learner, stream(), checkpoint=tmp_path / "game", **{name: given})
    with pytest.raises(ValueError, match="delay"):
        dw.play(learner, stream(), delay=-1)
    assert learner.t == 0 and learner.tickets == []


def test_a_watched_game_is_played_round_by_round(monkeypatch):
    monkeypatch.setattr(dw.POLD, "runs_ahead", True)  # as with several threads
    stream = [dw.losses.AbsoluteEntries([t % 60], [t % 50], [1.0]) for t in range(12)]
    ball, seen = dw.TraceNormBall((60, 50), radius=5.0, representation="factored"), []
    learner = dw.POLD(ball, 12, lipschitz=1.0)
    dw.play(learner, stream, callbacks=[lambda each, value: seen.append(each.t)])
    assert seen == list(range(1, 13))
