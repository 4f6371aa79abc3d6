"""`MatrixCompleter` on disk: it goes on to the last bit, and damaged files are refused."""

import enum
import json

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.estimators import MatrixCompleter
from driftwolfe.estimators.core.ids import encode_keys
from driftwolfe.storage import read_archive, write_archive
from estimators.rating_streams import state_of, turning


def saved(path, count=700, **settings):
    options = {"memory": 256, "radii": (0.3, 1.0)} | settings
    completer = MatrixCompleter(**options)
    if count:
        completer.partial_fit(*turning(count, new=10))
    completer.save(path)
    return completer


#: Before the first rating, after one, in a block, after a projection, after a fold, after a restart.
@pytest.mark.in_turn
@pytest.mark.parametrize("count", [0, 1, 40, 64, 240, 256, 700, 4096, 4100])
@pytest.mark.parametrize("learner", ["both", "pold"])
def test_a_loaded_one_goes_on_to_the_last_bit(count, learner, tmp_path):
    path = tmp_path / "ratings.safetensors"
    completer = saved(path, count, learner=learner)
    others = [MatrixCompleter.load(path), dw.load(path)]
    pairs, ratings = turning(200, users=20, items=20, seed=5)
    told = completer.prequential(pairs, ratings)
    for other in others:
        assert type(other) is MatrixCompleter
        assert other.prequential(pairs, ratings).tobytes() == told.tobytes()
        assert state_of(other) == state_of(completer)


@pytest.mark.parametrize("count", [0, 700])
def test_saving_and_loading_change_nothing(count, tmp_path):
    path = tmp_path / "ratings.safetensors"
    completer = saved(path, count, radii=(), loss="absolute", weighting=0.5, rank=2, seed=7)
    before = state_of(completer)
    completer.save(path)
    assert state_of(completer) == before == state_of(MatrixCompleter.load(path))
    MatrixCompleter.load(path).save(path)
    assert state_of(MatrixCompleter.load(path)) == before


def test_ids_come_back_with_their_types(tmp_path):
    path = tmp_path / "ratings.safetensors"
    ids = ["a", 1, 2.5, True - 1, None, b"x", ("a", 2), "Zoë\n"]
    completer = MatrixCompleter().partial_fit([(key, key) for key in ids], np.arange(8.0))
    completer.save(path)
    loaded = MatrixCompleter.load(path)
    assert loaded.users_ == loaded.items_ == ids
    assert [type(key) for key in loaded.users_] == [type(key) for key in ids]
    assert loaded.recommend("a") == completer.recommend("a")


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("key", [frozenset({1}), Colour.RED, 1j, ("a", Colour.RED)])
def test_ids_that_cannot_be_saved_leave_no_file(key, tmp_path):
    path = tmp_path / "ratings.safetensors"
    for pair in ((key, "a"), ("a", key)):
        with pytest.raises(TypeError, match="can be saved as keys, got"):
            MatrixCompleter().partial_fit([pair], [1.0]).save(path)
    assert not list(tmp_path.iterdir())
    saved(path, 10)
    content = path.read_bytes()
    with pytest.raises(TypeError, match="can be saved as keys, got"):
        MatrixCompleter().partial_fit([(key, "a")], [1.0]).save(path)
    assert path.read_bytes() == content


def test_a_loaded_one_knows_what_was_rated_long_ago(tmp_path):
    path = tmp_path / "ratings.safetensors"
    completer = saved(path)
    loaded = MatrixCompleter.load(path)
    for user in completer.users_:
        rated = {item for who, item in turning(700, new=10)[0] if who == user}
        assert set(loaded.recommend(user, 99)) == set(completer.items_) - rated


# -- files that are not what they should be ----------------------------------------------------------


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / "other.safetensors"
    write_archive(path, "Example", {}, {})
    with pytest.raises(ValueError, match="holds a Example, not a MatrixCompleter"):
        MatrixCompleter.load(path)
    with pytest.raises(ValueError, match="holds a 'Example', which"):
        dw.load(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        MatrixCompleter.load(tmp_path / "nowhere")


def test_truncated_files(tmp_path):
    path = tmp_path / "ratings.safetensors"
    saved(path)
    content = path.read_bytes()
    for length in (0, 7, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match="is not an archive of driftwolfe, or is damaged"):
            MatrixCompleter.load(path)


def test_flipped_bits(tmp_path):
    path = tmp_path / "ratings.safetensors"
    completer = saved(path, 100)
    before, content = state_of(completer), path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(40), *rng.integers(0, len(content), 200).tolist()]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(flipped))
        try:
            loaded = MatrixCompleter.load(path)
        except ValueError:
            continue
        # A flip between the parts that mean something, such as a space of the header.
        assert state_of(loaded) == before


def edited(path, change):
    """Write the archive anew with a change, and a checksum that agrees."""
    archive = read_archive(path)
    settings, arrays = json.loads(json.dumps(archive.settings)), dict(archive.arrays)
    change(settings, arrays)
    write_archive(path, "MatrixCompleter", settings, arrays)


def replaced(name, change):
    def edit(_, arrays):
        arrays[name] = np.ascontiguousarray(change(arrays[name].copy()))

    return edit


def put(name, place, value):
    def change(array):
        array[place] = value
        return array

    return replaced(name, change)


def setting(*path_and_value):
    *path, last, value = path_and_value

    def edit(settings, _):
        for key in path:
            settings = settings[key]
        settings[last] = value

    return edit


EDITS = {
    **{
        f"no {name}": lambda _, arrays, name=name: arrays.pop(name)
        for name in (
            "pool.users.biases",
            "pool.low.spreads",
            "pool.scale.clock",
            "pool.older.0.users",
            "users",
        )
    },
    **{
        f"no setting {name}": lambda settings, _, name=name: settings["state"].pop(name)
        for name in ("pool.settings", "pool.first", "pool.older", "pool.next_projection")
    },
    "one row less": replaced("pool.users.biases", lambda a: a[1:]),
    "one expert less": replaced("pool.slots.weights", lambda a: a[1:]),
    "flat spreads": replaced("pool.low.spreads", np.ravel),
    "a number for a table": replaced("pool.older.0.users", lambda a: np.array(1.0)),
    "flat older": replaced("pool.older.0.users", np.ravel),
    "older of another rank": replaced("pool.older.0.items", lambda a: a[:, 1:]),
    "whole numbers": replaced("pool.users.rows", lambda a: a.astype(np.int64)),
    "half precision": replaced("pool.slots.means", lambda a: a.astype(np.float32)),
    "NaN": put("pool.users.biases", (0, 0), np.nan),
    "infinite": put("pool.recent.steps", (0, 0), np.inf),
    "NaN older": put("pool.older.0.items", (0, 0), np.nan),
    "a user out of range": put("pool.recent.rows", 0, 10_000),
    "a negative item": put("pool.recent.cols", 0, -1),
    "an expert out of range": put("pool.slots.low", 3, 99),
    "an expert twice": replaced("pool.slots.low", lambda a: np.where(a == 1, 0, a)),
    "a level out of range": put("pool.slots.levels", -1, 64),
    "a start to come": put("pool.slots.starts", 0, 10**6),
    "a step of another expert": put("pool.slots.steps", 0, 5.0),
    "a negative weight": put("pool.slots.weights", 0, -0.1),
    "weights of another sum": replaced("pool.slots.weights", lambda a: 2 * a),
    "negative squares": put("pool.users.squares", (0, 0), -2.0),
    "negative spreads": put("pool.low.spreads", (0, 0), -1.0),
    "a weight of nothing": put("pool.items.metric", 0, 0.0),
    "users never rated": put("pool.users.counts", 0, 0),
    "another number of ratings": put("pool.scale.clock", 0, 699),
    "negative time": put("pool.scale.clock", 0, -1),
    "the lowest above the highest": put("pool.scale.numbers", 1, 99.0),
    "touched in time to come": put("pool.users.touched", 0, 700),
    "ids too few": replaced("users", lambda a: encode_keys(["a"])),
    "an id twice": replaced("users", lambda a: encode_keys(["a"] * 12)),
    "ids of nonsense": replaced("items", lambda a: a[1:]),
    "pairs as numbers": replaced("pool.seen.runs", lambda a: a.astype(np.float64)),
    "a table of pairs": replaced("pool.seen.runs", lambda a: a[:, None]),
    "a pair twice": replaced("pool.seen.runs", lambda a: np.sort(np.append(a, a[3]))),
    "pairs that do not rise": replaced("pool.seen.runs", lambda a: a[::-1]),
    "a pair of no user": put("pool.seen.runs", -1, 99 << 32),
    "a pair of no item": put("pool.seen.runs", -1, (11 << 32) + 9),
    "a negative pair": put("pool.seen.runs", 0, -1),
    "more pairs than ratings": replaced("pool.seen.runs", lambda a: np.arange(10**4)),
    "pairs though none are kept": setting("state", "pool.settings", "keep_seen", False),
    "a number for keep_seen": setting("state", "pool.settings", "keep_seen", 1),
    "another first": setting("state", "pool.first", 3),
    "a negative first": setting("state", "pool.first", -700),
    "a projection in the past": setting("state", "pool.next_projection", 5),
    "no projection ever": setting("state", "pool.next_projection", 10**9),
    "older of nobody": setting("state", "pool.older", [17]),
    "older of nonsense": setting("state", "pool.older", [{}]),
    "no list of older": setting("state", "pool.older", 0),
    "older from the end": setting("state", "pool.older.0.start", -1),
    "state of nonsense": setting("state", [1, 2]),
    "no text as loss": setting("state", "pool.settings", "loss", 3),
    "another loss": setting("state", "pool.settings", "loss", "cubic"),
    "another rank": setting("state", "pool.settings", "rank", 5),
    "a text as rank": setting("state", "pool.settings", "rank", "four"),
    "no memory": setting("state", "pool.settings", "memory", 0),
    "another learner": setting("state", "pool.settings", "learner", "pold"),
    "other radii": setting("state", "pool.settings", "radii", [0.3]),
    "a negative seed": setting("state", "pool.settings", "seed", -3),
    "a setting too many": setting("state", "pool.settings", "colour", "red"),
    "settings of nonsense": setting("state", "pool.settings", [1, 2]),
    "an expert too many": setting("state", "pool.experts", []),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The content of a file that was read and written anew without a change."""
    path = tmp_path_factory.mktemp("archive") / "ratings.safetensors"
    completer = saved(path)
    assert completer._pool.older[0].users.size
    edited(path, lambda settings, arrays: None)
    assert state_of(MatrixCompleter.load(path)) == state_of(completer)
    return path.read_bytes()


@pytest.mark.parametrize("fault", EDITS)
def test_archives_that_do_not_fit_together_are_refused(fault, archive, tmp_path):
    path = tmp_path / "ratings.safetensors"
    path.write_bytes(archive)
    edited(path, EDITS[fault])
    with pytest.raises(
        ValueError, match=r"(does|do) not fit|not hold the state of a MatrixCompleter|keys written"
    ):
        MatrixCompleter.load(path)
