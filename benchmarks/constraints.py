"""Constraints that move: `python -m benchmarks.constraints` prints errors and violations on MovieLens 100K.

The learner predicts 100 ratings per round, in time order, and then sees them. After each round it also sees 100
pairs of a user and a rarely rated film, drawn anew. The mean of its predictions for these, how visible such films
are, should have been within 0.25 of a centre that moves between 2 and 3. No fixed matrix is in that band all
the time. Learners keep their defaults; `--rounds` plays fewer rounds with the same movement.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.output import markdown
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.streams import DataUnavailable

#: Films with fewer ratings are rare; pairs in each round; half the width of the band; rounds of a wave.
RARE, PAIRS, HALF, WAVE = 20, 100, 0.25, 500
#: Rounds of the windows.
WINDOW = 100


class Band(EntryLoss):
    """How far the mean of some entries is outside a band around the mean of their targets."""

    def value_at(self, scores: Any) -> Any:
        """The distance from the centre, less half the width."""
        return abs(self.errors(scores).mean(axis=-1)) - HALF

    def slope_at(self, scores: Any) -> Any:
        """The same slope at every entry."""
        errors = self.errors(scores)
        signs = np.sign(errors.mean(axis=-1, keepdims=True))
        return signs / errors.shape[-1] + np.zeros_like(errors)


def game(rounds: int | None) -> tuple[dw.Domain, list[Any], list[Band]]:
    """The set, the losses and the constraints."""
    stream = dw.streams.movielens_100k(copies=(1,), rounds=rounds)
    losses = list(stream)
    users, films = stream.domain.shape
    counts = np.bincount(np.concatenate([loss.cols for loss in losses]), minlength=films)
    rare, rng, walls = np.flatnonzero(counts < RARE), np.random.default_rng(0), []
    for t in range(len(losses)):
        centre = 2.5 + 0.5 * math.sin(2.0 * math.pi * t * (1000 / len(losses)) / WAVE)
        rows, cols = rng.integers(0, users, PAIRS), rng.choice(rare, PAIRS)
        walls.append(Band(rows, cols, np.full(PAIRS, centre), stream.domain.shape))
    return stream.domain, losses, walls


def contenders(domain: dw.Domain, T: int, slow: bool) -> dict[str, Callable[[], dw.Learner]]:
    """Learners that ignore constraints, and learners that take them."""
    found: dict[str, Callable[[], dw.Learner]] = {
        "POLAR, no constraints": lambda: dw.POLAR(domain),
        "BOGD_IP, no constraints": lambda: dw.BOGDIP(domain, T),
    }
    for make in (dw.POLAR, dw.BOGDIP, *((dw.POLA, dw.POLD) if slow else ())):
        found[f"LongTerm, {make.__name__}"] = lambda make=make: dw.contrib.LongTerm(domain, make, T)
    fixed = {"violation_scale": math.inf}
    found["LongTerm, POLAR, constant weight"] = lambda: dw.contrib.LongTerm(
        domain, dw.POLAR, T, **fixed
    )
    found["CutBOGDIP"] = lambda: dw.contrib.CutBOGDIP(domain, T)
    return found


def row(name: str, learner: dw.Learner, losses: list[Any], walls: list[Band]) -> list[str]:
    """Play a game; return its errors, violations and cost."""
    started = time.process_time()
    history = dw.play(learner, losses, constraints=walls, keep_losses=False, progress=False)
    seconds = time.process_time() - started
    rounds, ratings = len(losses), sum(loss.rows.size for loss in losses)
    return [
        name,
        f"{history.losses.sum() / ratings:.3f}",
        f"{dw.regret.violation(history) / rounds:.3f}",
        f"{dw.regret.violation(history, tau=min(WINDOW, rounds)) / min(WINDOW, rounds):.3f}",
        f"{float((history.constraint_values <= 0).mean()):.0%}",
        f"{learner.lmo_calls / rounds:.2f}",
        f"{seconds:.0f}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constraints", description=__doc__)
    parser.add_argument("--rounds", type=int, help="play so many rounds; all 1,000 by default")
    parser.add_argument("--slow", action="store_true", help="POLA and POLD too: minutes each")
    given = parser.parse_args(arguments)
    try:
        domain, losses, walls = game(given.rounds)
    except (DataUnavailable, FileNotFoundError) as missing:
        print(missing, file=sys.stderr)
        return 2
    heads = [f"{len(losses):,} rounds", "mean absolute error", "violation per round"]
    heads += [f"worst {min(WINDOW, len(losses))} rounds", "in the band", "LMO calls per round"]
    made = contenders(domain, len(losses), given.slow).items()
    rows = [row(name, make(), losses, walls) for name, make in made]
    print(markdown([[*heads, "seconds"], *rows]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
