"""How fast this machine reads memory, measured beside what is held against it."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import Timings, medians, race


def read_speed(size: int, repeats: int = 41) -> tuple[float, Timings]:
    """Bytes a second that inner products read from an array of `size` bytes, and the timings.

    The better of the product of the array with itself and that of its halves: both read it once.
    """
    whole = np.ones(size // 16 * 2)
    first, second = np.split(whole, 2)
    timings = race(
        {"reading, one stream": lambda: whole @ whole, "two streams": lambda: first @ second},
        repeats,
    )
    return whole.nbytes / min(medians(timings).values()), timings
