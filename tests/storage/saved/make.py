"""The files beside this one, as driftwolfe of format 3 wrote them: `python tests/storage/saved/make.py FOLDER`.

They are kept: run this again, into another folder, only where the format changes. For a new learner or
estimator, `python tests/storage/saved/make.py FOLDER NAME` adds its file alone.
"""

import json
import sys
from pathlib import Path

import numpy as np

import driftwolfe as dw
from driftwolfe import estimators
from driftwolfe.losses import AbsoluteEntries, LinearLoss

ROUNDS = 20


def own_set():
    """A set that holds a function, and is not in its file."""
    return dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0)


LEARNERS = {
    "OGD": lambda: dw.OGD(dw.Box([-1.0, 0.0], [1.0, 2.0])),
    "OnlineFrankWolfe": lambda: dw.OnlineFrankWolfe(dw.KSparsePolytope(5, 2)),
    "BOGDIP": lambda: dw.BOGDIP(own_set()),
    "POLD": lambda: dw.POLD(
        dw.TraceNormBall((5, 4), 3.0, representation="factored"),
        horizon=40,
        oracle=dw.Oracle(seed=3),
    ),
    "POLA": lambda: dw.POLA(dw.Simplex(4), step_scale=0.5),
    "MultiOCG": lambda: dw.learners.MultiOCG(dw.BirkhoffPolytope(3), max_inner=2),
    "OneOracleAder": lambda: dw.learners.OneOracleAder(
        dw.L1Ball(4), oracle=dw.Oracle(lmo_budget=0.5)
    ),
    "POLAR": lambda: dw.POLAR(dw.TraceNormBall((5, 4), 3.0, representation="factored")),
    "OneProjectionAder": lambda: dw.learners.OneProjectionAder(dw.L1Ball(4), lipschitz=3.0),
    "Mixture": lambda: dw.contrib.Mixture(dw.Simplex(4), [dw.contrib.OnlineNewtonStep, dw.POLAR]),
}
RATED = [(f"user {k % 3}", k % 4) for k in range(12)]
RATINGS = np.arange(12) % 5 + 1.0
ROWS = np.array([[1.0, 0.5], [-1.0, 0.2], [0.8, -0.3], [-0.7, -0.9]] * 4)
LABELS = ["up", "down"] * 8
SURE = [{"up": k / 8.0, "down": 1.0 - k / 8.0} for k in range(8)]
TARGETS = np.array([[1.0, 2.0], [-3.0, 0.5]])


def losses(domain, rounds, seed=0):
    """Losses for a set of vectors or matrices."""
    rng = np.random.default_rng(seed)
    if getattr(domain, "representation", "") == "factored":
        (m, n), k = domain.shape, 4
        picks = [(rng.integers(0, m, k), rng.integers(0, n, k)) for _ in range(rounds)]
        return [AbsoluteEntries(*pick, rng.standard_normal(k)) for pick in picks]
    return [LinearLoss(rng.standard_normal(domain.shape)) for _ in range(rounds)]


def play_game(path, rounds=ROUNDS):
    """A game with a checkpoint; return its learner and history."""
    learner = dw.POLA(dw.L1Ball(3))
    stream = losses(learner.domain, rounds)
    return learner, dw.play(learner, stream, checkpoint=path)


def learned_estimators():
    """All of them, after a few records."""
    river = estimators.RiverTraceNormClassifier(features="linear")
    completer = estimators.RiverMatrixCompleter()
    events = estimators.RiverRecommender()
    for (user, item), weight in zip(RATED[:10], (RATINGS[:10] - 1.0).tolist(), strict=True):
        events.learn_one(user, item, weight)
    for row, label in zip(ROWS.tolist(), LABELS, strict=True):
        river.learn_one(dict(zip("ab", row, strict=True)), label)
    plain = {"random_features": 0}
    numbers = estimators.RiverTraceNormRegressor(**plain)
    for row, target in zip(ROWS.tolist(), (ROWS @ TARGETS[:, 0]).tolist(), strict=True):
        numbers.learn_one(dict(zip("ab", row, strict=True)), target)
    for (user, item), rating in zip(RATED, RATINGS.tolist(), strict=True):
        completer.learn_one(user, item, rating)
    alarm = estimators.DriftAlarm(rate=0.2)
    alarm.update_many(np.arange(20.0))
    return {
        "AdaptiveIntervals": estimators.AdaptiveIntervals().observe(RATINGS, RATINGS[::-1]),
        "AdaptiveSets": estimators.AdaptiveSets(coverage=0.5).observe(
            SURE * 2, LABELS[:8] * 2, RATED[:8] * 2
        ),
        "DriftAlarm": alarm,
        "MatrixCompleter": estimators.MatrixCompleter().partial_fit(RATED, RATINGS),
        "MatrixCompletionRegressor": estimators.MatrixCompletionRegressor().fit(
            np.array(RATED, dtype=object), RATINGS
        ),
        "Recommender": estimators.Recommender().partial_fit(RATED[:10], weights=RATINGS[:10] - 1.0),
        "RiverMatrixCompleter": completer,
        "RiverRecommender": events,
        "TraceNormClassifier": estimators.TraceNormClassifier(features="linear").partial_fit(
            ROWS, LABELS, classes=["down", "up"]
        ),
        "RiverTraceNormClassifier": river,
        "TraceNormRegressor": estimators.TraceNormRegressor(**plain).fit(ROWS, ROWS @ TARGETS),
        "RiverTraceNormRegressor": numbers,
    }


def asked(name, model):
    """What an estimator predicts, as a list of numbers."""
    if name == "AdaptiveIntervals":
        return np.ravel(model.around([0.0, 1.0])).tolist()
    if name == "AdaptiveSets":
        offsets = [model.group_offset(group) for group in [None, *RATED[:8]]]
        return [*map(len, model.around(SURE)), *offsets]
    if name == "DriftAlarm":
        return [*model.changes_.tolist(), *model.starts_.tolist()]
    if name == "TraceNormClassifier":
        return model.predict_proba(ROWS[:4]).ravel().tolist()
    if name == "RiverTraceNormClassifier":
        rows = [dict(zip("ab", row, strict=True)) for row in ROWS[:4].tolist()]
        return [model.predict_proba_one(row)[label] for row in rows for label in ("down", "up")]
    if name == "TraceNormRegressor":
        return model.predict(ROWS[:4] + 0.1).ravel().tolist()
    if name == "RiverTraceNormRegressor":
        return [model.predict_one({"a": a, "b": 0.1}) for a in (-1.0, 0.5, 2.0)]
    if name == "RiverMatrixCompleter":
        return [model.predict_one(*pair) for pair in RATED[:5]]
    if "Recommender" in name:
        predict = getattr(model, "model", model).predict
        return predict([*RATED[10:], ("new", 1), ("new", 2)]).tolist()
    return model.predict(RATED[:5]).tolist()


def dense(point):
    """A point as nested lists."""
    return np.asarray(point.toarray() if hasattr(point, "toarray") else point).tolist()


def write_learner(folder, name):
    """Write the file of one learner; return what it should say when it is loaded."""
    learner = LEARNERS[name]()
    for loss in losses(learner.domain, ROUNDS):
        learner.update(loss)
    learner.save(folder / f"{name}.safetensors")
    return {"decision": dense(learner.decision), "lmo": learner.lmo_calls}


def write_estimator(folder, name, model):
    """Write the file of one estimator; return what it should say when it is loaded."""
    model.save(folder / f"{name}.safetensors")
    return asked(name, model)


def add(folder, names):
    """Write the files of some learners or estimators beside those that are there."""
    expected, learned = json.loads((folder / "expected.json").read_text()), learned_estimators()
    for name in names:
        if name in learned:
            expected["estimators"][name] = write_estimator(folder, name, learned[name])
        else:
            expected["learners"][name] = write_learner(folder, name)
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


def main(folder):
    """Write all files, and what they should say when they are loaded."""
    expected = {
        "learners": {name: write_learner(folder, name) for name in LEARNERS},
        "estimators": {},
    }
    for name, model in learned_estimators().items():
        expected["estimators"][name] = write_estimator(folder, name, model)
    learner, history = play_game(folder / "game.safetensors")
    expected["game"] = {"decision": dense(learner.decision), "losses": history.losses.tolist()}
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[2:]:
        add(Path(sys.argv[1]), sys.argv[2:])
    else:
        main(Path(sys.argv[1]))
