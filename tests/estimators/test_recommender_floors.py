"""Recommenders on MovieLens 100K: recall of the next like, errors of ratings, and changes of taste."""

import numpy as np
import pytest

from benchmarks.data import rating_streams, recoveries
from benchmarks.ranking import Cooccurrence, dense_ranks, likes, our_ranks, recovery
from driftwolfe.estimators import MatrixCompleter, Recommender
from real_data import needs_data


@needs_data
def test_recall():
    stream = likes()
    hits = our_ranks(stream) < 10
    assert stream.scored.sum() == hits.size == 54_433
    assert hits.mean() >= 0.2  # 0.207; promised is 0.172, refitted EASE has 0.174


@pytest.mark.slow
@needs_data
def test_recall_from_likes_alone():
    stream = likes()
    pairs = np.stack([stream.users, stream.items], axis=1)[stream.liked]
    ranks = Recommender().prequential(pairs)[stream.scored[stream.liked]]
    assert np.mean((ranks >= 0) & (ranks < 10)) >= 0.178  # 0.184


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("seed", [1, 2])
def test_a_change_of_taste(seed):
    plain, changed = likes(), likes(seed)
    hits, later = our_ranks(plain) < 10, our_ranks(changed) < 10
    start = int(changed.scored[: changed.users.size // 2].sum())
    # Refitted EASE stays 17 % below the recall without the change.
    assert later[start:].mean() >= 0.93 * hits[start:].mean()
    assert recovery(later, hits, start) == 0


@pytest.mark.slow
@needs_data
def test_recall_above_that_of_plain_cooccurrence_at_the_start():
    stream = likes()
    first = type(stream)(*(part[:12_000] for part in stream))
    shape = (int(stream.users.max()) + 1, int(stream.items.max()) + 1)
    plain = dense_ranks(Cooccurrence(shape), first)
    assert np.mean(our_ranks(first) < 10) > np.mean(plain < 10)


TIME, FILE, DRIFT, FLIPS = (
    "time order",
    "file order",
    "three copies, the middle one negated",
    "one pass, flipped twice",
)
#: Largest mean absolute errors, a little below what is promised: 0.741, 0.756, 0.80 and 0.83 one at
#: a time, 0.795, 0.758 and 0.80 in batches of 100.
ONE_AT_A_TIME = {TIME: 0.737, FILE: 0.750, DRIFT: 0.772, FLIPS: 0.802}
IN_BATCHES = {TIME: 0.789, FILE: 0.753, DRIFT: 0.776, FLIPS: 0.81}
#: Most ratings until the error is back. At its best learning rate river's BiasedMF takes 37,399 and
#: 71,928, then 22,845 and more than 16,667: `python -m benchmarks.completer` has both.
BACK = {DRIFT: (9000, 6000), FLIPS: (4500, 2500)}


def in_batches(stream, size=100):
    completer, told = MatrixCompleter(), []
    for start in range(0, stream.ratings.size, size):
        part = slice(start, start + size)
        pairs = stream.pairs[part]
        told.append(completer.predict(pairs) if start else np.zeros(len(pairs)))
        completer.partial_fit(stream.pairs[part], stream.ratings[part])
    return np.concatenate(told)


def mae(told, stream):
    return float(np.abs(told - stream.ratings).mean())


@needs_data
@pytest.mark.parametrize(
    "name", [TIME, FLIPS, *(pytest.param(each, marks=pytest.mark.slow) for each in (FILE, DRIFT))]
)
def test_errors_one_rating_at_a_time(name):
    stream = rating_streams()[name]
    told = MatrixCompleter().prequential(stream.pairs, stream.ratings)
    assert mae(told, stream) <= ONE_AT_A_TIME[name]
    back = recoveries(np.abs(told - stream.ratings), stream.flips)
    assert all(found <= most for found, most in zip(back, BACK.get(name, ()), strict=True))


@needs_data
@pytest.mark.parametrize(
    "name", [TIME, *(pytest.param(each, marks=pytest.mark.slow) for each in (FILE, FLIPS, DRIFT))]
)
def test_errors_in_batches_of_a_hundred(name):
    stream = rating_streams()[name]
    assert mae(in_batches(stream), stream) <= IN_BATCHES[name]


@needs_data
@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "absolute"},
        pytest.param({"loss": "squared"}, marks=pytest.mark.slow),
        pytest.param({"weighting": 0.0}, marks=pytest.mark.slow),
    ],
)
def test_other_settings_learn_too(settings):
    stream = rating_streams()[FILE]
    told = MatrixCompleter(**settings).prequential(stream.pairs, stream.ratings)
    assert mae(told, stream) <= 0.765


@needs_data
@pytest.mark.slow
def test_interactions_and_restarts_each_help():
    """Without one of them the error is larger, by more than chance on 100,000 ratings."""
    file, flips = rating_streams()[FILE], rating_streams()[FLIPS]
    whole = mae(MatrixCompleter().prequential(file.pairs, file.ratings), file)
    plain = mae(MatrixCompleter(radii=()).prequential(file.pairs, file.ratings), file)
    assert plain > whole + 0.008
    moving = mae(MatrixCompleter().prequential(flips.pairs, flips.ratings), flips)
    steady = mae(MatrixCompleter(learner="pold").prequential(flips.pairs, flips.ratings), flips)
    assert steady > moving + 0.005
