"""POLD and POLA on vectors and on 7 x 9 matrices, against the same experts in a Python loop."""

from __future__ import annotations

import numpy as np
from river.linear_model import SoftmaxRegression

import driftwolfe as dw
from benchmarks.data import shuttle
from benchmarks.measure import medians, race, stretch, threads
from benchmarks.ratio import Ratio
from benchmarks.reference import (
    BOGDIP,
    POLA,
    POLD,
    LearnerLoop,
    exactly,
    experiment_steps,
    on_l1_ball,
    on_simplex,
    on_trace_norm_ball,
)

STEP_SCALE = 64.0
#: From round 2,048 to 4,095 there are 12 experts; decisions are compared in the first rounds.
LEAD, COMPARED, ROUNDS = 2100, 400, 32
MATRIX_STRETCHES = {True: 20, False: 60}


def small_matrices(short: bool) -> list[Ratio]:
    """POLA on Shuttle (7 x 9, 10 rows per round): against experts in a loop and river."""
    stream = shuttle()
    ours = dw.POLA(stream.domain, step_scale=STEP_SCALE)
    radius = stream.domain.radius
    bare = POLA(np.zeros((7, 9)), STEP_SCALE, exactly(on_trace_norm_ball, radius))
    learners = LearnerLoop(stream.domain, STEP_SCALE)
    classifier = SoftmaxRegression()
    coming = stream[LEAD : LEAD + MATRIX_STRETCHES[short] * ROUNDS]
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
            MATRIX_STRETCHES[short],
            warm_up=False,
        )
    middle = {name: value / ROUNDS for name, value in medians(timings).items()}
    return _matrix_ratios(middle, timings, apart)


def _matrix_ratios(middle, timings, apart):
    note = (
        f"10 rows per round, 12 experts; stretches of {ROUNDS} rounds from round {LEAD:,}; "
        f"largest difference of decisions in {COMPARED} rounds {apart:.1g}"
    )
    return [
        Ratio(
            "small_matrices",
            "POLA per round, against learners in a loop",
            middle["POLA"],
            middle["learners in a loop"],
            at_least=5,
            note=note + "; one `BOGDIP` per expert",
            timings=timings,
        ),
        Ratio(
            "small_matrices",
            "POLA per round, against bare objects in a loop",
            middle["POLA"],
            middle["bare objects in a loop"],
            at_least=5,
            note=note + "; only what the algorithm needs, no checks",
        ),
        Ratio(
            "small_matrices",
            "POLA per row, against river's SoftmaxRegression",
            middle["POLA"] / 10,
            middle["river"] / 10,
            at_least=3,
            note="predict_proba_one and learn_one; 12 experts against one classifier",
            timings=timings,
        ),
    ]


def _lead_in(ours, others, losses):
    """Play all learners; their decisions must agree."""
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
    """The rows of a loss in the form that river takes."""
    features = [dict(enumerate(row)) for row in loss.features.tolist()]
    return list(zip(features, loss.labels.tolist(), strict=True))


def _learn(classifier, records):
    for features, label in records:
        classifier.predict_proba_one(features)
        classifier.learn_one(features, label)


HORIZON = 1000
SETS = {"L1 ball": (dw.L1Ball, on_l1_ball), "simplex": (dw.Simplex, on_simplex)}
#: Dimensions, and how many times faster than the loop we must be in each.
DIMENSIONS, FLOOR = (10, 100, 1000, 10_000), 1.5
#: Stretches of `ROUNDS` after the one that warms up; POLA ends with 9 or 10 experts.
STRETCHES = {True: 10, False: 20}


def vectors(short: bool) -> list[Ratio]:
    """POLD and POLA on the L1 ball and the simplex, per round, against objects in a loop."""
    dimensions = (10, 1000) if short else DIMENSIONS
    with threads(1):
        return [
            ratio
            for name in ("POLD", "POLA")
            for shown in SETS
            for ratio in _by_dimension(name, shown, dimensions, STRETCHES[short])
        ]


def _by_dimension(name, shown, dimensions, stretches):
    ratios, before = [], None
    for d in dimensions:
        timings = _race(name, shown, d, stretches)
        middle = {each: value / ROUNDS for each, value in medians(timings).items()}
        ours = middle["ours"]
        growth = "" if before is None else f"; {ours / before[1]:.2f} times the time of {before[0]}"
        before = (d, ours)
        ratios.append(
            Ratio(
                "vectors",
                f"{name}, {shown}, d = {d:,}",
                ours,
                middle["loop"],
                at_least=FLOOR,
                note=f"per round, against objects in a loop{growth}",
                timings=timings,
            )
        )
    return ratios


def _race(name, shown, d, stretches):
    """Time both learners, whose decisions must agree, on a target that jumps every 50 rounds."""
    rounds = ROUNDS * (stretches + 1)
    losses = _losses(d, rounds)
    ours, theirs = _learners(name, *SETS[shown], d)
    timings = race(
        {
            "ours": stretch(ours.update, losses, ROUNDS),
            "loop": stretch(theirs.update, losses, ROUNDS),
        },
        stretches,
    )
    apart = float(np.abs(ours.decision - theirs.decision).max())
    if apart > 1e-8:
        raise AssertionError(f"the loop is not the same learner: decisions differ by {apart:g}")
    return timings


def _learners(name, domain, nearest, d):
    domain, project = domain(d), exactly(nearest)
    if name == "POLA":
        return dw.POLA(domain, step_scale=1.0), POLA(domain.origin(), 1.0, project)
    steps = experiment_steps(HORIZON)
    experts = [BOGDIP(domain.origin(), h, 1.0, project) for h in steps]
    ours = dw.POLD(domain, horizon=HORIZON, step_scale=1.0, grid="experiment")
    return ours, POLD(experts, HORIZON)


def _losses(d, rounds):
    rng = np.random.default_rng(d)
    noise = 0.3 * rng.standard_normal((rounds, d)) / np.sqrt(d)
    noise[np.arange(rounds), np.arange(rounds) // 50 % d] += 1.0
    return [dw.losses.SquaredDistance(target) for target in noise]
