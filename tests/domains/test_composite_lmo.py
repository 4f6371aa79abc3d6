import numpy as np
import pytest

import driftwolfe as dw


def sign_lmo(direction):
    return np.where(direction > 0, -1.0, 1.0)


def cube(**options):
    return dw.LMODomain((2, 2), sign_lmo, radius=2.0, **options)


def test_error_is_relative_to_radius_and_direction():
    direction = np.full((2, 2), 3.0)
    assert np.isclose(cube(error=0.1).lmo_with_error(direction)[1], 0.1 * 2.0 * 6.0)


def test_membership_from_the_oracle_alone():
    domain = cube()
    assert not domain.cheap_membership
    assert domain.contains(np.full((2, 2), 0.99))
    assert domain.contains([[1.0, 0.5], [-1.0, 0.0]])
    assert not domain.contains([[1.0 + 1e-6, 0.5], [-1.0, 0.0]])


def test_membership_with_an_inexact_oracle_needs_a_function():
    with pytest.raises(NotImplementedError, match="give contains="):
        cube(error=0.1).contains(np.zeros((2, 2)))


def test_extras_are_offered_exactly_where_given():
    plain = cube()
    full = cube(
        contains=lambda x: np.abs(x).max() <= 1,
        project=lambda y: np.clip(y, -1, 1),
        gauge=lambda y: np.abs(y).max(),
    )
    for operation in ("project", "gauge"):
        assert full.can(operation)
        assert not plain.can(operation)
        with pytest.raises(NotImplementedError):
            getattr(plain, operation)(np.zeros((2, 2)))
    assert not full.can("gauge_subgradient")
    assert full.cheap_projection
    assert full.cheap_membership
    y = np.array([[3.0, 0.5], [-2.0, 0.0]])
    assert np.array_equal(full.project(y), [[1.0, 0.5], [-1.0, 0.0]])
    assert full.gauge(y) == 3.0
    with pytest.raises(ValueError, match="answer of project"):
        cube(project=lambda y: y[0]).project(y)
    assert not full.contains(y)


def test_functions_get_and_give_arrays_of_their_own():
    kept = np.array([-1.0, 0.0])

    def careless(direction):
        direction *= -1.0
        return kept

    domain = dw.LMODomain(2, careless, radius=1.0)
    direction = np.array([1.0, 2.0])
    domain.lmo(direction)[:] = 9.0
    assert np.array_equal(direction, [1.0, 2.0])
    assert np.array_equal(kept, [-1.0, 0.0])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(3), r"answer of lmo must have shape \(2,\), got \(3,\)"),
        (np.array([np.nan, 0.0]), "answer of lmo has entries that are not finite"),
        (np.array([2.0, 0.0]), "distance 2 from the centre, but radius is 1"),
        (None, "answer of lmo must"),
    ],
)
def test_bad_answers_are_refused(answer, message):
    with pytest.raises(ValueError, match=message):
        dw.LMODomain(2, lambda direction: answer, radius=1.0).lmo([1.0, 1.0])


def test_bad_construction_is_refused():
    with pytest.raises(TypeError, match="lmo must be a function, got NoneType"):
        dw.LMODomain(2, None, radius=1.0)
    with pytest.raises(TypeError, match="gauge must be a function, got float"):
        dw.LMODomain(2, sign_lmo, radius=1.0, gauge=1.0)
    with pytest.raises(ValueError, match="radius must be a positive"):
        dw.LMODomain(2, sign_lmo, radius=0.0)
    with pytest.raises(ValueError, match="error must be a finite number >= 0"):
        dw.LMODomain(2, sign_lmo, radius=1.0, error=-0.1)
    with pytest.raises(ValueError, match="center must have shape"):
        dw.LMODomain(2, sign_lmo, radius=1.0, center=[0.0])
    with pytest.raises(ValueError, match="contains says that 0 is not in the set"):
        dw.LMODomain(2, sign_lmo, radius=1.0, contains=lambda x: x[0] > 0.5)


#: A set's own oracle, the set's radius and its centre.
KNOWN = {
    "l1": (dw.L1Ball(4), None),
    "box": (dw.Box([-1.0, -2.0, -0.5], [2.0, 1.0, 0.5]), None),
    "simplex": (dw.Simplex(5), np.full(5, 0.2)),
    "far away": (dw.Box([1e6, 1e6], [1e6 + 1.0, 1e6 + 1.0]), np.full(2, 1e6 + 0.5)),
}


def own(name, lmo, **options):
    exact, center = KNOWN[name]
    middle = np.zeros(exact.shape) if center is None else center
    corners = [exact.lmo(g) for g in np.random.default_rng(0).standard_normal((200, *exact.shape))]
    radius = 1.001 * max(np.linalg.norm(corner - middle) for corner in corners)
    return dw.LMODomain(exact.shape, lmo, radius=radius, center=center, **options)


@pytest.mark.in_turn
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("name", KNOWN)
def test_an_oracle_that_maximises_is_refused_and_one_that_minimises_is_not(name, scale):
    exact = KNOWN[name][0]
    for g in scale * np.random.default_rng(1).standard_normal((20, *exact.shape)):
        with pytest.raises(ValueError, match="lmo must MINIMISE"):
            own(name, lambda direction: exact.lmo(-direction)).lmo(g)
        assert np.array_equal(own(name, exact.lmo).lmo(g), exact.lmo(g))


def test_directions_that_tell_nothing_are_taken():
    exact = dw.L1Ball(4)
    domain = own("l1", lambda direction: exact.lmo(-direction))
    assert np.abs(domain.lmo(np.zeros(4))).sum() == 1.0
    with pytest.raises(ValueError, match="lmo must MINIMISE"):
        domain.lmo([0.0, 1.0, 0.0, 0.0])


def test_a_set_whose_centre_is_the_minimiser_ties():
    """The segment from 0 to (1, 0): where the direction points along it, 0 itself is best."""
    answers = np.array([[0.0, 0.0], [1.0, 0.0]])
    domain = dw.LMODomain(2, lambda g: answers[(answers @ g).argmin()], radius=1.0)
    for g in ([1.0, 0.0], [0.0, 1.0], [0.0, -3.0], [1e-300, 0.0]):
        assert np.array_equal(domain.lmo(g), [0.0, 0.0])
    turned = dw.LMODomain(2, lambda g: answers[(answers @ g).argmax()], radius=1.0)
    assert np.array_equal(turned.lmo([-1.0, 0.0]), [0.0, 0.0])  # as good as 0: nothing is known yet
    with pytest.raises(ValueError, match="lmo must MINIMISE"):
        turned.lmo([1.0, 0.0])


def test_an_inexact_oracle_may_be_as_bad_as_its_stated_error():
    g = np.array([3.0, -4.0])  # of norm 5

    def off_by(share):
        return lambda direction: share * direction / np.linalg.norm(direction)

    allowed = dw.LMODomain(2, off_by(0.099), radius=1.0, error=0.1)
    assert np.vdot(g, allowed.lmo(g)) == pytest.approx(0.099 * 5.0)
    with pytest.raises(ValueError, match=r"worse than 0 by 0\.11 times the norm"):
        dw.LMODomain(2, off_by(0.11), radius=1.0, error=0.1).lmo(g)
    rounding = dw.LMODomain(2, off_by(1e-9), radius=1.0)  # far above rounding, far below the radius
    assert np.linalg.norm(rounding.lmo(g)) == pytest.approx(1e-9)


def test_only_the_first_answers_are_looked_at():
    """A check of every answer would be paid for in every round."""
    calls = []

    def turns_bad(direction):
        calls.append(direction)
        return dw.L1Ball(4).lmo(direction if len(calls) == 1 else -direction)

    domain = own("l1", turns_bad)
    domain.lmo([1.0, 0.0, 0.0, 0.0])
    assert np.array_equal(domain.lmo([1.0, 0.0, 0.0, 0.0]), [1.0, 0.0, 0.0, 0.0])


# -- centre and radius from the oracle ---------------------------------------------------------


@pytest.mark.parametrize(
    "exact",
    [
        dw.L1Ball((2, 3)),
        dw.Box([-1.0, -2.0, 0.5], [2.0, 1.0, 0.5]),
        dw.Ellipsoid([2.0, 0.5, 1.0]),
        dw.ConvexHull(np.random.default_rng(0).normal(size=(60, 12)) + 1.0),
        dw.Simplex(1000),
        dw.TraceNormBall((12, 20), 3.0),
        dw.UniformMatroidPolytope(90, 40),
        dw.ConvexHull(np.random.default_rng(0).normal(size=(600, 120)) + 1.0),
    ],
    ids=repr,
)
def test_a_centre_in_the_set_and_a_radius_that_holds_it_are_found(exact):
    counted = dw.count_calls(exact)
    domain = dw.LMODomain(exact.shape, counted.lmo)
    size = np.prod(exact.shape)
    assert counted.calls.lmo == (2 * size + 1 if size <= 64 else 32)
    assert exact.contains(domain.origin())
    found = domain.radius
    rng = np.random.default_rng(1)
    answers = [domain.lmo(g) for g in rng.standard_normal((500, *exact.shape))]
    answers += [domain.lmo(domain.origin() - answer) for answer in answers]
    lengths = [np.linalg.norm(answer - domain.origin()) for answer in answers]
    assert domain.radius == found >= 0.999 * max(lengths)
    assert found <= 1.26 * max(lengths)
    assert (
        max(np.linalg.norm(a - b) for a in answers[-20:] for b in answers)
        <= 1.001 * domain.diameter
    )


@pytest.mark.parametrize("center", [None, np.array([1.0, 1.0, 0.0, 1.0, 1.0, 1.0])])
def test_the_radius_is_proved_where_coordinates_of_vertices_take_two_values(center):
    trees = dw.SpanningTreePolytope(4)
    corners = np.array([x for x in np.ndindex(*[2] * 6) if sum(x) == 3 and trees.contains(x)])
    if center is not None:
        center = corners[0].astype(float)
    domain = dw.LMODomain(6, lambda g: corners[(corners @ g).argmin()], center=center)
    assert len(corners) == 16
    exact = np.linalg.norm(corners - domain.origin(), axis=1).max()
    assert np.isclose(domain.radius, exact, rtol=1e-12)


def spike(g):
    """A ball of 100 dimensions, and a far point that random directions miss."""
    ball, length = -g / max(np.linalg.norm(g), 1e-300), 5.0
    return length * np.eye(100)[0] if length * g[0] < ball @ g else ball


def test_the_radius_grows_with_all_that_is_made_of_the_set(tmp_path):
    domain = dw.LMODomain(100, spike)
    product, counted = dw.ProductDomain([domain, dw.L2Ball(2)]), dw.count_calls(domain)
    fresh, loss = dw.LMODomain(100, spike), dw.losses.LinearLoss(-np.eye(100)[0])
    learners = [dw.POLAR(domain), dw.OnlineFrankWolfe(domain), dw.POLD(domain, lipschitz=1.0)]
    assert domain.radius == pytest.approx(1.25)
    for learner in learners:
        for _ in range(200):
            learner.update(loss)
        assert domain.contains(learner.decision)
        assert learner.decision[0] > 4.0
        learner.save(tmp_path / "learner.safetensors")
        again = dw.load(tmp_path / "learner.safetensors", domain=dw.LMODomain(100, spike))
        assert np.array_equal(again.decision, learner.decision)
        again.update(loss)
    assert domain.radius == counted.radius == pytest.approx(5.0, rel=1e-6)
    assert domain.diameter == 2.0 * domain.radius
    assert product.radius == np.hypot(domain.radius, 1.0)
    assert product.diameter == np.hypot(domain.diameter, 2.0)
    assert fresh.radius == pytest.approx(1.25)  # another set, by the same function


@pytest.mark.parametrize(
    ("lmo", "message"),
    [
        (lambda g: np.zeros(3), r"answer of lmo must have shape \(2,\), got \(3,\)"),
        (lambda g: np.full(2, np.nan), "answer of lmo has entries that are not finite"),
        (lambda g: None, "answer of lmo must"),
        (lambda g: np.array([1.0, 2.0]), "distance between answers of lmo must be a positive"),
        (lambda g: np.sign(g), "lmo must MINIMISE .* worse than the mean of its answers"),
        (lambda g: 3.0 - np.sign(g), "lmo must MINIMISE .* worse than center"),
    ],
)
def test_bad_oracles_are_refused_when_the_set_is_made(lmo, message):
    center = np.zeros(2) if message.endswith("center") else None
    with pytest.raises(ValueError, match=message):
        dw.LMODomain(2, lmo, center=center)


def test_a_found_centre_must_be_in_the_set_by_its_own_word():
    with pytest.raises(ValueError, match="contains says that the mean of its answers is not in"):
        dw.LMODomain((2, 2), sign_lmo, contains=lambda x: x[0, 0] > 0.5)
