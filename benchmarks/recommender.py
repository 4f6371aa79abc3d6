"""Recommenders on MovieLens 100K: `python -m benchmarks.recommender` prints what they miss and take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from river import optim, reco

from benchmarks.measure import Timings, medians, race, threads
from benchmarks.ratings import RatingStream, rating_streams
from benchmarks.recovery import recoveries
from benchmarks.skipped import Skipped
from driftwolfe.estimators import MatrixCompleter

#: Of river's models the best of these is shown, chosen afterwards for each stream.
LEARNING_RATES = (0.01, 0.025, 0.05)
BATCH = 100
#: Ratings that speed is measured on, and how often.
TIMED, REPEATS = 30_000, 5
OURS, OURS_IN_BATCHES = "MatrixCompleter, one at a time", "MatrixCompleter, batches of 100"
BIASED_MF, BASELINE = "river BiasedMF, tuned in hindsight", "river Baseline, tuned in hindsight"


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
    """What it misses, each rating predicted and then learned."""
    errors = np.empty(stream.ratings.size)
    for n, (user, film, rating) in enumerate(_plain(stream)):
        errors[n] = abs(model.predict_one(user, film) - rating)
        model.learn_one(user, film, rating)
    return errors


def errors_of_ours(stream: RatingStream) -> np.ndarray:
    """What `MatrixCompleter` misses, each rating predicted and then learned."""
    return np.abs(MatrixCompleter().prequential(stream.pairs, stream.ratings) - stream.ratings)


def errors_in_batches(stream: RatingStream) -> np.ndarray:
    """The same with 100 ratings predicted, then learned."""
    completer, errors = MatrixCompleter(), []
    for pairs, ratings in _batches(stream, BATCH):
        errors.append(np.abs(completer.predict(pairs) - ratings))
        completer.partial_fit(pairs, ratings)
    return np.concatenate(errors)


def tuned(make, stream: RatingStream) -> tuple[float, np.ndarray]:
    """The learning rate that misses least on this very stream, and its errors."""
    tried = {rate: errors_of_river(make(rate), stream) for rate in LEARNING_RATES}
    best = min(tried, key=lambda rate: tried[rate].mean())
    return best, tried[best]


def speed(count: int = TIMED, repeats: int = REPEATS) -> Timings:
    """Seconds of each contestant on the first ratings of the file, in turns."""
    whole = rating_streams()["file order"]
    stream = RatingStream("first", whole.pairs[:count], whole.ratings[:count])
    with threads(1):
        errors_of_ours(RatingStream("a few", whole.pairs[:2000], whole.ratings[:2000]))
        return race(
            {
                OURS_IN_BATCHES: lambda: errors_in_batches(stream),
                BIASED_MF: lambda: errors_of_river(biased_mf(0.025), stream),
                "MatrixCompleter, predict and partial_fit of one": lambda: _one_by_one(stream),
                "MatrixCompleter, prequential": lambda: errors_of_ours(stream),
            },
            repeats,
            warm_up=False,
        )


def main() -> int:
    """Print the tables."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.recommender",
        description="Mean absolute errors of recommenders on MovieLens 100K, ratings until they are "
        "back after a change, and speed. Minutes; needs the data, found through DRIFTWOLFE_DATA.",
    ).parse_args()
    try:
        streams = rating_streams()
    except Skipped as reason:
        print(reason, file=sys.stderr)
        return 2
    errors = {name: _all_errors(stream) for name, stream in streams.items()}
    print(_error_table(errors), _recovery_table(errors, streams), _speed_table(speed()), sep="\n\n")
    print(
        "\nThe three copies repeat the same pairs. One that only remembers the rating of each pair, "
        "and knows when the sign changes, would miss "
        f"{_memoriser(streams):.3f} there. In the other streams no pair comes twice."
    )
    return 0


def _plain(stream: RatingStream) -> Iterator[tuple[int, int, float]]:
    return zip(*stream.pairs.T.tolist(), stream.ratings.tolist(), strict=True)


def _batches(stream: RatingStream, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start in range(0, stream.ratings.size, size):
        yield stream.pairs[start : start + size], stream.ratings[start : start + size]


def _one_by_one(stream: RatingStream) -> None:
    completer = MatrixCompleter()
    for user, film, rating in _plain(stream):
        completer.predict([(user, film)])
        completer.partial_fit([(user, film)], [rating])


def _all_errors(stream: RatingStream) -> dict[str, tuple[str, np.ndarray]]:
    print(f"{stream.name} ...", file=sys.stderr, flush=True)
    found = {
        OURS: ("", errors_of_ours(stream)),
        OURS_IN_BATCHES: ("", errors_in_batches(stream)),
    }
    for name, make in ((BIASED_MF, biased_mf), (BASELINE, baseline)):
        rate, errors = tuned(make, stream)
        found[name] = (f" (rate {rate:g})", errors)
    return found


def _memoriser(streams: dict[str, RatingStream]) -> float:
    """Predicts the mean so far in the first copy, and knows from the second on what comes."""
    ratings = streams["file order"].ratings
    before = np.concatenate([[0.0], np.cumsum(ratings)[:-1] / np.arange(1, ratings.size)])
    return float(np.abs(before - ratings).mean()) / 3.0


def _error_table(errors) -> str:
    rows = [["mean absolute error", *errors]]
    for name in next(iter(errors.values())):
        found = [each[name] for each in errors.values()]
        rows.append([name, *(f"{each.mean():.4f}{note}" for note, each in found)])
    return _markdown(rows)


def _recovery_table(errors, streams: dict[str, RatingStream]) -> str:
    changes = [(s, flip) for s in streams.values() for flip in s.flips]
    rows = [["ratings until back", *(f"{s.name}, at {flip:,}" for s, flip in changes)]]
    for name in (OURS, BIASED_MF):
        back = [
            each for s in streams.values() for each in recoveries(errors[s.name][name][1], s.flips)
        ]
        rows.append(
            [name, *("not before the next, or the end" if n is None else f"{n:,}" for n in back)]
        )
    return _markdown(rows)


def _speed_table(timings: Timings) -> str:
    middle = medians(timings)
    rows = [["speed", "ratings a second", "against BiasedMF"]]
    for name, seconds in middle.items():
        name = "river BiasedMF" if name == BIASED_MF else name
        ratio = middle[BIASED_MF] / seconds
        rows.append([name, f"{TIMED / seconds:,.0f}", f"{ratio:.2f}"])
    return _markdown(rows)


def _markdown(rows: list[list[str]]) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    rule = f"| --- |{' ---: |' * (len(rows[0]) - 1)}"
    return "\n".join([head, rule, *rest])


if __name__ == "__main__":
    sys.exit(main())
