"""What sets say of themselves, for oracles and learners; sets that count calls, or hold a cache."""

import copy
import inspect

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.domains import Domain
from driftwolfe.domains.base import DomainWrapper, require_feasible

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
        x, y = each.origin(), each.lmo(0.0 * each.origin()) * 3.0
        assert dw.infeasible_projection(each, x, y, 0.1, max_lmo_calls=1).method == method
        assert each.lmo_method == lmo_method
        assert each.affordable_projection == affordable
        assert each.rank_one_atoms == isinstance(domain, dw.TraceNormBall)


@pytest.fixture
def counted():
    return dw.count_calls(dw.Simplex(3, radius=2.0))


def test_each_call_counts_once(counted):
    y = np.array([1.0, 2.0, -1.0])
    counted.lmo(y)
    counted.lmo_with_error(y)
    counted.project(y)
    counted.gauge(y)
    counted.gauge_subgradient(y)
    counted.contains(y)
    with pytest.raises(ValueError, match="shape"):
        counted.lmo(np.zeros(2))  # and a refused one does not
    assert counted.calls == dw.OracleCalls(lmo=2, projection=1, gauge=2, membership=1)
    counted.calls.reset()
    assert counted.calls == dw.OracleCalls()


def test_all_that_domains_have_is_that_of_the_set(counted):
    inside = counted.domain
    assert counted.unwrapped is inside
    assert dw.count_calls(counted).unwrapped is inside
    assert counted.domain.scale == 2.0
    assert type(counted).radius.__doc__ == "`radius` of the set inside."
    assert (counted.shape, counted.radius) == (inside.shape, inside.radius)
    assert (counted.diameter, counted.inner_radius) == (inside.diameter, inside.inner_radius)
    assert np.array_equal(counted.center, inside.center)
    assert counted.can("project")
    assert not dw.count_calls(dw.BirkhoffPolytope(2)).can("project")
    assert not dw.count_calls(dw.ConvexHull(np.eye(2))).cheap_projection
    assert repr(counted) == f"count_calls({inside!r})"
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = counted.no_such_thing


def test_no_public_method_of_domains_is_forgotten():
    # These reach the set inside through the methods that the wrapper does override.
    through_others = {"lmo", "contains", "decompose", "separate", "arguments"}
    through_others |= {"project", "gauge", "gauge_subgradient"}
    public = {name for name, _ in inspect.getmembers(Domain) if not name.startswith("_")}
    assert public - through_others <= set(vars(DomainWrapper))


def test_copies_count_on_their_own(counted):
    twin = copy.deepcopy(counted)
    twin.lmo(np.zeros(3))
    assert (twin.calls.lmo, counted.calls.lmo) == (1, 0)


@pytest.mark.parametrize("domain", [dw.L2Ball(3, 5.0), dw.Simplex(3), dw.Box([0.0, 1], [4.0, 1])])
def test_points_of_files_may_be_outside_by_rounding(domain):
    vertex, center = domain.lmo(-np.ones(domain.shape)), domain.origin()
    require_feasible(domain, [center, vertex, vertex + 5e-7 * (vertex - center)])
    for wrong in (vertex + 1e-5 * (vertex - center), np.zeros((2, 2)), np.full(3, np.nan)):
        with pytest.raises(ValueError, match="holds points that are not in the set"):
            require_feasible(domain, [vertex, wrong])


def test_only_sets_can_be_counted():
    with pytest.raises(TypeError, match="domain must be a Domain, got list"):
        dw.count_calls([1, 2])


def test_a_cached_set_is_the_set_inside_with_a_size():
    simplex = dw.Simplex(3)
    cached = dw.CachedDomain(simplex, 7)
    assert (simplex.cached_vertices, cached.cached_vertices) == (None, 7)
    assert (cached.domain, cached.unwrapped) == (simplex, simplex)
    assert dw.count_calls(cached).cached_vertices == 7
    assert dw.CachedDomain(cached, 0).cached_vertices == 0
    assert repr(cached) == f"CachedDomain({simplex!r}, size=7)"
    assert cached.arguments() == {"domain": simplex, "size": 7}
    with pytest.raises(ValueError, match="size must be a whole number >= 0"):
        dw.CachedDomain(simplex, -1)
    with pytest.raises(TypeError, match="domain must be a Domain, got int"):
        dw.CachedDomain(3, 7)


def test_a_product_is_cached_as_a_whole():
    parts = [dw.Simplex(3), dw.L2Ball(2)]
    with pytest.raises(ValueError, match=r"domains\[1\] is a CachedDomain"):
        dw.ProductDomain([parts[0], dw.CachedDomain(parts[1], 3)])
    learner = dw.POLA(dw.CachedDomain(dw.ProductDomain(parts), 3))
    learner.update(dw.losses.FunctionLoss(lambda x: 0.0, lambda x: x * 0.0))
    assert learner._experts.atoms is not None


def test_one_projection_on_a_cached_set_has_a_cache_of_its_own():
    rng = np.random.default_rng(0)
    polytope, calls = dw.SpanningTreePolytope(6), {}
    y = 3.0 * rng.standard_normal(polytope.shape)
    for size in (0, 50):
        domain = dw.CachedDomain(polytope, size)
        found = dw.infeasible_projection(domain, domain.origin(), y, 1e-3, "halfspace")
        assert found.converged and polytope.contains(found.feasible)
        calls[size] = found.lmo_calls
    assert calls[50] < calls[0]
