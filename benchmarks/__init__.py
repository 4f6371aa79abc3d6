"""Speed against peers, as ratios measured in one run; `python -m benchmarks --help`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
