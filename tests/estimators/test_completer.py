"""`MatrixCompleter`: batches and single ratings are one, asking and refusing change nothing."""

import enum

import numpy as np
import pandas as pd
import polars as pl
import pytest

from driftwolfe.estimators import MatrixCompleter, Recommender
from estimators.rating_streams import (
    answers,
    coming_and_going,
    constants,
    one_by_one,
    state_of,
    turning,
)


def learned(count=300):
    return MatrixCompleter().partial_fit(*turning(count))


#: Small enough that steps are folded several times, or large enough that they never are.
@pytest.mark.parametrize(
    ("memory", "rows", "stream"),
    [
        # Users and items appear all the time, also between two projections of one batch.
        (64, 1000, turning(500, users=60, items=45, new=15)),
        (300, 1000, turning(900, users=60, items=45, new=15)),
        (100_000, 1000, turning(1100, users=60, items=45, new=15)),
        (64, 5, coming_and_going()),  # most users rest
    ],
)
def test_one_batch_leaves_the_state_of_single_ratings(memory, rows, stream, monkeypatch):
    constants(monkeypatch, MEMORY=memory, MOST_ROWS=rows, FIRST_LOW_RANK_LEVEL=7)
    pairs, ratings = stream
    whole, single, parts = (MatrixCompleter() for _ in range(3))
    told = whole.prequential(pairs, ratings)
    asked = one_by_one(single, pairs, ratings)
    for start in range(0, len(pairs), 100):
        part = slice(start, start + 100)
        assert parts.partial_fit(pairs[part], ratings[part]) is parts
    assert told.tobytes() == asked.tobytes()
    assert state_of(whole) == state_of(single) == state_of(parts)
    assert len(whole._pool.low.radii) > 4 and np.abs(whole.factors().users).max() > 0
    assert bool(whole._pool.older) == (memory < len(pairs))
    assert (whole._pool.users.size < 20 < whole.n_users_) == (rows == 5)
    assert whole.users_ == list(dict.fromkeys(user for user, _ in pairs))
    work = [whole.users_[row] for row in whole._pool.owners()]
    asked = [(u, i) for u in [*work, "new", *whole.users_] for i in [*whole.items_, "new"]]
    alone = np.array([whole.predict([pair])[0] for pair in asked])
    assert whole.predict(asked).tolist() == alone.tolist()
    low, high = whole._pool.scale.numbers[1:3]
    mean = (answers(whole).clip(low, high) @ whole.expert_weights_).ravel()
    assert mean == pytest.approx(alone[: mean.size], abs=1e-12)


def test_what_is_handed_out_or_in_is_a_copy():
    completer = learned()
    before = state_of(completer)
    completer.users_.append("spoilt")
    completer.expert_weights_[:] = 0.0
    for part in completer.factors()[1:]:
        part[:] = 0.0
    pairs, ratings = [(0, 0), (1, 1)], np.array([1.0, 2.0])
    completer.predict(pairs)[:] = 0.0
    assert state_of(completer) == before
    completer.partial_fit(pairs, ratings)
    after = state_of(completer)
    ratings[:] = 99.0
    assert state_of(completer) == after


#: Pairs beyond those that tests/contracts hands in.
REFUSED = {
    "texts of two": (["ab", "cd"], ValueError, "pairs must be a list of"),
    "uneven": ([(0, 1), (0,)], ValueError, "pairs must be a list of"),
    "flat array": (np.zeros(2), ValueError, r"shape \(n, 2\), got \(2,\)"),
    "wide frame": (pd.DataFrame(np.zeros((2, 3))), ValueError, "must have two columns"),
    "a series": (pd.Series([1, 2]), ValueError, "a frame of pandas"),
    "array as id": ([(np.zeros(2), 1), (1, 1)], TypeError, "id of one user must be hashable"),
    "NaT as id": ([(np.datetime64("NaT", "s"), 1)] * 2, ValueError, "id of one user is missing"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_a_refused_call_changes_nothing(fault):
    pairs, error, message = REFUSED[fault]
    for completer in (learned(100), MatrixCompleter()):
        before = state_of(completer)
        for call in (completer.partial_fit, completer.prequential):
            with pytest.raises(error, match=message):
                call(pairs, [1.0, 2.0])
        assert state_of(completer) == before
    with pytest.raises(error, match=message):  # nor can they be asked for
        learned(100).predict(pairs)


def test_settings_that_make_no_sense_are_refused():
    for loss in ("cubic", ["huber"]):
        with pytest.raises(ValueError, match='loss must be one of "absolute", "huber", "squared"'):
            MatrixCompleter(loss=loss)
    with pytest.raises(TypeError, match="keep_seen must be True or False, got 1"):
        MatrixCompleter(keep_seen=1)


class Colour(enum.Enum):
    RED = 1


def test_ids_are_anything_hashable():
    ids = ["a", 7, 2.5, ("a", 7), None, b"a", frozenset({1}), Colour.RED]
    ids.append(np.datetime64("2020-01-01"))
    completer = MatrixCompleter()
    for _ in range(2):
        completer.partial_fit([(key, key) for key in ids], np.arange(9.0))
    assert len(completer.users_) == len(completer.items_) == len(ids)
    assert completer.users_[:-1] == ids[:-1]
    assert completer.n_ratings_ == 18
    assert len(set(completer.predict([(key, key) for key in ids]).tolist())) == len(ids)


def test_types_of_ids():
    completer = MatrixCompleter().partial_fit([(np.int64(3), np.str_("a"))], [1.0])
    completer.partial_fit(np.array([[3, 4]]), [2.0]).partial_fit([(3, "a"), (3.0, 4)], [3.0, 4.0])
    assert completer.users_ == [3] and completer.items_ == ["a", 4]
    assert type(completer.users_[0]) is int and type(completer.items_[0]) is str
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": [1, 2]})
    completer = MatrixCompleter().partial_fit(frame, [1.0, 2.0])
    assert completer.users_ == ["ann", "bob"] and completer.items_ == [1, 2]


def test_forms_of_pairs_are_the_same():
    pairs, ratings = turning(60)
    texts = [(f"u{u}", f"i{i}") for u, i in pairs]
    frame = pd.DataFrame(pairs, columns=["who", "what"], index=range(5, 65))
    same = [
        MatrixCompleter().partial_fit(form, ratings) for form in (pairs, np.array(pairs), frame)
    ]
    same.append(MatrixCompleter().partial_fit(iter(pairs), pd.Series(ratings)))
    same.append(MatrixCompleter().partial_fit([list(pair) for pair in pairs], ratings.tolist()))
    assert all(state_of(one) == state_of(same[0]) for one in same)
    same[0].learn_one(3, 4, 4.0)
    for one, pair, rating in zip(
        same[1:],
        ([[3, 4]], np.array([[3, 4]]), [(np.int64(3), np.int32(4))], ((3, 4),)),
        ([4], np.array([4.0]), [np.float64(4.0)], (4.0,)),
        strict=True,
    ):
        assert one.predict(pair) == one.predict_one(3, 4)
        assert state_of(one.partial_fit(pair, rating)) == state_of(same[0])
    named = [
        MatrixCompleter().partial_fit(form, ratings)
        for form in (texts, np.array(texts), np.array(texts, dtype=object), pd.DataFrame(texts))
    ]
    assert all(state_of(one) == state_of(named[0]) for one in named)
    # Names mean nothing: only who is the same as whom.
    assert state_of(named[0])[:2] == state_of(MatrixCompleter().partial_fit(pairs, ratings))[:2]


def test_polars_frames_are_read_by_rows():
    for users in (["u0", "u1"], ["u0", "u1", "u2"]):
        items = [2**60 + k for k in range(len(users))]
        frame = pl.DataFrame({"user": users, "item": items})
        for model in (
            MatrixCompleter().partial_fit(frame, np.ones(len(users))),
            Recommender().partial_fit(frame),
        ):
            assert model.users_ == users and model.items_ == items
    for wrong in (frame.lazy(), frame.with_columns(more=pl.col("item"))):
        with pytest.raises(ValueError, match=r"pairs must (be a list|have two columns)"):
            Recommender().partial_fit(wrong)


@pytest.mark.parametrize("model", [MatrixCompleter(), Recommender()])
def test_a_user_who_is_not_known_is_not_forgotten_silently(model):
    model.partial_fit(
        [(1, "x"), ("ann", "y")], *([[1.0, 2.0]] * isinstance(model, MatrixCompleter))
    )
    with pytest.raises(
        KeyError, match="no user '1', of type str, is known; there is 1, of type int"
    ):
        model.forget("1")
    with pytest.raises(KeyError, match=r"no user 'bob', of type str, is known\"$"):
        model.forget("bob")
    assert model.forget(1).users_ == ["ann"]
