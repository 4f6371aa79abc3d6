"""A `RatingPool` as plain settings and arrays, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.ratings.kernels import Interactions, Scale, Side, Slots
from driftwolfe.estimators.ratings.pool import Older, RatingPool
from driftwolfe.estimators.ratings.recent import RecentSteps
from driftwolfe.estimators.ratings.saved_decisions import check_decisions
from driftwolfe.estimators.ratings.settings import Expert, PoolSettings

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
    settings = {
        "settings": asdict(pool.settings),
        "experts": [list(expert) for expert in pool.experts],
        "first": recent.first,
        "older": {str(k): older.start for k, older in pool.older.items()},
        "next_projection": pool.next_projection,
    }
    return settings, arrays


def check_sizes(settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise ValueError where settings ask for more room than the arrays take; nothing is made yet."""
    spreads = arrays["low.spreads"]
    held = spreads.ndim == 2 and (len(spreads) > 0 or not settings["radii"])
    if not held or settings["rank"] != spreads.shape[1]:
        raise ValueError("this archive holds arrays that do not fit its settings")


def pool_from_state(
    checked: PoolSettings, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> RatingPool:
    """Make the pool of these settings again; what does not fit together is refused with a ValueError."""
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
        return kind(*(np.array(arrays[f"{name}.{part}"]) for part in kind._fields))

    pool = RatingPool(checked)
    for name, grown in (("users", pool.users), ("items", pool.items)):
        grown.side = group(Side, name)
        grown.size = grown.side.counts.size
    pool.slots, pool.low = group(Slots, "slots"), group(Interactions, "low")
    pool.scale = group(Scale, "scale")
    pool.experts = [Expert(*expert) for expert in settings["experts"]]
    held = {part: np.array(arrays[f"recent.{part}"]) for part in ("rows", "cols", "steps")}
    pool.recent = RecentSteps(held["rows"].size, int(settings["first"]), **held)
    pool.older = {
        int(k): Older(int(start), arrays[f"older.{k}.users"], arrays[f"older.{k}.items"])
        for k, start in settings["older"].items()
    }
    pool.next_projection = int(settings["next_projection"])
    return pool


def _check(pool: RatingPool) -> None:
    """The loops trust shapes and places: look at all of them once."""
    experts, low, rank = len(pool.experts), len(pool.low.spreads), pool.settings.rank
    entries, floats, whole = pool.recent.size, np.float64, np.int64
    expected: list[tuple[NDArray[Any], tuple[int, ...], Any]] = [
        (pool.scale.clock, (1,), whole),
        (pool.scale.numbers, (4,), floats),
        (pool.low.radii, (low,), floats),
        (pool.low.norms, (low,), floats),
        (pool.low.spreads, (low, rank), floats),
        (pool.recent.rows, (entries,), whole),
        (pool.recent.cols, (entries,), whole),
        (pool.recent.steps, (entries, low), floats),
    ]
    for part, table in pool.slots._asdict().items():
        kind = whole if part in ("starts", "levels", "low") else floats
        expected.append((table, (experts,), kind))
    for grown in (pool.users, pool.items):
        size, side = grown.size, grown.side
        expected += [(table, (size, experts), floats) for table in (side.biases, side.squares)]
        expected += [(side.rows, (size, low * rank), floats), (side.metric, (size,), floats)]
        expected += [(side.touched, (size,), whole), (side.counts, (size,), whole)]
    for older in pool.older.values():
        if older.users.ndim != 2 or older.items.ndim != 2:
            raise ValueError("this archive holds arrays that do not fit together")
        users, items, columns = *map(len, (older.users, older.items)), older.users.shape[1]
        expected += [(older.users, (users, columns), floats)]
        expected += [(older.items, (items, columns), floats)]
    for array, shape, kind in expected:
        if array.shape != shape or array.dtype != kind:
            raise ValueError("this archive holds arrays that do not fit together")
        if kind is floats and not np.isfinite(array).all():
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
    )


def _within(places: NDArray[Any], size: int) -> bool:
    return not places.size or bool(places.min() >= 0 and places.max() < size)
