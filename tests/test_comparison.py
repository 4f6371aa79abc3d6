"""`dw.compare`: the games, what is measured, and what is refused."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.learners.base import as_loss

BALL = dw.L2Ball(3)


def jumps(seed, rounds=120):
    return dw.streams.synthetic.piecewise_constant(BALL, rounds=rounds, pieces=4, seed=seed)


class Halfway(dw.Learner):
    """One of a user's own: moves half of the way against each gradient."""

    STATE = ("_x",)

    def __init__(self, domain, step=0.5):
        super().__init__(domain)
        self.step, self._x = step, domain.origin()

    @property
    def decision(self):
        return self._x.copy()

    def update(self, loss):
        value, gradient = as_loss(loss).value_and_gradient(self._x)
        self._x = self._counted.project(self._x - self.step * gradient)
        self.t += 1
        return float(value)


def test_own_learners_and_ours_play_the_same_streams():
    mine = Halfway(BALL)
    result = dw.compare(
        {"mine": mine, "POLA": dw.POLA, "stays": dw.Constant}, jumps, seeds=3, tau=20
    )
    assert mine.t == 0  # copies played
    for seed in range(3):
        stream = jumps(seed)
        alone = dw.play(Halfway(BALL), stream)
        game = result.histories["mine"][seed]
        assert game.losses.tolist() == alone.losses.tolist()
        measures = {name: values[seed] for name, values in result.measures["mine"].items()}
        assert measures["loss per round"] == pytest.approx(alone.losses.mean())
        regret = dw.regret.dynamic_regret(alone, stream.comparators)
        assert measures["dynamic regret"] == pytest.approx(float(regret))
        worst = dw.regret.adaptive_regret(alone, 20)
        assert measures["regret, worst 20 rounds"] == pytest.approx(float(worst))
        assert measures["projections per round"] == 1.0
    apart = result.difference("mine", "stays")
    by_hand = np.array(
        [
            a.losses.mean() - b.losses.mean()
            for a, b in zip(result.histories["mine"], result.histories["stays"], strict=True)
        ]
    )
    assert apart.mean == pytest.approx(by_hand.mean())
    assert apart.deviation == pytest.approx(by_hand.std(ddof=1) / np.sqrt(3))
    lines = str(result).splitlines()
    assert [line.split()[0] for line in lines] == ["learner", "mine", "POLA", "stays"]
    assert "–" in lines[3]  # it calls no projection
    assert result._repr_html_().count("<tr>") == 4
    assert repr(result) == "Comparison(mine, POLA, stays: 3 streams of 120 rounds)"


def test_one_stream_changes_its_order_between_drifts():
    rng = np.random.default_rng(0)
    losses = [dw.losses.LinearLoss(g) for g in rng.standard_normal((40, 3))]
    stream = dw.streams.Stream(losses, "noise", 9.0, None, BALL, drifts=(10, 25))
    result = dw.compare({"stays": dw.Constant}, stream, seeds=[0, 7])
    first, other = (game.functions for game in result.histories["stays"])
    assert all(a is b for a, b in zip(first, losses, strict=True))
    assert any(a is not b for a, b in zip(other, losses, strict=True))
    for start, end in ((0, 10), (10, 25), (25, 40)):
        assert {id(f) for f in other[start:end]} == {id(f) for f in losses[start:end]}
    assert result.drifts == (10, 25)


def test_names_in_html_are_text():
    result = dw.compare({"<b>": dw.Constant(BALL)}, list(jumps(0)))
    assert "<b>" not in result._repr_html_()


class Failing(Halfway):
    STATE = ()

    def update(self, loss):
        raise ZeroDivisionError("on purpose")


@pytest.mark.parametrize(
    ("learners", "stream", "options", "kind", "told"),
    [
        ({}, jumps, {}, ValueError, "at least one learner"),
        ({"a": 3}, jumps, {}, TypeError, "'a' must be a Learner or a function"),
        ({"a": dw.POLA}, list(jumps(0)), {}, ValueError, "name no set"),
        ({"a": dw.POLA(BALL)}, list(jumps(0)), {"seeds": 2}, ValueError, "a function of the seed"),
        ({"a": dw.POLA(BALL)}, jumps, {"seeds": 0}, ValueError, "seeds"),
        (
            {"a": dw.POLA(BALL)},
            dw.streams.synthetic.rotating_quadratic(BALL, rounds=9, seed=0),
            {"seeds": 2},
            ValueError,
            "move between its drifts",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(learners, stream, options, kind, told):
    with pytest.raises(kind, match=told):
        dw.compare(learners, stream, **options)


def test_a_learner_that_has_played_is_refused_and_failures_name_the_game():
    used = dw.POLA(BALL)
    used.update(jumps(0)[0])
    with pytest.raises(ValueError, match="'used' has played 1 rounds already"):
        dw.compare({"used": used}, jumps)
    with pytest.raises(ZeroDivisionError) as raised:
        dw.compare({"good": dw.Constant, "bad": Failing(BALL)}, jumps, seeds=[4])
    assert raised.value.__notes__ == ["raised in the game of 'bad', seed 4"]
