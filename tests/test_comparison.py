"""`dw.compare`: the games, what is measured, and what is refused."""

import sys
from functools import partial

import numpy as np
import pytest
import scipy.stats

import driftwolfe as dw
from driftwolfe.learners.base import as_loss
from driftwolfe.state import State

BALL = dw.L2Ball(3)


def jumps(seed, rounds=120):
    return dw.streams.synthetic.piecewise_constant(BALL, rounds=rounds, pieces=4, seed=seed)


class Halfway(dw.Learner):
    """One of a user's own: moves half of the way against each gradient."""

    _x: State[object]

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


class Plain:
    """Not even a `Learner`: gradient steps from 0, back to the unit ball."""

    def __init__(self, step=0.5):
        self.step, self.x = step, np.zeros(3)

    @property
    def decision(self):
        return self.x

    def update(self, loss):
        self.x -= self.step * loss.gradient(self.x)  # in place, and nothing is returned
        self.x /= max(1.0, np.linalg.norm(self.x))


class Projecting(Plain):
    """On a set, whose calls it counts; its decision is a method."""

    def __init__(self, domain, step=0.5):
        super().__init__(step)
        self.domain = dw.CountedDomain(domain)
        self.oracle_calls = self.domain.calls

    def decision(self):
        return self.x.tolist()

    def update(self, loss):
        self.x = self.domain.project(self.x - self.step * loss.gradient(self.x))
        return "not a loss"


def test_anything_with_decision_and_update_is_a_learner():
    learner = Plain()
    contenders = {
        "learner": learner,
        "class": Plain,
        "on a set": Projecting,
        "made": lambda place=BALL: Projecting(place),
        "made on a set": lambda domain: Projecting(domain),
        "partial": partial(Projecting, step=0.5),
        "ours": Halfway,
        "ours, made": lambda domain: Halfway(domain),
    }
    result = dw.compare(contenders, jumps, seeds=3)
    assert not learner.x.any()  # copies played
    for seed in range(3):
        expected = dw.play(Halfway(BALL), jumps(seed)).losses
        for name in contenders:
            game = result.histories[name][seed]
            np.testing.assert_allclose(game.losses, expected, atol=1e-12, err_msg=name)
            assert game.domain.unwrapped is BALL or isinstance(game.domain, dw.L2Ball)
    for name in ("on a set", "made", "partial", "ours"):
        assert result.measures[name]["projections per round"] == [1.0] * 3
    assert "LMO calls per round" not in result.measures["class"]  # not counted, so not known
    regrets = [each["dynamic regret"] for each in result.measures.values()]
    for regret in regrets:
        assert regret == pytest.approx(regrets[0])


def test_a_class_finds_the_set_of_the_stream_or_of_another_learner():
    losses = list(jumps(0))
    stream = dw.streams.Stream(losses, domain=BALL)
    alone = dw.compare({"POLAR": dw.POLAR}, stream).histories["POLAR"][0]
    assert alone.domain is BALL
    beside = dw.compare({"one": Projecting(BALL), "POLAR": dw.POLAR}, losses)
    assert beside.histories["POLAR"][0].losses.tolist() == alone.losses.tolist()


def test_comparators_of_a_plain_list_of_losses():
    stream = jumps(0)
    points = np.array(stream.comparators)
    known = dw.compare({"a": Plain(), "b": dw.POLAR(BALL)}, stream)
    for given in (points, list(points)):
        listed = dw.compare({"a": Plain(), "b": dw.POLAR(BALL)}, list(stream), comparators=given)
        for name in "ab":
            told, expected = listed.measures[name], known.measures[name]
            assert told["dynamic regret"] == expected["dynamic regret"]
    without = dw.compare({"a": Plain()}, list(stream), comparators=points)  # no set anywhere
    assert without.histories["a"][0].domain is None
    assert without.measures["a"]["dynamic regret"] == known.measures["a"]["dynamic regret"]
    still = dw.compare({"a": Plain()}, jumps, seeds=2, comparators=np.zeros((120, 3)))
    for seed, game in enumerate(still.histories["a"]):
        value = sum(loss.value(np.zeros(3)) for loss in jumps(seed))
        found = still.measures["a"]["dynamic regret"][seed]
        assert found == pytest.approx(game.losses.sum() - value)


def test_intervals_are_those_of_a_paired_t_test():
    result = dw.compare({"a": Plain(), "b": dw.POLAR(BALL)}, jumps, seeds=5)
    ours, theirs = (result.measures[name]["dynamic regret"] for name in "ab")
    test = scipy.stats.ttest_rel(ours, theirs)
    for confidence in (0.95, 0.5):
        low, high = result.interval("a", "b", "dynamic regret", confidence)
        assert (low, high) == pytest.approx(tuple(test.confidence_interval(confidence)))
    mean, error = result.difference("a", "b", "dynamic regret")
    assert mean == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert error == pytest.approx(mean / test.statistic)
    assert result.interval("a", "a") == (0.0, 0.0)
    single = dw.compare({"a": Plain(), "b": dw.POLAR(BALL)}, jumps)
    assert np.isnan(single.interval("a", "b")).all()
    for wrong in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="confidence must"):
            result.interval("a", "b", confidence=wrong)
    with pytest.raises(ValueError, match=r"learner must be one of .*did you mean 'b'\?"):
        result.difference("a", "B")
    with pytest.raises(ValueError, match="did you mean 'dynamic regret'"):
        result.spread("a", "dynamic_regret")


def test_a_frame_has_a_row_for_each_game(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    result = dw.compare({"a": Plain(), "b": dw.POLAR(BALL)}, jumps, seeds=[3, 5])
    bars = capsys.readouterr().err
    assert "0/4" in bars and bars.endswith("\r") and "\n" not in bars  # they leave no trace
    frame = result.to_frame()
    assert frame[["learner", "seed"]].values.tolist() == [["a", 3], ["a", 5], ["b", 3], ["b", 5]]
    for name in "ab":
        rows = frame[frame["learner"] == name]
        for measure, values in result.measures[name].items():
            assert rows[measure].tolist() == values
    assert frame["LMO calls per round"].isna().tolist() == [True, True, False, False]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_frame()


def test_a_table_in_latex():
    losses = [dw.losses.LinearLoss([1.0, 0.0, 0.0], constant=-2.5)] * 4
    result = dw.compare({"A&B_1 \\x": dw.learners.Constant(BALL)}, losses)
    lines = result.to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lrrr}"
    assert lines[1] == r"\toprule" and lines[3] == r"\midrule" and lines[-1] == r"\end{tabular}"
    assert lines[2] == r"learner & loss per round & LMO calls per round & seconds \\"
    assert lines[4].startswith(r"A\&B\_1 \textbackslash{}x & $-$2.5 & 0 & ")
    both = dw.compare({"a": Plain()}, jumps, seeds=2).to_latex()
    assert r" $\pm$ " in both and "±" not in both


def test_own_learners_and_ours_play_the_same_streams():
    mine = Halfway(BALL)
    contenders = {"mine": mine, "POLA": dw.POLA, "stays": dw.learners.Constant}
    result = dw.compare(contenders, jumps, seeds=3, tau=20)
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
    losses = (result.measures[name]["loss per round"] for name in ("mine", "stays"))
    by_hand = np.subtract(*losses)
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
    result = dw.compare({"stays": dw.learners.Constant}, stream, seeds=[0, 7])
    first, other = (game.functions for game in result.histories["stays"])
    assert all(a is b for a, b in zip(first, losses, strict=True))
    assert any(a is not b for a, b in zip(other, losses, strict=True))
    for start, end in ((0, 10), (10, 25), (25, 40)):
        assert {id(f) for f in other[start:end]} == {id(f) for f in losses[start:end]}
    assert result.drifts == (10, 25)
    result = dw.compare({"<b>": dw.learners.Constant(BALL)}, list(jumps(0)))
    assert "<b>" not in result._repr_html_()


class Failing(Halfway):
    t: State[int]

    def update(self, loss):
        raise ZeroDivisionError("on purpose")


ROTATING = dw.streams.synthetic.rotating_quadratic(BALL, rounds=9, seed=0)


@pytest.mark.parametrize(
    ("learners", "stream", "options", "kind", "told"),
    [
        ({}, jumps, {}, ValueError, "at least one learner"),
        ([dw.POLA(BALL)], jumps, {}, ValueError, 'by its name, as {"POLAR": dw.POLAR}'),
        ({"a": 3}, jumps, {}, TypeError, r"must have decision and update.*\n.*game of 'a'"),
        ({"a": lambda: 3}, jumps, {}, TypeError, "must have decision and update"),
        ({"a": Plain}, list(jumps(0)), {"tau": 5}, ValueError, "names no set"),
        ({"a": dw.POLA}, jumps, {"comparators": [[0.0] * 3]}, ValueError, "one point for each of"),
        ({"a": dw.POLA}, list(jumps(0)), {}, ValueError, "name no set"),
        ({"a": dw.POLA(BALL)}, list(jumps(0)), {"seeds": 2}, ValueError, "a function of the seed"),
        ({"a": dw.POLA(BALL)}, jumps, {"seeds": 0}, ValueError, "seeds"),
        ({"a": dw.POLA(BALL)}, ROTATING, {"seeds": 2}, ValueError, "move between its drifts"),
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
        dw.compare({"good": dw.learners.Constant, "bad": Failing(BALL)}, jumps, seeds=[4])
    assert raised.value.__notes__ == ["raised in the game of 'bad', seed 4"]
