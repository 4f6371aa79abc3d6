"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parent.parent


def facts() -> dict[str, Any]:
    """The machine, the versions, the threads, the time and the commit."""
    packages = ("driftwolfe", "numpy", "scipy", "numba", "river")
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "blas": [
            {key: pool.get(key) for key in ("internal_api", "version", "num_threads")}
            for pool in threadpool_info()
        ],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def cpu_model() -> str:
    """The name of the processor, as far as the system tells it."""
    told = _output("lscpu")
    for line in told.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model name":
            return value.strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the checkout, with a plus sign where files differ from it; None outside one."""
    name = _output("git", "rev-parse", "--short", "HEAD").strip()
    return name + ("+" if _output("git", "status", "--porcelain").strip() else "") or None


def _output(*command: str) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""
