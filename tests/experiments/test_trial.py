"""What a trial may be, and what it is called."""

import gc
import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe.experiments.running import make_learner
from driftwolfe.experiments.trial import METHODS, DataSet, Trial, canonical, short
from experiments.small import DATA, trial


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"method": "POLDA"}, "unknown method 'POLDA'; there are AFLH, Ader, BOGDIP, "),
        ({"method": "Learner"}, "unknown method 'Learner'; there are "),
        ({"method": "play"}, "unknown method 'play'; there are "),
        ({"method": ["OGD"]}, "unknown method ['OGD']; there are "),
        ({"c": 0}, "c must be a positive finite number, got 0"),
        ({"c": -2.5}, "c must be a positive finite number, got -2.5"),
        ({"c": math.nan}, "c must be a positive finite number, got nan"),
        ({"c": math.inf}, "c must be a positive finite number, got inf"),
        ({"c": "1"}, "c must be a positive finite number, got str '1'"),
        ({"c": True}, "c must be a positive finite number, got bool True"),
        ({"limit": 0.0}, "limit must be a positive finite number, got 0.0"),
        ({"limit": math.nan}, "limit must be a positive finite number, got nan"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"seed": True}, "seed must be a whole number >= 0, got True"),
        ({"seed": 0.5}, "seed must be a whole number >= 0, got 0.5"),
        ({"seed": "three"}, "seed must be a whole number >= 0, got 'three'"),
        ({"seed": None}, "seed must be a whole number >= 0, got None"),
        ({"seed": 2**63}, "seed must be at most 9.22337e+18, got 9223372036854775808"),
        ({"first": 0}, "first must be a whole number >= 1, got 0"),
        ({"first": 2.5}, "first must be a whole number >= 1, got 2.5"),
        ({"taus": (10, 0)}, "every one of taus must be a whole number >= 1, got 0"),
        ({"taus": 10}, "taus must be a list of whole numbers, got 10"),
        ({"data": "shuttle"}, "data must be a DataSet, got 'shuttle'"),
        ({"options": {"colour": 1}}, "OGD has no option 'colour'; there are none"),
        (
            {"method": "POLA", "options": {"strat": "origin"}},
            "POLA has no option 'strat'; did you mean 'start'?",
        ),
        # Those that a trial sets itself are not options.
        ({"method": "POLA", "options": {"horizon": 5}}, "POLA has no option 'horizon'; "),
        ({"method": "POLA", "options": {"step_scale": 5}}, "POLA has no option 'step_scale'; "),
        (
            {"method": "POLA", "options": {"accuracy": math.nan}},
            "option accuracy must be finite, got nan",
        ),
        (
            {"method": "POLA", "options": {"accuracy": [1.0]}},
            "option accuracy must be a number, a text, true or false",
        ),
        ({"name": "mnist"}, "unknown data 'mnist'; there are movielens-100k, "),
        ({"name": "shuttle", "rounds": 0}, "rounds must be a whole number >= 1, got 0"),
        ({"name": "shuttle", "rounds": True}, "rounds must be a whole number >= 1, got True"),
        ({"name": "shuttle", "rounds": "40"}, "rounds must be a whole number >= 1, got '40'"),
        (
            {"method": "KalhanOFW", "c": 1.0},
            "KalhanOFW has no steps that c could scale; leave c out",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(fields, sentence):
    with pytest.raises((ValueError, TypeError)) as problem:
        DataSet(**fields) if "name" in fields else trial(**fields)
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


def test_the_label_and_the_order_of_options_do_not_make_another_trial():
    one = trial("POLA", options={"start": "origin", "seed": 1}, label="cold")
    other = trial("POLA", options={"seed": 1, "start": "origin"})
    assert one.identity == other.identity
    assert one.name == other.name
    assert (one.title, other.title) == ("cold", "POLA")


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
        {"first": 10},
        {"limit": 1.0},
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


def test_numbers_of_another_kind_do_not_make_another_trial():
    plain = trial("POLD", c=2.0, limit=5.0, seed=3, first=10, taus=(5,))
    other = trial(
        "POLD", c=2, limit=np.float64(5.0), seed=np.int64(3), first=10.0, taus=[np.int32(5)]
    )
    assert other.identity == plain.identity
    assert canonical(other) == canonical(plain)


@given(
    c=st.none() | st.floats(1e-300, 1e300) | st.integers(1, 10**9),
    seed=st.integers(0, 2**63 - 1),
    accuracy=st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    label=st.text(st.characters(codec="utf-8"), max_size=20),
)
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
def test_names_are_safe_file_names_whatever_the_options_hold(value, c, seed):
    for text in (value, "../../etc/passwd", "a\\b", "\0", "CON:"):
        name = trial("POLA", c=c, seed=seed, options={"start": text}, label="a/b").name
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+.")
        assert name[0] not in ".-"
        assert len(name) < 100


def test_identities_are_those_of_files_that_lie_on_disks_already():
    """If this fails, results of earlier versions are no longer found."""
    data = DataSet(name="movielens-100k")
    assert Trial(method="POLD", data=data, c=1e4, seed=3).name == "POLD-c1e4-seed3-630d58c487d42620"
    full = Trial(
        method="POLA",
        data=DataSet(name="shuttle", rounds=100),
        c=0.5,
        options={"start": "origin", "seed": 1},
        seed=7,
        first=50,
        limit=60.0,
        taus=(10, 20),
    )
    assert full.name == "POLA-c0.5-seed7-bd5391335e2371c2"


def test_a_default_is_not_shared_between_trials():
    trial().options["seed"] = 3
    assert trial().options == {}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e4, "1e4"),
        (0.1, "0.1"),
        (0.0625, "0.0625"),
        (16.0, "16"),
        (1e-4, "1e-4"),
        (2.5, "2.5"),
        (1e100, "1e100"),
        (3e-10, "3e-10"),
        (10.0, "10"),
    ],
)
def test_numbers_are_said_briefly(number, text):
    assert short(number) == text


# -- streams by name -----------------------------------------------------------------------------


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
