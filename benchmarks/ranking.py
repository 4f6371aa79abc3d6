"""Rank films from likes, MovieLens 100K in time order: `python -m benchmarks.ranking` prints recall, NDCG, speed.

Ratings of 4 and 5 stars are likes, in the order of time. Before a like is learned, the ten best films that
the user has not rated are recommended; it is scored if the user liked another film before. The second stream
gives every user the taste of another from half time on.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.data import rating_streams
from benchmarks.measure import Skipped, threads
from benchmarks.output import markdown
from benchmarks.ratio import Ratio
from driftwolfe.estimators import Recommender

#: Events between two refits, and the usual settings: ridge of EASE; factors of iALS.
REFIT, RIDGE, FACTORS = 2000, 100.0, 32
#: Recall is back when the mean over so many scored events is within 10 % of that without a change.
WINDOW = 5000
#: How many times less time than refitted models, at least; 13 and 20 were measured.
FLOOR = 10.0
#: Ratings between two calls of `recommend_many`.
BLOCK = 100


class Likes(NamedTuple):
    """Users and films of all ratings in time order, which of them are likes, and which are scored."""

    users: np.ndarray
    items: np.ndarray
    liked: np.ndarray
    scored: np.ndarray


def likes(seed: int | None = None, shuffle: int | None = None) -> Likes:
    """Return the stream; with a seed, users are permuted from half time on, or all ratings are shuffled."""
    stream = rating_streams()["time order"]
    users, items = (np.unique(column, return_inverse=True)[1] for column in stream.pairs.T)
    if seed is not None:
        half = users.size // 2
        users[half:] = np.random.default_rng(seed).permutation(users.max() + 1)[users[half:]]
    liked = stream.ratings >= 4.0
    if shuffle is not None:
        order = np.random.default_rng(shuffle).permutation(users.size)
        users, items, liked = users[order], items[order], liked[order]
    scored = np.zeros(users.size, bool)
    known, seen = set(), set()
    for k, (user, item, like) in enumerate(zip(users.tolist(), items.tolist(), liked, strict=True)):
        scored[k] = like and user in known and (user, item) not in seen
        seen.add((user, item))
        if like:
            known.add(user)
    return Likes(users, items, liked, scored)


class Dense:
    """A model that scores all films for a user, with what it needs of the likes so far."""

    every = REFIT

    def __init__(self, shape: tuple[int, int]) -> None:
        self.likes, self.counts = np.zeros(shape, np.float32), np.zeros(shape[1])
        self.learned = 0

    def scores(self, user: int) -> np.ndarray:
        """Return the scores of all films."""
        return self.counts

    def learn(self, user: int, item: int) -> None:
        """Learn one like."""
        self.likes[user, item] = 1.0
        self.counts[item] += 1.0
        self.learned += 1
        if self.learned % self.every == 0:
            self.refit()

    def refit(self) -> None:
        """Learn all likes anew; popularity needs no such thing."""


class Cooccurrence(Dense):
    """Films that others liked too, over the roots of both numbers of likes; the last 20 likes count."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__(shape)
        self.pairs = np.zeros((shape[1], shape[1]), np.float32)
        self.history: list[list[int]] = [[] for _ in range(shape[0])]

    def scores(self, user: int) -> np.ndarray:
        last, roots = self.history[user][-20:], np.sqrt(np.maximum(self.counts, 1.0))
        return (self.pairs[last] / roots[last, None]).sum(axis=0) / roots + 1e-9 * self.counts

    def learn(self, user: int, item: int) -> None:
        history = self.history[user]
        self.pairs[item, history] += 1.0
        self.pairs[history, item] += 1.0
        self.counts[item] += 1.0
        history.append(item)


class Ease(Dense):
    """EASE (Steck 2019), refitted; new likes count at once."""

    weights: Any = None

    def scores(self, user: int) -> np.ndarray:
        if self.weights is None:
            return super().scores(user)
        return self.weights[self.likes[user] > 0.0].sum(axis=0)

    def refit(self) -> None:
        gram = (self.likes.T @ self.likes).astype(np.float64)
        gram[np.diag_indices_from(gram)] += RIDGE
        inverse = np.linalg.inv(gram)
        self.weights = -inverse / np.diag(inverse)
        np.fill_diagonal(self.weights, 0.0)


class ImplicitALS(Dense):
    """iALS of the package implicit, refitted; the user's factors are computed anew for each request."""

    model: Any = None

    def scores(self, user: int) -> np.ndarray:
        if self.model is None:
            return super().scores(user)
        from scipy.sparse import csr_matrix

        factors = self.model.recalculate_user(0, csr_matrix(self.likes[user : user + 1]))
        return self.model.item_factors @ np.ravel(factors)

    def refit(self) -> None:
        from implicit.als import AlternatingLeastSquares
        from scipy.sparse import csr_matrix

        self.model = AlternatingLeastSquares(factors=FACTORS, num_threads=1, random_state=0)
        self.model.fit(csr_matrix(self.likes), show_progress=False)


def dense_ranks(model: Dense, stream: Likes) -> np.ndarray:
    """Return the rank of every scored film just before it is learned, equal scores in random order."""
    rng = np.random.default_rng(0)
    seen, ranks = np.zeros(model.likes.shape, bool), []
    for user, item, liked, scored in zip(*(part.tolist() for part in stream), strict=True):
        if scored:
            scores = np.where(seen[user], -np.inf, model.scores(user))
            ties = int((scores == scores[item]).sum())
            ranks.append(int((scores > scores[item]).sum() + rng.integers(ties)))
        if liked:
            model.learn(user, item)
        seen[user, item] = True
    return np.array(ranks)


def our_ranks(stream: Likes) -> np.ndarray:
    """The same for `Recommender`."""
    pairs = np.stack([stream.users, stream.items], axis=1)
    ranks = Recommender().prequential(pairs, weights=stream.liked)[stream.scored]
    return np.where(ranks < 0, len(pairs), ranks)


def one_by_one_ranks(stream: Likes) -> np.ndarray:
    """The same with a call for every request and every event."""
    model, ranks = Recommender(), []
    for user, item, liked, scored in zip(*(part.tolist() for part in stream), strict=True):
        if scored:
            best = model.recommend(user, 10)
            ranks.append(best.index(item) if item in best else stream.users.size)
        model.partial_fit([(user, item)], weights=[liked])
    return np.array(ranks)


def block_ranks(stream: Likes) -> np.ndarray:
    """The same in blocks of ratings: one call for all requests, then one for all events.

    Users rate many films in a row, so most requests of a block get the ten of its beginning.
    """
    model, pairs = Recommender(), np.stack([stream.users, stream.items], axis=1)
    found = np.full(stream.users.size, stream.users.size)
    for first in range(0, found.size, BLOCK):
        part = slice(first, first + BLOCK)
        asked = first + np.flatnonzero(stream.scored[part])
        lists = model.recommend_many(stream.users[asked].tolist(), 10)
        for k, item, best in zip(asked, stream.items[asked].tolist(), lists, strict=True):
            found[k] = best.index(item) if item in best else found[k]
        model.partial_fit(pairs[part], weights=stream.liked[part])
    return found[stream.scored]


OURS, IN_BLOCKS = "`Recommender.prequential`", "`Recommender`, blocks of 100"
EASE, IALS = "EASE, refitted every 2,000 likes", "iALS of implicit, refitted"


def contestants(shape: tuple[int, int]) -> dict[str, Callable[[Likes], np.ndarray]]:
    """Return how the ranks of each method are found, by its name."""
    dense = {EASE: Ease, IALS: ImplicitALS, "co-occurrence, last 20 likes": Cooccurrence}
    if importlib.util.find_spec("implicit") is None:
        print("implicit is not installed: its row is left out", file=sys.stderr)
        del dense[IALS]
    dense["popularity"] = Dense
    ours = {OURS: our_ranks, IN_BLOCKS: block_ranks}
    ours["`Recommender`, one at a time"] = one_by_one_ranks
    return ours | {
        name: lambda stream, kind=kind: dense_ranks(kind(shape), stream)
        for name, kind in dense.items()
    }


def recovery(changed: np.ndarray, plain: np.ndarray, start: int) -> int | None:
    """Scored events after a change until recall is within 10 % of that without it; None for never."""
    for first in range(0, min(changed.size, plain.size) - start - WINDOW + 1, 100):
        part = slice(start + first, start + first + WINDOW)
        if changed[part].mean() >= 0.9 * plain[part].mean():
            return first
    return None


def timed(ranks_of: Callable[[Likes], np.ndarray], stream: Likes) -> tuple[np.ndarray, float]:
    """Return ranks, and seconds of the processor per like."""
    begun = process_time()
    ranks = ranks_of(stream)
    return ranks, (process_time() - begun) / int(stream.liked.sum())


def row(short: bool) -> list[Ratio]:
    """`Recommender` on the likes of MovieLens 100K against EASE and iALS: speed, misses, recovery."""
    plain, changed = likes(), likes(seed=0)
    shape = (int(plain.users.max()) + 1, int(plain.items.max()) + 1)
    count = 15_000 if short else plain.users.size
    first = Likes(*(part[:count] for part in plain))
    methods = contestants(shape)
    with threads(1):
        our_ranks(first)  # compiled before the clock starts
        names = [name for name in (OURS, EASE, IALS) if name in methods]
        found = {name: timed(methods[name], first) for name in names}
        later = {} if short else {name: methods[name](changed) for name in (OURS, EASE)}
    note = f"ranked and learned, refits included; the first {count:,} ratings in time order"
    ratios = [
        Ratio(
            "ranking",
            f"per like, {OURS}, against {name}",
            found[OURS][1],
            found[name][1],
            at_least=None if short else FLOOR,
            note=note,
        )
        for name in names[1:]
    ]
    missed = {name: float((found[name][0] >= 10).mean()) for name in (OURS, EASE)}
    ratios.append(
        Ratio(
            "ranking",
            "likes that are not among the ten, against EASE",
            *(missed[OURS], missed[EASE]),
            at_most=0.98,
            unit="loss",
            note=note,
        )
    )
    start = int(changed.scored[: plain.users.size // 2].sum())
    if later:
        back = [recovery(later[name] < 10, found[name][0] < 10, start) for name in (OURS, EASE)]
        mine, theirs = (later[OURS].size - start if each is None else each for each in back)
        ratios.append(
            Ratio(
                "ranking",
                "likes until recall is back after users are permuted, against EASE",
                *(mine + 100.0, theirs + 100.0),
                at_least=2.0,
                unit="ratings",
                note=f"mean over {WINDOW:,} likes within 10 % of that without, in steps of 100",
            )
        )
    return ratios


def main() -> None:
    """Print the table."""
    try:
        plain, changed = likes(), likes(seed=0)
    except Skipped as reason:
        print(reason)
        return
    shape = (int(plain.users.max()) + 1, int(plain.items.max()) + 1)
    block_ranks(Likes(*(part[:5000] for part in plain)))  # compiled before the clock starts
    rows, half = list[tuple[str, ...]](), plain.users.size // 2
    start = int(changed.scored[:half].sum())
    for name, ranks_of in contestants(shape).items():
        ranks, spent = timed(ranks_of, plain)
        later = ranks_of(changed)
        ndcg = np.where(ranks < 10, 1.0 / np.log2(ranks + 2.0), 0.0).mean()
        back = recovery(later < 10, ranks < 10, start)
        print(f"{name}: {spent * 1e6:.0f} us", file=sys.stderr)
        rows.append(
            (
                name,
                f"{(ranks < 10).mean():.4f}",
                f"{ndcg:.4f}",
                f"{1e6 * spent:,.0f}",
                f"{(later[start:] < 10).mean() / (ranks[start:] < 10).mean():.3f}",
                "never" if back is None else f"{back:,}",
            )
        )
    head = (
        "method",
        "recall@10",
        "NDCG@10",
        "us per like",
        "recall after the change",
        "back after",
    )
    print(markdown([head, *rows]))


if __name__ == "__main__":
    main()
