"""`Recommender` on MovieLens 100K: recall@10 of the next like, and after a change of taste."""

import numpy as np
import pytest

from benchmarks.ranking import Cooccurrence, dense_ranks, likes, our_ranks, recovery
from driftwolfe.estimators import Recommender
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
