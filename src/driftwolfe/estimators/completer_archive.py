"""The saved state of `MatrixCompleter`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators.completer_experts import CompleterPool
from driftwolfe.estimators.completer_features import FIELDS
from driftwolfe.estimators.completer_tables import ITEM_BITS, LAST_ITEM, Older
from driftwolfe.state import Field, check_fields
from driftwolfe.storage import Archive, require

#: Bound of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
#: What holds exactly may be off by that fraction.
ROUNDING = 1e-6

#: Named tables of a pool: of fixed size, and growing.
FIXED, GROWING = ("slots", "low", "scale"), ("users", "items", "recent")
SETTINGS = {
    "settings": Field(dict),
    "experts": Field(list),
    "first": Field(int, least=0),
    "older": Field(dict),
    "next_projection": Field(int),
    "forgotten": Field(int, least=0),
    "wrapper": Field(dict),
}


def _fields(older: Iterable[str]) -> dict[str, Field]:
    """All arrays of a file without side features; `older` names the experts whose older steps it holds."""
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
            # The weights fall with the root of the number of ratings at most.
            f"{side}.metric": Field(real, (side,), 1e-20, 1e20),
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
        "seen.pairs": Field(whole, (None,), 0),
        # Of every user: the row, or -1; then of users at rest, in the order of their numbers.
        "everyone.rows": Field(whole, (None,), -1, below="users"),
        "everyone.counts": Field(whole, ("resting",), 1),
        "everyone.biases": Field(np.float32, ("resting", None)),
        "everyone.squares": Field(np.float32, ("resting", None), 0.0),
    }


def pool_state(pool: CompleterPool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return settings and arrays that make up a pool; spare room is left out."""
    groups = {name: getattr(pool, name)._asdict() for name in FIXED}
    groups |= {name: getattr(pool, name).known._asdict() for name in GROWING}
    groups["seen"] = {"pairs": pool.seen.pairs()}
    for k, older in pool.older.items():
        groups[f"older.{k}"] = {"users": older.users, "items": older.items}
    everyone = pool.everyone.known
    resting = (table[everyone.rows < 0] for table in everyone[:-1])
    groups["everyone"] = everyone._make((*resting, everyone.rows))._asdict()
    settings = {
        "settings": asdict(pool.settings),
        "experts": [list(expert) for expert in pool.experts],
        "first": pool.first,
        "older": {str(k): older.start for k, older in pool.older.items()},
        "next_projection": pool.next_projection,
        "forgotten": pool.forgotten,
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
    fields, arrays = _fields(older), archive.arrays
    if FIELDS.keys() & arrays.keys():
        fields |= FIELDS
    check_fields(fields, arrays, kind, experts=experts, rank=rank)


def set_pool(pool: CompleterPool, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Set the state of a new pool to what `check_archive` has accepted, if it fits together."""
    groups: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        group, _, part = name.rpartition(".")
        groups.setdefault(group, {})[part] = array
    # The experts must be those that the options make.
    pool.add_experts(int(arrays["scale.clock"][0]))
    require(settings["experts"] == [list(expert) for expert in pool.experts], "experts")
    for name in ("steps", "levels", "low"):
        require(np.array_equal(groups["slots"][name], getattr(pool.slots, name)), "experts")
    require(arrays["low.radii"].size == pool.low.radii.size, "experts with interactions")
    for name in FIXED:
        setattr(pool, name, getattr(pool, name)._replace(**groups[name]))
    for name in GROWING:
        grown = getattr(pool, name)
        grown.tables = grown.tables._replace(**groups[name])
        grown.size = len(grown.tables[0])
    pool.first, pool.next_projection = settings["first"], settings["next_projection"]
    older = settings["older"].items()
    pool.older = {int(k): Older(start, **groups[f"older.{k}"]) for k, start in older}
    pool.seen.runs = (arrays["seen.pairs"],)
    pool.forgotten = settings["forgotten"]
    _set_everyone(pool, groups["everyone"])
    _check_pool(pool)


def _set_everyone(pool: CompleterPool, saved: Mapping[str, Any]) -> None:
    """Set who has which row, and what is kept of users at rest."""
    everyone, rows = pool.everyone, saved["rows"]
    resting = rows < 0
    require(np.array_equal(np.sort(rows[~resting]), np.arange(pool.users.size)), "rows of users")
    everyone.grow(rows.size)
    everyone.tables.rows[: rows.size] = rows
    shape = (np.count_nonzero(resting), everyone.tables.biases.shape[1])
    require(saved["biases"].shape == saved["squares"].shape == shape, "users at rest")
    for name in ("biases", "squares", "counts"):
        getattr(everyone.tables, name)[: rows.size][resting] = saved[name]


def _check_pool(pool: CompleterPool) -> None:
    """What must agree in every pool: counts and time, decisions and their sets."""
    slots, t = pool.slots, pool.t
    require((slots.starts <= t).all(), "starts of experts")
    require(abs(float(slots.weights.sum()) - 1.0) < 1e-6, "weights of experts")
    require(pool.first + pool.recent.size == t, "recent ratings")
    require(t < pool.next_projection <= t + pool.block(), "times of projections")
    require(all(k < pool.low.radii.size for k in pool.older), "older steps")
    (pairs,) = pool.seen.runs
    require(pairs.size <= (pool.first if pool.settings.keep_seen else 0), "rated pairs")
    users, items = pairs >> ITEM_BITS, pairs & LAST_ITEM
    known = (users < pool.everyone.size).all() and (items < pool.items.size).all()
    require(known and (np.diff(pairs) > 0).all(), "rated pairs")
    error, lowest, highest, last = pool.scale.numbers.tolist()
    require(error >= 0.0 and lowest <= last <= highest, "ratings")
    require((slots.means >= lowest).all() and (slots.means <= highest).all(), "means")
    sides, everyone = [grown.known for grown in pool.sides], pool.everyone.known
    others = int(everyone.counts.sum()) + pool.forgotten, 0
    for side, more in zip(sides, others, strict=True):
        counted = side.counts.sum() + more == t and (side.touched < t).all()
        require(counted, "ratings of users or items")
    for biases in (everyone.biases, *(side.biases for side in sides)):
        largest = np.abs(biases).max(initial=0.0)
        require(largest <= (1.0 + ROUNDING) * (highest - lowest), "biases")
    for e, columns in pool.interacting():
        users, items = (side.rows[:, columns] * side.metric[:, None] for side in sides)
        users[sides[0].touched < slots.starts[e]] = 0.0  # what the expert does not know
        radius, norm, spread = (table[slots.low[e]] for table in pool.low)
        for part in (users, items, spread.sum()):
            require(np.abs(part).max(initial=0.0) <= LARGEST, "factors")
        squares = (users**2).sum(axis=0)
        known = squares > 0.0
        # The bound on the trace norm that the loop keeps up to date is one, and within the radius.
        require((spread[known] > 0.0).all() and norm <= (1.0 + ROUNDING) * radius, "interactions")
        least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
        require(norm >= (1.0 - ROUNDING) * least, "interactions")
        # If the items' directions are at most orthonormal, this bounds the trace norm.
        require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")
