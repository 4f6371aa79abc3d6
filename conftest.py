"""Collect without PyTorch where it is not installed; say at the end what was skipped and why."""

import gc

import pytest

from devices import HAS_TORCH
from skips import lines

#: Modules that import PyTorch; the search for doctests would import them too.
collect_ignore_glob = [] if HAS_TORCH else ["src/driftwolfe/points/torch_device.py"]


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Modules and tests stay to the end: the search for garbage need not look at them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter):
    """One line for each reason, with how to run those tests."""
    for line in lines(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
