"""A constant added to all losses of a flat set changes nothing in the game, and nothing in what a learner plays."""

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, UNITS, VALUES_ONLY, suits
from driftwolfe.losses import LinearLoss

#: Sets that lie in a hyperplane, or in several, and a normal of it.
FLAT = {
    "simplex": (dw.Simplex(5), np.ones(5)),
    "matchings": (dw.BirkhoffPolytope(3), np.outer(np.arange(3.0), np.ones(3))),
    "bases": (dw.UniformMatroidPolytope(5, 2), np.ones(5)),
    "paths": (dw.FlowPolytope([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0, 3), None),
    "program": (dw.LinearProgram(A_eq=np.ones((1, 4)), b_eq=[2.0], bounds=(0, 1)), np.ones(4)),
    "box": (dw.Box([-1.0, 0.5, 0.0], [1.0, 0.5, 2.0]), np.array([0.0, 1.0, 0.0])),
}
ROUNDS = 40


def decisions(make, domain, constant):
    """What a learner plays against slopes that drift, with a normal of the set added to each."""
    told = {option: value for option, (value, _, _) in UNITS.get(make, {}).items()}
    learner, rng, points = make(domain, horizon=ROUNDS, **told), np.random.default_rng(0), []
    for t in range(ROUNDS):
        slope = rng.standard_normal(domain.shape)
        slope.flat[0] += 2.0 if t < ROUNDS // 2 else -2.0
        learner.update(LinearLoss(slope + constant))
        points.append(learner.decision)
    return np.array(points)


def normal(name):
    """A direction in which all points of the set are alike."""
    domain, given = FLAT[name]
    if given is None:
        rough = np.random.default_rng(1).standard_normal(domain.shape)
        given = rough - domain.tangent(rough)
    assert np.abs(domain.tangent(given)).max() < 1e-12 < np.abs(given).max()
    return given


@pytest.mark.in_turn("make", "name")
@pytest.mark.parametrize(
    ("make", "name"),
    [
        pytest.param(make, name, id=f"{make.__name__}-{name}")
        for make in LEARNER_CASES
        for name, (domain, _) in FLAT.items()
        if suits(make, domain) and make not in VALUES_ONLY
    ],
)
def test_a_constant_added_to_all_losses_changes_no_decision(make, name):
    """Rounding is 1e-16 of 50, which a weight or a step may magnify; a learner that it moved would move far."""
    domain = FLAT[name][0]
    plain, shifted = (decisions(make, domain, size * normal(name)) for size in (0.0, 50.0))
    np.testing.assert_allclose(shifted, plain, rtol=0, atol=1e-6 * domain.radius)
