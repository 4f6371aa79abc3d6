"""What a limit on a ratio means, and how it is shown."""

import pytest

from benchmarks.ratio import Ratio, as_table, quantity


def test_a_floor_asks_how_many_times_better_ours_is():
    ratio = Ratio("row", "speed", ours=2.0, theirs=10.0, at_least=5)
    assert ratio.ratio == 5
    assert ratio.holds
    assert not Ratio("row", "speed", ours=2.0, theirs=9.9, at_least=5).holds


def test_a_ceiling_asks_how_much_worse_ours_is():
    ratio = Ratio("row", "loss", ours=10.3, theirs=10.0, at_most=1.02)
    assert ratio.ratio == pytest.approx(1.03)
    assert not ratio.holds
    assert Ratio("row", "loss", ours=10.1, theirs=10.0, at_most=1.02).holds


def test_without_a_limit_nothing_can_be_missed():
    assert Ratio("row", "shown", 1.0, 0.1).holds is None


def test_a_ratio_has_one_limit():
    with pytest.raises(ValueError, match="not both"):
        Ratio("row", "both", 1.0, 1.0, at_least=1, at_most=2)


def test_a_missed_limit_is_one_sentence():
    told = Ratio("row", "speed", ours=2.0, theirs=6.0, at_least=5).complaint
    assert told == "row: speed: 3 is below its floor of 5."


def test_the_table_shows_every_ratio_with_its_verdict():
    ratios = [
        Ratio("one", "fast", 1e-3, 1.0, at_least=100),
        Ratio("two", "slow", 1.0, 1.0, at_least=2),
        Ratio("two", "beside", 1.0, 1.5),
    ]
    lines = as_table(ratios).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split("|")[-2].strip() for line in lines[2:]] == ["ok", "MISSED", "shown"]


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [(2.5, "s", "2.5 s"), (0.0025, "s", "2.5 ms"), (8340, "s", "8,340 s"), (1.2, "GiB", "1.2 GiB")],
)
def test_quantities_have_units_of_their_size(value, unit, told):
    assert quantity(value, unit) == told


def test_the_short_variant_relaxes_limits_on_time_only():
    floor = Ratio("row", "speed", 1.0, 4.5, at_least=5.0)
    assert not floor.holds
    assert floor.relaxed(0.75).holds
    assert floor.relaxed(0.75).at_least == pytest.approx(3.75)
    ceiling = Ratio("row", "bytes", 3.5, 1.0, at_most=3.0)
    assert not ceiling.holds
    assert ceiling.relaxed(0.75).holds
    loss = Ratio("row", "loss", 1.03, 1.0, at_most=1.02, unit="loss")
    assert loss.relaxed(0.75) == loss
    assert Ratio("row", "shown", 1.0, 1.0).relaxed(0.75).limit is None
