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
