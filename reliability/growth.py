"""Users who come and go: time per rating and memory do not grow with the users ever seen.

    python -m reliability.growth [--part 1.0]

Two synthetic streams, each in a process of its own, in batches of 1,000 that are predicted and then
learned: 2 million ratings by 100,000 users, 5,000 of whom are there at a time; and a million users
with one rating each. Fails if the last tenth takes more than 1.3 times as long per rating as the
first, or if a process needs 600 MB.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftwolfe.estimators import MatrixCompleter
from reliability.numerics import megabytes

ITEMS, BATCH, PRESENT = 2_000, 1_000, 5_000
#: Ratings and users of each stream.
STREAMS = {"users who come and go": (2_000_000, 100_000), "one rating each": (1_000_000, 1_000_000)}
MOST_TIMES, MOST_MEGABYTES = 1.3, 600.0


class Tenth(NamedTuple):
    """Measurements of one tenth of a stream."""

    microseconds: float
    error: float
    users: int
    rows: int  # users who are not at rest
    peak: float  # megabytes of the process so far


def batches(name: str, part: float = 1.0) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of pairs and ratings; of a shorter stream with `part` below 1."""
    rng = np.random.default_rng(0)
    ratings, users = (int(part * number) for number in STREAMS[name])
    present = min(PRESENT, users // 2)
    for start in range(0, ratings, BATCH):
        if ratings == users:
            user = np.arange(start, start + BATCH)
        else:
            first = (users - present) * start / ratings
            user = (first + present * rng.random(BATCH)).astype(np.int64)
        item = (ITEMS * rng.random(BATCH) ** 2).astype(np.int64)
        liking = 3.0 + 0.5 * np.sin(7.1 * user) + 0.5 * np.sin(3.3 * item)
        stars = np.clip(np.round(liking + rng.standard_normal(BATCH)), 1.0, 5.0)
        yield np.stack([user, item], axis=1), stars


def run(name: str, part: float = 1.0) -> tuple[list[Tenth], float]:
    """Play a stream; return its tenths, in processor time, and the megabytes of the saved file."""
    completer, tenths, spent, error, done = MatrixCompleter(), [], 0.0, 0.0, 0
    for pairs, stars in batches(name, part):
        started = time.thread_time()
        predicted = completer.predict(pairs) if completer.n_ratings_ else 0.0
        completer.partial_fit(pairs, stars)
        spent += time.thread_time() - started
        error, done = error + float(np.abs(predicted - stars).sum()), done + BATCH
        if done >= part * STREAMS[name][0] / 10:
            sizes = completer.n_users_, completer._pool.users.size, megabytes()
            tenths.append(Tenth(1e6 * spent / done, error / done, *sizes))
            spent, error, done = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.safetensors"
        completer.save(path)
        return tenths, path.stat().st_size / 1e6


def main() -> int:
    """Print a table for each stream; return 1 if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--part", type=float, default=1.0, help="of the streams, for a quick look")
    part, sound = parser.parse_args().part, True
    for name, (ratings, _) in STREAMS.items():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            tenths, size = pool.apply(run, (name, part))
        print(
            f"\n{name}: {part * ratings:,.0f} ratings\n\n"
            "| tenth | µs per rating | error in stars | users | with a row | peak memory (MB) |\n"
            "| ---: | ---: | ---: | ---: | ---: | ---: |"
        )
        for number, tenth in enumerate(tenths, start=1):
            print(
                f"| {number} | {tenth.microseconds:.1f} | {tenth.error:.3f} | {tenth.users:,} | "
                f"{tenth.rows:,} | {tenth.peak:.0f} |"
            )
        times = tenths[-1].microseconds / tenths[0].microseconds
        print(f"\nlast tenth over first: {times:.2f} times the time; saved file: {size:.0f} MB")
        sound &= times <= MOST_TIMES and tenths[-1].peak < MOST_MEGABYTES
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
