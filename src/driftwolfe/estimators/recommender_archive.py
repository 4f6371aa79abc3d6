"""Saved states of `MatrixCompleter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.recommender_experts import (
    ITEM_BITS,
    LAST_ITEM,
    Older,
    PoolSettings,
    RatingPool,
    RecentSteps,
)
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots
from driftwolfe.points.kinds import Array
from driftwolfe.storage import Field, Header, check_fields, require

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
        "slots.starts": Field(whole, ("experts",), 0, below="end"),
        "slots.levels": Field(whole, ("experts",)),
        "slots.low": Field(whole, ("experts",)),
    }
    for side in ("users", "items"):
        fields |= {
            f"{side}.counts": Field(whole, (side,), 1),
            f"{side}.touched": Field(whole, (side,), 0, below="t"),
            f"{side}.metric": Field(real, (side,), 1.0 / LARGEST_METRIC, LARGEST_METRIC),
            f"{side}.biases": Field(real, (side, "experts")),
            f"{side}.squares": Field(real, (side, "experts"), 0.0),
            f"{side}.rows": Field(real, (side, "low rank")),
            f"ids.{side}": Field(np.uint8, (None,)),
        }
    for k in older:
        fields |= {
            f"older.{k}.{side}": Field(real, (None, f"columns{k}"), *bounds)
            for side in ("users", "items")
        }
    return fields | {
        "recent.rows": Field(whole, ("recent",), 0, below="users"),
        "recent.cols": Field(whole, ("recent",), 0, below="items"),
        "recent.steps": Field(real, ("recent", "low"), *bounds),
        "seen.pairs": Field(whole, (None,), 0, newer=True),
    }


def pool_state(pool: RatingPool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return settings and arrays that make up a pool; spare room is left out."""
    groups: dict[str, Any] = {"slots": pool.slots, "low": pool.low, "scale": pool.scale}
    arrays = {
        f"{name}.{part}": table
        for name, group in groups.items()
        for part, table in group._asdict().items()
    }
    for name, grown in (("users", pool.users), ("items", pool.items)):
        for part, table in grown.side._asdict().items():
            arrays[f"{name}.{part}"] = table[: grown.size]
    recent = pool.recent
    for part in ("rows", "cols", "steps"):
        arrays[f"recent.{part}"] = getattr(recent, part)[: recent.size]
    for k, older in pool.older.items():
        arrays |= {f"older.{k}.users": older.users, f"older.{k}.items": older.items}
    arrays["seen.pairs"] = pool.seen.pairs()
    settings = {
        "settings": asdict(pool.settings),
        "experts": [list(expert) for expert in pool.experts],
        "first": recent.first,
        "older": {str(k): older.start for k, older in pool.older.items()},
        "next_projection": pool.next_projection,
    }
    return settings, arrays


def check_header(header: Header) -> None:
    """Refuse a file whose settings, or types and shapes of arrays, do not fit; no array is read yet."""
    check_fields(SETTINGS, header.settings, header.kind)
    older, rank = header.settings["older"], header.settings["settings"].get("rank")
    require(all(k.isascii() and k.isdigit() for k in older), "older steps")
    check_fields(dict.fromkeys(older, Field(int, least=0)), older, header.kind)
    experts = len(header.settings["experts"])
    check_fields(_fields(older), header.described, header.kind, experts=experts, rank=rank)


def pool_from_state(
    options: PoolSettings, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RatingPool:
    """Make a pool of these options again, of arrays whose header has been checked."""
    t = int(arrays["scale.clock"][0])
    experts = options.experts(t)
    interacting = np.array([expert.radius > 0 for expert in experts])
    sizes = {"experts": len(experts), "low": int(interacting.sum()), "rank": options.rank}
    fields = _fields(settings["older"])
    check_fields(fields, arrays, "MatrixCompleter", **sizes, t=t, end=t + 1)
    require(settings["experts"] == [list(expert) for expert in experts], "experts")
    pool = RatingPool(options)

    def group(kind: Any, name: str) -> Any:
        return kind(*(arrays[f"{name}.{part}"] for part in kind._fields))

    for name, grown in (("users", pool.users), ("items", pool.items)):
        grown.side = group(Side, name)
        grown.size = grown.side.counts.size
    pool.slots, pool.low = group(Slots, "slots"), group(Interactions, "low")
    pool.scale, pool.experts = group(Scale, "scale"), experts
    held = {part: arrays[f"recent.{part}"] for part in ("rows", "cols", "steps")}
    pool.recent = RecentSteps(held["rows"].size, settings["first"], **held)
    pool.older = {
        int(k): Older(start, arrays[f"older.{k}.users"], arrays[f"older.{k}.items"])
        for k, start in settings["older"].items()
    }
    pool.seen.runs = (arrays["seen.pairs"],) if "seen.pairs" in arrays else ()
    pool.next_projection = settings["next_projection"]
    _check_slots(pool, interacting)
    _check_past(pool)
    _check_decisions(pool)
    return pool


def _check_slots(pool: RatingPool, interacting: NDArray[np.bool_]) -> None:
    """Options and time say which experts there are; the loops read it off the slots."""
    slots, experts = pool.slots, pool.experts
    require(slots.steps.tolist() == [expert.step for expert in experts], "steps of experts")
    require(slots.levels.tolist() == [expert.level for expert in experts], "levels of experts")
    low = np.where(interacting, interacting.cumsum() - 1, -1)
    require(np.array_equal(slots.low, low), "experts with interactions")
    require(abs(float(slots.weights.sum()) - 1.0) < 1e-6, "weights of experts")


def _check_past(pool: RatingPool) -> None:
    """As many ratings as time has passed; recent steps and pairs of known users and items."""
    recent, t = pool.recent, pool.t
    require(all(int(grown.side.counts.sum()) == t for grown in pool.sides), "counts of ratings")
    require(recent.first + recent.size == t, "recent ratings")
    require(t < pool.next_projection <= t + pool.block(), "times of projections")
    require(all(k < pool.low.radii.size for k in pool.older), "older steps")
    pairs = np.concatenate([np.zeros(0, np.int64), *pool.seen.runs])
    require(pairs.size <= (recent.first if pool.settings.keep_seen else 0), "rated pairs")
    users, items = pairs >> ITEM_BITS, pairs & LAST_ITEM
    known = (users < pool.users.size).all() and (items < pool.items.size).all()
    require(known and (np.diff(pairs) > 0).all(), "rated pairs")


def _check_decisions(pool: RatingPool) -> None:
    """Means, biases and interactions lie in their sets."""
    (error, low, high, recent), means = pool.scale.numbers.tolist(), pool.slots.means
    require(error >= 0.0 and low <= recent <= high, "ratings")
    require((means >= low).all() and (means <= high).all(), "means")
    for grown in pool.sides:
        require(_largest(grown.side.biases) <= (1.0 + ROUNDING) * (high - low), "biases")
    for e in np.flatnonzero(pool.slots.low >= 0).tolist():
        _check_interactions(pool, e)


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
