"""`MatrixCompleter` on disk: it goes on to the last bit, and damaged files are refused."""

import copy

import numpy as np
import pytest

import driftwolfe as dw
from contracts.hostile import nested
from driftwolfe.estimators import MatrixCompleter, Recommender
from driftwolfe.estimators.core.ids import encode_keys
from driftwolfe.storage import read_archive, write_archive
from estimators.rating_streams import coming_and_going, constants, state_of, turning

#: Ratings in the archive that is edited.
COUNT = 900


@pytest.fixture(autouse=True, scope="module")
def short_memory():
    with pytest.MonkeyPatch.context() as patch:
        constants(patch, MEMORY=256, FIRST_LOW_RANK_LEVEL=9)
        yield


#: Before the first rating, after one, in a block, after a projection, after a fold, after a restart.
@pytest.mark.parametrize("count", [0, 1, 40, 64, 240, 256, 700, 1024, 1030])
def test_a_loaded_one_goes_on_to_the_last_bit(count, tmp_path):
    path, completer = tmp_path / "ratings.safetensors", MatrixCompleter()
    if count:
        completer.partial_fit(*turning(count, new=10))
    completer.save(path)
    others = [MatrixCompleter.load(path), dw.load(path)]
    pairs, ratings = turning(200, users=20, items=20, seed=5)
    told = completer.prequential(pairs, ratings)
    for other in others:
        assert type(other) is MatrixCompleter
        assert other.prequential(pairs, ratings).tobytes() == told.tobytes()
        assert state_of(other) == state_of(completer)


def test_ids_come_back_or_leave_no_file(tmp_path):
    path, ids = tmp_path / "ratings.safetensors", ["a", True - 1, None, ("a", 2), "Zoë\n"]
    ids += [(), nested(8)]
    completer = MatrixCompleter().partial_fit([(key, key) for key in ids], np.arange(7.0))
    for pair in ((frozenset({1}), "a"), ("a", frozenset({1}))):
        with pytest.raises(TypeError, match="can be saved as keys, got"):
            MatrixCompleter().partial_fit([pair], [1.0]).save(path)
        assert not list(tmp_path.iterdir())
    completer.save(path)
    content = path.read_bytes()
    with pytest.raises(TypeError, match="can be saved as keys, got"):
        MatrixCompleter().partial_fit([(1j, "a")], [1.0]).save(path)
    assert path.read_bytes() == content
    loaded = MatrixCompleter.load(path)
    assert loaded.users_ == loaded.items_ == ids
    assert [type(key) for key in loaded.users_] == [type(key) for key in ids]
    assert loaded.recommend("a") == completer.recommend("a")


# -- files that are not what they should be: cases beyond those of tests/storage/test_declared.py ----


def put(name, place, value):
    return lambda _, arrays: arrays[name].__setitem__(place, value)


def replaced(name, change):
    return lambda _, arrays: arrays.update({name: np.ascontiguousarray(change(arrays[name]))})


def setting(*path_and_value):
    *path, last, value = path_and_value

    def edit(settings, _):
        for key in path:
            settings = settings[key]
        settings[last] = value

    return edit


OPTIONS = [
    ("keep_seen", False),
    ("keep_seen", 1),
    ("loss", "cubic"),
    ("loss", "squared"),
    ("rank", 10**9),
]
EDITS = {
    **{
        f"{name} {value}": setting("state", "pool.settings", name, value) for name, value in OPTIONS
    },
    "settings of nonsense": setting("state", "pool.settings", [1, 2]),
    "state of nonsense": setting("state", [1, 2]),
    "another first": setting("state", "pool.first", 3),
    "a projection in the past": setting("state", "pool.next_projection", 5),
    "no projection ever": setting("state", "pool.next_projection", 10**9),
    "older of nobody": setting("state", "pool.older", [17]),
    "an expert too many": setting("state", "pool.experts", []),
    "an expert out of range": put("pool.slots.low", 3, 99),
    "an expert twice": replaced("pool.slots.low", lambda a: np.where(a == 1, 0, a)),
    "a level out of range": put("pool.slots.levels", -1, 64),
    "a start to come": put("pool.slots.starts", 0, 10**6),
    "a step of another expert": put("pool.slots.steps", 0, 5.0),
    "another number of ratings": put("pool.scale.clock", 0, COUNT - 1),
    "a mean out of range": put("pool.slots.means", 0, 99.0),
    "a negative mean error": put("pool.scale.numbers", 0, -1.0),
    "the last beyond the highest": put("pool.scale.numbers", 3, 99.0),
    "a norm beyond the radius": replaced("pool.low.norms", lambda a: a + 1e3),
    "a bound below the norm": replaced("pool.low.norms", lambda a: 0.5 * a),
    "long factors of items": replaced("pool.items.rows", lambda a: 3.0 * a),
    "the lowest above the highest": put("pool.scale.numbers", 1, 99.0),
    "touched in time to come": put("pool.users.touched", 0, COUNT),
    "ids too few": replaced("users", lambda a: encode_keys(["a"])),
    "an id twice": replaced("users", lambda a: encode_keys(["a"] * 45)),
    "ids of nonsense": replaced("items", lambda a: a[1:]),
    "a pair of no user": put("pool.seen.runs", -1, 99 << 32),
    "a pair of no item": put("pool.seen.runs", -1, (44 << 32) + 9),
    "more pairs than ratings": replaced("pool.seen.runs", lambda a: np.arange(10**4)),
    "a row twice": put("pool.everyone.rows", -1, 0),
    "a row of nobody": put("pool.everyone.rows", 0, -1),
    "no ratings of users at rest": put("pool.everyone.counts", slice(None), 0),
    "more ratings of one at rest": put("pool.everyone.counts", 0, 10**6),
    "a large bias": put("pool.everyone.biases", (0, 0), 9.0),
    "only weights of features": lambda _, arrays: [
        arrays.pop(name)
        for name in list(arrays)
        if name.startswith("features.") and "user" not in name
    ],
    "a long feature": put("features.user_features.values", (0, 0), 3.0),
    "a negative error": put("features.shared.numbers", 0, -1.0),
    "no range": put("features.shared.numbers", 1, 99.0),
    "a feature less": replaced("features.user_features.values", lambda a: a[:, 1:]),
    "an id less": replaced("features.user_features.values", lambda a: a[1:]),
    "weights of too few features": lambda _, arrays: arrays.update(
        (name, np.ascontiguousarray(arrays[name][:, 1:]))
        for name in ("features.users.means", "features.users.variances")
    ),
    "more users than there are": lambda _, arrays: arrays.update(
        (name, np.tile(array, (2,) + (1,) * (array.ndim - 1)))
        for name, array in list(arrays.items())
        if name.startswith("features.users.")
    ),
}
#: The same of a `Recommender`.
RANKS = "pool.learned."
RANK_EDITS = {
    "a time that is a text": setting("times", ["a", 0.0, 0.0]),
    "times that fell": setting("times", [0.0, -1.0, 1.0]),
    "less than no times": setting("times", [0.0, 1.0, -1.0]),
    "a note of nonsense": setting("note", [1]),
    "popular items found in time to come": setting("state", "pool.refreshed", COUNT + 1),
    "popular items of long ago": put(RANKS + "clock", 0, 1000),
    "another number of items": put(RANKS + "clock", 1, 3),
    "an item that nobody knows": put(RANKS + "seen", 0, 99 << 1),
    "weights of another expert": replaced(RANKS + "weights", lambda a: np.full((8, 4), 0.25)),
    "weights of more users": replaced(RANKS + "weights", lambda a: np.tile(a, (2, 1))),
    "rounds of more users": replaced(RANKS + "rounds", lambda a: np.tile(a, 2)),
    "a list too short": put(RANKS + "lists", 0, 1),
    "a list too long": replaced(RANKS + "lists", lambda a: np.append(a[:-2], [a[-1], 0, 400])),
    "a scale that fell": put(RANKS + "totals", -1, 0.9),
    "a scale of pairs that fell": put(RANKS + "items", (0, 2), 0.9),
    "a power that grew": put(RANKS + "items", (0, 4), 1.1),
    "items seen by nobody": replaced(RANKS + "users", lambda a: a[1:]),
}
CASES = [(MatrixCompleter, fault) for fault in [None, *EDITS]]
CASES += [(Recommender, fault) for fault in [None, *RANK_EDITS]]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """A completer with older steps, users at rest and features, and a recommender, in files."""
    path = tmp_path_factory.mktemp("archive") / "ratings.safetensors"
    completer = MatrixCompleter()
    completer.add_features({k: [1.0, 0.1 * k] for k in range(30)}, {k: [0.5] for k in range(5)})
    with pytest.MonkeyPatch.context() as patch:
        constants(patch, MOST_ROWS=5)
        completer.partial_fit(*coming_and_going(COUNT)).save(path)
    assert completer._pool.older[0].users.size
    assert completer._pool.users.size < completer.n_users_ == 45
    Recommender().partial_fit(coming_and_going(COUNT)[0]).save(path.with_name("events"))
    return {
        MatrixCompleter: read_archive(path),
        Recommender: read_archive(path.with_name("events")),
    }


@pytest.mark.parametrize(("kind", "fault"), CASES)
def test_archives_that_do_not_fit_together_are_refused(kind, fault, archives, tmp_path):
    path, (name, settings, arrays) = tmp_path / "file", copy.deepcopy(archives[kind])
    if fault is not None:
        (EDITS | RANK_EDITS)[fault](settings, arrays)
    write_archive(path, name, settings, arrays)
    if fault is None:
        kind.load(path)
        return
    with pytest.raises(
        ValueError, match=rf"(does|do) not fit|not hold the state of a {name}|keys written"
    ):
        kind.load(path)
