"""Collect without PyTorch where it is not installed; say at the end what was skipped and why."""

from devices import HAS_TORCH
from skips import lines

#: Modules that import PyTorch; the search for doctests would import them too.
collect_ignore_glob = [] if HAS_TORCH else ["src/driftwolfe/points/torch_device.py"]


def pytest_terminal_summary(terminalreporter):
    """One line for each reason, with how to run those tests."""
    for line in lines(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(line)
