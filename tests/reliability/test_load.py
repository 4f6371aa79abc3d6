"""The completer does not grow with the stream, nor with users; fast samples, and long runs."""

import pytest

from driftwolfe.estimators import MatrixCompleter, completer_experts
from driftwolfe.estimators.completer_tables import CompleterSettings
from reliability import growth, load


@pytest.mark.slow  # tests/estimators/test_completer_experts_tables.py has shorter streams
def test_the_state_stays_as_large_as_it_is():
    tenths = load.run(400_000, users=300, items=200)
    assert len(tenths) == 10
    # Three doublings: an expert each, on every row, and what is remembered comes and goes by halves.
    assert tenths[-1].megabytes < 1.2 * max(tenth.megabytes for tenth in tenths[3:6])
    assert tenths[-1].error < tenths[0].error


def test_experts_beyond_what_is_remembered_have_no_interactions():
    settings = CompleterSettings("huber", "both", (0.3, 1.0), 4, 0.75, 131_072, 0)
    radii = {each.level: each.radius for each in settings.experts(1 << 29) if each.level >= 0}
    assert [level for level, radius in radii.items() if radius] == list(range(12, 19))


@pytest.mark.slow
def test_ten_million_ratings(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["load"])
    assert load.main() == 0
    assert "10,000,000" in capsys.readouterr().out


@pytest.mark.parametrize("name", growth.STREAMS)
def test_users_who_leave_lose_their_rows(name, monkeypatch):
    monkeypatch.setattr(completer_experts, "MOST_ROWS", 500)
    monkeypatch.setattr(growth, "MatrixCompleter", lambda: MatrixCompleter(memory=2_000))
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
