"""`MatrixCompleter`: the first rating, users at rest or forgotten, weights, and memory that does not grow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.completer import completer_with
from driftwolfe import state
from driftwolfe.estimators import MatrixCompleter, completer_tables
from driftwolfe.estimators.completer_tables import SeenPairs
from estimators.rating_streams import coming_and_going, constants, state_of, turning


def test_before_the_first_rating():
    completer = MatrixCompleter()
    with pytest.raises(ValueError, match="has learned nothing yet: call partial_fit") as refused:
        completer.predict([("new", "new")])
    assert type(refused.value).__name__ == "NotFittedError"
    assert completer.predict_one("new", "new") == 0.0
    assert completer.recommend("new") == completer.users_ == completer.items_ == []
    assert completer.factors().users.shape[0] == 0
    assert completer.n_ratings_ == 0
    completer.partial_fit([("a", "b")], [4.0])
    assert completer.predict([("a", "b"), ("new", "new")]).tolist() == [4.0, 4.0]


# -- what to recommend -------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [None, ({3: [1.0], "new": [-1.0]}, {1: [0.5], 7: [-0.7]})])
@pytest.mark.parametrize("user", [3, "new"])
def test_recommendations_are_the_best_predictions(user, features):
    pairs, ratings = turning(500, 12, 30)
    completer = completer_with(features).partial_fit(pairs, ratings)
    seen = {item for other, item in pairs if other == user}
    for n in (0, 1, 5, 30, 1000):
        for exclude in (True, False):
            allowed = [i for i in completer.items_ if not (exclude and i in seen)]
            told = dict(zip(allowed, completer.predict([(user, i) for i in allowed]), strict=True))
            expected = sorted(allowed, key=lambda item, told=told: -told[item])[:n]
            assert completer.recommend(user, n, exclude_seen=exclude) == expected
    assert completer.recommend(3) == completer.recommend(3, 10, exclude_seen=True)
    assert set(completer.recommend("new", 1000)) == set(completer.items_)


@pytest.mark.parametrize("rows", [5, 1000])  # most users rest, or none
def test_what_was_rated_long_ago_is_not_recommended(rows, monkeypatch):
    constants(monkeypatch, MEMORY=64, MOST_ROWS=rows)
    pairs, ratings = turning(900, users=30, items=40, new=12)
    completer = MatrixCompleter()
    rated, early = {}, pairs[0]
    for start in range(0, 900, 100):
        part = slice(start, start + 100)
        completer.partial_fit(pairs[part], ratings[part])
        for user, item in pairs[part]:
            rated.setdefault(user, set()).add(item)
        for user in completer.users_:
            left = set(completer.items_) - rated[user]
            assert set(completer.recommend(user, 1000)) == left
            assert len(completer.recommend(user, 1000, exclude_seen=False)) == len(completer.items_)
    assert early not in pairs[900 - 64 :] and early[1] in rated[early[0]]
    assert set(completer.recommend("new", 1000)) == set(completer.items_)


def test_without_keep_seen_only_what_memory_holds_is_left_out(monkeypatch):
    constants(monkeypatch, MEMORY=64)
    completer = MatrixCompleter(keep_seen=False).partial_fit([("a", "old")], [5.0])
    completer.partial_fit([("b", n % 7) for n in range(200)], np.arange(200.0) % 5)
    assert "old" in completer.recommend("a")
    assert completer.recommend("b") == ["old"]
    assert not completer._pool.seen.runs


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=9), max_size=12))
def test_seen_pairs_are_a_set(parts):
    seen, plain, last = SeenPairs(), set(), (1 << 31) - 1
    for part in parts:
        given_pairs = [(last if u == 4 else u, last if i == 4 else i) for u, i in part]
        seen.add(*np.array(given_pairs, np.int64).reshape(-1, 2).T)
        plain.update(given_pairs)
    for user in (0, 1, 2, 3, last, 17):
        assert seen.items_of(user).tolist() == sorted(i for u, i in plain if u == user)
    assert seen.items_of(-1).size == 0
    expected = [(u << 32) + i for u, i in sorted(plain)]
    assert seen.pairs().tolist() == SeenPairs((seen.pairs(),)).pairs().tolist() == expected
    assert sum(run.size for run in seen.runs) <= 2 * len(plain)


def test_a_pair_takes_eight_bytes_and_is_merged_few_times(monkeypatch):
    merged = []
    monkeypatch.setattr(
        completer_tables,
        "_merged",
        lambda runs, merge=completer_tables._merged: (
            merged.append(sum(r.size for r in runs)) or merge(runs)
        ),
    )
    seen, count = SeenPairs(), 1 << 16
    for start in range(0, count, 64):
        places = np.arange(start, start + 64)
        seen.add(places % 1000, places)
    assert sum(run.nbytes for run in seen.runs) == 8 * count
    # A merge makes runs at least half as long again: 1,024 runs become one in at most 18 merges.
    assert sum(merged) <= 18 * count


# -- growth ------------------------------------------------------------------------------------------


def test_new_users_are_added_without_copying_everything(monkeypatch):
    copied, pad = [], state._pad

    def counting(table, *more):
        if table.ndim == 2:
            copied.append(len(table))
        return pad(table, *more)

    monkeypatch.setattr(state, "_pad", counting)
    completer, count = MatrixCompleter(), 10_000
    completer.partial_fit([(-1, -1)], [1.0])
    copied.clear()
    for user in range(count):
        completer.partial_fit([(user, user % 50)], [float(user % 5)])
    assert len(completer.users_) == count + 1
    # Room doubles: three tables of users, two of everyone and one of steps are copied log2 times, those of
    # users and items also when an expert joins, and rows copied stay below 4 n per table.
    assert len(copied) <= 6 * 4 * 20
    assert sum(copied) <= 6 * 4 * count
    room = completer._pool.users.tables.counts.size
    assert count < room <= 2 * count


def held(completer):
    """Bytes of all arrays, room to spare included."""
    pool = completer._pool
    groups = [pool.slots, pool.low, pool.scale, *(grown.tables for grown in pool.sides)]
    arrays = [array for group in groups for array in group]
    arrays += pool.recent.tables
    arrays += pool.seen.runs
    arrays += [part for older in pool.older.values() for part in (older.users, older.items)]
    return sum(array.nbytes for array in arrays)


@pytest.mark.parametrize("batch", [1, 5000])
def test_memory_does_not_grow_with_the_stream(batch, monkeypatch):
    memory, users, items, rank = 256, 30, 20, 4
    constants(monkeypatch, MEMORY=memory, FIRST_LOW_RANK_LEVEL=7)
    completer = MatrixCompleter()
    pairs, ratings = turning(10 * memory, users, items)
    for start in range(0, len(pairs), batch):
        part = slice(start, start + batch)
        completer.partial_fit(pairs[part], ratings[part])
        assert completer._pool.recent.size <= memory
    pool = completer._pool
    experts, low = pool.slots.means.size, pool.low.radii.size
    assert experts == 6 + completer.n_ratings_.bit_length() - 6
    assert low == 4 + 3  # every 128, 256 and 512, twice the memory
    # Numbers of 8 bytes. Room for rows may be twice what is in use, and 16 at least.
    rows = 2 * (max(users, 16) + max(items, 16))
    sides = rows * (2 * experts + low * rank + 3)
    recent = 2 * memory * (2 + low)
    older = low * 2 * rank * (users + items)
    own = 7 * experts + low * (2 + rank) + 5
    seen = 2 * users * items
    assert held(completer) <= 8 * (sides + recent + older + own + seen)


def test_the_latest_ratings_are_kept_exactly(monkeypatch):
    constants(monkeypatch, MEMORY=400)
    completer = MatrixCompleter()
    pairs, ratings = turning(1500, 30, 20)
    for start in range(0, 1500, 50):
        part = slice(start, start + 50)
        completer.partial_fit(pairs[part], ratings[part])
        recent = completer._pool.recent
        count = completer.n_ratings_
        assert min(count, 400 / 3) <= recent.size <= 400
        users, items = completer.users_, completer.items_
        kept = zip(recent.known.rows, recent.known.cols, strict=True)
        assert [(users[u], items[i]) for u, i in kept] == pairs[count - recent.size : count]


# -- users at rest -----------------------------------------------------------------------------------


def test_biases_stay_when_users_rest(monkeypatch):
    """Single precision is all that is lost where nothing but biases is learned."""
    pairs, ratings = coming_and_going()
    told = []
    for rows in (5, 10_000):
        constants(monkeypatch, MEMORY=64, MOST_ROWS=rows, RADII=(1e-9, 1e-9), FIRST_LEVEL=99)
        completer = MatrixCompleter()
        predictions = completer.prequential(pairs, ratings)
        everyone = [(user, 3) for user in completer.users_]
        factors = completer.factors()
        told.append(
            (predictions, completer.predict(everyone), factors.user_biases, factors.item_biases)
        )
        assert (completer._pool.users.size < completer.n_users_) == (rows == 5)
    for resting, without in zip(*told, strict=True):
        assert resting == pytest.approx(without, abs=1e-5)


# -- forgetting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_seen", [True, False])
def test_a_forgotten_user_leaves_nothing(keep_seen, tmp_path, monkeypatch):
    constants(monkeypatch, MEMORY=64, MOST_ROWS=5, FIRST_LOW_RANK_LEVEL=7)
    pairs, ratings = coming_and_going()
    named = [(f"somebody {user}", item) for user, item in pairs]
    completer = MatrixCompleter(keep_seen=keep_seen).partial_fit(named, ratings)
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
    told = completer.prequential(named[:200], ratings[:200])
    assert loaded.prequential(named[:200], ratings[:200]).tobytes() == told.tobytes()
    assert completer.n_users_ == len({*others, *(user for user, _ in named[:200])})


def test_everyone_may_be_forgotten(tmp_path):
    completer = MatrixCompleter().partial_fit(*turning(300))
    for user in completer.users_:
        completer.forget(user)
    assert (completer.n_users_, completer.n_items_, completer.n_ratings_) == (0, 9, 300)
    completer.save(tmp_path / "ratings")
    for each in (completer, MatrixCompleter.load(tmp_path / "ratings")):
        assert np.isfinite(each.prequential(*turning(1500))).all()
        assert each.n_ratings_ == 1800


# -- weights -----------------------------------------------------------------------------------------


def test_a_fraction_of_the_weight_is_learned_less():
    changes = []
    for weight in (0.0, 0.01, 0.3, 1.0):
        completer = MatrixCompleter().partial_fit(*turning(400))
        before = completer.predict_one(3, 4)
        completer.partial_fit([(3, 4)], [9.0], weight)
        changes.append(completer.predict_one(3, 4) - before)
    assert changes[0] == 0.0 < changes[1] < changes[2] < changes[3]


@pytest.mark.parametrize("wrong", [-1.0, 101.0, [1.0, np.nan]])
def test_weights_out_of_range_are_refused(wrong):
    completer = MatrixCompleter().partial_fit(*turning(50))
    before = state_of(completer)
    with pytest.raises(ValueError, match="sample_weight must"):
        completer.partial_fit([(0, 0), (1, 1)], [1.0, 2.0], wrong)
    assert state_of(completer) == before
