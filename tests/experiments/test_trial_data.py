"""Streams by name."""

import gc

import msgspec
import numpy as np
import pytest

from driftwolfe.experiments.trial import DataSet


def _values(stream):
    point = stream.domain.origin()
    return [loss.value(point) for loss in stream]


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": "mnist"}, "unknown data 'mnist'; there are movielens-100k, "),
        ({"name": "shuttle", "rounds": 0}, "rounds must be a whole number >= 1, got 0"),
        ({"name": "shuttle", "rounds": True}, "rounds must be a whole number >= 1, got True"),
        ({"name": "shuttle", "rounds": "40"}, "rounds must be a whole number >= 1, got '40'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(fields, sentence):
    with pytest.raises((ValueError, TypeError)) as problem:
        DataSet(**fields)
    assert str(problem.value).startswith(sentence)


def test_unknown_fields_in_a_file_are_refused():
    with pytest.raises(msgspec.ValidationError, match="unknown field `size`"):
        msgspec.json.decode(b'{"name": "shuttle", "size": 3}', type=DataSet)


def test_the_seed_decides_the_stream_and_nothing_else_does():
    data = DataSet(name="jumping-target", rounds=40)
    first = _values(data.load(seed=1))
    assert _values(data.load(seed=2)) != first
    data.load(seed=3), data.load(seed=4), gc.collect()  # it is not kept any longer
    assert _values(data.load(seed=1)) == first
    assert _values(DataSet(name="jumping-target", rounds=40).load(seed=1)) == first


def test_a_shorter_version_has_as_many_jumps():
    for rounds in (40, 200, None):
        stream = DataSet(name="jumping-target", rounds=rounds).load(seed=0)
        assert len(stream) == rounds or (rounds is None and len(stream) == 400)
        assert len(stream.drifts) == 3
        assert np.isfinite(stream.lipschitz)


@pytest.mark.parametrize("name", ["movielens-100k", "shuttle"])
def test_real_data_are_sought_in_the_folder_that_is_named(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=str(tmp_path)):
        DataSet(name=name).load(seed=0, folder=tmp_path)


@pytest.mark.parametrize("name", ["shuttle-twin", "movielens-100k-twin"])
def test_twins_need_no_files(name, tmp_path):
    stream = DataSet(name=name, rounds=12).load(seed=0, folder=tmp_path)
    assert len(stream) == 12
    assert "twin" in stream.name
    assert stream.domain is not None
