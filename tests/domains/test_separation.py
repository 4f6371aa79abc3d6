"""Sets given by separations, beside the same sets with all oracles; SO-OGD on them."""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss

SHIFT = np.array([1.0, -2.0, 0.5])


def from_l1(y):
    """The signs of a point outside: a facet that it is beyond."""
    return np.sign(y) if np.abs(y).sum() > 2.0 else None


def from_l2(y):
    return y - SHIFT if np.linalg.norm(y - SHIFT) > 1.5 else None


def from_box(y):
    """One coordinate at a time, the first that is out of bounds."""
    for i, (value, low, high) in enumerate(
        zip(y, [-1.0, -2.0, -0.5], [2.0, 1.0, 0.5], strict=True)
    ):
        if not low <= value <= high:
            return np.eye(3)[i] * (1.0 if value > high else -1.0)
    return None


def from_corner(y):
    """Weights of at most 1 altogether, which have an inside; in any of its ways out."""
    if (y < 0).any():
        return -np.eye(3)[int(y.argmin())]
    return np.ones(3) if y.sum() > 1 else None


#: What separates, the radii and the centre, and the same set with an LMO.
SETS = {
    "l1": (from_l1, (2.0, 2.0 / math.sqrt(3)), dw.L1Ball(3, radius=2.0)),
    "l2": (
        from_l2,
        (1.5, 1.5, SHIFT),
        dw.LMODomain(3, lambda g: dw.L2Ball(3, 1.5).lmo(g) + SHIFT, 1.5, center=SHIFT),
    ),
    "box": (from_box, (3.0, 0.5), dw.Box([-1.0, -2.0, -0.5], [2.0, 1.0, 0.5])),
    "corner": (from_corner, (1.0, 0.2, np.full(3, 0.2)), dw.ConvexHull([[0.0] * 3, *np.eye(3)])),
}


def separated_twins(name):
    separate, sizes, known = SETS[name]
    return dw.SeparationDomain(3, separate, *sizes), known


def by_membership(name):
    """The same, by tests alone."""
    separate, sizes, known = SETS[name]
    return dw.MembershipDomain(3, lambda y: separate(y) is None, *sizes), known


@pytest.fixture(params=SETS)
def twins(request):
    return separated_twins(request.param)


def outside(domain, rng, count=12):
    """Points at some distances from the centre."""
    for size in rng.uniform(0.05, 3.0, count):
        direction = rng.standard_normal(3)
        yield domain.origin() + size * domain.radius * direction / np.linalg.norm(direction)


def test_the_same_points_are_in_both(twins):
    separated, known = twins
    found = [separated.contains(y) for y in outside(separated, np.random.default_rng(0), 40)]
    assert found == [known.contains(y) for y in outside(separated, np.random.default_rng(0), 40)]
    assert any(found) and not all(found)
    for g in np.random.default_rng(1).standard_normal((12, 3)):
        beyond = known.lmo(g) - 0.1 * g / np.linalg.norm(g)  # at that distance from the set
        far = np.linalg.norm(beyond - separated.origin())
        assert not separated.contains(beyond, atol=0.09 / separated.radius)
        enough = 0.1 * far / separated.inner_radius
        assert separated.contains(beyond, atol=enough / separated.radius)


def test_half_spaces_hold_the_set_and_leave_the_point_out(twins):
    separated, known = twins
    cuts = 0
    for y in outside(separated, np.random.default_rng(1)):
        found = separated.separate(y)
        assert (found is None) == known.contains(y)
        if found is not None:
            normal, level = found
            assert np.linalg.norm(normal) == pytest.approx(1.0)
            assert normal @ known.lmo(-normal) <= level + 1e-9 < normal @ y
            # Half of what is left of the way from the centre, times the inner radius.
            offset = y - separated.origin()
            gauge = max(1.0, 1.0 / largest_share(known, separated.origin(), offset))
            assert normal @ y - level >= 0.5 * (1 - 1 / gauge) * separated.inner_radius - 1e-9
            cuts += 1
    assert cuts


def largest_share(domain, origin, offset):
    """By bisection on the other set's membership."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if domain.contains(origin + middle * offset) else (low, middle)
    return low


@pytest.mark.parametrize("scale", [1e-8, 1e-2, 0.5])
def test_the_contract_of_infeasible_projections(twins, scale):
    """All four points, the third at its worst z, and the number of cuts."""
    separated, known = twins
    tolerance, center = scale * separated.radius**2, separated.origin()
    kappa = separated.radius / separated.inner_radius
    for y in outside(separated, np.random.default_rng(2)):
        counted = dw.count_calls(separated)
        result = dw.infeasible_projection(counted, center, y, tolerance)
        x, beside = result.feasible, result.infeasible
        assert known.contains(x, atol=1e-9)
        assert np.linalg.norm(x - beside) ** 2 <= tolerance * (1 + 1e-9)
        assert np.linalg.norm(beside - center) <= separated.radius * (1 + 1e-9)
        moved = beside - y
        worst = known.lmo(moved)
        assert moved @ (beside + y - 2 * worst) <= 1e-9 * (1 + y @ y)
        assert (result.method, result.lmo_calls, counted.calls.lmo) == ("separation", 0, 0)
        start = y - center
        start = center + start * min(1.0, separated.radius / np.linalg.norm(start))
        gap = 2 * separated.radius * np.linalg.norm(start - x)
        assert result.gap == pytest.approx(gap, abs=1e-9)
        apart = max(np.linalg.norm(y - x), 1e-300)  # at least the distance of the set
        logarithm = max(0.0, math.log(2 * kappa * apart / math.sqrt(tolerance)))
        cuts = math.ceil(8 * kappa**2 * logarithm) + 1
        bisections = math.log2(2 * separated.radius / math.sqrt(tolerance)) + 2
        assert 1 <= counted.calls.membership <= cuts * max(1.0, bisections) + 1


def test_so_ogd_is_within_its_bound_of_regret_and_calls(twins):
    separated, known = twins
    rounds, rng = 128, np.random.default_rng(3)
    # An adversary that pulls in a direction drawn every 16 rounds, and back.
    slopes = np.repeat(rng.standard_normal((rounds // 16, 3)), 16, axis=0)
    slopes[1::2] *= -0.5
    slopes /= np.linalg.norm(slopes, axis=1).max()
    learner = dw.learners.SOOGD(separated, horizon=rounds, lipschitz=1.0)
    suffered = sum(learner.update(LinearLoss(slope)) for slope in slopes)
    total = slopes.sum(axis=0)
    assert suffered - total @ known.lmo(total) <= learner.bound()
    D = 2 * separated.radius
    assert learner.bound() == pytest.approx(13 / 8 * D * math.sqrt(rounds))
    kappa = separated.radius / separated.inner_radius
    cuts = 8 * kappa**2 * math.log(4 * kappa) + 2
    assert learner.oracle_calls.membership <= rounds * cuts * (math.log2(4 * math.sqrt(rounds)) + 2)
    assert learner.oracle_calls.lmo == learner.oracle_calls.projection == 0


WITHOUT_LMO = {
    "POLD": lambda domain: dw.POLD(domain, horizon=60),
    "POLA": lambda domain: dw.POLA(domain),
    "Ader": lambda domain: dw.Ader(domain, horizon=60, oracle="separation"),
    "SAOL": lambda domain: dw.learners.SAOL(domain, oracle="separation"),
    "BOGDIP": lambda domain: dw.BOGDIP(domain, horizon=60),
    "Bandit": lambda domain: dw.contrib.Bandit(domain, dw.POLD, points=2, horizon=60),
    "SOOGD": lambda domain: dw.learners.SOOGD(domain),
}


@pytest.mark.parametrize(
    ("name", "place", "twins_of"),
    [
        *((name, "corner", separated_twins) for name in WITHOUT_LMO),
        *(("BOGDIP", place, separated_twins) for place in ("l1", "l2", "box")),
        ("SOOGD", "corner", by_membership),
    ],
)
def test_learners_do_without_an_lmo(name, place, twins_of):
    """And find the best point, as the set with an LMO names it."""
    make, (separated, known) = WITHOUT_LMO[name], twins_of(place)
    learner, slope = make(separated), np.array([1.0, -0.5, 0.25])
    for t in range(60):
        learner.update(LinearLoss(slope))
        assert t % 20 or known.contains(learner.decision, atol=1e-8)
    best, worst = slope @ known.lmo(slope), slope @ known.lmo(-slope)
    assert slope @ learner.decision <= best + 0.2 * (worst - best)


def test_so_ogd_on_a_set_with_a_gauge_takes_few_cuts():
    domain, rounds = dw.L1Ball(4), 200
    learner = dw.learners.SOOGD(domain, horizon=rounds, lipschitz=1.0)
    for t in range(rounds):
        learner.update(LinearLoss(np.eye(4)[t // 60]))
    cuts = 2 * 4 * math.log(2 * 2) + 2  # exact cuts: 2 kappa^2 ln(2 kappa)
    assert rounds <= learner.oracle_calls.membership <= rounds * cuts


def test_what_is_refused():
    with pytest.raises(TypeError, match="separate must be a function"):
        dw.SeparationDomain(3, None, radius=1.0, inner_radius=1.0)
    with pytest.raises(ValueError, match="give a center that is"):
        dw.SeparationDomain(
            3, lambda y: np.ones(3), radius=1.0, inner_radius=1.0, center=np.ones(3)
        )
    with pytest.raises(ValueError, match="inner_radius"):
        dw.SeparationDomain(3, from_l1, radius=1.0, inner_radius=2.0)
    wrong = dw.SeparationDomain(3, lambda y: -y if y @ y > 1 else None, 1.0, 1.0)
    with pytest.raises(ValueError, match="sign"):
        wrong.separate([2.0, 0.0, 0.0])
    shapeless = dw.SeparationDomain(3, lambda y: 1.0 if y @ y > 1 else None, 1.0, 1.0)
    with pytest.raises(ValueError, match="separate"):
        shapeless.separate([2.0, 0.0, 0.0])
    ball, _ = separated_twins("l1")
    for call in (ball.lmo, ball.decompose):
        with pytest.raises(NotImplementedError, match="SOOGD"):
            call(np.ones(3))
    with pytest.raises(ValueError, match="gap"):
        dw.infeasible_projection(ball, np.zeros(3), np.ones(3) * 9, 0.1, gap=0.1)
    with pytest.raises(ValueError, match="separates no points"):
        trees = dw.SpanningTreePolytope(4)
        dw.infeasible_projection(trees, trees.origin(), np.ones(6), 0.1, "separation")
    with pytest.raises(NotImplementedError, match="separates no points"):
        dw.SpanningTreePolytope(4).separate(np.ones(6))


# -- by membership tests alone -------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_cuts_by_membership_hold_the_set(name):
    """Beside the set's support function; at vertices and edges too, where gauges have kinks."""
    tested, known = by_membership(name)
    center, rng = tested.origin(), np.random.default_rng(4)
    corners = [known.lmo(g) - center for g in rng.standard_normal((12, 3))]
    edges = [0.5 * (a + b) for a, b in itertools.pairwise(corners)]
    for offset in [*corners, *edges, *rng.standard_normal((12, 3))]:
        y = center + rng.uniform(1.01, 3.0) * offset / max(1e-3, np.linalg.norm(offset))
        cut = tested._separate(y, 0.0)
        if cut.normal is None:
            assert known.contains(y, atol=1e-9)
            continue
        assert cut.normal @ known.lmo(-cut.normal) <= cut.level
        inside = center + cut.fraction * (y - center)
        assert known.contains(inside, atol=1e-9)
        # The cut lies just beyond where the segment leaves the set.
        beyond = cut.normal @ (y - center) - (cut.level - cut.normal @ center)
        assert beyond >= (1 / cut.fraction - 1) - 2 * tested.cut_accuracy / tested.radius
        assert cut.calls <= 25 * 3 + 110


@pytest.mark.parametrize("name", SETS)
def test_projections_by_membership(name):
    tested, known = by_membership(name)
    tolerance, center = 4 * tested.cut_accuracy**2, tested.origin()
    for y in outside(tested, np.random.default_rng(2)):
        result = dw.infeasible_projection(tested, center, y, tolerance)
        x, beside = result.feasible, result.infeasible
        assert known.contains(x, atol=1e-9) and result.method == "separation"
        assert np.linalg.norm(x - beside) ** 2 <= tolerance * (1 + 1e-9)
        moved = beside - y
        assert moved @ (beside + y - 2 * known.lmo(moved)) <= 1e-9 * (1 + y @ y)
    with pytest.raises(ValueError, match="below what membership tests reach"):
        dw.infeasible_projection(tested, center, y + 9.0, 0.1 * tested.cut_accuracy**2)


def test_what_a_membership_domain_refuses():
    with pytest.raises(TypeError, match="contains must be a function"):
        dw.MembershipDomain(3, None, radius=1.0, inner_radius=1.0)
    with pytest.raises(ValueError, match="give a center that is"):
        dw.MembershipDomain(3, lambda y: False, radius=1.0, inner_radius=1.0)
    ball, _ = by_membership("l2")
    assert ball.contains(SHIFT) and not ball.contains(SHIFT + 2.0)
    assert ball.contains(SHIFT + np.array([1.5 + 1e-10, 0, 0]), atol=1e-9)
