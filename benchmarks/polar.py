"""The command `python -m benchmarks.polar`: POLAR with its defaults beside all learners that can play."""

from __future__ import annotations

import argparse
import inspect
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import driftwolfe as dw
from benchmarks import ROOT
from benchmarks.budget.streams import ROUNDS, STREAMS
from benchmarks.measure import threads
from benchmarks.output import markdown, write_json
from driftwolfe import doctor
from driftwolfe.domains import Domain
from driftwolfe.experiments.trial import DataSet
from driftwolfe.losses import SquaredDistance
from driftwolfe.storage import write_text
from driftwolfe.streams import synthetic
from driftwolfe.streams.drift import Stream, change_points, steepest
from driftwolfe.terminal import number, spread, spread_text

FOLDER = ROOT / "docs" / "results" / "polar"
Learners = dict[str, Callable[[Stream], dw.Learner]]
#: Rows of POLAR itself: what the others are compared with.
OURS, LAZY = "POLAR", "POLAR, lazy only"

# -- learners --------------------------------------------------------------------------------------

#: Learners of the library that are in no row, and why.
LEFT_OUT = {
    "Bandit": "sees values only",
    "SemiBandit": "sees components of vertices only",
    "LongTerm": "is for constraints that move",
    "CutBOGDIP": "is for constraints that move",
    "Mixture": "mixes learners that have rows",
}
#: Learners that need to know how curved losses are, by the parameter that says it.
CURVED = {"strong_convexity": ("StronglyConvexOFW",), "smoothness": ("LineSearchOFW",)}
CURVED |= {"alpha": ("AFLH", "OnlineNewtonStep")}


def curvatures(stream: Stream) -> dict[str, float]:
    """Constants of squared distances, whose curvature is twice their weight; none for other losses."""
    if not all(isinstance(loss, SquaredDistance) for loss in stream.losses):
        return {}
    bends = [2.0 * loss.weight for loss in stream.losses]
    alpha = max(bends) / stream.lipschitz**2  # f is curvature / gradient^2-exp-concave
    return {"smoothness": max(bends), "strong_convexity": min(bends), "alpha": alpha}


def told(cls: type[dw.Learner], stream: Stream) -> dw.Learner:
    """A learner with its defaults, told all constants of the stream that it asks for.

    Where the set does not project, one that would project exactly does it by LMO calls.
    """
    asked, name = inspect.signature(cls).parameters, cls.__name__
    known: dict[str, Any] = {"horizon": len(stream), "lipschitz": stream.lipschitz}
    exact = "oracle" in asked and asked["oracle"].default == "exact"
    if exact and not stream.domain.can("project"):
        known["oracle"] = "corrective"
    needed = [option for option, classes in CURVED.items() if name in classes]
    curved = curvatures(stream) if needed else {}
    if needed and not curved and name != "OnlineNewtonStep":
        raise ValueError(f"{name} is for curved losses")
    known |= {option: curved[option] for option in needed if option in curved}
    return cls(stream.domain, **{option: known[option] for option in known if option in asked})


def told_curved(cls: type[dw.Learner], option: str, stream: Stream) -> dw.Learner:
    """The same, told how curved the losses are, for learners that need not know."""
    if not (known := curvatures(stream)):
        raise ValueError(f"{option} is for curved losses")
    return cls(stream.domain, len(stream), stream.lipschitz, **{option: known[option]})


def polar(stream: Stream) -> dw.Learner:
    """POLAR with its defaults: it is told the set and nothing else."""
    return dw.POLAR(stream.domain)


def lazy(stream: Stream) -> dw.Learner:
    """POLAR with one kind of expert: lazy ones, with steps from the largest gradient."""
    return dw.POLAR(stream.domain, experts=("lazy",))


def others() -> Learners:
    """Every learner of the library but POLAR, by name."""
    found = {name: getattr(dw.learners, name) for name in dw.learners.__all__ if name != "Learner"}
    found |= {name: getattr(dw.contrib, name) for name in dw.contrib.__all__}
    left_out = {OURS, *LEFT_OUT}
    rows = {name: partial(told, cls) for name, cls in found.items() if name not in left_out}
    for name, option in (("MultiOCG", "strong_convexity"), ("Sword", "smoothness")):
        rows[f"{name}, {option}="] = partial(told_curved, found[name], option)
    return rows


ALL: Learners = {OURS: polar, LAZY: lazy, **others()}
#: Learners that are quick enough for 3,000 rounds with matrices of 943 x 1,682: the others project exactly, or
#: make many LMO calls per round.
QUICK = (OURS, LAZY, "POLD", "BOGDIP", "LOOBOGD", "KalhanOFW")
#: c of POLD and POLA on real data is the best that `driftwolfe reproduce --preset paper` found.
MATRICES: Learners = {
    **{name: ALL[name] for name in QUICK},
    "POLD, c = 1e4": lambda s: dw.POLD(s.domain, len(s), step_scale=1e4, grid="experiment"),
}
CLASSES: Learners = {**ALL, "POLA, c = 64": lambda s: dw.POLA(s.domain, step_scale=64.0)}

# -- streams ---------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """Streams by seed, and the learners that play them."""

    stream: Callable[[int], Stream]
    seeds: Sequence[int]
    learners: Learners = ALL


#: Seeds of made streams: none was used to choose anything, but by one look the share of POLAR's weights.
FRESH = range(10, 15)


def movielens_random(seed: int) -> Stream:
    """MovieLens 100K whose ratings change their sign in two random rounds."""
    return DataSet(name="movielens-100k-random-drifts").load(seed)


def _signs(domain: Domain, seed: int, rounds: int = ROUNDS, changes: int = 6) -> Stream:
    return synthetic.linear_signs(domain, rounds, changes=changes, seed=seed)


def _pieces(domain: Domain, seed: int, rounds: int = ROUNDS, changes: int = 6) -> Stream:
    return synthetic.piecewise_constant(domain, rounds, pieces=changes + 1, seed=seed)


def at_random(make: Callable[..., Stream], domain: Domain, seed: int) -> Stream:
    """The pieces of a stream, as many as the seed says (2 to 16), which begin where it says."""
    rng = np.random.default_rng((seed, 1))
    changes = int(rng.integers(1, 16))
    begin = np.sort(rng.choice(ROUNDS - 1, changes, replace=False) + 1)
    order = np.searchsorted(begin, np.arange(ROUNDS), side="right").tolist()
    one_each = make(domain, seed, rounds=changes + 1, changes=changes)
    losses = [one_each.losses[i] for i in order]
    points = [one_each.comparators[i] for i in order]
    return Stream(losses, one_each.name, one_each.lipschitz, points, domain, change_points(order))


def scaled(make: Callable[[int], Stream], how: str, seed: int) -> Stream:
    """A stream of squared distances, times 1,000 in round 11 or times heavy-tailed numbers."""
    stream = make(seed)
    factors = np.where(np.arange(len(stream)) == 10, 1e3, 1.0)
    if how == "heavy tails":
        factors = np.random.default_rng((seed, 2)).pareto(1.2, len(stream)) + 0.1
    pairs = zip(stream.losses, factors.tolist(), strict=True)
    losses = [SquaredDistance(loss.target, factor * loss.weight) for loss, factor in pairs]
    return Stream(
        losses,
        stream.name,
        steepest(losses, stream.domain),
        stream.comparators,
        stream.domain,
        stream.drifts,
    )


REAL = {
    "MovieLens": Setting(lambda seed: dw.streams.movielens_100k(seed=seed), range(5), MATRICES),
    "MovieLens with random drifts": Setting(movielens_random, range(5), MATRICES),
    "Shuttle": Setting(lambda seed: dw.streams.shuttle(seed=seed), range(5), CLASSES),
}
#: The streams that POLAR's constants were chosen on, with other seeds.
CHOSEN_ON = {name: Setting(partial(make, ROUNDS), FRESH) for name, make in STREAMS.items()}
_box = partial(_pieces, dw.LinfBall(30))
#: Streams that were first played when all constants stood.
OTHERS = {
    "signs on the l1 ball": Setting(partial(_signs, dw.L1Ball(20)), FRESH),
    "signs on the simplex": Setting(partial(_signs, dw.Simplex(20)), FRESH),
    "pieces on the l2 ball": Setting(partial(_pieces, dw.L2Ball(30)), FRESH),
    "pieces on a box": Setting(_box, FRESH),
    "pieces on matchings": Setting(partial(_pieces, dw.BirkhoffPolytope(6)), FRESH),
    "pieces on spanning trees": Setting(partial(_pieces, dw.SpanningTreePolytope(6)), FRESH),
    "rotation on the l2 ball": Setting(
        lambda seed: synthetic.rotating_quadratic(dw.L2Ball(10), ROUNDS, seed=seed), FRESH
    ),
}
#: Changes whose number and places the seed draws.
RANDOM = {
    "random pieces on the l2 ball": Setting(partial(at_random, _pieces, dw.L2Ball(30)), FRESH),
    "random pieces on the simplex": Setting(partial(at_random, _pieces, dw.Simplex(20)), FRESH),
    "random pieces on a box": Setting(partial(at_random, _pieces, dw.LinfBall(30)), FRESH),
    "random signs on the l1 ball": Setting(partial(at_random, _signs, dw.L1Ball(20)), FRESH),
    "random signs on the simplex": Setting(partial(at_random, _signs, dw.Simplex(20)), FRESH),
}
_vectors = partial(STREAMS["vectors"], ROUNDS)
#: Losses of very different sizes.
UNEVEN = {
    "vectors, an outlier": Setting(partial(scaled, _vectors, "outlier"), FRESH),
    "vectors, heavy tails": Setting(partial(scaled, _vectors, "heavy tails"), FRESH),
    "pieces on a box, an outlier": Setting(partial(scaled, _box, "outlier"), FRESH),
}
SETTINGS = REAL | CHOSEN_ON | OTHERS | RANDOM | UNEVEN
#: The tables of the summary, and what they show.
TABLES = {
    "Real data": ("loss per round", REAL),
    "Streams of the budget experiment": ("dynamic regret", CHOSEN_ON),
    "Other streams": ("dynamic regret", OTHERS),
    "Changes at random": ("dynamic regret", RANDOM),
    "Losses of very different sizes": ("dynamic regret", UNEVEN),
}

# -- games -----------------------------------------------------------------------------------------


#: Learners whose games take longest on small sets.
SLOW = ("AFLH", "OnlineNewtonStep", "PAMO")


class Game(NamedTuple):
    """A stream and seed, and the learner that plays it."""

    setting: str
    learner: str
    seed: int


def play(game: Game) -> dict[str, Any]:
    """Play a game on one thread: loss per round, or dynamic regret where the truth is known."""
    setting = SETTINGS[game.setting]
    stream = setting.stream(game.seed)
    try:
        learner = setting.learners[game.learner](stream)
        with threads(1):
            ahead = learner.clone()  # compiles what is compiled
            for loss in stream.losses[:10]:
                ahead.update(loss)
            started = time.process_time()
            total = sum(learner.update(loss) for loss in stream)
            spent = time.process_time() - started
    except (ValueError, TypeError, NotImplementedError) as reason:
        return {**game._asdict(), "refused": str(reason)}
    if stream.comparators is None:
        value = total / len(stream)
    else:
        pairs = zip(stream.losses, stream.comparators, strict=True)
        value = total - sum(loss.value(u) for loss, u in pairs)
    return {
        **game._asdict(),
        "value": value,
        "seconds": spent,
        "rounds": len(stream),
        "lmo_calls": learner.lmo_calls,
    }


class Results:
    """Records of games in a file, which are not played again but for some learners on some settings."""

    def __init__(self, path: Path, replay: Iterable[tuple[str, str]] = ()) -> None:
        self.path, self._written, again = path, time.monotonic(), set(replay)
        stored = json.loads(path.read_text()) if path.exists() else {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.seconds: dict[tuple[str, str], float] = {}  # of games that were played
        for name in SETTINGS.keys() & stored.keys():
            setting, found = SETTINGS[name], stored[name]
            records = [r for r in found["records"] if "value" in r or "refused" in r]
            self.seconds |= {(name, r["learner"]): r.get("seconds", 0.0) for r in records}
            if found.get("format") != 2:  # of other seeds, and of another POLAR
                continue
            planned = {each for each in setting.learners if (name, each) not in again}
            kept = [r for r in records if r["learner"] in planned and r["seed"] in setting.seeds]
            self.settings[name] = {**found, "records": kept}

    def missing(self, settings: Iterable[str]) -> list[Game]:
        """Games to play, those that take longest first."""
        done = {
            Game(name, r["learner"], r["seed"])
            for name, found in self.settings.items()
            for r in found["records"]
        }
        planned = (
            Game(name, *each)
            for name in settings
            for each in product(SETTINGS[name].learners, SETTINGS[name].seeds)
        )
        return sorted((game for game in planned if game not in done), key=self._order)

    def add(self, record: dict[str, Any]) -> None:
        """Add a game, and write the file now and then."""
        found = self.settings.setdefault(record["setting"], {"format": 2, "records": []})
        found["made"] = doctor.facts() if "made" not in found else found["made"]
        found["records"].append(record)
        if time.monotonic() > self._written + 10.0:
            self.write()

    def write(self) -> None:
        """Write the file, in the order of the tables."""
        for name in (name for name in SETTINGS if name in self.settings):
            learners = list(SETTINGS[name].learners)
            self.settings[name]["records"].sort(
                key=lambda r: (learners.index(r["learner"]), r["seed"])
            )
        ordered = {name: self.settings[name] for name in SETTINGS if name in self.settings}
        write_json(self.path, ordered)
        self._written = time.monotonic()

    def _order(self, game: Game) -> float:
        """Long games first: as they took before, else those on real data and those of slow learners."""
        guess = 1e3 if game.setting in REAL else 1e2 if game.learner in SLOW else 1.0
        return -self.seconds.get((game.setting, game.learner), guess)


# -- tables ----------------------------------------------------------------------------------------


def _played(results: Results, setting: str) -> dict[str, list[dict[str, Any]]]:
    """The games of a setting by learner, of those that did not refuse the set."""
    played: dict[str, list[dict[str, Any]]] = {}
    for record in results.settings.get(setting, {"records": []})["records"]:
        if "value" in record:
            played.setdefault(record["learner"], []).append(record)
    return played


def _means(played: dict[str, list[dict[str, Any]]], key: str = "value") -> dict[str, float]:
    return {name: statistics.fmean(r[key] for r in games) for name, games in played.items()}


def comparison(results: Results) -> str:
    """The best of the other learners on each stream, and POLAR's share of its regret."""
    rows = [["stream", "seeds", "best other learner", "its regret", OURS, "ratio", LAZY, "time"]]
    for name in SETTINGS:
        played = _played(results, name)
        means, spent = _means(played), _means(played, "seconds")
        rest = {learner: mean for learner, mean in means.items() if learner not in (OURS, LAZY)}
        if OURS not in means or not rest:
            continue
        best = min(rest, key=rest.__getitem__)
        against = [f"{means[OURS] / mean:.2f}" for mean in (rest[best], means.get(LAZY, np.nan))]
        longer = f"{spent[OURS] / spent.get(LAZY, np.nan):.2f}"
        values = [number(rest[best]), number(means[OURS])]
        rows.append([name, str(len(played[OURS])), best, *values, *against, longer])
    head = (
        f'POLAR beside the best of the others: a ratio below 1 is less regret (loss per round on real data)\
 than theirs. "{LAZY}" and "time" are ratios to POLAR with lazy experts alone.'
    )
    return "\n\n".join([head, markdown(rows)])


def table(results: Results, title: str, value: str, settings: dict[str, Setting]) -> str | None:
    """The mean of each learner on each stream, with standard deviations; and its processor seconds."""
    played = {name: games for name in settings if (games := _played(results, name))}
    learners = dict.fromkeys(learner for name in played for learner in settings[name].learners)
    rows = [["learner", *played], ["learner", *played]]
    tables = [[rows[0]], [rows[1]]]
    for learner in learners:
        found = [games.get(learner) for games in played.values()]
        if any(found):
            for key, lines in zip(("value", "seconds"), tables, strict=True):
                cells = (
                    spread_text(spread(r[key] for r in each)) if each else "" for each in found
                )
                lines.append([learner, *cells])
    if not played:
        return None
    parts = (f"## {title}", f"{value.capitalize()}:", markdown(tables[0]))
    return "\n\n".join([*parts, "Processor seconds of a game:", markdown(tables[1])])


def refusals(results: Results) -> str:
    """Which learner could not play which stream, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, found in results.settings.items():
        for record in found["records"]:
            if "refused" in record:
                streams = reasons.setdefault((record["learner"], record["refused"]), [])
                streams.extend([name] if name not in streams else [])
    rows = [["learner", "not on", "because"]]
    rows += [[name, "any", reason] for name, reason in LEFT_OUT.items()]
    slow = ", ".join(name for name in ALL if name not in QUICK)
    rows.append([slow, "MovieLens", "take a minute and a half to hours"])
    rows += [
        [learner, ", ".join(streams), reason] for (learner, reason), streams in reasons.items()
    ]
    return "\n\n".join(["## Who does not play", markdown(rows)])


def summary(results: Results) -> str:
    """All tables."""
    head = "# POLAR beside other methods\n\nBy `python -m benchmarks.polar`; see [README.md](README.md)."
    tables = (table(results, title, *what) for title, what in TABLES.items())
    parts = [head, comparison(results), *filter(None, tables), refusals(results)]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all games; write records and tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.polar",
        description="Play POLAR with its defaults, untuned, beside all learners that can play, on MovieLens "
        "100K, Shuttle and streams whose truth jumps or drifts. Writes results.json and summary.md; games "
        "that are in results.json are not played again.",
        epilog="Data is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument(
        "settings", nargs="*", metavar="SETTING", help=f"{', '.join(SETTINGS)}; default: all"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="games to play at once, one thread each"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for results")
    parser.add_argument(
        "--replay", nargs="+", default=(), metavar="LEARNER", help="play games of these again"
    )
    parser.add_argument(
        "--seeds", nargs=2, type=int, metavar=("FIRST", "END"), help="other seeds of made streams"
    )
    options = parser.parse_args(arguments)
    if options.seeds:
        if options.out == FOLDER:
            parser.error("--seeds plays other games: give them a folder of their own with --out")
        for name in SETTINGS.keys() - REAL.keys():
            SETTINGS[name] = SETTINGS[name]._replace(seeds=range(*options.seeds))
    names = set(MATRICES) | set(CLASSES)
    for kind, given, known in (
        ("setting", options.settings, SETTINGS),
        ("learner", options.replay, names),
    ):
        if unknown := set(given) - set(known):
            parser.error(
                f"unknown {kind} {', '.join(sorted(unknown))}; there are {', '.join(known)}"
            )
    settings = options.settings or list(SETTINGS)
    results = Results(options.out / "results.json", product(settings, options.replay))
    games = results.missing(settings)
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [pool.submit(play, game) for game in games]
        done = tqdm(as_completed(running), "games", len(running), disable=None, leave=False)
        try:
            for each in done:
                results.add(each.result())
        except FileNotFoundError as missing:
            print(
                f"{missing}\nset DRIFTWOLFE_DATA, and run the same command again", file=sys.stderr
            )
            return 2
        finally:
            pool.shutdown(cancel_futures=True)
            results.write()
    write_text(options.out / "summary.md", summary(results))
    print(summary(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
