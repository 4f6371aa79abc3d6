"""Files are written whole or not at all."""

import json
import os
import threading
from pathlib import Path

import pytest

from driftwolfe.storage import files


def test_folders_are_made_and_the_content_is_what_was_given(tmp_path):
    path = tmp_path / "a" / "b" / "name.txt"
    files.write_text(path, "grüße\n")
    assert path.read_bytes() == "grüße\n".encode()
    files.write_bytes(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    files.write_json(path, {"a": [1, "ü"]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": [1, "ü"]}
    assert os.listdir(path.parent) == ["name.txt"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, error):
    path = tmp_path / "file.json"
    files.write_text(path, "old")

    def fill(part):
        part.write_text("half of the n")
        assert path.read_text() == "old"
        raise error

    with pytest.raises(type(error)):
        files.write(path, fill)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_a_failure_before_anything_was_written_leaves_nothing(tmp_path):
    def fill(part):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        files.write(tmp_path / "file.json", fill)
    assert os.listdir(tmp_path) == []


def test_what_writes_by_the_ending_of_a_name_finds_it(tmp_path):
    """Figures are written in the format that their name ends in."""
    seen = []
    files.write(tmp_path / "figure.svg", lambda part: (seen.append(part), part.write_text("x")))
    assert seen[0].suffix == ".svg"
    assert seen[0].parent == tmp_path
    assert seen[0].name.startswith(".")


def test_names_as_long_as_the_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("n" * 240 + ".json")
    files.write_text(path, "content")
    assert path.read_text() == "content"


def test_writers_at_the_same_time_leave_one_whole_file(tmp_path):
    path = tmp_path / "file.txt"
    texts = [str(number) * 200_000 for number in range(8)]
    torn, problems, done = [], [], threading.Event()

    def read():
        while not done.is_set():
            if path.exists() and path.read_text() not in texts:
                torn.append(True)

    def write(text):
        try:
            for _ in range(5):
                files.write_text(path, text)
        except OSError as problem:
            problems.append(problem)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=write, args=(text,)) for text in texts]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    done.set()
    reader.join()
    assert problems == []
    assert torn == []
    assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["file.txt"]


def test_two_that_fill_at_the_same_time_do_not_share_a_file(tmp_path):
    """In one process: the second begins and ends while the first is under way."""
    path = tmp_path / "file.txt"

    def fill(part: Path) -> None:
        with part.open("w") as file:
            file.write("first half, ")
            file.flush()
            files.write_text(path, "other")
            file.write("second half")

    files.write(path, fill)
    assert path.read_text() == "first half, second half"


def _left_over(path):
    return path.with_name(f".{path.stem}.0123456789abcdef{path.suffix}")


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    path = tmp_path / "a[b]*.json"
    others = [".other.0123456789abcdef.json", ".a[b]*.0123456789abcdef.txt", ".a[b]*.short.json"]
    for name in others:
        (tmp_path / name).write_text("not of this file")
    _left_over(path).write_text("half of a fi")
    files.write_text(path, "content")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, *others])


def test_what_is_being_written_is_not_taken_for_left_over(tmp_path):
    path, seen = tmp_path / "file.json", []

    def fill(part):
        part.write_text("first half, ")
        files.write_text(path, "another writer")
        seen.append(part.exists())
        with part.open("a") as file:
            file.write("second half")

    files.write(path, fill)
    assert seen == [True]
    assert path.read_text() == "first half, second half"
    assert os.listdir(tmp_path) == ["file.json"]


def test_a_part_that_was_taken_away_before_it_was_locked_is_begun_again(tmp_path, monkeypatch):
    path, taken = tmp_path / "file.json", []
    lock = files.lock

    def slow(file, **options):
        if not taken:
            taken.append(Path(file.name))
            taken[0].unlink()
        return lock(file, **options)

    monkeypatch.setattr(files, "lock", slow)
    files.write_text(path, "content")
    assert taken and path.read_text() == "content"
    assert os.listdir(tmp_path) == ["file.json"]


def test_where_there_are_no_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "lock", lambda file, **options: False)
    path = tmp_path / "file.json"
    _left_over(path).write_text("perhaps another writer's")
    files.write_text(path, "content")
    assert path.read_text() == "content"
    assert sorted(os.listdir(tmp_path)) == sorted([_left_over(path).name, "file.json"])


def test_problems_of_the_system_are_told_in_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("a file")
    for path in (tmp_path / "taken" / "file.json", tmp_path / "taken" / "deep" / "file.json"):
        with pytest.raises(OSError) as problem:
            files.write_text(path, "content")
        assert str(problem.value) == f"could not write {path}: {tmp_path / 'taken'} is not a folder"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as problem:
        files.write_text(tmp_path / "folder", "content")
    assert str(problem.value) == f"could not write {tmp_path / 'folder'}: Is a directory"
    assert problem.value.errno == 21
    assert sorted(os.listdir(tmp_path)) == ["folder", "taken"]
