"""All games of the experiment, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import driftwolfe as dw
from benchmarks.budget import games, settings
from benchmarks.budget.settings import ZERO, Setting
from benchmarks.budget.store import Record, Store
from benchmarks.budget.streams import SHORT, STREAMS, Size
from driftwolfe.streams.stream import Stream

SEEDS = 3
#: Shorter games, and one seed, for what known vertices save: some of them take a minute.
LAZY_SIZE = Size(rounds=500, window=100, every=20)
#: Rounds of MovieLens, and ratings in each: OnlineFrankWolfe adds up gradients, and slows down.
RATING_ROUNDS, RATINGS = 900, 100
#: Rounds of the games against the resisting oracle, by budget.
RESISTED = {
    1.0: tuple(2**k for k in range(6, 14)),
    4.0: tuple(2**k for k in range(6, 12)),
    0.25: tuple(2**k for k in range(6, 14)),
}


class Game(NamedTuple):
    """A game to be played: its name, and what plays it and returns its record."""

    key: str
    play: Callable[[Store], Record]


def plan(short: bool) -> Iterator[Game]:
    """Yield the games: everything once, then the other seeds."""
    yield from _resisting(short)
    yield from _seed(0, short)
    for name in ("vectors", "flows", "matrices")[: 1 if short else None]:
        yield from _lazy(name, 0, short)
    yield from _ratings(short)
    for seed in range(1, 1 if short else SEEDS):
        yield from _seed(seed, short)


def _seed(seed: int, short: bool) -> Iterator[Game]:
    size = SHORT if short else Size()
    for name in list(STREAMS)[: 3 if short else None]:
        domain = _stream(name, size.rounds, seed).domain
        assert domain is not None
        for setting in settings.on_sets(name, domain, short):
            yield _on_set("sets", name, setting, size, seed)


def _lazy(name: str, seed: int, short: bool) -> Iterator[Game]:
    for setting in settings.lazy(name, short):
        yield _on_set("lazy", name, setting, SHORT if short else LAZY_SIZE, seed)


def _on_set(part: str, name: str, setting: Setting, size: Size, seed: int) -> Game:
    def play(store: Store) -> Record:
        stream = _stream(name, size.rounds, seed)
        best = store.get(f"minima-{name}-{size.rounds}-{seed}", lambda: games.minima(stream, size))
        record, losses = games.play(setting, stream)
        return {"part": part, "seed": seed, **record, **games.regrets(losses, stream, size, best)}

    return Game(f"{part}-{name}-{setting.key}-{seed}", play)


def _ratings(short: bool) -> Iterator[Game]:
    yield Game("ratings-zero", lambda _: _zero(_rating_stream(short)))
    for setting in settings.on_ratings(short):
        yield Game(f"ratings-{setting.key}", lambda _, each=setting: _rated(each, short))


def _rated(setting: Setting, short: bool) -> Record:
    record, losses = games.play(setting, _rating_stream(short))
    return {"part": "ratings", **record, "loss_a_rating": float(losses.mean()) / RATINGS}


def _zero(stream: Stream) -> Record:
    """What one loses who learns nothing."""
    assert stream.domain is not None
    lost = sum(loss.value(stream.domain.origin()) for loss in stream.losses)
    what = {"learner": ZERO, "kind": "zero", "budget": None, "options": {}}
    calls = {"rounds": len(stream), "lmo_calls": 0, "worst_round": 0, "seconds": 0.0}
    a_rating = {"loss": lost, "loss_a_rating": lost / len(stream) / RATINGS}
    return {"part": "ratings", "stream": stream.name, **what, **calls, **a_rating}


def _resisting(short: bool) -> Iterator[Game]:
    for budget, lengths in RESISTED.items():
        for title, setting in settings.against_the_oracle(budget).items():
            for rounds in lengths[:2] if short else lengths:
                given: Any = (title, setting, rounds, budget)
                yield Game(
                    f"bounds-{budget:g}-{rounds}-{setting.key}",
                    lambda _, given=given: {"part": "bounds", **games.resist(*given)},
                )


@lru_cache(maxsize=4)
def _stream(name: str, rounds: int, seed: int) -> Stream:
    return STREAMS[name](rounds, seed)


@lru_cache(maxsize=1)
def _rating_stream(short: bool) -> Stream:
    if short:
        return dw.streams.movielens_twin(rounds=12, seed=0)
    return dw.streams.movielens_100k(rounds=RATING_ROUNDS)
