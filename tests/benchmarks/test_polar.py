"""The table of all learners: who plays, on what, which games are played again, and what the summary says."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks import polar
from benchmarks.polar import Game, Results, Setting


def test_every_learner_of_the_library_has_a_row_or_a_reason():
    classes = {*dw.learners.__all__, *dw.contrib.__all__} - {"Learner"}
    assert classes == ({*polar.ALL} & classes) | {*polar.LEFT_OUT}
    assert not {*polar.ALL} & {*polar.LEFT_OUT}


def test_learners_are_told_what_they_ask_for():
    stream = polar.OTHERS["pieces on the l2 ball"].stream(0)
    descent = polar.ALL["OGD"](stream)
    assert (descent.options.horizon, descent.options.lipschitz) == (2000, stream.lipschitz)
    assert polar.ALL["LineSearchOFW"](stream).smoothness == 1.0
    assert polar.ALL["AFLH"](stream).alpha == pytest.approx(1.0 / stream.lipschitz**2)
    default = polar.ALL["POLAR"](stream)
    assert (default.options.horizon, default.options.lipschitz) == (None, None)
    signs = polar.OTHERS["signs on the l1 ball"].stream(0)
    for name in ("LineSearchOFW", "AFLH", "StronglyConvexOFW", "Sword, smoothness="):
        with pytest.raises(ValueError, match="curved losses"):
            polar.ALL[name](signs)
    trees = polar.OTHERS["pieces on spanning trees"].stream(0)
    assert polar.ALL["Sword"](trees).options.oracle.method == "corrective"


@pytest.mark.parametrize("name", polar.RANDOM)
def test_changes_at_random_are_drawn_by_the_seed(name):
    make = polar.RANDOM[name].stream
    streams = [make(seed) for seed in range(8)]
    assert len({len(stream.drifts) for stream in streams}) > 3
    for stream in streams:
        assert len(stream) == 2000
        assert 1 <= len(stream.drifts) <= 15
        for t in (0, *stream.drifts):  # losses and truths change together, and only there
            end = min([d for d in (*stream.drifts, 2000) if d > t])
            assert len({id(loss) for loss in stream.losses[t:end]}) == 1
            assert all(stream.domain.contains(u) for u in stream.comparators[t : t + 1])
        assert stream.drifts == make(streams.index(stream)).drifts


def test_uneven_losses_are_the_same_games_times_numbers():
    plain = polar.CHOSEN_ON["vectors"].stream(3)
    outlier = polar.UNEVEN["vectors, an outlier"].stream(3)
    heavy = polar.UNEVEN["vectors, heavy tails"].stream(3)
    x = plain.domain.lmo(np.arange(50.0) - 7)
    for stream in (outlier, heavy):
        pairs = zip(stream.losses, plain.losses, strict=True)
        factors = np.array([a.value(x) / b.value(x) for a, b in pairs])
        if stream is outlier:
            assert factors.argmax() == 10
            assert factors.max() == pytest.approx(1000.0)
            assert np.delete(factors, 10) == pytest.approx(1.0)
        else:
            assert 20.0 < factors.max() < 1e6
            assert 0.1 <= factors.min() < 0.2
        assert stream.lipschitz >= max(np.linalg.norm(f.gradient(x)) for f in stream.losses)


@pytest.fixture
def small(monkeypatch):
    """One small setting with three learners, one of which refuses the set."""

    def stream(seed):
        return dw.streams.synthetic.piecewise_constant(dw.SpanningTreePolytope(4), 40, seed=seed)

    learners = {name: polar.ALL[name] for name in (polar.OURS, polar.LAZY, "OGD", "Constant")}
    settings = {"small": Setting(stream, range(2), learners)}
    monkeypatch.setattr(polar, "SETTINGS", settings)
    monkeypatch.setattr(polar, "TABLES", {"Small": ("dynamic regret", settings)})


def test_games_that_are_stored_are_not_played_again(small, tmp_path, capsys, monkeypatch):
    played, play = [], polar.play

    def noted(game):
        played.append(game)
        return play(game)

    monkeypatch.setattr(polar, "play", noted)
    monkeypatch.setattr(polar, "ProcessPoolExecutor", ThreadPoolExecutor)
    assert polar.main(["--out", str(tmp_path)]) == 0
    assert len(played) == 8
    text = (tmp_path / "summary.md").read_text()
    assert text == capsys.readouterr().out.removesuffix("\n")
    assert "| OGD | small | OGD projects" in text
    stored = json.loads((tmp_path / "results.json").read_text())["small"]["records"]
    means = {
        name: np.mean([r["value"] for r in stored if r["learner"] == name])
        for name in (polar.OURS, polar.LAZY, "Constant")
    }
    row = next(line for line in text.splitlines() if line.startswith("| small | 2 | Constant"))
    ratios = [f"{means[polar.OURS] / means[name]:.2f}" for name in ("Constant", polar.LAZY)]
    assert row.split(" | ")[5:7] == ratios
    played.clear()
    assert polar.main(["small", "--out", str(tmp_path)]) == 0
    assert played == []
    assert polar.main(["--replay", "POLAR", "--out", str(tmp_path)]) == 0
    assert sorted(played) == [Game("small", "POLAR", 0), Game("small", "POLAR", 1)]
    assert (tmp_path / "summary.md").read_text().count("| small |") == text.count("| small |")
    with pytest.raises(SystemExit):
        polar.main(["smal", "--out", str(tmp_path)])


def test_long_games_come_first(small, tmp_path):
    path = tmp_path / "results.json"
    seconds = {"Constant": 5.0, "OGD": 1.0, "POLAR": 3.0, "POLAR, lazy only": 2.0}
    records = [
        {"setting": "small", "learner": name, "seed": 7, "value": 1.0, "seconds": spent}
        for name, spent in seconds.items()
    ]
    path.write_text(json.dumps({"small": {"format": 2, "records": records}}))
    order = [game.learner for game in Results(path).missing(["small"])]
    assert order[::2] == ["Constant", "POLAR", "POLAR, lazy only", "OGD"]


def test_games_are_played_again_on_the_settings_that_are_named(small, tmp_path, monkeypatch):
    path, other = tmp_path / "results.json", {"other": polar.SETTINGS["small"]}
    monkeypatch.setattr(polar, "SETTINGS", polar.SETTINGS | other)
    record = {"learner": "POLAR", "seed": 0, "value": 1.0, "seconds": 1.0}
    path.write_text(json.dumps({k: {"format": 2, "records": [record]} for k in ("small", "other")}))
    assert all(each["records"] for each in Results(path).settings.values())
    results = Results(path, [("small", "POLAR")])
    assert not results.settings["small"]["records"] and results.settings["other"]["records"]
