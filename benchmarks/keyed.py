"""What one model per key costs: `python -m benchmarks.keyed`, a quarter of an hour.

    python -m benchmarks.keyed costs     # 100,000 keys, a few of them often
    python -m benchmarks.keyed prior     # what a prior brings new keys, on MovieLens 100K and a synthetic stream
    python -m benchmarks.keyed cluster   # two Dask workers against one

Models are `RiverTraceNormClassifier(features="linear")`; an event is predicted and learned. The k-th most frequent
key comes in proportion to 1/k. Each measurement runs in a process of its own, after all loops are compiled.
`cluster` repeats both sizes in turns; the least time of each counts, as the machine may have other work.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.data import rating_streams, side_features
from driftwolfe.estimators import RiverTraceNormClassifier

factory = partial(RiverTraceNormClassifier, features="linear")
KEYS, FEATURES, MOST = 100_000, 5, 10_000


def zipf_events(count: int, keys: int = KEYS, seed: int = 0) -> list[tuple[Any, ...]]:
    """Events (key, x, y)."""
    rng = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, keys + 1)
    numbers = rng.permutation(keys)[rng.choice(keys, count, p=shares / shares.sum())]
    rows = rng.normal(size=(count, FEATURES))
    labels = (rows @ rng.normal(size=FEATURES) > 0.0).tolist()
    given = zip(numbers.tolist(), rows.tolist(), labels, strict=True)
    return [(f"user {k}", dict(zip("abcde", row, strict=True)), y) for k, row, y in given]


def megabytes() -> float:
    """Resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def compile_all() -> None:
    """Compile all loops."""
    model = factory()
    for _, x, y in zipf_events(200):
        model.predict_one(x)
        model.learn_one(x, y)


# -- costs -----------------------------------------------------------------------------------------


class Naive:
    """Reads and writes the model of each event, in a transaction each; or keeps all models in a dict."""

    def __init__(self, path: Path | None) -> None:
        self.models: dict[str, Any] = {}
        self.db = None
        if path is not None:
            self.db = sqlite3.connect(path, isolation_level=None)
            self.db.execute("PRAGMA journal_mode = WAL")
            self.db.execute("CREATE TABLE models (key PRIMARY KEY, content)")

    def predict(self, key: str, x: Any) -> Any:
        found = self.models.get(key)
        if self.db is not None:
            row = self.db.execute("SELECT content FROM models WHERE key = ?", (key,)).fetchone()
            found = row and dw.from_bytes(row[0])
        self.model = found or factory()
        return self.model.predict_one(x)

    def learn(self, key: str, x: Any, y: Any, offset: int) -> None:
        self.model.learn_one(x, y)
        if self.db is None:
            self.models[key] = self.model
        else:
            content = self.model.to_bytes()
            self.db.execute("INSERT OR REPLACE INTO models VALUES (?, ?)", (key, content))


def cost(how: str, count: int) -> str:
    """A row of the table, for one way to keep the models."""
    compile_all()
    events, before = zipf_events(count), megabytes()
    path = Path(tempfile.mkdtemp()) / "models.sqlite"
    models: Any = Naive(path if how == "naive" else None)
    if how.isdigit():
        models = dw.Keyed(factory, path, int(how))
    started, worked = time.perf_counter(), time.process_time()
    for offset, (key, x, y) in enumerate(events):
        models.predict(key, x)
        models.learn(key, x, y, offset=offset)
    resident = megabytes() - before
    if how.isdigit():
        models.close()
    spent = 1e3 * (time.perf_counter() - started) / count
    work = 1e3 * (time.process_time() - worked) / count
    size = path.stat().st_size / 1e6 if path.exists() else 0.0
    names = {"dict": "a dict, nothing kept", "naive": "read and written for each event"}
    name = names.get(how) or f"`Keyed`, `most={int(how):,}`"
    return f"| {name} | {count:,} | {spent:.2f} | {work:.2f} | {resident:.0f} | {size:.0f} |"


# -- priors ----------------------------------------------------------------------------------------


def movielens(count: int = 30_000) -> list[tuple[Any, ...]]:
    """The first ratings in time order: more than 3 stars from the user (key), by features and mean of the film?"""
    _, films = side_features()
    ordered = rating_streams()["time order"]
    totals: dict[int, tuple[float, int]] = {}
    events = []
    pairs, ratings = ordered.pairs[:count].tolist(), ordered.ratings[:count].tolist()
    for (user, film), given in zip(pairs, ratings, strict=True):
        total, count = totals.get(film, (3.5, 1))
        x = {f"feature {k}": value for k, value in enumerate(films[film])}
        events.append((user, x | {"mean": total / count}, given > 3.0))
        totals[film] = total + given, count + 1
    return events


def synthetic(likeness: float, count: int = 15_000, keys: int = 500) -> list[tuple[Any, ...]]:
    """Keys whose labels follow directions of their own, alike by the cosine `likeness`."""
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=FEATURES), rng.normal(size=(keys, FEATURES))
    aims = likeness * shared + np.sqrt(1.0 - likeness**2) * own
    numbers = rng.integers(0, keys, count)
    rows = rng.normal(size=(count, FEATURES))
    labels = np.sum(rows * aims[numbers], axis=1) + 0.3 * rng.normal(size=count) > 0.0
    given = zip(numbers.tolist(), rows.tolist(), labels.tolist(), strict=True)
    return [(k, dict(zip("abcde", row, strict=True)), y) for k, row, y in given]


def accuracies(events: list[tuple[Any, ...]], how: str) -> str:
    """Shares of right predictions of the first 5 events of each key, the next 20, and the rest."""
    seen: dict[Any, int] = {}
    right, all_ = [0, 0, 0], [0, 0, 0]
    prior = None if how == "none" else factory()
    shared = factory()
    with dw.Keyed(factory, tempfile.mkdtemp() + "/models", prior=prior) as models:
        for offset, (key, x, y) in enumerate(events):
            seen[key] = seen.get(key, 0) + 1
            place = (seen[key] > 5) + (seen[key] > 25)
            found = shared.predict_one(x) if how == "one" else models.predict(key, x)
            right[place] += found == y
            all_[place] += 1
            if how == "one":
                shared.learn_one(x, y)
            else:
                models.learn(key, x, y, offset=offset)
    shares = (f"{100 * good / max(1, of):.1f}" for good, of in zip(right, all_, strict=True))
    return " | ".join(shares)


def priors() -> None:
    """Print a table."""
    print("| stream | models | first 5 events of a key | next 20 | the rest |")
    print("| --- | --- | ---: | ---: | ---: |")
    streams: dict[str, Any] = {"MovieLens 100K": movielens}
    streams |= {f"synthetic, likeness {like}": partial(synthetic, like) for like in (0.9, 0.5, 0.0)}
    for stream, make in streams.items():
        events = make()
        for how, words in (("none", "no prior"), ("prior", "prior"), ("one", "one for all keys")):
            print(f"| {stream} | {words} | {accuracies(events, how)} |", flush=True)


# -- cluster ---------------------------------------------------------------------------------------


def cluster_seconds(workers: int, batch: int, count: int) -> float:
    """Seconds that so many workers take to learn events in batches."""
    from distributed import Client, LocalCluster

    from driftwolfe.distributed import Keyed

    events = zipf_events(count + 4_000, 5_000, seed=1)
    options: Any = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(**options) as cluster,
        Client(cluster) as client,
        Keyed(client, factory, tempfile.mkdtemp()) as models,
    ):
        client.run(compile_all)
        models.learn_many(events[:4_000], 0)  # most keys have a model
        models.commit()
        started = time.perf_counter()
        for first in range(4_000, len(events), batch):
            models.learn_many(events[first : first + batch], first)
        models.commit()
        return time.perf_counter() - started


def clusters(count: int, repeats: int) -> None:
    """Print a table."""
    print("| events per batch | one worker (events/s) | two workers | ratio |")
    print("| ---: | ---: | ---: | ---: |")
    for batch in (100, 1_000, 5_000):
        best = {1: np.inf, 2: np.inf}
        for _ in range(repeats):
            for workers in best:
                best[workers] = min(best[workers], cluster_seconds(workers, batch, count))
        one, two = (count / best[workers] for workers in (1, 2))
        print(f"| {batch:,} | {one:,.0f} | {two:,.0f} | {two / one:.2f} |", flush=True)


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=("costs", "prior", "cluster"))
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--how", help="one way to keep the models, for `costs`")
    given = parser.parse_args()
    if given.how:
        print(cost(given.how, given.events), flush=True)
        return
    if given.what in (None, "costs"):
        print("| models | events | ms per event | of them at work | MB of memory | MB of file |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
        for how in ("10000", "dict", "1000", "naive"):
            count = min(given.events, 10_000) if how == "naive" else given.events
            own = ["--how", how, "--events", str(count)]
            subprocess.run([sys.executable, "-m", "benchmarks.keyed", *own], check=True)
    if given.what in (None, "prior"):
        priors()
    if given.what in (None, "cluster"):
        clusters(min(given.events, 20_000), given.repeats)


if __name__ == "__main__":
    main()
