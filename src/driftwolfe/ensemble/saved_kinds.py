"""How the parts of ensembles are written to files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.ensemble.even_descent import Job
from driftwolfe.ensemble.gradient_sum import GradientSum
from driftwolfe.ensemble.leaders import Leader
from driftwolfe.oracles.frank_wolfe import Memory
from driftwolfe.points.devices import HOST, Device
from driftwolfe.points.saved_kinds import Mover, is_point, point_kinds
from driftwolfe.points.shelf import Shelf
from driftwolfe.storage.state import require
from driftwolfe.storage.tree import Kind


def ensemble_kinds(device: Device = HOST) -> dict[str, Kind]:
    """Points, and what experts keep beside them; what is read goes to that device."""
    move = Mover(device)

    def gradient_sum(rows: Any, cols: Any, values: Any, rest: Any) -> GradientSum:
        _check_gradient_sum(rows, cols, values, rest)
        rows, cols, values = ([move(each) for each in part] for part in (rows, cols, values))
        return GradientSum(rows, cols, values, rest)

    sums = Kind(GradientSum, ("rows", "cols", "values", "rest"), gradient_sum)
    leader = ("epoch", "x", "anchor", "gradients", "rounds", "eta", "memory")
    return point_kinds(move) | {
        "gradient sum": sums,
        "job": Kind(Job, Job._fields, _job),
        "leader": Kind(Leader, leader, _leader),
        "memory": Kind(Memory, Memory._fields, _memory),
    }


def _check_gradient_sum(rows: Any, cols: Any, values: Any, rest: Any) -> None:
    kinds = ((rows, np.int64), (cols, np.int64), (values, np.float64))
    lists = all(
        isinstance(part, list)
        and all(isinstance(each, np.ndarray) and each.dtype == kind for each in part)
        for part, kind in kinds
    )
    require(lists and (rest is None or is_point(rest)), "sums of gradients")
    sizes = [[each.shape for each in part] for part, _ in kinds]
    require(sizes[0] == sizes[1] == sizes[2], "sums of gradients")
    require(all(len(size) == 1 for size in sizes[0]), "sums of gradients")
    require(all(map(is_point, values)), "sums of gradients")


def _job(x: Any, y: Any, calls: Any, running: Any) -> Job:
    fits = is_point(x) and is_point(y) and type(calls) is int and type(running) is bool
    require(fits and calls >= 0, "projections under way")
    return Job(x, y, calls, running)


def _leader(
    epoch: Any, x: Any, anchor: Any, gradients: Any, rounds: Any, eta: Any, memory: Any
) -> Leader:
    numbers = type(epoch) is int and type(rounds) is int and 0 <= rounds < epoch
    points = is_point(x) and is_point(anchor) and (gradients is None or is_point(gradients))
    require(numbers and points and type(eta) is float and type(memory) is Memory, "experts")
    require(math.isfinite(eta), "experts")
    return Leader(epoch, x, anchor, gradients, rounds, eta, memory)


def _memory(scalars: Any, hint: Any, shelf: Any, length: Any) -> Memory:
    three = scalars is None or (isinstance(scalars, tuple) and len(scalars) == 3)
    floats = [*(scalars or ()), length, *(() if hint is None else (hint,))] if three else [None]
    require(all(type(each) is float and math.isfinite(each) for each in floats), "memories")
    require(shelf is None or type(shelf) is Shelf, "memories")
    return Memory(scalars, hint, shelf, length)
