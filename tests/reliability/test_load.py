"""The state of the recommender does not grow with the stream; a fast sample, and ten million ratings."""

import pytest

from driftwolfe.estimators.recommender_experts import PoolSettings
from reliability import load


@pytest.mark.slow  # tests/estimators/test_recommender_experts_tables.py has shorter streams
def test_the_state_stays_as_large_as_it_is():
    tenths = load.run(400_000, users=300, items=200)
    assert len(tenths) == 10
    # Three doublings: an expert each, on every row, and what is remembered comes and goes by halves.
    assert tenths[-1].megabytes < 1.2 * max(tenth.megabytes for tenth in tenths[3:6])
    assert tenths[-1].error < tenths[0].error


def test_experts_beyond_what_is_remembered_have_no_interactions():
    settings = PoolSettings("huber", "both", (0.3, 1.0), 4, 0.75, 131_072, 0)
    radii = {each.level: each.radius for each in settings.experts(1 << 29) if each.level >= 0}
    assert [level for level, radius in radii.items() if radius] == list(range(12, 19))


@pytest.mark.slow
def test_ten_million_ratings(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["load"])
    assert load.main() == 0
    assert "10,000,000" in capsys.readouterr().out
