"""Shared settings: reproducible property tests, one BLAS thread per test process, GPUs where found."""

import hashlib
import importlib
import os
from pathlib import Path

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

import driftwolfe
from devices import NO_GPU, has_gpu, single_threaded_torch
from driftwolfe.points.devices import device_named
from reliability.children import same_copy

for profile, examples in {"quick": 10, "slow": 100}.items():
    settings.register_profile(profile, deadline=None, derandomize=True, max_examples=examples)

# Whatever a test starts imports the copy under test.
os.environ["PYTHONPATH"] = same_copy()["PYTHONPATH"]


def pytest_configure(config):
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "slow")
    if hasattr(config, "workerinput"):
        compile_in_turns(config.workerinput["workerid"], config.workerinput["workercount"])


def compile_in_turns(worker, workers):
    """Each worker compiles a part of the loops first, then finds most of the others in the cache."""
    folder = Path(str(driftwolfe.__file__)).parent
    files = (path.relative_to(folder.parent) for path in folder.rglob("*_kernels.py"))
    names = sorted(".".join(path.with_suffix("").parts) for path in files)
    own = names[int(worker.removeprefix("gw")) :: workers]
    for name in [*own, *reversed(names)]:
        for loop in vars(importlib.import_module(name)).values():
            if hasattr(loop, "ready"):
                loop.ready()


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(items):
    """Of the cases of a test marked `in_turn`, keep a few quick in which each value occurs."""
    seen = set()
    for item in sorted(items, key=lambda item: hashlib.sha256(item.nodeid.encode()).digest()):
        turns = item.get_closest_marker("in_turn")
        if turns is None or any(map(item.get_closest_marker, ("slow", "gpu"))):
            continue
        given = item.callspec.params
        parts = [part.split() for part in turns.args] or [[name] for name in given]
        values = {
            (item.path, item.originalname, *(f"{n}={given[n]!r}" for n in part)) for part in parts
        }
        if values <= seen:
            item.add_marker(pytest.mark.slow)
        seen |= values


def pytest_generate_tests(metafunc):
    """Run tests of a `place` wherever their module says that it RUNS_ON."""
    if "place" in metafunc.fixturenames and hasattr(metafunc.module, "RUNS_ON"):
        metafunc.parametrize("place", metafunc.module.RUNS_ON, indirect=True, scope="module")


@pytest.fixture(scope="module")
def place(request):
    """The name of a device."""
    if request.param != "cpu":
        single_threaded_torch()
    return request.param


@pytest.fixture
def device(place):
    return device_named(place)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    # Doctests are in src; to look for them here takes seconds.
    return [each for each in (yield) if type(each).__name__ != "DoctestModule"]


@pytest.fixture(scope="session", autouse=True)
def single_threaded_blas():
    # `python -m reliability.rounding` asks for more, to see sums split in another way.
    with threadpool_limits(int(os.environ.get("DRIFTWOLFE_BLAS_THREADS", "1"))):
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks():
    # No power fails here; tests/reliability/test_disks.py puts its own functions in this place.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not has_gpu():
        pytest.skip(NO_GPU)
