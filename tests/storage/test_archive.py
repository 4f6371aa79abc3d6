"""An archive gives back what was put in, and anything else is refused."""

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from driftwolfe.storage import read_archive, write_archive


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.safetensors"


def write(path):
    arrays = {
        "numbers": np.array([[0.1, -np.inf, np.nan], [1e-310, 2.0, 3.0]]),
        "counts": np.arange(5, dtype=np.int64)[::2],
        "flags": np.array([True, False]),
        "empty": np.zeros((0, 3)),
        "text": np.frombuffer("grüße".encode(), np.uint8),
    }
    settings = {"t": 10**15, "rate": 0.1, "name": "ü", "list": [1, None, True], "more": {"a": "b"}}
    write_archive(path, "Example", settings, arrays)
    return settings, arrays


def test_what_goes_in_comes_out(path):
    settings, arrays = write(path)
    archive = read_archive(path)
    assert archive.kind == "Example"
    assert archive.settings == settings
    assert archive.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert archive.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(archive.arrays[name], array)


def test_every_flipped_byte_and_every_shorter_file_is_refused(path):
    write(path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(content), 200, replace=False):
        damaged = bytearray(content)
        damaged[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|not written|not an archive|version"):
            read_archive(path)
    for length in (0, 1, 7, 8, 9, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"damaged|not an archive"):
            read_archive(path)


def test_other_files_are_refused(path):
    path.write_bytes(safetensors.numpy.save({"a": np.zeros(2)}))
    with pytest.raises(ValueError, match="not written by driftwolfe"):
        read_archive(path)
    path.write_bytes((1 << 62).to_bytes(8, "little") + b"{}")
    with pytest.raises(ValueError, match="not an archive"):
        read_archive(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_archive(path.with_name("absent"))
    with pytest.raises(FileNotFoundError):
        read_archive(path.parent)


def test_a_newer_format_says_so(path, monkeypatch):
    monkeypatch.setattr("driftwolfe.storage.archive.VERSION", 2)
    write(path)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="version 2 of the format"):
        read_archive(path)


def test_what_is_not_plain_data_is_refused_and_nothing_is_written(path):
    with pytest.raises(TypeError):
        write_archive(path, "Example", {"what": object()}, {})
    with pytest.raises(ValueError, match="JSON compliant"):
        write_archive(path, "Example", {"what": float("nan")}, {})
    assert list(path.parent.iterdir()) == []


def test_more_than_can_be_read_again_is_not_written(path):
    write(path)
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"could not write .*: 1 arrays are too many for one file"):
        write_archive(path, "Example", {"text": "x" * 100_000_000}, {"a": np.zeros(1)})
    assert path.read_bytes() == content


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
