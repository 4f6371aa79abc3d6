"""Threads change how long things take and nothing else."""

import os
import re
import threading
import time

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import driftwolfe as dw
from driftwolfe.ensemble import threads


@pytest.fixture(autouse=True)
def reset():
    yield
    dw.set_threads(None)


def blas_threads():
    """Of numpy's and scipy's; other packages of a test run bring more."""
    found = [entry for entry in threadpool_info() if entry["user_api"] == "blas"]
    return {e["num_threads"] for e in found if re.search(r"(num|sci)py\.libs", e["filepath"])}


def test_the_number_is_checked_and_defaults_to_that_of_blas():
    with threadpool_limits(1, user_api="blas"):
        assert threads.threads() == 1
        dw.set_threads(3)
        assert threads.threads() == 3
        dw.set_threads(None)
        assert threads.threads() == 1
    for bad in (0, -1, 1.5, "two"):
        with pytest.raises((ValueError, TypeError), match="number"):
            dw.set_threads(bad)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_results_come_in_order_and_blas_keeps_to_one_thread(number):
    dw.set_threads(number)
    with threadpool_limits(2, user_api="blas"):
        seen = threads.run([lambda i=i: (i, blas_threads()) for i in range(7)])
        assert seen == [(i, {1}) for i in range(7)]
        assert blas_threads() == {2}
    found = threads.run_from_both_ends([lambda i=i: i for i in range(5)], [3, 1, 2, 5, 4])
    assert found == [*range(5)]


def test_an_error_is_raised_when_all_have_ended():
    dw.set_threads(2)
    ended = []

    def slow():
        time.sleep(0.05)
        ended.append(True)

    def bad():
        raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        threads.run([bad, slow])
    assert ended == [True]


def test_jobs_run_in_several_threads():
    dw.set_threads(2)
    meeting = threading.Barrier(2, timeout=10)  # passes only if two are there at once
    assert len(threads.run([meeting.wait, meeting.wait])) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    dw.set_threads(2)
    assert threads.run([lambda: 1, lambda: 2]) == [1, 2]
    child = os.fork()
    if child == 0:
        right = threads.run([lambda: 3, lambda: 4]) == [3, 4]
        os._exit(0 if right else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
