"""Text for terminals."""

from driftwolfe.terminal import table


def test_tables_line_up():
    assert table(["a", "b"], [["long", "1"], ["x", "22"]]) == ["a      b", "long   1", "x     22"]
