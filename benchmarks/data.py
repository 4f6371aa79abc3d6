"""The real streams, where they are found."""

from __future__ import annotations

from functools import cache

import driftwolfe as dw
from benchmarks.skipped import Skipped


@cache
def movielens() -> dw.streams.Stream:
    """MovieLens 100K as the paper plays it, or `Skipped`."""
    return _found(dw.streams.movielens_100k)


@cache
def shuttle() -> dw.streams.Stream:
    """Shuttle as the paper plays it, or `Skipped`."""
    return _found(dw.streams.shuttle)


def _found(load):
    try:
        return load()
    except FileNotFoundError:
        raise Skipped(f"needs the data of {load.__name__}: set DRIFTWOLFE_DATA") from None
