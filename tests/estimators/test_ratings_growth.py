"""`MatrixCompleter`: somebody new at any time, and memory that the length of the stream does not matter to."""

import numpy as np
import pytest

from driftwolfe.estimators import MatrixCompleter
from driftwolfe.estimators.ratings import settings
from driftwolfe.estimators.ratings import side as side_module
from driftwolfe.estimators.ratings.archive import pool_state
from estimators.rating_streams import turning

# -- somebody new ------------------------------------------------------------------------------------


def shop():
    """Ten users who all like the good item and dislike the bad one."""
    rng = np.random.default_rng(0)
    pairs, ratings = [], []
    for _ in range(40):
        for user in range(10):
            item = ("good", "middling", "bad")[rng.integers(3)]
            pairs.append((user, item))
            ratings.append({"good": 4.5, "middling": 3.0, "bad": 1.5}[item] + rng.normal() / 4.0)
    return MatrixCompleter().partial_fit(pairs, ratings)


def test_somebody_new_gets_what_is_liked_in_general():
    completer = shop()
    good, middling, bad = completer.predict([("new", item) for item in ("good", "middling", "bad")])
    assert good > middling + 0.5 > bad + 1.0
    assert completer.recommend("new", 2) == ["good", "middling"]


def test_a_new_item_is_rated_as_its_user_rates():
    rng = np.random.default_rng(1)
    pairs = [(("kind", "strict")[n % 2], int(rng.integers(20))) for n in range(400)]
    ratings = [4.0 - 2.0 * (n % 2) + rng.normal() / 4.0 for n in range(400)]
    completer = MatrixCompleter().partial_fit(pairs, ratings)
    kind, strict = completer.predict([("kind", "new"), ("strict", "new")])
    assert kind > strict + 1.0


def test_of_both_new_the_mean_is_predicted():
    completer = shop()
    mean, *_ = completer.factors()
    assert completer.predict([("new", "new")])[0] == pytest.approx(mean, abs=1e-12)
    assert 2.0 < mean < 4.0


def test_before_the_first_rating():
    completer = MatrixCompleter()
    assert completer.predict([("new", "new")]).tolist() == [0.0]
    assert completer.predict([]).shape == (0,)
    assert completer.recommend("new") == completer.users_ == completer.items_ == []
    assert completer.factors().users.shape[0] == 0
    assert completer.n_ratings_ == 0
    completer.partial_fit([("a", "b")], [4.0])
    assert completer.predict([("a", "b"), ("new", "new")]).tolist() == [4.0, 4.0]


# -- what to recommend -------------------------------------------------------------------------------


def test_recommendations_are_the_best_predictions():
    pairs, ratings = turning(500, 12, 30)
    completer = MatrixCompleter().partial_fit(pairs, ratings)
    seen = {item for user, item in pairs if user == 3}
    for n in (0, 1, 5, 30, 1000):
        for exclude in (True, False):
            allowed = [i for i in completer.items_ if not (exclude and i in seen)]
            told = dict(zip(allowed, completer.predict([(3, i) for i in allowed]), strict=True))
            expected = sorted(allowed, key=lambda item, told=told: -told[item])[:n]
            assert completer.recommend(3, n, exclude_seen=exclude) == expected
    assert completer.recommend(3) == completer.recommend(3, 10, exclude_seen=True)
    assert set(completer.recommend("new", 1000)) == set(completer.items_)


def test_what_memory_does_not_hold_may_be_recommended_again():
    completer = MatrixCompleter(memory=64).partial_fit([("a", "old")], [5.0])
    completer.partial_fit([("b", n % 7) for n in range(200)], np.arange(200.0) % 5)
    assert "old" in completer.recommend("a")
    assert completer.recommend("b") == ["old"]


@pytest.mark.parametrize("n", [-1, 1.5, "3", None])
def test_a_number_of_items_that_makes_no_sense(n):
    with pytest.raises((ValueError, TypeError), match="n must be a whole number >= 0"):
        shop().recommend(0, n)


# -- growth ------------------------------------------------------------------------------------------


def test_new_users_are_added_without_copying_everything(monkeypatch):
    copied = []
    pad = side_module._pad
    monkeypatch.setattr(
        side_module, "_pad", lambda *args: copied.append(args[0].shape[0]) or pad(*args)
    )
    completer, count = MatrixCompleter(learner="pold"), 20_000
    completer.partial_fit([(-1, -1)], [1.0])
    copied.clear()
    for user in range(count):
        completer.partial_fit([(user, user % 50)], [float(user % 5)])
    assert len(completer.users_) == count + 1
    # Room doubles: three tables of users are copied log2 times, and rows copied stay below 2 n a table.
    assert len(copied) <= 3 * 2 * 20
    assert sum(copied) <= 3 * 2 * count
    room = completer._pool.users.side.counts.size
    assert count < room <= 2 * count


def held(completer):
    """Bytes of all arrays, room to spare included."""
    pool = completer._pool
    groups = [pool.slots, pool.low, pool.scale, *(grown.side for grown in pool.sides)]
    arrays = [array for group in groups for array in group]
    arrays += [pool.recent.rows, pool.recent.cols, pool.recent.steps]
    arrays += [part for older in pool.older.values() for part in (older.users, older.items)]
    return sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("batch", [1, 37, 5000])
@pytest.mark.parametrize("learner", ["pold", "both"])
def test_memory_does_not_grow_with_the_stream(learner, batch, monkeypatch):
    monkeypatch.setattr(settings, "FIRST_LOW_RANK_LEVEL", 8)
    memory, users, items, rank = 512, 30, 20, 3
    completer = MatrixCompleter(memory=memory, learner=learner, rank=rank, radii=(0.3, 1.0))
    pairs, ratings = turning(10 * memory if batch == 1 else 40 * memory, users, items)
    for start in range(0, len(pairs), batch):
        part = slice(start, start + batch)
        completer.partial_fit(pairs[part], ratings[part])
        assert completer._pool.recent.size <= memory
    pool = completer._pool
    experts, low = pool.slots.means.size, pool.low.radii.size
    levels = max(0, completer.n_ratings_.bit_length() - 6) if learner == "both" else 0
    assert experts == 6 + levels
    assert low == 4 + min(max(0, levels - 2), 3)  # every 256, 512 and 1,024, twice the memory
    # Numbers of 8 bytes. Room for rows may be twice what is in use, and 16 at least.
    rows = 2 * (max(users, 16) + max(items, 16))
    sides = rows * (2 * experts + low * rank + 3)
    recent = 2 * memory * (2 + low)
    older = low * 2 * rank * (users + items)
    own = 7 * experts + low * (2 + rank) + 5
    assert held(completer) <= 8 * (sides + recent + older + own)


def test_memory_is_the_same_after_ten_times_as_many_ratings():
    completer = MatrixCompleter(memory=512, learner="pold", radii=(0.3,))
    pairs, ratings = turning(1024, 30, 20)
    completer.partial_fit(pairs, ratings)
    settled = held(completer)
    for _ in range(10):
        completer.partial_fit(pairs, ratings)
    assert held(completer) == settled
    kept = sum(array.nbytes for array in pool_state(completer._pool)[1].values())
    assert kept <= settled


def test_the_latest_ratings_are_kept_exactly():
    completer = MatrixCompleter(memory=400)
    pairs, ratings = turning(3000, 30, 20)
    for start in range(0, 3000, 50):
        part = slice(start, start + 50)
        completer.partial_fit(pairs[part], ratings[part])
        recent = completer._pool.recent
        count = completer.n_ratings_
        assert min(count, 400 / 3) <= recent.size <= 400
        users, items = completer.users_, completer.items_
        kept = zip(recent.rows[: recent.size], recent.cols[: recent.size], strict=True)
        assert [(users[u], items[i]) for u, i in kept] == pairs[count - recent.size : count]
