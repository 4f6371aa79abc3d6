"""Which model for which stream: `python -m benchmarks.streams`, ten minutes on two cores.

All rows are predicted before they are learned, one by one. Our estimators run with their defaults. Of
river's models, the adaptive random forest (ARF) and the Mondrian forest (AMF) have ten trees and their
defaults, except that ARF's leaves in regressions and AMF's splits of pure cells in classifications are the
better of two kinds; logistic, softmax and linear regression, SNARIMAX and matrix factorisation have the best
of several settings, chosen for each stream in hindsight. Generators are means over three seeds. Times are
processor times for predicting and learning a row, with the settings chosen.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import river
from river import datasets, forest, linear_model, optim, preprocessing
from river.datasets import synth

from benchmarks import classifier, completer, data, ranking, regressor
from benchmarks.measure import Skipped
from benchmarks.output import markdown, write_json
from driftwolfe.estimators.river import RiverTraceNormClassifier
from driftwolfe.storage import write_text

ROOT = Path(__file__).parents[1]
OUT, PAGE = ROOT / "docs/results/streams", ROOT / "docs/howto/which-model.md"
SOURCE = "<!-- from docs/results/streams/summary.md -->\n"
SEEDS, ROWS = (1, 2, 3), 4000
#: Rows of each stream with --short.
SHORT = 80

#: Models by name, each with the settings to choose from.
Contestants = Iterator[tuple[str, Sequence[Callable[[], Any]]]]


class Kind(NamedTuple):
    """Streams with one question and one score."""

    question: str
    high: bool  # whether larger scores are better
    digits: str  # how scores are printed
    streams: dict[str, Callable[[], list[Any]]]  # for each a list of rows, or one for each seed
    contestants: Callable[[str, Any], Contestants]  # by the name of the stream and the first rows
    play: Callable[[Any, Any], float]
    size: Callable[[Any], int]
    cut: Callable[[Any, int], Any]


# -- labels ----------------------------------------------------------------------------------------


def generated(make: Callable[[int], Any]) -> list[Any]:
    """Rows of a generator, for every seed."""
    return [list(make(seed).take(ROWS)) for seed in SEEDS]


def halves(first: Any, second: Any, seed: int) -> Any:
    """One generator, and another from about half of the rows on."""
    return synth.ConceptDriftStream(first, second, position=ROWS // 2, width=ROWS // 20, seed=seed)


def sea(seed: int) -> Any:
    return halves(*(synth.SEA(variant, noise=0.1, seed=seed) for variant in (0, 3)), seed)


def agrawal(seed: int) -> Any:
    return halves(*(synth.Agrawal(function, seed=seed) for function in (0, 3)), seed)


LABELS: dict[str, Callable[[], list[Any]]] = {
    "Bananas": lambda: [list(datasets.Bananas())],
    "Phishing": lambda: [list(datasets.Phishing())],
    "ImageSegments": lambda: [list(datasets.ImageSegments())],
    "SEA, changes once": lambda: generated(sea),
    "Agrawal, changes once": lambda: generated(agrawal),
    "Hyperplane, turns": lambda: generated(
        lambda seed: synth.Hyperplane(seed, n_drift_features=5, mag_change=0.01)
    ),
    "RandomRBFDrift": lambda: generated(
        lambda seed: synth.RandomRBFDrift(seed, seed, n_classes=4, change_speed=0.001)
    ),
    "Shuttle, flipped every 10,000 rows": lambda: [classifier.shuttle(flipped=True)],
}


def regression_of_labels(rate: float, scaled: bool, two: bool) -> Any:
    """Logistic regression for two classes, softmax regression for more."""
    family = linear_model.LogisticRegression if two else linear_model.SoftmaxRegression
    model = family(optim.SGD(rate))
    return preprocessing.StandardScaler() | model if scaled else model


def classifiers(_: str, rows: Any) -> Contestants:
    two = len({y for _, y in rows}) <= 2
    yield "ours", [RiverTraceNormClassifier]
    yield "ARF", [partial(forest.ARFClassifier, n_models=10, seed=0)]
    pure = [{"split_pure": pure, "seed": 0} for pure in (False, True)]
    yield "AMF", [partial(forest.AMFClassifier, n_estimators=10, **each) for each in pure]
    settings = [(rate, scaled) for scaled in (True, False) for rate in classifier.RATES]
    yield "tuned logistic", [partial(regression_of_labels, *each, two) for each in settings]


# -- numbers ---------------------------------------------------------------------------------------

NUMBERS = (
    *("TrumpApproval", "ChickWeights", "WaterFlow", "Friedman, changes at once"),
    *("Friedman, changes slowly", "linear, signs flipped", "linear, coefficients walk"),
    *("new: AirlinePassengers", "new: diabetes"),
)


def regressors(name: str, _: Any) -> Contestants:
    names = {"linear": "tuned linear", "forest": "ARF", "SNARIMAX": "tuned SNARIMAX"}
    for each, settings in regressor.contestants(regressor.STREAMS[name][0]):
        yield names.get(each, each), settings
    yield "AMF", [partial(forest.AMFRegressor, n_estimators=10, seed=0)]


# -- ratings and likes -----------------------------------------------------------------------------


def raters(_: str, stream: Any) -> Contestants:
    yield "ours", [lambda: completer.errors_of_ours]
    for name, make in (("BiasedMF", completer.biased_mf), ("Baseline", completer.baseline)):
        yield (
            f"tuned {name}",
            [
                lambda make=make, rate=rate: partial(completer.errors_of_river, make(rate))
                for rate in completer.LEARNING_RATES
            ],
        )


def rankers(_: str, stream: Any) -> Contestants:
    shape = tuple(int(part.max()) + 1 for part in stream[:2])
    yield "ours", [lambda: ranking.our_ranks]
    kinds = {"co-occurrence": ranking.Cooccurrence, "refitted EASE": ranking.Ease}
    for name, cls in (kinds | {"popularity": ranking.Dense}).items():
        yield name, [lambda cls=cls: partial(ranking.dense_ranks, cls(shape))]


KINDS = {
    "labels": Kind(
        *("share of right labels", True, ".3f", LABELS, classifiers),
        play=lambda model, rows: 1.0 - classifier.play(model, rows).error,
        size=len,
        cut=lambda rows, n: rows[:n],
    ),
    "numbers": Kind(
        *("mean absolute error of numbers", False, ".4g"),
        {name: lambda name=name: [regressor.STREAMS[name][1]()] for name in NUMBERS},
        regressors,
        play=regressor.play,
        size=len,
        cut=lambda rows, n: rows[:n],
    ),
    "ratings": Kind(
        *("mean absolute error of ratings", False, ".4f"),
        {
            f"MovieLens 100K, {name}": lambda name=name: [data.rating_streams()[name]]
            for name in ("time order", "one pass, flipped twice")
        },
        raters,
        play=lambda model, stream: float(model(stream).mean()),
        size=lambda stream: stream.ratings.size,
        cut=lambda s, n: s._replace(pairs=s.pairs[:n], ratings=s.ratings[:n], flips=()),
    ),
    "likes": Kind(
        *("recall@10 of the next like", True, ".3f"),
        {
            "MovieLens 100K, likes": lambda: [ranking.likes()],
            "MovieLens 100K, tastes change": lambda: [ranking.likes(seed=0)],
        },
        rankers,
        play=lambda model, stream: float((model(stream) < 10).mean()),
        size=lambda stream: stream.users.size,
        cut=lambda stream, n: type(stream)(*(part[:n] for part in stream)),
    ),
}


class Played(NamedTuple):
    """Scores of all models on a stream, and their seconds for a row."""

    kind: str
    stream: str
    rows: int
    scores: dict[str, float]
    seconds: dict[str, float]


def measure(kind: str, name: str, short: bool, models: Sequence[str] | None = None) -> Played | str:
    """Play all models, or some, on a stream; return why not where its data is not there."""
    own = KINDS[kind]
    try:
        several = own.streams[name]()
    except Skipped as reason:
        return str(reason)
    if short:
        several = [own.cut(several[0], SHORT)]
    count = sum(map(own.size, several))
    played = Played(kind, name, count, {}, {})
    own.play(next(own.contestants(name, several[0]))[1][0](), own.cut(several[0], 20))  # compiles
    for model, settings in own.contestants(name, several[0]):
        found = []
        if models is not None and model not in models:
            continue
        for make in settings[:1] if short else settings:
            started = time.process_time()
            score = float(np.mean([own.play(make(), rows) for rows in several]))
            found.append((score, (time.process_time() - started) / count))
        if found:
            best = (max if own.high else min)(found)
            played.scores[model], played.seconds[model] = best
    return played


def tables(played: Sequence[Played]) -> list[str]:
    """A table of scores and one of times for every kind, and one of what was won."""
    found, won = [], [["streams of", "number", "ours is best", "best of the others is quicker"]]
    for kind, own in KINDS.items():
        some = [each for each in played if each.kind == kind]
        if not some:
            continue
        models = list(dict.fromkeys(model for each in some for model in each.scores))
        scores = [[own.question, "rows", *models, "best"]]
        times = [[f"time of a row over that of ours: {kind}", *models[1:]]]
        wins = quicker = 0
        for each in some:
            texts = {name: f"{score:{own.digits}}" for name, score in each.scores.items()}
            order = sorted(each.scores, key=each.scores.__getitem__, reverse=own.high)
            best = [name for name in models if texts.get(name) == texts[order[0]]]
            wins += "ours" in best
            rival = next((name for name in order if name != "ours"), "ours")
            quicker += each.seconds[rival] < each.seconds["ours"]
            cells = (texts.get(name, "") for name in models)
            scores.append([each.stream, f"{each.rows:,}", *cells, ", ".join(best)])
            ratios = {
                name: each.seconds[name] / max(each.seconds["ours"], 1e-9) for name in each.seconds
            }
            times.append(
                [
                    each.stream,
                    *(f"{ratios[name]:.2g}" if name in ratios else "" for name in models[1:]),
                ]
            )
        won.append([kind, str(len(some)), str(wins), str(quicker)])
        found += [markdown(scores), markdown(times)]
    return [markdown(won), *found]


def refreshed(page: str, found: Sequence[str]) -> str:
    """The page with its tables, those under `SOURCE`, replaced by new ones with the same first cell."""
    new = {table.split("|")[1]: table for table in found}

    def renew(match: re.Match[str]) -> str:
        return SOURCE + new.get(match[1].split("|")[1], match[1].rstrip()) + "\n"

    return re.sub(re.escape(SOURCE) + r"((?:\|.*\n)+)", renew, page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all streams, and write what was found."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streams", description=__doc__.split("\n\n")[1]
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder of summary.md, results.json")
    parser.add_argument(
        "--only",
        nargs="+",
        default=list(KINDS),
        choices=list(KINDS),
        help="others stay as they were",
    )
    parser.add_argument(
        "--models", nargs="+", help="play only these; scores and times of others stay as they were"
    )
    parser.add_argument("--jobs", type=int, default=2, help="streams at a time")
    parser.add_argument("--short", action="store_true", help=f"{SHORT} rows, nothing tuned")
    given = parser.parse_args(arguments)
    pairs = [(kind, name) for kind in given.only for name in KINDS[kind].streams]
    pairs.sort(key=lambda pair: "Shuttle" not in pair[1])  # the longest first
    results: dict[tuple[str, str], Played] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
        jobs = {pool.submit(measure, *pair, given.short, given.models): pair for pair in pairs}
        for number, job in enumerate(as_completed(jobs), start=1):
            played = job.result()
            outcome = played if isinstance(played, str) else "done"
            print(f"{number}/{len(jobs)} {jobs[job][1]}: {outcome}", file=sys.stderr, flush=True)
            if not isinstance(played, str):
                results[jobs[job]] = played
    stored = given.out / "results.json"
    if stored.exists():
        for each in json.loads(stored.read_text(encoding="utf-8")):
            before = Played(**each)
            merged = results.get(before[:2], before)
            if given.models:
                scores, seconds = before.scores | merged.scores, before.seconds | merged.seconds
                merged = merged._replace(scores=scores, seconds=seconds)
            results[before[:2]] = merged
    everything = ((kind, name) for kind, own in KINDS.items() for name in own.streams)
    ordered = [results[pair] for pair in everything if pair in results]
    found = tables(ordered)
    command = "python -m benchmarks.streams" + (" --short" if given.short else "")
    intro = f"# Streams\n\nMeasured by `{command}` with river {river.__version__}.\n"
    summary = "\n".join([intro, *(f"{table}\n" for table in found)])
    given.out.mkdir(parents=True, exist_ok=True)
    write_text(given.out / "summary.md", summary)
    write_json(stored, [each._asdict() for each in ordered])
    if given.out == OUT and PAGE.exists() and not given.short:
        write_text(PAGE, refreshed(PAGE.read_text(encoding="utf-8"), found))
    print(summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
