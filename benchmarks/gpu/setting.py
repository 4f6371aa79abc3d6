"""What every section uses: the device and sizes, results.json, and clocks."""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.measure import threads
from benchmarks.output import write_json
from driftwolfe import doctor

Result = TypeVar("Result")
PACKAGES = ("driftwolfe", "numpy", "scipy", "numba", "torch")
#: The facts about a machine that are stored.
KEPT = ("cpu", "cores", "system", "python", *PACKAGES, "date", "commit")


@dataclass(frozen=True)
class Setting:
    """A device by name, and whether sizes are tiny."""

    device: str
    short: bool

    @property
    def place(self) -> torch.device:
        """The PyTorch device."""
        return torch.device("cpu" if self.device == "torch" else self.device)

    @property
    def on_gpu(self) -> bool:
        return self.place.type == "cuda"

    def device_name(self) -> str:
        """The name of the GPU, or of the processor without one."""
        return torch.cuda.get_device_name(self.place) if self.on_gpu else doctor.cpu_model()

    def facts(self) -> dict[str, Any]:
        """Device, versions, date and commit."""
        facts = doctor.facts(PACKAGES)
        return {
            "device": self.device_name(),
            "option": self.device,
            "short": self.short,
            **{name: facts[name] for name in KEPT},
        }


def read_results(folder: Path) -> dict[str, Any]:
    """The sections in results.json."""
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def add_result(folder: Path, section: str, result: dict[str, Any]) -> dict[str, Any]:
    """Store a section's result, replacing an older one; the others stay."""
    results = {**read_results(folder), section: result}
    write_json(folder / "results.json", results)
    return results


#: Threads of the experts, on host and device.
THREADS = 2
_TASKS = Path("/proc/self/task")
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def synchronise(device: str) -> None:
    """Wait until a GPU has finished all its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(job: Callable[[], Result], device: str) -> tuple[Result, float]:
    """The result of a call, and its seconds from an idle device to an idle device."""
    synchronise(device)
    started = time.perf_counter()
    result = job()
    synchronise(device)
    return result, time.perf_counter() - started


def median_ms(job: Callable[[], Any], device: str, repeats: int = 15, warm_ups: int = 3) -> float:
    """The median of some calls in milliseconds, after untimed ones."""
    for _ in range(warm_ups):
        job()
    return 1e3 * statistics.median(timed(job, device)[1] for _ in range(repeats))


def compared(game: Callable[[str], float], device: str) -> dict[str, float]:
    """Milliseconds of `game(device)` on two cores and on the device."""
    with two_cores():
        here = game("cpu")
    with threads(THREADS):
        there = game(device)
    return {"host_ms": here, "device_ms": there}


@contextmanager
def two_cores() -> Iterator[None]:
    """Give experts two threads and, on Linux, the process two cores."""
    with threads(THREADS):
        if not hasattr(os, "sched_setaffinity"):
            yield
            return
        before = os.sched_getaffinity(0)
        _pin(_apart(sorted(before)))
        try:
            yield
        finally:
            _pin(before)


def _pin(cores: Iterable[int]) -> None:
    """Pin every thread of the process, and those they start, to some cores."""
    for task in _TASKS.iterdir():
        with suppress(ProcessLookupError):  # the thread has ended
            os.sched_setaffinity(int(task.name), cores)


def _apart(cores: list[int]) -> list[int]:
    """Two cores that are not hyper-threads of one, if possible."""
    others = [core for core in cores[1:] if _siblings(core) != _siblings(cores[0])]
    return [cores[0], *(others or cores[1:])[:1]]


def _siblings(core: int) -> str:
    try:
        return Path(_SIBLINGS.format(core)).read_text()
    except OSError:
        return str(core)
