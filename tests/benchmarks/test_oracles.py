"""The table of projections."""

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks import oracles


@pytest.mark.slow
def test_oracles_prints_a_row_for_every_method_that_applies():
    table = oracles.as_markdown(list(oracles.oracle_table(repeats=1)))
    for text in ("L1 ball", "Birkhoff", "spanning trees", "flows", "trace norm"):
        assert text in table
    for method in ("paper", "halfspace", "corrective", "block", "exact"):
        assert f"`{method}`" in table
    rows = table.strip().splitlines()
    assert len(rows) == 2 + 18
    assert "cut off" not in table


def test_the_cheap_methods_are_cheap_and_the_exact_one_is_exact(monkeypatch):
    monkeypatch.setattr(oracles, "problems", _small_problems)
    rows = {row.method: row for row in oracles.oracle_table(repeats=1)}
    assert rows["exact"].error < 1e-12
    assert rows["halfspace"].lmo_calls <= rows["paper"].lmo_calls


def _small_problems():
    ball = dw.L1Ball(50)
    yield "small", ball, ball.origin(), np.linspace(-1, 1, 50)
