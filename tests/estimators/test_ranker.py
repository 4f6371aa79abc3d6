"""`Recommender`: its experts and their mixture against plain code, what it promises, what it refuses."""

import numpy as np
import pytest

from driftwolfe.estimators import Recommender, ranker_kernels
from driftwolfe.estimators.ranker_pool import scratch
from estimators.plain_ranks import PlainRanks

USERS, ITEMS = 30, 80


def events(count, seed=0, users=USERS, items=ITEMS):
    """Users who walk through neighbouring items, with repeats, and events that were only seen."""
    rng = np.random.default_rng(seed)
    places = rng.integers(0, items, users)
    who = rng.integers(0, users, count)
    pairs = []
    for user in who.tolist():
        places[user] = (places[user] + rng.integers(-3, 4)) % items
        pairs.append((user, int(places[user])))
    return pairs, (rng.random(count) < 0.9) * rng.choice([0.5, 1.0, 2.0], count)


def test_experts_are_those_of_plain_code():
    pairs, weights = events(250, items=40)
    numbers, model, plain = {}, Recommender(), PlainRanks(40)
    for (user, item), weight in zip(pairs, weights.tolist(), strict=True):
        number = numbers.setdefault(item, len(numbers))
        expected = plain.chances(user) if plain.known.any() else None
        told = model.expert_predictions([(user, other) for other in numbers])
        if expected is not None:
            fresh = [other for other in numbers.values() if other not in plain.seen.get(user, ())]
            fresh = [other for other in fresh if plain.known[other]]
            np.testing.assert_allclose(told[fresh, :-1], expected[:, fresh].T, rtol=2e-3, atol=1e-7)
            if fresh:
                np.testing.assert_allclose(told.sum(axis=0), 1.0, rtol=1e-4)
        model.partial_fit([(user, item)], weights=[weight])
        plain.learn(user, number, weight)


def mixture_and_experts(pairs, weights):
    """Log losses of the mixture and of each expert in every round, and the bucket of the round."""
    model, rows, seen, known = Recommender(), [], {}, set()
    for (user, item), weight in zip(pairs, weights.tolist(), strict=True):
        own = seen.setdefault(user, set())
        if weight > 0.0 and item in known and item not in own:
            bucket = min(len(own).bit_length(), ranker_kernels.BUCKETS - 1)
            mixed = model.predict([(user, item)])
            rows.append(
                (bucket, -np.log(mixed[0]), -np.log(model.expert_predictions([(user, item)])[0]))
            )
        model.partial_fit([(user, item)], weights=[weight])
        own.add(item)
        known.add(item)
    return model, rows


def best_sequence(losses, switches):
    """The least total loss of a sequence of experts with so many switches, by dynamic programming."""
    best = np.full((switches + 1, losses.shape[1]), np.inf)
    best[0] = 0.0
    for row in losses:
        for s in range(switches, 0, -1):
            best[s] = np.minimum(best[s], best[s - 1].min())
        best += row
    return best.min()


@pytest.mark.parametrize("seed", [0, 1])
def test_the_mixture_keeps_its_bound_against_all_sequences(seed):
    model, rows = mixture_and_experts(*events(1500, seed))
    for bucket in {row[0] for row in rows}:
        mixed = sum(row[1] for row in rows if row[0] == bucket)
        losses = np.array([row[2] for row in rows if row[0] == bucket])
        for switches in (0, 1, 3):
            bound = (switches + 1) * np.log(losses.shape[1] * len(losses))
            assert mixed - best_sequence(losses, switches) <= bound + 1e-3
    assert model.regret_bound(2) > model.regret_bound() > 0.0
    # All buckets together: the best sequence of each, without switches.
    total = sum(row[1] for row in rows)
    apart = sum(
        np.array([row[2] for row in rows if row[0] == bucket]).sum(axis=0).min()
        for bucket in {row[0] for row in rows}
    )
    assert total - apart <= model.regret_bound() + 1e-3


def test_weights_are_those_of_bayes_rule_with_a_share():
    model = Recommender().partial_fit([(0, "a"), (1, "b"), (1, "c")])
    chances = model.expert_predictions([(0, "b")])[0]
    row = model.expert_weights_[1]
    posterior = row * chances / (row @ chances)
    rounds = int(model._pool.ranks.rounds[1])
    share = 1.0 / (rounds + 2)
    model.partial_fit([(0, "b")])
    expected = (1.0 - share) * posterior + share / chances.size
    np.testing.assert_allclose(model.expert_weights_[1], expected, rtol=1e-9)


def test_many_at_once_is_one_by_one():
    pairs, weights = events(400)
    times = np.cumsum(np.random.default_rng(3).exponential(size=400))
    whole, single = Recommender(), Recommender()
    ranks = whole.prequential(pairs, weights=weights, times=times)
    for pair, weight, time, rank in zip(
        pairs, weights.tolist(), times.tolist(), ranks, strict=True
    ):
        listed = single.recommend(pair[0], ITEMS)
        assert rank == -1 or listed.index(pair[1]) == rank
        assert (rank == -1) == (pair[1] not in listed or weight == 0.0)
        single.partial_fit([pair], weights=[weight], times=[time])
    users = [*range(USERS), "new"]
    lists, scores = whole.recommend_many(users, 7, return_scores=True)
    for user, items, score in zip(users, lists, scores, strict=True):
        alone = single.recommend(user, 7, return_scores=True)
        assert items == alone[0] and np.array_equal(score, alone[1])
        assert (np.diff(score) <= 0.0).all() and not set(items) & set(whole.seen(user))
        np.testing.assert_allclose(
            score, whole.predict([(user, item) for item in items]), rtol=1e-4
        )


def test_scores_of_all_items_sum_to_one():
    pairs, weights = events(600)
    model = Recommender().partial_fit(pairs, weights=weights)
    for user in (0, 5, "new"):
        items, scores = model.recommend(user, ITEMS, return_scores=True)
        assert {*items, *model.seen(user)} == {pair[1] for pair in pairs}
        assert abs(scores.sum() - 1.0) < 1e-5


def test_a_large_catalogue_finds_what_a_whole_search_finds():
    pairs, weights = events(12_000, users=400, items=3_000)
    model = Recommender().partial_fit(pairs, weights=weights)
    assert model.n_items_ > ranker_kernels.SMALL_CATALOGUE
    pool, users = model._pool, np.arange(50)
    quick, _ = pool.recommend(users, 10)
    best, chances = np.empty((50, 10), np.int64), np.empty((50, 10))
    ranker_kernels.recommend(users, 10, True, pool.ranks, scratch(pool.items), best, chances)
    shared = np.mean([np.isin(*pair).mean() for pair in zip(quick, best, strict=True)])
    assert shared > 0.9
    # More than there are neighbours and popular items: the whole catalogue is searched.
    everything = model.recommend(0, model.n_items_)
    assert len(everything) == model.n_items_ - len(model.seen(0))


def test_long_lists_of_neighbours_keep_the_frequent_ones():
    rng = np.random.default_rng(0)
    model = Recommender()
    for user in range(1200):  # "hub" is followed by "friend", and by something rare
        model.partial_fit([(user, "hub"), (user, "friend"), (user, f"rare {rng.integers(2000)}")])
    ranks = model._pool.ranks
    slots = 1 << ranks.lists[: model.n_items_, ranker_kernels.LEVEL].max()
    assert slots == 1 << ranker_kernels.LAST_LEVEL
    assert (4 * ranks.lists[:, ranker_kernels.SIZE] <= 3 * slots).all()
    model.partial_fit([("new", "hub")])
    assert model.recommend("new", 1) == ["friend"]


def test_seen_items_are_never_forgotten_and_repeats_take_no_room():
    model = Recommender()
    model.partial_fit([("ann", item) for item in range(500)], weights=np.arange(500) % 2)
    model.partial_fit([("bob", item) for item in range(501)])
    assert model.recommend("ann", 10) == [500]
    room = model._pool.ranks.free_seen.copy()
    model.partial_fit([("ann", item) for item in range(500)] * 2)
    assert model.recommend("ann", 10) == [500] and model.seen("ann") == list(range(500))
    assert np.array_equal(model._pool.ranks.free_seen, room)


def test_forget():
    pairs, _ = events(500)
    model = Recommender().partial_fit(pairs)
    kept = {user: model.seen(user) for user in range(USERS)}
    model.forget(3).forget("nobody")
    assert model.n_users_ == USERS - 1 and model.seen(3) == []
    assert all(model.seen(user) == kept[user] for user in range(USERS) if user != 3)
    assert model.recommend(3, 5) == model.recommend("new", 5)
    model.partial_fit([(3, 0), ("new", 1)])
    assert model.seen(3) == [0] and model.seen("new") == [1] and model.n_users_ == USERS + 1
    while model.n_users_:
        model.forget(next(iter(model._users.numbers)))
    assert model.recommend(0, 3) == model.recommend("new", 3)


def test_popularity_fades_with_time_if_there_are_times():
    pairs = [(user, "old") for user in range(600)] + [(user, "new") for user in range(600, 603)]
    steady, jump = np.arange(603.0), np.append(np.arange(600.0), [1e6, 1e6 + 1, 1e6 + 2])
    by_time = Recommender().partial_fit(pairs, times=jump).expert_predictions([("x", "new")])[0]
    by_event = Recommender().partial_fit(pairs).expert_predictions([("x", "new")])[0]
    same = Recommender().partial_fit(pairs, times=60.0 * steady).expert_predictions([("x", "new")])
    assert by_time[2] > 2.0 * by_event[2]
    np.testing.assert_allclose(same[0], by_event, rtol=0.02)


def test_an_empty_model():
    model = Recommender()
    assert model.recommend("ann", 5) == [] and model.recommend_many([], 5) == []
    assert model.predict([("ann", 1)]) == 0.0 and model.regret_bound() == 0.0
    model.partial_fit([("ann", 1)])
    assert model.recommend("ann", 5) == [] and model.recommend("bob", 5) == [1]
    assert (model.n_users_, model.n_items_, model.n_events_) == (1, 1, 1)
    assert len(model.expert_names_) == model.expert_weights_.shape[1]


def test_time_and_memory_do_not_grow_with_users():
    rng = np.random.default_rng(0)
    model = Recommender()
    for first in range(0, 20_000, 5_000):
        users = np.arange(first, first + 5_000)
        model.partial_fit(np.stack([users, rng.integers(0, 1000, 5_000)], axis=1))
    ranks = model._pool.ranks
    per_user = (ranks.users.nbytes + ranks.seen.nbytes) / 20_000
    assert per_user < 100 and ranks.neighbours.size <= (ranker_kernels.WINDOW + 1) << 9
