"""Prediction intervals under drift: `python -m benchmarks.intervals` compares on the same residuals.

Ours, `AdaptiveIntervals`, with gains of 2 (the default) and 8; adaptive conformal inference (ACI, our own
plain version, with the step 0.005 of its paper on the last 500 residuals, and with 0.05 on the last 100;
and that of the package `mapie`, 0.005 on the last 100); and of the package `online-conformal`, strongly
adaptive online conformal prediction (SAOCP), fully adaptive conformal inference (FACI; FACI-S on radii) and
scale-free gradient descent (SF-OGD); and the magnitude learners of Zhang, Bombara and Yang (2024) on radii,
discounted by 0.999 (MagL-D) and not (MagL). The first 100 residuals are for calibration. Synthetic streams are
means over three seeds, which no constant of ours was chosen on; TrumpApproval and the first ratings of
MovieLens were looked at then. No constant was chosen on the last three streams, of any seed.

`--equal`: widths compare at equal coverage only. Each of ACI and SAOCP plays at the nominal level, found
by bisection in hindsight, at which its coverage over the whole stream is nearest to 0.9.

`--least`: the least mean width that goes with a mean error on windows of 100, for normal residuals of known
scale, where the logarithm of the radius is any linear function of past misses.

`--groups`: coverage and width over that of the true quantiles, in rows of which three in ten, at random, are
ten times as noisy, or a tenth, after 300 rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from river import datasets, linear_model, preprocessing
from scipy.linalg import solve_toeplitz
from scipy.special import erfi

from benchmarks.data import rating_streams
from benchmarks.measure import Skipped
from benchmarks.output import markdown
from driftwolfe.estimators import AdaptiveIntervals, MatrixCompleter

COVERAGE, FIRST, WINDOW = 0.9, 100, 100
SEEDS = (1, 2, 3)

Ends = tuple[np.ndarray, np.ndarray]
Method = Callable[..., Ends]  # of residuals, and a nominal level


class Scores(NamedTuple):
    """Of a method on a stream."""

    coverage: float
    worst: float  # the largest error of the coverage on a window
    mean: float  # the mean error over all windows
    width: float
    score: float  # the interval score: width, and 20 times the distance of what is outside


# -- streams ---------------------------------------------------------------------------------------


def synthetic(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Residuals whose scale, tails or centre change."""
    rng, t = np.random.default_rng(seed), np.arange(rows)
    normal = rng.standard_normal((6, rows))
    variance, volatile = 1.0, np.empty(rows)
    for k in range(rows):
        volatile[k] = np.sqrt(variance) * normal[4, k]
        variance = 0.05 + 0.15 * volatile[k] ** 2 + 0.8 * variance
    return {
        "steady": normal[0],
        "scale jumps by 4": np.where((t // 500) % 2, 4.0, 1.0) * normal[1],
        "scale as a wave": np.exp(1.2 * np.sin(2.0 * np.pi * t / 1000.0)) * normal[2],
        "scale jumps by 10, heavy tails": np.where((t // 700) % 2, 10.0, 1.0)
        * rng.standard_t(3, rows),
        "scale grows": np.linspace(0.2, 5.0, rows) * normal[3],
        "GARCH": volatile,
        "centre jumps": np.repeat(rng.uniform(-3.0, 3.0, rows // 400 + 1), 400)[:rows]
        + 0.5 * normal[5],
    }


def held_out(rows: int, seed: int) -> dict[str, np.ndarray]:
    """Residuals of kinds that were not looked at when constants were chosen."""
    rng = np.random.default_rng(1000 + seed)
    normal, level = rng.standard_normal((2, rows)), np.empty(rows)
    state = 0.0
    for k in range(rows):
        state = 0.98 * state + 0.15 * normal[0, k]
        level[k] = state
    shapes = np.stack((rng.standard_normal(rows), rng.exponential(size=rows) - np.log(2.0)))
    shapes = np.vstack((shapes, rng.standard_t(3, rows)))
    return {
        "stochastic volatility": np.exp(level) * normal[1],
        "shape changes": shapes[(np.arange(rows) // 600) % 3, np.arange(rows)],
    }


def trump_approval() -> np.ndarray:
    """Errors of river's linear regression."""
    model, residuals = preprocessing.StandardScaler() | linear_model.LinearRegression(), []
    for x, y in datasets.TrumpApproval():
        residuals.append(y - model.predict_one(x))
        model.learn_one(x, y)
    return np.array(residuals)


def movielens(rows: int) -> np.ndarray:
    """Errors of `MatrixCompleter` on ratings in order of time."""
    stream = rating_streams()["time order"]
    pairs, ratings = stream.pairs[:rows], stream.ratings[:rows]
    return ratings - MatrixCompleter().prequential(pairs, ratings)


# -- methods ---------------------------------------------------------------------------------------


def ours(residuals: np.ndarray, coverage: float = COVERAGE, **options: float) -> Ends:
    """`AdaptiveIntervals`, row by row."""
    model, ends = AdaptiveIntervals(coverage=coverage, **options), np.empty((residuals.size, 2))
    for k, residual in enumerate(residuals.tolist()):
        ends[k] = [each[0] for each in model.around([0.0])]
        model.observe([0.0], [residual])
    return ends[:, 0], ends[:, 1]


def aci(step: float, memory: int) -> Method:
    """Adaptive conformal inference on the latest residuals."""

    def play(residuals: np.ndarray, coverage: float = COVERAGE) -> Ends:
        sizes, alpha, radii = np.abs(residuals), 1.0 - coverage, np.zeros(residuals.size)
        for t in range(FIRST, residuals.size):
            past = sizes[max(0, t - memory) : t]
            if alpha < 1.0:  # an infinite radius, below 0, counts as the largest
                radii[t] = np.quantile(past, min(1.0 - alpha, 1.0), method="higher")
            alpha += step * ((1.0 - coverage) - (sizes[t] > radii[t]))
        return -radii, radii

    return play


def packaged(cls) -> Method:
    """A method of `online-conformal`."""
    import pandas as pd
    from online_conformal.utils import Residuals

    def play(residuals: np.ndarray, coverage: float = COVERAGE) -> Ends:
        first, zero = Residuals(1), pd.Series([0.0])
        first.extend(1, np.abs(residuals[:FIRST]).tolist())
        given = {"calib_frac": 0, "pretrained_model": True, "calib_residuals": first}
        model, ends = cls(None, None, coverage=coverage, **given), np.zeros((residuals.size, 2))
        for t in range(FIRST, residuals.size):
            ends[t] = model.predict(1)
            model.update(pd.Series([residuals[t]]), zero, horizon=1)
        return ends[:, 0], ends[:, 1]

    return play


def mapie() -> Method:
    """The method "aci" of MAPIE around a model that predicts 0."""
    from mapie.regression import TimeSeriesRegressor
    from mapie.subsample import BlockBootstrap
    from sklearn.dummy import DummyRegressor

    def play(residuals: np.ndarray, coverage: float = COVERAGE) -> Ends:
        X, ends = np.zeros((residuals.size, 1)), np.zeros((residuals.size, 2))
        model = TimeSeriesRegressor(
            DummyRegressor(strategy="constant", constant=0.0),
            method="aci",
            cv=BlockBootstrap(n_resamplings=5, length=10, random_state=0),
        )
        model.fit(X[:FIRST], residuals[:FIRST])
        for t in range(FIRST, residuals.size):
            row = X[t : t + 1], residuals[t : t + 1]
            told = model.predict(row[0], confidence_level=coverage, allow_infinite_bounds=True)
            ends[t] = told[1][0, :, 0]
            model.adapt_conformal_inference(*row, gamma=0.005, confidence_level=coverage)
            model.update(*row)
        return ends[:, 0], ends[:, 1]

    return play


def magnitude(keep: float, unit: float = 1.0) -> Method:
    """The magnitude learner of Zhang, Bombara and Yang (2024) on radii, with their unit.

    Written from their pseudo-code: a potential of the discounted sum and squares of gradients of the pinball
    loss, each cut to the size of the largest before it; a prediction below 0 counts as 0, and gradients
    that drive it farther below as none. It learns from the first residuals as from the others.
    """

    def play(residuals: np.ndarray, coverage: float = COVERAGE) -> Ends:
        radii = np.zeros(residuals.size)
        total = squares = largest = 0.0
        for t, size in enumerate(np.abs(residuals).tolist()):
            free = 0.0
            if largest > 0.0:
                whole = squares + 2.0 * largest * total + 16.0 * largest**2
                q = 0.5 * total / np.sqrt(whole)
                grown = largest / np.sqrt(whole) * np.exp(q * q)
                free = unit * (0.5 * np.sqrt(np.pi) * erfi(q) - grown)
            radii[t] = max(0.0, free)
            slope = (1.0 - coverage) - (size > radii[t])
            slope *= slope * (free - radii[t]) >= 0.0
            cut = min(max(slope, -keep * largest), keep * largest)
            largest = max(keep * largest, abs(slope))
            squares, total = keep**2 * squares + cut**2, keep * total - cut
        return -radii, radii

    return play


def in_hindsight(play: Method, steps: int = 12) -> Method:
    """The method at the nominal level whose coverage over the stream is nearest to the wanted one."""

    def replay(residuals: np.ndarray, coverage: float = COVERAGE) -> Ends:
        low, high, best = 0.5, 1.0, (np.inf, (residuals, residuals))
        for k in range(steps):
            level = 0.5 * (low + high) if k else coverage
            ends = play(residuals, level)
            short = coverage - scored(ends, residuals).coverage
            best = min(best, (abs(short), ends), key=lambda each: each[0])
            low, high = (level, high) if short > 0.0 else (low, level)
        return best[1]

    return replay


def methods(equal: bool = False) -> dict[str, Method]:
    """All that are installed; with levels in hindsight, ours as it is and those it is for."""
    mine = {"ours": ours, "ours, gain 8": partial(ours, gain=8.0)}
    if equal:
        theirs = {"ACI, 0.005": aci(0.005, 500), "ACI, 0.05": aci(0.05, 100)}
        try:
            from online_conformal.saocp import SAOCP

            theirs["SAOCP"] = packaged(SAOCP)
        except ImportError:
            print("without SAOCP: pip install online-conformal", file=sys.stderr)
        return mine | {name: in_hindsight(play) for name, play in theirs.items()}
    found = mine | {
        "ACI, 0.005": aci(0.005, 500),
        "ACI, 0.05": aci(0.05, 100),
        "MagL-D": magnitude(0.999),
        "MagL": magnitude(1.0),
    }
    try:
        found["MAPIE's ACI"] = mapie()
    except ImportError:
        print("without MAPIE: pip install mapie", file=sys.stderr)
    try:
        from online_conformal.faci import FACI, FACI_S
        from online_conformal.ogd import ScaleFreeOGD
        from online_conformal.saocp import SAOCP

        found |= {"SAOCP": packaged(SAOCP), "FACI": packaged(FACI)}
        found |= {"FACI-S": packaged(FACI_S), "SF-OGD": packaged(ScaleFreeOGD)}
    except ImportError:
        print("without SAOCP, FACI, SF-OGD: pip install online-conformal", file=sys.stderr)
    return found


def scored(ends: Ends, residuals: np.ndarray) -> Scores:
    """Scores on all rows after the calibration."""
    lower, upper, r = (each[FIRST:] for each in (*ends, residuals))
    inside, outside = (lower <= r) & (r <= upper), np.maximum(lower - r, r - upper)
    windows = np.abs(np.convolve(inside, np.ones(WINDOW) / WINDOW, "valid") - COVERAGE)
    width = upper - lower
    score = width + 2.0 / (1.0 - COVERAGE) * np.maximum(0.0, outside)
    parts = (inside.mean(), windows.max(), windows.mean(), width.mean(), score.mean())
    return Scores(*map(float, parts))


def least_widths(prices: tuple[float, ...] = (0.1, 0.04, 0.018, 0.01, 0.006)) -> list[list[str]]:
    """Rows of a table: error on windows, and width over that of the true quantiles.

    A miss has probability 0.1 - h theta near theta = 0, so misses are noise of variance 0.09 filtered by
    1 - h C(z), for theta = C(z) misses. The filter that is best at a price per variance of theta predicts
    a process whose autocovariance is that of a window's mean, plus the price at lag 0. A variance v of theta
    costs q^2 v / 2 of the width, q the normal quantile.
    """
    quantile, past = NormalDist().inv_cdf(0.5 + 0.5 * COVERAGE), 4 * WINDOW
    slope = 2.0 * quantile * NormalDist().pdf(quantile)
    noise = COVERAGE * (1.0 - COVERAGE)
    lags, lines = np.maximum(0.0, WINDOW - np.arange(past + 1.0)) / WINDOW**2, []
    for price in prices:
        priced = lags + (np.arange(past + 1) == 0) * price / slope**2
        filtered = np.append(1.0, -solve_toeplitz(priced[:-1], priced[1:]))
        window = np.convolve(filtered, np.ones(WINDOW) / WINDOW)
        error = np.sqrt(2.0 / np.pi * noise * window @ window)
        variance = noise * filtered[1:] @ filtered[1:] / slope**2
        width = 2.0 * quantile * (1.0 + 0.5 * quantile**2 * variance)
        lines.append([f"{error:.4f}", f"{width:.3f}"])
    return lines


def by_group(rows: int) -> list[list[str]]:
    """Rows of a table: with groups and without."""
    lines, true = [], 2.0 * NormalDist().inv_cdf(0.5 + 0.5 * COVERAGE)
    for ratio in (10.0, 0.1):
        for told in (False, True):
            found = []
            for seed in SEEDS:
                rng = np.random.default_rng(2000 + seed)
                few, model = rng.random(rows) < 0.3, AdaptiveIntervals(coverage=COVERAGE)
                scales = np.where(few, ratio, 1.0)
                residuals, ends = scales * rng.standard_normal(rows), np.empty((2, rows))
                for k in range(rows):
                    groups = few[k : k + 1] if told else None
                    ends[:, k] = np.ravel(model.around([0.0], groups))
                    model.observe([0.0], residuals[k : k + 1], groups)
                inside = (ends[0] <= residuals) & (residuals <= ends[1])
                widths, late = (ends[1] - ends[0]) / scales / true, np.arange(rows) >= 300
                parts = [
                    each[late & (few == g)] for g in (False, True) for each in (inside, widths)
                ]
                found.append([part.mean() for part in parts])
            name = (
                f"{'ten times' if ratio > 1.0 else 'a tenth'}, {'by group' if told else 'together'}"
            )
            lines.append([name, *(f"{value:.3f}" for value in np.mean(found, axis=0))])
    return lines


def all_streams(rows: int) -> dict[str, list[np.ndarray]]:
    """Residuals by name, of each seed."""
    streams, last = {"TrumpApproval": [trump_approval()]}, {}
    try:
        errors = movielens(8000)
        streams["MovieLens, first 4,000"] = [errors[:4000]]
        last["MovieLens, next 4,000"] = [errors[4000:]]
    except Skipped as reason:
        print(reason, file=sys.stderr)
    for made in (synthetic, held_out):
        for seed in SEEDS:
            for name, residuals in made(rows, seed).items():
                streams.setdefault(name, []).append(residuals)
    return streams | last


def main() -> int:
    """Print a table for each score."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.intervals", description=__doc__.split("\n\n")[1]
    )
    parser.add_argument("--rows", type=int, default=4000, help="of each synthetic stream")
    parser.add_argument("--equal", action="store_true", help="levels in hindsight; slow")
    parser.add_argument("--least", action="store_true", help="the least widths alone")
    parser.add_argument("--groups", action="store_true", help="coverage by group alone")
    given = parser.parse_args()
    if given.groups:
        title = ["three rows in ten are", "others: coverage", "width", "those: coverage", "width"]
        print(markdown([title, *by_group(given.rows)]))
        return 0
    if given.least:
        print(markdown([["mean error", "least mean width"], *least_widths()]))
        return 0
    streams, tried, found = all_streams(given.rows), methods(given.equal), {}
    for name, several in streams.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        for method, play in tried.items():
            each = [scored(play(residuals), residuals) for residuals in several]
            found[name, method] = Scores(*np.mean(each, axis=0))
    for field, title in {
        "worst": "largest error of the coverage on a window of 100",
        "mean": "mean error of the coverage on windows of 100",
        "coverage": "coverage, 0.9 wanted",
        "width": "mean width",
        "score": "interval score",
    }.items():
        lines = [[title, *tried]]
        for name in streams:
            values = [getattr(found[name, method], field) for method in tried]
            lines.append([name, *(f"{value:.3f}" for value in values)])
        print(markdown(lines), "", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
