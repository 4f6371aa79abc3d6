"""PyNOL beside ours: the streams are what they claim, ours play them, and its absence is said."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks import pynol

GAMES = list(pynol.streams(60, seed=0))


@pytest.mark.parametrize("game", GAMES, ids=lambda game: game.name)
def test_streams_keep_their_constants(game):
    for loss, u in zip(game.losses, game.comparators, strict=True):
        assert game.domain.contains(u, atol=1e-9)
        for x in (u, game.domain.origin()):
            slope = game.domain.tangent(loss.gradient(x))
            assert np.linalg.norm(slope) <= game.lipschitz * (1 + 1e-9)


@pytest.mark.parametrize("name", pynol.PAIRS)
def test_ours_play_every_pair(name):
    for game in (GAMES[0], GAMES[-1]):
        found = pynol.measured(name, game, "ours")
        assert np.isfinite(found.regret)
        assert found.micros > 0.0


@pytest.mark.skipif(find_spec("pynol") is not None, reason="is installed here")
def test_without_pynol_the_command_says_what_to_install():
    command = [sys.executable, "-m", "benchmarks.pynol"]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "pip install pynol-xzp" in told.stdout


@pytest.mark.skipif(
    find_spec("pynol") is None or find_spec("autograd") is None,
    reason="needs PyNOL: pip install pynol-xzp autograd multiprocess",
)
@pytest.mark.filterwarnings("ignore")
def test_theirs_play_every_pair():
    for name in pynol.PAIRS:
        assert np.isfinite(pynol.measured(name, GAMES[0], "theirs").regret)
