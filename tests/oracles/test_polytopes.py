"""Linear minimisation on polytopes at the rate of projections: the statements of docs/theory/polytopes.md."""

import itertools
import math

import numpy as np
import pytest
from scipy.spatial import ConvexHull as Facets

import driftwolfe as dw
from driftwolfe.oracles import infeasible_projection

LADDER = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
#: A polytope, and a lower bound on its facial distance, exact for the first four.
SETS = {
    "simplex": (dw.Simplex(4), 1.0),
    "odd simplex": (dw.Simplex(5), 2.0 / math.sqrt(5 - 1 / 5)),
    "box": (dw.Box([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]), 1.0 / math.sqrt(1.0 + 1 / 4 + 1 / 9)),
    "l1": (dw.L1Ball(3), 1.0 / math.sqrt(2.0)),
    "matchings": (dw.BirkhoffPolytope(3), 1.0 / math.sqrt(6.0)),
    "flows": (dw.FlowPolytope(LADDER, 0, 3), 1.0 / math.sqrt(5.0)),
    "trees": (dw.SpanningTreePolytope(4), 1.0 / (3.0 * math.sqrt(6.0))),
}
EXACT = ("simplex", "odd simplex", "box", "l1")


def vertices(domain):
    """All of them, by many linear minimisations."""
    rng, found = np.random.default_rng(0), set()
    for _ in range(1500):
        answer = domain.lmo(rng.standard_normal(domain.shape)).ravel()
        found.add(tuple(np.round(answer, 9) + 0.0))
    return np.array(sorted(found))


def faces(points):
    """The proper faces, as sets of vertices: intersections of facets."""
    offset = points - points.mean(axis=0)
    _, sizes, axes = np.linalg.svd(offset)
    flat = offset @ axes[: int((sizes > 1e-9).sum())].T
    if flat.shape[1] == 1:
        return [frozenset([0]), frozenset([1])]
    planes = np.unique(np.round(Facets(flat).equations, 8), axis=0)
    found = {frozenset(np.flatnonzero(np.abs(flat @ p[:-1] + p[-1]) < 1e-6)) for p in planes}
    new = set(found)
    while new:
        new = {a & b for a in new for b in found} - found - {frozenset()}
        found |= new
    return list(found)


def facial_distance(points):
    """The least distance of a face from the hull of the other vertices, by Frank-Wolfe's own hull."""
    least = math.inf
    for face in faces(points):
        inside = sorted(face)
        rest = [i for i in range(len(points)) if i not in face]
        pairs = np.array([points[i] - points[j] for i, j in itertools.product(inside, rest)])
        nearest = dw.ConvexHull(pairs)
        zero = np.zeros(points.shape[1])
        found = infeasible_projection(nearest, pairs[0], zero, 1e-14, "corrective", 1e-7)
        least = min(least, float(np.linalg.norm(found.feasible)))
    return least


@pytest.mark.parametrize("name", SETS)
def test_facial_distances_are_those_stated(name):
    domain, stated = SETS[name]
    found = facial_distance(vertices(domain))
    assert found >= stated * (1 - 1e-4)
    if name in EXACT:
        assert found == pytest.approx(stated, rel=1e-4)


@pytest.mark.parametrize("name", SETS)
def test_runs_from_a_vertex_make_as_many_calls_as_proved(name):
    """The gap is at most the accuracy times d^2 after kappa ln(diam^2/(2 h)) + 2 calls, h as in the proof."""
    domain, delta = SETS[name]
    rng, diameter = np.random.default_rng(1), domain.diameter
    for size, accuracy in itertools.product((0.1, 1.0, 5.0), (1e-1, 1e-3, 1e-5)):
        for _ in range(4):
            start = domain.lmo(rng.standard_normal(domain.shape))
            y = domain.origin() + size * domain.tangent(rng.standard_normal(domain.shape))
            counted = dw.CountedDomain(domain)
            tol = (accuracy * diameter) ** 2
            infeasible_projection(counted, start, y, tol, "corrective", accuracy)
            height = (accuracy * tol / diameter) ** 2 / 2.0
            kappa = max(2.0, (diameter / delta) ** 2)
            most = kappa * max(0.0, math.log(diameter**2 / (2 * height)))
            assert counted.calls.lmo <= most + 2.0


@pytest.mark.parametrize("name", ["simplex", "matchings", "flows", "trees"])
@pytest.mark.parametrize("cls", [dw.learners.OneProjectionAder, dw.learners.OneProjectionSAOL])
def test_one_projection_learners_call_the_oracle_a_few_times_per_round(name, cls):
    """Runs start at the point played, of which the proof does not speak: a few calls, far below the bound."""
    domain, delta = SETS[name]
    for T in (100, 400):
        rng, rows = np.random.default_rng(0), []
        for t in range(T):  # four directions, with noise: the mean of the experts leaves the set
            g = domain.tangent(
                np.cos(1.7 * np.arange(domain.origin().size) + t * 4 // T * 2.0).reshape(
                    domain.shape
                )
            )
            rows.append(
                g / np.linalg.norm(g) + 0.3 * domain.tangent(rng.standard_normal(domain.shape))
            )
        G = max(map(np.linalg.norm, rows))
        learner = cls(domain, T, G, oracle="corrective", tuning="certified")
        paid = sum(learner.update(dw.losses.LinearLoss(row)) for row in rows)
        sums = [np.sum(rows[T * i // 4 : T * (i + 1) // 4], axis=0) for i in range(4)]
        best = [domain.lmo(each) for each in sums]
        path = sum(float(np.linalg.norm(b - a)) for a, b in itertools.pairwise(best))
        least = sum(float(np.vdot(a, b)) for a, b in zip(sums, best, strict=True))
        assert paid - least <= learner.bound(path_length=path)
        proved = 3.0 * max(2.0, (domain.diameter / delta) ** 2) * math.log(T) + 3.0
        assert 0.1 < learner.lmo_calls / T <= min(proved, 8.0)
