"""What a trial may be and what it is called, streams by name, and files of results."""

import gc
import math
from contextlib import suppress

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftwolfe.experiments.running import make_learner
from driftwolfe.experiments.trial import (
    METHODS,
    AdaptiveRegret,
    DataSet,
    Result,
    StoredWeights,
    Trial,
    canonical,
    decode,
    short,
)
from experiments.small import DATA, as_plain, made_up, trial


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"method": "POLDA"}, "unknown method 'POLDA'; there are AFLH, Ader, AnytimeOFW, "),
        ({"method": "Learner"}, "unknown method 'Learner'; there are "),
        ({"method": ["OGD"]}, "unknown method ['OGD']; there are "),
        ({"c": 0}, "c must be a positive finite number, got 0"),
        ({"c": "1"}, "c must be a positive finite number, got str '1'"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"seed": 2**63}, "seed must be at most 9.22337e+18, got 9223372036854775808"),
        ({"taus": (10, 0)}, "every one of taus must be a whole number >= 1, got 0"),
        ({"taus": 10}, "taus must be a list of whole numbers, got 10"),
        ({"data": "shuttle"}, "data must be a DataSet, got 'shuttle'"),
        ({"options": {"colour": 1}}, "OGD has no option 'colour'; there are none"),
        ({"options": {"strat": 1}}, "POLA has no option 'strat'; did you mean 'start'?"),
        # Those that a trial sets itself are not options.
        ({"options": {"horizon": 5}}, "POLA has no option 'horizon'; "),
        ({"options": {"step_scale": 5}}, "POLA has no option 'step_scale'; "),
        ({"options": {"accuracy": math.nan}}, "option accuracy must be finite, got nan"),
        ({"options": {"accuracy": [1]}}, "option accuracy must be a number, a text, true or false"),
        ({"name": "mnist"}, "unknown data 'mnist'; there are movielens-100k, "),
        ({"name": "shuttle", "rounds": True}, "rounds must be a whole number >= 1, got True"),
        (
            {"method": "KalhanOFW", "c": 1.0},
            "KalhanOFW has no steps that c could scale; leave c out",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(fields, sentence):
    with pytest.raises((ValueError, TypeError)) as problem:
        method = sentence.split()[0] if sentence.startswith("POLA") else "OGD"
        DataSet(**fields) if "name" in fields else trial(**{"method": method, **fields})
    assert str(problem.value).startswith(sentence)
    assert "\n" not in str(problem.value)


@pytest.mark.parametrize("kind", [Trial, DataSet])
def test_unknown_fields_in_a_file_are_refused(kind):
    given = trial() if kind is Trial else DATA
    content = msgspec.json.encode({**msgspec.to_builtins(given), "colour": "red"})
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.json.decode(content, type=kind)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_makes_a_learner(method):
    made = make_learner(trial(method), DATA.load(seed=0))
    assert type(made).__name__ == method


def test_labels_orders_and_kinds_of_numbers_do_not_make_another_trial():
    one = trial("POLA", options={"start": "origin", "seed": 1}, label="cold")
    other = trial("POLA", options={"seed": 1, "start": "origin"})
    assert one.identity == other.identity
    assert one.name == other.name
    assert (one.title, other.title) == ("cold", "POLA")
    plain = trial("POLD", c=2.0, seed=3, taus=(5,))
    other = trial("POLD", c=np.float32(2), seed=np.int64(3), taus=[np.int32(5)])
    assert other.identity == plain.identity
    assert canonical(other) == canonical(plain)
    trial().options["seed"] = 3
    assert trial().options == {}


def test_everything_else_does():
    changes = [
        {},
        {"method": "POLA"},
        {"data": DataSet(name="jumping-target", rounds=41)},
        {"data": DataSet(name="jumping-target")},
        {"data": DataSet(name="shuttle")},
        {"c": 1.0},
        {"c": math.nextafter(1.0, 2.0)},
        {"seed": 1},
        {"taus": (10,)},
        {"taus": (10, 20)},
        {"taus": (20, 10)},
        {"options": {"grid": "paper"}},
        {"options": {"grid": "tight"}},
        {"options": {"seed": 0}},
        {"options": {"seed": False}},
        {"options": {"seed": None}},
        {"options": {"seed": "0"}},
    ]
    names = [trial(**{"method": "POLD", **change}).name for change in changes]
    assert len(set(names)) == len(changes)


@given(
    c=st.none() | st.floats(1e-300, 1e300) | st.integers(1, 10**9),
    seed=st.integers(0, 2**63 - 1),
    accuracy=st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    label=st.text(st.characters(codec="utf-8"), max_size=20),
)
@settings(max_examples=30)
def test_a_trial_that_was_written_and_read_is_the_same(c, seed, accuracy, label):
    one = trial("POLD", c=c, seed=seed, options={"accuracy": accuracy}, label=label)
    read = msgspec.json.decode(canonical(one), type=Trial)
    assert read == one
    assert read.name == one.name


@given(
    value=st.text(st.characters(codec="utf-8")) | st.floats(allow_nan=False, allow_infinity=False),
    c=st.floats(5e-324, 1.7e308),
    seed=st.integers(0, 2**63 - 1),
)
@settings(max_examples=20)
def test_names_are_safe_file_names_whatever_the_options_hold(value, c, seed):
    for text in (value, "../../etc/passwd", "a\\b", "\0", "CON:"):
        name = trial("POLA", c=c, seed=seed, options={"start": text}, label="a/b").name
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+.")
        assert name[0] not in ".-"
        assert len(name) < 100


def test_identities_are_those_of_files_that_lie_on_disks_already():
    """If this fails, results of earlier versions are no longer found."""
    data = DataSet(name="movielens-100k")
    assert Trial(method="POLD", data=data, c=1e4, seed=3).name == "POLD-c1e4-seed3-40df6cb2cc6b3ab4"
    full = {"data": DataSet(name="shuttle", rounds=100), "options": {"start": "origin", "seed": 1}}
    full = trial("POLA", **full, c=0.5, seed=7, taus=(10, 20))
    assert full.name == "POLA-c0.5-seed7-ae08a0562cd6c1a0"


def test_numbers_are_said_briefly():
    texts = ["1e4", "0.1", "0.0625", "16", "1e-4", "2.5", "1e100", "3e-10", "10"]
    assert [short(float(text)) for text in texts] == texts


def _values(stream):
    point = stream.domain.origin()
    return [loss.value(point) for loss in stream]


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


@pytest.mark.parametrize(
    "result",
    [
        made_up(),
        made_up(membership=[4, 5, 6]),
        made_up(weights=StoredWeights([0, 20], ["a", "b"], [[1.0, None], [0.5, 0.5]])),
        made_up(adaptive=[AdaptiveRegret(5, 0.25, 0.0, (3, 8))]),
        made_up(trial("POLA", c=0.1, options={"start": "origin"}, label="kühl ✓", taus=(5,))),
        made_up(loss=[-1.0, 1e-300, 1.7e308]),
    ],
)
def test_what_is_written_is_read_again(result):
    content = result.encode()
    assert decode(content, Result) == result
    assert decode(content, Result).encode() == content


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "truncated"),
        (b"null", "Expected `object`"),
        (b"\x00\x01\x02\xff\xfe", "malformed|invalid"),
        (b'{"stream": "\xff\xfe"}', "utf-8|UTF-8"),
        (b"{}", "missing required field `trial`"),
        (b"[" * 100_000, "Expected `object`"),
        (b'{"environment": {"a": ' + b"[" * 100, "truncated"),
        (made_up().encode().replace(b'"3"', b"[" * 100_000 + b"]" * 100_000), "nested too deeply"),
    ],
)
def test_what_is_not_a_result_is_refused(content, sentence):
    with pytest.raises(ValueError, match=sentence):
        decode(content, Result)


def test_a_file_is_refused_wherever_it_was_cut_off():
    content = made_up().encode()
    for length in range(len(content) - 2):
        with pytest.raises(ValueError):
            decode(content[:length], Result)
    with pytest.raises(ValueError, match=r"trailing|malformed"):
        decode(content + content, Result)


CURVES = ("rounds", "loss", "seconds", "lmo", "projection", "gauge")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"format": "driftwolfe result 3"}, "format must be 'driftwolfe result 2', got"),
        ({"colour": "red"}, "unknown field `colour`"),
        ({"loss": [1.0, 2.0]}, "of one length"),
        ({"lmo": [1, 2, 3, 4]}, "of one length"),
        ({"membership": [1, 2, 3, 4]}, "of one length"),
        ({name: [] for name in CURVES}, "not empty"),
        ({"rounds": [10, 30, 20]}, "rounds must rise"),
        ({"rounds": [10, 10, 20]}, "rounds must rise"),
        ({"rounds": [0, 10, 20]}, "rounds must rise, and start at 1"),
        ({"loss": ["1.0", 2.0, 3.0]}, r"Expected `float`, got `str` - at `\$.loss"),
        ({"loss": [None, 2.0, 3.0]}, "Expected `float`, got `null`"),
        ({"lmo": [1, 2, 2.5]}, "Expected `int`, got `float`"),
        ({"lmo": [1, 2, True]}, "Expected `int`, got `bool`"),
        ({"trial": "POLD"}, "Expected `object`, got `str`"),
        ({"trial": {"method": "X", "data": {"name": "shuttle"}}}, "unknown method 'X'"),
        ({"weights": {"rounds": [0], "experts": ["a", "b"], "values": [[1.0]]}}, "must have"),
        ({"weights": {"rounds": [0], "experts": ["a"], "values": [[1.0], [1.0]]}}, "must have"),
    ],
)
def test_a_spoilt_result_is_refused(change, sentence):
    content = msgspec.json.encode({**as_plain(made_up()), **change})
    with pytest.raises(ValueError, match=sentence):
        decode(content, Result)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"0x10"])
def test_numbers_that_are_none_are_refused(number):
    content = made_up().encode()
    assert content.count(b"1.75") == 1
    with pytest.raises(ValueError):
        decode(content.replace(b"1.75", number), Result)


def test_a_number_beyond_all_measure_is_no_crash():
    """Either it is a whole number of any size, or it is refused."""
    content = made_up().encode()
    huge = content.replace(b'"lmo": [1', b'"lmo": [' + b"9" * 400)
    assert huge != content
    with suppress(ValueError):
        assert decode(huge, Result).lmo[0] > 10**399


@pytest.mark.parametrize(
    "change",
    [
        {"loss": [1.0, math.nan, 2.0]},
        {"loss": [1.0, math.inf, 2.0]},
        {"seconds": [0.1, 0.2, math.nan]},
        {"wall": math.nan},
        {"adaptive": [AdaptiveRegret(5, math.nan, 0.0, (0, 5))]},
        {"adaptive": [AdaptiveRegret(5, 1.0, math.inf, (0, 5))]},
        {"weights": StoredWeights([0], ["a"], [[math.nan]])},
    ],
)
def test_a_result_that_could_not_be_read_again_is_not_made(change):
    with pytest.raises(ValueError, match="finite"):
        made_up(**change)


def test_a_file_without_membership_tests_is_read():
    plain = as_plain(made_up())
    plain.pop("membership", None)
    assert isinstance(decode(msgspec.json.encode(plain), Result), Result)
