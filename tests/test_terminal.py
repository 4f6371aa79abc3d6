"""Text for terminals."""

import io
import math

import pytest

from driftwolfe.terminal import Spread, Terminal, number, spread_text, table


@pytest.mark.parametrize(
    ("mean", "deviation", "told"),
    [
        (6.754, 1.1e-15, "6.754"),
        (-6.754, 6.7e-6, "-6.754"),
        (6.754, 0.0000071, "6.7540000 ± 0.0000071"),
        (0.0, 1.1e-15, "0 ± 1.1e-15"),
        (2e-9, 1.5e-9, "2e-09 ± 1.5e-09"),
        (0.0, 0.0, "0"),
        (2.0, math.nan, "2"),
        (math.inf, math.nan, "inf"),
        (2.0, math.inf, "2"),
        (12345.6, 0.5, "12,345.60 ± 0.50"),
    ],
)
def test_a_mean_and_its_deviation(mean, deviation, told):
    assert spread_text(Spread(mean, deviation)) == told


@pytest.mark.parametrize(
    ("encoding", "told"),
    [("utf-8", "1 ± 2 ä"), ("latin-1", "1 +- 2 ä"), ("ascii", "1 +- 2 \\xe4")],
)
def test_what_is_said_fits_the_encoding(encoding, told):
    stream = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    Terminal.of(stream).say("1 ± 2 ä\x07")
    assert stream.buffer.getvalue().decode(encoding) == told + "\\x07\n"


def test_tables_line_up():
    assert table(["a", "b"], [["long", "1"], ["x", "22"]]) == ["a      b", "long   1", "x     22"]
    assert number(1.234e-17) == "1.234e-17" and number(-2e-7) == "-2e-07"
    assert number(0.0000123456) == "0.00001235"
    numbers = table(["", "OGD", "POLA"], [["mean loss", "0.31", "0.12"]])
    assert numbers == ["            OGD  POLA", "mean loss  0.31  0.12"]
