"""Compiled loop of `DriftAlarm`: ranks of losses, and bets on them."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.estimators.alarm import SHAPES
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

#: Of every bet, a and b, b as the number of roots of 1 - p^a that are multiplied.
_BETS, _POWERS = len(SHAPES), np.array([a for a, _ in SHAPES])
_FACTORS, _ROOTS = np.array([a * b for a, b in SHAPES]), np.array([2 * b - 2 for _, b in SHAPES])
#: Random numbers stay so far from 0 and 1, of which bets have no price.
_LEAST = 1e-12


@jit(allocates=False)
def _place(values, size, loss, after):
    """Return how many sorted numbers are smaller than a loss, or, with `after`, not larger."""
    first, left = size - size, size
    while left > 0:
        half = left >> 1
        here = values[first + half]
        below = here < loss or (after and here == loss)
        first, left = (first + half + 1, left - half - 1) if below else (first, half)
    return first


@jit(allocates=False)
def _end(values, size, loss, first):
    """Return the end of the numbers that equal a loss, which begin at `first`."""
    # No literal True: what is called with it would be compiled for that.
    return (
        _place(values, size, loss, size >= 0) if first < size and values[first] == loss else first
    )


@jit(allocates=False)
def _rank(loss, draw, most, known, recent, sizes):
    """Return which part of the known losses is larger, ties broken at random; know this one, too."""
    if sizes[0] + sizes[1] == most:
        sizes[0] = sizes[1] = 0
    many, few = sizes[0], sizes[1]
    before, own = _place(known, many, loss, many < 0), _place(recent, few, loss, many < 0)
    total, below, place = many + few, before + own, _end(recent, few, loss, own)
    equal = place + _end(known, many, loss, before) - below
    for j in range(few, place, -1):
        recent[j] = recent[j - 1]
    recent[place], few = loss, few + 1
    if few == recent.size:  # merge, from the end
        many += few
        for j in range(many - 1, -1, -1):
            if few == 0:
                break
            other = j - few
            if other >= 0 and known[other] > recent[few - 1]:
                known[j] = known[other]
            else:
                few -= 1
                known[j] = recent[few]
    sizes[0], sizes[1] = many, few
    draw = draw if draw > _LEAST else _LEAST
    draw = draw if draw < 1.0 - _LEAST else 1.0 - _LEAST
    return (total - below - equal + draw * (equal + 1.0)) / (total + 1.0)


@jit(allocates=False)
def _bet(p, t, side, evidence, starts):
    """Let all bets of one side see the next number; return the mean of their sums."""
    total, log = 0.0, math.log(p)
    sums, runs = evidence[2 * side], evidence[2 * side + 1]
    for k in range(_BETS):
        power = math.exp(_POWERS[k] * log)
        factor, root = _FACTORS[k] * power / p, math.sqrt(1.0 - power)
        for _ in range(_ROOTS[k]):
            factor *= root
        sums[k] = (1.0 + sums[k]) * factor
        if runs[k] <= 1.0:
            runs[k], starts[side * _BETS + k] = 1.0, t
        runs[k] *= factor
        total += sums[k]
    return total / _BETS


@jit(
    *(NUMBERS, NUMBERS, WHOLE, NUMBER, ANSWER, WHOLE),
    *(NEW_NUMBERS, NEW_NUMBERS, NEW_PLACES, NEW_TABLE, NEW_PLACES),
    allocates=False,
)
def follow(losses, draws, t, rate, two_sided, most, known, recent, sizes, evidence, starts):
    """Take losses, the first of them as update t; infinite ones are left out.

    Return the number of losses done; below 0 if the alarm sounded at the last of them.
    """
    for k in range(losses.size):
        loss, now = losses[k] + 0.0, t + k  # -0.0 becomes 0.0
        if loss == math.inf:
            continue
        p = _rank(loss, draws[now % draws.size], most, known, recent, sizes)
        grown, fallen = (
            _bet(p, now, k - k, evidence, starts),
            _bet(1.0 - p, now, k - k + 1, evidence, starts),
        )
        if (0.5 * (grown + fallen) if two_sided else grown) * rate >= 1.0:
            return -k - 1
        if not two_sided and fallen * rate >= 1.0:  # what came before the fall is forgotten
            sizes[0] = sizes[1] = 0
            for b in range(_BETS):
                evidence[2, b] = evidence[3, b] = 0.0
                starts[_BETS + b] = now + 1
    return losses.size
