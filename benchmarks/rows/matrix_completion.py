"""POLD on MovieLens 100K, the paper's setting, against Ader with exact projections."""

from __future__ import annotations

import math
import statistics

import driftwolfe as dw
from benchmarks import stored
from benchmarks.data import movielens
from benchmarks.measure import race, stretch, threads
from benchmarks.ratio import Ratio
from benchmarks.reference.gram_ball import GramBall

ROW = "matrix_completion"
HORIZON, STEP_SCALE = 3000, 1e4
#: For Ader the best of 1e2, 1e3 and 1e4 after 50 rounds; `--long ader-tuning` tries the whole grid.
ADER_SCALE = 1e3
#: Rounds a stretch of POLD and of Ader, number of stretches, rounds of POLD with exact projections.
SIZES = {True: (50, 1, 4, 30), False: (500, 3, 6, 150)}

#: Long runs to compare with, over all rounds that both have, and the ceiling.
STORED = (
    (f"POLD, exact, c = {STEP_SCALE:g}", 1.02),
    ("Ader, exact", 1.03),
    ("Ader, near-exact", 1.03),
)


def measure(short: bool) -> list[Ratio]:
    """Time against Ader's, losses against POLD with exact projections and against Ader's."""
    rounds, sampled, stretches, compared = SIZES[short]
    stream = movielens()
    ours, exact = Played(pold()), Played(pold(method="exact"))
    theirs, quicker = Played(ader(gram=True)), Played(ader())
    with threads(1):
        Played(pold()).play(stream[:20])
        timings = race(
            {
                "POLD": stretch(ours.update, stream, rounds),
                "Ader": stretch(theirs.update, stream, sampled),
                "Ader, our exact projections": stretch(quicker.update, stream, sampled),
            },
            stretches,
            warm_up=False,
        )
        exact.play(stream[:compared])
    return [
        _speed(timings, "Ader", rounds, sampled, 100),
        _speed(timings, "Ader, our exact projections", rounds, sampled, None),
        _loss("exact projections", ours, exact, 1.02, "both in this run"),
        _loss("Ader", ours, theirs, None, "both in this run, at their steps of the budget"),
        *_stored_losses(ours),
    ]


def pold(c: float = STEP_SCALE, **options) -> dw.POLD:
    """POLD with the steps c 2^(i-1) T^(-3/4) of the paper."""
    return dw.POLD(movielens().domain, horizon=HORIZON, step_scale=c, grid="experiment", **options)


def ader(c: float = ADER_SCALE, gram: bool = False, **options) -> dw.Ader:
    """Ader with the steps c 2^(i-1) T^(-1/2) of the paper; its own have sqrt(7/2) more.

    `gram`: every projection decomposes a Gram matrix of 943 x 943. Else only those that the library
    finds no quicker way for, with the same answers.
    """
    ball = movielens().domain
    if gram:
        ball = GramBall(ball.shape, ball.scale)
    return dw.Ader(ball, horizon=HORIZON, step_scale=c / math.sqrt(3.5), **options)


class Played:
    """A learner and what it has suffered up to each round."""

    def __init__(self, learner):
        self.learner = learner
        self.totals = [0.0]

    def update(self, loss):
        """Play a round."""
        self.totals.append(self.totals[-1] + self.learner.update(loss))

    def play(self, losses):
        """Play several."""
        for loss in losses:
            self.update(loss)


def _speed(timings, name, rounds, sampled, floor):
    played = rounds * len(timings["POLD"])
    a_round = statistics.median(timings[name]) / sampled
    ways = (
        "by eigendecomposition of the Gram matrix" if floor else "as quick as the library has them"
    )
    return Ratio(
        ROW,
        f"POLD, {played:,} rounds, against {name}",
        sum(timings["POLD"]),
        a_round * played,
        at_least=floor,
        note=f"Ader timed on {sampled * len(timings[name])} rounds, in turns with POLD, and "
        f"extrapolated to {played:,}; exact projections {ways}",
        timings={part: timings[part] for part in ("POLD", name)},
    )


def _loss(name, ours, theirs, limit, note):
    rounds = min(len(ours.totals), len(theirs.totals)) - 1
    return Ratio(
        ROW,
        f"loss over {rounds:,} rounds, against {name}",
        ours.totals[rounds],
        theirs.totals[rounds],
        at_most=limit,
        unit="loss",
        note=note,
    )


def _stored_losses(ours):
    """This run's loss against those of long runs after as many rounds."""
    ratios = []
    for prefix, limit in STORED:
        if found := stored.best(prefix, len(ours.totals) - 1):
            name, run, rounds = found
            ratios.append(
                Ratio(
                    ROW,
                    f"loss over {rounds:,} rounds, against {prefix}",
                    ours.totals[rounds],
                    stored.loss_at(run, rounds),
                    at_most=limit,
                    unit="loss",
                    note=stored.told(name, run),
                )
            )
    return ratios
