"""`Recommender`: its experts and their mixture against plain code, what it promises, what it refuses."""

import copy

import numpy as np
import pytest

from driftwolfe.estimators import Recommender, recommender_kernels
from estimators.plain_ranks import PlainRanks, expert_chances
from estimators.rating_streams import best_sequences

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


def crowd(count, items):
    """Users who see much or little, one item that most like, pauses, and one that is long."""
    rng = np.random.default_rng(1)
    users = np.where(rng.random(count) < 0.3, rng.integers(0, 3, count), np.arange(count) // 3)
    liked = np.where(rng.random(count) < 0.8, 0, rng.integers(0, items, count))
    gaps = rng.exponential(size=count)
    gaps[count // 3] = 1e9
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], count, p=[0.1, 0.3, 0.3, 0.3])
    weights[(users == 1) & (rng.random(count) < 0.9)] = 0.0  # who likes little
    pairs = list(zip(users.tolist(), liked.tolist(), strict=True))
    return pairs, weights, np.cumsum(gaps)


@pytest.mark.parametrize(
    ("stream", "every"), [((*events(250, items=40), None), 1), (crowd(4500, 200), 1500)]
)
def test_experts_are_those_of_plain_code(stream, every):
    """At every event, and so long that scales which grow are brought back to 1."""
    (pairs, weights, times), numbers, model = stream, {}, Recommender()
    plain, gaps = PlainRanks(200), np.diff(times, prepend=times[0]) if times is not None else None
    for n, ((user, item), weight) in enumerate(zip(pairs, weights.tolist(), strict=True), start=1):
        elapsed = None
        if times is not None:  # in units of the mean so far, at most 10,000
            elapsed = min(gaps[n - 1] / max(gaps[:n].mean(), 1e-300), 1e4)
        plain.learn(user, numbers.setdefault(item, len(numbers)), weight, elapsed)
        if n % every:
            continue
        part = slice(n - every, n)
        given = {} if times is None else {"times": times[part]}
        model.partial_fit(pairs[part], weights=weights[part], **given)
        np.testing.assert_allclose(model.expert_weights_, plain.weights, rtol=1e-2)
        for other in {user, 0, 1, 2, "new"} if every > 1 else {user, pairs[n % len(pairs)][0]}:
            open_ = [item for k, item in enumerate(numbers) if k not in plain.seen.get(other, ())]
            if open_:
                expected = plain.chances(other)[:, [numbers[item] for item in open_]]
                told = expert_chances(model, [(other, item) for item in open_])
                np.testing.assert_allclose(told, expected.T, rtol=2e-3, atol=1e-7)
                mixed = model.predict([(other, item) for item in open_])
                np.testing.assert_allclose(
                    mixed, plain.weights[plain.bucket(other)] @ expected, rtol=1e-2
                )


def adversary(kind, rounds, rng):
    """Yield chances that hurt: a function of the weights before the round."""
    best = 0
    for t in range(rounds):
        weights = yield None
        if kind == "against the leader":
            chances = np.where(np.arange(weights.size) == weights.argmax(), 1e-6, 0.5)
        elif kind == "lure":  # one expert is right until it is trusted, then the least trusted
            best = weights.argmin() if weights[best] > 0.99 else best
            chances = np.where(np.arange(weights.size) == best, 0.9, 1e-4)
        elif kind == "blocks":
            chances = np.where(np.arange(weights.size) == t // 50 % weights.size, 0.3, 1e-3)
        else:
            chances = 10.0 ** rng.uniform(-8.0, 0.0, weights.size)
        yield chances


@pytest.mark.parametrize("kind", ["against the leader", "lure", "blocks", "random"])
def test_the_bound_holds_against_adversaries(kind):
    experts, horizon = recommender_kernels.EXPERTS, 600
    weights, rounds = np.full((1, experts), 1.0 / experts), np.zeros(1, np.int64)
    mixed, losses, turns = 0.0, [], adversary(kind, horizon, np.random.default_rng(0))
    for _ in range(horizon):
        next(turns)
        chances = turns.send(weights[0].copy())
        mixed -= np.log(weights[0] @ chances)
        losses.append(-np.log(chances))
        recommender_kernels.reweigh.py_func(weights, rounds, 0, chances[None])
        assert abs(weights.sum() - 1.0) < 1e-12
        # At all times, not only at the end.
        if rounds[0] in (1, 2, 10, 100, horizon):
            for switches, best in enumerate(best_sequences(np.array(losses), 40)):
                bound = (switches + 1) * np.log(experts * rounds[0])
                assert mixed - best <= bound + 1e-9


def test_many_at_once_is_one_by_one():
    pairs, weights = events(400)
    whole, single = Recommender(), Recommender()
    ranks = whole.prequential(pairs, weights=np.repeat(weights, 2)[::2])  # of any strides
    for pair, weight, rank in zip(pairs, weights.tolist(), ranks, strict=True):
        listed = single.recommend(pair[0], ITEMS)
        assert rank == -1 or listed.index(pair[1]) == rank
        assert (rank == -1) == (pair[1] not in listed or weight == 0.0)
        single.partial_fit([pair], weights=[weight])
    users = [*range(USERS), "new"]
    lists, scores = whole.recommend_many(users, 7, return_scores=True)
    for user, items, score in zip(users, lists, scores, strict=True):
        alone = single.recommend(user, 7, return_scores=True)
        assert items == alone[0] and np.array_equal(score, alone[1])
        assert (np.diff(score) <= 0.0).all() and not set(items) & set(whole.seen(user))
        np.testing.assert_allclose(
            score, whole.predict([(user, item) for item in items]), rtol=1e-4
        )


def test_a_large_catalogue_finds_what_a_whole_search_finds():
    pairs, weights = events(12_000, users=400, items=3_000)
    model = Recommender().partial_fit(pairs, weights=weights)
    users = list(range(40))
    quick = model.recommend_many(users, 10)
    # More than there are neighbours and popular items: the whole catalogue is searched.
    whole, scores = model.recommend_many(users, model.n_items_, return_scores=True)
    assert np.mean([len({*one} & {*two[:10]}) for one, two in zip(quick, whole, strict=True)]) > 9
    for user, items, score in zip(users, whole, scores, strict=True):
        assert len(items) == model.n_items_ - len(model.seen(user))
        # All of the catalogue has its share, whatever is searched.
        assert abs(score.sum() - 1.0) < 1e-4
    asked = [
        (user, item) for user, items in zip(users, whole, strict=True) for item in items[::500]
    ]
    expected = np.concatenate([score[::500] for score in scores])
    np.testing.assert_allclose(model.predict(asked), expected, rtol=1e-4)


def test_long_lists_of_neighbours_keep_the_frequent_ones():
    rng = np.random.default_rng(0)
    model = Recommender()
    for user in range(1200):  # "hub" is followed by "friend", and by something rare
        model.partial_fit([(user, "hub"), (user, "friend"), (user, f"rare {rng.integers(2000)}")])
    ranks = model._pool.ranks
    assert ranks.lists[:, recommender_kernels.SIZE].max() <= recommender_kernels.MOST_NEIGHBOURS
    assert ranks.lists[:, recommender_kernels.LEVEL].max() == recommender_kernels.LAST_LEVEL
    for start, size, _ in ranks.lists:  # each neighbour once, with its own count
        own = ranks.neighbours[start : start + size]
        assert np.unique(own).size == size and (ranks.counts[start : start + size] > 0.0).all()
    model.partial_fit([("new", "hub")])
    assert model.recommend("new", 1) == ["friend"]


@pytest.mark.parametrize("size", [1, 4, 7, 40])
@pytest.mark.parametrize("values", [1, 3, 1000])
def test_the_rarest_quarter_of_neighbours_goes_of_equal_ones_the_earliest(size, values):
    rng = np.random.default_rng(size)
    counts = rng.integers(1, values + 1, (size + 4, 2)).astype(np.float32)
    names, own = np.arange(size + 4), slice(2, 2 + size)
    stay = np.sort(np.argsort(counts[own, 0], kind="stable")[size // 4 :])
    wanted = counts[own][stay]
    kept = recommender_kernels.drop_rarest.py_func(2, size, names, counts)
    assert kept == stay.size and names[2 : 2 + kept].tolist() == (stay + 2).tolist()
    np.testing.assert_array_equal(counts[2 : 2 + kept], wanted)


def test_seen_items_are_never_forgotten_and_repeats_take_no_room():
    model = Recommender()
    model.partial_fit([("ann", item) for item in range(500)], weights=np.arange(500) % 2)
    model.partial_fit([("bob", item) for item in range(501)])
    assert model.recommend("ann", 10) == [500]
    room = model._pool.ranks.free[recommender_kernels.OF_USERS].copy()
    model.partial_fit([("ann", item) for item in range(500)] * 2)
    assert model.recommend("ann", 10) == [500] and model.seen("ann") == list(range(500))
    assert np.array_equal(model._pool.ranks.free[recommender_kernels.OF_USERS], room)


def test_forget():
    pairs, _ = events(500)
    model = Recommender().partial_fit(pairs)
    kept = {user: model.seen(user) for user in range(USERS)}
    model.forget(3)
    assert model.n_users_ == USERS - 1 and model.seen(3) == []
    assert all(model.seen(user) == kept[user] for user in range(USERS) if user != 3)
    assert model.recommend(3, 5) == model.recommend("new", 5)
    model.partial_fit([(3, 0), ("new", 1)])
    assert model.seen(3) == [0] and model.seen("new") == [1] and model.n_users_ == USERS + 1
    while model.n_users_:
        model.forget(next(iter(model._users.numbers)))
    assert model.recommend(0, 3) == model.recommend("new", 3)


def test_times_go_on_after_a_call_and_a_file(tmp_path):
    pairs, weights = events(300)
    times = np.cumsum(np.random.default_rng(3).exponential(size=300))
    whole, parts = Recommender().partial_fit(pairs, weights=weights, times=times), Recommender()
    for start in range(0, 300, 100):
        some = slice(start, start + 100)
        parts.partial_fit(pairs[some], weights=weights[some], times=times[some])
        parts.save(tmp_path / "events")
        parts = copy.deepcopy(Recommender.load(tmp_path / "events"))
    asked = [(user, item) for user in range(USERS) for item in range(ITEMS)]
    assert whole.predict(asked).tolist() == parts.predict(asked).tolist()
    with pytest.raises(ValueError, match="times must never fall"):
        parts.partial_fit([(0, 0)], times=[times[-1] - 1.0])
    assert parts.n_events_ == 300
    # A pause counts for at most 10,000 events, so that no sum overflows.
    assert Recommender()._elapsed(np.append(np.zeros(20_000), 1.0))[0].max() == 1e4


def test_an_empty_model():
    model = Recommender()
    assert model.recommend("ann", 5) == [] and model.recommend_many([], 5) == []
    assert model.predict([("ann", 1)]) == 0.0
    model.partial_fit([("ann", 1)])
    assert model.recommend("ann", 5) == [] and model.recommend("bob", 5) == [1]
    assert (model.n_users_, model.n_items_, model.n_events_) == (1, 1, 1)
    assert len(model.expert_names_) == model.expert_weights_.shape[1]


def held_bytes(model):
    """Memory of all tables but those of a size that never changes."""
    names = ("items", "lists", "neighbours", "counts", "users", "seen")
    return sum(getattr(model._pool.ranks, name).nbytes for name in names)


@pytest.mark.parametrize(("users", "items", "count"), [(300, 1_500, 12_000), (5, 3_000, 9_000)])
def test_memory_is_bounded_as_documented(users, items, count):
    rng = np.random.default_rng(0)
    pairs = np.stack([rng.integers(0, users, count), rng.integers(0, items, count)], axis=1)
    model = Recommender()
    for part in np.array_split(pairs, 4):
        model.partial_fit(part)
    different = len(np.unique(pairs, axis=0))
    bound = 25_000 * model.n_items_ + 120 * model.n_users_ + 32 * different + 250_000
    assert held_bytes(model) <= bound
    before = held_bytes(model)
    model.partial_fit(pairs)  # nothing new: at most longer lists of neighbours
    assert model._pool.ranks.seen.nbytes + model._pool.ranks.users.nbytes <= before
    assert held_bytes(model) <= bound


def test_memory_of_users_with_one_event_each():
    model, items = Recommender(), np.random.default_rng(0).integers(0, 1000, 20_000)
    for part in np.array_split(np.stack([np.arange(20_000), items], axis=1), 4):
        model.partial_fit(part)
    assert held_bytes(model) / 20_000 < 100
