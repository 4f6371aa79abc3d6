"""The command `python -m benchmarks.polar`: POLAR with its defaults beside the paper's methods."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

import driftwolfe as dw
from benchmarks import ROOT
from benchmarks.budget.streams import ROUNDS, STREAMS
from benchmarks.measure import threads
from benchmarks.output import markdown, write_json
from driftwolfe import doctor
from driftwolfe.domains import Domain
from driftwolfe.experiments.trial import DataSet
from driftwolfe.storage import write_text
from driftwolfe.streams import synthetic
from driftwolfe.streams.drift import Stream
from driftwolfe.terminal import number, spread, spread_text

FOLDER = ROOT / "docs" / "results" / "polar"


def movielens_random(seed: int) -> Stream:
    """MovieLens 100K whose ratings change their sign in two random rounds."""
    return DataSet(name="movielens-100k-random-drifts").load(seed)


Learners = dict[str, Callable[[Stream], dw.Learner]]


class Setting(NamedTuple):
    """Streams by seed, and the learners that play them."""

    stream: Callable[[int], Stream]
    seeds: int
    learners: Learners


def polar(stream: Stream) -> dw.Learner:
    """POLAR with its defaults."""
    return dw.POLAR(stream.domain)


#: c of POLD and POLA on real data is the best that `driftwolfe reproduce --preset paper` found.
MATRICES: Learners = {
    "POLAR": polar,
    "POLD, c = 1e4": lambda s: dw.POLD(s.domain, len(s), step_scale=1e4, grid="experiment"),
}
CLASSES: Learners = {"POLAR": polar, "POLA, c = 64": lambda s: dw.POLA(s.domain, step_scale=64.0)}
LMO_ONLY: Learners = {
    "POLAR": polar,
    "POLD": lambda s: dw.POLD(s.domain, len(s), s.lipschitz),
    "POLA": lambda s: dw.POLA(s.domain, lipschitz=s.lipschitz),
}
PROJECTING: Learners = {
    **LMO_ONLY,
    "Ader": lambda s: dw.Ader(s.domain, len(s), s.lipschitz),
    "SAOL": lambda s: dw.learners.SAOL(s.domain, lipschitz=s.lipschitz),
}
REAL = {
    "MovieLens": Setting(lambda seed: dw.streams.movielens_100k(seed=seed), 5, MATRICES),
    "MovieLens with random drifts": Setting(movielens_random, 5, MATRICES),
    "Shuttle": Setting(lambda seed: dw.streams.shuttle(seed=seed), 5, CLASSES),
}
#: The streams that POLAR's constants were chosen on.
CHOSEN_ON = {
    name: Setting(partial(make, ROUNDS), 3, LMO_ONLY if name == "flows" else PROJECTING)
    for name, make in STREAMS.items()
}


def _signs(domain: Domain, seed: int) -> Stream:
    return synthetic.linear_signs(domain, ROUNDS, changes=6, seed=seed)


def _pieces(domain: Domain, seed: int) -> Stream:
    return synthetic.piecewise_constant(domain, ROUNDS, pieces=7, seed=seed)


#: Streams that were first played when all constants stood.
OTHERS = {
    "signs on the l1 ball": Setting(partial(_signs, dw.L1Ball(20)), 3, PROJECTING),
    "signs on the simplex": Setting(partial(_signs, dw.Simplex(20)), 3, PROJECTING),
    "pieces on the l2 ball": Setting(partial(_pieces, dw.L2Ball(30)), 3, PROJECTING),
    "pieces on a box": Setting(partial(_pieces, dw.LinfBall(30)), 3, PROJECTING),
    "pieces on matchings": Setting(partial(_pieces, dw.BirkhoffPolytope(6)), 3, LMO_ONLY),
    "pieces on spanning trees": Setting(partial(_pieces, dw.SpanningTreePolytope(6)), 3, LMO_ONLY),
    "rotation on the l2 ball": Setting(
        lambda seed: synthetic.rotating_quadratic(dw.L2Ball(10), ROUNDS, seed=seed), 3, PROJECTING
    ),
}
SETTINGS = REAL | CHOSEN_ON | OTHERS


class Game(NamedTuple):
    """A stream and seed, and the learner that plays it."""

    setting: str
    learner: str
    seed: int


def play(game: Game) -> dict[str, Any]:
    """Play a game on one thread: loss per round, or dynamic regret where the truth is known."""
    setting = SETTINGS[game.setting]
    stream = setting.stream(game.seed)
    learner = setting.learners[game.learner](stream)
    with threads(1):
        started = time.process_time()
        total = sum(learner.update(loss) for loss in stream)
        spent = time.process_time() - started
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


def summary(results: dict[str, Any]) -> str:
    """A table for real data, one for each kind of stream: mean over seeds ± standard deviation."""
    tables = []
    for value, settings in (
        ("loss per round", REAL),
        ("dynamic regret", CHOSEN_ON),
        ("dynamic regret", OTHERS),
    ):
        rows = [["game", "seeds", value, "seconds", "LMO calls per round"]]
        for name, learner in ((n, each) for n in settings for each in settings[n].learners):
            records = results.get(name, {"records": []})["records"]
            if found := [record for record in records if record["learner"] == learner]:
                numbers = [
                    spread_text(spread(r[key] for r in found)) for key in ("value", "seconds")
                ]
                calls = statistics.fmean(r["lmo_calls"] / r["rounds"] for r in found)
                rows.append([f"{name}: {learner}", str(len(found)), *numbers, number(calls)])
        if len(rows) > 1:
            tables.append(markdown(rows))
    head = "# POLAR beside other methods\n\nBy `python -m benchmarks.polar`; see [README.md](README.md)."
    return "\n\n".join([head, *tables]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all games; write records and tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.polar",
        description="Play POLAR with its defaults, untuned, beside the paper's methods on MovieLens "
        "100K, Shuttle and streams whose truth jumps or drifts. Writes results.json and summary.md; "
        "settings that are not named keep their results.",
        epilog="Takes about half an hour on two cores. Data is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument(
        "settings", nargs="*", metavar="SETTING", help=f"{', '.join(SETTINGS)}; default: all"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="games to play at once, one thread each"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for results")
    options = parser.parse_args(arguments)
    if unknown := set(options.settings) - set(SETTINGS):
        parser.error(
            f"unknown setting {', '.join(sorted(unknown))}; there are {', '.join(SETTINGS)}"
        )
    path = options.out / "results.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            for name in tqdm(
                options.settings or SETTINGS, unit="setting", disable=None, leave=False
            ):
                learners, seeds = SETTINGS[name].learners, range(SETTINGS[name].seeds)
                records = list(
                    pool.map(play, (Game(name, *each) for each in product(learners, seeds)))
                )
                results[name] = {"made": doctor.facts(), "records": records}
                write_json(path, results)
    except FileNotFoundError as missing:
        print(f"{missing}\nset DRIFTWOLFE_DATA, and run the same command again", file=sys.stderr)
        return 2
    write_text(options.out / "summary.md", summary(results))
    print(summary(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
