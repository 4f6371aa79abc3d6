"""A day's stream through the completer: time per rating and memory stay steady.

    python -m reliability.load [--ratings 10000000]

Synthetic ratings of 5,000 items by 20,000 users whose tastes change slowly, in batches of 1,000 that
are predicted and then learned.
"""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import numpy as np

from driftwolfe.estimators import MatrixCompleter
from driftwolfe.state import state_of

USERS, ITEMS, BATCH = 20_000, 5_000, 1_000


class Tenth(NamedTuple):
    """Measurements of one tenth of the stream."""

    microseconds: float
    error: float
    experts: int
    megabytes: float


def batches(ratings: int, users: int = USERS, items: int = ITEMS) -> object:
    """Batches of pairs and ratings."""
    rng = np.random.default_rng(0)
    mood, quality = 0.4 * rng.standard_normal(users), 0.4 * rng.standard_normal(items)
    taste, kind = rng.standard_normal((users, 2)), rng.standard_normal((items, 2))
    for start in range(0, ratings, BATCH):
        turn = 2 * np.pi * start / ratings
        # Some users and items are frequent, and new ones keep coming.
        known = 0.9 + 0.1 * start / ratings
        user = (known * users * rng.random(BATCH) ** 2).astype(np.int64)
        item = (known * items * rng.random(BATCH) ** 2).astype(np.int64)
        turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        liking = 3.5 + mood[user] + quality[item]
        liking += 0.3 * ((taste[user] @ turned) * kind[item]).sum(axis=1)
        noisy = liking + 0.5 * rng.standard_normal(BATCH)
        yield np.stack([user, item], axis=1), np.clip(np.round(noisy), 1.0, 5.0)


def run(ratings: int, users: int = USERS, items: int = ITEMS) -> list[Tenth]:
    """Play the stream; times are processor seconds of this thread."""
    completer, tenths = MatrixCompleter(), []
    spent, error, done = 0.0, 0.0, 0
    for pairs, stars in batches(ratings, users, items):
        started = time.thread_time()
        predicted = completer.predict(pairs) if completer.n_ratings_ else 0.0
        completer.partial_fit(pairs, stars)
        spent += time.thread_time() - started
        error += float(np.abs(predicted - stars).sum())
        done += BATCH
        if done >= ratings / 10:
            held = sum(array.nbytes for array in state_of({"pool": completer._pool})[1].values())
            experts = len(completer.expert_names_)
            tenths.append(Tenth(1e6 * spent / done, error / done, experts, held / 2**20))
            spent, error, done = 0.0, 0.0, 0
    return tenths


def main() -> int:
    """Print a table; return 1 if the last tenth is 20 % slower or faster than the first."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ratings", type=int, default=10_000_000)
    ratings = parser.parse_args().ratings
    print(
        f"{ratings:,} ratings of {ITEMS:,} items by {USERS:,} users\n\n"
        "| tenth | µs per rating | error in stars | experts | state (MB) |\n"
        "| ---: | ---: | ---: | ---: | ---: |"
    )
    tenths = run(ratings)
    for number, tenth in enumerate(tenths, start=1):
        print(
            f"| {number} | {tenth.microseconds:.1f} | {tenth.error:.3f} | {tenth.experts} | "
            f"{tenth.megabytes:.1f} |"
        )
    last = tenths[-1]
    print(
        f"\nlast tenth over first: {last.microseconds / tenths[0].microseconds:.2f} times the time"
    )
    return 0 if 0.8 <= last.microseconds / tenths[0].microseconds <= 1.2 else 1


if __name__ == "__main__":
    raise SystemExit(main())
