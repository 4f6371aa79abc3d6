"""Compiled loops over points, and over graphs."""

from __future__ import annotations

import heapq
import math

import numpy as np

from driftwolfe.points.compiling import (
    ANSWER,
    NUMBER,
    NUMBERS,
    PLACES,
    STACK,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
)


@jit(fastmath={"reassoc", "contract", "nsz", "nnan"})
def _largest_and_sum(values, less):
    """Return the largest value, and the sum of all, each less a number; values are numbers."""
    top, total = values[0], 0.0
    for j in range(values.size):
        top = values[j] if values[j] > top else top
        total += values[j] - less
    return top, total


@jit(TABLE, NUMBER, ANSWER)
def nearest_rows(values, total, ball):
    """Return the nearest rows >= 0 of this sum; for a ball, of at most this sum of absolute values.

    They are what exceeds a threshold. That of any of the entries is a lower bound: at first that of all, or of the
    largest alone, then that of those kept so far.
    """
    nearest = np.empty((values.shape[0], values.shape[1]))
    sizes, left = np.empty(values.shape[1]), np.empty(values.shape[1])
    for i in range(values.shape[0]):
        row, found = values[i], nearest[i]
        for j in range(sizes.size):
            found[j] = row[j]
            sizes[j] = abs(row[j]) if ball else row[j]
        top, whole = _largest_and_sum(sizes, 0.0)
        if ball and whole <= total:
            continue
        bound = (_largest_and_sum(sizes, top)[1] - total) / sizes.size
        bound = bound if bound > -total else -total
        count, within, kept, theta = 0, 0.0, -1, 0.0
        for j in range(sizes.size):
            value = sizes[j] - top
            if value >= bound:
                left[count] = value
                within += value
                count += 1
                mean = (within - total) / count
                bound = mean if mean > bound else bound
        while kept != count:
            count = count if kept < 0 else kept
            within, kept = 0.0, 0
            for j in range(count):
                within += left[j]
            theta = (within - total) / count
            for j in range(count):
                value = left[j]
                left[kept] = value  # written over unless it counts: faster than to ask first
                kept += value > theta
        for j in range(sizes.size):
            # In this order, not less top + theta: sizes may be huge beside theta.
            size = (sizes[j] - top) - theta
            size = size if size > 0.0 else 0.0
            found[j] = 0.0 - size if ball and row[j] < 0.0 else size  # no -0
    return nearest


@jit(TABLE, NUMBER)
def clipped_rows(rows, radius):
    """Return the rows, those that are longer shortened to that length."""
    found = np.empty((rows.shape[0], rows.shape[1]))
    for i in range(rows.shape[0]):
        squared = 0.0
        for j in range(rows.shape[1]):
            squared += rows[i, j] * rows[i, j]
        length = math.sqrt(squared)
        if not 1e-150 < length < 1e150:  # squares have under- or overflowed, or soon will
            largest, squared = 0.0, 0.0
            for j in range(rows.shape[1]):
                largest = abs(rows[i, j]) if not abs(rows[i, j]) <= largest else largest
            for j in range(rows.shape[1] if largest > 0.0 else 0):
                squared += (rows[i, j] / largest) * (rows[i, j] / largest)
            length = largest * math.sqrt(squared)
        factor = radius / length if length > radius else 1.0
        for j in range(rows.shape[1]):
            found[i, j] = factor * rows[i, j]
    return found


@fast_jit(STACK)
def sums_of_row_norms(matrices):
    """Return the sum of the Euclidean norms of its rows for every matrix of a stack."""
    sums = np.empty(matrices.shape[0])
    for i in range(matrices.shape[0]):
        sums[i] = 0.0
        for row in range(matrices.shape[1]):
            squared = 0.0
            for j in range(matrices.shape[2]):
                squared += matrices[i, row, j] * matrices[i, row, j]
            sums[i] += math.sqrt(squared)
    return sums


@jit()
def _root(parents, vertex):
    while parents[vertex] != vertex:
        parents[vertex] = parents[parents[vertex]]
        vertex = parents[vertex]
    return vertex


@jit(PLACES, PLACES, PLACES, WHOLE)
def spanning_tree(order, tails, heads, n_vertices):
    """Return the indicator of the tree that takes each edge in `order` that closes no cycle."""
    parents = np.arange(n_vertices)
    sizes = np.ones(n_vertices, np.int64)
    tree = np.zeros(order.size)
    missing = n_vertices - 1
    for edge in order:
        one = _root(parents, tails[edge])
        other = _root(parents, heads[edge])
        if one == other:
            continue
        if sizes[one] < sizes[other]:
            one, other = other, one
        parents[other] = one
        sizes[one] += sizes[other]
        tree[edge] = 1.0
        missing -= 1
        if missing == 0:
            break
    return tree


@jit(NUMBERS, PLACES, PLACES, WHOLE, WHOLE, WHOLE)
def shortest_path(costs, tails, heads, n_vertices, source, sink):
    """Return the indicator of a cheapest path; edges are sorted topologically, all on ways from the source."""
    distances = np.zeros(n_vertices)
    arrivals = np.full(n_vertices, -1)
    for edge in range(costs.size):
        through = distances[tails[edge]] + costs[edge]
        head = heads[edge]
        if arrivals[head] < 0 or through < distances[head]:
            distances[head] = through
            arrivals[head] = edge
    path = np.zeros(costs.size)
    vertex = sink
    while vertex != source:
        edge = arrivals[vertex]
        path[edge] = 1.0
        vertex = tails[edge]
    return path


@jit(NUMBERS, PLACES, PLACES, PLACES, PLACES, PLACES, NUMBERS, WHOLE)
def tree_flow(costs, tails, heads, before, rows, goals, amounts, n_vertices):
    """Return the flow of amounts to goals, each on a tree: row after row, the vertex before each vertex."""
    arrivals = np.full(before.size, -1)
    for edge in range(costs.size):
        for place in range(heads[edge], before.size, n_vertices):
            if before[place] == tails[edge]:
                best = arrivals[place]
                if best < 0 or costs[edge] < costs[best]:  # of parallel edges, the cheapest
                    arrivals[place] = edge
    flow = np.zeros(costs.size)
    for k in range(amounts.size):
        edge = arrivals[rows[k] * n_vertices + goals[k]]
        while edge >= 0:
            flow[edge] += amounts[k]
            edge = arrivals[rows[k] * n_vertices + tails[edge]]
    return flow


@jit(NUMBERS, PLACES, PLACES, WHOLE)
def reduced_costs(costs, tails, heads, n_vertices):
    """Return costs of the same cheapest flows, none negative (Bellman and Ford), or as given if a cycle is."""
    potentials, before = np.zeros(n_vertices), np.full(n_vertices, -1)
    passes, look, settled = 0, 1, False
    while not settled:
        settled = True
        for edge in range(costs.size):
            through = potentials[tails[edge]] + costs[edge]
            if through < potentials[heads[edge]] - 1e-12:
                potentials[heads[edge]], before[heads[edge]] = through, tails[edge]
                settled = False
        passes += 1
        if passes == look:  # whether arrivals run in a circle, after 1, 2, 4, ... passes
            look, seen = 2 * look, np.full(n_vertices, -1)
            for first in range(n_vertices):
                vertex = first
                while vertex >= 0 and seen[vertex] < 0:
                    seen[vertex] = first
                    vertex = before[vertex]
                if vertex >= 0 and seen[vertex] == first:
                    return costs
    return costs + potentials[tails] - potentials[heads]


@jit(NUMBERS, PLACES, PLACES, NUMBERS, NUMBERS, PLACES, PLACES, NUMBER)
def cheapest_flow(costs, tails, heads, limits, supplies, starts, touching, rounding):
    """Return a cheapest flow within limits, by successive shortest paths; no numbers where there is none.

    Edges of negative cost are full at first; so no residual edge has a negative cost, and with `potentials` none
    ever has. `touching` has the edges at each vertex, from `starts` on.
    """
    flow, excess = np.zeros(costs.size), supplies.copy()
    for edge in range(costs.size):
        if costs[edge] < 0.0:
            flow[edge] = limits[edge]
            excess[tails[edge]] -= limits[edge]
            excess[heads[edge]] += limits[edge]
    potentials, arrivals = np.zeros(supplies.size), np.full(supplies.size, -1)
    lengths = np.full(supplies.size, np.inf)
    for source in range(supplies.size):
        while excess[source] > rounding:
            # Dijkstra's method, as far as the nearest vertex that lacks flow.
            lengths[source], seen, heap, goal = 0.0, [source], [(0.0, source)], -1
            while heap and goal < 0:
                length, vertex = heapq.heappop(heap)
                if length > lengths[vertex]:
                    continue
                if excess[vertex] < -rounding:
                    goal = vertex
                for k in range(starts[vertex], starts[vertex + 1] if goal < 0 else 0):
                    edge = touching[k]
                    if tails[edge] == vertex:
                        other, cost, room = heads[edge], costs[edge], limits[edge] - flow[edge]
                    else:
                        other, cost, room = tails[edge], -costs[edge], flow[edge]
                    cost += potentials[vertex] - potentials[other]
                    through = length + (cost if cost > 0.0 else 0.0)
                    if room > rounding and through < lengths[other]:
                        if lengths[other] == np.inf:
                            seen.append(other)
                        lengths[other], arrivals[other] = through, edge
                        heapq.heappush(heap, (through, other))
            if goal < 0:
                return np.empty(0)
            reach = lengths[goal]
            for vertex in seen:
                if lengths[vertex] < reach:
                    potentials[vertex] += lengths[vertex] - reach
                lengths[vertex] = np.inf
            amount = min(excess[source], -excess[goal])
            for pushing in range(2):  # first find how much, then move it
                vertex = goal
                while vertex != source:
                    edge = arrivals[vertex]
                    ahead = heads[edge] == vertex
                    if pushing:
                        flow[edge] += amount if ahead else -amount
                    else:
                        amount = min(amount, limits[edge] - flow[edge] if ahead else flow[edge])
                    vertex = tails[edge] if ahead else heads[edge]
            excess[source] -= amount
            excess[goal] += amount
    for edge in range(costs.size):
        if flow[edge] <= rounding:
            flow[edge] = 0.0
        elif flow[edge] >= limits[edge] - rounding:
            flow[edge] = limits[edge]
    return flow
