"""BOGD_IP and POLD against the paper written down literally: dense arrays, `svds`."""

from __future__ import annotations

import statistics
from functools import partial

import numpy as np

import driftwolfe as dw
from benchmarks import stored
from benchmarks.data import movielens
from benchmarks.measure import seconds, threads
from benchmarks.ratio import Ratio
from benchmarks.reference import BOGDIP, POLD, Oracle, experiment_steps, infeasible_projection

ROW = "paper_algorithms"
HORIZON, STEP_SCALE = 3000, 1e4
#: The practical tuning: the factor on the paper's eps, and the most LMO calls per projection.
TOLERANCE_SCALE, MOST_CALLS = 1e-6, 200
#: Rounds before the last one compared. A block of BOGD_IP has 54, POLD's fastest expert projects
#: in every round; one projection of the reference takes 15 to 60 seconds.
ROUNDS = {True: {"BOGD_IP": 54}, False: {"BOGD_IP": 162, "POLD": 3}}
REPEATS = 5
#: How much larger our loss may be over these few rounds; over a long run, not at all.
SLACK = 1.01


def paper_algorithms(short: bool) -> list[Ratio]:
    """BOGD_IP and POLD against the paper written down literally: time and loss."""
    losses = movielens()
    ratios = []
    with threads(1):
        for name, rounds in ROUNDS[short].items():
            ratios += _compare(name, losses[: rounds + 1])
        if not short:
            ratios.append(_loosely(losses[: ROUNDS[True]["BOGD_IP"] + 1]))
    return ratios if short else [*ratios, *_stored_loss(losses)]


def _compare(name, losses):
    """Time ours before and after the reference, which takes minutes and runs once."""
    _game(ours(name), losses)
    before = [_timed(ours(name), losses) for _ in range(REPEATS)]
    theirs = _timed(reference(name), losses)
    after = [_timed(ours(name), losses) for _ in range(REPEATS)]
    times = [time for time, _ in (*before, *after)]
    where = f"first {len(losses) - 1} rounds"
    note = f"dense arrays, svds to machine precision, at most {MOST_CALLS} per projection, run once"
    timings = {"ours": times, "reference": [theirs[0]]}
    return [
        Ratio(
            ROW,
            f"{name}, {where}",
            statistics.median(times),
            theirs[0],
            at_least=100,
            note=note,
            timings=timings,
        ),
        Ratio(
            ROW,
            f"loss of {name}, {where} and the next",
            before[0][1],
            theirs[1],
            at_most=SLACK,
            unit="loss",
            note="200 steps of Frank-Wolfe stop short of the projection, which helps early on",
        ),
    ]


def _loosely(losses):
    """The reference with a rough oracle, without a limit."""
    times = [_timed(ours("BOGD_IP"), losses)[0] for _ in range(REPEATS)]
    theirs = _timed(reference("BOGD_IP", tol=0.1), losses)[0]
    return Ratio(
        ROW,
        f"BOGD_IP, first {len(losses) - 1} rounds, svds with tol = 0.1",
        statistics.median(times),
        theirs,
        note="what the reference gains from a rough oracle",
        timings={"ours": times, "reference": [theirs]},
    )


def _stored_loss(losses):
    """Our loss against that of a long run of the reference, over its rounds."""
    run = stored.record("the paper's BOGD_IP")
    if run is None:
        return []
    rounds = run["rounds"]
    return [
        Ratio(
            ROW,
            f"loss of BOGD_IP, first {rounds:,} rounds, against a long run",
            _game(ours("BOGD_IP"), losses[:rounds]),
            run["cumulative_loss"][-1],
            at_most=1,
            unit="loss",
            note=stored.source("the paper's BOGD_IP", run),
        )
    ]


def ours(name):
    """The library's learner."""
    domain = movielens().domain
    if name == "BOGD_IP":
        return dw.BOGDIP(domain, horizon=HORIZON, step_scale=STEP_SCALE)
    return dw.POLD(domain, horizon=HORIZON, step_scale=STEP_SCALE, grid="experiment")


def reference(name, tol=0):
    """The paper's learner with the same steps, blocks and tolerances."""
    domain = movielens().domain
    oracle = Oracle(domain.radius, MOST_CALLS, tol)
    if name == "BOGD_IP":
        return paper_expert(domain, HORIZON**-0.75, oracle)
    steps = experiment_steps(HORIZON)
    return POLD([paper_expert(domain, h, oracle) for h in steps], HORIZON)


def paper_expert(domain, h, oracle, c=STEP_SCALE):
    """BOGD_IP with the infeasible projection of the paper, eps = D^2 h^(2/3) times the scale."""
    eps = (2 * domain.radius) ** 2 * h ** (2 / 3) * TOLERANCE_SCALE
    project = partial(infeasible_projection, eps=eps, oracle=oracle)
    return BOGDIP(np.zeros(domain.shape), h, c, project)


def _timed(learner, losses):
    totals = []
    time = seconds(lambda: totals.append(_game(learner, losses)))
    return time, totals[0]


def _game(learner, losses):
    """The total loss; the learner need not learn from the last one."""
    total = sum(learner.update(loss) for loss in losses[:-1])
    return total + losses[-1].value(learner.decision)
