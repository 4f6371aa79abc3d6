"""How fast the device copies its own memory, and takes in a round's entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import median_ms

#: Bytes that are copied, short or not, and bytes of one round of the large stream.
COPIED = {True: 1 << 24, False: 1 << 30}
FROM_HOST = 600_000


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Bytes a second of a copy, and the time of a transfer from the host."""
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
    """Read and written by a copy: as measured before on this device, or now."""
    known = done.get("bandwidth")
    here = {"device": setting.device_name(), "short": setting.short}
    if known is None or here != {name: known["made"][name] for name in here}:
        known = measure(setting, done)
    return known["bytes_a_second"]
