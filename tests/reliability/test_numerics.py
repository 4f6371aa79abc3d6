"""Weights stay what they should be over many rounds; a fast sample, and the whole million."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from reliability import numerics

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("make", [dw.POLD, dw.POLA], ids=lambda make: make.__name__)
def test_weights_are_those_of_extended_precision(make):
    found = numerics.run(make, 3000, period=100)
    assert found.largest_error < 1e-12
    assert found.most_experts <= found.allowed_experts <= 15


def test_a_wrong_weight_is_seen(monkeypatch):
    original = numerics.WideHedge.update
    monkeypatch.setattr(
        numerics.WideHedge, "update", lambda self, losses: original(self, np.multiply(losses, 1.01))
    )
    assert numerics.run(dw.POLD, 1000, period=100).largest_error > 1e-6


@pytest.mark.slow
def test_a_million_rounds(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["numerics"])
    assert numerics.main() == 0
    assert "1,000,000" in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory as Linux tells it")
def test_the_memory_of_a_process_is_not_that_of_its_parent():
    held = np.ones(50_000_000)  # 400 MB, of which its child would begin with the peak
    command = [sys.executable, "-c", "from reliability.numerics import megabytes as m; print(m())"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert 10.0 < float(done.stdout) < numerics.megabytes() - 0.5 * held.nbytes / 2**20
