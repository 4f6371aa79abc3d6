"""Files that were saved by format 3 load and go on; the numbers were noted when they were saved."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from storage.saved import make

FOLDER = Path(__file__).parent / "saved" / "3"
LEARN_MORE = {
    "AdaptiveIntervals": lambda m: m.observe([1.0], [2.0]),
    "AdaptiveSets": lambda m: m.observe([[0.5, 0.5]], [1], ["a"]),
    "DriftAlarm": lambda m: m.update(1.0),
    "Recommender": lambda m: m.partial_fit([("new", 1)]),
    "RiverMatrixCompleter": lambda m: m.learn_one("new", 1, 3.0),
    "RiverRecommender": lambda m: m.learn_one("new", 1, 3.0),
    "RiverTraceNormClassifier": lambda m: m.learn_one({"a": 1.0, "new": 2.0}, "new"),
    "RiverTraceNormRegressor": lambda m: m.learn_one({"a": 1.0, "new": 2.0}, 3.0),
    "TraceNormClassifier": lambda m: m.partial_fit(make.ROWS, make.LABELS),
    "TraceNormRegressor": lambda m: m.partial_fit(make.ROWS, make.ROWS @ make.TARGETS),
}
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


def test_there_is_a_file_of_every_kind():
    names = {path.stem for path in FOLDER.glob("*.safetensors")}
    assert names == {*make.LEARNERS, *dw.estimators.__all__, "game"}
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 120_000


@pytest.mark.parametrize("name", make.LEARNERS)
def test_learners(name):
    given = {"domain": make.own_set()} if name == "BOGDIP" else {}
    learner, expected = dw.load(FOLDER / f"{name}.safetensors", **given), EXPECTED["learners"][name]
    assert (type(learner).__name__, learner.t, learner.lmo_calls) == (name, 20, expected["lmo"])
    # The decision is a mean of saved points, at most a dozen of norm 4 at most.
    np.testing.assert_allclose(make.dense(learner.decision), expected["decision"], atol=1e-13)
    for loss in make.losses(learner.domain, 30, seed=1):
        assert np.isfinite(learner.update(loss))
        assert learner.domain.contains(learner.decision, atol=1e-7)
    assert learner.t == 50


@pytest.mark.parametrize("name", EXPECTED["estimators"])
def test_estimators(name):
    model = dw.load(FOLDER / f"{name}.safetensors")
    assert type(model).__name__ == name
    # Sums of a few dozen numbers of size 5 at most, in single precision for recommenders of events.
    error = 1e-5 if "Recommender" in name else 1e-12
    np.testing.assert_allclose(make.asked(name, model), EXPECTED["estimators"][name], atol=error)
    LEARN_MORE.get(name, lambda m: m.partial_fit([("new", 1)], [3.0]))(model)
    assert np.isfinite(make.asked(name, model)).all()


def test_a_game_goes_on(tmp_path):
    path = tmp_path / "game.safetensors"
    shutil.copy(FOLDER / "game.safetensors", path)
    learner, history = make.play_game(path, rounds=30)
    assert history.losses[:20].tolist() == EXPECTED["game"]["losses"]
    assert (learner.t, len(history.decisions), len(history)) == (30, 30, 30)
    learner, history = make.play_game(path, rounds=30)
    assert len(history) == 30
