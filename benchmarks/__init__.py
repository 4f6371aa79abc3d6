"""Speed against peers, as ratios measured in one run; `python -m benchmarks --help`."""

import os
from pathlib import Path

# Before numpy is loaded: experts run in parallel threads, and a BLAS that also threads fights them.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

ROOT = Path(__file__).resolve().parent.parent
