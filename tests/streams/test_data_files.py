"""Data files: found, unpacked with bounds, and refused when they are not the published ones."""

from __future__ import annotations

import gzip
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from driftwolfe.streams import DataUnavailable, datasets, movielens_100k, shuttle
from driftwolfe.streams.datasets import DataFile

CONTENT = b"1\t2\t3\n" * 50
FILE = DataFile(
    path="some/where.txt",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    source="https://example.org",
    url="http://127.0.0.1:9/where.txt",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "1")
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "some").mkdir()
    return tmp_path


@pytest.fixture
def cached(folder):
    """Where the file lies in the cache; it is not there yet."""
    (folder / "cache/some").mkdir(parents=True)
    return folder / "cache/some/where.txt"


def test_plain_and_compressed_files_are_read(folder, monkeypatch, tmp_path_factory):
    packed = folder / "some/where.txt.gz"
    packed.write_bytes(gzip.compress(CONTENT))
    assert FILE.read(folder) == CONTENT
    assert FILE.read(str(folder)) == CONTENT
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    assert FILE.read() == CONTENT
    packed.unlink()
    (folder / "some/where.txt").write_bytes(CONTENT)
    assert FILE.read() == CONTENT
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(tmp_path_factory.mktemp("empty")))
    assert FILE.read(folder) == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT.replace(b"3", b"4"), b"", CONTENT * 2])
@pytest.mark.parametrize("name", ["where.txt.gz", "where.txt"])
def test_other_content_is_refused(folder, cached, content, name):
    content = gzip.compress(content) if name.endswith("gz") else content
    for place, remedy in ((folder, "get it again from https://example.org"), (None, "delete")):
        file = (cached.parent if place is None else folder / "some") / name
        file.write_bytes(content)
        with pytest.raises(ValueError, match="not the published file") as refusal:
            FILE.read(place)
        assert all(part in str(refusal.value) for part in (str(file), FILE.sha256, remedy))


@pytest.mark.parametrize(
    "broken",
    [gzip.compress(CONTENT)[:-12], b"not gzip at all", b""],
    ids=["cut", "not gzip", "empty"],  # gzip writes the time
)
def test_broken_archives_are_refused(folder, broken):
    (folder / "some/where.txt.gz").write_bytes(broken)
    with pytest.raises(ValueError, match=r"where\.txt\.gz"):
        FILE.read(folder)


def test_no_more_is_unpacked_than_the_file_should_hold(folder):
    (folder / "some/where.txt.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(ValueError, match=f"more than {len(CONTENT)} bytes"):
        FILE.read(folder)


def test_a_missing_file_says_where_it_was_sought(folder, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match=r"neither some/where.txt nor .*\.gz is in"
    ) as missing:
        FILE.read(folder)
    assert not isinstance(missing.value, DataUnavailable)
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    for load, name in ((movielens_100k, "ml-100k/u.data"), (shuttle, "shuttle/shuttle.scale")):
        with pytest.raises(FileNotFoundError, match=name):
            load()


@pytest.mark.parametrize(
    ("load", "name"), [(movielens_100k, "ml-100k/u.data"), (shuttle, "shuttle/shuttle.scale")]
)
def test_offline_without_a_folder_says_what_to_do(folder, load, name):
    with pytest.raises(DataUnavailable, match=r"pass data=.*DRIFTWOLFE_DATA.*twin") as missing:
        load()
    assert str(missing.value) == (
        f"download of {name} failed: DRIFTWOLFE_OFFLINE forbids it; set DRIFTWOLFE_DATA"
    )
    (note,) = missing.value.__notes__
    assert note.startswith(f"{name} is not in the cache folder {folder / 'cache'}")


def test_the_cache_is_read_where_no_folder_is_named(folder, cached, monkeypatch):
    cached.write_bytes(CONTENT)
    assert FILE.read() == CONTENT
    cached.with_name("where.txt.gz").write_bytes(gzip.compress(CONTENT))
    cached.unlink()
    assert FILE.read() == CONTENT
    with pytest.raises(FileNotFoundError, match="neither"):
        FILE.read(folder)
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    with pytest.raises(FileNotFoundError, match="neither"):
        FILE.read()
    monkeypatch.setenv("DRIFTWOLFE_DATA", "")
    assert FILE.read() == CONTENT


def test_find_looks_where_read_does_and_not_inside(folder, cached, monkeypatch):
    assert FILE.find() is None
    assert FILE.find(folder) is None
    cached.write_bytes(b"something else")
    assert FILE.find() is not None
    assert FILE.find(folder) is None
    assert FILE.find(folder / "cache") is not None
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(folder))
    assert FILE.find() is None
    (folder / "some/where.txt.gz").write_bytes(b"")
    assert FILE.find() is not None


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    monkeypatch.setenv("HOME", "/home/someone")
    assert datasets.cache_folder() == tmp_path
    monkeypatch.delenv("DRIFTWOLFE_CACHE")
    if os.name == "posix":
        assert datasets.cache_folder() == Path("/elsewhere/driftwolfe")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # not allowed by its standard
        assert Path("/home/someone") in datasets.cache_folder().parents
        assert datasets.cache_folder().name == "driftwolfe"


def test_what_is_kept_is_whole_or_absent(folder, monkeypatch):
    def killed(source, target):
        raise KeyboardInterrupt

    def download(self, url, target, pooch):
        Path(target).write_bytes(CONTENT)

    monkeypatch.delenv("DRIFTWOLFE_OFFLINE")
    monkeypatch.setattr(DataFile, "_write_download", download)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(os, "rename", killed)
        FILE.read()
    assert list((folder / "cache/some").iterdir()) == []
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda _: FILE._download(), range(40)))
    assert [path.name for path in (folder / "cache/some").iterdir()] == ["where.txt"]
    assert (folder / "cache/some/where.txt").read_bytes() == CONTENT


def no_home(name):
    raise RuntimeError("the home directory cannot be resolved")


@pytest.mark.parametrize("os_cache", [lambda name: Path("~/.cache") / name, no_home])
def test_without_a_home_no_cache_is_made(folder, monkeypatch, os_cache):
    monkeypatch.delenv("DRIFTWOLFE_CACHE")
    monkeypatch.delenv("DRIFTWOLFE_OFFLINE")
    monkeypatch.setattr("pooch.os_cache", os_cache)
    monkeypatch.chdir(folder)
    assert datasets.cache_folder() is None and FILE.find() is None
    with pytest.raises(DataUnavailable, match=r"which DRIFTWOLFE_CACHE sets.*no home folder"):
        FILE.read()
    assert [path.name for path in folder.iterdir()] == ["some"]
