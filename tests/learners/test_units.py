"""Units are a matter of taste: rescaling losses and sets rescales decisions, from 1e-72 to 1e72 each."""

from itertools import product

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, SQUARING, UNITS, suits

#: Powers of two, near 1e-72 and 1e72: rescaling by them changes no digit.
FAR = 2.0**-240, 2.0**240

SETS = {
    "l2": lambda radius: dw.L2Ball(4, radius=radius),
    "l1": lambda radius: dw.L1Ball(4, radius=radius),
    "simplex": lambda radius: dw.Simplex(4, radius=radius),
    "own": lambda radius: dw.LMODomain(4, dw.L2Ball(4, radius=radius).lmo, radius=radius),
    "trace-norm": lambda radius: dw.TraceNormBall((2, 2), radius=radius),
    "factored": lambda radius: dw.TraceNormBall((12, 9), radius, representation="factored"),
}


#: For learners that square gradients.
NEAR = 2.0**-60, 2.0**60


def decisions(make, domain, unit, options, rounds=40):
    """What a learner decides and suffers, on linear losses of that unit."""
    learner = make(domain, horizon=rounds, **options)
    rng = np.random.default_rng(0)
    suffered, points = [], []
    for t in range(rounds):
        slope = rng.standard_normal(domain.shape) + (3.0 if t < rounds // 2 else -3.0)
        if getattr(domain, "factored", False):
            slope = dw.FactoredMatrix.from_entries(
                domain.shape, [t % 12, 3], [t % 9, 2], unit * slope[0, :2]
            )
        else:
            slope = unit * slope
        suffered.append(learner.update(dw.losses.LinearLoss(slope)))
        point = learner.decision
        points.append(point.toarray() if isinstance(point, dw.FactoredMatrix) else point)
    return np.array(suffered), np.array(points)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("make", "name"),
    [
        pytest.param(make, name, id=f"{make.__name__}-{name}")
        for make in LEARNER_CASES
        for name, unit_set in SETS.items()
        if suits(make, unit_set(1.0))
    ],
)
def test_rescaling_the_problem_rescales_the_answer(make, name):
    told = UNITS.get(make, {})
    options = {option: value for option, (value, _, _) in told.items()}
    suffered, points = decisions(make, SETS[name](1.0), 1.0, options)
    units = NEAR if make in SQUARING else FAR
    for radius, unit in product(units, units):  # where products and ratios are the most extreme
        fitting = {option: v * unit**a * radius**b for option, (v, a, b) in told.items()}
        with np.errstate(all="raise", under="ignore"):
            rescaled, moved = decisions(make, SETS[name](radius), unit, fitting)
        np.testing.assert_allclose(moved / radius, points, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(rescaled / unit / radius, suffered, rtol=1e-9, atol=1e-12)
