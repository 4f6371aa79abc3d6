"""Other experts and weights for the estimators: `python -m benchmarks.estimator_variants`.

What `POLAR` does differently, tried in the classifier and in the completer: weights by `AdaHedge`, also on
losses linearised at the decision, and lazy experts, which project the sum of their steps since a restart.
Nothing is tuned. Rows and ratings are predicted one by one, each before it is learned. Variants are plain
Python around the compiled loops, so only their losses compare with today's, not their times.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn import datasets

import driftwolfe as dw
from benchmarks.data import RatingStream, rating_streams
from benchmarks.measure import Skipped
from benchmarks.output import markdown
from driftwolfe.ensemble import AdaHedge
from driftwolfe.estimators import MatrixCompleter
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.classifier_kernels import LOGS, WORK
from driftwolfe.estimators.completer_experts import CompleterPool
from driftwolfe.estimators.completer_kernels import UNIT
from driftwolfe.estimators.completer_tables import Older
from driftwolfe.estimators.core.rows import as_rows
from driftwolfe.points.lanczos import threshold_falling

#: Rounds of Shuttle, of 10 rows each, and ratings of a stream.
ROUNDS, LENGTH = 1500, 30_000


class HedgedExperts(ClassLearner):
    """Weights by AdaHedge, not by likelihood."""

    linear = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.meta = AdaHedge(self.weights.size)

    def _learn(self, *given):
        learned = super()._learn(*given)
        self.meta.add(self.weights.size - self.meta.size)
        self.weights[:] = self.meta.weights
        return learned

    def _follow(self, rows, labels, *given):
        before = self.weights.copy()
        found = super()._follow(rows, labels, *given)
        if labels.size:
            logs = self._bound[2].reshape(WORK, -1)[LOGS, : before.size]
            if self.linear:  # the decision is the mean of the probabilities
                likely = np.exp(logs - logs.max())
                self.meta.update(-likely / (before @ likely))
            else:
                self.meta.update(-logs)
        return found

    def _end_round(self):
        self.weights[:] = self.meta.weights
        super()._end_round()


class LinearExperts(HedgedExperts):
    """The same on losses linearised at the decision."""

    linear = True


class LazyExperts(ClassLearner):
    """Each plays the projection of its start plus the sum of its steps since then."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.sums = self.points.copy()

    def set_steps(self):
        super().set_steps()
        self.balls, self._limits = self._radii, np.full(self._radii.size, np.inf)

    def _learn(self, *given):
        self.before, ends = self.points.copy(), (self.t + 1) % 16 == 0
        learned = super()._learn(*given)
        if not ends:
            self._accumulate()
        return learned

    def _accumulate(self):
        """Add the last step to the sums, and project those."""
        self.sums += self.points - self.before
        self.points[:] = self.sums
        stacked = self.points.reshape(len(self.points), -1, self.classes)
        norms = np.sqrt(np.einsum("jic,jic->i", stacked, stacked))
        for i in np.flatnonzero(math.sqrt(self.classes) * norms > self.balls):
            left, s, right = np.linalg.svd(stacked[:, i], full_matrices=False)
            stacked[:, i] = (left * threshold_falling(s, self.balls[i])) @ right

    def _end_round(self):
        self._accumulate()
        super()._end_round()
        started = np.repeat(started_now(self, self.sums.shape[1] // self.classes), self.classes)
        self.sums = np.pad(self.sums, ((0, 0), (0, started.size - self.sums.shape[1])))
        self.sums[:, started] = self.points[:, started]


class CentredExperts(ClassLearner):
    """For every radius and length another expert, which restarts at zero."""

    RADII = ClassLearner.RADII * 2

    def _end_round(self):
        number = self.weights.size
        super()._end_round()
        second = np.arange(self.weights.size) % self.radii.size >= self.radii.size // 2
        started = started_now(self, number) & second
        self.points.reshape(len(self.points), -1, self.classes)[:, started] = 0.0
        self.norms[:, started] = 0.0


def started_now(experts: ClassLearner, old: int) -> np.ndarray:
    """Which experts start with the coming row; there were `old` before."""
    return (experts.t % experts.lengths == 0) | (np.arange(experts.weights.size) >= old)


CLASSIFIERS: dict[str, Any] = {
    "today": ClassLearner,
    "AdaHedge": HedgedExperts,
    "AdaHedge, linearised": LinearExperts,
    "lazy": LazyExperts,
    "today's, and from zero": CentredExperts,
}


def classified(kind: Any, X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean log loss and error rate."""
    learner = kind(int(y.max()) + 1, X.shape[1], "linear")
    rows, labels, logs, wrong = as_rows(X), y.astype(np.int64), 0.0, 0
    for k in range(y.size):
        row = rows.stretch(k, k + 1)
        p = learner.predict(row)[0]
        logs -= math.log(max(p[y[k]], 1e-15))
        wrong += int(p.argmax() != y[k])
        learner.learn(row, labels[k : k + 1], np.ones(1))
    return logs / y.size, wrong / y.size


def seconds_to_learn(kind: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Processor time of learning alone, in one batch, best of three."""
    taken = []
    for _ in range(3):
        learner = kind(int(y.max()) + 1, X.shape[1], "linear")
        started = time.process_time()
        learner.learn(as_rows(X), y.astype(np.int64), np.ones(y.size))
        taken.append(time.process_time() - started)
    return min(taken)


class OneByOne(CompleterPool):
    """Ratings are learned one per call, between two hooks."""

    def learn(self, rows, cols, ratings):
        parts = (slice(n, n + 1) for n in range(rows.size))
        return np.concatenate([self._learn(rows[n], cols[n], ratings[n]) for n in parts])

    def _learn(self, row, col, rating):
        before = self._before(row, col)
        predicted = super().learn(row, col, rating)
        self._after(before, predicted, row, col, rating)
        return predicted


class HedgedPool(OneByOne):
    """Weights by AdaHedge."""

    linear = False

    def __init__(self, keep_seen: bool) -> None:
        super().__init__(keep_seen)
        self.meta = AdaHedge(len(self.experts))

    def _before(self, row, col):
        return None

    def _after(self, before, predicted, row, col, rating):
        answers = self._bound.spare[: self.meta.size]  # of each expert, before it was clipped
        unit = UNIT * self.scale.numbers[0]
        if unit > 0.0:
            errors = (answers - rating) / unit
            if self.linear:
                losses = np.clip((predicted - rating) / unit, -1.0, 1.0) * errors
            else:
                sizes = np.abs(errors)
                losses = np.where(sizes > 1.0, sizes - 0.5, 0.5 * sizes**2)
            self.meta.update(losses)
        self.meta.add(len(self.experts) - self.meta.size)
        self.slots.weights[:] = self.meta.weights


class LinearPool(HedgedPool):
    """The same on losses linearised at the decision."""

    linear = True


class LazyBiasesPool(OneByOne):
    """Biases are the sum of all gradients times AdaGrad's present step."""

    def _before(self, row, col):
        found = []
        for (n,), side in zip((row, col), self.sides, strict=True):
            if n < side.size:
                known = side.tables.touched[n] >= self.slots.starts
                found.append((side.tables.biases[n] * known, side.tables.squares[n] * known))
            else:
                found.append((np.zeros(len(self.experts)),) * 2)
        return found

    def _after(self, before, predicted, row, col, rating):
        for (n,), side, (biases, squares) in zip((row, col), self.sides, before, strict=True):
            now = side.tables.squares[n, : squares.size]
            kept = np.sqrt((1.0 + squares) / (1.0 + now))
            side.tables.biases[n, : squares.size] += (kept - 1.0) * biases


class AgilePool(CompleterPool):
    """Interactions step from their last projection, not from the sum of all steps."""

    def _project(self):
        super()._project()
        users, items = (grown.known for grown in self.sides)
        for k, (e, own) in enumerate(self.interacting()):
            left, right = (side.rows[:, own] * side.metric[:, None] ** 2 for side in (users, items))
            self.older[k] = Older(int(self.slots.starts[e]), left, right)
        self.first += self.recent.size
        self.recent.keep(np.arange(0))


POOLS: dict[str, Any] = {
    "today": CompleterPool,
    "AdaHedge": HedgedPool,
    "AdaHedge, linearised": LinearPool,
    "lazy biases": LazyBiasesPool,
    "agile interactions": AgilePool,
}


def completed(kind: Any, stream: RatingStream) -> tuple[float]:
    """Mean absolute error."""
    completer = MatrixCompleter(keep_seen=False)
    completer._pool = kind(keep_seen=False)
    predictions = completer.prequential(stream.pairs, stream.ratings)
    return (float(np.abs(predictions - stream.ratings).mean()),)


def rows_of(stream: dw.streams.Stream) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels of a stream of `MulticlassLogistic` losses."""
    features = np.vstack([loss.features for loss in stream])
    return features, np.concatenate([loss.labels for loss in stream])


def shuttle(seed: int | None, flip_every: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The first rows of Shuttle in some order, negated every so many rounds."""
    return rows_of(dw.streams.shuttle(seed=seed, flip_every=flip_every, rounds=ROUNDS))


def turning(seed: int, speed: float) -> dw.streams.Stream:
    """Labels drawn from a matrix that moves."""
    return dw.streams.synthetic.drifting_logistic((5, 10), 1000, 10, speed, seed, radius=30.0)


def changing(seed: int) -> dw.streams.Stream:
    """One matrix, then another."""
    return dw.streams.drift.abrupt(turning(seed, 0.0), turning(seed + 1, 0.0), 500)


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's digits in a random order."""
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(y.size)
    return X[order], y[order]


#: The first was looked at while the variants were written.
TABLES: dict[str, Callable[[], Any]] = {
    "Shuttle, negated every 5,000 rows": lambda: shuttle(None, 500),
    "in another order, every 3,000 rows": lambda: shuttle(2, 300),
    "in a third order, as it is": lambda: shuttle(3, None),
    "synthetic, abrupt drift": lambda: rows_of(changing(10)),
    "synthetic, slow drift": lambda: rows_of(turning(3, 0.01)),
    "digits": lambda: digits(1),
}


def shuffled(seed: int, flips: bool) -> RatingStream:
    """MovieLens in a random order; with `flips`, negated between two random ratings."""
    _, pairs, ratings, _ = rating_streams()["file order"]
    rng, signs = np.random.default_rng(seed), np.ones(LENGTH)
    order = rng.permutation(ratings.size)[:LENGTH]
    if flips:
        signs[slice(*np.sort(rng.choice(LENGTH, 2, replace=False)))] = -1.0
    return RatingStream("", pairs[order], signs * ratings[order])


def time_order() -> RatingStream:
    """The first ratings of MovieLens."""
    _, pairs, ratings, _ = rating_streams()["time order"]
    return RatingStream("", pairs[:LENGTH], ratings[:LENGTH])


def entries(abrupt: bool) -> RatingStream:
    """Entries of a low-rank matrix that turns slowly, or is replaced by another."""
    first, second = (
        dw.streams.synthetic.absolute_entries(
            (300, 200), 3, 1000.0, LENGTH // 100, drift=0.0 if abrupt else 0.005, seed=seed
        )
        for seed in (0, 1)
    )
    losses = dw.streams.drift.abrupt(first, second, LENGTH // 200) if abrupt else first
    rows, cols, ratings = (
        np.concatenate([getattr(loss, name) for loss in losses])
        for name in ("rows", "cols", "targets")
    )
    return RatingStream("", np.stack([rows, cols], axis=1), ratings)


#: The first two were looked at while the variants were written.
RATINGS: dict[str, Callable[[], RatingStream]] = {
    "MovieLens, random order": lambda: shuffled(0, flips=False),
    "the same, negated between two ratings": lambda: shuffled(0, flips=True),
    "another order, negated between two others": lambda: shuffled(2, flips=True),
    "time order": time_order,
    "synthetic, abrupt drift": lambda: entries(abrupt=True),
    "synthetic, slow drift": lambda: entries(abrupt=False),
}


def compare(streams: dict[str, Any], kinds: dict[str, Any], play: Callable[..., Any]) -> str:
    """A line for each stream, a column for each variant."""
    lines: list[Iterable[str]] = [["stream", *kinds]]
    for name, load in streams.items():
        given = load()
        print(f"{name} ...", file=sys.stderr, flush=True)
        given = given if type(given) is tuple else (given,)
        found = [play(kind, *given) for kind in kinds.values()]
        lines.append([name, *(" / ".join(f"{number:.4f}" for number in each) for each in found)])
    return markdown(lines)


def main() -> int:
    """Print both tables, or one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("classifier", "completer"))
    only = parser.parse_args().only
    try:
        rating_streams()
    except Skipped as reason:
        print(reason, file=sys.stderr)
        return 2
    if only != "completer":
        print("TraceNormClassifier, mean log loss / error:\n")
        print(compare(TABLES, CLASSIFIERS, classified))
        table = next(iter(TABLES.values()))()
        today, both = (seconds_to_learn(kind, *table) for kind in (ClassLearner, CentredExperts))
        print(
            f"\nTwice the experts: {both / today:.2f} times the time to learn Shuttle.\n",
            flush=True,
        )
    if only != "classifier":
        print("MatrixCompleter, mean absolute error:\n")
        print(compare(RATINGS, POOLS, completed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
