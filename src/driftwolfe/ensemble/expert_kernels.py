"""Compiled loops of the ensembles."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.ensemble.weights import ROUNDING
from driftwolfe.points.compiling import (
    ANSWER,
    ANSWERS,
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    fast_jit,
    jit,
)


@jit(NUMBERS, NUMBERS, NEW_NUMBERS, allocates=False)
def weights(regrets, movements, found):
    """Fill in the weights, of sum 1."""
    n, top, total = regrets.size, 0.0, 0.0
    for i in range(n):
        upper = regrets[i] + 1.0 if regrets[i] > -1.0 else 0.0
        found[i] = upper * upper / (3.0 * movements[i] + 3.0)  # log Phi(R + 1, C + 1)
        top = found[i] if found[i] > top else top
    for i in range(n):
        # Phi(R+1) - Phi(R-1) is Phi(R+1) (1 - exp(-gap)), and (R+1)^2 - (R-1)^2 = 4R exactly.
        beyond = regrets[i] > 1.0
        gap = 4.0 * regrets[i] / (3.0 * movements[i] + 3.0) if beyond else found[i]
        found[i] = -math.exp(found[i] - top) * math.expm1(-gap)
        total += found[i]
    for i in range(n):
        found[i] = found[i] / total if total > 0.0 else 1.0 / n


@jit(NEW_NUMBERS, NEW_NUMBERS, NUMBER, NUMBERS, NUMBER, ANSWER, allocates=False)
def update(regrets, movements, learner, losses, scale, learned):
    """Update R and C; return B, which grows to the largest difference if learned, and the latter.

    A difference is added in the old unit, cut to it, before R and C take the new one: the proof needs it.
    """
    largest, size, shrink = 0.0, abs(learner), 1.0
    for i in range(losses.size):
        gap, loss = abs(learner - losses[i]), abs(losses[i])
        largest, size = gap if gap > largest else largest, loss if loss > size else size
    if learned and largest > scale:
        if largest <= ROUNDING * size:
            return scale, 0.0
        shrink, scale = scale / largest if scale > 0.0 else 1.0, largest
    for i in range(losses.size):
        ahead = (learner - losses[i]) / scale if scale > 0.0 else 0.0
        regrets[i] = (regrets[i] + ahead) * shrink
        movements[i] = (movements[i] + abs(ahead)) * shrink
    return scale, largest


@jit()
def _kept(behind, a):
    """Return the weight of an expert that is so far behind, 1 for the best, at the rate 1/a."""
    if a == 0.0:
        return 1.0 if behind == 0.0 else 0.0
    return math.exp(-min(behind, 700.0 * a) / a)  # no overflow


@jit(NUMBERS, NUMBERS, NUMBER)
def exponential_weights(totals, hint, a):
    """Return the weights of total losses and a hint at the rate 1/a, of sum 1."""
    found, total = totals + hint, 0.0
    least = found.min()
    for i in range(found.size):
        found[i] = _kept(found[i] - least, a)
        total += found[i]
    return found / total


@jit(NUMBERS, NUMBERS, NUMBERS, NUMBER)
def optimistic_update(totals, hint, losses, a):
    """Return the new total losses, less the smallest of them, and the new a."""
    low = losses.min()
    rounding = ROUNDING * max(abs(low), abs(losses.max()))
    ahead = losses - low
    found, weights = totals + ahead, exponential_weights(totals, hint, a)
    least, played, before, after = found.min(), 0.0, 0.0, 0.0
    for i in range(found.size):
        found[i] = found[i] - least if found[i] - least > rounding else 0.0
        played += weights[i] * ahead[i]
        before += _kept(totals[i], a)
        after += _kept(found[i], a)
    gap = played - least
    if a > 0.0:
        gap -= a * math.log(before / after)
    if found.size > 1 and gap > rounding:
        a += gap / math.log(found.size)
    return found, a


@jit(TABLE, TABLE, NUMBERS, NUMBER, NUMBER, NUMBER)
def costs_of_hints(gradients, expected, steps, old, new, diameter):
    """Return what gradients cost that were not those expected, with the scale of steps before and after."""
    costs = np.empty(steps.size)
    for i in range(steps.size):
        error, square = 0.0, 0.0
        for j in range(gradients.shape[1]):
            error += (gradients[i, j] - expected[i, j]) ** 2
            square += expected[i, j] * expected[i, j]
        # Where nothing was expected, a step starts where the last ended, and may be the new one.
        scale = old if square > 0.0 else new
        costs[i] = min(0.5 * scale * error * steps[i], diameter * math.sqrt(error))
    return costs


@jit(TABLE, TABLE, TABLE)
def expect_again(agreements, lasts, gradients):
    """Return the products of gradients with those before and of these, and the best fraction of gradients."""
    found, expected = agreements.copy(), gradients.copy()
    for i in range(len(found)):
        for j in range(lasts.shape[1]):
            found[i, 0] += lasts[i, j] * gradients[i, j]
            found[i, 1] += lasts[i, j] * lasts[i, j]
        if found[i, 1] > 0.0:  # else nothing is known yet
            fraction = min(1.0, max(0.0, found[i, 0] / found[i, 1]))
            for j in range(lasts.shape[1]):
                expected[i, j] *= fraction
    return found, expected


@fast_jit(TABLE, allocates=False)
def largest_norm(gradients):
    """Return the largest Euclidean norm of a row; what is not finite is not lost."""
    largest = 0.0
    for i in range(gradients.shape[0]):
        squared = 0.0
        for j in range(gradients.shape[1]):
            squared += gradients[i, j] * gradients[i, j]
        if not squared <= largest:
            largest = squared
    return math.sqrt(largest)


@fast_jit(*[TABLE] * 3, *[PLACES] * 3, NUMBERS, NEW_PLACES, NEW_TABLE, allocates=False)
def block_ends(y, sums, gradients, clocks, blocks, lifetimes, etas, due, targets):
    """Fill in the experts that are due and where their steps end; return how many, and the sum of all entries."""
    number, total = 0, 0.0
    for i in range(y.shape[0]):
        if (clocks[i] + 1) % blocks[i] == 0 and clocks[i] + 1 != lifetimes[i]:
            own, eta = i if gradients.shape[0] > 1 else 0, etas[i]
            for j in range(y.shape[1]):
                target = y[i, j] - eta * (sums[i, j] + gradients[own, j])
                targets[number, j] = target
                total += target
            due[number] = i
            number += 1
    return number, total


@jit(*[NEW_TABLE] * 3, TABLE, NEW_PLACES, PLACES, TABLE, TABLE, ANSWERS, allocates=False)
def close_round(x, y, sums, gradients, clocks, due, new_x, new_y, lazy):
    """Add the gradients, let a round pass, and move the experts that are due, which are in rising order."""
    moved = 0
    for i in range(x.shape[0]):
        clocks[i] += 1
        moves = moved < due.size and due[moved] == i
        if not moves or lazy[i]:
            own = i if gradients.shape[0] > 1 else 0
            for j in range(x.shape[1]):
                sums[i, j] += gradients[own, j]
        if moves:
            for j in range(x.shape[1]):
                x[i, j] = new_x[moved, j]
            if not lazy[i]:
                for j in range(x.shape[1]):
                    y[i, j] = new_y[moved, j]
                    sums[i, j] = 0.0
            moved += 1
