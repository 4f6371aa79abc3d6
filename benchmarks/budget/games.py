"""The games: the learners compared, how a game is played and recorded, and the list of all games."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftwolfe as dw
from benchmarks.budget.streams import SHORT, STREAMS, Size, windows
from benchmarks.output import write_json
from driftwolfe.learners.options import CACHED
from driftwolfe.streams.drift import Stream

Record = dict[str, Any]


class Store:
    """Records of finished games: one file each in `folder`/runs until all are done, then results.json.

    A game with a record is not played again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: dict[str, Record] = {}
        self._facts: Record | None = None  # about the machine, until a game is added
        whole = folder / "results.json"
        if whole.exists():
            stored = json.loads(whole.read_text())
            self.records.update(stored["runs"])
            self._facts = stored["machine"]
        for path in sorted((folder / "runs").glob("*.json")):
            if not path.name.startswith("."):  # a partly written file
                self.records[path.stem] = json.loads(path.read_text())

    def forget(self, text: str) -> None:
        """Remove the records whose names contain `text`, so that they are made again."""
        for key in [key for key in self.records if text in key]:
            del self.records[key]
            (self.folder / "runs" / f"{key}.json").unlink(missing_ok=True)

    def get(self, key: str, make: Callable[[], Record]) -> Record:
        """The record of that name, made and written if there is none."""
        if key not in self.records:
            self.records[key] = make()
            self._facts = None
            write_json(self.folder / "runs" / f"{key}.json", self.records[key])
        return self.records[key]

    def close(self, keys: list[str], facts: Record) -> list[Record]:
        """Write these records to results.json and remove the files of single games.

        If no game was added, the stored facts about the machine stay.
        """
        kept = {key: self.records[key] for key in keys}
        facts = self._facts or facts
        write_json(self.folder / "results.json", {"machine": facts, "runs": kept})
        for path in (self.folder / "runs").glob("*.json"):
            path.unlink()
        if (self.folder / "runs").exists():
            (self.folder / "runs").rmdir()
        return list(kept.values())


# -- the learners compared --------------------------------------------------------------------------

#: LMO calls per round.
BUDGETS = (0.05, 0.1, 0.3, 1.0, 3.0, 8.0)
EVEN_BUDGETS = (0.3, 1.0, 3.0)
CERTIFIED_BUDGETS = (0.3, 1.0, 8.0)
POLAR_BUDGETS = (0.1, 1.0)
LAZY = (0, 16, 64)

TITLES: dict[str, Callable[..., dw.Learner]] = {
    "POLAR": dw.POLAR,
    "POLD": dw.POLD,
    "POLA": dw.POLA,
    "BOGD_IP": dw.BOGDIP,
    "OneOracleAder": dw.learners.OneOracleAder,
    "OnlineFrankWolfe": dw.OnlineFrankWolfe,
}
#: Comparison: learn nothing.
ZERO = "the zero matrix"
#: Learners with and without a budget.
PAPER = ("POLD", "POLA", "BOGD_IP")


@dataclass(frozen=True)
class Setting:
    """A learner, its options and those of its oracle; `kind`, part of stored records, says what is special."""

    title: str
    kind: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def budget(self) -> float | None:
        """LMO calls per round, or None without a limit."""
        given = self.options.get("lmo_budget")
        return 1.0 if self.title == "OnlineFrankWolfe" else given

    @property
    def key(self) -> str:
        """A file name."""
        parts = [self.title, self.kind, *(f"{name}={v}" for name, v in self.options.items())]
        return "-".join(parts).replace(" ", "_")

    def make(self, domain: dw.Domain, rounds: int, lipschitz: float) -> dw.Learner:
        """A new learner; the certified tuning gets G, the practical one learns it."""
        given: dict[str, Any] = {"horizon": rounds, **self.options}
        oracle = {
            each.name: given.pop(each.name) for each in fields(dw.Oracle) if each.name in given
        }
        if oracle:
            given["oracle"] = dw.Oracle(**oracle)
        if "cache" in given:
            domain = dw.CachedDomain(domain, given.pop("cache"))
        if given.get("tuning") == "certified":
            given["lipschitz"] = lipschitz
        return TITLES[self.title](domain, **given)

    def record(self) -> dict[str, Any]:
        return {
            "learner": self.title,
            "kind": self.kind,
            "budget": self.budget,
            "options": self.options,
        }


def on_sets(name: str, domain: dw.Domain, short: bool) -> list[Setting]:
    """All settings for a set; fewer on the stream with slow drift."""
    fewer, slow = (0.3, 2.0), name == "slow vectors"
    budgets = fewer if short else (0.1, 1.0, 8.0) if slow else BUDGETS
    even = fewer[:1] if short else (1.0,) if slow else EVEN_BUDGETS
    certified = () if slow else fewer[1:] if short else CERTIFIED_BUDGETS
    found = [Setting("OnlineFrankWolfe", "one a round")]
    found += _of_polar(domain, fewer if short else POLAR_BUDGETS, slow)
    for title in PAPER:
        found += _budgeted(title, budgets, "budget", method="corrective")
        found += _budgeted(title, even, "even", schedule="even")
        found += _budgeted(title, certified, "certified", tuning="certified")
        if not slow:
            found.append(Setting(title, "unlimited", {"method": "corrective"}))
        if domain.cheap_projection:
            found.append(Setting(title, "exact", {"method": "exact"}))
    found += _budgeted("OneOracleAder", budgets, "budget", method="corrective")
    found += _budgeted("OneOracleAder", certified, "certified", tuning="certified")
    return found


def _of_polar(domain: dw.Domain, budgets: Sequence[float], slow: bool) -> list[Setting]:
    """POLAR, and what its cached vertices do: POLAR without them, and POLA with as many."""
    few, one = {"method": "corrective"}, budgets[-1:]
    found = _budgeted("POLAR", budgets, "budget", **few)
    if not slow:
        found.append(Setting("POLAR", "unlimited", few))
    if domain.cheap_projection:
        found.append(Setting("POLAR", "exact", {"method": "exact"}))
    if not (slow or domain.rank_one_atoms):  # corrective keeps no vertices there
        found += _budgeted("POLAR", one, "cached", **few, cache=0)
        found += _budgeted("POLA", one, "cached", **few, cache=CACHED)
    return found


def lazy(name: str, short: bool) -> list[Setting]:
    """With and without known vertices; on matrices only what takes less than a minute."""
    titles = ("BOGD_IP",) if short or name == "matrices" else PAPER
    sizes = LAZY[:2] if short else LAZY
    return [
        Setting(title, "lazy", {"method": "halfspace", "cache": size})
        for title in titles
        for size in sizes
    ]


def on_ratings(short: bool) -> list[Setting]:
    """Settings on MovieLens with the c chosen for the paper's methods.

    It was not chosen for the other two, which also play with c = D/G.
    """
    budgets = (0.2, 8.0) if short else (0.05, 0.2, 1.0, 8.0)
    scale = {"step_scale": 1e4}
    found = [Setting("OnlineFrankWolfe", "one a round", scale)]
    found.append(Setting("OnlineFrankWolfe", "own c"))
    # Its experts are matrices of growing rank: with more calls per round it takes minutes.
    few = [budget for budget in budgets if budget <= 1.0]
    found += _budgeted("OneOracleAder", few, "corrective", **scale, method="corrective")
    found += _budgeted("OneOracleAder", few[:2], "own c", method="corrective")
    for title in ("BOGD_IP", "POLD", *(() if short else ("POLA",))):
        own = {**scale, "grid": "experiment"} if title == "POLD" else scale
        found += _budgeted(title, budgets, "corrective", **own, method="corrective")
        if title != "POLA":  # minutes each
            found += _budgeted(title, budgets, "block", **own, method="block")
        found.append(Setting(title, "block", {**own, "method": "block"}))
    return found


def against_the_oracle(budget: float) -> dict[str, Setting]:
    """Learners with a known bound, against `ResistingOracle`."""
    certified = {"tuning": "certified", "lmo_budget": budget}
    found = {
        "BOGD_IP": Setting("BOGD_IP", "certified", certified),
        "BOGD_IP, even": Setting("BOGD_IP", "even", {**certified, "schedule": "even"}),
        "POLD": Setting("POLD", "certified", certified),
        "OneOracleAder": Setting("OneOracleAder", "certified", certified),
    }
    if budget == 1.0:
        found["OnlineFrankWolfe"] = Setting("OnlineFrankWolfe", "one a round", {"lipschitz": 1.0})
    return found


def _budgeted(title: str, budgets: Sequence[float], kind: str, **options: Any) -> list[Setting]:
    return [Setting(title, kind, {**options, "lmo_budget": budget}) for budget in budgets]


# -- one game -----------------------------------------------------------------------------------------

#: Rounds that another learner of the same kind plays first, so that nothing compiles on the clock;
#: at most an eighth of the game.
WARM_UP = 8
#: Relative gap of offline minima.
TOLERANCE = 1e-5
#: A learner that stays at the start suffers exactly the guarantee, up to rounding.
ROUNDING = 1e-12


def minima(stream: Stream, size: Size) -> dict[str, Any]:
    """The least loss of a fixed point over the game and each window, and the truth's loss."""
    found = [
        dw.regret.offline_minimum(stream.domain, stream.losses[a:b], tolerance=TOLERANCE)
        for a, b in windows(stream, size)
    ]
    truth = (f.value(u) for f, u in zip(stream.losses, stream.comparators, strict=True))
    return {
        "rounds": size.rounds,
        "window": size.window,
        "every": size.every,
        "truth": math.fsum(truth),
        "minima": [best.value for best in found],
        "largest_gap": max(best.gap for best in found),
    }


def regrets(losses: np.ndarray, stream: Stream, size: Size, best: dict[str, Any]) -> dict[str, Any]:
    """Static, dynamic and worst-window regret."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    suffered = [sums[b] - sums[a] for a, b in windows(stream, size)]
    each = np.array(suffered) - np.array(best["minima"])
    return {
        "static_regret": float(each[0]),
        "dynamic_regret": float(sums[-1] - best["truth"]),
        "window_regret": float(each[1:].max()),
    }


def play(setting: Setting, stream: Stream) -> tuple[dict[str, Any], np.ndarray]:
    """Play a game; return its record without regrets, and its losses."""
    assert stream.domain is not None
    given = (stream.domain, len(stream), stream.lipschitz)
    first = stream[: min(WARM_UP, len(stream) // 8)]
    dw.play(setting.make(*given), first, keep_losses=False, progress=False)
    learner = setting.make(*given)
    started = time.process_time()
    history = dw.play(learner, stream, keep_losses=False, progress=False)
    seconds = time.process_time() - started
    record = {
        "stream": stream.name,
        **setting.record(),
        "rounds": len(stream),
        "lmo_calls": int(history.lmo.sum()),
        "worst_round": int(history.lmo.max()),
        "projections": int(history.projection.sum()),
        "loss": float(history.losses.sum()),
        "seconds": round(seconds, 3),
    }
    _check_budget(setting, history.lmo)
    return record, history.losses


def _check_budget(setting: Setting, calls: np.ndarray) -> None:
    """Raise AssertionError if the game ever exceeded its budget."""
    if setting.budget is None:
        return
    allowed = setting.budget * np.arange(1, len(calls) + 1)
    if (np.cumsum(calls) > allowed + 1e-6).any():
        raise AssertionError(f"{setting.key} made more linear minimisations than its budget")
    if setting.kind == "even" and calls.max() > math.ceil(setting.budget):
        raise AssertionError(f"{setting.key} made too many linear minimisations in one round")


def resist(title: str, setting: Setting, rounds: int, budget: float) -> dict[str, Any]:
    """Play against `ResistingOracle`: regret must lie between the lower bound and the learner's."""
    game = dw.streams.ResistingOracle(rounds, budget)
    learner = setting.make(game.domain, rounds, 1.0)
    started = time.process_time()
    history = dw.play(learner, game.losses(learner), keep_losses=False, progress=False)
    record = {
        "stream": "resisting oracle",
        **setting.record(),
        "title": title,
        "budget": budget,
        "rounds": rounds,
        "lmo_calls": int(history.lmo.sum()),
        "worst_round": int(history.lmo.max()),
        "static_regret": game.lower_bound,
        "guarantee": game.guarantee,
        "bound": float(learner.bound()),
        "seconds": round(time.process_time() - started, 3),
    }
    _check_budget(setting, history.lmo)
    low, high = record["guarantee"] * (1 - ROUNDING), record["bound"]
    if not low <= record["static_regret"] <= high:
        raise AssertionError(f"{title} left its bounds: {record}")
    return record


# -- all games ----------------------------------------------------------------------------------------

SEEDS = 3
#: Shorter games and one seed for known vertices: some take a minute.
LAZY_SIZE = Size(rounds=500, window=100, every=20)
#: Rounds of MovieLens, and ratings in each; OnlineFrankWolfe sums gradients and slows down.
RATING_ROUNDS, RATINGS = 900, 100
#: Rounds of the games against the resisting oracle, by budget.
RESISTED = {
    1.0: tuple(2**k for k in range(6, 14)),
    4.0: tuple(2**k for k in range(6, 12)),
    0.25: tuple(2**k for k in range(6, 14)),
}


class Game(NamedTuple):
    """A game by name; `play` returns its record."""

    key: str
    play: Callable[[Store], Record]


def plan(short: bool) -> Iterator[Game]:
    """All games: everything once, then the other seeds."""
    yield from _resisting(short)
    yield from _seed(0, short)
    for name in ("vectors", "flows", "matrices")[: 1 if short else None]:
        for setting in lazy(name, short):
            yield _on_set("lazy", name, setting, SHORT if short else LAZY_SIZE, 0)
    yield from _ratings(short)
    for seed in range(1, 1 if short else SEEDS):
        yield from _seed(seed, short)


def _seed(seed: int, short: bool) -> Iterator[Game]:
    size = SHORT if short else Size()
    for name in list(STREAMS)[: 3 if short else None]:
        domain = _stream(name, size.rounds, seed).domain
        assert domain is not None
        for setting in on_sets(name, domain, short):
            yield _on_set("sets", name, setting, size, seed)


def _on_set(part: str, name: str, setting: Setting, size: Size, seed: int) -> Game:
    def record(store: Store) -> Record:
        stream = _stream(name, size.rounds, seed)
        best = store.get(f"minima-{name}-{size.rounds}-{seed}", lambda: minima(stream, size))
        played, losses = play(setting, stream)
        return {"part": part, "seed": seed, **played, **regrets(losses, stream, size, best)}

    return Game(f"{part}-{name}-{setting.key}-{seed}", record)


def _ratings(short: bool) -> Iterator[Game]:
    yield Game("ratings-zero", lambda _: _zero(_rating_stream(short)))
    for setting in on_ratings(short):
        yield Game(f"ratings-{setting.key}", lambda _, each=setting: _rated(each, short))


def _rated(setting: Setting, short: bool) -> Record:
    record, losses = play(setting, _rating_stream(short))
    return {"part": "ratings", **record, "loss_a_rating": float(losses.mean()) / RATINGS}


def _zero(stream: Stream) -> Record:
    """The record of playing zero in every round."""
    assert stream.domain is not None
    lost = sum(loss.value(stream.domain.origin()) for loss in stream.losses)
    what = {"learner": ZERO, "kind": "zero", "budget": None, "options": {}}
    calls = {"rounds": len(stream), "lmo_calls": 0, "worst_round": 0, "seconds": 0.0}
    a_rating = {"loss": lost, "loss_a_rating": lost / len(stream) / RATINGS}
    return {"part": "ratings", "stream": stream.name, **what, **calls, **a_rating}


def _resisting(short: bool) -> Iterator[Game]:
    for budget, lengths in RESISTED.items():
        for title, setting in against_the_oracle(budget).items():
            for rounds in lengths[:2] if short else lengths:
                given: Any = (title, setting, rounds, budget)
                yield Game(
                    f"bounds-{budget:g}-{rounds}-{setting.key}",
                    lambda _, given=given: {"part": "bounds", **resist(*given)},
                )


@lru_cache(maxsize=4)
def _stream(name: str, rounds: int, seed: int) -> Stream:
    return STREAMS[name](rounds, seed)


@lru_cache(maxsize=1)
def _rating_stream(short: bool) -> Stream:
    if short:
        return dw.streams.movielens_twin(rounds=12, seed=0)
    return dw.streams.movielens_100k(rounds=RATING_ROUNDS)
