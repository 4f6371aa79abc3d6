"""When calls are made: sections 3 and 6 of budget.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from check import Case, check

import driftwolfe as dw
from driftwolfe.ensemble.plan import LMOBudget


class Expert(NamedTuple):
    """Jobs of `size` calls for every `block` rounds, the first window starting after `offset`."""

    block: int
    size: int
    offset: int


def late_jobs(experts: Sequence[Expert], b: Fraction, rounds: int) -> int:
    """Serve the earliest deadline first, b calls per round; return the number of late jobs."""
    left, late = [0] * len(experts), 0
    for t in range(1, rounds + 1):
        for i, (block, size, offset) in enumerate(experts):
            if t > offset and (t - offset - 1) % block == 0:
                left[i] = size
        for _ in range(math.floor(b * t) - math.floor(b * (t - 1))):
            open_jobs = [i for i, calls in enumerate(left) if calls]
            if open_jobs:
                left[min(open_jobs, key=lambda i: _until_due(experts[i], t))] -= 1
        for i, each in enumerate(experts):
            if t > each.offset and _until_due(each, t) == 0 and left[i]:
                late, left[i] = late + 1, 0
    return late


def _told(experts: Sequence[Expert], b: Fraction) -> str:
    return f"(K, calls, offset) {', '.join(str(tuple(each)) for each in experts)}, b = {b}"


def _until_due(expert: Expert, t: int) -> int:
    return expert.block - 1 - (t - expert.offset - 1) % expert.block


def _small() -> Iterator[tuple[list[Expert], Fraction]]:
    """All pairs and triples of short blocks, with the largest jobs that fit, at all offsets."""
    for b in (Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(3, 2)):
        for blocks in (*product(range(1, 6), repeat=2), (2, 3, 6), (2, 4, 4), (3, 4, 5)):
            sizes = product(*(range(math.floor(b * K) + 1) for K in blocks))
            for size in sizes:
                if sum(Fraction(n, K) for n, K in zip(size, blocks, strict=True)) != b:
                    continue  # the hardest: nothing to spare
                for offsets in product(*(range(K) for K in blocks[1:])):
                    rows = zip(blocks, size, (0, *offsets), strict=True)
                    yield [Expert(*row) for row in rows], b


@check("earliest deadline first, sum b_i = b: late jobs, all small cases")
def every_small_case() -> Iterator[Case]:
    """No late job, where every call is claimed; 0 late jobs are a ratio of 0."""
    for experts, b in _small():
        rounds = 2 * math.lcm(*(each.block for each in experts), b.denominator) + 6
        yield late_jobs(experts, b, rounds), 0.0, _told(experts, b)


@check("earliest deadline first: late jobs, random cases with floor(b_i K_i) calls")
def random_cases() -> Iterator[Case]:
    """Up to eight experts with blocks up to 60 rounds and random parts."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        b = Fraction(int(rng.integers(1, 40)), int(rng.integers(1, 20)))
        parts = rng.integers(1, 20, size=rng.integers(2, 9))
        experts = []
        for part in parts.tolist():
            K = int(rng.integers(1, 60))
            size = math.floor(b * Fraction(part, int(parts.sum())) * K)
            experts.append(Expert(K, size, int(rng.integers(K))))
        yield late_jobs(experts, b, 200), 0.0, _told(experts, b)


@check("the same with one call more than b allows: a job is late (1 <= late jobs)")
def overload() -> Iterator[Case]:
    """The small cases with the largest job longer by one: the simulation can see a late job."""
    for k, (experts, b) in enumerate(_small()):
        if k % 7 == 0:
            more = [experts[0]._replace(size=experts[0].size + 1), *experts[1:]]
            rounds = 3 * math.lcm(*(each.block for each in experts), b.denominator) * 6
            yield 1, late_jobs(more, b, rounds), _told(more, b)


@check("demand: sum floor(L/K_i) floor(b_i K_i) <= floor(b(s + L)) - floor(b s)")
def demand() -> Iterator[Case]:
    """For all windows of up to 80 rounds and random experts."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        parts = rng.integers(1, 9, size=3).tolist()
        b = Fraction(int(rng.integers(1, 30)), int(rng.integers(1, 20)))
        blocks = rng.integers(1, 20, size=3).tolist()
        pairs = [
            (K, math.floor(b * p / sum(parts) * K)) for K, p in zip(blocks, parts, strict=True)
        ]
        for L in range(1, 81):
            left = sum(L // K * n for K, n in pairs)
            right = min(math.floor(b * (s + L)) - math.floor(b * s) for s in range(20))
            yield left, right, f"b = {b}, jobs {pairs}, L = {L}"


@check("even schedule in the library: runs that end too late")
def library_is_on_time() -> Iterator[Case]:
    """POLD and POLA, certified, on an L1 ball, pulled to and fro: `missed`, and calls per round."""
    for make, b in ((dw.POLD, 3.0), (dw.POLD, 30.0), (dw.POLA, 60.0)):
        options = {"horizon": 400, "lipschitz": 1.0, "tuning": "certified"}
        learner = make(dw.L1Ball(20), **options, oracle=dw.Oracle(lmo_budget=b, schedule="even"))
        rng, before = np.random.default_rng(0), 0
        for t in range(400):
            g = learner.decision + 0.1 * rng.normal(size=20) - np.roll(np.eye(20)[0], t // 100)
            learner.update(dw.losses.LinearLoss(g / np.linalg.norm(g)))
            yield learner.lmo_calls - before, b, f"{make.__name__}, b = {b}, calls in round {t}"
            before = learner.lmo_calls
        yield learner._experts.missed, 0.0, f"{make.__name__}, b = {b}"
        yield 1, float(before), f"{make.__name__}, b = {b}: at least one call"


@check("blocks in the library: calls after t rounds <= b t")
def library_keeps_the_budget() -> Iterator[Case]:
    """POLD and POLA in both tunings; intervals begin and end all the time."""
    for make, tuning, b in product((dw.POLD, dw.POLA), ("certified", "practical"), (0.3, 7.0)):
        learner = make(
            dw.L1Ball(8), horizon=200, lipschitz=1.0, tuning=tuning, oracle=dw.Oracle(lmo_budget=b)
        )
        rng = np.random.default_rng(0)
        for t in range(1, 201):
            g = learner.decision + 0.3 * rng.normal(size=8)
            learner.update(dw.losses.LinearLoss(g / np.linalg.norm(g)))
            where = f"{make.__name__}, {tuning}, b = {b}, t = {t}"
            yield learner.lmo_calls, math.floor(b * t * (1 + 1e-12)), where


def _accounts(seed: int) -> Iterator[tuple[LMOBudget, np.ndarray, float, int, float]]:
    """A random trace of the library's lmo_budget; savings are kept here, in fractions of the parts.

    Yields the lmo_budget after each round with all savings, and for each expert that is due what it
    saved, and what it was allowed.
    """
    rng = np.random.default_rng(seed)
    blocks = rng.integers(1, 12, size=6)
    shares = rng.dirichlet(np.ones(6)) * (b := float(rng.uniform(0.2, 5)))
    lmo_budget, clocks = LMOBudget(b), np.zeros(6, dtype=int)
    for _ in range(300):
        clocks += 1
        lmo_budget = lmo_budget.next_round()
        for i in np.flatnonzero(clocks % blocks == 0):
            saved, clocks[i] = float(shares[i] * clocks[i]), 0
            limit = lmo_budget.limit(reserved=float(shares @ clocks))
            yield lmo_budget, np.empty(0), saved, limit, b
            lmo_budget.spent += int(rng.integers(limit + 1)) if rng.random() < 0.7 else limit
        yield lmo_budget, shares * clocks, 0.0, 0, b


@check("lmo_budget: spent + sum of savings <= b t")
def budget_invariant() -> Iterator[Case]:
    """After every round of random traces."""
    for seed in range(20):
        for lmo_budget, savings, _, _, b in _accounts(seed):
            if savings.size:
                left = lmo_budget.spent + float(savings.sum())
                yield left, b * lmo_budget.rounds + 2e-9, f"trace {seed}, t = {lmo_budget.rounds}"


@check("lmo_budget: floor of an expert's savings <= what it may spend")
def pooled_budget_is_fair() -> Iterator[Case]:
    """For every expert whose block ends, whatever the others did."""
    for seed in range(20):
        for lmo_budget, savings, own, limit, _ in _accounts(seed):
            if not savings.size:
                yield math.floor(own), limit, f"trace {seed}, t = {lmo_budget.rounds}"
