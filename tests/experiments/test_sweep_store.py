"""A folder of results: what is whole is read, what is not is named."""

import json
import lzma
import os
import zlib

import msgspec
import pytest

from driftwolfe.experiments.sweep import Store
from experiments.small import made_up, trial


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "sweep")
    store.add("Steps", [trial(seed=seed) for seed in range(3)])
    return store


def test_adding_keeps_what_there_is(store):
    path = store.folder / "sweep.json"
    before, stamp = path.read_bytes(), path.stat().st_mtime_ns
    store.add("Another title", store.trials[:2])
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    store.add("Another title", [trial(seed=1, label="renamed"), trial(seed=9), trial(seed=9)])
    assert [(t.seed, t.title) for t in store.trials] == [(n, "OGD") for n in (0, 1, 2, 9)]
    assert store.title == "Steps"


def test_lists_and_labels(tmp_path):
    store = Store(tmp_path)
    store.add("", [trial(label="the list's")])
    store.write(made_up(trial(label="the worker's")))
    assert store.results[0].trial.title == "the list's"
    label = "x" * 4000
    store.add("", [trial(seed=seed, label=label) for seed in range(4500)])
    assert (tmp_path / "sweep.json").stat().st_size > 16 << 20
    assert len(store.trials) == 4500


def test_a_spoilt_file_is_named_with_what_to_do(store):
    """What `decode` refuses is in test_trial.py."""
    path = store.path(store.trials[1])
    path.parent.mkdir()
    path.write_bytes(made_up(store.trials[1]).encode()[:200])
    with pytest.raises(ValueError) as problem:
        _ = store.results
    said = str(problem.value)
    assert said.startswith(f"{path} is not a result (")
    assert said.endswith("; delete it, and the sweep runs its trial again")
    assert "\n" not in said
    path.unlink()
    assert len(store.missing) == 3


def test_files_that_are_no_result_of_this_trial(store):
    first, second, _ = store.trials
    store.write(made_up(first))
    store.path(first).rename(store.path(second))
    with pytest.raises(ValueError, match="holds the result of another trial; delete it") as problem:
        store.read(second)
    assert str(store.path(second)) in str(problem.value)
    with store.path(first).open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ValueError, match="more than 16 MiB"):
        store.read(first)


def test_a_folder_without_a_list_says_how_to_make_one(tmp_path):
    store = Store(tmp_path)
    for name in ("trials", "title", "results"):
        with pytest.raises(FileNotFoundError, match=r"holds no sweep: there is no sweep.json; `dr"):
            getattr(store, name)


LISTS = ("", '{"title": 3, "trials": []}', '{"title": "", "trials": [1]}', "[" * 99999)
UNKNOWN = '{"title": "", "trials": [{"method": "X", "data": {"name": "shuttle"}}]}'


@pytest.mark.parametrize("text", [*LISTS, UNKNOWN], ids=str.__len__)
def test_a_spoilt_list_is_named(store, text):
    path, content = store.folder / "sweep.json", text.encode()
    path.write_bytes(content)
    with pytest.raises(ValueError) as problem:
        _ = store.trials
    assert str(problem.value).startswith(f"{path} is not the list of a sweep (")
    with pytest.raises(ValueError):  # nor is it written over
        store.add("", [trial(seed=5)])
    assert path.read_bytes() == content


def test_failures_are_kept_until_the_trial_succeeds(store):
    first, second, _ = store.trials
    store.fail(first, "ValueError: too\nlarge — ü")
    store.fail(second, "other")
    assert store.failures == {first.name: "ValueError: too large — ü", second.name: "other"}
    assert len(store.missing) == 3
    store.fail(second, "another")
    assert store.failures[second.name] == "another"
    store.write(made_up(first))
    assert store.failures == {second.name: "another"}
    store.path(first).unlink()  # to be run again, without the old complaint
    assert store.failures == {second.name: "another"}


def test_a_result_is_found_again_and_no_longer_missing(store):
    first, second, third = store.trials
    path = store.path(first)
    path.parent.mkdir()
    path.with_name(f".{path.stem}.0123.json").write_bytes(made_up(first).encode()[:50])
    assert (store.missing, store.results) == ([first, second, third], [])
    result = made_up(second)
    store.write(result)
    assert store.missing == [first, third]
    assert store.results == [result]
    assert Store(store.folder).read(second) == result
    assert store.path(second).read_bytes() == result.encode()


def test_packed_results_are_one_small_file_that_is_read_as_before(store):
    for one in store.trials[:2]:
        store.write(made_up(one))
    before = store.results
    path = store.pack()
    assert sorted(os.listdir(store.folder)) == [".lock", "sweep.json", path.name]
    for found in (store, Store(store.folder)):
        assert [trial.seed for trial in found.missing] == [2]
        assert found.results == before
    packed = path.read_bytes()
    assert store.pack().read_bytes() == packed  # again, it changes nothing
    lines = lzma.decompress(packed).splitlines()
    assert [json.loads(line)["trial"]["seed"] for line in lines] == [0, 1]


def test_a_sweep_goes_on_from_a_packed_file_and_a_newer_file_counts(store):
    first, second, third = store.trials
    store.write(made_up(first))
    store.pack()
    store.write(made_up(third))
    assert store.missing == [second]
    newer = msgspec.structs.replace(made_up(first), wall=99.0)
    store.write(newer)
    assert store.results == [newer, made_up(third)]
    store.pack()
    assert Store(store.folder).results == [newer, made_up(third)]


def test_an_experiment_and_its_tuning_have_one_packed_file(store):
    store.write(made_up(store.trials[0]))
    tuning = store.tuning
    tuning.add("Steps", [trial(seed=7)])
    tuning.write(made_up(trial(seed=7)))
    path = store.pack()
    assert path == store.folder / "trials.jsonl.xz" == Store(tuning.folder).packed_path
    assert sorted(os.listdir(tuning.folder)) == [".lock", "sweep.json"]
    assert [r.trial.seed for r in Store(tuning.folder).results] == [7]
    assert [r.trial.seed for r in Store(store.folder).results] == [0]
    Store(tuning.folder).pack()
    assert [r.trial.seed for r in Store(store.folder).results] == [0]
    own = Store(store.folder.parent / "elsewhere" / "tuning")  # with no experiment around it
    assert own.packed_path.parent == own.folder


def test_a_spoilt_packed_file_is_named_with_what_to_do(store):
    store.write(made_up(store.trials[0]))
    path = store.pack()
    content = path.read_bytes()
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    wrong = lzma.compress(b'{"x": 1}')
    for spoilt in (content[:-20], b"", changed, wrong, content * 2, greedy(wrong)):
        path.write_bytes(spoilt)
        with pytest.raises(ValueError) as problem:
            _ = Store(store.folder).results
        said = str(problem.value)
        assert said.startswith(f"{path} is not a file of packed results (")
        assert said.endswith("; delete it, and the sweep runs its trials again")
        assert "\n" not in said
    assert "Memory usage limit" in said


def greedy(content):
    """The same in LZMA, but with a header that asks for 1.5 GiB of memory."""
    end = 12 + 4 * (content[12] + 1) - 4  # of the header of the first block
    header = bytearray(content[12:end])
    header[header.index(b"\x21\x01") + 2] = 37
    return content[:12] + header + zlib.crc32(header).to_bytes(4, "little") + content[end + 4 :]


def test_packing_waits_for_no_running_sweep(store):
    store.write(made_up(store.trials[0]))
    with Store(store.folder).locked(), pytest.raises(ValueError, match="another sweep is running"):
        store.pack()
    assert store.path(store.trials[0]).exists() and not store.packed_path.exists()
