"""Shared settings: reproducible property tests, one BLAS thread per test process."""

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("driftwolfe", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("driftwolfe")


@pytest.fixture(scope="session", autouse=True)
def single_threaded_blas():
    with threadpool_limits(1):
        yield
