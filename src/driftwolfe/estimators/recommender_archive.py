"""Saved states of `MatrixCompleter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.recommender_experts import PoolSettings, RatingPool
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots
from driftwolfe.estimators.recommender_tables import ITEM_BITS, LAST_ITEM, Older, RecentSteps
from driftwolfe.points.kinds import Array
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, require

#: Bound of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
#: Bound of the weights of rows, which fall with the root of the number of ratings at most.
LARGEST_METRIC = 1e20
#: What holds exactly may be off by that share.
ROUNDING = 1e-6

SETTINGS = {
    "settings": Field(dict),
    "experts": Field(list),
    "first": Field(int, least=0),
    "older": Field(dict),
    "next_projection": Field(int),
    "face": Field(dict),
}


def _fields(older: Iterable[str]) -> dict[str, Field]:
    """All arrays of a file; `older` names the experts whose older steps it holds."""
    real, whole, bounds = np.float64, np.int64, (-LARGEST, LARGEST)
    fields = {
        "scale.clock": Field(whole, (1,), 0, below=1 << 62),
        "scale.numbers": Field(real, (4,), *bounds),
        "low.spreads": Field(real, ("low", "rank"), 0.0, LARGEST),
        "low.radii": Field(real, ("low",), 0.0, LARGEST),
        "low.norms": Field(real, ("low",)),
        "slots.means": Field(real, ("experts",)),
        "slots.squares": Field(real, ("experts",), 0.0),
        "slots.weights": Field(real, ("experts",), 0.0),
        "slots.steps": Field(real, ("experts",)),
        "slots.starts": Field(whole, ("experts",), 0),
        "slots.levels": Field(whole, ("experts",)),
        "slots.low": Field(whole, ("experts",)),
    }
    for side in ("users", "items"):
        fields |= {
            f"{side}.counts": Field(whole, (side,), 1),
            f"{side}.touched": Field(whole, (side,), 0),
            f"{side}.metric": Field(real, (side,), 1.0 / LARGEST_METRIC, LARGEST_METRIC),
            f"{side}.biases": Field(real, (side, "experts")),
            f"{side}.squares": Field(real, (side, "experts"), 0.0),
            f"{side}.rows": Field(real, (side, "low rank")),
            f"ids.{side}": Field(np.uint8, (None,)),
        }
        fields |= {f"older.{k}.{side}": Field(real, (None, f"older{k}"), *bounds) for k in older}
    return fields | {
        "recent.rows": Field(whole, ("recent",), 0, below="users"),
        "recent.cols": Field(whole, ("recent",), 0, below="items"),
        "recent.steps": Field(real, ("recent", "low"), *bounds),
        "seen.pairs": Field(whole, (None,), 0, newer=True),
    }


def pool_state(pool: RatingPool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return settings and arrays that make up a pool; spare room is left out."""
    groups = {name: getattr(pool, name)._asdict() for name in ("slots", "low", "scale")}
    for name, grown in (("users", pool.users), ("items", pool.items)):
        groups[name] = {part: table[: grown.size] for part, table in grown.side._asdict().items()}
    recent, parts = pool.recent, ("rows", "cols", "steps")
    groups["recent"] = {part: getattr(recent, part)[: recent.size] for part in parts}
    for k, older in pool.older.items():
        groups[f"older.{k}"] = {"users": older.users, "items": older.items}
    groups["seen"] = {"pairs": pool.seen.pairs()}
    settings = {
        "settings": asdict(pool.settings),
        "experts": [list(expert) for expert in pool.experts],
        "first": recent.first,
        "older": {str(k): older.start for k, older in pool.older.items()},
        "next_projection": pool.next_projection,
    }
    arrays = {f"{name}.{part}": held[part] for name, held in groups.items() for part in held}
    return settings, arrays


def check_archive(archive: Archive) -> None:
    """Refuse a file whose settings or arrays, or types and shapes of these, do not fit."""
    settings, kind = archive.settings, archive.kind
    check_fields(SETTINGS, settings, kind)
    older, rank = settings["older"], settings["settings"].get("rank")
    require(all(k.isascii() and k.isdigit() for k in older), "older steps")
    check_fields(dict.fromkeys(older, Field(int, least=0)), older, kind)
    experts = len(settings["experts"])
    check_fields(_fields(older), archive.arrays, kind, experts=experts, rank=rank)


def pool_from_state(
    options: PoolSettings, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RatingPool:
    """Make a pool of these options again, of what `check_archive` has accepted."""
    groups: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        group, _, part = name.rpartition(".")
        groups.setdefault(group, {})[part] = array
    pool, held = RatingPool(options), groups["recent"]
    pool.slots, pool.low = Slots(**groups["slots"]), Interactions(**groups["low"])
    pool.scale, pool.next_projection = Scale(**groups["scale"]), settings["next_projection"]
    for name, grown in (("users", pool.users), ("items", pool.items)):
        grown.side = Side(**groups[name])
        grown.size = grown.side.counts.size
    pool.recent = RecentSteps(held["rows"].size, settings["first"], **held)
    older = settings["older"].items()
    pool.older = {int(k): Older(start, **groups[f"older.{k}"]) for k, start in older}
    pool.seen.runs = tuple(groups.get("seen", {}).values())
    pool.experts = options.experts(pool.t)
    require(settings["experts"] == [list(expert) for expert in pool.experts], "experts")
    _check_pool(pool)
    for e in np.flatnonzero(pool.slots.low >= 0).tolist():
        _check_interactions(pool, e)
    return pool


def _check_pool(pool: RatingPool) -> None:
    """What must agree in every pool: experts and options, counts and time, decisions and their sets."""
    slots, experts, recent, t = pool.slots, pool.experts, pool.recent, pool.t
    interacting = np.array([expert.radius > 0 for expert in experts])
    low = np.where(interacting, interacting.cumsum() - 1, -1)
    require(slots.steps.tolist() == [expert.step for expert in experts], "steps of experts")
    require(slots.levels.tolist() == [expert.level for expert in experts], "levels of experts")
    require(np.array_equal(slots.low, low), "experts with interactions")
    require(pool.low.radii.size == interacting.sum(), "experts with interactions")
    require((slots.starts <= t).all(), "starts of experts")
    require(abs(float(slots.weights.sum()) - 1.0) < 1e-6, "weights of experts")
    require(recent.first + recent.size == t, "recent ratings")
    require(t < pool.next_projection <= t + pool.block(), "times of projections")
    require(all(k < pool.low.radii.size for k in pool.older), "older steps")
    pairs = np.concatenate([np.zeros(0, np.int64), *pool.seen.runs])
    require(pairs.size <= (recent.first if pool.settings.keep_seen else 0), "rated pairs")
    users, items = pairs >> ITEM_BITS, pairs & LAST_ITEM
    known = (users < pool.users.size).all() and (items < pool.items.size).all()
    require(known and (np.diff(pairs) > 0).all(), "rated pairs")
    error, lowest, highest, last = pool.scale.numbers.tolist()
    require(error >= 0.0 and lowest <= last <= highest, "ratings")
    require((slots.means >= lowest).all() and (slots.means <= highest).all(), "means")
    for grown in pool.sides:
        require(int(grown.side.counts.sum()) == t, "counts of ratings")
        require((grown.side.touched < t).all(), "times of ratings")
        require(_largest(grown.side.biases) <= (1.0 + ROUNDING) * (highest - lowest), "biases")


def _check_interactions(pool: RatingPool, e: int) -> None:
    """The bound on the trace norm that the loop keeps up to date is one, and within the radius."""
    k, rank = int(pool.slots.low[e]), pool.settings.rank
    users, items = (
        grown.side.rows[:, k * rank : (k + 1) * rank] * grown.side.metric[:, None]
        for grown in pool.sides
    )
    users[pool.users.side.touched < pool.slots.starts[e]] = 0.0  # what the expert does not know
    spread, radius, norm = pool.low.spreads[k], float(pool.low.radii[k]), float(pool.low.norms[k])
    require(max(_largest(users), _largest(items), float(spread.sum())) <= LARGEST, "factors")
    require(norm <= (1.0 + ROUNDING) * radius, "interactions")
    squares = (users**2).sum(axis=0)
    known = squares > 0.0
    require((spread[known] > 0.0).all(), "interactions")
    least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
    require(norm >= (1.0 - ROUNDING) * least, "interactions")
    # If the items' directions are at most orthonormal, this bounds the trace norm.
    require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")


def _largest(table: Array) -> float:
    return max(float(table.max(initial=0.0)), -float(table.min(initial=0.0)))
