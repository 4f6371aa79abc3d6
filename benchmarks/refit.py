"""Refit every N likes, or learn each one: `python -m benchmarks.refit` prints recall and seconds, for both orders.

The first ratings of MovieLens 100K (`--ratings`, 20,000 by default), in time order and shuffled (seed 10); likes
are recommended before they are learned, as in `benchmarks.ranking`, equal scores in random order. Seconds are of
the processor and include answers and refits. iALS needs implicit, SLIM rtrec.
"""

from __future__ import annotations

import argparse
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import ranking
from benchmarks.measure import Skipped, threads
from benchmarks.output import markdown
from benchmarks.ranking import Cooccurrence, Dense, Ease, ImplicitALS, Likes

#: Likes between two refits; likes after which popularity has fallen to 1/e; factors, step and penalty of ISGD.
EVERY, MEMORY = (4000, 2000, 1000), 1000.0
FACTORS, STEP, PENALTY = 32, 0.05, 0.01


class Decayed(Dense):
    """Popularity that fades."""

    def learn(self, user: int, item: int) -> None:
        self.counts *= np.exp(-1.0 / MEMORY)
        self.counts[item] += 1.0


class IncrementalSGD(Dense):
    """ISGD (Vinagre et al. 2014): a step of matrix factorisation towards 1 for each like."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(shape)
        rng = np.random.default_rng(0)
        self.users, self.items = (0.1 * rng.standard_normal((size, FACTORS)) for size in shape)
        self.known = np.zeros(shape[1])

    def scores(self, user: int) -> np.ndarray:
        return np.where(self.known > 0.0, -np.abs(1.0 - self.items @ self.users[user]), -np.inf)

    def learn(self, user: int, item: int) -> None:
        self.known[item] = 1.0
        for _ in range(5):
            mine, other = self.users[user], self.items[item]
            error = 1.0 - mine @ other
            mine += STEP * (error * other - PENALTY * mine)
            other += STEP * (error * mine - PENALTY * other)


class RtrecSlim(Dense):
    """SLIM of rtrec, which learns each like."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(shape)
        from rtrec.models import SLIM

        self.model = SLIM()

    def scores(self, user: int) -> np.ndarray:
        found = np.full(self.counts.size, -1.0) + 1e-9 * self.counts
        listed = self.model.recommend(user, top_k=10 + int(self.likes[user].sum()))
        for place, item in enumerate(listed):
            found[item] = found.size - place
        return found

    def learn(self, user: int, item: int) -> None:
        super().learn(user, item)
        self.model.fit([(user, item, float(self.learned), 5.0)], progress_bar=False)


def contestants(shape: tuple[int, int]) -> dict[str, Callable[[Likes], np.ndarray]]:
    """Return how the ranks of each method are found, by its name."""

    def dense(kind: Any, every: int = 0) -> Callable[[Likes], np.ndarray]:
        def ranks(stream: Likes) -> np.ndarray:
            model = kind(shape)
            model.every = every or model.every
            return ranking.dense_ranks(model, stream)

        return ranks

    found = {"`Recommender`": ranking.our_ranks}
    found["ISGD"] = dense(IncrementalSGD)
    found["incremental item-kNN, last 20 likes"] = dense(Cooccurrence)
    found["popularity, fading over 1,000 likes"] = dense(Decayed)
    found["popularity"] = dense(Dense)
    found |= {f"EASE, refitted every {every:,} likes": dense(Ease, every) for every in EVERY}
    if importlib.util.find_spec("implicit"):
        found |= {f"iALS, refitted every {every:,}": dense(ImplicitALS, every) for every in EVERY}
    if importlib.util.find_spec("rtrec"):
        found["SLIM of rtrec"] = dense(RtrecSlim)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=int, default=20_000, help="how many of the first")
    parser.add_argument("--seed", type=int, default=10, help="of the shuffle")
    given = parser.parse_args()
    try:
        plain, mixed = (ranking.likes(shuffle=seed) for seed in (None, given.seed))
    except Skipped as reason:
        print(reason)
        return
    shape = (int(plain.users.max()) + 1, int(plain.items.max()) + 1)
    streams = [Likes(*(part[: given.ratings] for part in stream)) for stream in (plain, mixed)]
    rows = [("method", "recall@10, time order", "seconds", "recall@10, shuffled", "seconds")]
    with threads(1):
        ranking.our_ranks(streams[0])  # compiled before the clock starts
        for name, ranks_of in contestants(shape).items():
            cells = [name]
            for stream in streams:
                ranks, spent = ranking.timed(ranks_of, stream)
                seconds = spent * int(stream.liked.sum())
                cells += [f"{(ranks < 10).mean():.4f}", f"{seconds:.1f}"]
            rows.append(tuple(cells))
            print(*cells, flush=True)
    print(markdown(rows))


if __name__ == "__main__":
    main()
