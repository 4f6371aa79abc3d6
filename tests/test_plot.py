"""`dw.plot`: what is drawn is what was played."""

import numpy as np
import pytest

import driftwolfe as dw

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

BALL = dw.L2Ball(3)


def jumps(seed, rounds=90):
    return dw.streams.synthetic.piecewise_constant(BALL, rounds=rounds, pieces=3, seed=seed)


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def compared():
    return dw.compare({"POLA": dw.POLA, "stays": dw.learners.Constant}, jumps, seeds=2)


def line(axis, name):
    (found,) = [each for each in axis.get_lines() if each.get_label() == name]
    return found.get_ydata()


def test_losses_are_means_over_games_with_drifts_marked(compared):
    axis = dw.plot.losses(compared)
    expected = np.mean([game.average_loss for game in compared.histories["POLA"]], axis=0)
    np.testing.assert_allclose(line(axis, "POLA"), expected)
    marked = {each.get_xdata()[0] for each in axis.get_lines() if len(each.get_xdata()) == 2}
    assert marked == set(compared.drifts) == {30, 60}
    assert len(axis.collections) == 2  # a band for each
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["POLA", "stays"]
    alone = {"POLA": compared.histories["POLA"]}
    for draw in (dw.plot.losses, dw.plot.regret, dw.plot.calls):  # games know no drifts
        lines = draw(alone, drifts=(5, 40)).get_lines()
        marked = {each.get_xdata()[0] for each in lines if len(each.get_xdata()) == 2}
        assert marked - {0.0} == {5, 40}


def test_regret_ends_at_dynamic_regret(compared):
    axis = dw.plot.regret(compared)
    mean = np.mean(compared.measures["POLA"]["dynamic regret"])
    assert line(axis, "POLA")[-1] == pytest.approx(mean)
    stream = jumps(5)
    history = dw.play(dw.OGD(BALL, horizon=90, lipschitz=2.0), stream)
    alone = dw.plot.regret({"OGD": history}, stream.comparators)
    regret = float(dw.regret.dynamic_regret(history, stream.comparators))
    assert line(alone, "OGD")[-1] == pytest.approx(regret)
    fixed = dw.plot.regret({"OGD": history})
    assert fixed.get_ylabel() == "regret against the best fixed point"
    regret = float(dw.regret.static_regret(history))
    assert line(fixed, "OGD")[-1] == pytest.approx(regret, rel=1e-4)


def test_weights_are_placed_by_the_experts_names():
    """Experts of POLA come and go: each has its own row, whatever place it had in the round."""
    history = dw.play(dw.POLA(BALL), jumps(0), record_weights=True)
    assert [len(w) for w in history.weights] == list(map(len, history.experts))
    axis = dw.plot.weights(history, drifts=(30, 60))
    names = [text.get_text() for text in axis.get_yticklabels()]
    assert names[0] == "1 round"
    drawn = axis.collections[0].get_array().reshape(len(names), 90)
    for t in (0, 7, 45, 89):
        held = dict(zip(history.experts[t], history.weights[t], strict=True))
        for row, name in enumerate(names):
            if name in held:
                assert drawn[row, t] == held[name]
            else:
                assert drawn.mask[row, t]


def test_calls_and_given_axes():
    from matplotlib.figure import Figure

    history = dw.play(dw.OnlineFrankWolfe(BALL), jumps(0))
    given = Figure().subplots()
    axis = dw.plot.calls({"OFW": history}, ax=given)
    assert axis is given
    assert line(axis, "OFW").tolist() == list(range(1, 91))


def test_what_cannot_be_drawn_is_refused():
    history = dw.play(dw.POLA(BALL), jumps(0), keep_losses=False)
    with pytest.raises(ValueError, match="record_weights=True"):
        dw.plot.weights(history)
    with pytest.raises(ValueError, match="keep_losses=True"):
        dw.plot.regret(history, jumps(0).comparators)
    for wrong in ([history], {}, {"a": [3]}):
        with pytest.raises(TypeError):
            dw.plot.losses(wrong)


def test_changes_show_means_of_losses_weights_by_memory_and_alarms():
    rng, alarm = np.random.default_rng(0), dw.DriftAlarm()
    losses = rng.normal(np.repeat([0.0, 2.0], 300))
    alarm.update_many(losses)
    early = {"radius 1, 16 rows": 0.25, "mean of 1,024 rows": 0.5, "ridge, all rows": 0.25}
    late = {"last target": 0.25, "radius 1, 16 rows": 0.25, "radius 2, 16 rows": 0.5}
    above, below = dw.plot.changes(losses, alarm, [early, late])
    drawn = max(above.get_lines(), key=lambda each: len(each.get_xdata()))
    assert drawn.get_ydata()[-1] == pytest.approx(losses[-12:].mean())
    for axis in (above, below):
        marked = {each.get_xdata()[0] for each in axis.get_lines() if len(each.get_xdata()) == 2}
        assert marked == {*alarm.changes_, *alarm.starts_} and len(marked) == 2
    names = [text.get_text() for text in below.get_yticklabels()]
    assert names == ["last target", "16 rows", "1,024 rows", "all rows"]
    shares = below.collections[0].get_array().reshape(4, 2)
    assert shares.tolist() == [[0.0, 0.25], [0.25, 0.75], [0.5, 0.0], [0.25, 0.0]]
    assert len(dw.plot.changes(losses[:3], alarm)) == 1
