"""`MatrixCompleter`: users at rest, users that are forgotten, weights, and one rating per call."""

import math

import numpy as np
import pytest

from driftwolfe.estimators import MatrixCompleter, completer_experts, completer_tables
from estimators.rating_streams import coming_and_going, one_by_one, state_of, turning


@pytest.fixture
def few_rows(monkeypatch):
    """Users rest once more than five have rows."""
    make_few_rows(monkeypatch)


def make_few_rows(patch):
    patch.setattr(completer_experts, "MOST_ROWS", 5)
    patch.setattr(completer_tables, "FIRST_LOW_RANK_LEVEL", 8)


# -- users at rest -----------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["both", "pold", "pola"])
def test_one_call_is_the_same_as_many(few_rows, learner):
    pairs, ratings = coming_and_going()
    whole, single = (MatrixCompleter(memory=64, learner=learner) for _ in range(2))
    told = whole.prequential(pairs, ratings)
    assert one_by_one(single, pairs, ratings).tobytes() == told.tobytes()
    assert state_of(whole) == state_of(single)
    assert whole._pool.users.size < 20 < whole.n_users_ == len(whole.users_)
    assert whole.users_ == list(dict.fromkeys(user for user, _ in pairs))


def test_biases_stay_when_users_rest(monkeypatch):
    """Single precision is all that is lost where nothing but biases is learned."""
    pairs, ratings = coming_and_going()
    told = []
    for rows in (5, 10_000):
        monkeypatch.setattr(completer_experts, "MOST_ROWS", rows)
        completer = MatrixCompleter(memory=64, learner="pold", radii=())
        predictions = completer.prequential(pairs, ratings)
        everyone = [(user, 3) for user in completer.users_]
        factors = completer.factors()
        told.append(
            (predictions, completer.predict(everyone), factors.user_biases, factors.item_biases)
        )
        assert (completer._pool.users.size < completer.n_users_) == (rows == 5)
    for resting, without in zip(*told, strict=True):
        assert resting == pytest.approx(without, abs=1e-5)


def test_users_at_rest_are_predicted_and_decisions_are_feasible(few_rows):
    completer = MatrixCompleter(memory=64).partial_fit(*coming_and_going())
    pairs = [(user, item) for user in [*completer.users_, "new"] for item in (0, 5, "new")]
    singly = [completer.predict([pair])[0] for pair in pairs]
    assert completer.predict(pairs).tolist() == singly
    answers = completer.expert_predictions(pairs)
    assert np.allclose(answers @ completer.expert_weights_, singly, atol=1e-9)
    assert completer.domain_.contains(completer.decision_, atol=1e-7)
    factors = completer.factors()
    assert len(factors.users) == completer.n_users_
    assert len(factors.items) == completer.n_items_


def test_what_users_at_rest_rated_is_not_recommended(few_rows):
    pairs, ratings = coming_and_going(items=40)
    completer = MatrixCompleter(memory=64).partial_fit(pairs, ratings)
    for user in completer.users_:
        rated = {item for who, item in pairs if who == user}
        assert set(completer.recommend(user, 99)) == set(completer.items_) - rated


# -- forgetting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_seen", [True, False])
def test_a_forgotten_user_leaves_nothing(few_rows, tmp_path, keep_seen):
    pairs, ratings = coming_and_going()
    named = [(f"somebody {user}", item) for user, item in pairs]
    completer = MatrixCompleter(memory=64, keep_seen=keep_seen).partial_fit(named, ratings)
    at_rest, at_work = completer.users_[20], named[-1][0]
    others = [user for user in completer.users_ if user not in (at_rest, at_work)]
    asked = [(user, item) for user in others for item in range(9)]
    told, best = completer.predict(asked), [completer.recommend(user) for user in others]
    assert completer.forget(at_rest).forget(at_work) is completer
    assert completer.users_ == others and completer.n_users_ == len(others)
    assert completer.predict(asked).tolist() == told.tolist()
    assert [completer.recommend(user) for user in others] == best
    for user in (at_rest, at_work):
        assert completer.predict_one(user, 3) == completer.predict_one("new", 3)
        assert len(completer.recommend(user, 99)) == completer.n_items_
    completer.save(tmp_path / "ratings")
    content = (tmp_path / "ratings").read_bytes()
    assert f'"{at_rest}"'.encode() not in content and f'"{others[0]}"'.encode() in content
    loaded = MatrixCompleter.load(tmp_path / "ratings")
    assert state_of(loaded) == state_of(completer)
    assert completer.domain_.contains(completer.decision_, atol=1e-7)
    told = completer.prequential(named[:200], ratings[:200])
    assert loaded.prequential(named[:200], ratings[:200]).tobytes() == told.tobytes()
    assert completer.n_users_ == len({*others, *(user for user, _ in named[:200])})


def test_forgetting_strangers_and_everyone(tmp_path):
    completer = MatrixCompleter().partial_fit(*turning(300))
    before = state_of(completer)
    with pytest.raises(KeyError, match="no user 'a stranger', of type str, is known"):
        completer.forget("a stranger")
    assert state_of(completer) == before
    for user in completer.users_:
        completer.forget(user)
    assert (completer.n_users_, completer.n_items_, completer.n_ratings_) == (0, 9, 300)
    completer.save(tmp_path / "ratings")
    for each in (completer, MatrixCompleter.load(tmp_path / "ratings")):
        assert np.isfinite(each.prequential(*turning(1500))).all()
        assert each.n_ratings_ == 1800


# -- weights -----------------------------------------------------------------------------------------


def test_a_whole_weight_is_that_many_copies():
    pairs, ratings = turning(400)
    weights = np.arange(400) % 4
    weighted = MatrixCompleter().partial_fit(pairs, ratings, weights)
    copied = MatrixCompleter()
    for pair, rating, weight in zip(pairs, ratings, weights.tolist(), strict=True):
        for _ in range(weight):
            copied.partial_fit([pair], [rating])
    assert state_of(weighted) == state_of(copied)
    assert weighted.n_ratings_ == weights.sum()
    assert state_of(MatrixCompleter().partial_fit(pairs, ratings, 1)) == state_of(
        MatrixCompleter().partial_fit(pairs, ratings)
    )


def test_a_fraction_of_the_weight_is_learned_less():
    start = turning(400)
    changes = []
    for weight in (0.0, 0.01, 0.3, 1.0):
        completer = MatrixCompleter(learner="pold", radii=()).partial_fit(*start)
        before = completer.predict_one(3, 4)
        completer.partial_fit([(3, 4)], [9.0], weight)
        changes.append(completer.predict_one(3, 4) - before)
    assert changes[0] == 0.0 < changes[1] < changes[2] < changes[3]


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, 101.0], [1.0], [1.0, math.nan], ["a", "b"]])
def test_weights_that_make_no_sense(weights):
    completer = MatrixCompleter().partial_fit(*turning(50))
    before = state_of(completer)
    with pytest.raises(ValueError, match="sample_weight must"):
        completer.partial_fit([(1, 2), (3, 4)], [3.0, 4.0], weights)
    assert state_of(completer) == before


# -- one at a time -----------------------------------------------------------------------------------


def test_one_rating_in_every_form():
    """All forms of one pair and one rating do the same."""
    start, states = turning(300), set()
    for pair, rating in (
        ([(3, 4)], [4]),
        ([[3, 4]], [4.0]),
        (np.array([[3, 4]]), np.array([4.0])),
        (np.array([[3, 4]], dtype=object), np.array([4])),
        ([(np.int64(3), np.int32(4))], [np.float64(4.0)]),
        (((3, 4),), (4.0,)),
    ):
        completer = MatrixCompleter().partial_fit(*start)
        told = completer.predict(pair)
        assert told.shape == (1,) and told[0] == completer.predict_one(3, 4)
        assert completer.partial_fit(pair, rating) is completer
        states.add(str(state_of(completer)))
    completer = MatrixCompleter().partial_fit(*start)
    completer.learn_one(3, 4, 4.0)
    states.add(str(state_of(completer)))
    assert len(states) == 1
