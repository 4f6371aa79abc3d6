"""Rank films from likes with river's rankers and ours: `python -m benchmarks.river_ranking`.

MovieLens 100K in time order, its first ratings (`--ratings`, 20,000 by default: river's rankers score every film
for every request). Ratings of 4 and 5 stars are likes, y = 1; others are learned as y = 0, ours as seen only.
`driftwolfe.evaluate.ranking` asks all in the same way, through river's API; of river's models the best of three
learning rates is shown, chosen in hindsight.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

from river import reco

from benchmarks.completer import LEARNING_RATES, baseline, biased_mf
from benchmarks.data import rating_streams
from benchmarks.measure import Skipped
from benchmarks.output import markdown
from driftwolfe import evaluate
from driftwolfe.estimators import RiverMatrixCompleter, RiverRecommender

#: Name, what makes a model with a learning rate, and the rates to try.
RANKERS: tuple[tuple[str, Callable[[float], Any], tuple[float, ...]], ...] = (
    ("`RiverRecommender`", lambda _: RiverRecommender(), (0.0,)),
    ("`RiverMatrixCompleter`", lambda _: RiverMatrixCompleter(), (0.0,)),
    ("river's `BiasedMF`, tuned in hindsight", biased_mf, LEARNING_RATES),
    ("river's `Baseline`, tuned in hindsight", baseline, LEARNING_RATES),
    ("river's `RandomNormal`", lambda _: reco.RandomNormal(seed=0), (0.0,)),
)


def scores(make: Callable[[float], Any], rates: tuple[float, ...], events: Any) -> tuple[Any, ...]:
    """Return the best scores of some learning rates, and seconds of processor time per event."""
    found = []
    for rate in rates:
        begun = process_time()
        told = evaluate.ranking(make(rate), events)
        found.append((told.recall, told.ndcg, (process_time() - begun) / told.events))
    return max(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", type=int, default=20_000, help="how many of the first")
    limit = parser.parse_args().ratings
    try:
        stream = rating_streams()["time order"]
    except Skipped as reason:
        print(reason)
        return
    likes = (stream.ratings[:limit] >= 4.0).astype(float).tolist()
    events = [(*pair, y) for pair, y in zip(stream.pairs[:limit].tolist(), likes, strict=True)]
    evaluate.ranking(RiverRecommender(), events[:500])  # compiled before the clock starts
    rows = [("model", "recall@10", "NDCG@10", "ms per scored like")]
    for name, make, rates in RANKERS:
        recall, ndcg, seconds = scores(make, rates, events)
        rows.append((name, f"{recall:.4f}", f"{ndcg:.4f}", f"{1e3 * seconds:.2f}"))
    print(markdown(rows))


if __name__ == "__main__":
    main()
