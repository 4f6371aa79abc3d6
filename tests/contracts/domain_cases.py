"""One small and one medium instance of every set; a set without a case fails the contract test."""

import functools
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse

import driftwolfe as dw
from devices import HAS_TORCH, single_threaded_torch
from driftwolfe.domains import Domain


def _grid_edges(rows: int, columns: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """A grid of streets that lead east or south."""
    places = [(row, column) for row in range(rows) for column in range(columns)]
    south = [((row, column), (row + 1, column)) for row, column in places if row + 1 < rows]
    east = [((row, column), (row, column + 1)) for row, column in places if column + 1 < columns]
    return south + east


def _streets(rows: int, columns: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The same with both ways, and some of them twice."""
    edges = _grid_edges(rows, columns)
    return [*edges, *((head, tail) for tail, head in edges), *edges[::4]]


_TRIPS = {((0, 0), (2, 2)): 2.0, ((0, 0), (1, 2)): 1.0, ((2, 1), (0, 0)): 1.5}
_FEW_TRIPS = {((0, 0), (1, 2)): 2.0, ((1, 1), (0, 0)): 1.5}


def _hull_points(count: int, n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(count, n)) + 1.0


def _ellipsoid(n: int) -> dw.LMODomain:
    lengths = np.linspace(1.0, 3.0, n)

    def lmo(direction: np.ndarray) -> np.ndarray:
        if not (largest := np.abs(direction).max()):
            return np.zeros(n)
        along = lengths * (direction / largest)
        return -lengths * along / np.linalg.norm(along)

    def gauge(y: np.ndarray) -> float:
        return float(np.linalg.norm(y / lengths))

    return dw.LMODomain(n, lmo, radius=3.0, contains=lambda x: gauge(x) <= 1 + 1e-9, gauge=gauge)


def _cross_polytope(n: int) -> dw.LMODomain:
    ball = dw.L1Ball(n)
    shift = np.full(n, 2.0)
    return dw.LMODomain(n, lambda d: ball.lmo(d) + shift, radius=1.0, center=shift, error=0.0)


def _program(rows: int, n: int) -> dw.LinearProgram:
    """Random half-spaces, one of them twice as an equality in disguise, inside a box."""
    rng = np.random.default_rng(4)
    A = rng.normal(size=(rows, n))
    A[1] = -2.0 * A[0]
    b = A @ rng.uniform(0.5, 1.5, n) + (np.arange(rows) > 1)
    return dw.LinearProgram(sparse.csr_array(A), b, bounds=(0.0, 2.0))


def on_device(name: str) -> list[Callable[[], Domain]]:
    """Balls whose points are on a device."""

    def ball(shape: tuple[int, int], radius: float) -> Domain:
        single_threaded_torch()
        return dw.TraceNormBall(shape, radius, representation="factored", device=name)

    return [lambda: ball((3, 4), 2.0), lambda: ball((70, 55), 3.0)]


DOMAIN_CASES: dict[type[Domain], list[Callable[[], Domain]]] = {
    dw.BirkhoffPolytope: [lambda: dw.BirkhoffPolytope(3), lambda: dw.BirkhoffPolytope(9)],
    dw.Box: [
        lambda: dw.Box([-1.0, -2.0, -0.5], [2.0, 1.0, 0.5]),
        lambda: dw.Box([0.0, 1.0, -3.0], [2.0, 1.0, -1.0]),
        lambda: dw.Box(np.linspace(-2, 1, 80), np.linspace(1, 2, 80)),
    ],
    dw.CachedDomain: [
        lambda: dw.CachedDomain(dw.Simplex(4), 3),
        lambda: dw.CachedDomain(dw.count_calls(dw.BirkhoffPolytope(8)), 50),
        lambda: dw.CachedDomain(dw.TraceNormBall((3, 4), 2.0, representation="factored"), 5),
    ],
    dw.ConvexHull: [
        lambda: dw.ConvexHull(_hull_points(6, 3)),
        lambda: dw.ConvexHull(_hull_points(60, 12).reshape(60, 3, 4)),
    ],
    dw.CountedDomain: [
        lambda: dw.count_calls(dw.Simplex(4)),
        lambda: dw.count_calls(dw.BirkhoffPolytope(8)),
    ],
    dw.Ellipsoid: [
        lambda: dw.Ellipsoid([2.0, 0.5, 1.0]),
        lambda: dw.Ellipsoid(np.geomspace(0.01, 3.0, 84).reshape(7, 12)),
    ],
    dw.FlowPolytope: [
        lambda: dw.FlowPolytope(_grid_edges(2, 3), (0, 0), (1, 2)),
        lambda: dw.FlowPolytope(_grid_edges(6, 6), (0, 0), (5, 5)),
        lambda: dw.FlowPolytope(_streets(2, 3), (0, 0), (1, 2)),
        lambda: dw.FlowPolytope(_streets(3, 3), demands=_TRIPS),
        lambda: dw.FlowPolytope(_streets(2, 3), demands=_FEW_TRIPS, capacities=1.5),
    ],
    dw.GroupLassoBall: [
        lambda: dw.GroupLassoBall(5, [[0, 3], [1], [2, 4]], radius=2.0),
        lambda: dw.GroupLassoBall(90, np.arange(90) % 11, radius=0.5),
    ],
    dw.KSparsePolytope: [
        lambda: dw.KSparsePolytope(6, 2, radius=3.0),
        lambda: dw.KSparsePolytope((8, 10), 13),
    ],
    dw.L1Ball: [lambda: dw.L1Ball(4, radius=2.0), lambda: dw.L1Ball((10, 12), radius=0.1)],
    dw.L2Ball: [lambda: dw.L2Ball(3, radius=2.0), lambda: dw.L2Ball((10, 12), radius=1e3)],
    dw.LMODomain: [
        lambda: _ellipsoid(4),
        lambda: _cross_polytope(20),
        lambda: dw.LMODomain(5, dw.LinfBall(5).lmo),
    ],
    dw.LinearProgram: [
        lambda: dw.LinearProgram(A_ub=[[1.0, 2.0], [3.0, 1.0]], b_ub=[8.0, 9.0]),
        lambda: dw.LinearProgram(A_eq=[[1.0] * 4], b_eq=[2.0], bounds=[(0, 1)] * 3 + [(-1, None)]),
        lambda: _program(12, 70),
    ],
    dw.LinfBall: [lambda: dw.LinfBall(4, radius=2.0), lambda: dw.LinfBall((10, 12), radius=0.1)],
    dw.PartitionMatroidPolytope: [
        lambda: dw.PartitionMatroidPolytope([[0, 1, 2], [3, 4], [5]], [2, 1, 1]),
        lambda: dw.PartitionMatroidPolytope([0, 0, 1, 1, 1], [1, 2], kind="independent"),
        lambda: dw.PartitionMatroidPolytope(np.arange(90) % 11, 3),
    ],
    dw.MatchingPolytope: [
        lambda: dw.MatchingPolytope([(0, 1), (1, 2), (2, 3), (3, 0), (0, 1)]),
        lambda: dw.MatchingPolytope([(0, 1), (1, 2), (2, 0), (3, 4), (5, 6)], k=2),
    ],
    dw.Permutahedron: [
        lambda: dw.Permutahedron([1.0, -1.0, 0.0, 0.0, 0.0]),
        lambda: dw.Permutahedron(np.linspace(0.0, 1.0, 60) ** 3),
    ],
    dw.ProductDomain: [
        lambda: dw.ProductDomain([dw.L1Ball(3), dw.L2Ball((2, 2), radius=2.0)]),
        lambda: dw.ProductDomain([dw.Simplex(30), dw.BirkhoffPolytope(5)]),
        lambda: dw.ProductDomain([_program(8, 5), dw.Permutahedron(4)]),
        lambda: dw.ProductDomain(
            [dw.MatchingPolytope(nx.cycle_graph(5)), dw.TransportPolytope([2.0, 1.0], [1.5, 1.5])]
        ),
    ],
    dw.Simplex: [lambda: dw.Simplex(4, radius=2.0), lambda: dw.Simplex((9, 10))],
    dw.SpanningTreePolytope: [
        lambda: dw.SpanningTreePolytope(4),
        lambda: dw.SpanningTreePolytope(9),
    ],
    dw.Spectrahedron: [lambda: dw.Spectrahedron(3, radius=2.0), lambda: dw.Spectrahedron(12)],
    dw.TraceNormBall: [
        lambda: dw.TraceNormBall((3, 4), radius=2.0),
        lambda: dw.TraceNormBall((3, 4), radius=2.0, representation="factored"),
        lambda: dw.TraceNormBall((30, 20), representation="factored"),
        *(on_device("torch") if HAS_TORCH else []),
    ],
    dw.TransportPolytope: [
        lambda: dw.TransportPolytope([3.0, 1.0], [1.0, 2.0, 1.0]),
        lambda: dw.TransportPolytope(np.arange(1.0, 9.0), np.full(9, 4.0)),
    ],
    dw.UniformMatroidPolytope: [
        lambda: dw.UniformMatroidPolytope(6, 2),
        lambda: dw.UniformMatroidPolytope(5, 3, kind="independent"),
        lambda: dw.UniformMatroidPolytope(90, 40),
    ],
}

#: A kind of set and the number of its instance, for `made`.
CASES = [
    pytest.param(kind, number, id=f"{kind.__name__}-{number}")
    for kind, makers in DOMAIN_CASES.items()
    for number in range(len(makers))
]


@functools.cache
def made(kind: type[Domain], number: int) -> Domain:
    """A set that several tests share: sets do not change. Below 0: a ball on a GPU."""
    return DOMAIN_CASES[kind][number]() if number >= 0 else on_device("cuda")[number]()
