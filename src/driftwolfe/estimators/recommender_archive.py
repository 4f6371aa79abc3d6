"""Saved states of `MatrixCompleter`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.recommender_experts import (
    Expert,
    Older,
    PoolSettings,
    RatingPool,
    RecentSteps,
    SeenPairs,
    fit_together,
)
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots
from driftwolfe.points.kinds import Array
from driftwolfe.storage import Described, Header, require

#: Of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
#: Of weights of rows, which fall with the root of the number of ratings at most.
LARGEST_METRIC = 1e20
#: What holds exactly may be off by that share.
ROUNDING = 1e-6


def check_decisions(pool: RatingPool) -> None:
    """Raise ValueError unless means, biases and interactions lie in their sets; shapes are known to fit."""
    numbers, slots = pool.scale.numbers, pool.slots
    low, high = numbers[1:3].tolist()
    require((np.abs(numbers) <= LARGEST).all(), "ratings")
    require(((slots.means >= low) & (slots.means <= high)).all(), "means")
    require(low <= numbers[3] <= high, "means")
    for grown in pool.sides:
        side = grown.side
        require(_largest(side.biases) <= (1.0 + ROUNDING) * (high - low), "biases")
        metric = side.metric
        require(
            (metric * LARGEST_METRIC >= 1.0).all() and (metric <= LARGEST_METRIC).all(), "weights"
        )
    older = [table for each in pool.older.values() for table in (each.users, each.items)]
    for table in (pool.recent.steps, *older):
        require(_largest(table) <= LARGEST, "steps")
    for e in np.flatnonzero(slots.low >= 0).tolist():
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
    require(
        max(_largest(users), _largest(items), float(spread.sum()), radius) <= LARGEST, "factors"
    )
    require(norm <= (1.0 + ROUNDING) * radius, "interactions")
    squares = (users**2).sum(axis=0)
    known = squares > 0.0
    require((spread[known] > 0.0).all(), "interactions")
    least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
    require(norm >= (1.0 - ROUNDING) * least, "interactions")
    # With directions of items that are at most orthonormal, the bound is one on the trace norm.
    require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")


def _largest(table: Array) -> float:
    return max(float(table.max(initial=0.0)), -float(table.min(initial=0.0)))


Arrays = dict[str, NDArray[Any]]


def pool_state(pool: RatingPool) -> tuple[dict[str, Any], Arrays]:
    """Return all that a pool knows; room to spare is left out."""
    arrays: Arrays = {}
    for name, grown in (("users", pool.users), ("items", pool.items)):
        for part, table in grown.side._asdict().items():
            arrays[f"{name}.{part}"] = table[: grown.size]
    for name, group in (("slots", pool.slots), ("low", pool.low), ("scale", pool.scale)):
        arrays |= {f"{name}.{part}": table for part, table in group._asdict().items()}
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
    """Raise ValueError where a file's arrays do not fit each other or its settings; none is read yet."""
    try:
        fits = _expected(header.settings, header.described) == header.described
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"this archive does not hold a complete state: {told}") from error
    if not fits:
        raise ValueError("this archive holds arrays that do not fit together, or its settings")


def _expected(
    settings: Mapping[str, Any], held: Mapping[str, Described]
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Types and shapes of all arrays; what may be of any size is taken from those that are held."""
    floats, whole, letters = map(np.dtype, (np.float64, np.int64, np.uint8))
    experts, (low, rank) = len(settings["experts"]), held["low.spreads"].shape
    if rank != settings["settings"]["rank"] or (not low and settings["settings"]["radii"]):
        raise ValueError("rank and radii are not those of its arrays")
    (entries,) = held["recent.rows"].shape
    expected: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {
        "scale.clock": (whole, (1,)),
        "scale.numbers": (floats, (4,)),
        "low.radii": (floats, (low,)),
        "low.norms": (floats, (low,)),
        "low.spreads": (floats, (low, rank)),
        "recent.rows": (whole, (entries,)),
        "recent.cols": (whole, (entries,)),
        "recent.steps": (floats, (entries, low)),
    }
    for part in Slots._fields:
        kind = whole if part in ("starts", "levels", "low") else floats
        expected[f"slots.{part}"] = (kind, (experts,))
    for side in ("users", "items"):
        (size,), (length,) = held[f"{side}.counts"].shape, held[f"ids.{side}"].shape
        expected |= {f"{side}.{part}": (floats, (size, experts)) for part in ("biases", "squares")}
        expected |= {f"{side}.{part}": (whole, (size,)) for part in ("touched", "counts")}
        expected[f"{side}.metric"] = (floats, (size,))
        expected[f"{side}.rows"] = (floats, (size, low * rank))
        expected[f"ids.{side}"] = (letters, (length,))
    if "seen.pairs" in held:  # not in files from before pairs were kept
        (pairs,) = held["seen.pairs"].shape
        expected["seen.pairs"] = (whole, (pairs,))
    for k in settings["older"]:
        (users, columns), (items, _) = (held[f"older.{k}.{s}"].shape for s in ("users", "items"))
        expected[f"older.{k}.users"] = (floats, (users, columns))
        expected[f"older.{k}.items"] = (floats, (items, columns))
    return expected


def pool_from_state(
    checked: PoolSettings, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RatingPool:
    """Make the pool of these settings again; what does not fit together is refused with a ValueError.

    The arrays become the pool's own, and their header has been checked.
    """
    try:
        pool = _pool(checked, settings, arrays)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, OverflowError) as error:
        raise ValueError("this archive does not hold a complete state") from error
    _check(pool)
    return pool


def _pool(
    checked: PoolSettings, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RatingPool:
    def group(kind: Any, name: str) -> Any:
        return kind(*(arrays[f"{name}.{part}"] for part in kind._fields))

    pool = RatingPool(checked)
    for name, grown in (("users", pool.users), ("items", pool.items)):
        grown.side = group(Side, name)
        grown.size = grown.side.counts.size
    pool.slots, pool.low = group(Slots, "slots"), group(Interactions, "low")
    pool.scale = group(Scale, "scale")
    pool.experts = [Expert(*expert) for expert in settings["experts"]]
    held = {part: arrays[f"recent.{part}"] for part in ("rows", "cols", "steps")}
    pool.recent = RecentSteps(held["rows"].size, int(settings["first"]), **held)
    pool.older = {
        int(k): Older(int(start), arrays[f"older.{k}.users"], arrays[f"older.{k}.items"])
        for k, start in settings["older"].items()
    }
    pool.seen = SeenPairs.restored(arrays.get("seen.pairs", np.zeros(0, np.int64)))
    pool.next_projection = int(settings["next_projection"])
    return pool


def _check(pool: RatingPool) -> None:
    """The loops trust places and numbers: look at all of them once. Shapes are known to fit."""
    tables = [table for grown in pool.sides for table in grown.side]
    tables += [*pool.slots, *pool.low, *pool.scale, pool.recent.steps]
    tables += [table for older in pool.older.values() for table in (older.users, older.items)]
    if not all(np.isfinite(table).all() for table in tables):
        raise ValueError("this archive holds numbers that are not finite")
    _check_places(pool)
    check_decisions(pool)


def _check_places(pool: RatingPool) -> None:
    if not (_experts_fit(pool) and _sides_fit(pool) and _steps_fit(pool)):
        raise ValueError("this archive holds numbers that do not fit together")


def _experts_fit(pool: RatingPool) -> bool:
    """Settings and time say which experts there are; the loops read off the slots which they are."""
    slots, low, t = pool.slots, pool.low, pool.t
    joined = (pool.settings.restarted(level) for level in range(t.bit_length()))
    experts = pool.settings.grid() + [expert for expert in joined if expert]
    ranked = np.array([expert.radius > 0 for expert in experts])
    return (
        pool.experts == experts
        and slots.steps.tolist() == [expert.step for expert in experts]
        and slots.levels.tolist() == [expert.level for expert in experts]
        and np.array_equal(slots.low, np.where(ranked, ranked.cumsum() - 1, -1))
        and _within(slots.starts, t + 1)
        and bool((slots.weights >= 0).all())
        and abs(float(slots.weights.sum()) - 1.0) < 1e-6
        and all(bool((table >= 0).all()) for table in (slots.squares, low.radii, low.spreads))
        and bool(pool.scale.numbers[0] >= 0.0)
        and bool(pool.scale.numbers[1] <= pool.scale.numbers[2])
    )


def _sides_fit(pool: RatingPool) -> bool:
    """Every row has been rated, some time before now, and all together as often as there are ratings."""
    return all(
        _within(side.touched, pool.t)
        and bool((side.counts >= 1).all())
        and int(side.counts.sum()) == pool.t
        and bool((side.metric > 0).all() and (side.squares >= 0).all())
        for side in (grown.side for grown in pool.sides)
    )


def _steps_fit(pool: RatingPool) -> bool:
    recent, t = pool.recent, pool.t
    return (
        recent.first >= 0
        and recent.first + recent.size == t
        and t < pool.next_projection <= t + pool.block()
        and _within(recent.rows, pool.users.size)
        and _within(recent.cols, pool.items.size)
        and set(pool.older) <= set(range(pool.low.radii.size))
        and _seen_fit(pool)
    )


def _seen_fit(pool: RatingPool) -> bool:
    """Pairs that are no longer recent: at most as many as ratings, and of known users and items."""
    pairs = pool.seen.pairs()
    most = pool.recent.first if pool.settings.keep_seen else 0
    return pairs.size <= most and all(
        fit_together(run, pool.users.size, pool.items.size) for run in pool.seen.runs
    )


def _within(places: NDArray[Any], size: int) -> bool:
    return not places.size or bool(places.min() >= 0 and places.max() < size)
