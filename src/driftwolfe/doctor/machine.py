"""The machine: cores, threads, and code that was compiled for it."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from typing import Any

from driftwolfe.doctor.finding import Finding

#: What the tests of the report look for.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def threads() -> list[Finding]:
    """Cores, BLAS and the threads of experts."""
    from driftwolfe.ensemble.threads import threads as of_experts

    number = of_experts()  # loads every BLAS there is
    cores = _cores()
    found = [Finding("cores", str(cores)), *_blas()]
    if number > cores:
        remedy = f"set OPENBLAS_NUM_THREADS={cores}, or call driftwolfe.set_threads({cores})"
        return [*found, Finding("threads of experts", f"{number}, more than cores", "note", remedy)]
    return [*found, Finding("threads of experts", f"{number}, on large matrices")]


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas() -> list[Finding]:
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    told = {f"{_blas_name(pool)}, {_counted(pool['num_threads'])}" for pool in pools}
    return [Finding("BLAS", text) for text in sorted(told)] or [Finding("BLAS", "none is known")]


def _blas_name(pool: dict[str, Any]) -> str:
    return f"{pool.get('internal_api', 'unknown')} {pool.get('version') or ''}".strip()


def _counted(threads: int) -> str:
    return f"{threads} thread" + ("" if threads == 1 else "s")


def compiled_code() -> Finding:
    """Load compiled loops; say whether they were kept from before, and where they are kept."""
    name = "compiled code"
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not cached is said below
            from driftwolfe.domains import point_kernels

        seconds = time.perf_counter() - began
        stats = point_kernels.nearest_rows.stats
        kept, fresh = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
        place = stats.cache_path
    except AttributeError:  # plain Python in place of compiled functions
        remedy = "unset NUMBA_DISABLE_JIT"
        return Finding(name, "numba does not compile: all is slow", "note", remedy)
    except Exception as problem:  # numba raises many kinds
        remedy = "set NUMBA_CACHE_DIR to a folder that you can write to"
        return Finding(
            name, f"cannot be loaded: {' '.join(str(problem).split())}", "broken", remedy
        )
    if place is None:
        told = f"compiled now ({seconds:.0f} s) and in every process: no folder can be written"
        return Finding(name, told, "note", "set NUMBA_CACHE_DIR to a folder that you can write to")
    if kept and not fresh:
        return Finding(name, f"kept in {place}")
    return Finding(name, f"compiled now ({seconds:.0f} s) and kept in {place} for the next time")


def gpu() -> Finding:
    """Whether PyTorch finds a GPU; most users need none."""
    from driftwolfe.points.devices import HOST, best_device

    if best_device() is HOST:
        return Finding("GPU", 'none that PyTorch finds; device="cuda" is refused')
    import torch

    return Finding("GPU", torch.cuda.get_device_name())


def browser() -> Finding:
    """Whether the tests of the report have a browser; users need none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        return Finding("browser", f"none of {', '.join(BROWSERS)}; its tests are skipped")
    return Finding("browser", found)
