"""MatrixCompleter on MovieLens 100K, against river's BiasedMF: speed, errors, ratings until it is back."""

from __future__ import annotations

from benchmarks import recommender
from benchmarks.measure import medians
from benchmarks.ratings import RatingStream, rating_streams
from benchmarks.ratio import Ratio
from benchmarks.recovery import recoveries

ROW = "recommender"
#: Ratings timed, and how often.
SIZES = {True: (10_000, 3), False: (recommender.TIMED, recommender.REPEATS)}
#: The stream that repeats no pair, and the learning rate that suits BiasedMF best on it.
STREAM, RATE = "one pass, flipped twice", 0.05


def measure(short: bool) -> list[Ratio]:
    """Speed in batches of 100 and one at a time, then errors and recoveries where tastes flip."""
    stream = rating_streams()[STREAM]
    return [*_speed(*SIZES[short]), *_drift(stream)]


def _speed(count: int, repeats: int) -> list[Ratio]:
    timings = recommender.speed(count, repeats)
    middle = {name: value / count for name, value in medians(timings).items()}
    theirs = middle.pop(recommender.BIASED_MF)
    return [
        Ratio(
            ROW,
            f"a rating, {name}, against BiasedMF",
            ours,
            theirs,
            at_least=1.0 if name == recommender.OURS_IN_BATCHES else None,
            note=f"predicted and learned; the first {count:,} in file order",
            timings=timings,
        )
        for name, ours in middle.items()
    ]


def _drift(stream: RatingStream) -> list[Ratio]:
    """Ten factors and the best rate for river's; what is never back counts up to the next flip."""
    ours = recommender.errors_of_ours(stream)
    theirs = recommender.errors_of_river(recommender.biased_mf(RATE), stream)
    note = f"{stream.name}; BiasedMF at its best learning rate in hindsight, {RATE:g}"
    ratios = [
        Ratio(
            ROW,
            "mean absolute error",
            float(ours.mean()),
            float(theirs.mean()),
            at_most=1.0,
            unit="loss",
            note=note,
        )
    ]
    ends = (*stream.flips[1:], stream.ratings.size)
    back = zip(*(recoveries(errors, stream.flips) for errors in (ours, theirs)), strict=True)
    for flip, end, both in zip(stream.flips, ends, back, strict=True):
        mine, other = (float(end - flip if each is None else each) for each in both)
        ratios.append(
            Ratio(
                ROW,
                f"ratings until back, flip at {flip:,}",
                mine,
                other,
                at_least=2.0,
                unit="ratings",
                note="the mean error of 500 within 10 % of that of the 5,000 before the flip",
            )
        )
    return ratios
