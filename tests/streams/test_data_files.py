"""Data files: found, unpacked with bounds, and refused when they are not the published ones."""

from __future__ import annotations

import gzip
import hashlib

import pytest

from driftwolfe.streams import movielens_100k, shuttle
from driftwolfe.streams.files import DataFile

CONTENT = b"1\t2\t3\n" * 50
FILE = DataFile(
    path="some/where.txt",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    source="https://example.org",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    (tmp_path / "some").mkdir()
    return tmp_path


def test_plain_and_compressed_files_are_read(folder, monkeypatch):
    packed = folder / "some/where.txt.gz"
    packed.write_bytes(gzip.compress(CONTENT))
    assert FILE.read(folder) == CONTENT
    assert FILE.read(str(folder)) == CONTENT
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    assert FILE.read() == CONTENT
    packed.unlink()
    (folder / "some/where.txt").write_bytes(CONTENT)
    assert FILE.read() == CONTENT


def test_an_argument_goes_before_the_environment(folder, monkeypatch, tmp_path_factory):
    (folder / "some/where.txt").write_bytes(CONTENT)
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(tmp_path_factory.mktemp("empty")))
    assert FILE.read(folder) == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT.replace(b"3", b"4"), b"", CONTENT * 2])
@pytest.mark.parametrize("packed", [True, False])
def test_other_content_is_refused(folder, content, packed):
    name = "some/where.txt.gz" if packed else "some/where.txt"
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match="not the published file") as refusal:
        FILE.read(folder)
    message = str(refusal.value)
    assert name in message
    assert FILE.sha256 in message
    assert "get it again from https://example.org" in message


@pytest.mark.parametrize(
    "broken",
    [gzip.compress(CONTENT)[:-12], b"not gzip at all", b""],
    ids=["truncated", "not gzip", "empty"],
)
def test_broken_archives_are_refused(folder, broken):
    (folder / "some/where.txt.gz").write_bytes(broken)
    with pytest.raises(ValueError, match=r"where\.txt\.gz"):
        FILE.read(folder)


def test_no_more_is_unpacked_than_the_file_should_hold(folder):
    bomb = gzip.compress(bytes(50_000_000))
    assert len(bomb) < 100_000
    (folder / "some/where.txt.gz").write_bytes(bomb)
    with pytest.raises(ValueError, match=f"more than {len(CONTENT)} bytes"):
        FILE.read(folder)


def test_a_missing_file_says_where_it_was_sought(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"pass data=.*DRIFTWOLFE_DATA"):
        FILE.read()
    with pytest.raises(FileNotFoundError, match=r"neither some/where.txt nor .*\.gz is in"):
        FILE.read(folder)
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    for load, name in ((movielens_100k, "ml-100k/u.data"), (shuttle, "shuttle/shuttle.scale")):
        with pytest.raises(FileNotFoundError, match=name):
            load()
