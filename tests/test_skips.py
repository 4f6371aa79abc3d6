"""Tests that cannot run here are counted, with one line for each reason that says how to run them."""

import os
import re
import sys
from pathlib import Path

from reliability.children import python

ROOT = Path(__file__).parent.parent
SELECTED = (
    "tests/benchmarks/test_gpu.py",
    "tests/learners/test_stacks_on_devices.py",
    "tests/streams/test_datasets_twins.py::test_learners_fare_alike_on_movielens_and_its_twin",
    "src/driftwolfe/points/devices.py",
)


def test_without_pytorch_and_data_tests_are_skipped_with_what_to_do(tmp_path):
    (tmp_path / "bare.py").write_text("import sys\nsys.modules['torch'] = None\n")
    kept = {name: value for name, value in os.environ.items() if name != "DRIFTWOLFE_DATA"}
    kept["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *sys.path])
    run = python("-m", "pytest", "-p", "bare", "-n", 0, *SELECTED, env=kept, cwd=ROOT)
    told = [line for line in run.stdout.splitlines() if " skipped: " in line]
    counts = {line.partition(" skipped: ")[2]: int(line.split()[0]) for line in told}
    assert len(counts) == len(told) == 3
    torch, gpu, data = (
        next(reason for reason in counts if way in reason)
        for way in ("make test TORCH=1", "make test-gpu", "make test DRIFTWOLFE_DATA=")
    )
    assert counts[torch] > 100 and counts[gpu] > 100 and counts[data] == 1
    assert re.search(rf", {sum(counts.values())} skipped in ", run.stdout.splitlines()[-1])
