"""`minimise` beside SciPy's solvers on three sets, and on the example in FrankWolfe.jl's README.

Run as `python -m benchmarks.minimise`. SciPy is told the constraints, `minimise` only the LMO.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, minimize
from threadpoolctl import threadpool_limits

import driftwolfe as dw
from benchmarks.measure import medians, race
from driftwolfe.oracles.minimise import METHODS
from driftwolfe.terminal import write_table

#: Asked of `minimise`, a bound that it proves; SciPy has its default tolerances.
GAP = 1e-6
#: What FrankWolfe.jl prints in its README: |p|^2 on the simplex from (1, 0, 0), to a gap of 1e-7.
PUBLISHED = "FrankWolfe.jl (its README), vanilla, adaptive steps", 24


class Problem(NamedTuple):
    """A function with its gradient, a set, and the same set as A x = b, 0 <= x <= upper."""

    name: str
    f: Callable[[Any], tuple[float, Any]]
    domain: dw.Domain
    A: Any
    b: Any
    upper: float


def problems(seed: int = 0) -> Iterator[Problem]:
    """Logistic regression, a quadratic function of condition 1e4, and travel times."""
    rng = np.random.default_rng(seed)
    features, labels = rng.normal(size=(300, 100)), rng.choice([-1.0, 1.0], 300)

    def logistic(x: Any) -> tuple[float, Any]:
        margins = 20.0 * labels * (features @ x)
        slopes = -20.0 * labels * np.exp(-np.logaddexp(0.0, margins))
        return np.logaddexp(0.0, -margins).sum(), features.T @ slopes

    ones = np.ones((1, 100))
    yield Problem("simplex, 100: logistic loss", logistic, dw.Simplex(100), ones, [1.0], 1.0)

    bent = np.linalg.qr(rng.normal(size=(64, 64)))[0] * np.logspace(0, -2, 64)[:, None]
    goal = bent @ rng.random(64)

    def quadratic(x: Any) -> tuple[float, Any]:
        away = bent @ x.ravel() - goal
        return 0.5 * away @ away, (bent.T @ away).reshape(x.shape)

    eye, row = np.eye(8), np.ones((1, 8))
    sums = np.vstack((np.kron(eye, row), np.kron(row, eye)))[:-1]
    yield Problem("Birkhoff, 8 x 8: quadratic", quadratic, dw.BirkhoffPolytope(8), sums, 1.0, 1.0)

    places = [(i, j) for i in range(6) for j in range(6)]
    roads = [(v, (v[0] + a, v[1] + b)) for v in places for a, b in ((0, 1), (1, 0))]
    roads = [(v, w) for v, w in roads if w in places]
    free, slowing = rng.uniform(1, 5, len(roads)), 10.0 ** rng.uniform(0, 3, len(roads))
    balance = np.array([[(v == p) * 1.0 - (w == p) for v, w in roads] for p in places])
    supply = np.array([(p == (0, 0)) * 1.0 - (p == (5, 5)) for p in places])

    def travel(x: Any) -> tuple[float, Any]:
        return free @ x + slowing @ x**5, free + 5 * slowing * x**4

    town = dw.FlowPolytope(roads, (0, 0), (5, 5))
    yield Problem("flows, 60 roads: travel time", travel, town, balance[:-1], supply[:-1], 1.0)


def measured(problem: Problem) -> Iterator[list[str]]:
    """A row for each solver: times and gradients over those of `minimise`, and what was reached."""
    calls = [0]
    shape, start = problem.domain.shape, problem.domain.origin().ravel()

    def counted(x: Any) -> tuple[float, Any]:
        calls[0] += 1
        value, gradient = problem.f(x.reshape(shape))
        return value, gradient.reshape(x.shape)

    def by_scipy(method: str) -> Any:
        within = LinearConstraint(problem.A, problem.b, problem.b)
        bounds, options = Bounds(0.0, problem.upper), {"maxiter": 2000}
        told = {"jac": True, "method": method, "bounds": bounds, "constraints": within}
        with warnings.catch_warnings(action="ignore"):
            return minimize(counted, start, options=options, **told)

    solvers: dict[str, Callable[[], Any]] = {
        "`minimise`": lambda: dw.minimise(counted, problem.domain, GAP),
        '`minimise`, `method="blended"`': lambda: dw.minimise(
            counted, problem.domain, GAP, method="blended"
        ),
        "SciPy, `SLSQP`": lambda: by_scipy("SLSQP"),
        "SciPy, `trust-constr`": lambda: by_scipy("trust-constr"),
    }
    found, gradients = {}, {}
    for name, solver in solvers.items():
        calls[0] = 0
        found[name], gradients[name] = solver(), calls[0]
    times = medians(race(solvers, 3, warm_up=False))
    first, *_ = solvers
    bound = found[first].value - found[first].gap
    for name, end in found.items():
        x = (end.point if hasattr(end, "point") else end.x).ravel()
        outside = max(np.abs(problem.A @ x - problem.b).max(), -x.min(), (x - problem.upper).max())
        value = end.value if hasattr(end, "value") else end.fun
        lmo_calls = str(getattr(end, "lmo_calls", ""))
        yield [
            *(problem.name if name == first else "", name, f"{times[name] / times[first]:.1f}"),
            *(str(gradients[name]), lmo_calls, f"{value - bound:.1e}", f"{max(outside, 0.0):.0e}"),
        ]


def published() -> Iterator[list[str]]:
    """LMO calls on FrankWolfe.jl's example, as its README prints them and ours."""
    yield [PUBLISHED[0], str(PUBLISHED[1])]
    for method in METHODS[1:]:
        best = dw.minimise(
            lambda p: (p @ p, 2.0 * p), dw.Simplex(3), 1e-7, method=method, start=[1.0, 0.0, 0.0]
        )
        yield [f"`minimise`, {method}", str(best.lmo_calls)]


if __name__ == "__main__":
    with threadpool_limits(1):
        table = [row for problem in problems() for row in measured(problem)]
    heads = ["set and function", "solver", "time / ours", "gradients", "LMO calls"]
    print(write_table([*heads, "value above a proved bound", "off the set"], table, left=2))
    print()
    print(write_table(["norm on the simplex of 3, gap 1e-7", "LMO calls"], published()))
