"""The oracle contract, for every set, every method, and points chosen to break it."""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from contracts.domain_cases import CASES, made
from contracts.test_domain_contract import random_like
from driftwolfe.oracles import Atoms
from driftwolfe.oracles.methods import METHODS, Request, infeasible_projections
from driftwolfe.points import distance, inner, norm

CUDA = [
    pytest.param(dw.TraceNormBall, number, id=f"TraceNormBall-cuda{number}", marks=pytest.mark.gpu)
    for number in (-1, -2)
]


def methods_for(domain):
    """What applies: block to trace-norm balls, corrective to dense points, others where offered."""
    for method in ("auto", *METHODS):
        if method == "block" and not isinstance(domain.unwrapped, dw.TraceNormBall):
            continue
        if method == "exact" and not domain.can("project"):
            continue
        if method == "separation" and not domain.can("separate"):
            continue
        if method == "corrective" and isinstance(domain, dw.ProductDomain):
            continue
        yield method


def with_methods(*methods):
    """All sets, each with all methods that apply, or with some; those on a device are slow."""
    chosen = []
    for case in [*CASES, *CUDA]:
        known = made(*case.values) if case.values[1] >= 0 else dw.TraceNormBall((3, 4))
        marks = [*case.marks, *[pytest.mark.slow] * (case.id == "TraceNormBall-4")]
        for method in methods_for(known):
            if method in methods or not methods:
                each = f"{case.id}-{method}"
                chosen.append(pytest.param(*case.values, method, id=each, marks=marks))
    return pytest.mark.parametrize(("kind", "number", "method"), chosen)


def feasible_point(domain, rng, vertices=3):
    x = domain.origin()
    for _ in range(vertices):
        share = rng.random()
        x = x * (1 - share) + domain.lmo(random_like(domain.origin(), rng)) * share
    return x


def situations(domain, rng, far):
    """(x, y) pairs: generic, inside, on a vertex, opposite, straight out of a face, far away."""
    x = feasible_point(domain, rng)
    out = random_like(domain.origin(), rng)
    out = out * (domain.radius / norm(out))
    vertex, opposite = domain.lmo(out), domain.lmo(-out)
    yield x, x + out * rng.uniform(0.1, 2.0)
    yield x, x * 0.5 + feasible_point(domain, rng) * 0.5
    yield x, x
    yield opposite, vertex
    yield vertex, vertex + (vertex - domain.origin()) * 1e-3
    yield opposite, opposite - out * 1.5
    yield domain.origin(), domain.origin() + out * far


def check_contract(domain, y, result, tolerance):
    """All four points; the third at the z that is worst for it."""
    new_x, new_y = result.feasible, result.infeasible
    assert domain.contains(new_x, atol=1e-9)
    assert distance(new_x, new_y) ** 2 <= tolerance * (1 + 1e-9) + 1e-18
    assert result.distance == pytest.approx(distance(new_x, new_y), abs=1e-7 * domain.radius)
    moved = new_y - y
    worst = domain.lmo(moved) if norm(moved) > 0 else new_x
    excess = inner(moved, new_y + y - worst * 2.0)  # ||y'-z||^2 - ||y-z||^2
    assert excess <= 1e-9 * (domain.radius**2 + norm(y) ** 2)
    offset = new_y if domain.center is None else new_y - domain.center
    assert norm(offset) <= domain.radius * (1 + 1e-9)


def check_calls(domain, x, y, result, tolerance):
    D = 2 * domain.radius
    if result.method == "halfspace":
        assert result.lmo_calls <= 2.6 * D**2 / tolerance
    if result.method == "separation":
        assert result.lmo_calls == 0
    if result.method == "paper":
        eps = tolerance / 3
        rho = max(distance(x, y) ** 2 / eps, 3.0)
        runs = max(1, math.ceil(math.log(rho / 3) / (-2 * math.log1p(-2 / rho))))
        assert result.lmo_calls <= runs * max(0.0, 4 * D**2 / eps - 2)


@pytest.mark.in_turn("kind number", "method")
@with_methods()
def test_contract(kind, number, method):
    domain = dw.count_calls(made(kind, number))
    rng = np.random.default_rng(7)
    # The paper's pulls shrink with the square of the distance: far points take it forever.
    far, scales = (2.0, (0.05, 0.6)) if method == "paper" else (1e3, (1e-3, 0.05, 0.6))
    for scale in scales:
        tolerance = scale * domain.radius**2
        for x, y in situations(domain, rng, far):
            domain.calls.reset()
            result = dw.infeasible_projection(domain, x, y, tolerance, method)
            if isinstance(y, np.ndarray):
                for point in (result.feasible, result.infeasible):
                    assert not np.shares_memory(point, x)
                    assert not np.shares_memory(point, y)
            assert result.converged
            assert result.lmo_calls == domain.calls.lmo
            assert method in ("auto", result.method)
            check_calls(domain, x, y, result, tolerance)
            check_contract(domain, y, result, tolerance)


@pytest.mark.in_turn("kind", "method", "accuracy")
@pytest.mark.parametrize("accuracy", [0.9, 0.05, pytest.param(0.01, marks=pytest.mark.slow)])
@with_methods("auto", "halfspace", "corrective", "block", "exact", "separation")
def test_contract_at_every_accuracy(kind, number, method, accuracy):
    domain, rng = made(kind, number), np.random.default_rng(8)
    tolerance = 0.02 * domain.radius**2
    for x, y in situations(domain, rng, far=30.0):
        result = dw.infeasible_projection(domain, x, y, tolerance, method, accuracy=accuracy)
        check_calls(domain, x, y, result, tolerance)
        check_contract(domain, y, result, tolerance)


@pytest.mark.in_turn("kind", "method", "most")
@pytest.mark.parametrize("most", [0, 1, 3])
@with_methods()
def test_a_limit_on_calls_costs_only_the_distance(kind, number, method, most):
    domain, rng = made(kind, number), np.random.default_rng(9)
    tolerance = 1e-4 * domain.radius**2
    for x, y in situations(domain, rng, far=3.0):
        result = dw.infeasible_projection(domain, x, y, tolerance, method, max_lmo_calls=most)
        assert result.lmo_calls <= most
        check_contract(domain, y, result, max(tolerance, result.distance**2))
        assert result.converged == (result.distance**2 <= tolerance * (1 + 1e-12))


@pytest.mark.in_turn("kind", "method")
@with_methods("auto", "block", "halfspace")
def test_several_at_once_are_as_one_by_one(kind, number, method):
    domain, rng = dw.count_calls(made(kind, number)), np.random.default_rng(11)
    xs, ys = zip(*situations(domain, rng, far=3.0), strict=True)
    tolerances = [scale * domain.radius**2 for _, scale in zip(xs, itertools.cycle((0.02, 0.3)))]
    domain.calls.reset()
    given = zip(xs, ys, tolerances, strict=True)
    found = infeasible_projections(domain, [Request(*e, method).checked(domain) for e in given])
    assert sum(result.lmo_calls for result in found) == domain.calls.lmo
    for x, y, tolerance, result in zip(xs, ys, tolerances, found, strict=True):
        check_contract(domain, y, result, tolerance)
        alone = dw.infeasible_projection(domain, x, y, tolerance, method)
        assert (result.method, result.lmo_calls) == (alone.method, alone.lmo_calls)
        for name in ("feasible", "infeasible"):
            assert distance(getattr(result, name), getattr(alone, name)) <= 1e-6 * domain.radius


@pytest.mark.in_turn("kind")
@with_methods("halfspace")
def test_known_vertices_take_the_place_of_calls(kind, number, method):
    domain, rng = dw.count_calls(made(kind, number)), np.random.default_rng(10)
    tolerance, atoms, spared = 0.02 * domain.radius**2, Atoms(16), 0
    for accuracy in (None, 0.1):
        for x, y in situations(domain, rng, far=3.0):
            for _ in range(2):
                before = domain.calls.lmo
                result = dw.infeasible_projection(
                    domain, x, y, tolerance, method, accuracy, atoms=atoms
                )
                assert result.lmo_calls == domain.calls.lmo - before
                check_calls(domain, x, y, result, tolerance)
                check_contract(domain, y, result, tolerance)
                spared = max(spared, len(atoms) - result.lmo_calls)
    assert spared > 0 and len(atoms) <= 16


@pytest.mark.in_turn("kind")
@with_methods("halfspace")
def test_bad_input_is_refused_and_nothing_changes(kind, number, method):
    domain = made(kind, number)
    x, y = domain.origin(), feasible_point(domain, np.random.default_rng(1))
    for tolerance in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="tolerance"):
            dw.infeasible_projection(domain, x, y, tolerance)
    outside = x + random_like(domain.origin(), np.random.default_rng(2)) * (100 * domain.radius)
    for message, (start, tolerance), options in (
        ("method must be one of", (x, 1.0), {"method": "magic"}),
        ("accuracy", (x, 1.0), {"accuracy": 0.0}),
        ("max_lmo_calls", (x, 1.0), {"max_lmo_calls": -1}),
        ("must be a point of the set", (outside, 1.0), {}),
        ("tolerance must be positive", (x, 0.0), {"method": method}),
    ):
        with pytest.raises(ValueError, match=message):
            dw.infeasible_projection(domain, start, y, tolerance, **options)
    strange = [np.zeros(3)]
    if isinstance(y, np.ndarray):
        strange = [np.full(domain.shape, np.nan), np.zeros((*domain.shape, 2)), "text"]
    for bad in strange:
        with pytest.raises(ValueError, match="y"):
            dw.infeasible_projection(domain, x, bad, 1.0)
