"""Files of results: what is written is read again, and nothing else is."""

import math
from contextlib import suppress

import msgspec
import pytest

from driftwolfe.experiments.trial import AdaptiveRegret, Result, StoredWeights, decode
from experiments.small import as_plain, made_up, trial


@pytest.mark.parametrize(
    "result",
    [
        made_up(),
        made_up(cut=True, membership=[4, 5, 6]),
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
        (b"{", "truncated"),
        (b"null", "Expected `object`"),
        (b"[]", "Expected `object`"),
        (b"not JSON at all", "malformed|invalid"),
        (b"\x00\x01\x02\xff\xfe", "malformed|invalid"),
        (b'{"stream": "\xff\xfe"}', "utf-8|UTF-8"),
        (b"{}", "missing required field `trial`"),
        (b"[" * 100_000, "Expected `object`"),
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


SPOILT = {
    "another format": (
        {"format": "driftwolfe result 2"},
        "format must be 'driftwolfe result 1', got",
    ),
    "a field too many": ({"colour": "red"}, "unknown field `colour`"),
    "a curve too short": ({"loss": [1.0, 2.0]}, "of one length"),
    "calls too many": ({"lmo": [1, 2, 3, 4]}, "of one length"),
    "memberships too many": ({"membership": [1, 2, 3, 4]}, "of one length"),
    "no readings": (
        {name: [] for name in ("rounds", "loss", "seconds", "lmo", "projection", "gauge")},
        "not empty",
    ),
    "rounds that fall": ({"rounds": [10, 30, 20]}, "rounds must rise"),
    "rounds that stay": ({"rounds": [10, 10, 20]}, "rounds must rise"),
    "a reading of nothing": ({"rounds": [0, 10, 20]}, "rounds must rise, and start at 1"),
    "a text for a number": (
        {"loss": ["1.0", 2.0, 3.0]},
        r"Expected `float`, got `str` - at `\$.loss",
    ),
    "no number": ({"loss": [None, 2.0, 3.0]}, "Expected `float`, got `null`"),
    "half a call": ({"lmo": [1, 2, 2.5]}, "Expected `int`, got `float`"),
    "a truth for a number": ({"lmo": [1, 2, True]}, "Expected `int`, got `bool`"),
    "a number for a truth": ({"cut": 1}, "Expected `bool`, got `int`"),
    "a text for a trial": ({"trial": "POLD"}, "Expected `object`, got `str`"),
    "a trial that cannot be": (
        {"trial": {"method": "X", "data": {"name": "shuttle"}}},
        "unknown method 'X'",
    ),
    "a row of weights too short": (
        {"weights": {"rounds": [0], "experts": ["a", "b"], "values": [[1.0]]}},
        "weights must have",
    ),
    "a row of weights too many": (
        {"weights": {"rounds": [0], "experts": ["a"], "values": [[1.0], [1.0]]}},
        "weights must have",
    ),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_result_is_refused(name):
    change, sentence = SPOILT[name]
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


@pytest.mark.parametrize("depth", [100, 100_000])
def test_nesting_without_end_is_refused(depth):
    nested = b'{"environment": {"a": ' + b"[" * depth
    with pytest.raises(ValueError):
        decode(nested, Result)
    closed = made_up().encode().replace(b'"3"', b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(closed, Result)


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


def test_the_mean_loss_is_over_all_rounds():
    assert made_up().mean_loss == 1.75 / 30


def test_an_older_file_without_memberships_is_still_read():
    plain = as_plain(made_up())
    plain.pop("membership", None)
    assert isinstance(decode(msgspec.json.encode(plain), Result), Result)
