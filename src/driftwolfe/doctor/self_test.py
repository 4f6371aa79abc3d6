"""A game that must end within its theorem."""

from __future__ import annotations

import numpy as np

from driftwolfe.doctor.finding import Finding

ROUNDS, PLACES = 256, 20


def self_test() -> Finding:
    """Play POLA on an L1 ball after a target that jumps once; hold its regret to its bound."""
    name = "self-test"
    try:
        regret, bound, feasible = _played()
    except Exception as problem:  # whatever is broken here may raise anything
        return Finding(name, f"{type(problem).__name__}: {problem}", "broken", _REMEDY)
    told = f"POLA, {ROUNDS} rounds on an L1 ball: regret {regret:.1f}, bound {bound:.0f}"
    if not (feasible and regret <= bound):
        return Finding(name, f"{told}: this must not be", "broken", _REMEDY)
    return Finding(name, told)


_REMEDY = "pip install --force-reinstall driftwolfe"


def _played() -> tuple[float, float, bool]:
    """The regret, its bound, and whether every point played was in the set."""
    from driftwolfe.domains import L1Ball
    from driftwolfe.game import play
    from driftwolfe.learners import POLA
    from driftwolfe.losses import SquaredDistance
    from driftwolfe.regret import dynamic_regret, path_length

    ball, rng = L1Ball(PLACES), np.random.default_rng(0)
    targets = np.eye(PLACES)[np.arange(ROUNDS) * 2 // ROUNDS]
    losses = [SquaredDistance(target + 0.1 * rng.standard_normal(PLACES)) for target in targets]
    learner = POLA(ball)
    history = play(learner, losses, record_decisions=True, progress=False)
    regret = float(dynamic_regret(history, targets))
    inside = all(ball.contains(point) for point in history.decisions)
    return regret, learner.bound(path_length=path_length(list(targets))), inside
