"""`infeasible_projection(gap=)`: near the projection of y itself, however far y is; gauges by bisection."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.oracles.infeasible_projection import gauge_by_bisection
from driftwolfe.points import distance, norm

SETS = {
    "l2": dw.L2Ball(4),
    "l1": dw.L1Ball(6, radius=2.0),
    "simplex": dw.Simplex(5),
    "hull": dw.ConvexHull(np.random.default_rng(0).normal(size=(9, 3))),
    "trace-norm": dw.TraceNormBall((4, 5), radius=3.0),
    "factored": dw.TraceNormBall((12, 10), radius=6.0, representation="factored"),
}


def target(domain, far, seed):
    rng = np.random.default_rng(seed)
    return domain.check_point(
        rng.standard_normal(domain.shape) * far * domain.radius / np.prod(domain.shape) ** 0.5, "y"
    )


METHODS = ("auto", "paper", "halfspace", "corrective")
PAIRS = [(name, method) for name in SETS for method in METHODS]


@pytest.mark.parametrize(
    ("name", "method"), [*PAIRS, ("trace-norm", "block"), ("factored", "block")]
)
@pytest.mark.parametrize("far", [0.5, 3.0, 40.0])
def test_the_answer_is_near_the_projection_and_costs_what_is_said(name, method, far):
    domain = SETS[name]
    D = 2 * domain.radius
    for seed, share in enumerate((0.3, 0.1, 0.03)):
        y, delta = target(domain, far, seed), share * D
        found = dw.infeasible_projection(
            domain, domain.origin(), y, 0.0, method, gap=delta**2, rng=(seed,)
        )
        assert domain.contains(found.feasible, atol=1e-9)
        assert found.gap <= delta**2 and found.feasible is found.infeasible
        assert distance(found.feasible, domain.project(y)) <= delta * (1 + 1e-9)
        assert found.lmo_calls <= 6.75 / share**2


@pytest.mark.parametrize("method", ["halfspace", "corrective"])
@pytest.mark.parametrize("calls", [0, 1, 2, 4])
def test_where_calls_run_out_the_gap_says_how_far_it_may_be(method, calls):
    for domain in (SETS["simplex"], SETS["hull"], SETS["trace-norm"], SETS["l1"]):
        for far, seed in ((0.7, 0), (5.0, 1), (30.0, 2)):
            y = target(domain, far, seed)
            found = dw.infeasible_projection(
                domain, domain.origin(), y, 1.0, method, max_lmo_calls=calls, gap=1e-8
            )
            assert found.lmo_calls <= calls
            apart = distance(found.feasible, domain.project(y))
            assert apart**2 <= max(found.gap, 0.0) * (1 + 1e-9) + 1e-12


def test_products_of_sets_run_plain_frank_wolfe():
    domain = dw.ProductDomain([dw.L2Ball(2), SETS["factored"]])
    y = domain.check_point([np.array([5.0, 1.0]), 30.0 * SETS["factored"].lmo(np.eye(12, 10))], "y")
    found = dw.infeasible_projection(domain, domain.origin(), y, 0.0, "halfspace", gap=0.5)
    assert found.method == "halfspace" and found.gap <= 0.5
    assert distance(found.feasible, domain.project(y)) ** 2 <= 0.5


def test_a_gap_is_a_positive_number():
    for gap in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="gap"):
            dw.infeasible_projection(
                SETS["l1"], np.zeros(6), np.ones(6), 1.0, "corrective", gap=gap
            )


def test_gauge_by_bisection():
    rng = np.random.default_rng(0)
    for domain in (dw.L1Ball(5, 2.0), dw.LinfBall(4), dw.TraceNormBall((3, 4), 2.0), dw.Simplex(4)):
        for _ in range(5):
            y = domain.lmo(rng.standard_normal(domain.shape)) * 0.5
            y = y + domain.lmo(rng.standard_normal(domain.shape)) * 0.5
            y = domain.origin() + (y - domain.origin()) * rng.uniform(0.1, 5.0)
            assert gauge_by_bisection(domain, y, 1e-9) == pytest.approx(domain.gauge(y), rel=1e-6)
            # A coarse answer errs on the safe side: c + (y - c)/t is in the set, and no farther in
            # than the last interval for 1/t is wide.
            length, true = norm(y - domain.origin()), domain.gauge(y)
            for accuracy in (0.3, 0.01) if length > 0 else ():
                coarse = gauge_by_bisection(domain, y, accuracy)
                width = (domain.radius - domain.inner_radius) / length
                assert true * (1 - 1e-12) <= coarse
                assert 1 / coarse >= 1 / true - accuracy * width * (1 + 1e-9)
    assert gauge_by_bisection(dw.L1Ball(3), np.zeros(3), 1e-9) == 0.0
