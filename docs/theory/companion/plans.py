"""Blocks, tolerances and steps of sections 2, 4, 5 and 7 of budget.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
from check import Case, check
from sets import C

from driftwolfe.ensemble.plan import (
    Plan,
    ader_grid,
    block_length,
    budgeted_grid,
    budgeted_plan,
    budgeted_step,
    cover_part,
    pold_grid,
    projection_eps,
)
from driftwolfe.ensemble.sleeping_weights import AdaNormalHedge

BUDGETS = (0.1, 0.5, 1.0, 3.0, 20.0)
DRAGS = (1.0, 3.0)


def master(T: float, h: float, K: float, tol: float, v: float, r: float) -> float:
    """Return the master inequality in units of G D, without (K - 1) G P; tol in units of D^2."""
    return math.sqrt(tol) * T + v / h + r * h * K * T / 2


@check("block: min over K = (3/2) (c r/b)^(1/3) h^(1/3)")
def best_block() -> Iterator[Case]:
    """The closed form against the least value on a fine grid of K, which cannot be below it."""
    for b, r, h in product(BUDGETS, DRAGS, (1e-6, 1e-4, 1e-2)):
        K = np.geomspace(1e-2, 1e8, 40_001)
        least = float((np.sqrt(C / (b * K)) + r * h * K / 2).min())
        closed = 1.5 * (C * r * h / b) ** (1 / 3)
        yield closed, least, f"b = {b}, r = {r}, h = {h}"
        yield least, closed * (1 + 1e-6), f"b = {b}, r = {r}, h = {h}, from above"


@check("block rounded up: at most r h/2 more per round")
def rounded_block() -> Iterator[Case]:
    """The library's plan in the master inequality, for every step."""
    for b, r, h in product(BUDGETS, DRAGS, np.geomspace(1e-6, 3.0, 200)):
        plan = budgeted_plan(float(h), b, r)
        left = math.sqrt(plan.tolerance) + r * h * plan.block / 2
        yield left, 1.5 * (C * r * h / b) ** (1 / 3) + r * h / 2, f"b = {b}, r = {r}, h = {h:.3g}"


@check("calls of a block <= floor(b K), none where tol = D^2")
def affordable() -> Iterator[Case]:
    """The bound 2.6 D^2/tol for the library's plans, in exact fractions of the same numbers."""
    for b, r, h in product(BUDGETS, DRAGS, np.geomspace(1e-6, 3.0, 200)):
        plan = budgeted_plan(float(h), b, r)
        exact = Fraction(b) * plan.block
        most = math.floor(C / plan.tolerance * (1 - 1e-12)) if plan.tolerance < 1 else 0
        yield most, float(math.floor(exact)), f"b = {b}, r = {r}, K = {plan.block}"


@check("step: min over h = 4v/h* <= 3.021 (r v/b)^(1/4) T^(3/4)")
def best_step() -> Iterator[Case]:
    """The library's h*, its closed value, and a fine grid of h around it."""
    for b, r, v, T in product(BUDGETS, DRAGS, (0.125, 0.5, 7.0), (100, 10**6)):
        h = budgeted_step(T, v, b, r)
        grid = h * np.geomspace(1e-3, 1e3, 20_001)
        least = float((1.5 * (C * r * grid / b) ** (1 / 3) * T + v / grid).min())
        yield 4 * v / h, least, f"b = {b}, r = {r}, v = {v}, T = {T}"
        yield 4 * v / h, 3.021 * (r * v / b) ** 0.25 * T**0.75, f"b = {b}, r = {r}, v = {v}"


@check("static, b = 1: <= 1.796 T^(3/4) + 0.140 T^(1/4) and <= 1.80 T^(3/4)")
def static() -> Iterator[Case]:
    """The library's plan from a start at the centre, for many T."""
    for T in [*range(1, 2000), *np.geomspace(2000, 1e9, 300).astype(int)]:
        h = budgeted_step(int(T), 0.125, 1.0)
        plan = budgeted_plan(h, 1.0)
        left = master(T, h, plan.block, plan.tolerance, 0.125, 1.0)
        yield left, 1.796 * T**0.75 + 0.140 * T**0.25, f"T = {T}"
        yield min(left, T), 1.80 * T**0.75, f"T = {T}, 1.80 T^(3/4)"


def _experts() -> Iterator[tuple[int, float, float, float, float, Plan, float, str]]:
    """T, b, r, v0, k(k + 1), the plan of the expert meant for P, P, and a text."""
    for T, b, r, v0 in product((50, 3000, 10**6), (0.2, 1.0, 5.0), DRAGS, (0.125, 0.5)):
        plans = budgeted_grid(T, v0, b, r)
        for P in [0.0, *np.geomspace(1e-3, T - 1, 120).tolist()]:
            k = math.floor(0.75 * math.log2(1 + P / (2 * v0))) + 1
            where = f"T = {T}, b = {b}, r = {r}, v0 = {v0}, P = {P:.3g} D, k = {k}"
            yield T, b, r, v0, k * (k + 1), plans[k - 1], P, where


@check("POLD: expert k <= 3.31 (r v k(k+1)/b)^(1/4) T^(3/4) + (r/2) h_k T")
def grid_of_steps() -> Iterator[Case]:
    """The master inequality of the expert meant for each path length; it must exist."""
    for T, b, r, v0, factor, plan, P, where in _experts():
        v = v0 + P / 2
        left = master(T, plan.step, plan.block, plan.tolerance, v, r)
        right = 3.31 * (r * v * factor / b) ** 0.25 * T**0.75 + r / 2 * plan.step * T
        yield left, right, where


@check("POLD: (K_k - 1) P <= 2.56 (k(k+1)/(r b))^(1/2) (T P D)^(1/2)")
def path_in_blocks() -> Iterator[Case]:
    """What comparators move inside blocks."""
    for T, b, r, _, factor, plan, P, where in _experts():
        yield (plan.block - 1) * P, 2.56 * math.sqrt(factor / (r * b) * T * P), where


@check("POLD: a step off by up to 2 costs at most 1.0953")
def off_by_two() -> Iterator[Case]:
    """(3 t^(1/3) + 1/t)/4 for fractions t of the best step between 1/2 and 1."""
    for t in np.linspace(0.5, 1.0, 1001):
        yield (3 * t ** (1 / 3) + 1 / t) / 4, 1.0953, f"{t:.4g} of the best step"
    yield 3.021 * 1.0953, 3.31, "3.021 times that"


@check("POLD without a budget: 3.51 v^(1/4) T^(3/4) + 1.94 (T P/D)^(1/2)")
def unlimited() -> Iterator[Case]:
    """bounds.md: the expert meant for each path length, with the paper's blocks and tolerances."""
    for T, v0 in product((1, 2, 30, 3000, 10**6), (0.125, 0.5)):
        for P in [0.0, *np.geomspace(1e-3, max(T - 1, 1e-3), 150)]:
            P = min(float(P), T - 1.0)
            k, v = math.floor(0.75 * math.log2(1 + P / (2 * v0))), v0 + P / 2
            h = float(pold_grid(T, v0)[k])
            K, where = block_length(h), f"T = {T}, v0 = {v0}, P = {P:.3g} D"
            left = master(T, h, K, 3 * projection_eps(h), v, 1.0)
            yield left, 3.51 * v**0.25 * T**0.75, where
            yield (K - 1) * P, 1.94 * math.sqrt(T * P), f"{where}, path in blocks"


@check("parts: sum of b_i <= b, b_k >= b/(k(k+1)), ln(1/p_k) <= 2 ln(k+1)")
def parts() -> Iterator[Case]:
    """Of POLD's grids and POLA's cover."""
    for T in (2, 10, 1000, 10**6):
        plans = budgeted_grid(T, 0.125, 1.0)
        yield sum(plan.reserved for plan in plans), 1 + 1e-12, f"T = {T}"
        for k, plan in enumerate(plans, start=1):
            yield 1 / (k * (k + 1)), plan.reserved, f"T = {T}, k = {k}"
            yield -math.log(plan.reserved), 2 * math.log(k + 1), f"T = {T}, prior {k}"
    yield sum(cover_part(1 << k) for k in range(60)), 1.0, "cover"


def level(k: int, b: float, r: float) -> tuple[float, float, float]:
    """Return one interval's bound without the meta, in units of G D, and its block and tolerance."""
    length, part = 1 << k, b * cover_part(1 << k)
    h = budgeted_step(length, 0.5, part, r)
    plan = budgeted_plan(h, part, r)
    return master(length, h, plan.block, plan.tolerance, 0.5, r), plan.block, plan.tolerance


@check("POLA: interval <= 2.541 (r(k+1)(k+2)/b)^(1/4) |I|^(3/4) + ceiling")
def interval() -> Iterator[Case]:
    """The master inequality of the library's plan for each level."""
    for b, r, k in product(BUDGETS, DRAGS, range(31)):
        s, length = (k + 1) * (k + 2) / b, 2.0**k
        right = 2.541 * (r * s) ** 0.25 * length**0.75 + 0.394 * r**0.75 * (length / s) ** 0.25
        yield level(k, b, r)[0], right, f"b = {b}, r = {r}, k = {k}"


@check("POLA: K = ceil(sqrt(c |I|/(b_k r)))")
def interval_block() -> Iterator[Case]:
    """The block in closed form, both ways."""
    for b, r, k in product(BUDGETS, DRAGS, range(31)):
        closed = math.ceil(math.sqrt(C * 2**k * (k + 1) * (k + 2) / (b * r)) * (1 - 1e-12))
        block = level(k, b, r)[1]
        yield max(block / closed, closed / block), 1.0, f"b = {b}, r = {r}, k = {k}"


@check("POLA, b = 1: first calls at 256 rounds (even schedule: 2048)")
def first_calls() -> Iterator[Case]:
    """The shortest interval in which a block that may call ends before the interval does."""
    for r, blocks, claimed in ((1.0, 1, 256), (3.0, 2, 2048)):  # blocks until a run is done
        plans = {1 << k: level(k, 1.0, r) for k in range(20)}
        first = min(n for n, (_, K, tol) in plans.items() if tol < 1 and blocks * K < n)
        yield max(first / claimed, claimed / first), 1.0, f"r = {r}: {first}"


@check("POLA, b = 1: below G D |I| from 2^14 (even schedule: 2^16)")
def worth_it() -> Iterator[Case]:
    """The interval's bound with and without AdaNormalHedge's price, B = G D."""
    for r, claimed in ((1.0, 14), (3.0, 16)):
        price = AdaNormalHedge(1.0).regret_bound
        for meta in (0.0, 1.0):
            bound = (level(k, 1.0, r)[0] + meta * price(1 << k, 2 << k, 1.0) for k in range(30))
            first = next(k for k, value in enumerate(bound) if value < 1 << k)
            yield max(first / claimed, claimed / first), 1.0, f"r = {r}, meta {meta}: 2^{first}"


@check("Ader's grid: <= (0.936 + 0.535 v) M^(1/2), or 1.25 (2v M)^(1/2)")
def ader_steps() -> Iterator[Case]:
    """v/h + h M/2 for the best step of the library's grid, all path lengths up to M - 1."""
    for M in (1, 2, 7, 100, 10**4):
        grid = ader_grid(M)
        for P in [0.0, *np.geomspace(1e-3, max(M - 1, 1e-3), 200)]:
            v = 0.125 + P / 2
            i = 0 if v <= 1.75 else math.floor(0.5 * math.log2(v / 1.75))
            left = v / grid[i] + grid[i] * M / 2
            right = 0.936 + 0.535 * v if v <= 1.75 else 1.25 * math.sqrt(2 * v)
            yield float(left), right * math.sqrt(M), f"M = {M}, P = {P:.3g} D, expert {i + 1}"


@check("OneOracleAder, b = 1: static <= 3.46 T^(3/4) (1 + 3 T^(-1/2))^(1/2)")
def one_oracle_static() -> Iterator[Case]:
    """All terms with their ceilings, Hedge's B = K G D over M rounds included."""
    for T in [*range(7, 2000), *np.geomspace(2000, 1e9, 200).astype(int)]:
        K = math.ceil(math.sqrt(T))
        M = math.ceil(T / K)
        step = float(ader_grid(M)[0])
        left = T * math.sqrt(min(1, C / K)) + K * 0.125 / step + step * T / 2
        left += K * math.sqrt(M / 8) * (1 + 2 * math.log(2))
        yield left, 3.46 * T**0.75 * math.sqrt(1 + 3 / math.sqrt(T)), f"T = {T}"
