"""Several threads: learners of their own do not disturb each other, one learner is for one at a time."""

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd
import pytest

import driftwolfe as dw
from contracts.graphs import differences
from contracts.learner_cases import LEARNER_CASES
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.completer_experts import CompleterPool
from driftwolfe.estimators.recommender_tables import RecommenderPool
from driftwolfe.estimators.regressor import RegressionLearner
from driftwolfe.storage import read_archive
from learners.families import some_entries

LEARNERS = list(LEARNER_CASES)


def stream(seed, rounds=60):
    rng = np.random.default_rng(seed)
    return [dw.losses.SquaredDistance(rng.standard_normal(4)) for _ in range(rounds)]


def entries(seed, rounds):
    return some_entries(rounds, (30, 40), 9, seed)


FACTORED = dw.TraceNormBall((30, 40), radius=5.0, representation="factored")


@pytest.mark.parametrize(
    ("make", "domain", "losses"),
    [*((make, dw.L2Ball(4), stream) for make in LEARNERS), (dw.POLD, FACTORED, entries)],
    ids=lambda given: getattr(given, "__name__", type(given).__name__),
)
def test_learners_in_threads_are_as_if_alone(make, domain, losses):
    def run(seed):
        learner = make(domain, horizon=40)
        suffered = [learner.update(loss) for loss in losses(seed, 40)]
        decision = learner.decision
        return suffered, (decision.toarray() if domain is FACTORED else decision).tolist()

    alone = [run(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run, range(3))) == alone


@contextmanager
def held(call, entered, go_on):
    """Run a call in another thread, and hold it where it sets `entered`."""
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(call)
        assert entered.wait(30)
        try:
            yield
        finally:
            go_on.set()
        first.result(60)


def refuse(calls):
    for call in calls:
        with pytest.raises(
            RuntimeError, match="at work in another thread; give each thread its own"
        ):
            call()


READS = {
    "decision": lambda learner: learner.decision,
    "weights": lambda learner: learner.expert_weights,
    "names": lambda learner: learner.expert_names,
    "bound": lambda learner: learner.bound(),
    "clone": lambda learner: learner.clone(),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "snapshot": lambda learner: learner.snapshot(),
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("make", LEARNERS, ids=lambda make: make.__name__)
def test_a_learner_at_work_in_another_thread_refuses_and_stays_as_it_is(make, tmp_path):
    entered, go_on, path = threading.Event(), threading.Event(), tmp_path / "learner.safetensors"

    def value(x):
        entered.set()
        assert go_on.wait(30)
        return float(x @ x)

    slow = dw.losses.FunctionLoss(value, lambda x: 2 * x)
    learner, alone = make(dw.L2Ball(4), horizon=60), make(dw.L2Ball(4), horizon=60)
    learner.save(path)
    game = tmp_path / "game.safetensors"
    dw.play(alone.clone(), stream(0)[:5], checkpoint=game)
    contents = {each: each.read_bytes() for each in (path, game)}
    single = {"weights", "names"} if learner.expert_weights is None else set()  # None, always
    reads = READS.keys() - single - ({"bound"} if make.bound is dw.Learner.bound else set())
    with held(lambda: learner.update(slow), entered, go_on):
        refuse([lambda: learner.update(stream(0)[0]), lambda: learner.update_many(stream(0))])
        refuse(partial(READS[name], learner) for name in reads)
        refuse([lambda: learner.save(path), lambda: dw.play(learner, stream(0), checkpoint=game)])
        assert learner.t == 0 and "t=0" in repr(learner)  # at any time
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == contents
    alone.update(slow)
    for loss in stream(1):
        assert learner.update(loss) == alone.update(loss)
    learner.save(path)
    assert dw.load(path).t == 61


def test_a_learner_may_be_copied_and_handed_from_thread_to_thread():
    learner = dw.POLA(dw.L2Ball(4))
    learner.update(stream(0)[0])
    other = pickle.loads(pickle.dumps(learner.clone()))
    assert other.update(stream(0)[1]) == learner.update(stream(0)[1])
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for k, loss in enumerate(stream(0)):
            (one if k % 2 else other).submit(learner.update, loss).result(30)
    assert learner.t == 62


# -- estimators ------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((40, 3))
Y = np.random.default_rng(1).integers(0, 3, 40)
PAIRS = np.random.default_rng(2).integers(0, 9, (40, 2))
RATINGS = np.random.default_rng(3).standard_normal(40)
ROW, FRAME = {"a": 1.0, "b": 2.0}, pd.DataFrame(X, columns=list("abc"))
RATED, LABELLED, MEASURED = (PAIRS, RATINGS), (X, Y, [0, 1, 2]), (X, RATINGS)
RANKED = {"predict_one": (1, 2), "rank": (1, [2, 3])}
#: Of each kind the class that all learn and predict with, and its methods that do.
ENGINES = {
    "pool": (CompleterPool, "learn learn_one", "predict predict_one"),
    "intervals": (dw.estimators.AdaptiveIntervals, "_observe", "_by_group"),
    "sets": (dw.estimators.AdaptiveSets, "_observe", "_by_group"),
    "ranks": (RecommenderPool, "learn learn_single", "predict"),
    "classes": (ClassLearner, "learn", "predict"),
    "numbers": (RegressionLearner, "learn", "predict"),
}
#: The engine; methods that learn, the first from nothing on; methods and attributes that read.
ESTIMATORS = {
    "MatrixCompleter": (
        "pool",
        {"partial_fit": RATED, "prequential": RATED},
        {"predict": (PAIRS,), "recommend": (1,), "factors": ()},
        "users_ items_ expert_names_ expert_weights_",
    ),
    "MatrixCompletionRegressor": (
        "pool",
        {"partial_fit": RATED, "fit": RATED},
        {"predict": (PAIRS,), "score": RATED},
        "",
    ),
    "AdaptiveIntervals": (
        "intervals",
        {"observe": (RATINGS, RATINGS[::-1])},
        {"around": ([0.0],)},
        "",
    ),
    "AdaptiveSets": (
        "sets",
        {"observe": (np.full((40, 3), 0.3), Y, Y)},
        {"around": ([[0.5, 0.5]],)},
        "",
    ),
    "Recommender": (
        "ranks",
        {"partial_fit": (PAIRS,), "prequential": (PAIRS,), "forget": (1,)},
        {"predict": (PAIRS,), "recommend": (1,), "recommend_many": ([1, 2], 3), "tables": ()}
        | {"seen": (1,)},
        "users_ items_ expert_weights_",
    ),
    "RiverMatrixCompleter": ("pool", {"learn_one": (1, 2, 3.0)}, RANKED, ""),
    "RiverRecommender": ("ranks", {"learn_one": (1, 2)}, RANKED, ""),
    "TraceNormClassifier": (
        "classes",
        {"partial_fit": LABELLED, "fit": (X, Y)},
        dict.fromkeys(("predict", "predict_proba", "predict_log_proba"), (X,))
        | {"decision_function": (X,), "score": (X, Y)},
        "coef_ intercept_ expert_weights_ expert_names_",
    ),
    "RiverTraceNormClassifier": (
        "classes",
        {"learn_many": (FRAME, pd.Series(Y)), "learn_one": (ROW, 1)},
        {"predict_one": (ROW,), "predict_proba_one": (ROW,)}
        | {"predict_many": (FRAME,), "predict_proba_many": (FRAME,)},
        "expert_weights",
    ),
    "TraceNormRegressor": (
        "numbers",
        {"partial_fit": MEASURED, "fit": MEASURED},
        {"predict": (X,), "score": MEASURED},
        "expert_weights_ expert_names_",
    ),
    "RiverTraceNormRegressor": (
        "numbers",
        {"learn_many": (FRAME, pd.Series(RATINGS)), "learn_one": (ROW, 1.0)},
        {"predict_one": (ROW,), "predict_many": (FRAME,)},
        "expert_weights",
    ),
}
COPIES = [copy.deepcopy, pickle.dumps, lambda model: model.snapshot()]


def calls(methods, attributes=""):
    """The calls of a table, and the attributes, as functions of a model."""
    called = [lambda m, n=n, a=a: getattr(m, n)(*a) for n, a in methods.items()]
    return called + [lambda m, n=n: getattr(m, n) for n in attributes.split()]


def estimator(name):
    """One that has learned, its engine, how it learns more, and what reads it."""
    kind, learning, reading, attributes = ESTIMATORS[name]
    model, learn = getattr(dw.estimators, name)(), calls(learning)
    learn[0](model)
    return model, kind, learn, calls(reading, attributes)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_in_threads_are_as_if_alone(name, tmp_path):
    def run(number):
        estimator(name)[0].save(tmp_path / str(number))
        return read_archive(tmp_path / str(number))

    alone = run(0)
    with ThreadPoolExecutor(4) as pool:
        for archive in pool.map(run, range(1, 5)):
            assert differences(archive, alone) == []


@contextmanager
def in_the_middle(kind, moment, call, monkeypatch):
    """Hold a call on an estimator in the engine that all of its kind learn and predict with."""
    engine, *names = ENGINES[kind]
    entered, go_on = threading.Event(), threading.Event()

    def slowed(original):
        def slow(self, *given):
            if not entered.is_set():
                entered.set()
                assert go_on.wait(30)
            return original(self, *given)

        return slow

    with monkeypatch.context() as patch:
        for name in names[moment == "predicting"].split():
            patch.setattr(engine, name, slowed(getattr(engine, name)))
        with held(call, entered, go_on):
            yield


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_that_learns_refuses_other_threads_and_keeps_its_file(
    name, tmp_path, monkeypatch
):
    model, kind, learn, read = estimator(name)
    path = tmp_path / "model.safetensors"
    model.save(path)
    content = path.read_bytes()
    with in_the_middle(kind, "learning", partial(learn[0], model), monkeypatch):
        refuse(partial(call, model) for call in (*learn, *read, *COPIES))
        refuse([lambda: model.save(path)])
        repr(model)
    assert path.read_bytes() == content
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    alone = estimator(name)[0]
    learn[0](alone)
    model.save(path)
    alone.save(tmp_path / "alone.safetensors")
    assert differences(read_archive(path), read_archive(tmp_path / "alone.safetensors")) == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_predictions_run_beside_each_other_and_learning_does_not(name, tmp_path, monkeypatch):
    model, kind, learn, read = estimator(name)
    alone = estimator(name)[0]
    with in_the_middle(kind, "predicting", partial(read[0], model), monkeypatch):
        for call in (*read, *COPIES):
            call(model)
        model.save(tmp_path / "model.safetensors")
        refuse(partial(call, model) for call in learn)
    snapshot = model.snapshot()
    for call in learn:
        with pytest.raises(RuntimeError, match="is a snapshot"):
            call(snapshot)
    for call in (*read, *COPIES, repr):
        call(snapshot)
    for each in (model, alone):
        learn[0](each)
        each.save(tmp_path / ("alone" if each is alone else "model"))
    assert differences(*(read_archive(tmp_path / each) for each in ("model", "alone"))) == []


# -- snapshots -------------------------------------------------------------------------------------


def _teach(model, step):
    """Learn a piece of a stream in which new ids and features keep coming."""
    rng = np.random.default_rng(step)
    pairs = rng.integers(0, (5 * step + 5, 2 * step + 9), (20, 2))
    if isinstance(model, dw.Learner):
        model.update(dw.losses.LinearLoss(rng.standard_normal(5)))
    elif isinstance(model, dw.estimators.Recommender):
        model.partial_fit(pairs)
    elif isinstance(model, dw.estimators.MatrixCompleter):
        model.partial_fit(pairs, rng.standard_normal(20))
    elif isinstance(model, dw.estimators.AdaptiveIntervals):
        model.observe(*rng.standard_normal((2, 20)), pairs[:, 0])
    else:
        x = {"a": rng.standard_normal(), "b": "uvwxyz"[step % 6], f"new{step // 20}": 1.0}
        model.learn_one(x, x["a"])


def _told(model):
    """What it answers."""
    if isinstance(model, dw.Learner):
        told = model.decision, model.expert_weights
    elif isinstance(model, dw.estimators.Recommender):
        told = model.recommend_many([0, 3, "new"], 5, return_scores=True)[1]
        told = *told, model.predict([(1, 2), ("new", 1)]), model.seen(2)
    elif isinstance(model, dw.estimators.MatrixCompleter):
        told = model.predict([(1, 2), ("new", 1)]), model.recommend(1, 5), *model.factors()
    elif isinstance(model, dw.estimators.AdaptiveIntervals):
        told = model.around([0.0, 1.0], [2, 3]), model.offset_
    else:
        told = [model.predict_one({"a": 1.0, "b": each}) for each in "uvwxyz"]
        told += model.expert_weights.values()
    return b"".join(np.asarray(each).tobytes() for each in told)


SHARED = {
    "POLAR": lambda: dw.POLAR(dw.L1Ball(5)),
    "Recommender": dw.estimators.Recommender,
    "MatrixCompleter": dw.estimators.MatrixCompleter,
    "AdaptiveIntervals": dw.estimators.AdaptiveIntervals,
    "RiverTraceNormRegressor": dw.estimators.RiverTraceNormRegressor,
}


@pytest.mark.parametrize("seconds", [0, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", SHARED)
def test_each_answer_of_eight_readers_of_snapshots_is_that_of_a_prefix_of_the_stream(name, seconds):
    model, step, stop, end = SHARED[name](), 0, threading.Event(), time.monotonic() + seconds
    _teach(model, step)
    latest = step, model.snapshot()

    def read():
        answers = set()
        while not answers or not stop.is_set():
            prefix, snapshot = latest
            answers.add((prefix, _told(snapshot)))
            with pytest.raises(RuntimeError, match="is a snapshot"):
                _teach(snapshot, prefix + 1)
            answers.add((prefix, _told(snapshot)))
        return answers

    with ThreadPoolExecutor(8) as pool:
        reading = [pool.submit(read) for _ in range(8)]
        try:
            while step < 20 or time.monotonic() < end:
                step += 1
                _teach(model, step)
                latest = step, model.snapshot()
        finally:
            stop.set()
        found = set().union(*(each.result(60) for each in reading))
    alone, asked = SHARED[name](), {prefix for prefix, _ in found}
    assert len(asked) > 1
    for prefix in range(max(asked) + 1):
        _teach(alone, prefix)
        if prefix in asked:
            found.remove((prefix, _told(alone)))
    assert not found


# -- files -----------------------------------------------------------------------------------------


def _moving(name):
    """One that changes, and how it changes once."""
    if name == "POLA":
        learner, losses = dw.POLA(dw.L1Ball(5)), stream(0)
        losses = [dw.losses.LinearLoss(np.ones(5)) for _ in losses]
        return learner, lambda: learner.update_many(losses)
    model, rng = estimator(name)[0], np.random.default_rng(4)
    if name == "MatrixCompleter":
        return model, lambda: model.partial_fit(rng.integers(0, 400, (40, 2)), RATINGS)
    return model, lambda: model.partial_fit(X, Y)


@pytest.mark.parametrize("name", ["POLA", "MatrixCompleter", "TraceNormClassifier"])
def test_every_file_saved_while_another_thread_learns_can_be_loaded(name, tmp_path):
    thing, change = _moving(name)
    path, end, stop = tmp_path / "file.safetensors", time.monotonic() + 20.0, threading.Event()
    counts = {"saved": 0, "refused": 0}

    def learn():
        while not stop.is_set():
            try:
                change()
            except RuntimeError as refused:
                assert "at work in another thread" in str(refused)
            time.sleep(1e-3)

    with ThreadPoolExecutor(1) as pool:
        learning = pool.submit(learn)
        try:
            while min(counts.values()) < 5 and time.monotonic() < end and not learning.done():
                try:
                    thing.save(path)
                    counts["saved"] += 1
                    dw.load(path)
                except RuntimeError as refused:
                    assert "at work in another thread" in str(refused)
                    counts["refused"] += 1
                    time.sleep(1e-4)
        finally:
            stop.set()
        learning.result(60)
    dw.load(path)
    assert min(counts.values()) > 0, counts


def test_a_loss_may_ask_its_learner_but_not_save_it_in_the_middle_of_an_update(tmp_path):
    learner, path, seen = dw.POLA(dw.L2Ball(4)), tmp_path / "learner.safetensors", []
    learner.update(stream(0)[0])
    learner.save(path)
    content = path.read_bytes()

    def value(x):
        seen.append(np.array_equal(learner.decision, learner.clone().decision))
        with pytest.raises(RuntimeError, match="in the middle of an update, in this same thread"):
            learner.save(path)
        return float(x @ x)

    learner.update(dw.losses.FunctionLoss(value, lambda x: 2 * x))
    assert seen and all(seen)
    assert path.read_bytes() == content


def test_a_game_whose_learner_is_moved_by_something_else_keeps_its_last_good_checkpoint(tmp_path):
    path, losses = tmp_path / "game.safetensors", stream(0)

    def meddle(learner, _):
        if learner.t == 30:
            learner.update(losses[0])

    with pytest.raises(
        RuntimeError, match="30 rounds from round 0 on, but its learner is at round 31"
    ):
        dw.play(dw.POLA(dw.L2Ball(4)), losses, [meddle], checkpoint=path, every=10)
    resumed = dw.play(dw.POLA(dw.L2Ball(4)), losses, checkpoint=path)
    calm = dw.play(dw.POLA(dw.L2Ball(4)), losses)
    assert resumed.losses.tolist() == calm.losses.tolist()
