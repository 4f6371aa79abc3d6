"""Several threads: learners of their own do not disturb each other, one learner is for one at a time."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES

LEARNERS = list(LEARNER_CASES)


def stream(seed, rounds=60):
    rng = np.random.default_rng(seed)
    return [dw.losses.SquaredDistance(rng.standard_normal(4)) for _ in range(rounds)]


@pytest.mark.parametrize("make", LEARNERS, ids=lambda make: make.__name__)
def test_learners_in_threads_are_as_if_alone(make):
    def run(seed):
        learner = make(dw.L2Ball(4), horizon=60)
        return [learner.update(loss) for loss in stream(seed)] + learner.decision.tolist()

    alone = [run(seed) for seed in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(run, range(6))) == alone


def test_matrix_learners_in_threads_are_as_if_alone():
    ball = dw.TraceNormBall((30, 40), radius=5.0, representation="factored")

    def run(seed):
        rng = np.random.default_rng(seed)
        learner = dw.POLD(ball, horizon=20)
        for _ in range(20):
            rows, cols = rng.integers(0, 30, 9), rng.integers(0, 40, 9)
            learner.update(dw.losses.AbsoluteEntries(rows, cols, rng.standard_normal(9)))
        return learner.decision.toarray().tolist()

    alone = [run(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(run, range(3))) == alone


@pytest.mark.parametrize("make", LEARNERS, ids=lambda make: make.__name__)
def test_a_learner_at_work_in_another_thread_refuses_and_stays_as_it_is(make):
    entered, go_on = threading.Event(), threading.Event()

    def value(x):
        entered.set()
        assert go_on.wait(30)
        return float(x @ x)

    slow = dw.losses.FunctionLoss(value, lambda x: 2 * x)
    learner, alone = make(dw.L2Ball(4), horizon=60), make(dw.L2Ball(4), horizon=60)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(learner.update, slow)
        assert entered.wait(30)
        for call in (lambda: learner.update(stream(0)[0]), lambda: learner.update_many(stream(0))):
            with pytest.raises(RuntimeError, match="at work in another thread"):
                call()
        go_on.set()
        first.result(30)
    alone.update(slow)
    for loss in stream(1):
        assert learner.update(loss) == alone.update(loss)


def test_the_guard_is_no_part_of_the_learner():
    learner = dw.POLA(dw.L2Ball(4))
    learner.update(stream(0)[0])
    other = pickle.loads(pickle.dumps(learner.clone()))
    assert other.update(stream(0)[1]) == learner.update(stream(0)[1])


def test_a_learner_may_be_handed_from_thread_to_thread():
    learner = dw.POLA(dw.L2Ball(4))
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        for k, loss in enumerate(stream(0)):
            (one if k % 2 else other).submit(learner.update, loss).result(30)
    assert learner.t == 60


def test_estimators_refuse_too_and_their_instances_do_not_disturb_each_other(monkeypatch):
    from driftwolfe.estimators.classes.learner import ClassLearner
    from driftwolfe.estimators.ratings.pool import RatingPool

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 3, 40)
    pairs, ratings = rng.integers(0, 9, (40, 2)), rng.standard_normal(40)

    def classify():
        model = dw.estimators.TraceNormClassifier().partial_fit(X, y, classes=[0, 1, 2])
        return model.predict_proba(X).tolist()

    def complete():
        return dw.estimators.MatrixCompleter().prequential(pairs, ratings).tolist()

    for run in (classify, complete):
        alone = run()
        with ThreadPoolExecutor(4) as pool:
            assert all(one.result(60) == alone for one in [pool.submit(run) for _ in range(4)])

    entered, go_on = threading.Event(), threading.Event()
    for engine, inner, call in (
        (ClassLearner, "_learn_stretch", lambda m: m.partial_fit(X, y)),
        (RatingPool, "learn", lambda m: m.partial_fit(pairs, ratings)),
    ):
        original = getattr(engine, inner)

        def slow(self, *given, original=original):
            entered.set()
            assert go_on.wait(30)
            return original(self, *given)

        model = dw.estimators.MatrixCompleter()
        if engine is ClassLearner:
            model = dw.estimators.TraceNormClassifier().partial_fit(X, y, classes=[0, 1, 2])
        entered.clear()
        go_on.clear()
        with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
            patch.setattr(engine, inner, slow)
            first = pool.submit(call, model)
            assert entered.wait(30)
            with pytest.raises(RuntimeError, match="at work in another thread"):
                call(model)
            go_on.set()
            first.result(30)
