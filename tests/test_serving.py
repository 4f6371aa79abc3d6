"""The serving example: killed with SIGKILL it loses nothing and doubles nothing."""

import json
import os
from functools import partial
from pathlib import Path

import pytest

from driftwolfe.estimators import Recommender
from driftwolfe.storage import read_archive
from reliability.children import python, same_copy
from serving_kills import TIMES, example

SERVING = example()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")
def test_kills_lose_and_double_nothing(tmp_path):
    program = Path(__file__).with_name("serving_kills.py")
    done = python(program, tmp_path, env=same_copy(PYTHONWARNINGS="error"))
    kills = json.loads(done.stdout)
    # Those by the clock may come after the end.
    assert kills["in a write"] == 8 and kills["before a line"] == TIMES
    assert kills["answers twice"] > 0


def test_events_that_come_twice_or_cannot_be_learned(tmp_path, capsys):
    log = [
        (0, b'{"user": 1, "item": "a"}'),
        (7, b'{"user": 2, "item": "a"}'),  # offsets may have gaps
        (8, b'{"user": 2, "item": "b"'),
        (9, b'{"user": 2, "item": ["b"]}'),
        (10, b'{"user": 2}'),
        (11, b"[]"),
        (12, b'{"user": 2, "item": "b", "weight": 2.5}'),
        (13, b'{"user": 1, "recommend": 3}'),
    ]
    path = tmp_path / "model"
    assert list(SERVING.serve(lambda position: log, path)) == [(13, ["b"])]
    assert capsys.readouterr().err.count("skipped the line that ends at") == 4
    model, position = SERVING.resume(path)
    assert (model.n_events_, position) == (3, 14)
    # The source starts too early: nothing is learned again.
    more = [*log, (20, b'{"user": 3, "item": "a"}')]
    assert list(SERVING.serve(lambda position: more, path)) == []
    assert (SERVING.resume(path)[0].n_events_, SERVING.resume(path)[1]) == (4, 21)


POISON = [
    b"[" * 200_000,
    b'{"user": ' * 100_000,
    b'{"user": 1, "item": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b"9" * 10_000,
    b"\xff\x00",
    b'"recommend"',
    b'{"user": 1, "recommend": 1e999}',
    b'{"user": 1, "recommend": -1}',
    b'{"user": 1, "recommend": ' + b"9" * 400 + b"}",
    b'{"user": 1, "item": "a", "weight": ' + b"9" * 400 + b"}",
    b'{"user": 1, "item": "a", "weight": 1e999}',
    b'{"user": 1, "item": "a", "weight": "1"}',
    b'{"user": 1, "item": {}}',
    b'{"user": NaN, "item": "a"}',
]


def test_poisonous_lines_are_skipped_each_with_a_sentence(tmp_path, capsys):
    log, path = tmp_path / "log", tmp_path / "model"
    lines = [b'{"user": 1, "item": "a"}', *POISON, b'{"user": 2, "item": "b"}']
    log.write_bytes(b"\n".join(lines) + b"\n")
    assert dict(SERVING.serve(partial(SERVING.read_lines, log), path)) == {}
    told = capsys.readouterr().err.splitlines()
    assert len(told) == len(POISON) and all(len(line) < 300 for line in told)
    model, position = SERVING.resume(path)
    assert (model.n_events_, position) == (2, log.stat().st_size)


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path):
    log, path = tmp_path / "log", tmp_path / "model"
    whole = b'{"user": 1, "item": "a"}\n'
    log.write_bytes(whole + b'{"user": 1, "it')
    list(SERVING.serve(partial(SERVING.read_lines, log), path))
    assert (SERVING.resume(path)[0].n_events_, SERVING.resume(path)[1]) == (1, len(whole))
    log.write_bytes(whole + b'{"user": 1, "item": "b"}\n')
    list(SERVING.serve(partial(SERVING.read_lines, log), path))
    assert SERVING.resume(path)[0].seen(1) == ["a", "b"]


def test_a_note_is_kept_in_the_file_of_the_model(tmp_path):
    model, path = Recommender().partial_fit([("ann", "tea")]), tmp_path / "model"
    assert model.note_ is None
    model.save(path)
    assert Recommender.load(path).note_ is None
    model.save(path, note={"offsets": {"0": 7, "1": 2**60}, "topic": "clicks"})
    loaded = Recommender.load(path)
    assert loaded.note_ == {"offsets": {"0": 7, "1": 2**60}, "topic": "clicks"}
    before = path.read_bytes()
    for wrong in (3, [1], {1: 2}, {"a": (1, 2)}, {"a": object()}, {"a": float("nan")}):
        with pytest.raises((TypeError, ValueError), match=r"note|JSON"):
            model.save(path, note=wrong)
    assert path.read_bytes() == before
    loaded.save(path)  # a note belongs to one file, not to the model
    assert read_archive(path).settings["note"] is None
