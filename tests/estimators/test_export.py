"""Recommenders as plain arrays and as ONNX files: the same scores."""

import io
import sys

import numpy as np
import pytest

from driftwolfe.estimators import MatrixCompleter, Recommender
from driftwolfe.estimators import onnx as exported
from driftwolfe.estimators.recommender_tables import RankingTables
from estimators.rating_streams import turning


def recommender(items=60, users=40, count=4_000, seed=0):
    """One that has learned likes, and events that were only seen."""
    rng = np.random.default_rng(seed)
    places, pairs = rng.integers(0, items, users), []
    for user in rng.integers(0, users, count).tolist():
        places[user] = (places[user] + rng.integers(-3, 4)) % items
        pairs.append((user, int(places[user])))
    return Recommender().partial_fit(pairs, weights=rng.choice([0.0, 0.5, 1.0, 2.0], count))


@pytest.fixture(scope="module")
def small():
    # Users who have seen little, nothing that they like, and everything.
    more = [("new", 1), ("new", 2), ("only seen", 3), *(("all", item) for item in range(60))]
    model = recommender()
    return model.partial_fit(more, weights=[1.0, 1.0, 0.0, *[1.0] * 60])


def told(model, user):
    """The scores of all items, by their numbers, as `recommend` returns them."""
    items, scores = model.recommend(user, model.n_items_, return_scores=True)
    found = np.zeros(model.n_items_)
    found[[model.items_.index(item) for item in items]] = scores
    return found


def test_arrays_give_the_scores(small):
    file = io.BytesIO()
    np.savez(file, **small.tables()._asdict())  # plain arrays: a file of NumPy holds them
    file.seek(0)
    with np.load(file) as held:
        tables = RankingTables(**held)
    for number, user in enumerate(small.users_):
        seen = tables.seen_by(number)
        names = [small.items_[item if item >= 0 else -1 - item] for item in seen.tolist()]
        assert names == small.seen(user)
        # The loops of the library have single precision.
        np.testing.assert_allclose(tables.scores(seen), told(small, user), rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(tables.scores([]), told(small, "nobody"), rtol=1e-4, atol=1e-8)
    before = told(small, 1)
    for array in small.tables():
        array[...] = 0
    assert np.array_equal(told(small, 1), before)


def test_arrays_of_a_large_catalogue_are_compact():
    model = recommender(items=3_000, users=300, count=20_000)
    tables = model.tables()
    assert sum(array.nbytes for array in tables) < 2e7
    for user in (0, 100, 200):
        scores = tables.scores(tables.seen_by(user))
        # Not all items are searched there, but those that are have these scores.
        items, told = model.recommend(model.users_[user], 50, return_scores=True)
        numbers = [model.items_.index(item) for item in items]
        np.testing.assert_allclose(scores[numbers], told, rtol=1e-3)
        assert np.sort(scores)[-10:].sum() <= 1.05 * told[:10].sum()


def run(path, **given):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = {name: np.asarray(value, dtype=np.int64) for name, value in given.items()}
    return session.run(None, inputs)[0]


@pytest.fixture(scope="module")
def onnx():
    pytest.importorskip("onnx")
    return exported


def test_onnx_gives_the_scores_of_a_recommender(small, onnx, tmp_path):
    path, tables = tmp_path / "scores.onnx", small.tables()
    onnx.write_onnx(small, path)
    for number, user in enumerate([*small.users_, "nobody"]):
        seen = tables.seen_by(number) if user != "nobody" else []
        np.testing.assert_allclose(run(path, seen=seen), told(small, user), rtol=1e-4, atol=1e-8)


def test_onnx_gives_the_ratings_of_a_completer(onnx, tmp_path):
    pairs, ratings = turning(1_500)
    model, path = MatrixCompleter().partial_fit(pairs, ratings), tmp_path / "ratings.onnx"
    onnx.write_onnx(model, path)
    asked = [*pairs[:300], ("new", pairs[0][1]), (pairs[0][0], "new"), ("new", "new")]
    numbers = [
        [names.index(name) if name in names else -1 for name in column]
        for names, column in zip(
            (model.users_, model.items_), zip(*asked, strict=True), strict=True
        )
    ]
    told, own = run(path, users=numbers[0], items=numbers[1]), model.predict(asked)
    # Each expert is clipped before the mean, and here the mean: seldom another thing.
    clipped = model.expert_predictions(asked)
    inside = (clipped > min(ratings)).all(axis=1) & (clipped < max(ratings)).all(axis=1)
    assert inside.mean() > 0.5
    np.testing.assert_allclose(told[inside], own[inside], rtol=1e-5)
    assert np.abs(told - own).max() < 0.25 * np.ptp(ratings)
    assert told.min() >= min(ratings) - 1e-5 and told.max() <= max(ratings) + 1e-5


def test_what_cannot_be_written(onnx, tmp_path, small, monkeypatch):
    for model in (Recommender(), MatrixCompleter(), "model"):
        with pytest.raises(ValueError, match="has learned something"):
            onnx.write_onnx(model, tmp_path / "file")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'driftwolfe\[onnx\]'"):
        exported.write_onnx(small, tmp_path / "file")
