"""Keys come back as they were, types included, and nothing else is taken."""

import copy
import enum
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe.estimators.core.columns import CATEGORY, Columns
from driftwolfe.estimators.core.ids import Ids, decode_keys, encode_keys
from driftwolfe.storage import read_archive, write_archive

scalars = (
    st.text()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.booleans()
    | st.none()
    | st.binary(max_size=20)
)
keys = st.recursive(scalars, lambda parts: st.lists(parts, max_size=3).map(tuple), max_leaves=5)


def typed(key):
    """The key with its types, as 1 == 1.0 == True."""
    return tuple(map(typed, key)) if isinstance(key, tuple) else (type(key), repr(key))


@given(st.lists(keys))
def test_keys_come_back_with_their_types(given_keys):
    encoded = encode_keys(given_keys)
    assert encoded.dtype == np.uint8 and encoded.ndim == 1
    assert [typed(key) for key in decode_keys(encoded)] == [typed(key) for key in given_keys]


def test_odd_numbers_and_texts():
    found = decode_keys(encode_keys([math.inf, -math.inf, math.nan, -0.0]))
    assert found[:2] == [math.inf, -math.inf] and math.isnan(found[2])
    assert math.copysign(1.0, found[3]) == -1.0
    odd = [10**5000, -(2**70), "\ud800", "", "Zoë\n\0"]
    assert decode_keys(encode_keys(odd)) == odd


@pytest.mark.parametrize(
    ("scalar", "kind"),
    [
        (np.int8(3), int),
        (np.float32(0.5), float),
        (np.bool_(True), bool),
        (np.str_("a"), str),
        (np.bytes_(b"a"), bytes),
    ],
)
def test_scalars_of_numpy_become_plain(scalar, kind):
    assert [type(key) for key in decode_keys(encode_keys([scalar]))] == [kind]
    assert [type(key) for key in decode_keys(encode_keys([(scalar,)]))[0]] == [kind]


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize("key", [[1], {1}, object(), Colour.RED, 1j, np.datetime64("2020-01-01")])
def test_other_keys_are_refused(key):
    with pytest.raises(TypeError, match="only str, int, float, bool, None, bytes and tuples"):
        encode_keys(["a", key])
    with pytest.raises(TypeError, match="only str, int, float, bool, None, bytes and tuples"):
        encode_keys([("a", key)])


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[1]", b'[["text", 1]]', b'[["enum", "a"]]', b'[["int", "x"]]', b"\xff", b"3"],
)
def test_other_bytes_are_refused(content):
    with pytest.raises(ValueError, match="not keys written by encode_keys"):
        decode_keys(np.frombuffer(content, dtype=np.uint8))


def test_an_archive_holds_them(tmp_path):
    path = tmp_path / "keys.safetensors"
    write_archive(path, "Example", {}, {"names": encode_keys(["a", 2]), "none": encode_keys([])})
    arrays = read_archive(path).arrays
    assert decode_keys(arrays["names"]) == ["a", 2] and decode_keys(arrays["none"]) == []


def test_copies_share_nothing_that_grows():
    names = ["a", (CATEGORY, "b", 1), ("t", 2)]
    for made, more in ((Ids(names), ["c"]), (Columns(names), [(CATEGORY, "b", 2), "d"])):
        copied, before = copy.deepcopy(made), repr(vars(made))
        made.add(more)
        assert repr(vars(made)) != before == repr(vars(copied)) and type(copied) is type(made)
        copied.remove(0)
        assert made.find(["a"]).tolist() == [0]
