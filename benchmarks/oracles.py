"""What an infeasible projection costs: each method on five sets. Run as `python -m benchmarks.oracles`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from driftwolfe import domains
from driftwolfe.domains import Domain
from driftwolfe.oracles import infeasible_projection
from driftwolfe.oracles.methods import METHODS
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.kinds import Point
from driftwolfe.terminal import write_table

#: Squared distance allowed, in units of R^2.
TOLERANCE = 0.01
#: Calls after which a method is cut off in the table.
CALL_LIMIT = 2000


class Row(NamedTuple):
    """One method on one set; `error` is ||x' - P(y)|| / ||y - P(y)||, P the true projection."""

    problem: str
    method: str
    lmo_calls: int
    milliseconds: float
    error: float
    converged: bool


def problems(seed: int = 0) -> Iterator[tuple[str, Domain, Point, Point]]:
    """Five sets, each with a feasible x and a gradient step y away from it."""
    rng = np.random.default_rng(seed)
    dense: dict[str, Domain] = {
        "L1 ball, 1,000 coordinates": domains.L1Ball(1000),
        "Birkhoff polytope, 20 x 20": domains.BirkhoffPolytope(20),
        "spanning trees, 25 vertices": domains.SpanningTreePolytope(25),
        "flows, 6 layers of 8": domains.FlowPolytope(_layered_graph(6, 8), 0, 49),
    }
    for name, domain in dense.items():
        step = rng.standard_normal(domain.shape)
        x = 0.5 * domain.origin() + 0.5 * domain.lmo(rng.standard_normal(domain.shape))
        yield name, domain, x, x + step * (domain.radius / norm(step))
    # The size of MovieLens 100K: a rank-20 point and 5,000 stored gradient entries.
    m, n, rank, stored = 943, 1682, 20, 5000
    ball = domains.TraceNormBall((m, n), radius=1e4)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (m, n))
    point = FactoredMatrix(U, np.full(rank, 0.9 * ball.scale / rank), V)
    entries = FactoredMatrix.from_entries(
        (m, n), rng.integers(0, m, stored), rng.integers(0, n, stored), rng.standard_normal(stored)
    )
    moved = point + entries * (0.2 * ball.radius / entries.norm())
    yield "trace norm, 943 x 1,682", ball, point, moved


def _layered_graph(layers: int, width: int) -> list[tuple[int, int]]:
    """Edges from vertex 0 to the first layer, from layer to layer, and to the last vertex."""
    ranks = [[0], *(range(1 + i * width, 1 + (i + 1) * width) for i in range(layers))]
    ranks.append([1 + layers * width])
    return [(a, b) for one, other in pairwise(ranks) for a in one for b in other]


def oracle_table(repeats: int = 3) -> Iterator[Row]:
    """Measure every method that applies to each problem, on one thread; medians of `repeats`."""
    with threadpool_limits(1):
        for name, domain, x, y in problems():
            if domain.can("project"):
                nearest = domain.project(y)
            else:
                tiny = 1e-14 * domain.radius**2
                precise = infeasible_projection(domain, x, y, tiny, "corrective", accuracy=1e-9)
                nearest = precise.feasible
            for method in METHODS:
                if method == "exact" and not domain.can("project"):
                    continue
                if method == "block" and not domain.rank_one_atoms:
                    continue
                if method == "separation":  # which calls no LMO, and is for sets without one
                    continue
                seconds = []
                for _ in range(repeats):
                    started = time.perf_counter()
                    result = infeasible_projection(
                        domain, x, y, TOLERANCE * domain.radius**2, method, max_lmo_calls=CALL_LIMIT
                    )
                    seconds.append(time.perf_counter() - started)
                median = 1e3 * float(np.median(seconds))
                error = norm(result.feasible - nearest) / norm(y - nearest)
                yield Row(name, method, result.lmo_calls, median, error, result.converged)


def as_markdown(rows: list[Row]) -> str:
    """The rows as a Markdown table; each set is named once."""
    heads = ["set", "method", "LMO calls", "ms", "‖x′ − P(y)‖ / ‖y − P(y)‖"]
    cells, last = [], ""
    for name, method, lmo_calls, milliseconds, error, converged in rows:
        calls = f"{lmo_calls:,}" + ("" if converged else " (cut off)")
        first = name if name != last else ""
        cells.append([first, f"`{method}`", calls, f"{milliseconds:,.1f}", f"{error:.4f}"])
        last = name
    return write_table(heads, cells, left=2)


if __name__ == "__main__":
    print(as_markdown(list(tqdm(oracle_table(), unit="row", total=18, disable=None, leave=False))))
