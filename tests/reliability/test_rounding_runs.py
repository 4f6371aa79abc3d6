"""The command that runs tests under other rounding: it counts rightly, and survives what dies."""

import pytest

from reliability import rounding
from reliability.rounding import Outcome, Setting

TESTS = """
import os, pytest
def test_good(): assert os.environ["OF_THIS_RUN"] == "yes"
def test_bad(): assert os.environ["OF_THIS_RUN"] == "no"
@pytest.mark.parametrize("n", [1, 2])
def test_left_out(n): pytest.skip("not here")
@pytest.fixture
def broken(): raise RuntimeError
def test_error(broken): pass
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "test_some.py").write_text(text)
        return [str(tmp_path / "test_some.py")]

    return write


def test_what_pytest_found_is_counted(written):
    found = rounding.run(Setting("mine", {"OF_THIS_RUN": "yes"}), written(TESTS))
    assert (found.name, found.passed, found.failed, found.skipped) == ("mine", 1, 2, 2)
    assert [failure.split("::")[-1] for failure in found.failures] == ["test_bad", "test_error"]
    assert not found.good


@pytest.mark.slow
def test_tests_are_chosen_by_their_names(written):
    some = rounding.run(Setting("some", {"OF_THIS_RUN": "yes"}), written(TESTS), "good or left")
    assert (some.passed, some.failed, some.skipped, some.good) == (1, 0, 2, True)


def test_a_run_that_dies_has_failed(written, monkeypatch):
    dies = written("import os, signal\ndef test_it(): os.kill(os.getpid(), signal.SIGILL)\n")
    found = rounding.run(Setting("dies", {}), dies)
    assert (found.passed, found.failed, found.good) == (0, 1, False)
    assert "pytest ended with -4" in found.failures[0]
    monkeypatch.setattr(rounding, "PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    assert rounding.kernels("any") == []


def test_kernels_that_a_machine_does_not_have_are_told_apart(monkeypatch):
    here = {
        None: ["own", "own"],
        "Own": ["own", "own"],
        "Old": ["old", "old"],
        "Half": ["own", "half"],
    }
    monkeypatch.setattr(rounding, "kernels", lambda name=None: here.get(name, []))
    assert rounding.offered(["Own", "Old", "Half", "Crashes"]) == (["Old"], ["Half", "Crashes"])
    names = [setting.name for setting in rounding.settings(["Old"])]
    assert names == ["as it is", "kernels Old", "numba generic", "2 BLAS threads"]


@pytest.mark.parametrize("failed", [0, 1])
def test_the_command_says_what_it_ran_and_fails_with_the_tests(monkeypatch, capsys, failed):
    asked = []

    def run(setting, tests, chosen, jobs):
        asked.append(setting)
        wrong = failed if setting.name == "kernels B" else 0
        return Outcome(setting.name, 5, wrong, 1, 2.0, ["test_it"] * wrong)

    monkeypatch.setattr(rounding, "run", run)
    monkeypatch.setattr(rounding, "offered", lambda names: (["A", "B", "C"], ["D"]))
    monkeypatch.setattr(rounding, "kernels", lambda name=None: ["own"])
    assert rounding.main(["--quick"]) == failed
    assert [setting.name for setting in asked][:2] == ["kernels A", "kernels B"]
    assert asked[0].environment["OPENBLAS_CORETYPE"] == "A"
    said = capsys.readouterr().out
    assert "Also run: A, B." in said and "not run: C." in said and "here: D." in said
    assert ("kernels B: test_it" in said) == bool(failed)


def test_every_file_of_the_slice_is_there():
    for tests, _ in (rounding.ALL, rounding.FEW_TESTS):
        assert all((rounding.ROOT / name).exists() for name in tests)
