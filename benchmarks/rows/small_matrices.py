"""POLA on Shuttle: 7 x 9 matrices, 10 rows a round, 12 experts."""

from __future__ import annotations

import numpy as np
from river.linear_model import SoftmaxRegression

import driftwolfe as dw
from benchmarks.data import shuttle
from benchmarks.measure import medians, race, stretch, threads
from benchmarks.ratio import Ratio
from benchmarks.reference import pola
from benchmarks.reference.learner_loop import LearnerLoop
from benchmarks.reference.projections import exactly, on_trace_norm_ball

ROW = "small_matrices"
STEP_SCALE = 64.0
#: From round 2,048 to 4,095 there are 12 experts; the decisions are compared in the first rounds.
LEAD, COMPARED, ROUNDS = 2100, 400, 32
STRETCHES = {True: 20, False: 60}


def measure(short: bool) -> list[Ratio]:
    """POLA against the same experts as objects in a loop, and against river's classifier."""
    stream = shuttle()
    ours = dw.POLA(stream.domain, step_scale=STEP_SCALE)
    radius = stream.domain.radius
    bare = pola.POLA(np.zeros((7, 9)), STEP_SCALE, exactly(on_trace_norm_ball, radius))
    learners = LearnerLoop(stream.domain, STEP_SCALE)
    classifier = SoftmaxRegression()
    coming = stream[LEAD : LEAD + STRETCHES[short] * ROUNDS]
    rows = [_as_records(loss) for loss in coming]
    with threads(1):
        apart = _lead_in(ours, (bare, learners), stream[:LEAD])
        for loss in stream[:LEAD]:
            _learn(classifier, _as_records(loss))
        timings = race(
            {
                "POLA": stretch(ours.update, coming, ROUNDS),
                "learners in a loop": stretch(learners.update, coming, ROUNDS),
                "bare objects in a loop": stretch(bare.update, coming, ROUNDS),
                "river": stretch(lambda records: _learn(classifier, records), rows, ROUNDS),
            },
            STRETCHES[short],
            warm_up=False,
        )
    middle = {name: value / ROUNDS for name, value in medians(timings).items()}
    return _ratios(middle, timings, apart)


def _ratios(middle, timings, apart):
    note = (
        f"a round of 10 rows, 12 experts; stretches of {ROUNDS} rounds from round {LEAD:,}; "
        f"largest difference of decisions in {COMPARED} rounds {apart:.1g}"
    )
    return [
        Ratio(
            ROW,
            "POLA a round, against learners in a loop",
            middle["POLA"],
            middle["learners in a loop"],
            at_least=5,
            note=note + "; one `BOGDIP` for each expert",
            timings=timings,
        ),
        Ratio(
            ROW,
            "POLA a round, against bare objects in a loop",
            middle["POLA"],
            middle["bare objects in a loop"],
            at_least=5,
            note=note + "; nothing checked, only what the algorithm needs",
        ),
        Ratio(
            ROW,
            "POLA a row, against river's SoftmaxRegression",
            middle["POLA"] / 10,
            middle["river"] / 10,
            at_least=3,
            note="predict_proba_one and learn_one; 12 experts against one classifier",
            timings=timings,
        ),
    ]


def _lead_in(ours, others, losses):
    """Play all; they must be the same learner."""
    apart = 0.0
    for t, loss in enumerate(losses):
        for theirs in others:
            if t < COMPARED:
                apart = max(apart, float(np.abs(ours.decision - theirs.decision).max()))
            theirs.update(loss)
        ours.update(loss)
    if apart > 1e-8:
        raise AssertionError(f"the loop is not the same learner: decisions differ by {apart:g}")
    return apart


def _as_records(loss):
    """The rows of a loss as river takes them."""
    features = [dict(enumerate(row)) for row in loss.features.tolist()]
    return list(zip(features, loss.labels.tolist(), strict=True))


def _learn(classifier, records):
    for features, label in records:
        classifier.predict_proba_one(features)
        classifier.learn_one(features, label)
