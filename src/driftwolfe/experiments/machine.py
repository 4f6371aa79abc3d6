"""Facts about the machine that results were measured on; needs no optional package."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from driftwolfe.points.devices import HOST, Device

PACKAGES = ("driftwolfe", "numpy", "scipy", "numba")


def facts(packages: Iterable[str] = PACKAGES, device: Device = HOST) -> dict[str, Any]:
    """The machine, versions of packages, BLAS threads, time and commit; None where not known."""
    memory, versions = None, dict.fromkeys((*packages, *([] if device is HOST else ["torch"])))
    with suppress(AttributeError, ValueError, OSError):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    for name in versions:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "cpu": cpu_model(),
        "device": device.name,
        "gpu": gpu_model(device),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
        "blas": [
            {key: pool.get(key) for key in ("internal_api", "version", "num_threads")}
            for pool in sorted(threadpool_info(), key=lambda pool: str(pool.get("version")))
        ],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def cpu_model() -> str:
    """The name of the processor, as far as the system tells it."""
    for line in _output("lscpu").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model name":
            return value.strip()
    return platform.processor() or platform.machine()


def gpu_model(device: Device) -> str | None:
    """The name of a GPU; None for other devices."""
    if not device.name.startswith("cuda"):
        return None
    return str(device.xp.cuda.get_device_name(device.place))


def commit() -> str | None:
    """The commit of the checkout, with a plus sign where files differ from it; None outside one."""
    name = _output("git", "rev-parse", "--short", "HEAD").strip()
    # Without a lock that a commit made meanwhile would trip over.
    changed = _output("git", "--no-optional-locks", "status", "--porcelain").strip()
    return name + ("+" if changed else "") or None


def _output(*command: str) -> str:
    """What a command prints, run in the folder of this file; nothing if it fails."""
    folder = Path(__file__).resolve().parent
    with suppress(OSError):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""
    return ""
