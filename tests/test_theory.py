"""Every inequality of docs/theory at the worst case that could be computed."""

import runpy
from pathlib import Path

import pytest

COMPANION = Path(__file__).parent.parent / "docs" / "theory" / "companion"
FOUND = runpy.run_path(str(COMPANION), run_name="companion")


@pytest.mark.parametrize("check", FOUND["CHECKS"], ids=lambda check: check.__name__)
def test_an_inequality_of_the_theory_holds(check):
    found = check()
    assert found.ratio <= 1 + 1e-9, found


def test_names_are_one_each_and_a_false_inequality_is_found():
    assert len(set(FOUND["NAMES"])) == len(FOUND["CHECKS"]) > 40
    worst = runpy.run_path(str(COMPANION / "check.py"))["worst"]
    assert worst("one case too many", [(1.0, 2.0, "a"), (3.0, 2.0, "b")])[1:3] == (1.5, "b")
    assert worst("nothing allowed", [(1.0, 0.0, "a")]).ratio == float("inf")
    assert worst("not a number", [(float("nan"), 1.0, "a")]).ratio != 0.0
