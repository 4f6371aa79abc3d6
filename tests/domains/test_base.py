"""What sets say of themselves, for oracles and learners."""

import numpy as np
import pytest

import driftwolfe as dw

LARGE = dw.TraceNormBall((300, 200))
SETS = [
    (dw.L1Ball(3), "exact", "corrective", True),
    (dw.BirkhoffPolytope(3), "corrective", "corrective", False),
    (dw.ConvexHull(np.eye(3)), "corrective", "corrective", False),
    (dw.ProductDomain([dw.L1Ball(2), dw.Simplex(2)]), "exact", "halfspace", True),
    (dw.ProductDomain([dw.L1Ball(2), dw.BirkhoffPolytope(2)]), "halfspace", "halfspace", False),
    (dw.TraceNormBall((5, 4)), "exact", "corrective", True),
    (LARGE, "block", "corrective", True),
    (dw.Spectrahedron(400), "corrective", "corrective", True),
]


@pytest.mark.parametrize(("domain", "method", "lmo_method", "affordable"), SETS)
def test_sets_say_which_method_suits_them(domain, method, lmo_method, affordable):
    for each in (domain, dw.count_calls(domain)):
        assert each.default_method == method
        assert each.lmo_method == lmo_method
        assert each.affordable_projection == affordable
        assert each.rank_one_atoms == isinstance(domain, dw.TraceNormBall)


def test_only_trace_norm_balls_have_balls_of_submatrices():
    small = dw.count_calls(LARGE).restricted_to((4, 3))
    assert (small.shape, small.radius, small.factored) == ((4, 3), 1.0, False)
    assert dw.L1Ball((5, 4)).restricted_to((2, 2)) is None
