"""Weights over many rounds, and memory over many ratings: a fast sample, and the whole million."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.estimators import completer_experts, completer_tables
from reliability import growth, load, numerics

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


@pytest.mark.slow  # tests/estimators/test_completer_tables.py has shorter streams
def test_the_state_stays_as_large_as_it_is():
    tenths = load.run(400_000, users=300, items=200)
    assert len(tenths) == 10
    # Three doublings: an expert each, on every row, and what is remembered comes and goes by halves.
    assert tenths[-1].megabytes < 1.2 * max(tenth.megabytes for tenth in tenths[3:6])
    assert tenths[-1].error < tenths[0].error


def test_experts_beyond_what_is_remembered_have_no_interactions():
    experts = completer_tables.experts_at(1 << 29)
    radii = {each.level: each.radius for each in experts if each.level >= 0}
    assert [level for level, radius in radii.items() if radius] == list(range(12, 19))


@pytest.mark.slow
def test_ten_million_ratings(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["load"])
    assert load.main() == 0
    assert "10,000,000" in capsys.readouterr().out


@pytest.mark.parametrize("name", growth.STREAMS)
def test_users_who_leave_lose_their_rows(name, monkeypatch):
    monkeypatch.setattr(completer_experts, "MOST_ROWS", 500)
    monkeypatch.setattr(completer_tables, "MEMORY", 2_000)
    tenths, size = growth.run(name, 0.02)
    users = int(0.02 * growth.STREAMS[name][1])
    assert len(tenths) == 10 and 0.95 * users <= tenths[-1].users <= users
    # At most 500, or as many as rated lately, and those who came since the last fold.
    assert all(tenth.rows <= 2_000 for tenth in tenths)
    assert tenths[-1].error < 1.0
    # 64 bytes, an id and a pair for each user; the rest is for rows, at most 1 kB each.
    assert 1e6 * size < 100 * users + 8 * 0.02 * growth.STREAMS[name][0] + 2_000 * 2_000 + 3e6


@pytest.mark.slow
def test_a_million_users(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["growth"])
    assert growth.main() == 0
    assert "1,000,000" in capsys.readouterr().out
