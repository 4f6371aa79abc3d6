"""Time against the least that memory bandwidth allows, by kind of work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

import driftwolfe as dw
from benchmarks.gpu.games import Game, games, projections
from benchmarks.gpu.setting import Setting, median_ms, synchronise, timed
from benchmarks.measure import threads

#: Bytes to copy, by `short`, and bytes of one round of the large stream.
COPIED = {True: 1 << 24, False: 1 << 30}
FROM_HOST = 600_000


def bandwidth(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Bytes per second of a copy on the device, and the time of a transfer from the host."""
    copied = COPIED[setting.short]
    source = torch.ones(copied, dtype=torch.uint8, device=setting.place)
    target = torch.empty_like(source)
    copy_ms = median_ms(lambda: target.copy_(source), setting.device)
    numbers = np.zeros(FROM_HOST // 8)
    from_host_ms = median_ms(lambda: torch.tensor(numbers, device=setting.place), setting.device)
    return {
        "copied_bytes": copied,
        "copy_ms": copy_ms,
        "bytes_a_second": 2e3 * copied / copy_ms,
        "from_host_bytes": FROM_HOST,
        "from_host_ms": from_host_ms,
        "from_host_bytes_a_second": 1e3 * FROM_HOST / from_host_ms,
    }


def bytes_a_second(setting: Setting, done: dict[str, Any]) -> float:
    """Bytes per second that a copy reads and writes: as stored for this device, or measured now."""
    known = done.get("bandwidth")
    here = {"device": setting.device_name(), "short": setting.short}
    if known is None or here != {name: known["made"][name] for name in here}:
        known = bandwidth(setting, done)
    return known["bytes_a_second"]


#: Kinds of work, by what an operation's name holds; the first that fits.
KINDS = (
    ("sparse products", ("sparse:",)),
    ("matrix products", ("aten.mm", "aten.addmm", "aten.bmm")),
    ("matrix-vector products", ("aten.mv", "aten.addmv", "aten.dot", "aten.vdot")),
    ("small decompositions", ("linalg_cholesky", "linalg_solve", "linalg_eigh", "linalg_qr")),
    ("sorting entries", ("sort", "unique", "searchsorted", "arange")),
    ("look-ups", ("aten.index",)),
    ("side by side", ("aten.cat", "aten.stack")),
    ("random columns", ("randn", "normal")),
    ("to and from the host", ("_to_copy", "aten.copy_", "_local_scalar", "lift_fresh")),
    ("scaling, norms and the rest", ("",)),
)
#: Operations that move nothing, such as views.
VIEWS = (
    *("view", "permute", "select", "slice", "unsqueeze", "squeeze", "aten.t.", "transpose"),
    *("detach", "unbind", "alias", "as_strided", "expand", "diagonal", "empty", "lift_fresh"),
    *("split", "sparse_compressed", "crow_indices", "col_indices", "values", "_local_scalar"),
)


def kind_of(name: str) -> str:
    """The kind of work of an operation."""
    return next(kind for kind, parts in KINDS if any(part in name for part in parts))


class Meter(TorchDispatchMode):
    """Counts calls, names and the bytes that PyTorch operations must at least move, by kind."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        self.names.add(function._schema.name)
        name = str(function)
        if any(part in name for part in VIEWS):
            return result
        inputs = _tensors((args, kwargs or {}))
        if any(tensor.layout is not torch.strided for tensor in inputs):
            name = f"sparse:{name}"
        kind = kind_of(name)
        self.calls[kind] += 1
        outputs = _tensors(result)
        if kind == "look-ups":  # only some rows of a table
            moved = 2 * sum(map(_size, outputs)) + sum(map(_size, inputs[1:]))
        else:
            written = {tensor.data_ptr() for tensor in outputs if tensor.layout is torch.strided}
            read = [tensor for tensor in inputs if not _written(tensor, written, name)]
            moved = sum(map(_size, read)) + sum(map(_size, outputs))
        self.bytes[kind] += moved
        return result


def _written(tensor: Any, written: set[int], name: str) -> bool:
    """Whether an input is only written: an `out` that is also a result."""
    strided = tensor.layout is torch.strided
    return strided and tensor.data_ptr() in written and not name.endswith(("_.default", "_.Tensor"))


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _size(tensor: Any) -> int:
    if tensor.layout is torch.strided:
        return int(tensor.nbytes)
    parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    return sum(int(part.nbytes) for part in parts)


def work_ms(job: Callable[[], Any], names: set[str], device: str) -> Counter[str]:
    """Profiled milliseconds by kind of work: of kernels on a GPU, else of the host.

    An operation that a meter has named counts with all that it calls, so that both count alike.
    """
    on_gpu = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities, acc_events=True) as profiler:
        job()
        synchronise(device)
    found: Counter[str] = Counter()
    for event in _outermost(profiler.events(), names):
        micros = event.device_time_total if on_gpu else event.cpu_time_total
        found[_event_kind(event)] += micros / 1e3
    return found


def _outermost(events: Iterable[Any], names: set[str]) -> Iterator[Any]:
    """The operations with these names that none of the others called."""
    pending = [
        event
        for event in events
        if event.cpu_parent is None and event.device_type == DeviceType.CPU
    ]
    while pending:
        event = pending.pop()
        if event.name in names:
            yield event
        else:
            pending += event.cpu_children


def _event_kind(event: Any) -> str:
    """The kind of an event; sparse products have dense names, but cuSPARSE kernels."""
    if any("cusparse" in kernel.name.lower() for kernel in _kernels(event)):
        return "sparse products"
    return kind_of(event.name.replace("::", ".") + ".")


def _kernels(event: Any) -> Iterator[Any]:
    yield from event.kernels
    for child in event.cpu_children:
        yield from _kernels(child)


#: Kinds that a profile without kernels cannot tell apart, and their joint name.
SPARSE = "sparse products"
PRODUCTS = (SPARSE, "matrix products", "matrix-vector products")
ALL = "products, dense and sparse"


def kernels(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Some rounds of both games by kind of work, and the least time of one whole game."""
    speed = bytes_a_second(setting, done)
    played = games(setting.short)
    with threads(1):  # a meter records only its own thread
        found = {name: _profile(game, setting.device, speed) for name, game in played.items()}
        whole = _whole(played["wide"], setting.device, speed)
    return {"bytes_a_second": speed, "games": found, "whole wide": whole}


def _profile(game: Game, device: str, speed: float) -> dict[str, Any]:
    """Rounds after the opening, timed, metered and profiled; numbers are per projection."""
    plain = game.opened(device)
    before = projections(plain)
    metered, traced = plain.clone(), plain.clone()
    first, second, third = (
        game.losses(game.opening + game.profiled, game.opening) for _ in range(3)
    )
    _, took = timed(lambda: _update(plain, first), device)
    made = projections(plain) - before
    with Meter() as meter:
        _update(metered, second)
    works = work_ms(lambda: _update(traced, third), meter.names, device)
    columns = {"calls": meter.calls, "device_ms": works, "floor_ms": meter.bytes}
    units = {"calls": 1.0, "device_ms": 1.0, "floor_ms": 1e3 / speed}
    if not works[SPARSE]:
        columns = {name: _merged(column) for name, column in columns.items()}
    kinds = [kind for kind in (ALL, *dict(KINDS)) if any(each[kind] for each in columns.values())]
    return {
        "rounds": game.profiled,
        "projections": made,
        "wall_ms": 1e3 * took / made,
        "kinds": {
            kind: {name: units[name] * each[kind] / made for name, each in columns.items()}
            for kind in kinds
        },
    }


def _merged(column: Counter[str]) -> Counter[str]:
    """A column with all products as one kind."""
    merged = Counter(column)
    merged[ALL] = sum(merged.pop(kind, 0) for kind in PRODUCTS)
    return merged


def _update(learner: dw.POLD, losses: Iterable[Any]) -> None:
    for loss in losses:
        learner.update(loss)


def _whole(game: Game, device: str, speed: float) -> dict[str, Any]:
    """Bytes that a whole game must move, and the least time for them."""
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
