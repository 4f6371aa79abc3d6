"""Full disks and folders that cannot be written: one sentence, and the last good file stays."""

import errno
import os
import subprocess
import sys
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.estimators import MatrixCompleter
from driftwolfe.experiments.report import publish
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.losses import SquaredDistance
from experiments.small import Here, made_up, trial

resource = pytest.importorskip("resource")


def losses(rounds):
    rng = np.random.default_rng(0)
    return [SquaredDistance(rng.standard_normal(3)) for _ in range(rounds)]


# Each writes for the `number`-th time.


def save_learner(folder, number):
    learner = dw.POLA(dw.L1Ball(3))
    dw.play(learner, losses(10 * number))
    learner.save(folder / "learner.safetensors")


def save_estimator(folder, number):
    completer = MatrixCompleter()
    completer.partial_fit([(user, user % 3) for user in range(9 * number)], np.arange(9.0 * number))
    completer.save(folder / "ratings.safetensors")


def play_on(folder, number):
    learner = dw.POLD(dw.L1Ball(3))
    dw.play(learner, losses(10 * number), checkpoint=folder / "game.safetensors", every=4)


def write_result(folder, number):
    store = Store(folder)
    store.write(made_up(trial(), wall=float(number)))


def write_list(folder, number):
    Store(folder).add("Sweep", [trial(seed=seed) for seed in range(number)])


def draw(folder, number):
    store = Store(folder)
    if number == 1:
        store.add("Sweep", [trial()])
        store.write(made_up(trial()))
    publish(store, f"command {number}")


WRITERS = {
    "learner": (save_learner, "learner.safetensors"),
    "estimator": (save_estimator, "ratings.safetensors"),
    "game": (play_on, "game.safetensors"),
    "result": (write_result, f"trials/{trial().name}.json"),
    "list of trials": (write_list, "sweep.json"),
    "report": (draw, "summary.md"),
}


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def half(path, content):
    with path.open("wb") as part:
        part.write(content[: len(content) // 2])
    full()


@contextmanager
def mounted(folder, size="16m"):
    """A small disk in memory, where this user may make one."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True
    )
    if made.returncode:
        pytest.skip("this user may not mount a disk")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def filled(folder, patch):
    """Take all the room that there is, for a while."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1):
            with suppress(OSError):
                while file.write(b"x" * size) == size:
                    pass
    yield
    (folder / "filler").unlink()


@contextmanager
def remounted(folder, patch):
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    yield
    with pytest.raises(OSError, match=r"could not write .*\.lock: Read-only file system"):
        run_sweep(Store(folder), Here())
    subprocess.run(["mount", "-o", "remount,rw", str(folder)], check=True)


@contextmanager
def forbidden(folder, patch):
    folders = (folder, *(path for path in folder.rglob("*") if path.is_dir()))
    for each in folders:
        each.chmod(0o555)
    yield
    for each in folders:
        each.chmod(0o755)


def patched(owner, name, new):
    @contextmanager
    def trouble(folder, patch):
        with patch.context() as inner:
            inner.setattr(owner, name, new)
            yield

    return trouble


#: What happens, what is told, and what the machine must allow.
needs_mount = pytest.mark.skipif(sys.platform != "linux", reason="disks in memory are Linux's")
no_root = pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
TROUBLES = {
    "full while it is written": (patched(Path, "write_bytes", half), errno.ENOSPC, ()),
    "full when it is synchronised": (patched(os, "fsync", full), errno.ENOSPC, ()),
    "full when it is put in its place": (patched(Path, "replace", full), errno.ENOSPC, ()),
    "really full": (filled, errno.ENOSPC, needs_mount),
    "read-only disk": (remounted, errno.EROFS, needs_mount),
    "read-only folder": (forbidden, errno.EACCES, no_root),
}


def marks(name, number, needed):
    slow = name == "report"  # all write in the same way; figures take seconds to draw
    return [*([needed] if needed else []), *([pytest.mark.slow] if slow else [])]


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        pytest.param(name, trouble, marks=marks(name, number, TROUBLES[trouble][2]))
        for name in WRITERS
        for number, trouble in enumerate(TROUBLES)
    ],
)
def test_a_disk_in_trouble_leaves_the_last_good_file(name, trouble, tmp_path, monkeypatch):
    monkeypatch.setattr("driftwolfe.experiments.figures.FORMATS", ["svg"])
    write, file = WRITERS[name]
    begin, number, needs = TROUBLES[trouble]
    folder = tmp_path / "disk"
    with mounted(folder) if needs is needs_mount else nullcontext(folder.mkdir()):
        write(folder, 1)
        before = contents(folder)
        assert folder / file in before
        with begin(folder, monkeypatch), pytest.raises(OSError) as problem:
            write(folder, 2)
        assert str(problem.value).startswith("could not write ")
        assert str(problem.value).endswith(f": {os.strerror(number)}")
        assert problem.value.errno == number
        if number == errno.ENOSPC:
            assert str(folder / file) in str(problem.value)
        assert contents(folder) == before  # no part of a file either
        write(folder, 2)
        assert contents(folder)[folder / file] != before[folder / file]


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_where_a_folder_should_be(name, tmp_path):
    write, file = WRITERS[name]
    (tmp_path / "taken").write_text("a file")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "deeper"):
        with pytest.raises(OSError) as problem:
            write(folder, 1)
        why = f"{tmp_path / 'taken'} is not a folder"
        # A sweep writes its list first.
        first = "sweep.json" if name == "report" else file
        assert str(problem.value) == f"could not write {folder / first}: {why}"
    assert (tmp_path / "taken").read_text() == "a file"


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "report"])
def test_a_folder_where_the_file_should_be(name, tmp_path):
    write, file = WRITERS[name]
    (tmp_path / file).mkdir(parents=True)
    with pytest.raises((OSError, ValueError)) as problem:
        write(tmp_path, 1)
    assert file in str(problem.value)
    assert len(str(problem.value).splitlines()) == 1
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_learner_that_could_not_be_saved_plays_on(tmp_path, monkeypatch):
    learner, calm = dw.POLA(dw.L1Ball(3)), dw.POLA(dw.L1Ball(3))
    for t, loss in enumerate(losses(30)):
        if t == 15:
            with monkeypatch.context() as patch, pytest.raises(OSError):
                patch.setattr(os, "fsync", full)
                learner.save(tmp_path / "learner")
        assert learner.update(loss) == calm.update(loss)


def fsync_of_a_disk_that_fills_up(files=3):
    left, synchronise = [files], os.fsync

    def fsync(handle):
        left[0] -= 1
        full() if left[0] < 0 else synchronise(handle)

    return fsync


def test_a_game_on_a_full_disk_goes_on_when_there_is_room(tmp_path, monkeypatch):
    path = tmp_path / "game"
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left on device"):
        patch.setattr(os, "fsync", fsync_of_a_disk_that_fills_up())
        dw.play(dw.POLA(dw.L1Ball(3)), losses(40), checkpoint=path, every=5)
    history = dw.play(dw.POLA(dw.L1Ball(3)), losses(40), checkpoint=path, every=5)
    calm = dw.play(dw.POLA(dw.L1Ball(3)), losses(40))
    assert history.losses.tolist() == calm.losses.tolist()
    assert os.listdir(tmp_path) == ["game"]


def test_a_sweep_on_a_full_disk_keeps_what_it_has(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.add("Sweep", [trial(seed=seed) for seed in range(6)])
    with (
        monkeypatch.context() as patch,
        pytest.raises(OSError, match=r"could not write .*No space"),
    ):
        patch.setattr(os, "fsync", fsync_of_a_disk_that_fills_up())
        run_sweep(store, Here())
    assert len(store.results) == 3
    assert not list(tmp_path.rglob(".*.json"))
    workers = Here()
    assert run_sweep(store, workers) == 0
    assert len(workers.given) == 3
