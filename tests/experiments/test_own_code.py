"""Sweeps of a user's own learners and streams: named as module:name, and run only when the sweep names them."""

import sys

import pytest

from driftwolfe.experiments import sweep
from driftwolfe.experiments.running import ProcessExecutor
from driftwolfe.experiments.trial import DataSet, Trial, is_own
from reliability.children import python

MODULE = '''
import numpy as np
import driftwolfe as dw
from driftwolfe.state import State


class Sleepy(dw.OGD):
    """Learns nothing in every nap-th round."""

    t: State[int]

    def __init__(self, domain, lipschitz=1.0, nap=2):
        super().__init__(domain, lipschitz=lipschitz)
        self.nap = nap

    def update(self, loss):
        return super().update(dw.losses.LinearLoss([0.0, 0.0]) if self.t % self.nap == 0 else loss)


class MyLoss(dw.losses.SquaredDistance):
    pass


def targets(seed, rounds):
    ball = dw.L2Ball(2)
    rng = np.random.default_rng(seed)
    points = rng.uniform(-0.5, 0.5, (rounds or 30, 2))
    return dw.streams.Stream([MyLoss(p) for p in points], "my targets", 4.0, None, ball)


def nothing(seed, rounds):
    return []


not_a_learner = dict
'''
SWEEP = """
title = "Mine"
seeds = 2
data = { name = "MODULE:targets", rounds = 40 }

[[methods]]
method = "MODULE:Sleepy"
label = "mine"
options = { nap = [2, 3] }

[[methods]]
method = "POLA"
"""


@pytest.fixture
def folder(tmp_path, request, monkeypatch):
    """A folder with a module of its own name and a sweep; the module is forgotten afterwards."""
    name = f"own_{abs(hash(request.node.name)) % 10**8}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("MODULE", name))
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path, name
    sys.modules.pop(name, None)


def test_a_sweep_of_own_learners_losses_and_streams(folder):
    place, _ = folder
    spec, store = sweep.read_spec(place / "sweep.toml"), sweep.Store(place / "found")
    store.add(spec.title, spec.trials())
    assert sweep.run_sweep(store, lambda: ProcessExecutor(1), trusted=spec.trials()) == 0
    check_results(store)


def check_results(store):
    assert [len(store.trials), len(store.results)] == [6, 6]
    assert {result.stream for result in store.results} == {"my targets"}
    titles = {result.trial.title for result in store.results}
    assert titles == {"mine, nap=2", "mine, nap=3", "POLA"}


@pytest.mark.slow
def test_the_command_of_such_a_sweep(folder):
    """By the command line, in processes of its own, from the folder of the sweep and from another one."""
    place, _ = folder
    command = "-m", "driftwolfe.cli", "sweep", place / "sweep.toml", "--out", place / "found"
    python(*command, "--jobs", 1, cwd=place.parent)
    check_results(sweep.Store(place / "found"))
    assert "mine, nap=2" in (place / "found" / "summary.md").read_text()


def test_a_list_that_came_from_elsewhere_starts_no_code(folder):
    place, name = folder
    spec = sweep.read_spec(place / "sweep.toml")
    store = sweep.Store(place / "found")
    store.add("Theirs", spec.trials())
    assert len(store.missing) == 6  # reading it imports nothing
    sys.modules.pop(name, None)
    with pytest.raises(ValueError, match="would run code that the sweep does not name"):
        sweep.run_sweep(store, lambda: ProcessExecutor(1))
    assert name not in sys.modules


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("MODULE:Sleepy", "MODULE:Lazy", "has no attribute 'Lazy'"),
        ("MODULE:Sleepy", "no_such_module_here:Lazy", "there is no module no_such_module_here"),
        ("MODULE:Sleepy", "MODULE:not_a_learner", "must derive from driftwolfe.Learner"),
        ("nap = [2, 3]", "naps = 2", "has no option 'naps'; did you mean 'nap'?"),
        ("MODULE:targets", "MODULE:aims", "has no attribute 'aims'"),
        ("MODULE:Sleepy", "MODULE:", "unknown method 'MODULE:'; there are AFLH, Ader"),
        ("MODULE:Sleepy", "../x:Y", "unknown method '../x:Y'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(folder, old, new, told):
    place, name = folder
    file = place / "wrong.toml"
    file.write_text(SWEEP.replace(old, new).replace("MODULE", name))
    with pytest.raises(ValueError) as refused:
        sweep.read_spec(file)
    assert told.replace("MODULE", name) in str(refused.value)
    assert str(file) in str(refused.value)


def test_names_are_no_code_and_functions_make_streams(folder):
    place, name = folder
    sys.path.insert(0, str(place))
    with pytest.raises(TypeError, match="must return a Stream with its domain, got"):
        DataSet(name=f"{name}:nothing", rounds=3).load(0)
    assert is_own("a.b:C")
    for text in ("POLA", "a:b:c", "a b:c", "a.:c", ":c", "a:", "a:b()", "a" * 300 + ":b", 3, None):
        assert not is_own(text)
    trial = Trial(method="os:system", data=DataSet(name="subprocess:run"))
    assert trial.runs_own_code and trial.name.startswith("system-seed0-")
