"""Time against the least that memory allows, by kind of work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import driftwolfe as dw
from benchmarks.gpu.bandwidth import bytes_a_second
from benchmarks.gpu.games import Game, games, projections
from benchmarks.gpu.profiled import NamingMeter, work_ms
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import timed
from benchmarks.measure import threads
from benchmarks.meter import KINDS, Meter

#: Kinds that only kernels tell apart in a profile, and what they are called together.
SPARSE = "sparse products"
PRODUCTS = (SPARSE, "matrix products", "matrix-vector products")
ALL = "products, dense and sparse"


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Some rounds of both games by kind of work, and the floor of one whole game."""
    speed = bytes_a_second(setting, done)
    played = games(setting.short)
    with threads(1):  # a meter sees only its own thread
        looks = {name: _look(game, setting.device, speed) for name, game in played.items()}
        whole = _whole(played["wide"], setting.device, speed)
    return {"bytes_a_second": speed, "games": looks, "whole wide": whole}


def _look(game: Game, device: str, speed: float) -> dict[str, Any]:
    """The rounds after the opening, three times: timed, metered, profiled; a projection each."""
    plain = game.opened(device)
    before = projections(plain)
    metered, profiled = plain.clone(), plain.clone()
    first, second, third = (
        game.losses(game.opening + game.looked_at, game.opening) for _ in range(3)
    )
    _, took = timed(lambda: _update(plain, first), device)
    made = projections(plain) - before
    with NamingMeter() as meter:
        _update(metered, second)
    works = work_ms(lambda: _update(profiled, third), meter.names, device)
    columns = {"calls": meter.calls, "device_ms": works, "floor_ms": meter.bytes}
    units = {"calls": 1.0, "device_ms": 1.0, "floor_ms": 1e3 / speed}
    if not works[SPARSE]:
        columns = {name: _merged(column) for name, column in columns.items()}
    kinds = [kind for kind in (ALL, *dict(KINDS)) if any(each[kind] for each in columns.values())]
    return {
        "rounds": game.looked_at,
        "projections": made,
        "wall_ms": 1e3 * took / made,
        "kinds": {
            kind: {name: units[name] * each[kind] / made for name, each in columns.items()}
            for kind in kinds
        },
    }


def _merged(column: Counter[str]) -> Counter[str]:
    """The same with all products as one kind, where a profile cannot tell sparse ones apart."""
    merged = Counter(column)
    merged[ALL] = sum(merged.pop(kind, 0) for kind in PRODUCTS)
    return merged


def _update(learner: dw.POLD, losses: Iterable[Any]) -> None:
    for loss in losses:
        learner.update(loss)


def _whole(game: Game, device: str, speed: float) -> dict[str, Any]:
    """What a whole game moves, and the least time for that."""
    learner, losses = game.learner(device), game.losses(game.rounds)
    with Meter() as meter:
        dw.play(learner, losses, keep_losses=False)
    moved = meter.bytes.total()
    return {
        "rounds": game.rounds,
        "projections": projections(learner),
        "bytes": moved,
        "floor_seconds": moved / speed,
    }
