"""What every set promises, checked for every public set."""

import contextlib
import inspect

import numpy as np
import pytest

import driftwolfe.domains
from contracts.domain_cases import CASES, DOMAIN_CASES, made
from devices import HAS_TORCH
from driftwolfe.domains import Domain, ProductDomain
from driftwolfe.points import FactoredMatrix, distance, inner, norm
from driftwolfe.points.devices import device_named, to_host
from driftwolfe.points.ops import ProductPoint

PUBLIC_SETS = [
    member
    for member in (getattr(driftwolfe.domains, name) for name in driftwolfe.domains.__all__)
    if inspect.isclass(member) and issubclass(member, Domain) and not inspect.isabstract(member)
]


@pytest.fixture(params=[pytest.param(case.values, id=case.id) for case in CASES])
def domain(request):
    return made(*request.param)


def only_where(applies, one_of_a_kind=False):
    """The cases to which a test applies, in place of all; if one of a kind is enough, the others are slow."""
    chosen, kinds = [], set()
    for case in CASES:
        if applies(made(*case.values)):
            slow = one_of_a_kind and case.values[0] in kinds
            marks = [pytest.mark.slow] * slow
            chosen.append(pytest.param(case.values, id=case.id, marks=marks))
            kinds.add(case.values[0])
    assert chosen, "no set is left for this test"
    return pytest.mark.parametrize("domain", chosen, indirect=True)


one_of_a_kind = only_where(lambda domain: True, one_of_a_kind=True)


@pytest.fixture
def rng():
    return np.random.default_rng(23)


#: Sets with vertices that are not the farthest in their own direction from the centre.
FLAT = (
    driftwolfe.domains.Box,
    driftwolfe.domains.ConvexHull,
    driftwolfe.domains.Ellipsoid,
    driftwolfe.domains.FlowPolytope,
    driftwolfe.domains.LMODomain,
    driftwolfe.domains.LinearProgram,
    driftwolfe.domains.MatchingPolytope,
    driftwolfe.domains.PartitionMatroidPolytope,
    driftwolfe.domains.SpanningTreePolytope,
    driftwolfe.domains.TransportPolytope,
    driftwolfe.domains.UniformMatroidPolytope,
    ProductDomain,
)


def arrays_of(domain):
    """The arrays that a set was made from, copied."""
    try:
        given = domain.arguments()
    except NotImplementedError:  # of functions
        return {}
    return {name: each.copy() for name, each in given.items() if isinstance(each, np.ndarray)}


@only_where(arrays_of)
def test_what_a_set_was_made_from_may_change_afterwards(domain, rng):
    given = arrays_of(domain)
    direction = rng.standard_normal(domain.shape)
    same = type(domain)(**domain.arguments() | given)
    for array in given.values():
        array += 1  # in place
    np.testing.assert_array_equal(same.lmo(direction), domain.lmo(direction))
    assert all((getattr(same, name, array - 1) != array).any() for name, array in given.items())


# -- points of any kind -------------------------------------------------------------------------


def random_like(point, rng, scale=1.0):
    """A random point of the same kind and shape."""
    if isinstance(point, ProductPoint):
        return ProductPoint(random_like(part, rng, scale) for part in point.parts)
    if isinstance(point, FactoredMatrix):
        left, right = (rng.normal(size=(side, 2)) for side in point.shape)
        places = (rng.integers(0, side, 40) for side in point.shape)
        entries = FactoredMatrix.from_entries(point.shape, *places, scale * rng.normal(size=40))
        return entries + FactoredMatrix(left, np.full(2, scale), right)
    return scale * rng.normal(size=point.shape)


def arrays(point):
    """The dense content of a point, in a list that does not alias it."""
    if isinstance(point, ProductPoint):
        return [array for part in point.parts for array in arrays(part)]
    return [to_host(point.toarray() if isinstance(point, FactoredMatrix) else np.array(point))]


def same(a, b):
    return all(np.array_equal(one, other) for one, other in zip(arrays(a), arrays(b), strict=True))


def spoil(point):
    """Overwrite what the holder of a point can overwrite."""
    if isinstance(point, ProductPoint):
        for part in point.parts:
            spoil(part)
    elif isinstance(point, np.ndarray):
        point[...] = 1e3


def directions(domain, rng, count=6):
    return [random_like(domain.origin(), rng) for _ in range(count)]


def feasible_points(domain, rng, count=12):
    """Vertices in random directions, and mixtures of them."""
    vertices = [domain.lmo(direction) for direction in directions(domain, rng, count)]
    mixtures = []
    for _ in range(count):
        weights = rng.dirichlet(np.full(count, 0.5))
        mixture = weights[0] * vertices[0]
        for weight, vertex in zip(weights[1:], vertices[1:], strict=True):
            mixture = mixture + weight * vertex
        mixtures.append(mixture)
    return vertices + mixtures


def ill_formed(domain):
    """Inputs that no method may accept."""
    if isinstance(domain.unwrapped, ProductDomain):
        good = domain.origin().parts
        for part in ill_formed(domain.unwrapped.domains[0]):
            yield ProductPoint([part, *good[1:]])
        yield from (ProductPoint(good[:-1]), None, 1.0, "text", [], object())
        return
    yield np.full(domain.shape, np.nan)
    infinite = np.zeros(domain.shape)
    infinite.flat[-1] = np.inf
    yield infinite
    yield np.zeros((*domain.shape, 1))
    yield np.zeros(domain.shape[0] + 1)
    for strange in ("a", 1j, None, np.datetime64("2024-01-01")):
        yield np.full(domain.shape, strange)
    yield from (None, 1.0, {}, [], object(), [[1.0], [1.0, 2.0]], np.zeros(0))


def offered(domain):
    extras = [name for name in ("project", "gauge", "gauge_subgradient") if domain.can(name)]
    return ["lmo", "contains", *extras]


# -- the contract -------------------------------------------------------------------------------


#: Sets without an LMO, which have tests of their own: tests/domains/test_separation.py.
NO_LMO = {driftwolfe.domains.SeparationDomain, driftwolfe.domains.MembershipDomain}


def test_every_public_set_has_cases():
    assert set(PUBLIC_SETS) - NO_LMO == set(DOMAIN_CASES)


@one_of_a_kind
def test_lmo_returns_a_minimiser_inside_the_set(domain, rng):
    others = feasible_points(domain, rng)
    for direction in directions(domain, rng):
        vertex, error = domain.lmo_with_error(direction)
        assert domain.contains(vertex)
        assert 0 <= error <= 1e-6 * domain.radius * norm(direction)
        least = min(inner(direction, other) for other in others)
        rounding = 1e-10 * (domain.radius + norm(domain.origin())) * norm(direction)
        assert inner(direction, vertex) <= least + error + rounding


def test_lmo_of_zero_is_any_point_of_the_set(domain):
    assert domain.contains(domain.lmo(0.0 * domain.origin()))


def test_lmo_is_deterministic_and_hands_out_nothing_of_its_own(domain, rng):
    for direction in directions(domain, rng):
        answer = domain.lmo(direction)
        kept = answer.copy()
        spoil(answer)
        assert same(domain.lmo(direction), kept)
        rounding = 1e-6 * (domain.radius + norm(domain.origin())) * norm(direction)
        for scale in (1e-200, 1e200):  # the scale of a direction plays no part
            value = inner(direction, domain.lmo(scale * direction))
            assert value == pytest.approx(inner(direction, kept), rel=0, abs=rounding)


def test_origin_is_feasible_fresh_and_the_center(domain):
    origin = domain.origin()
    assert domain.contains(origin)
    if domain.center is None:
        assert norm(origin) == 0
    else:
        assert same(origin, domain.center)
    kept = origin.copy()
    spoil(origin)
    if domain.center is not None:
        with contextlib.suppress(ValueError):  # read-only
            spoil(domain.center)
    assert same(domain.origin(), kept)


@one_of_a_kind
def test_radius_and_diameter_hold_all_points(domain, rng):
    points = feasible_points(domain, rng)
    origin = domain.origin()
    assert 0 < domain.diameter <= 2 * domain.radius
    assert 0 <= domain.inner_radius <= domain.radius * (1 + 1e-12)
    for point in points:
        assert distance(point, origin) <= domain.radius * (1 + 1e-9)
        for other in points:
            assert distance(point, other) <= domain.diameter * (1 + 1e-9)


@one_of_a_kind
def test_contains_accepts_mixtures_and_refuses_what_the_oracle_separates(domain, rng):
    for point in feasible_points(domain, rng, count=6):
        assert domain.contains(point)
    for direction in directions(domain, rng):
        vertex = domain.lmo(direction)
        outside = vertex + 1e-3 * (vertex - domain.origin())
        depth = inner(direction, domain.origin()) - inner(direction, vertex)
        if 1e-3 * depth > 1e-6 * domain.radius * norm(direction):
            assert not domain.contains(outside)


@only_where(lambda domain: not isinstance(domain.origin(), ProductPoint), one_of_a_kind=True)
def test_members_are_means_of_few_vertices(domain, rng):
    for point in [*feasible_points(domain, rng, count=2), domain.origin()]:
        kept = point.copy()
        vertices, weights = domain.decompose(point)
        assert same(point, kept)
        assert len(vertices) == len(weights) <= domain.dimension + 1
        assert (weights > 0).all() and weights.sum() == pytest.approx(1.0, abs=1e-12)
        mean = 0.0 * point
        for weight, vertex in zip(weights, vertices, strict=True):
            assert domain.contains(vertex, atol=1e-9)
            if isinstance(domain.unwrapped, driftwolfe.domains.Ellipsoid):
                assert domain.gauge(vertex) >= 1.0 - 1e-9  # all of its boundary is vertices
            # As far from the centre as one can go in its direction: no mean of others.
            outward = vertex - domain.origin()
            if type(domain.unwrapped) not in FLAT:
                farthest = domain.lmo(-1.0 * outward) - domain.origin()
                reached, most = inner(outward, outward), inner(outward, farthest)
                assert reached >= most - 1e-8 * domain.radius**2
            mean = mean + weight * vertex
        assert distance(mean, point) <= 1e-7 * domain.radius


@one_of_a_kind
def test_points_outside_have_no_decomposition(domain, rng):
    if isinstance(domain.origin(), ProductPoint):
        with pytest.raises(NotImplementedError, match="give arrays"):
            domain.decompose(domain.origin())
        return
    for direction in directions(domain, rng, count=3):
        vertex = domain.lmo(direction)
        outside = vertex + 1e-3 * (vertex - domain.origin())
        with pytest.raises(ValueError, match="must be a point of the set"):
            domain.decompose(outside)
        with pytest.raises(ValueError, match="must be a point of the set"):
            domain.decompose(1e3 * outside + 1.0 * direction)


@one_of_a_kind
def test_dimension_is_that_of_the_vertices(domain, rng):
    """The rank of the differences of many vertices; none is larger, and most small sets reach it."""
    vertices = [domain.lmo(direction) for direction in directions(domain, rng, 80)]
    rows = [np.concatenate([each.ravel() for each in arrays(v - vertices[0])]) for v in vertices]
    found = np.linalg.matrix_rank(np.array(rows), tol=1e-7 * domain.radius)
    assert found <= domain.dimension
    if domain.dimension <= 12:
        assert found == domain.dimension


@only_where(lambda domain: domain.can("separate"))
def test_half_spaces_separate_points_from_the_set(domain, rng):
    for direction in directions(domain, rng):
        vertex = domain.lmo(direction)
        inside, beyond = (domain.origin() + s * (vertex - domain.origin()) for s in (0.99, 1.3))
        assert domain.separate(inside) is None
        if (found := domain.separate(beyond)) is not None:  # the centre may be on a face
            normal, level = found
            rounding = 1e-9 * domain.radius * norm(normal)
            assert inner(normal, beyond) > level
            assert inner(normal, domain.lmo(-1.0 * normal)) <= level + rounding


EXTRAS = ("project", "gauge", "gauge_subgradient")


@only_where(lambda domain: not all(map(domain.can, EXTRAS)))
def test_what_is_not_offered_is_refused(domain):
    for name in set(EXTRAS).difference(offered(domain)):
        with pytest.raises(NotImplementedError):
            getattr(domain, name)(domain.origin())


@only_where(lambda domain: domain.can("project"))
def test_projection_is_the_nearest_point(domain, rng):
    for direction in directions(domain, rng):
        for scale in (0.1, 3.0):
            y = domain.origin() + (scale * domain.radius / norm(direction)) * direction
            nearest = domain.project(y)
            assert domain.contains(nearest)
            away = y - nearest
            worst = domain.lmo(-away)
            slack = 1e-8 * domain.radius * (domain.radius + norm(away))
            assert inner(away, worst - nearest) <= slack
            assert distance(domain.project(nearest), nearest) <= 1e-7 * domain.radius
            kept = nearest.copy()
            spoil(nearest)
            assert same(domain.project(y), kept)


#: Sets of arrays that may be on a device.
ON_DEVICES = [getattr(driftwolfe.domains, name) for name in ("Box", "L1Ball", "L2Ball", "Simplex")]


@only_where(lambda domain: domain.can("project") and isinstance(domain.origin(), np.ndarray))
def test_projecting_many_is_projecting_each(domain, rng):
    stack = (
        rng.standard_normal((4, *domain.shape))
        * domain.radius
        * np.array([0.01, 0.5, 2.0, 30.0]).reshape(-1, *[1] * len(domain.shape))
    )
    together = domain.project_many(stack)
    each = np.stack([domain.project(y) for y in stack])
    np.testing.assert_allclose(together, each, atol=1e-11 * domain.radius)
    if HAS_TORCH and type(domain) in ON_DEVICES:
        there = to_host(domain.project_many(device_named("torch").put(stack)))
        np.testing.assert_allclose(there, each, atol=1e-11 * domain.radius)


def test_tangents_run_along_the_affine_hull(domain, rng):
    step = domain.tangent(random_like(domain.origin(), rng))
    here, there = domain.origin(), domain.lmo(random_like(domain.origin(), rng))
    along = there - here
    assert distance(domain.tangent(along), along) <= 1e-12 * domain.radius * 10
    assert distance(domain.tangent(step), step) <= 1e-12 * max(1.0, norm(step)) * 10
    if domain.inner_radius > 0:  # a small step along the hull stays in the set
        inside = here + (0.9 * domain.inner_radius / norm(step)) * step
        assert domain.contains(inside, atol=1e-9)


@only_where(lambda domain: domain.can("gauge"))
def test_gauge_scales_from_the_center_and_agrees_with_contains(domain, rng):
    origin = domain.origin()
    assert domain.gauge(origin) <= 1e-12
    for point in feasible_points(domain, rng):
        gauge = domain.gauge(point)
        assert gauge <= 1 + 1e-7
        for factor in (0.3, 4.0):
            scaled = origin + factor * (point - origin)
            assert np.isclose(domain.gauge(scaled), factor * gauge, rtol=1e-9, atol=1e-12)
        if gauge > 1e-6:
            for size, member in ((0.999, True), (1.001, False)):
                at_size = origin + (size / gauge) * (point - origin)
                assert domain.contains(at_size) is member


def outward(domain, rng, count):
    """Directions at random, and of arrays those straight at corners and facets."""
    found = directions(domain, rng, count)
    if isinstance(domain.origin(), np.ndarray):
        units = np.eye(domain.origin().size, min(domain.origin().size, 40)).T
        units = units.reshape(-1, *domain.shape)
        found += [*map(np.sign, found), *units, *-units, np.ones(domain.shape)]
    return found + [-1.0 * (domain.lmo(direction) - domain.origin()) for direction in found]


@only_where(lambda domain: domain.inner_radius > 0, one_of_a_kind=True)
def test_the_set_reaches_beyond_its_inner_ball_in_every_direction(domain, rng):
    """By the oracle alone; and not beyond a much larger one, where all facets have been tried."""
    along = [domain.tangent(direction) for direction in outward(domain, rng, 20)]
    along = [step * (1.0 / norm(step)) for step in along if norm(step) > 1e-9]
    reached = [inner(step, domain.lmo(-1.0 * step) - domain.origin()) for step in along]
    assert min(reached) >= domain.inner_radius * (1 - 1e-9)
    if isinstance(domain.origin(), np.ndarray) and domain.dimension <= 30:
        assert min(reached) <= 1.1 * domain.inner_radius


BOUNDED = (driftwolfe.domains.LinearProgram, driftwolfe.domains.TransportPolytope)


def has_bounds_only(domain):
    """Whether sizes are bounds, which tests/domains/test_flows.py and test_programs.py check."""
    if isinstance(domain, ProductDomain):
        return any(map(has_bounds_only, domain.domains))
    return type(domain) in BOUNDED or (
        isinstance(domain, driftwolfe.domains.FlowPolytope) and domain.known_by_lmo
    )


@only_where(lambda domain: domain.dimension <= 30 and not has_bounds_only(domain), True)
def test_radius_and_diameter_are_those_of_the_vertices(domain, rng):
    vertices = [domain.lmo(direction) for direction in outward(domain, rng, 30)]
    farthest = max(distance(vertex, domain.origin()) for vertex in vertices)
    assert domain.radius <= farthest * (1 + 1e-6)
    if not isinstance(domain.unwrapped, driftwolfe.domains.ConvexHull):  # which has 2 R
        apart = max(distance(v, w) for v in vertices[::2] for w in vertices)
        assert domain.diameter <= 1.05 * apart


@only_where(lambda domain: domain.can("gauge_subgradient"))
def test_gauge_subgradients_support_the_gauge(domain, rng):
    origin = domain.origin()
    points = feasible_points(domain, rng, count=5)
    for y in points:
        gauge = domain.gauge(y)
        slope = domain.gauge_subgradient(y)
        assert np.isclose(inner(slope, y - origin), gauge, rtol=1e-7, atol=1e-9)
        for z in points:
            assert domain.gauge(z) >= gauge + inner(slope, z - y) - 1e-7


@one_of_a_kind
def test_ill_formed_points_are_refused_by_every_method(domain):
    for name in offered(domain):
        for value in ill_formed(domain):
            with pytest.raises(ValueError):
                getattr(domain, name)(value)


@one_of_a_kind
def test_a_wrong_tolerance_is_refused(domain):
    for atol in (-1.0, np.nan, np.inf, "small"):
        with pytest.raises((ValueError, TypeError), match="atol"):
            domain.contains(domain.origin(), atol=atol)


@pytest.mark.in_turn
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-160, 1e150, 1e300])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_huge_and_tiny_points_are_answered_with_numbers_or_not_at_all(domain, scale, rng):
    for point in [random_like(domain.origin(), rng, scale) for _ in range(3)]:
        for name in offered(domain):
            try:
                answer = getattr(domain, name)(point)
            except ValueError as refusal:
                assert str(refusal)
                continue
            assert not any(np.isnan(part).any() for part in arrays(answer)), name
            if name in ("lmo", "project"):
                assert all(np.isfinite(part).all() for part in arrays(answer))
                # The functions of an `LMODomain` are the user's.
                own = isinstance(domain.unwrapped, driftwolfe.domains.LMODomain)
                assert own or domain.contains(answer, atol=1e-6), name


@one_of_a_kind
def test_no_method_changes_its_input(domain, rng):
    for name in offered(domain):
        for y in directions(domain, rng, count=2):
            point = y if name != "gauge_subgradient" else domain.lmo(y)
            kept = point.copy()
            getattr(domain, name)(point)
            assert same(point, kept)


def test_sets_name_themselves(domain):
    assert type(domain.unwrapped).__name__ in repr(domain)
