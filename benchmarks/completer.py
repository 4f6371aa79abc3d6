"""Predictions of ratings on MovieLens 100K: `python -m benchmarks.completer` prints errors and speed.

With `--features` it prints what side features of users and films bring.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from river import optim, reco

from benchmarks.data import RatingStream, rating_streams, recoveries, side_features
from benchmarks.measure import Skipped, Timings, medians, race
from benchmarks.output import markdown
from benchmarks.ratio import Ratio
from driftwolfe.estimators import MatrixCompleter, RiverMatrixCompleter

#: Of river's models the best of these is shown, chosen in hindsight for each stream.
LEARNING_RATES = (0.01, 0.025, 0.05)
BATCH = 100
#: Ratings that speed is measured on, and repeats.
TIMED, REPEATS = 30_000, 5
OURS, OURS_IN_BATCHES = "MatrixCompleter, one at a time", "MatrixCompleter, batches of 100"
BIASED_MF, BASELINE = "river BiasedMF, tuned in hindsight", "river Baseline, tuned in hindsight"
ONE, RIVER = "MatrixCompleter, predict and partial_fit of one", "RiverMatrixCompleter"
#: The row's stream, which repeats no pair, and the best learning rate of BiasedMF on it.
STREAM, RATE = "one pass, flipped twice", 0.05


def biased_mf(rate: float) -> reco.BiasedMF:
    """Biases and ten factors."""
    return reco.BiasedMF(
        n_factors=10,
        bias_optimizer=optim.SGD(rate),
        latent_optimizer=optim.SGD(rate),
        latent_initializer=optim.initializers.Normal(mu=0.0, sigma=0.1, seed=0),
    )


def baseline(rate: float) -> reco.Baseline:
    """Biases alone."""
    return reco.Baseline(optimizer=optim.SGD(rate))


def errors_of_river(model, stream: RatingStream) -> np.ndarray:
    """Absolute errors of a river model, each rating predicted and then learned."""
    errors = np.empty(stream.ratings.size)
    for n, (user, film, rating) in enumerate(_records(stream)):
        errors[n] = abs(model.predict_one(user, film) - rating)
        model.learn_one(user, film, rating)
    return errors


def errors_of_ours(stream: RatingStream, completer: MatrixCompleter | None = None) -> np.ndarray:
    """Absolute errors of `MatrixCompleter`, each rating predicted and then learned."""
    completer = completer or MatrixCompleter()
    return np.abs(completer.prequential(stream.pairs, stream.ratings) - stream.ratings)


def errors_in_batches(stream: RatingStream, completer: MatrixCompleter | None = None) -> np.ndarray:
    """The same with batches of 100 ratings predicted, then learned."""
    completer, errors = completer or MatrixCompleter(), []
    for start in range(0, stream.ratings.size, BATCH):
        batch = slice(start, start + BATCH)
        pairs, ratings = stream.pairs[batch], stream.ratings[batch]
        told = completer.predict(pairs) if completer.n_ratings_ else 0.0
        errors.append(np.abs(told - ratings))
        completer.partial_fit(pairs, ratings)
    return np.concatenate(errors)


def tuned(make, stream: RatingStream) -> tuple[float, np.ndarray]:
    """The learning rate with the smallest mean error on this very stream, and its errors."""
    tried = {rate: errors_of_river(make(rate), stream) for rate in LEARNING_RATES}
    best = min(tried, key=lambda rate: tried[rate].mean())
    return best, tried[best]


def speed(count: int = TIMED, repeats: int = REPEATS) -> Timings:
    """Seconds of each contestant on the first ratings of the file, in turns."""
    whole = rating_streams()["file order"]
    stream = RatingStream("first", whole.pairs[:count], whole.ratings[:count])
    errors_of_ours(RatingStream("a few", whole.pairs[:2000], whole.ratings[:2000]))
    return race(
        {
            OURS_IN_BATCHES: lambda: errors_in_batches(stream),
            BIASED_MF: lambda: errors_of_river(biased_mf(0.025), stream),
            ONE: lambda: _one_by_one(stream),
            RIVER: lambda: errors_of_river(RiverMatrixCompleter(), stream),
            "MatrixCompleter, prequential": lambda: errors_of_ours(stream),
        },
        repeats,
        warm_up=False,
    )


def row(short: bool) -> list[Ratio]:
    """MatrixCompleter on MovieLens 100K against river's BiasedMF: speed, errors, recovery."""
    count, repeats = (10_000, 3) if short else (TIMED, REPEATS)
    stream = rating_streams()[STREAM]
    timings = speed(count, repeats)
    middle = {name: value / count for name, value in medians(timings).items()}
    theirs = middle.pop(BIASED_MF)
    ratios = [
        Ratio(
            "completer",
            f"per rating, {name}, against BiasedMF",
            ours,
            theirs,
            at_least=1.0 if name in (OURS_IN_BATCHES, ONE, RIVER) else None,
            note=f"predicted and learned; the first {count:,} in file order",
            timings=timings,
        )
        for name, ours in middle.items()
    ]
    return ratios + _drift_ratios(stream)


def _drift_ratios(stream: RatingStream) -> list[Ratio]:
    """Errors and recoveries; an error that never recovers counts up to the next flip."""
    ours, theirs = errors_of_ours(stream), errors_of_river(biased_mf(RATE), stream)
    ratios = [
        Ratio(
            "completer",
            "mean absolute error",
            float(ours.mean()),
            float(theirs.mean()),
            at_most=1.0,
            unit="loss",
            note=f"{stream.name}; BiasedMF at its best learning rate in hindsight, {RATE:g}",
        )
    ]
    ends = (*stream.flips[1:], stream.ratings.size)
    found = zip(*(recoveries(errors, stream.flips) for errors in (ours, theirs)), strict=True)
    for flip, end, both in zip(stream.flips, ends, found, strict=True):
        mine, other = (float(end - flip if each is None else each) for each in both)
        ratios.append(
            Ratio(
                "completer",
                f"ratings until recovered, flip at {flip:,}",
                mine,
                other,
                at_least=2.0,
                unit="ratings",
                note="the mean error of 500 within 10 % of that of the 5,000 before the flip",
            )
        )
    return ratios


def completer_with(features) -> MatrixCompleter:
    """A new `MatrixCompleter` with features of users and of items, or with none."""
    return MatrixCompleter().add_features(*features) if features else MatrixCompleter()


def early(stream: RatingStream, first: int = 20) -> np.ndarray:
    """Whether each rating is one of the first of its user."""
    seen: dict[int, int] = {}
    places = np.empty(stream.ratings.size, dtype=int)
    for n, user in enumerate(stream.pairs[:, 0].tolist()):
        places[n] = seen.setdefault(user, 0)
        seen[user] += 1
    return places < first


def feature_tables(streams: dict[str, RatingStream], features) -> str:
    """Errors by features on the first stream and its parts; then on all, without and with."""
    users, items = features
    stream = next(iter(streams.values()))
    half, cold = stream.ratings.size // 2, early(stream)
    parts = (slice(None), slice(half), slice(half, None), cold)
    rows = [
        [f"{stream.name}, batches of 100", "all", "first half", "second half", "first 20 of a user"]
    ]
    for name, given in {
        "without": None,
        "the model, no features": ({}, {}),
        "features of users": (users, {}),
        "features of items": ({}, items),
        "features of both": features,
    }.items():
        errors = errors_in_batches(stream, completer_with(given))
        rows.append([name, *(f"{errors[part].mean():.4f}" for part in parts)])
    single = [["one at a time", *streams]]
    for name, given in {"without": None, "features of both": features}.items():
        found = [errors_of_ours(each, completer_with(given)) for each in streams.values()]
        single.append([name, *(f"{errors.mean():.4f}" for errors in found)])
    return f"{markdown(rows)}\n\n{markdown(single)}"


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.completer",
        description="Mean absolute errors of predicted ratings on MovieLens 100K, ratings until they "
        "recover after a change, and speed. Takes minutes; finds the data through DRIFTWOLFE_DATA.",
    )
    parser.add_argument("--features", action="store_true", help="what side features bring")
    try:
        streams = rating_streams()
        if parser.parse_args().features:
            print(feature_tables(streams, side_features()))
            return 0
    except Skipped as reason:
        print(reason, file=sys.stderr)
        return 2
    errors = {name: _all_errors(stream) for name, stream in streams.items()}
    print(_error_table(errors), _recovery_table(errors, streams), _speed_table(speed()), sep="\n\n")
    print(
        "\nThe three copies repeat the same pairs. A model that only remembers the rating of each "
        "pair, and knows when the sign changes, would have a mean absolute error of "
        f"{_memoriser(streams):.3f} there. In the other streams no pair comes twice."
    )
    return 0


def _records(stream: RatingStream) -> Iterator[tuple[int, int, float]]:
    return zip(*stream.pairs.T.tolist(), stream.ratings.tolist(), strict=True)


def _one_by_one(stream: RatingStream) -> None:
    completer = MatrixCompleter()
    for user, film, rating in _records(stream):
        if completer.n_ratings_:
            completer.predict([(user, film)])
        completer.partial_fit([(user, film)], [rating])


def _all_errors(stream: RatingStream) -> dict[str, tuple[str, np.ndarray]]:
    """By contestant: a note on its learning rate, and its errors."""
    print(f"{stream.name} ...", file=sys.stderr, flush=True)
    found = {OURS: ("", errors_of_ours(stream)), OURS_IN_BATCHES: ("", errors_in_batches(stream))}
    for name, make in ((BIASED_MF, biased_mf), (BASELINE, baseline)):
        rate, errors = tuned(make, stream)
        found[name] = (f" (rate {rate:g})", errors)
    return found


def _memoriser(streams: dict[str, RatingStream]) -> float:
    """Mean error of predicting the mean so far in the first copy and exactly in the others."""
    ratings = streams["file order"].ratings
    before = np.concatenate([[0.0], np.cumsum(ratings)[:-1] / np.arange(1, ratings.size)])
    return float(np.abs(before - ratings).mean()) / 3.0


def _error_table(errors) -> str:
    rows = [["mean absolute error", *errors]]
    for name in next(iter(errors.values())):
        found = [each[name] for each in errors.values()]
        rows.append([name, *(f"{each.mean():.4f}{note}" for note, each in found)])
    return markdown(rows)


def _recovery_table(errors, streams: dict[str, RatingStream]) -> str:
    changes = [(s, flip) for s in streams.values() for flip in s.flips]
    rows = [["ratings until recovered", *(f"{s.name}, at {flip:,}" for s, flip in changes)]]
    for name in (OURS, BIASED_MF):
        found = [n for s in streams.values() for n in recoveries(errors[s.name][name][1], s.flips)]
        rows.append(
            [name, *("not before the next, or the end" if n is None else f"{n:,}" for n in found)]
        )
    return markdown(rows)


def _speed_table(timings: Timings) -> str:
    middle = medians(timings)
    rows = [["speed", "ratings per second", "against BiasedMF"]]
    for name, seconds in middle.items():
        name = "river BiasedMF" if name == BIASED_MF else name
        rows.append([name, f"{TIMED / seconds:,.0f}", f"{middle[BIASED_MF] / seconds:.2f}"])
    return markdown(rows)


if __name__ == "__main__":
    sys.exit(main())
