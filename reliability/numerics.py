"""A million rounds: weights stay accurate, memory stays constant.

    python -m reliability.numerics [--rounds 1000000]

POLD and POLA play linear losses on a small ball, with a target that jumps. Their weights are compared
with weights computed in extended precision from the losses of the experts.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftwolfe as dw

#: Rounds between comparisons of the weights.
PERIOD = 1000
#: 113 bits of mantissa on Arm, 64 on x86; a double has 53.
Wide = np.longdouble


class Outcome(NamedTuple):
    """Results of one learner."""

    learner: str
    rounds: int
    largest_error: float
    most_experts: int
    allowed_experts: int
    megabytes_grown: float
    microseconds: float


class WideHedge:
    """Exponential weights from totals in extended precision."""

    def __init__(self, meta: Any) -> None:
        self.meta, self.totals = meta, np.zeros(meta.size, Wide)

    def update(self, losses: Any) -> None:
        self.totals += np.asarray(losses, Wide)

    def weights(self) -> Any:
        meta = self.meta
        rate = np.sqrt(Wide(8) / (meta.horizon or meta.rounds + 1)) / Wide(meta.scale or 1.0)
        weights = meta.prior * np.exp(-rate * (self.totals - self.totals.min()))
        return weights / weights.sum()


class WideNormalHedge:
    """AdaNormalHedge from regrets in extended precision, in units of the loss."""

    def __init__(self, meta: Any) -> None:
        self.meta = meta
        self.regrets = self.movements = np.zeros(meta.size, Wide)
        self.unit = Wide(meta.scale)

    def update(self, learner: float, losses: Any) -> None:
        ahead, before = Wide(learner) - np.asarray(losses, Wide), self.unit
        self.unit = Wide(self.meta.scale)
        if self.unit > before > 0:  # a difference beyond the unit counts as one of it
            ahead = ahead * (before / self.unit)
        self.regrets, self.movements = self.regrets + ahead, self.movements + np.abs(ahead)

    def add(self, lengths: Any) -> None:
        fresh = np.zeros(len(lengths), Wide)
        self.regrets = np.concatenate([self.regrets, fresh])
        self.movements = np.concatenate([self.movements, fresh])

    def restart(self, which: Any) -> None:
        self.regrets, self.movements = self.regrets.copy(), self.movements.copy()
        self.regrets[which] = self.movements[which] = 0

    def weights(self) -> Any:
        unit = Wide(self.meta.scale or 1.0)
        R, C = self.regrets / unit, self.movements / unit

        def phi(R: Any) -> Any:
            return np.exp(np.maximum(R, 0) ** 2 / (3 * (C + 1)))

        weights = phi(R + 1) - phi(R - 1)
        total = weights.sum()
        return weights / total if total > 0 else np.full(R.size, 1 / Wide(R.size))


def watch(learner: Any) -> Any:
    """Return weights in extended precision that follow every update of the learner's."""
    meta = learner._meta
    wide = WideHedge(meta) if isinstance(learner, dw.POLD) else WideNormalHedge(meta)
    for name in ("update", "add", "restart"):
        if hasattr(wide, name):
            setattr(meta, name, _both(getattr(meta, name), getattr(wide, name)))
    return wide


def _both(first: Any, second: Any) -> Any:
    def call(*given: Any) -> None:
        first(*given)
        second(*given)

    return call


def megabytes() -> float:
    """Peak memory of the process."""
    status = Path("/proc/self/status")
    if status.exists():  # what `getrusage` tells there begins with the peak of the parent
        lines = status.read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(make: Any, rounds: int, period: int = PERIOD) -> Outcome:
    """Play and compare."""
    learner = make(dw.L2Ball(3), horizon=rounds)
    wide = watch(learner)
    rng = np.random.default_rng(0)
    error, most, allowed, early = 0.0, 0, 0, 0.0
    started = time.perf_counter()
    for t in range(1, rounds + 1):
        slope = rng.standard_normal(3)
        slope[t // (rounds // 7 + 1) % 3] += 1.0
        learner.update(dw.losses.LinearLoss(slope))
        most = max(most, len(learner.expert_weights))
        if t % period == 0:
            error = max(error, float(np.abs(learner.expert_weights - wide.weights()).max()))
        if t == rounds // 10:
            early = megabytes()
    elapsed = time.perf_counter() - started
    allowed = (rounds + 1).bit_length() if make is dw.POLA else most
    return Outcome(
        make.__name__, rounds, error, most, allowed, megabytes() - early, 1e6 * elapsed / rounds
    )


def main() -> int:
    """Print a table; return 1 if an error or the number of experts is too large."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    rounds = parser.parse_args().rounds
    print(
        "| learner | rounds | largest error of a weight | most experts | memory growth after the first "
        "tenth (MB) | µs per round |\n| --- | ---: | ---: | ---: | ---: | ---: |"
    )
    sound = True
    for make in (dw.POLD, dw.POLA):
        found = run(make, rounds)
        print(
            f"| {found.learner} | {found.rounds:,} | {found.largest_error:.1e} | "
            f"{found.most_experts} | {found.megabytes_grown:.1f} | {found.microseconds:.0f} |"
        )
        sound &= found.largest_error < 1e-6 and found.most_experts <= found.allowed_experts
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())
