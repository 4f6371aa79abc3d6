"""Text for terminals."""

from driftwolfe.terminal import printable, table


def test_tables_line_up():
    assert table(["a", "b"], [["long", "1"], ["x", "22"]]) == ["a      b", "long   1", "x     22"]


def test_a_table_that_is_too_wide_loses_letters_of_its_names():
    wide = [["a name of many letters", "1.00 ± 0.01"], ["short", "2"]]
    assert table(["method", "loss"], wide, 31) == [
        "method                     loss",
        "a name...y letters  1.00 ± 0.01",
        "short                         2",
    ]
    assert table(["method", "loss"], wide, 36) == table(["method", "loss"], wide)
    numbers = table(["", "OGD", "POLA"], [["mean loss", "0.31", "0.12"]])
    assert numbers == ["            OGD  POLA", "mean loss  0.31  0.12"]


def test_control_characters_are_spelt_out():
    assert printable("\x1b[2Jred\n") == "\\x1b[2Jred\n"
