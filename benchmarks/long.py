"""Runs of an hour and more: `python -m benchmarks --long NAME`; can be stopped and resumed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any

import driftwolfe as dw
from benchmarks import large_matrix, stored
from benchmarks.data import movielens
from benchmarks.measure import threads
from benchmarks.rows import paper_algorithms
from benchmarks.rows.movielens import (
    ADER_SCALE,
    HORIZON,
    NEAR_EXACT,
    STEP_SCALE,
    ader,
    one_projection_ader,
    pold,
)
from driftwolfe import Oracle, doctor

#: The paper's grid for c, largest first: small steps stay inside the ball and are slowest.
GRID = tuple(10.0**k for k in range(6, -2, -1))
#: Rounds of each third of the stream that Ader's c is chosen on.
TUNING_ROUNDS = 50
#: Projections by LMO calls that give the losses of exact ones.
ALMOST_EXACT = Oracle("block", accuracy=1e-3, tolerance_scale=1e-12)


@dataclass(frozen=True)
class Run:
    """A learner and its losses."""

    name: str
    make: Callable[[], Any]
    losses: Callable[[], Iterator[Any]]
    rounds: int = HORIZON


@dataclass
class State:
    """Progress of a run."""

    learner: Any
    commit: str | None
    total: float = 0.0
    seconds: float = 0.0
    rounds: int = 0
    cumulative: list[float] = field(default_factory=list)


def contestants() -> dict[str, Sequence[Run]]:
    """The runs that `--long` offers, by name."""
    thinned = 3 * TUNING_ROUNDS
    return {
        "pold": [_ratings(f"POLD, c = {c:g}", partial(pold, c)) for c in GRID],
        "pold-exact": [
            _ratings(f"POLD, exact, c = {STEP_SCALE:g}", partial(pold, STEP_SCALE, oracle="exact"))
        ],
        "ader": [_ratings(f"Ader, exact, c = {ADER_SCALE:g}", partial(ader, ADER_SCALE))],
        "ader-near-exact": [
            _ratings(f"Ader, near-exact, c = {ADER_SCALE:g}", _near_exact_ader(ADER_SCALE))
        ],
        "ader-tuning": [
            Run(f"Ader, tuning, c = {c:g}", _near_exact_ader(c), _thinned, thinned) for c in GRID
        ],
        "one-projection": [
            _ratings(
                f"{NEAR_EXACT}, c = D/G",
                partial(one_projection_ader, oracle=ALMOST_EXACT),
            )
        ],
        "paper-bogd-ip": [
            _ratings("the paper's BOGD_IP", partial(paper_algorithms.reference, "BOGD_IP"))
        ],
        "scale-pold": [
            Run("POLD at scale", large_matrix.pold, large_matrix.stream, large_matrix.HORIZON)
        ],
    }


def run(name: str) -> None:
    """Play the runs of one contestant to their end, resuming those that were stopped."""
    with threads(1):
        for each in contestants()[name]:
            _play_on(each)


def _play_on(each: Run) -> None:
    state = _resume(each)
    losses = islice(each.losses(), state.rounds, each.rounds)
    for loss in losses:
        started = time.perf_counter()
        state.total += state.learner.update(loss)
        state.seconds += time.perf_counter() - started
        state.rounds += 1
        if state.rounds % stored.EVERY == 0 or state.rounds == each.rounds:
            _keep(each, state)
    _checkpoint(each).unlink(missing_ok=True)


def _resume(each: Run) -> State:
    done = stored.record(each.name)
    if done and done["rounds"] == each.rounds:
        print(
            f"{each.name}: finished on {done['date'][:10]}; remove it from long.json to run it again"
        )
        return State(None, done["commit"], rounds=each.rounds)
    fresh = each.make()
    if done is None or not _checkpoint(each).exists():
        return State(fresh, doctor.commit())
    learner = dw.load(_checkpoint(each), domain=fresh.domain)
    # The record is written first: after a kill between the two it may be ahead.
    losses = done["cumulative_loss"][: learner.t // stored.EVERY]
    return State(learner, done["commit"], losses[-1], done["seconds"], learner.t, losses)


def _keep(each: Run, state: State) -> None:
    state.cumulative.append(state.total)
    content = {
        "rounds": state.rounds,
        "of": each.rounds,
        "seconds": round(state.seconds, 1),
        "cumulative_loss": [round(value, 2) for value in state.cumulative],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": state.commit,
        "cpu": doctor.cpu_model(),
    }
    stored.save(each.name, content)
    if isinstance(state.learner, dw.Learner):  # the literal reference cannot be saved
        state.learner.save(_checkpoint(each))
    print(
        f"{each.name}: {state.rounds:,} of {each.rounds:,} rounds, {state.seconds:,.0f} s, "
        f"mean loss {state.total / state.rounds:.5g}",
        file=sys.stderr,
        flush=True,
    )


def _checkpoint(each: Run):
    plain = "".join(letter if letter.isalnum() else "-" for letter in each.name)
    return stored.PATH.parent / f"long-{plain}.safetensors"


def _ratings(name: str, make: Callable[[], Any]) -> Run:
    return Run(name, make, lambda: iter(movielens()))


def _thinned() -> Iterator[Any]:
    """The first rounds of each third of the stream."""
    third = len(movielens()) // 3
    for start in range(0, 3 * third, third):
        yield from movielens()[start : start + TUNING_ROUNDS]


def _near_exact_ader(c: float) -> Callable[[], Any]:
    """Ader with block Krylov projections accurate enough to give the losses of exact ones."""
    return partial(ader, c, oracle=ALMOST_EXACT)
