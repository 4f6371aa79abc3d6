"""`MatrixCompleter` with side features of users and items."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest

from benchmarks.completer import completer_with, errors_in_batches
from benchmarks.data import rating_streams, side_features
from driftwolfe.estimators import MatrixCompleter
from driftwolfe.state import state_of as declared_state
from estimators.plain_features import PlainFeatures
from estimators.plain_ratings import price
from estimators.rating_streams import state_of, turning
from real_data import needs_data


def features(seed=0, users=12, items=9):
    """Three features of most users, some longer than 1 and some unknown, and two of most items."""
    rng = np.random.default_rng(seed)
    people = {k: rng.normal(size=3).tolist() for k in range(users - 2)} | {"new": [1.0, 0.0, 0.0]}
    people[3] = [math.nan, 0.5, 0.5]
    return people, {k: rng.normal(size=2).tolist() for k in range(1, items)}


def learned():
    return MatrixCompleter().add_features(*features()).partial_fit(*turning(300))


def whole_state(completer):
    _, arrays = declared_state({"features": completer._features})
    held = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    return state_of(completer), held


ASKED = [(0, 0), (3, 5), (11, 1), ("new", 1), (2, "new"), ("new", "new"), ("stranger", 3)]


@pytest.mark.in_turn
@pytest.mark.parametrize("loss", ["huber", "absolute", "squared"])
@pytest.mark.parametrize("given", ["both", "users", "items", "none", "both, later"])
def test_the_model_is_that_of_plain_python(loss, given):
    people, films = features()
    people, films = (
        (people if given not in ("items", "none") else {}),
        (films if given not in ("users", "none") else {}),
    )
    pairs, ratings = turning(160)
    # Those of both kinds that are low come rarely: the model goes below the lowest rating, and is clipped.
    ratings[:80] = [5.0 - 3.0 * (user < 6 or item < 4) for user, item in pairs[:80]]
    parts = 0.2 + 0.8 * np.random.default_rng(1).random(160)
    ours, without = MatrixCompleter(loss=loss), MatrixCompleter(loss=loss)
    plain, priced = PlainFeatures(people, films), partial(price, loss=loss)
    first = 40 if "later" in given else 0
    for n, (user, item) in enumerate(pairs):
        rating, part = float(ratings[n]), float(parts[n])
        if n == first:
            ours.add_features(people, films)
        told = ours.predict_one(user, item)
        other = without.predict_one(user, item)
        if n >= first:
            other = plain.learn(user, item, rating, other, priced, part)
        assert told == pytest.approx(other, rel=1e-9)
        ours.partial_fit([(user, item)], [rating], [part])
        without.partial_fit([(user, item)], [rating], [part])
    others = without.predict(ASKED).tolist()
    expected = [plain.predict(*pair, other) for pair, other in zip(ASKED, others, strict=True)]
    assert ours.predict(ASKED) == pytest.approx(expected, rel=1e-9)
    assert np.abs(ours.predict(ASKED) - others).max() > 0.01


def test_no_share_is_much_better_than_the_blend():
    """The bound of the documentation, in each stage: also against share 0, no features."""
    people, films = features()
    pairs, ratings = turning(1000)
    plain, others = PlainFeatures(people, films), MatrixCompleter()
    for (user, item), rating, other in zip(
        pairs, ratings.tolist(), others.prequential(pairs, ratings).tolist(), strict=True
    ):
        plain.learn(user, item, rating, other)
    stages, blended, losses = (np.array(each) for each in zip(*plain.losses, strict=True))
    spread = losses.max(axis=1) - losses.min(axis=1)
    assert set(stages.tolist()) == set(range(6))
    for stage in range(6):
        own = stages == stage
        allowed = math.log(5 * own.sum()) / 0.8 + 0.1 * (spread[own] ** 2).sum()
        assert blended[own].sum() - losses[own].sum(axis=0).min() <= allowed


def test_other_units_and_noise_of_rounding():
    pairs, ratings = turning(500)
    completer, other = (MatrixCompleter().add_features(*features()) for _ in range(2))
    told = completer.prequential(pairs, ratings)
    scaled = other.prequential(pairs, 7.0 - 300.0 * ratings)
    assert scaled[1:] == pytest.approx(7.0 - 300.0 * told[1:], rel=1e-6)
    pairs, ratings = turning(1000)
    noise = 1.0 + 1e-13 * np.random.default_rng(0).standard_normal(1000)
    one, other = (MatrixCompleter().add_features(*features()) for _ in range(2))
    told = one.prequential(pairs, ratings)
    assert other.prequential(pairs, noise * ratings) == pytest.approx(told, abs=1e-9)
    completer = MatrixCompleter().add_features(*features())
    told = completer.prequential(turning(100)[0], np.full(100, 0.1))
    assert told[0] == 0.0 and told[1:] == pytest.approx(0.1, abs=1e-15)


@pytest.mark.slow
@needs_data
def test_errors_on_movielens_in_batches_of_a_hundred():
    """0.7845 without features, and 0.7695 with them: `python -m benchmarks.completer --features`."""
    stream = rating_streams()["time order"]
    assert errors_in_batches(stream, completer_with(side_features())).mean() <= 0.770


@pytest.mark.parametrize("given", [None, features()])
def test_a_whole_weight_is_that_many_copies(given):
    pairs, ratings = turning(400)
    weights = np.arange(400) % 4
    weighted, copied, ones, plain = (completer_with(given) for _ in range(4))
    weighted.partial_fit(pairs, ratings, weights)
    times = np.repeat(np.arange(400), weights)
    copied.partial_fit([pairs[k] for k in times], ratings[times])
    assert whole_state(weighted) == whole_state(copied) and weighted.n_ratings_ == weights.sum()
    ones.partial_fit(pairs, ratings, 1)
    assert whole_state(ones) == whole_state(plain.partial_fit(pairs, ratings))


def test_factors_hold_no_features():
    with pytest.raises(ValueError, match="use predict"):
        learned().factors()


def test_unknown_features_count_as_zero_and_may_come_later():
    people, films = features()
    named = {str(key): row for key, row in people.items()}
    frames = [pd.DataFrame.from_dict(each, orient="index") for each in (named, films)]
    pairs = [(str(user), item) for user, item in turning(200)[0]]
    one, two, three = (MatrixCompleter() for _ in range(3))
    one.add_features(named, films)
    zeros = {"10": np.zeros(3), "11": np.full(3, np.nan), "3": np.array([0.0, 0.5, 0.5])}
    two.add_features({**named, **zeros}, {**films, 0: (0, 0)})
    three.add_features({"0": [9.0, 9.0, 9.0]}, {1: [1, 1]}).add_features(*frames)
    told = [each.prequential(pairs, turning(200)[1]).tolist() for each in (one, two, three)]
    assert told[0] == told[1] == told[2]
    pairs, ratings = turning(400)
    completer = MatrixCompleter().partial_fit(pairs[:200], ratings[:200])
    before = completer.predict(ASKED)
    completer.add_features(*features())
    assert completer.predict(ASKED).tolist() == before.tolist()
    told = completer.prequential(pairs[200:], ratings[200:])
    assert np.isfinite(told).all() and not np.array_equal(completer.predict(ASKED), before)


class Strange:
    """Neither a mapping nor a frame."""


#: Features of users and of items; learned are three and two.
WRONG = {
    "nothing": (None,),
    "a list": ([[1.0, 2.0, 3.0]],),
    "an object": (Strange(),),
    "lengths": ({1: [1.0, 2.0], 2: [1.0]},),
    "too few": ({1: [1.0, 2.0]}, {1: [1.0, 2.0]}),
    "too few items": ({1: [1.0, 2.0, 3.0]}, {1: [1.0]}),
    "numbers": ({1: 1.0},),
    "texts": ({1: ["a", "b", "c"]},),
    "infinite": ({1: [1.0, 2.0, math.inf]},),
    "huge": (None, {1: [1.0, 1e200]}),
    "too many": ({1: [0.0] * 257},),
    "an id that is missing": ({math.nan: [1.0, 2.0, 3.0]},),
    "masked": ({1: np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False])},),
    "an id twice": (pd.DataFrame(np.ones((2, 3)), index=[1, 1]),),
    "the second is wrong": ({1: [5.0, 0.0, 0.0]}, {1: "ab"}),
}


@pytest.mark.parametrize("fault", WRONG)
def test_features_that_make_no_sense_change_nothing(fault):
    completer, fresh = learned(), MatrixCompleter()
    before = whole_state(completer)
    with pytest.raises((ValueError, TypeError), match=r"users|items"):
        completer.add_features(*WRONG[fault])
    assert whole_state(completer) == before
    if "few" not in fault:
        with pytest.raises((ValueError, TypeError)):
            fresh.add_features(*WRONG[fault])
        assert fresh._features is None


def test_a_forgotten_user_leaves_nothing(tmp_path):
    pairs, ratings = turning(300)
    named = [(f"somebody {user}", item) for user, item in pairs]
    people, films = features()
    people = {f"somebody {key}": row for key, row in people.items()}
    completer = MatrixCompleter().add_features(people, films).partial_fit(named, ratings)
    others = [user for user in completer.users_ if user != "somebody 4"]
    asked = [(user, item) for user in [*others, "somebody at all"] for item in range(9)]
    told = completer.predict(asked)
    completer.forget("somebody 4").forget("somebody new")
    assert completer.predict(asked).tolist() == told.tolist()
    for user in ("somebody 4", "somebody new"):
        assert completer.predict_one(user, 3) == completer.predict_one("somebody at all", 3)
    completer.save(tmp_path / "ratings")
    content = (tmp_path / "ratings").read_bytes()
    assert b"somebody 4" not in content and b"somebody new" not in content
    assert content.count(b"somebody 5") == 2
    loaded = MatrixCompleter.load(tmp_path / "ratings")
    assert whole_state(loaded) == whole_state(completer)
    assert np.isfinite(loaded.prequential(named, ratings)).all()
