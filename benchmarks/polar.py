"""The command `python -m benchmarks.polar`: POLAR with its defaults beside the paper's methods."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

import driftwolfe as dw
from benchmarks import ROOT
from benchmarks.budget.streams import ROUNDS, STREAMS
from benchmarks.measure import threads
from benchmarks.output import markdown, short_number, write_json
from driftwolfe.experiments import machine
from driftwolfe.storage import write_text
from driftwolfe.streams.drift import Stream, reflected

FOLDER = ROOT / "docs" / "results" / "polar"


def movielens_random(seed: int) -> Stream:
    """MovieLens 100K whose ratings change their sign in two random rounds."""
    stream = dw.streams.movielens_100k(copies=(1, 1, 1), seed=seed)
    first, last = sorted(np.random.default_rng(seed).integers(1, len(stream), size=2))
    losses = list(stream.losses)
    losses[first:last] = [reflected(loss) for loss in losses[first:last]]
    return replace(stream, losses=losses)


class Setting(NamedTuple):
    """Streams by seed, and the learners that play them."""

    title: str
    stream: Callable[[int], Stream]
    seeds: int
    learners: dict[str, Callable[[Stream], Any]]


def _polar(stream: Stream) -> Any:
    return dw.POLAR(stream.domain)


def _pold_tuned(stream: Stream) -> Any:
    return dw.POLD(stream.domain, len(stream), step_scale=1e4, grid="experiment")


def _pola_tuned(stream: Stream) -> Any:
    return dw.POLA(stream.domain, step_scale=64.0)


def _pold(stream: Stream) -> Any:
    return dw.POLD(stream.domain, len(stream), stream.lipschitz)


def _pola(stream: Stream) -> Any:
    return dw.POLA(stream.domain, lipschitz=stream.lipschitz)


def _ader(stream: Stream) -> Any:
    return dw.Ader(stream.domain, len(stream), stream.lipschitz)


def _jumping(name: str, seed: int) -> Stream:
    return STREAMS[name](ROUNDS, seed)


def _settings() -> dict[str, Setting]:
    matrices = {"POLAR": _polar, "POLD, c = 1e4": _pold_tuned}
    settings = {
        "movielens": Setting(
            "MovieLens 100K, flips at 1000 and 2000, loss per round",
            lambda seed: dw.streams.movielens_100k(seed=seed),
            5,
            matrices,
        ),
        "random": Setting(
            "MovieLens 100K, flips at two random rounds, loss per round",
            movielens_random,
            5,
            matrices,
        ),
        "shuttle": Setting(
            "Shuttle, loss per round",
            lambda seed: dw.streams.shuttle(seed=seed),
            5,
            {"POLAR": _polar, "POLA, c = 64": _pola_tuned},
        ),
    }
    for name in STREAMS:
        learners = {"POLAR": _polar, "POLD": _pold, "POLA": _pola}
        if name != "flows":
            learners["Ader"] = _ader
        settings[name] = Setting(
            f"{name}, dynamic regret", lambda seed, name=name: _jumping(name, seed), 3, learners
        )
    return settings


class Game(NamedTuple):
    setting: str
    learner: str
    seed: int


def play(game: Game) -> dict[str, Any]:
    """Play a game on one thread: loss per round, or dynamic regret where the truth is known."""
    setting = _settings()[game.setting]
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
    return {**game._asdict(), "value": value, "seconds": spent, "lmo_calls": learner.lmo_calls}


def summary(records: Sequence[dict[str, Any]]) -> str:
    """A table for each setting: mean value with its range over seeds, mean seconds, LMO calls."""
    parts = []
    for name, setting in _settings().items():
        rows = [["", "mean", "least", "largest", "seconds", "LMO calls"]]
        for learner in setting.learners:
            found = [r for r in records if (r["setting"], r["learner"]) == (name, learner)]
            if not found:
                continue
            values = [r["value"] for r in found]
            means = [statistics.fmean(r[key] for r in found) for key in ("seconds", "lmo_calls")]
            numbers = [statistics.fmean(values), min(values), max(values), *means]
            rows.append([learner, *(short_number(number) for number in numbers)])
        if len(rows) > 1:
            parts.append(f"{setting.title}, {setting.seeds} orders or seeds:\n\n{markdown(rows)}\n")
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all games; write records and tables."""
    settings = _settings()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.polar",
        description="Play POLAR with its defaults, untuned, beside the paper's methods on MovieLens "
        "100K, Shuttle and streams whose truth jumps or drifts. Writes results.json and summary.md.",
        epilog="Takes about half an hour on two cores. Data is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument(
        "settings", nargs="*", metavar="SETTING", help=f"{', '.join(settings)}; default: all"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="games to play at once, one thread each"
    )
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for results")
    options = parser.parse_args(arguments)
    if unknown := set(options.settings) - set(settings):
        parser.error(
            f"unknown setting {', '.join(sorted(unknown))}; there are {', '.join(settings)}"
        )
    games = [
        Game(name, learner, seed)
        for name in options.settings or settings
        for learner in settings[name].learners
        for seed in range(settings[name].seeds)
    ]
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            played = pool.map(play, games)
            records = list(tqdm(played, total=len(games), unit="game", disable=None, leave=False))
    except FileNotFoundError as missing:
        print(f"{missing}\nset DRIFTWOLFE_DATA, and run the same command again", file=sys.stderr)
        return 2
    write_json(options.out / "results.json", {"machine": machine.facts(), "records": records})
    write_text(options.out / "summary.md", summary(records))
    print(summary(records))
    return 0


if __name__ == "__main__":
    sys.exit(main())
