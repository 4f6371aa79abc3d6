"""Recommenders on MovieLens 100K: recall of the next like, errors of ratings, and changes of taste."""

import numpy as np
import pytest

from benchmarks.completer import errors_in_batches, errors_of_ours
from benchmarks.data import rating_streams, recoveries
from benchmarks.ranking import Cooccurrence, dense_ranks, likes, our_ranks, recovery
from driftwolfe.estimators import MatrixCompleter, Recommender
from estimators.rating_streams import constants
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
def test_a_change_of_taste():
    plain, changed = likes(), likes(1)
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


def mean_error(stream):
    return errors_of_ours(stream).mean()


@needs_data
@pytest.mark.parametrize(
    "name", [TIME, FLIPS, *(pytest.param(each, marks=pytest.mark.slow) for each in (FILE, DRIFT))]
)
def test_errors_one_rating_at_a_time(name):
    stream = rating_streams()[name]
    errors = errors_of_ours(stream)
    assert errors.mean() <= ONE_AT_A_TIME[name]
    back = recoveries(errors, stream.flips)
    assert all(found <= most for found, most in zip(back, BACK.get(name, ()), strict=True))


@needs_data
@pytest.mark.parametrize(
    "name", [TIME, *(pytest.param(each, marks=pytest.mark.slow) for each in (FILE, FLIPS, DRIFT))]
)
def test_errors_in_batches_of_a_hundred(name):
    assert errors_in_batches(rating_streams()[name]).mean() <= IN_BATCHES[name]


@needs_data
@pytest.mark.parametrize("loss", ["absolute", pytest.param("squared", marks=pytest.mark.slow)])
def test_other_losses_learn_too(loss):
    stream = rating_streams()[FILE]
    told = MatrixCompleter(loss=loss).prequential(stream.pairs, stream.ratings)
    assert np.abs(told - stream.ratings).mean() <= 0.765


@needs_data
@pytest.mark.slow
def test_interactions_and_restarts_each_help(monkeypatch):
    """Without one of them the error is larger, by more than chance on 100,000 ratings."""
    file, flips = rating_streams()[FILE], rating_streams()[FLIPS]
    whole, moving = mean_error(file), mean_error(flips)
    with monkeypatch.context() as patch:
        constants(patch, RADII=(1e-9, 1e-9))
        assert mean_error(file) > whole + 0.008
    constants(monkeypatch, FIRST_LEVEL=99)
    assert mean_error(flips) > moving + 0.005
