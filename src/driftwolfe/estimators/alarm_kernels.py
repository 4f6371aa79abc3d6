"""Compiled loop of `DriftAlarm`: ranks of losses, and bets on them."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.estimators.alarm import RECENT, SHAPES
from driftwolfe.points.compiling import (
    ANSWER,
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    WHOLE,
    jit,
)

#: Of every bet a, a b, and twice b - 1: so many roots of 1 - p^a are multiplied.
_BETS, _POWERS = len(SHAPES), np.array([a for a, _ in SHAPES])
_FACTORS, _ROOTS = (
    np.array([a * b for a, b in SHAPES]),
    np.array([int(2 * b) - 2 for _, b in SHAPES]),
)
#: Random numbers stay so far from 0 and 1, of which bets have no price.
_LEAST = 1e-12


@jit(allocates=False)
def _place(values, first, end, loss, after):
    """Return the first place of sorted numbers that is not smaller than a loss, or, with `after`, larger."""
    while first < end:
        middle = (first + end) >> 1
        here = values[middle]
        below = here < loss or (after and here == loss)
        first, end = (middle + 1, end) if below else (first, middle)
    return first


@jit(
    *(NUMBERS, NUMBERS, WHOLE, NUMBER, ANSWER, WHOLE),
    *(NEW_NUMBERS, NEW_PLACES, NEW_TABLE, NEW_PLACES),
    allocates=False,
)
def follow(losses, draws, t, rate, two_sided, most, known, sizes, evidence, starts):
    """Take losses, the first of them as update t; infinite ones are left out.

    Known losses are in order, behind a few of the latest that are in order too. Return the number of losses done;
    below 0 if the alarm sounded at the last of them.
    """
    for k in range(losses.size):
        loss, now = losses[k] + 0.0, t + k  # -0.0 becomes 0.0
        if loss == math.inf:
            continue
        if sizes[0] + sizes[1] == most:
            sizes[0] = sizes[1] = 0
        many, few, larger, equal, place = sizes[0], sizes[1], 0, 1, 0
        for part in range(2):
            begin, end = (0, few) if part else (RECENT, RECENT + many)
            first = _place(known, begin, end, loss, part < 0)
            place = first
            if first < end and known[first] == loss:
                place = _place(known, first, end, loss, part >= 0)
            larger, equal = larger + end - place, equal + place - first
        draw = draws[now % draws.size]
        draw = _LEAST if draw < _LEAST else 1.0 - _LEAST if draw > 1.0 - _LEAST else draw
        rank = (larger + draw * equal) / (many + few + 1.0)
        for j in range(few, place, -1):
            known[j] = known[j - 1]
        known[place], few = loss, few + 1
        if few == RECENT:  # merge, from the end
            many += few
            j = RECENT + many
            while few > 0:
                j -= 1
                other = j - few
                latest = other < RECENT or known[other] <= known[few - 1]
                known[j] = known[few - 1] if latest else known[other]
                few -= latest
        sizes[0], sizes[1], grown, fallen = many, few, 0.0, 0.0
        for side in range(2):
            p, grown, total = 1.0 - rank if side else rank, fallen, 0.0
            log = math.log(p)
            for b in range(_BETS):
                power = math.exp(_POWERS[b] * log)
                factor, root = _FACTORS[b] * power / p, math.sqrt(1.0 - power)
                for _ in range(_ROOTS[b]):
                    factor *= root
                held, run = (1.0 + evidence[2 * side, b]) * factor, evidence[2 * side + 1, b]
                if run <= 1.0:
                    run, starts[side * _BETS + b] = 1.0, now
                evidence[2 * side, b], evidence[2 * side + 1, b] = held, run * factor
                total += held
            fallen = total / _BETS
        if (0.5 * (grown + fallen) if two_sided else grown) * rate >= 1.0:
            return -k - 1
        if not two_sided and fallen * rate >= 1.0:  # what came before the fall is forgotten
            sizes[0] = sizes[1] = 0
            for b in range(_BETS):
                evidence[2, b] = evidence[3, b] = 0.0
                starts[_BETS + b] = now + 1
    return losses.size
