"""Files are written whole or not at all."""

import errno
import json
import os
import socket
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks.output import write_json
from driftwolfe import storage


def test_folders_are_made_and_the_content_is_what_was_given(tmp_path):
    path = tmp_path / "a" / "b" / "name.txt"
    storage.write_text(path, "grüße\n")
    assert path.read_bytes() == "grüße\n".encode()
    storage.write_bytes(path, b"\x00\xff")
    assert path.read_bytes() == b"\x00\xff"
    write_json(path, {"a": [1, "ü"]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": [1, "ü"]}
    assert os.listdir(path.parent) == ["name.txt"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt("C"), OSError("disk full")])
def test_a_failure_leaves_the_old_file_and_nothing_beside_it(tmp_path, error):
    path = tmp_path / "file.json"

    def fill(part):
        part.write_text("half of the n")
        assert not path.exists() or path.read_text() == "old"
        raise error

    with pytest.raises(type(error), match=str(error)):
        storage.write(path, fill)
    assert os.listdir(tmp_path) == []
    storage.write_text(path, "old")
    with pytest.raises(type(error), match=str(error)):
        storage.write(path, fill)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.json"]


def test_names_of_parts_and_of_files(tmp_path):
    seen = []
    storage.write(tmp_path / "figure.svg", lambda part: (seen.append(part), part.write_text("x")))
    assert seen[0].suffix == ".svg"
    assert seen[0].parent == tmp_path
    assert seen[0].name.startswith(".")
    path = tmp_path / ("n" * 240 + ".json")
    storage.write_text(path, "content")
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
                storage.write_text(path, text)
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


def _left_over(path):
    return path.with_name(f".{path.stem}.driftwolfe-0123456789abcdef{path.suffix}")


def test_what_a_killed_writer_left_is_removed_by_the_next_and_nothing_else(tmp_path):
    path = tmp_path / "a[b]*.json"
    ends = ["0123456789abcdef.json", "driftwolfe-0123456789abcdef.txt", "driftwolfe-short.json"]
    others = [".other.driftwolfe-0123456789abcdef.json", *(f".a[b]*.{end}" for end in ends)]
    for name in others:
        (tmp_path / name).write_text("not of this file")
    _left_over(path).write_text("half of a fi")
    storage.write_text(path, "content")
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, *others])


def test_what_is_being_written_is_not_taken_for_left_over(tmp_path):
    path, seen = tmp_path / "file.json", []

    def fill(part):
        part.write_text("first half, ")
        storage.write_text(path, "another writer")
        seen.append(part.exists())
        with part.open("a") as file:
            file.write("second half")

    storage.write(path, fill)
    assert seen == [True]
    assert path.read_text() == "first half, second half"
    assert os.listdir(tmp_path) == ["file.json"]


def test_a_part_that_was_taken_away_before_it_was_locked_is_begun_again(tmp_path, monkeypatch):
    path, taken = tmp_path / "file.json", []
    lock = storage.lock

    def slow(file, **options):
        if not taken:
            taken.append(Path(file.name))
            taken[0].unlink()
        return lock(file, **options)

    monkeypatch.setattr(storage, "lock", slow)
    storage.write_text(path, "content")
    assert taken and path.read_text() == "content"
    assert os.listdir(tmp_path) == ["file.json"]


def test_where_there_are_no_locks_files_are_written_and_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "lock", lambda file, **options: False)
    path = tmp_path / "file.json"
    _left_over(path).write_text("perhaps another writer's")
    storage.write_text(path, "content")
    assert path.read_text() == "content"
    assert sorted(os.listdir(tmp_path)) == sorted([_left_over(path).name, "file.json"])


def test_problems_of_the_system_are_told_in_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("a file")
    for path in (tmp_path / "taken" / "file.json", tmp_path / "taken" / "deep" / "file.json"):
        with pytest.raises(OSError) as problem:
            storage.write_text(path, "content")
        assert str(problem.value) == f"could not write {path}: {tmp_path / 'taken'} is not a folder"
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError) as problem:
        storage.write_text(tmp_path / "folder", "content")
    assert str(problem.value) == f"could not write {tmp_path / 'folder'}: Is a directory"
    assert problem.value.errno == 21
    assert sorted(os.listdir(tmp_path)) == ["folder", "taken"]


def _mode(path):
    return stat.S_IMODE(path.stat().st_mode)


posix = pytest.mark.skipif(os.name != "posix", reason="modes and links as of POSIX")


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
def test_a_file_that_is_replaced_keeps_its_mode_and_is_nobody_elses_until_it_is_whole(
    tmp_path, mode
):
    path, seen = tmp_path / "file.json", []
    path.write_text("old")
    path.chmod(mode)
    storage.write(path, lambda part: (seen.append(_mode(part)), part.write_text("new")))
    assert (path.read_text(), _mode(path), seen) == ("new", mode, [0o600])


@posix
@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_usual_mode(tmp_path, umask):
    before = os.umask(umask)
    try:
        storage.write_text(tmp_path / "file.json", "new")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "file.json") == 0o666 & ~umask


@posix
def test_where_the_group_cannot_be_kept_another_gets_no_more_than_everyone(tmp_path, monkeypatch):
    """The file was for a group; the new one would be for whatever group its writer is in."""

    def chown(path, user, group):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "chown", chown)
    for mode, kept in ((0o640, 0o600), (0o664, 0o644), (0o666, 0o666), (0o600, 0o600)):
        path = tmp_path / f"{mode:o}"
        path.write_text("old")
        path.chmod(mode)
        storage.write_text(path, "new")
        assert (path.read_text(), _mode(path)) == ("new", kept)


@posix
def test_the_owner_is_kept_where_that_is_permitted(tmp_path, monkeypatch):
    given, path = [], tmp_path / "file.json"
    path.write_text("old")
    monkeypatch.setattr(os, "chown", lambda _, user, group: given.append((user, group)))
    storage.write_text(path, "new")
    assert given == [(os.getuid(), -1), (-1, path.stat().st_gid)]


@posix
def test_a_link_stays_and_the_file_at_its_end_is_replaced(tmp_path):
    target = tmp_path / "elsewhere" / "real.json"
    target.parent.mkdir()
    target.write_text("old")
    target.chmod(0o600)
    (tmp_path / "between").symlink_to("elsewhere/real.json")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "between")
    storage.write_text(link, "new")
    assert link.is_symlink() and (tmp_path / "between").is_symlink()
    assert (target.read_text(), _mode(target)) == ("new", 0o600)
    assert not target.is_symlink()
    assert os.listdir(target.parent) == ["real.json"]
    assert sorted(os.listdir(tmp_path)) == ["between", "elsewhere", "link.json"]


@posix
def test_links_that_lead_to_no_file_are_told_in_one_sentence(tmp_path):
    (tmp_path / "folder").mkdir()
    links = {"dangling": "nowhere/at all", "loop": "pool", "pool": "loop", "home": "folder"}
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    for name, target in links.items():
        with pytest.raises(FileNotFoundError) as problem:
            storage.write_text(tmp_path / name, "content")
        why = f"it is a link to {target}, which is not a file"
        assert str(problem.value) == f"could not write {tmp_path / name}: {why}"
    assert sorted(os.listdir(tmp_path)) == sorted(["folder", *links])
    assert os.listdir(tmp_path / "folder") == []


@posix
@pytest.mark.parametrize("kind", ["device", "pipe", "socket"])
def test_what_is_no_file_is_refused_and_stays(tmp_path, kind):
    path, link, opened = tmp_path / "it", tmp_path / "link", socket.socket(socket.AF_UNIX)
    if kind == "device":
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except (OSError, AttributeError):
            pytest.skip("only root makes devices")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        opened.bind(os.path.relpath(path))  # names of sockets are short
    opened.close()
    link.symlink_to(path)
    before = path.lstat()
    for name, why in (
        (path, "it is a device, pipe or socket, not a file"),
        (link, f"it is a link to {path}, which is not a file"),
    ):
        with pytest.raises(OSError) as problem:
            dw.OGD(dw.L1Ball(3)).save(name)
        assert str(problem.value) == f"could not write {name}: {why}"
    after = path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert sorted(os.listdir(tmp_path)) == ["it", "link"]


@posix
def test_a_pipe_with_the_name_of_a_left_over_does_not_stop_a_writer(tmp_path):
    os.mkfifo(_left_over(tmp_path / "file.json"))
    storage.write_text(tmp_path / "file.json", "content")
    assert (tmp_path / "file.json").read_text() == "content"


@posix
def test_a_game_says_before_it_begins_that_its_checkpoint_leads_nowhere(tmp_path):
    path, learner = tmp_path / "game.safetensors", dw.OGD(dw.L1Ball(3))
    path.symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match="it is a link to nowhere, which is not a file"):
        dw.play(learner, [dw.losses.LinearLoss(np.ones(3))] * 9, checkpoint=path)
    assert learner.t == 0
