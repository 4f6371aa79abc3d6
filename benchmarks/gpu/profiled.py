"""How long the device works on each kind of work, by PyTorch's profiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.timing import synchronise
from benchmarks.meter import Meter, kind_of


class NamingMeter(Meter):
    """A meter that also keeps the names of the operations it has seen."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.names.add(function._schema.name)
        return super().__torch_dispatch__(function, types, args, kwargs)


def work_ms(job: Callable[[], Any], names: set[str], device: str) -> Counter[str]:
    """Milliseconds by kind of work: of kernels on a GPU, else of the host.

    An operation counts with all that it calls, if a meter has seen its name: so both count alike.
    """
    on_gpu = device.startswith("cuda")
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with profile(activities=activities, acc_events=True) as profiler:
        job()
        synchronise(device)
    found: Counter[str] = Counter()
    for event in _outermost(profiler.events(), names):
        micros = event.device_time_total if on_gpu else event.cpu_time_total
        found[_kind(event)] += micros / 1e3
    return found


def _outermost(events: Iterable[Any], names: set[str]) -> Iterator[Any]:
    """The operations with these names that no other of them has called."""
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


def _kind(event: Any) -> str:
    """As `kind_of`; sparse products have the names of dense ones, but kernels of their own."""
    if any("cusparse" in kernel.name.lower() for kernel in _kernels(event)):
        return "sparse products"
    return kind_of(event.name.replace("::", ".") + ".")


def _kernels(event: Any) -> Iterator[Any]:
    yield from event.kernels
    for child in event.cpu_children:
        yield from _kernels(child)
