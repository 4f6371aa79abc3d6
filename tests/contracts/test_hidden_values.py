"""Numbers behind a mask, and ids, labels and names that cannot be found again, are refused."""

import numpy as np
import pandas as pd
import pytest

import driftwolfe as dw
from contracts.estimator_cases import CLASSES, ESTIMATOR_CASES, LABELS, PAIRS, RATINGS, X
from contracts.graphs import differences
from contracts.learner_cases import LEARNER_CASES, VALUES_ONLY, domains, suits
from contracts.test_learner_contract import make, stream
from driftwolfe import estimators
from driftwolfe.estimators.core.ids import check_keys, encode_keys
from driftwolfe.points import FactoredMatrix, checks, leading_triplet

NAN = float("nan")


def hidden(values, hide=-1):
    """An array whose last entry, or that at `hide`, is masked."""
    array = np.ma.masked_array(np.array(values))
    array[np.unravel_index(hide % array.size, array.shape)] = np.ma.masked
    return array


def nested(depth, heart=1):
    for _ in range(depth):
        heart = (heart,)
    return heart


POINT = hidden([1.0, 9e9])
GRADIENT = np.ones((3, 3))
#: Every place outside the estimators that numbers come in, each with a mask over some of them.
MASKED = {
    "LinearLoss": lambda: dw.losses.LinearLoss(POINT),
    "a list of masked arrays": lambda: dw.losses.LinearLoss([POINT, POINT]),
    "SquaredDistance": lambda: dw.losses.SquaredDistance(POINT),
    "value": lambda: dw.losses.LinearLoss([1.0, 1.0]).value(POINT),
    "gradient": lambda: dw.losses.SquaredDistance([1.0, 1.0]).gradient(POINT),
    "value_and_gradient": lambda: dw.losses.SquaredDistance([1.0, 1.0]).value_and_gradient(POINT),
    "FunctionLoss": lambda: dw.losses.FunctionLoss(lambda x: 0.0, lambda x: POINT).gradient(
        np.zeros(2)
    ),
    "rows of entries": lambda: dw.losses.AbsoluteEntries(hidden([0, 1]), [0, 1], [1.0, 2.0]),
    "targets": lambda: dw.losses.SquaredEntries([0, 1], [0, 1], hidden([1.0, 2.0])),
    "features": lambda: dw.losses.HingeLoss(hidden(np.ones((2, 2))), [1, -1]),
    "labels": lambda: dw.losses.MulticlassLogistic(np.ones((2, 2)), hidden([0, 1]), 2),
    "streams": lambda: dw.streams.matrix_completion(
        [0, 1], [0, 1], hidden([1.0, 2.0]), shape=(2, 2)
    ),
    "Box": lambda: dw.Box([0.0, 0.0], hidden([1.0, 1.0])),
    "ConvexHull": lambda: dw.ConvexHull(hidden(np.eye(3))),
    "edges": lambda: dw.SpanningTreePolytope(3, hidden([[0, 1], [1, 2], [0, 2]])),
    "edges of a flow": lambda: dw.FlowPolytope(hidden([[0, 1], [0, 1], [0, 1]]), 0, 1),
    "groups": lambda: dw.GroupLassoBall(3, hidden([0, 1, 1])),
    "lmo": lambda: dw.L1Ball(2).lmo(POINT),
    "project": lambda: dw.L1Ball(2).project(POINT),
    "contains": lambda: dw.L1Ball(2).contains(POINT),
    "answer of an lmo": lambda: dw.LMODomain(2, lambda g: -POINT, radius=1e10).lmo([1.0, 1.0]),
    "infeasible_projection": lambda: dw.infeasible_projection(
        dw.L1Ball(2), np.zeros(2), POINT, 0.1
    ),
    "comparators": lambda: dw.regret.path_length([np.zeros(2), POINT]),
    "FactoredMatrix": lambda: FactoredMatrix(hidden(np.ones((2, 1))), [1.0], np.ones((3, 1))),
    "from_entries": lambda: FactoredMatrix.from_entries((2, 2), hidden([0, 1]), [0, 1], [1.0, 2.0]),
    "product": lambda: FactoredMatrix.zeros((2, 2)) @ POINT,
    "leading_triplet": lambda: leading_triplet(hidden(np.eye(3))),
    "Hedge": lambda: dw.ensemble.Hedge(2).update(POINT),
}


@pytest.mark.parametrize("place", MASKED)
def test_masked_entries_are_refused(place):
    with pytest.raises(ValueError, match="has masked entries; fill them in"):
        MASKED[place]()


def test_a_mask_that_hides_nothing_is_no_mask():
    plain = np.ma.masked_array([1.0, 2.0], mask=False)
    np.testing.assert_array_equal(checks.finite_array(plain, "x"), [1.0, 2.0])
    assert type(checks.finite_array(plain, "x")) is np.ndarray
    assert dw.losses.LinearLoss(plain).value([1.0, 1.0]) == 3.0


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_no_learner_learns_what_a_mask_hides(cls):
    name = next(name for name, domain in domains().items() if suits(cls, domain))
    domain = domains()[name]
    learner = make(cls, LEARNER_CASES[cls][0], domain)
    for loss in stream(domain, 4):
        learner.update(loss)
    before, mask = learner.clone(), hidden(np.ones(domain.shape))
    losses = [dw.losses.FunctionLoss(lambda x: mask.ravel()[-1], lambda x: np.zeros(domain.shape))]
    if cls not in VALUES_ONLY:
        losses.append(dw.losses.FunctionLoss(lambda x: 0.0, lambda x: mask))
    for loss in losses:
        with pytest.raises(ValueError, match=r"masked entries|must return a finite number"):
            learner.update(loss)
        assert differences(learner, before, sets=False) == []


# -- estimators --------------------------------------------------------------------------------


def hostile_ids():
    yield "NaN in a tuple", ("a", NAN)
    yield "NaN deep in a tuple", ("a", (1, (2, NAN)))
    yield "NaN in a frozenset", frozenset({1, NAN})
    yield "NaT in a tuple", (1, pd.NaT)
    yield "NA in a tuple", (1, pd.NA)
    yield "NumPy's NaN in a tuple", (np.float64(NAN), 1)
    yield "900 tuples", nested(900)
    yield "300,000 tuples", nested(300_000)
    yield "nine tuples", nested(9)
    yield "NaN", NAN
    yield "a tuple of very many", (1,) * 20_000
    wide = (1,) * 1000
    yield "very many in few tuples", (((wide,) * 1000,) * 1000,)


IDS = dict(hostile_ids())


def of_ids(model, key):
    """Calls that give an id, a label or a name to an estimator."""
    kind = type(model).__name__
    if kind == "TraceNormClassifier":
        labels = np.array([None, None], dtype=object)
        labels[:] = [key, "one"]
        yield lambda: model.partial_fit(X[:2], labels)
        yield lambda: estimators.TraceNormClassifier().partial_fit(
            X[:2], LABELS[:2], classes=[*CLASSES, key]
        )
    elif kind == "RiverTraceNormClassifier":
        frame = pd.DataFrame({"a": [1.0]})
        yield lambda: model.learn_one({"a": 1.0}, key)
        if key is not IDS["300,000 tuples"] and key is not IDS["very many in few tuples"]:
            # A dict of those would take Python itself too long, or too deep.
            yield lambda: model.learn_one({"a": 1.0, key: 1.0}, "one")
            yield lambda: model.predict_proba_one({"a": 1.0, key: 1.0})
        yield lambda: model.learn_many(frame, pd.Series([key], dtype=object))
    elif kind == "RiverTraceNormRegressor":
        yield lambda: model.learn_one({"a": 1.0}, key)
        if key is not IDS["300,000 tuples"] and key is not IDS["very many in few tuples"]:
            yield lambda: model.learn_one({"a": 1.0, key: 1.0}, 1.0)
            yield lambda: model.predict_one({"a": 1.0, key: 1.0})
    elif kind != "TraceNormRegressor":  # which takes none
        for pair in ((key, 1), (1, key)):
            if kind == "Recommender":
                yield lambda pair=pair: model.partial_fit([pair])
                yield lambda pair=pair: model.prequential([pair, (1, 2)])
                yield lambda pair=pair: model.predict([pair])
            elif kind.startswith("River"):
                yield lambda pair=pair: model.learn_one(*pair, 3.0)
                yield lambda pair=pair: model.predict_one(*pair)
                yield lambda pair=pair: model.rank(pair[0], [pair[1]])
            else:
                yield lambda pair=pair: model.partial_fit([pair], [3.0])
                yield lambda pair=pair: model.predict([pair])
        if kind in ("MatrixCompleter", "Recommender"):
            yield lambda: model.recommend(key)
        if kind == "Recommender":
            yield lambda: model.recommend_many([1, key], 2)
            yield lambda: model.forget(key)


ESTIMATORS = [pytest.param(cases[0], id=name) for name, cases in ESTIMATOR_CASES.items()]


@pytest.mark.parametrize("case", ESTIMATORS)
def test_ids_that_cannot_be_found_again_change_nothing(case):
    model = case.make()
    case.learn(model, slice(0, 20))
    before = case.make()
    case.learn(before, slice(0, 20))
    for why, key in IDS.items():
        for call in of_ids(model, key):
            with pytest.raises((ValueError, TypeError)) as refused:
                call()
            assert "recursion" not in str(refused.value), why
    assert differences(model, before) == []


@pytest.mark.parametrize("key", [nested(8), (1, (2.5, "a")), frozenset({1, "a"}), (), np.int64(3)])
def test_ids_of_reasonable_depth_are_taken(key, tmp_path):
    model = estimators.MatrixCompleter().partial_fit([(key, 1), ("b", key)], [1.0, 5.0])
    assert model.users_ == [key, "b"] and model.items_ == [1, key]
    if not isinstance(key, frozenset):
        model.save(tmp_path / "model")
        assert estimators.MatrixCompleter.load(tmp_path / "model").users_ == [key, "b"]


def test_keys_too_deep_to_be_written_are_refused_in_words():
    with pytest.raises(ValueError, match="tuples more than 8 deep"):
        encode_keys([nested(100_000)])


def test_what_is_wrong_with_a_key_is_said():
    with pytest.raises(ValueError, match="a label must not hold tuples more than 8 deep"):
        check_keys([nested(9)], "a label")
    with pytest.raises(ValueError, match="a label must hold at most 10,000 parts"):
        check_keys([(1,) * 10_001], "a label")


def masked_calls(model):
    """Calls with masked numbers in each argument that takes some."""
    kind = type(model).__name__
    if kind == "TraceNormClassifier":
        yield lambda: model.fit(hidden(X), LABELS)
        yield lambda: model.fit([hidden(row) for row in X], LABELS)
        yield lambda: model.fit(X, hidden(LABELS))
        yield lambda: model.partial_fit(X, LABELS, sample_weight=hidden(np.ones(len(X))))
        yield lambda: model.partial_fit(X, LABELS, classes=hidden(CLASSES))
        yield lambda: model.predict(hidden(X))
        yield lambda: model.predict_proba(hidden(X))
    elif kind == "AdaptiveIntervals":
        yield lambda: model.observe([0.0, 0.0], hidden([1.0, 1.0]))
        yield lambda: model.observe(hidden([0.0, 0.0]), [1.0, 1.0])
        yield lambda: model.around(hidden([0.0, 0.0]))
    elif kind == "RiverTraceNormClassifier":
        yield lambda: model.learn_one({"a": np.ma.masked, "new": 1.0}, "one")
        yield lambda: model.learn_one({"a": POINT[1:], "new": 1.0}, "one")
        yield lambda: model.learn_one({"a": 1.0, "new": 1.0}, "one", w=np.ma.masked)
        yield lambda: model.learn_many(
            pd.DataFrame({"new": [1.0, 2.0]}), pd.Series(["one", "two"]), w=hidden([1.0, 1.0])
        )
        yield lambda: model.predict_proba_one({"a": np.ma.masked})
    elif kind == "TraceNormRegressor":
        yield lambda: model.fit(hidden(X), X[:, 0])
        yield lambda: model.fit(X, hidden(X[:, 0]))
        yield lambda: model.partial_fit(X, X[:, 0], sample_weight=hidden(np.ones(len(X))))
        yield lambda: model.predict(hidden(X))
    elif kind == "RiverTraceNormRegressor":
        yield lambda: model.learn_one({"a": np.ma.masked, "new": 1.0}, 1.0)
        yield lambda: model.learn_one({"a": 1.0, "new": 1.0}, np.ma.masked)
        yield lambda: model.learn_one({"a": 1.0, "new": 1.0}, 1.0, w=np.ma.masked)
        yield lambda: model.predict_one({"a": np.ma.masked})
    elif kind.startswith("River"):
        yield lambda: model.learn_many([(1, 2), (1, "new")], POINT)
        yield lambda: model.learn_many(hidden([[1, 2], [3, 99]]), [1.0, 2.0])
        yield lambda: model.predict_many(hidden([[1, 2], [3, 99]]))
    elif kind == "Recommender":
        yield lambda: model.partial_fit([(1, 2), (1, "new")], weights=POINT)
        yield lambda: model.partial_fit([(1, 2), (1, "new")], times=POINT)
        yield lambda: model.partial_fit(hidden([[1, 2], [3, 99]]))
        yield lambda: model.predict(hidden([[1, 2], [3, 99]]))
    else:
        yield lambda: model.partial_fit([(1, 2), (1, "new")], POINT)
        yield lambda: model.partial_fit(hidden([[1, 2], [3, 99]]), [1.0, 2.0])
        yield lambda: model.predict(hidden([[1, 2], [3, 99]]))


@pytest.mark.parametrize("case", ESTIMATORS)
def test_no_estimator_learns_what_a_mask_hides(case):
    model = case.make()
    case.learn(model, slice(0, 20))
    before = case.make()
    case.learn(before, slice(0, 20))
    for call in masked_calls(model):
        with pytest.raises(ValueError, match="has masked entries"):
            call()
    assert differences(model, before) == []


def test_hidden_ratings_do_not_reach_predictions():
    """9e9 behind a mask made predictions of 1.8e9."""
    model = estimators.MatrixCompleter().partial_fit(PAIRS[:20], RATINGS[:20])
    spoiled = np.ma.masked_array(RATINGS[:5].copy(), mask=[0, 0, 0, 0, 1])
    spoiled.data[-1] = 9e9
    with pytest.raises(ValueError, match="ratings has masked entries"):
        model.partial_fit(PAIRS[:5], spoiled)
    assert np.abs(model.predict(PAIRS[:20])).max() <= RATINGS.max()


#: What is no row of numbers to river's classifier, though NumPy or pandas would read it.
NO_ROWS = {
    "an array": {"a": np.array([1.0, 2.0])},
    "an array of one": {"a": np.array([1.0])},
    "digits": {"a": "1"},
    "NA": {"a": pd.NA},
    "complex": {"a": 1j},
    "no dict": [1.0],
}
NO_FRAMES = {
    "digits": pd.DataFrame({"a": ["1", "2"]}),
    "digits as objects": pd.DataFrame({"a": ["1", "2"]}, dtype=object),
    "complex": pd.DataFrame({"a": [1j, 2.0]}),
    "dates": pd.DataFrame({"a": pd.to_datetime(["2024-01-01", "2024-01-02"])}),
    "NA": pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}),
    "no frame": np.ones((2, 1)),
    "NaN as a name": pd.DataFrame({NAN: [1.0, 2.0]}),
}


def test_rows_that_are_no_numbers_change_nothing():
    model, before = estimators.RiverTraceNormClassifier(), estimators.RiverTraceNormClassifier()
    for each in (model, before):
        each.learn_one({"a": 1.0, "b": 2.0}, "one")
    for row in NO_ROWS.values():
        for call in (
            lambda row=row: model.learn_one(row, "two"),
            lambda row=row: model.predict_proba_one(row),
        ):
            with pytest.raises((TypeError, ValueError), match=r"feature|x must be a dict"):
                call()
    for frame in NO_FRAMES.values():
        with pytest.raises((TypeError, ValueError), match=r"feature|frame|X must be a pandas"):
            model.learn_many(frame, pd.Series(["one", "two"]))
    assert differences(model, before) == []


def test_nullable_columns_without_gaps_are_numbers():
    one, two = estimators.RiverTraceNormClassifier(), estimators.RiverTraceNormClassifier()
    numbers, labels = [1.0, 2.0, 3.0], pd.Series(["x", "y", "x"])
    one.learn_many(pd.DataFrame({"a": pd.array([1, 2, 3], dtype="Int64")}), labels)
    two.learn_many(pd.DataFrame({"a": numbers}), labels)
    assert one.predict_proba_one({"a": 2.0}) == two.predict_proba_one({"a": 2.0})


def test_a_rating_in_digits_is_no_number():
    model = estimators.RiverMatrixCompleter()
    with pytest.raises(TypeError, match="a rating must be a number, got '5'"):
        model.learn_one("ann", "up", "5")
    assert model.completer.n_ratings_ == 0


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, 2.0], dtype=object),
        np.zeros(2, dtype=[("a", float)]),
        [1j, 2.0],
        ["1", "2"],
        np.array(["2024-01-01"], dtype="M8[D]"),
        pd.array([1, None], dtype="Int64"),
        [10**400],
    ],
    ids=["objects", "structured", "complex", "digits", "dates", "NA", "too large"],
)
def test_what_holds_no_real_numbers_is_refused(values):
    with pytest.raises(ValueError, match=r"g (must be an array of real numbers|has entries)"):
        dw.losses.LinearLoss(values)
    if not isinstance(values, pd.api.extensions.ExtensionArray):  # NaN has a value: NaN
        with pytest.raises(ValueError, match="x must be an array of real numbers"):
            dw.losses.SquaredDistance([0.0, 0.0]).value(values)


def test_booleans_count_as_0_and_1():
    assert dw.losses.LinearLoss([True, False]).value([2.0, 5.0]) == 2.0
