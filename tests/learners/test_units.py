"""Units are a matter of taste: rescaling losses and sets rescales decisions, from 1e-150 to 1e150."""

from functools import cache
from itertools import product

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES

#: Powers of two, near 1e-150 and 1e150: rescaling by them changes no digit.
UNITS = 2.0**-498, 1.0, 2.0**498

SETS = {
    "l2": lambda radius: dw.L2Ball(4, radius=radius),
    "l1": lambda radius: dw.L1Ball(4, radius=radius),
    "simplex": lambda radius: dw.Simplex(4, radius=radius),
    "own": lambda radius: dw.LMODomain(4, dw.L2Ball(4, radius=radius).lmo, radius=radius),
    "trace-norm": lambda radius: dw.TraceNormBall((2, 2), radius=radius),
    "factored": lambda radius: dw.TraceNormBall((12, 9), radius, representation="factored"),
}


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


@cache
def in_plain_units(make, name, options):
    return decisions(make, SETS[name](1.0), 1.0, dict(options))


@pytest.mark.parametrize(
    ("radius", "loss_unit"), [pair for pair in product(UNITS, UNITS) if pair != (1.0, 1.0)]
)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("make", LEARNER_CASES, ids=lambda make: make.__name__)
def test_rescaling_the_problem_rescales_the_answer(make, name, radius, loss_unit):
    scaled = SETS[name](radius)
    options, fitting = {}, {}
    if make is dw.LineSearchOFW:  # a curvature is a slope over a length
        options, fitting = {"smoothness": 2.0}, {"smoothness": 2.0 * loss_unit / radius}
    try:
        suffered, points = in_plain_units(make, name, tuple(options.items()))
    except ValueError as error:
        assert "needs" in str(error) or "works on dense" in str(error)
        pytest.skip("not for this set")
    with np.errstate(all="raise", under="ignore"):
        rescaled, moved = decisions(make, scaled, loss_unit, fitting)
    np.testing.assert_allclose(moved / radius, points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rescaled / loss_unit / radius, suffered, rtol=1e-9, atol=1e-12)
