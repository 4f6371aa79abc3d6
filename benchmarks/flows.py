"""The LMO of flows through two real road networks, beside networkx and HiGHS: `python -m benchmarks.flows`.

Needs the folder `networks` in `$DRIFTWOLFE_DATA`. All answers are compared by what they cost.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from threadpoolctl import threadpool_limits

import driftwolfe as dw
from benchmarks.measure import medians, race
from driftwolfe.terminal import write_table


def table(name: str) -> list[list[str]]:
    """The rows of a file, without its heads."""
    path = Path(os.environ.get("DRIFTWOLFE_DATA", "")) / "networks" / name
    if not path.exists():
        raise SystemExit(
            f"no {path}: DRIFTWOLFE_DATA must name a folder that holds networks/{name}"
        )
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return list(csv.reader(text.splitlines()))[1:]


def networks() -> Iterator[tuple[str, list[Any], dict[Any, float], Any]]:
    """Arcs, demands and prices of both."""
    rows = table("sioux_falls_links.csv")
    trips = table("sioux_falls_demand.csv")
    demands = {(int(a), int(b)): float(amount) for a, b, amount in trips}
    prices = np.array([float(row[3]) for row in rows])
    yield "Sioux Falls, 24 origins", [(int(a), int(b)) for a, b, *_ in rows], demands, prices
    rows = table("coquimbo_links.csv.gz")
    arcs = [(int(a), int(b)) for a, b, *_ in rows]
    inside = max(nx.strongly_connected_components(nx.DiGraph(arcs)), key=len)
    ends = np.random.default_rng(0).choice(sorted(inside), 2, replace=False)
    prices = np.array([float(row[2]) + 1.0 for row in rows])
    yield "Coquimbo, 34,538 arcs", arcs, {tuple(map(int, ends)): 1.0}, prices


def by_us(domain: Any, prices: Any) -> float:
    """The cost of an answer of the LMO."""
    return prices @ domain.lmo(prices)


def by_networkx(graph: Any, demands: dict[Any, float]) -> float:
    """The cost of shortest paths, one tree per origin."""
    cost = 0.0
    for origin in {origin for origin, _ in demands}:
        lengths = nx.single_source_dijkstra_path_length(graph, origin)
        cost += sum(n * lengths[goal] for (o, goal), n in demands.items() if o == origin)
    return cost


def by_simplex(arcs: list[Any], prices: Any, demands: dict[Any, float]) -> float:
    """The cost of a minimum-cost flow for each origin by networkx, in whole numbers."""
    cost = 0
    for origin in {origin for origin, _ in demands}:
        goals = {goal: round(n) for (o, goal), n in demands.items() if o == origin}
        graph, total = nx.MultiDiGraph(), sum(goals.values())
        graph.add_node(origin, demand=-total)
        for goal, amount in goals.items():
            graph.add_node(goal, demand=amount)
        graph.add_edges_from(
            (*arc, {"weight": round(1e6 * price), "capacity": total})
            for arc, price in zip(arcs, prices, strict=True)
        )
        cost += nx.network_simplex(graph)[0]
    return cost / 1e6


def by_highs(domain: Any, prices: Any) -> float:
    """The cost of the linear program of all commodities, by SciPy's `linprog`."""
    net = domain._network
    rows = np.tile(np.arange(net.tails.size), 2)
    signs = np.repeat([1.0, -1.0], net.tails.size)
    balance = sparse.csr_array((signs, (np.concatenate((net.tails, net.heads)), rows)))
    most = net.ways * net.totals[:, None]
    told = {"A_eq": sparse.block_diag([balance] * len(most)), "b_eq": net.supplies.ravel()}
    bounds = np.stack((np.zeros(most.size), most.ravel()), axis=1)
    return linprog(np.tile(prices, len(most)), bounds=bounds, method="highs-ds", **told).fun


def lmo_table(repeats: int = 3) -> Iterator[list[str]]:
    """Times over ours, with prices >= 0 and with some that are negative."""
    rng = np.random.default_rng(1)
    for name, arcs, demands, times in networks():
        domain = dw.FlowPolytope(arcs, demands=demands)
        for kind, noise in ((">= 0", 0.0), ("some < 0", 0.7)):
            prices = times * (1.0 + noise * rng.standard_normal(times.size))
            jobs: dict[str, Any] = {"ours": partial(by_us, domain, prices)}
            jobs["`linprog`"] = partial(by_highs, domain, prices)
            if noise:
                used = np.flatnonzero(domain._network.used)  # what else runs in circles is no route
                jobs["networkx"] = partial(
                    by_simplex, [arcs[i] for i in used], prices[used], demands
                )
            else:
                graph = nx.MultiDiGraph()
                graph.add_weighted_edges_from(
                    (*arc, p) for arc, p in zip(arcs, prices, strict=True)
                )
                jobs["networkx"] = partial(by_networkx, graph, demands)
            costs = [job() for job in jobs.values()]
            if not np.allclose(costs, costs[0], rtol=1e-4):
                raise RuntimeError(f"{name}: costs differ, {costs}")
            spent = medians(race(jobs, repeats, warm_up=False))
            ratios = [f"{spent[key] / spent['ours']:,.0f}" for key in ("networkx", "`linprog`")]
            yield [name, kind, f"{1e3 * spent['ours']:.2f}", *ratios]


if __name__ == "__main__":
    with threadpool_limits(1):
        heads = ["network", "prices", "LMO, ms", "networkx / ours", "`linprog` / ours"]
        print(write_table(heads, list(lmo_table()), left=2))
