"""Shared settings: reproducible property tests, one BLAS thread per test process, GPUs where found."""

import os

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from devices import NO_GPU, has_gpu
from reliability.children import same_copy

for profile, examples in {"quick": 15, "slow": 100}.items():
    settings.register_profile(profile, deadline=None, derandomize=True, max_examples=examples)

# Whatever a test starts imports the copy under test.
os.environ["PYTHONPATH"] = same_copy()["PYTHONPATH"]


def pytest_configure(config):
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "slow")


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
