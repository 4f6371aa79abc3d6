"""Compiled loop of `DriftAlarm`: ranks of losses, and bets on them."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.estimators.alarm import RECENT, SHAPES
from driftwolfe.points.compiling import NEW_NUMBERS, NEW_PLACES, NUMBER, NUMBERS, WHOLE, jit

#: Of every bet a, a b, and twice b - 1: so many roots of 1 - p^a are multiplied.
_BETS, _POWERS = len(SHAPES), np.array([a for a, _ in SHAPES])
_FACTORS = np.array([a * b for a, b in SHAPES])
_ROOTS = np.array([int(2 * b) - 2 for _, b in SHAPES])
#: Ranks stay so far from 0 and 1, of which bets have no price.
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
    *(NUMBERS, NUMBERS, WHOLE, NUMBER, WHOLE, WHOLE),
    *(NEW_NUMBERS, NEW_PLACES, NEW_NUMBERS, NEW_PLACES),
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
        rank = (larger + draws[now % draws.size] * equal) / (many + few + 1.0)
        rank = _LEAST if rank < _LEAST else 1.0 - _LEAST if rank > 1.0 - _LEAST else rank
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
                place, run = 2 * side * _BETS + b, (2 * side + 1) * _BETS + b
                power = math.exp(_POWERS[b] * log)
                factor, root = _FACTORS[b] * power / p, math.sqrt(1.0 - power)
                for _ in range(_ROOTS[b]):
                    factor *= root
                if evidence[run] <= 1.0:
                    evidence[run], starts[side * _BETS + b] = 1.0, now
                evidence[run] *= factor
                evidence[place] = (1.0 + evidence[place]) * factor
                total += evidence[place]
            fallen = total / _BETS
        if (0.5 * (grown + fallen) if two_sided else grown) * rate >= 1.0:
            return -k - 1
        if not two_sided and fallen * rate >= 1.0:  # what came before the fall is forgotten
            sizes[0] = sizes[1] = 0
            for b in range(_BETS):
                evidence[2 * _BETS + b] = evidence[3 * _BETS + b] = 0.0
                starts[_BETS + b] = now + 1
    return losses.size
