"""Text for terminals."""

from driftwolfe.terminal import printable, table


def test_tables_line_up():
    assert table(["a", "b"], [["long", "1"], ["x", "22"]]) == ["a      b", "long   1", "x     22"]
    numbers = table(["", "OGD", "POLA"], [["mean loss", "0.31", "0.12"]])
    assert numbers == ["            OGD  POLA", "mean loss  0.31  0.12"]


def test_control_characters_are_spelt_out():
    assert printable("\x1b[2Jred\n") == "\\x1b[2Jred\n"
