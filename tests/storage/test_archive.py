"""An archive gives back what was put in, and anything else is refused."""

import hashlib
import json
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy

import driftwolfe as dw
from driftwolfe import storage
from driftwolfe.estimators import MatrixCompleter, TraceNormClassifier
from driftwolfe.storage import VERSION, InMemory, read_archive, read_header, write_archive
from reliability.children import python


def refused(path, why):
    """A file is refused, and its content is for the same reason."""
    told = []
    for given in (path, InMemory(path.read_bytes())):
        with pytest.raises(ValueError, match=why) as problem:
            read_archive(given)
        told.append(str(problem.value).replace(str(given), "it"))
    assert told[0] == told[1]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def write(path):
    arrays = {
        "numbers": np.array([[0.1, -np.inf, np.nan], [1e-310, 2.0, 3.0]]),
        "counts": np.arange(5, dtype=np.int64)[::2],
        "before": np.array([True, False, True]),
        "empty": np.zeros((0, 3)),
        "text": np.frombuffer("grüße".encode(), np.uint8),
    }
    settings = {"t": 10**15, "rate": 0.1, "name": "ü", "list": [1, None, True], "more": {"a": "b"}}
    write_archive(path, "Example", settings, arrays)
    return settings, arrays


def test_what_goes_in_comes_out(path):
    settings, arrays = write(path)
    content = bytearray(path.read_bytes())
    for given in (path, *(InMemory(kind(content)) for kind in (bytes, bytearray, memoryview))):
        storage = read_archive(given)
        assert storage.kind == "Example"
        assert storage.settings == settings
        assert storage.arrays.keys() == arrays.keys()
        for name, array in arrays.items():
            assert storage.arrays[name].dtype == array.dtype and storage.arrays[name].flags.owndata
            np.testing.assert_array_equal(storage.arrays[name], array)
    for stored in read_header(path).arrays.values():  # so that others may map the file
        assert stored.start % stored.dtype.itemsize == 0


def test_every_flipped_byte_and_every_shorter_file_is_refused(path):
    write(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 200, replace=False):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        refused(path, r"damaged|not an archive|version")
    for length in (0, 1, 7, 8, 9, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        refused(path, r"damaged|not an archive")


def test_other_files_are_refused(path, monkeypatch):
    path.write_bytes(safetensors.numpy.save({"a": np.zeros(2)}))
    refused(path, "is not an archive of driftwolfe")
    path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    refused(path, "not an archive")
    for wrong in ("text", str(path), None, 3, np.zeros(2)):
        with pytest.raises(TypeError, match="content must be bytes, got"):
            dw.from_bytes(wrong)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_archive(path.with_name("absent"))
    with pytest.raises(IsADirectoryError, match="is a folder; give the file in it"):
        read_archive(path.parent)
    with pytest.raises(FileNotFoundError, match="there is no file ''"):
        read_archive("")
    with pytest.raises(ValueError, match="path must name a file, got ''"):
        write_archive("", "Example", {}, {})
    monkeypatch.setattr("driftwolfe.storage.VERSION", 4)
    write(path)
    monkeypatch.undo()
    refused(path, "version 4 of the format")
    monkeypatch.setattr("driftwolfe.storage.LONGEST_HEADER", 100)
    refused(path, "not an archive")


def test_what_cannot_be_read_again_is_not_written(path):
    with pytest.raises(TypeError):
        write_archive(path, "Example", {"what": object()}, {})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_archive(path, "Example", {"what": float("nan")}, {})
    assert list(path.parent.iterdir()) == []
    write(path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"could not write .*: 1 arrays are too many for one file"):
        write_archive(path, "Example", {"text": "x" * 100_000_000}, {"a": np.zeros(1)})
    assert path.read_bytes() == content


# -- memory ----------------------------------------------------------------------------------------


def sparse(path, header, length):
    """A file of that many bytes, of which only the header takes room on the disk."""
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + length)
    return path


def declared(settings, kind, length, name="x", **metadata):
    """The header of a file that holds one array."""
    ours = json.dumps({"version": VERSION, "kind": kind, "settings": settings})
    entry = {"dtype": "F64", "shape": [length // 8], "data_offsets": [0, length]}
    return {"__metadata__": {"driftwolfe": ours, "sha256": "0", **metadata}, name: entry}


HUGE = 3 << 30
FULL = {
    "device": "cpu",
    "arguments": {},
    "state": {"x": {"array": "x"}},
    "domain": {"kind": "L1Ball"},
    "class": None,
    "module": None,
}
LEARNED = {"features": "random", "class_weight": None, "seed": 0, "state": {}}
POOL = {"settings": {"rank": 4, "radii": [1.0]}, "experts": [], "older": {}, "first": 0}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ({"x": declared({}, "", HUGE)["x"]}, "is not an archive of driftwolfe"),
        (declared({}, "POLA", HUGE, driftwolfe="{}"), "is not an archive of driftwolfe"),
        (
            declared({}, "", HUGE, driftwolfe='{"version": 7, "kind": "", "settings": {}}'),
            "has version 7 of the format",
        ),
        (declared({}, "Unknown", HUGE), "holds a 'Unknown', which is no learner to load"),
        (declared({}, "POLA", HUGE), "does not hold the state of a POLA"),
        (declared(FULL, "POLA", HUGE, "y"), "refers to arrays that it does not hold"),
        (declared(POOL, "MatrixCompleter", HUGE), "does not hold the state of a MatrixCompleter"),
        (declared({}, "TraceNormClassifier", HUGE), "not hold the state of a TraceNormClassifier"),
        (declared(LEARNED, "RiverTraceNormClassifier", HUGE), "not hold the state of a River"),
    ],
)
def test_a_file_is_refused_by_its_header_before_any_array_is_read(path, header, why, monkeypatch):
    def read(*_):
        raise AssertionError("an array was read")

    monkeypatch.setattr(storage, "digest", read)
    monkeypatch.setattr(storage, "_array", read)
    with pytest.raises(ValueError, match=why):
        dw.load(sparse(path, header, HUGE))


def test_a_checkpoint_of_another_game_is_refused_by_its_header(path, monkeypatch):
    monkeypatch.setattr(storage, "digest", lambda *_: pytest.fail("it was read"))
    with pytest.raises(ValueError, match="is no checkpoint of this game: it holds a POLA"):
        dw.play(
            dw.POLA(dw.L1Ball(3)), [], checkpoint=sparse(path, declared({}, "POLA", HUGE), HUGE)
        )


def peak(load, path):
    """The most memory that loading a file takes, as a share of its length."""
    tracemalloc.start()
    try:
        load(path)
        return tracemalloc.get_traced_memory()[1] / path.stat().st_size
    finally:
        tracemalloc.stop()


#: Resident memory, which counts pages of mapped files too; a little file is read before.
RESIDENT = """
import re, sys
from pathlib import Path
import driftwolfe
from driftwolfe.storage import read_archive

def most():  # of this process: ru_maxrss would begin with its parent's
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

little, path = sys.argv[1:]
read_archive(little)
before = most()
archive = read_archive(path)
print(driftwolfe.__file__)
print(most() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory as Linux tells it")
def test_reading_takes_as_much_memory_as_the_file_is_long(path):
    """With room for a few chunks of 1 MB; it was twice as much, as pages were mapped and copied."""
    little, count = path.with_name("little.safetensors"), 8
    write_archive(little, "Example", {}, {"a": np.ones(3)})
    write_archive(path, "Example", {}, {str(k): np.ones((1 << 10, 1 << 10)) for k in range(count)})
    copy, grown = python("-c", RESIDENT, little, path).stdout.splitlines()
    assert copy == dw.__file__
    assert 0.8 < int(grown) / path.stat().st_size < 1.2


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system tells no holes")
def test_a_file_of_holes_is_refused_before_it_is_hashed(path, monkeypatch):
    monkeypatch.setattr(storage, "digest", lambda *_: pytest.fail("it was hashed"))
    sparse(path, declared({}, "Example", HUGE), HUGE)
    with path.open("r+b") as file:
        for place in range(5):  # data at the end and in between too
            file.seek((place + 1) * HUGE // 5)
            file.write(bytes(100))
            file.truncate(8 + HUGE + len(json.dumps(declared({}, "Example", HUGE))))
    with pytest.raises(ValueError, match="is almost empty on the disk, unlike what was saved"):
        read_archive(path)


def test_a_wrong_checksum_is_found_before_arrays_take_memory(path):
    length = 1 << 26
    sparse(path, declared({}, "Example", length), length)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="its checksum does not agree"):
            read_archive(path)
        assert tracemalloc.get_traced_memory()[1] < 3 << 20
    finally:
        tracemalloc.stop()


def _learner(path):
    learner = dw.POLA(dw.L2Ball(40_000))
    for loss in (dw.losses.LinearLoss(np.ones(40_000)) for _ in range(40)):
        learner.update(loss)
    learner.save(path)


def _completer(path):
    rng = np.random.default_rng(0)
    pairs = np.stack((np.arange(12_000), rng.integers(0, 12_000, 12_000)), axis=1)
    MatrixCompleter().partial_fit(pairs, rng.standard_normal(12_000)).save(path)


def _classifier(path):
    rows = np.random.default_rng(0).standard_normal((20, 20_000))
    TraceNormClassifier().partial_fit(rows, np.arange(20) % 3, classes=[0, 1, 2]).save(path)


@pytest.mark.parametrize(
    "save",
    [_learner, _completer, _classifier],
)
def test_loading_takes_little_more_memory_than_the_file(save, path):
    """What is loaded, and what checks need for one array at a time; it was two to four times as much."""
    save(path)
    assert path.stat().st_size > 4e6
    assert peak(dw.load, path) < 1.7


def test_a_file_that_does_not_fit_into_memory_is_refused_in_one_sentence(path):
    """It is whole, and takes 4 KB on the disk: its 96 MB are a hole."""
    resource = pytest.importorskip("resource")
    if not sys.platform.startswith("linux"):
        pytest.skip("limits on memory as Linux has them")
    length = 96 << 20
    header = declared({}, "Example", length)
    ours = header["__metadata__"]["driftwolfe"]
    header["__metadata__"]["sha256"] = digest_of_zeros(ours, length)
    sparse(path, header, length)
    assert path.stat().st_blocks * 512 < 1 << 20
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (32 << 20), hard))
    try:
        with pytest.raises(ValueError, match="is too large: there is not enough memory to load it"):
            read_archive(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert not read_archive(path).arrays["x"].any()


def digest_of_zeros(text, length):
    total = hashlib.sha256(text.encode())
    total.update(json.dumps(["x", "<f8", [length // 8]]).encode())
    for _ in range(length >> 20):
        total.update(bytes(1 << 20))
    return total.hexdigest()


@pytest.mark.parametrize(
    ("save", "load", "inner"),
    [
        (_learner, dw.load, "state.Reader.restore"),
        (_completer, MatrixCompleter.load, "estimators.completer_experts.CompleterPool.check"),
        (_classifier, TraceNormClassifier.load, "estimators.classifier.ClassLearner.check"),
    ],
)
def test_no_memory_while_it_is_put_together_is_a_refusal_too(save, load, inner, path, monkeypatch):
    def none(*_, **__):
        raise MemoryError

    save(path)
    monkeypatch.setattr(f"driftwolfe.{inner}", none)
    with pytest.raises(ValueError, match="there is not enough memory to load it"):
        load(path)


# -- the layout ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["x"].update(dtype="F128"),
        lambda header: header["x"].update(shape=[3]),
        lambda header: header["x"].update(shape=[-1, -2]),
        lambda header: header["x"].update(shape=[2.0]),
        lambda header: header["x"].update(shape=[True, 2]),
        lambda header: header["x"].update(shape=2),
        lambda header: header["x"].update(data_offsets=[8, 24]),
        lambda header: header["x"].update(data_offsets=[0]),
        lambda header: header["x"].update(more=1),
        lambda header: header["x"].pop("shape"),
        lambda header: header.update(x=[]),
        lambda header: header.update(__metadata__=[]),
        lambda header: header.update(__metadata__={"driftwolfe": 3}),
        lambda header: header.update(y=header["x"]),
        lambda header: header.update(
            y={"dtype": "F64", "shape": [0, 10**40], "data_offsets": [16, 16]}
        ),
        lambda header: header.update(
            y={"dtype": "F64", "shape": [0] * 40, "data_offsets": [16, 16]}
        ),
        lambda header: header.pop("x"),
    ],
)
def test_a_layout_that_does_not_account_for_every_byte_is_refused(path, change):
    header = declared({}, "Example", 16)
    assert read_header(sparse(path, header, 16)).arrays["x"].shape == (2,)
    change(header)
    with pytest.raises(ValueError, match="is not an archive of driftwolfe, or is damaged"):
        read_header(sparse(path, header, 16))


def test_what_the_safetensors_library_writes_is_what_is_read(path):
    """Of every type that it knows, in any order."""
    rng = np.random.default_rng(0)
    names = (
        "bool uint8 int8 uint16 int16 float16 uint32 int32 float32 uint64 int64 float64 complex64"
    )
    arrays = {name: rng.integers(0, 2, (3, 4)).astype(name) for name in names.split()}
    arrays["none"] = np.zeros((0, 5))
    write_archive(path, "Example", {}, arrays)
    ours, theirs = read_archive(path).arrays, safetensors.numpy.load_file(path)
    assert ours.keys() == theirs.keys() == arrays.keys()
    for name, array in arrays.items():
        for read in (ours[name], theirs[name]):
            assert (read.dtype, read.shape) == (array.dtype, array.shape)
            np.testing.assert_array_equal(read, array)
        assert ours[name].flags.writeable


@pytest.mark.parametrize(
    "other",
    [
        {"x": np.arange(6.0).reshape(3, 2), "y": np.zeros(3)},  # the same bytes in another shape
        {"x": np.arange(6.0), "y": np.zeros(3)},
        {"x": np.arange(6.0).reshape(2, 3), "y": np.zeros(3, np.int64)},  # of another type
        {"x": np.arange(6.0).reshape(2, 3), "z": np.zeros(3)},  # under another name
        {"y": np.arange(6.0).reshape(2, 3), "x": np.zeros(3)},
    ],
    ids=["turned", "flat", "type", "name", "exchanged"],
)
def test_the_checksum_covers_names_types_and_shapes(path, other):
    arrays = {"x": np.arange(6.0).reshape(2, 3), "y": np.zeros(3)}
    write_archive(path, "Example", {}, arrays)
    with safetensors.safe_open(path, framework="numpy") as opened:
        metadata = opened.metadata()
    path.write_bytes(safetensors.numpy.save(arrays, metadata))
    assert read_archive(path).arrays["x"].shape == (2, 3)
    path.write_bytes(safetensors.numpy.save(other, metadata))
    with pytest.raises(ValueError, match="damaged"):
        read_archive(path)
