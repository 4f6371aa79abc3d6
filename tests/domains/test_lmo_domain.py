import numpy as np
import pytest

import driftwolfe as dw


def sign_lmo(direction):
    return np.where(direction > 0, -1.0, 1.0)


def cube(**options):
    return dw.LMODomain((2, 2), sign_lmo, radius=2.0, **options)


def test_answers_are_those_of_the_function():
    domain = cube()
    assert np.array_equal(domain.lmo([[1.0, -1.0], [2.0, -2.0]]), [[-1.0, 1.0], [-1.0, 1.0]])
    assert domain.lmo_with_error(np.ones((2, 2)))[1] == 0.0
    assert domain.shape == (2, 2)
    assert domain.radius == 2.0
    assert np.array_equal(domain.origin(), np.zeros((2, 2)))


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


def test_bad_projections_are_refused():
    domain = cube(project=lambda y: y[0])
    with pytest.raises(ValueError, match="answer of project"):
        domain.project(np.zeros((2, 2)))


def test_distance_is_measured_from_the_center():
    center = np.array([10.0, 10.0])
    domain = dw.LMODomain(2, lambda d: center - d / np.linalg.norm(d), radius=1.0, center=center)
    assert np.allclose(domain.lmo([0.0, 2.0]), [10.0, 9.0])
    assert np.array_equal(domain.origin(), center)


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
