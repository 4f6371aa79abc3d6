"""Hostile files: a sample of `python -m reliability.fuzz`, and the worst of them by name."""

import json
import pickle
import resource
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.estimators import MatrixCompleter, TraceNormClassifier
from driftwolfe.storage import VERSION, read_archive
from reliability import fuzz
from reliability.mutations import crafted
from reliability.specimens import SPECIMENS, Payload


def faults(outcomes):
    return [outcome for outcome in outcomes if outcome.verdict == "fault"]


@pytest.fixture
def little_memory():
    """No more than 1 GiB beyond what there is."""
    if sys.platform != "linux":
        pytest.skip("limits memory")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def loader(tmp_path, little_memory):
    """What a worker process has."""
    before = signal.signal(signal.SIGPROF, fuzz._too_long)
    yield fuzz.Loader(tmp_path)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_mutations(loader):
    for specimen in SPECIMENS:
        loader.check(specimen)
    outcomes = [
        fuzz.Outcome(specimen.name, number, *loader.outcome(specimen, number))
        for number, specimen in enumerate((SPECIMENS * 3)[:80])
    ]
    assert faults(outcomes) == []
    assert {outcome.specimen for outcome in outcomes} == {each.name for each in SPECIMENS}
    verdicts = [outcome.verdict for outcome in outcomes]
    assert verdicts.count("refused") > 40
    assert verdicts.count("sound") > 2  # or nothing is tested beyond the first check
    assert "| all | 80 |" in fuzz.table(outcomes)


@pytest.mark.slow
def test_ten_thousand_mutations():
    outcomes = fuzz.run(10_000)
    assert len(outcomes) == 10_000
    assert faults(outcomes) == []


def assert_refused(model, folder, change, why):
    """Refuse the file of a model in which something was changed; its checksum is right."""
    path = folder / "model.safetensors"
    model.save(path)
    archive = read_archive(path)
    change(archive.settings, archive.arrays)
    header = {"version": VERSION, "kind": archive.kind, "settings": archive.settings}
    path.write_bytes(crafted(json.dumps(header), archive.arrays))
    with pytest.raises(ValueError, match=why):
        dw.load(path)


def described(kind, arguments):
    """A set in a file."""
    return {"made": {"kind": kind, "arguments": {"dict": arguments}, "module": None}, "number": 0}


HUGE = 10**12
TOO_LARGE = {
    "L1Ball": {"n": HUGE},
    "L2Ball": {"n": {"tuple": [10**6, 10**6]}},
    "LinfBall": {"n": 1e12},
    "Simplex": {"n": HUGE},
    "KSparsePolytope": {"n": HUGE, "k": 2},
    "GroupLassoBall": {"n": HUGE, "groups": [0, 1]},
    "BirkhoffPolytope": {"n": 10**6},
    "Spectrahedron": {"n": 10**6},
    "SpanningTreePolytope": {"n_vertices": 10**6},
    "UniformMatroidPolytope": {"n": HUGE, "k": 2},
    "TraceNormBall": {"shape": {"tuple": [10**6, 10**6]}},
    "ProductDomain": {"domains": [described("L1Ball", {"n": 3})] * 20_000},
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_sets_larger_than_the_file_are_refused_before_they_are_made(kind, tmp_path, little_memory):
    held = described(kind, TOO_LARGE[kind])
    why = r"larger points than any in it|does not take|cannot join"
    learner = dw.POLA(dw.L1Ball(3))
    assert_refused(learner, tmp_path, lambda settings, _: settings.update(domain=held), why)


def test_factored_sets_of_absurd_size(tmp_path, little_memory):
    def change(settings, arrays):
        settings["domain"]["made"]["arguments"]["dict"]["shape"] = {"tuple": [HUGE, HUGE]}
        for name, array in arrays.items():
            if array.ndim == 2:  # empty factors of any height take no bytes
                arrays[name] = np.zeros((HUGE, 0))

    learner = dw.POLA(dw.TraceNormBall((5, 4), representation="factored"))
    assert_refused(learner, tmp_path, change, "larger points than any in it")


@pytest.mark.parametrize(
    "change",
    [
        lambda settings, _: settings.update(labels="<U1000000000"),
        lambda settings, _: settings["state"].update({"learner.classes": 10**9}),
        lambda settings, _: settings["state"].update({"learner.renewal": 0}),
        lambda _, arrays: arrays.update({"learner.losses": np.ones(10**5)}),
    ],
    ids=["labels", "classes", "renewal", "losses"],
)
def test_classifiers_of_absurd_size(change, tmp_path, little_memory):
    model = TraceNormClassifier().partial_fit(np.eye(2), ["a", "b"], classes=["a", "b"])
    why = r"whose learner.(points|losses) does not fit|do not fit together"
    assert_refused(model, tmp_path, change, why)


def test_pickles_are_not_opened(tmp_path):
    canary, path = tmp_path / "canary", tmp_path / "learner.safetensors"
    path.write_bytes(pickle.dumps(Payload(str(canary))))
    for load in (dw.load, MatrixCompleter.load, TraceNormClassifier.load):
        with pytest.raises(ValueError, match="not an archive of driftwolfe"):
            load(path)
    assert not canary.exists()
    pickle.loads(path.read_bytes())
    assert canary.exists()  # the payload works where it is let loose


@pytest.mark.parametrize(
    ("name", "value"), [("_x", 5.0), ("_x", np.nan), ("clocks", -1), ("blocks", 0), ("steps", -1.0)]
)
def test_states_that_no_learner_could_have_are_refused(name, value, tmp_path):
    def change(settings, arrays):
        place = f"_experts.{name}"
        arrays[place] = np.full_like(arrays[place], value)

    learner = dw.POLD(dw.L1Ball(3), horizon=9)
    assert_refused(learner, tmp_path, change, "this archive holds")
