"""Delays of `DriftAlarm` beside river's detectors, at equal rates of alarms for nothing.

python -m benchmarks.alarm [--runs 100]

Each detector has one parameter. It is set, on a steady stream of the same losses, so that alarms for nothing are
as rare as those of `DriftAlarm(1e-4)`: ours needs no such stream, and theirs would not have one. Then losses change
after 1,000 or 5,000 updates. Delays are medians; "missed" are runs without an alarm in 3,000 updates.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import math

import numpy as np

import driftwolfe as dw

STEADY, AFTER = 20_000, 3000
STREAMS = {
    "errors, 10 % to 20 %": (lambda g, n, late: g.random(n) < (0.2 if late else 0.1)),
    "errors, 10 % to 40 %": (lambda g, n, late: g.random(n) < (0.4 if late else 0.1)),
    "normal, + 0.5": (lambda g, n, late: g.normal(0.5 * late, 1.0, n)),
    "normal, + 2": (lambda g, n, late: g.normal(2.0 * late, 1.0, n)),
    "log loss, x 1.5": (lambda g, n, late: g.exponential(1.0 + 0.5 * late, n)),
    "Pareto(1.2), x 2": (lambda g, n, late: (1.0 + late) * g.pareto(1.2, n)),
}


def detectors():
    """How to make each detector from its parameter, and values of that, the most eager first."""
    from river import drift

    grid = np.geomspace
    return {
        "ADWIN": (lambda d: drift.ADWIN(delta=d), grid(0.9, 1e-9, 30)),
        "Page-Hinkley": (
            lambda h: drift.PageHinkley(threshold=h, delta=0.005, mode="up"),
            grid(1.0, 1e4, 28),
        ),
        "KSWIN": (lambda a: drift.KSWIN(alpha=a, seed=0), grid(0.5, 1e-12, 25)),
    }


def alarms(make, losses):
    """Where a detector sounds; a new one goes on from there."""
    detector, found = make(), []
    for t, loss in enumerate(losses):
        if isinstance(detector, dw.DriftAlarm):
            sounds = detector.update(loss)
        else:
            detector.update(loss)
            sounds = detector.drift_detected
        if sounds:
            found.append(t)
            detector = make()
    return found


def calibrated(make, values, losses, allowed):
    """The most eager detector that sounds at most so often on steady losses, by bisection."""

    def quiet(value):
        return len(alarms(functools.partial(make, value), losses)) <= allowed

    place = bisect.bisect_left(values, True, key=quiet)
    if place == len(values):
        return None, math.nan
    return functools.partial(make, values[place]), values[place]


def delay(make, stream, before, runs):
    """The median delay, and the fraction missed."""
    delays = []
    for seed in range(runs):
        rng = np.random.default_rng(1000 + seed)
        losses = np.append(stream(rng, before, 0), stream(rng, AFTER, 1)).astype(float)
        late = [t - before for t in alarms(make, losses.tolist()) if t >= before]
        delays.append(late[0] if late else math.inf)
    return np.median(delays), np.isinf(delays).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    names = ["DriftAlarm", *detectors()]
    print(f"{'':24}{'after':>6}", *(f"{name:>16}" for name in names))
    for title, stream in STREAMS.items():
        rng = np.random.default_rng(7)
        steady = stream(rng, STEADY, 0).astype(float).tolist()
        ours = len(alarms(lambda: dw.DriftAlarm(1e-4), steady))
        known = {"DriftAlarm": (lambda: dw.DriftAlarm(1e-4), 1e-4)}
        for name, (make, values) in detectors().items():
            known[name] = calibrated(make, values, steady, max(ours, 2))
        for before in (1000, 5000):
            cells = []
            for make, _ in known.values():
                if make is None:
                    cells.append("never quiet")
                    continue
                median, missed = delay(make, stream, before, runs)
                cells.append(f"{median:.0f}" + (f" ({missed:.0%} missed)" if missed else ""))
            print(f"{title:24}{before:>6}", *(f"{cell:>16}" for cell in cells), flush=True)
        print(" " * 30, *(f"{value:>16.2g}" for _, value in known.values()))


if __name__ == "__main__":
    main()
