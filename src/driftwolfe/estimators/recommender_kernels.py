"""Compiled loops of the recommender."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.np.numpy_support import carray

from driftwolfe.estimators.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
    numbers_at,
    places_at,
)

#: Rate of the weights, per unit of loss; the share is 1/t.
RATE = 0.8
#: The unit of errors, over their running mean.
UNIT = 1.33
#: The running mean of errors looks back about so many ratings, that of recent ratings a hundred.
MEMORY_OF_ERRORS, RECENT = 1 << 14, 0.01
#: Larger errors, in units, count as this.
LARGEST = 1000.0
#: Mean errors up to this share of the largest rating are rounding errors: nothing is learned from them.
ROUNDING = 1e-12
#: Errors up to so many units have slope 0 under the absolute loss.
FLAT = 1e-9
#: Share of the radius that steps within a block leave free.
MARGIN = 1e-9

ABSOLUTE, HUBER, SQUARED = 0, 1, 2


class Side(NamedTuple):
    """What the experts have learned of users, or of items: one row for each."""

    biases: Any  # a column for each expert
    squares: Any  # sums of squared gradients, which scale the steps of biases
    rows: Any  # factors of the interactions, those of each low-rank expert side by side
    metric: Any  # weights in the weighted trace norm
    touched: Any  # when last rated, -1 for never; experts restarted since know nothing of the row
    counts: Any  # ratings so far


class Slots(NamedTuple):
    """The experts."""

    means: Any  # the global mean of each
    squares: Any  # sums of squared gradients, which scale the steps of means
    weights: Any  # of sum 1
    steps: Any  # step sizes of mean and biases, in units of error
    starts: Any  # when each was started or restarted last
    levels: Any  # restarted every 2^level ratings; -1: never
    low: Any  # number among the low-rank experts; -1: none


class Interactions(NamedTuple):
    """The low-rank experts."""

    radii: Any  # bounds on the weighted trace norms
    # Half the sum of |p_k|^2/d_k + d_k, with p_k the columns of the users' factors: never below the
    # trace norm, and cheap to keep up to date.
    norms: Any
    spreads: Any  # a row of d_k for each expert


class Scale(NamedTuple):
    """What all experts share."""

    clock: Any  # one number: ratings learned so far
    numbers: Any  # running mean of errors, lowest and highest rating, recent mean


_group: Any = numba.types.NamedTuple
_SIDE = _group((NEW_TABLE,) * 3 + (NEW_NUMBERS, NEW_PLACES, NEW_PLACES), Side)
_SLOTS = _group((NEW_NUMBERS,) * 4 + (NEW_PLACES,) * 3, Slots)
_LOW = _group((NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE), Interactions)
_SCALE = _group((NEW_PLACES, NEW_NUMBERS), Scale)
_TABLES = (_SIDE, _SIDE, _SLOTS, _LOW, _SCALE)


@jit(NUMBER, NUMBER)
def ramp(value, width):
    """As `points.rounding.ramp`: 0 up to `width`, 1 from twice the width on, linear in between."""
    if value <= width:
        return 0.0
    if value >= 2.0 * width:
        return 1.0
    return value / width - 1.0


@jit(NUMBER, WHOLE)
def gradient(error, loss):
    """Return the derivative of the loss at an error in units."""
    if loss == ABSOLUTE:
        return math.copysign(ramp(abs(error), FLAT), error)
    limit = 1.0 if loss == HUBER else LARGEST
    return min(max(error, -limit), limit)


@jit(NUMBER, WHOLE)
def loss_value(error, loss):
    """Return the loss of an error in units."""
    size = min(abs(error), LARGEST)
    if loss == ABSOLUTE:
        return size
    if loss == HUBER and size > 1.0:
        return size - 0.5
    return 0.5 * size * size


@fast_jit(WHOLE, WHOLE, WHOLE, _SIDE, _SIDE, _SLOTS, NEW_NUMBERS)
def predict_each(u, i, rank, users, items, slots, answers):
    """Compute what each expert predicts for user u and item i; -1 is a new one."""
    for e in range(answers.size):
        start, k = slots.starts[e], slots.low[e]
        answer = slots.means[e]
        if u >= 0 and users.touched[u] >= start:
            answer += users.biases[u, e]
            if k >= 0 and i >= 0:
                for j in range(k * rank, (k + 1) * rank):
                    answer += users.rows[u, j] * items.rows[i, j]
        if i >= 0 and items.touched[i] >= start:
            answer += items.biases[i, e]
        answers[e] = answer


@jit(NEW_NUMBERS, NUMBERS, NUMBER, NUMBER)
def combine(answers, weights, low, high):
    """Return the weighted mean of the answers, after they are clipped to the range of ratings."""
    total = 0.0
    for e in range(answers.size):
        answers[e] = min(max(answers[e], low), high)
        total += weights[e] * answers[e]
    return min(max(total, low), high)


@jit(NEW_NUMBERS, NEW_NUMBERS, WHOLE, *[NUMBER] * 4)
def descend(values, squares, e, slope, step, low, high):
    """AdaGrad: the step falls with the root of the sum of squared gradients."""
    squares[e] += slope * slope
    moved = values[e] - step * slope / math.sqrt(1.0 + squares[e])
    values[e] = min(max(moved, low), high)


@fast_jit(WHOLE, WHOLE, WHOLE, NUMBER, _SIDE, _SIDE, _LOW)
def step_row(k, u, i, step, users, items, low):
    """Step along the item's factors, if the interactions then surely stay in their ball."""
    rank = low.spreads.shape[1]
    narrowest = low.radii[k]
    for j in range(rank):
        narrowest = min(narrowest, low.spreads[k, j])
    if narrowest <= 0.0:  # the ball is a point: before the first error
        return
    metric = users.metric[u] * users.metric[u]
    scaled, slope, curvature = step / metric, 0.0, 0.0
    for j in range(rank):
        move = scaled * items.rows[i, k * rank + j]
        here = users.rows[u, k * rank + j]
        pull = metric * move / low.spreads[k, j]
        slope += pull * here
        curvature += 0.5 * pull * move
    # A step that ends close to the sphere is shortened: the norm is convex along it.
    room = low.radii[k] - (low.norms[k] + slope + curvature)
    part = ramp(room, MARGIN * low.radii[k])
    if part > 0.0 and math.isfinite(room):
        low.norms[k] += part * (slope + part * curvature)
        for j in range(k * rank, (k + 1) * rank):
            users.rows[u, j] += part * scaled * items.rows[i, j]


@jit(_SIDE, WHOLE, _SLOTS, WHOLE, WHOLE)
def forget(side, row, slots, rank, clock):
    """Clear what experts that restarted since had learned of a row, and count its rating."""
    touched = side.touched[row]
    for e in range(slots.means.size):
        if touched < slots.starts[e]:
            side.biases[row, e] = 0.0
            side.squares[row, e] = 0.0
            if rank > 0 and slots.low[e] >= 0:
                side.rows[row, slots.low[e] * rank : (slots.low[e] + 1) * rank] = 0.0
    side.touched[row] = clock
    side.counts[row] += 1


@jit(_SLOTS, _LOW, WHOLE, NUMBER)
def restart(slots, low, clock, mean):
    """Restart the experts whose interval ends here; they begin with the recent mean alone."""
    for e in range(slots.means.size):
        level = slots.levels[e]
        if level >= 0 and clock % (1 << level) == 0:
            slots.starts[e], slots.means[e], slots.squares[e] = clock, mean, 0.0
            k = slots.low[e]
            if k >= 0:
                low.norms[k] = 0.5 * low.spreads[k].sum()


@jit(WHOLE, WHOLE, NUMBER, NUMBER, WHOLE, NUMBER, *_TABLES, NEW_NUMBERS, NEW_TABLE)
def learn_rating(u, i, rating, part, loss, rate, users, items, slots, low, scale, steps, work):
    """Learn a rating of weight `part`; return the prediction before, fill in low-rank experts' steps."""
    experts, rank, numbers, t = (
        slots.means.size,
        low.spreads.shape[1],
        scale.numbers,
        scale.clock[0],
    )
    answers, clipped, gains = work[0], work[1], work[2]
    forget(users, u, slots, rank, t)
    forget(items, i, slots, 0, t)
    if t == 0:  # all means start at the first rating
        numbers[1:] = rating
        slots.means[:] = rating
    predict_each(u, i, rank, users, items, slots, answers)
    clipped[:] = answers
    predicted = combine(clipped, slots.weights, numbers[1], numbers[2])
    error = abs(predicted - rating)
    numbers[0] += part * (error - numbers[0]) * max(1.0 / (t + 1.0), 1.0 / MEMORY_OF_ERRORS)
    numbers[1], numbers[2] = min(numbers[1], rating), max(numbers[2], rating)
    numbers[3] += part * (rating - numbers[3]) * RECENT
    scale.clock[0] = t + 1
    unit = UNIT * numbers[0]
    trust = part * ramp(unit, ROUNDING * max(abs(numbers[1]), abs(numbers[2])))
    if trust > 0.0:
        for e in range(experts):
            gains[e] = -loss_value((clipped[e] - rating) / unit, loss)
        reweigh(slots.weights, gains, trust * RATE, trust / (t + 2.0))
        limit = numbers[2] - numbers[1]
        for e in range(experts):
            slope = trust * gradient((answers[e] - rating) / unit, loss)
            step = slots.steps[e] * unit
            descend(slots.means, slots.squares, e, slope, step, numbers[1], numbers[2])
            descend(users.biases[u], users.squares[u], e, slope, step, -limit, limit)
            descend(items.biases[i], items.squares[i], e, slope, step, -limit, limit)
            k = slots.low[e]
            if k >= 0:
                steps[k] = -rate * unit * slope
                step_row(k, u, i, steps[k], users, items, low)
    else:
        steps[:] = 0.0
    restart(slots, low, t + 1, numbers[3])
    return predicted if t > 0 else 0.0


@jit(PLACES, PLACES, NUMBERS, NUMBERS, WHOLE, NUMBER, *_TABLES, NEW_NUMBERS, NEW_TABLE)
def learn(rows, cols, ratings, parts, loss, rate, users, items, slots, low, scale, told, steps):
    """Learn ratings one by one; without `parts` all have weight 1. Fill in predictions and steps."""
    work = np.empty((3, slots.means.size))
    for n in range(rows.size):
        part = parts[n] if parts.size > 0 else 1.0
        own, u, i = steps[n], rows[n], cols[n]
        told[n] = learn_rating(
            u, i, ratings[n], part, loss, rate, users, items, slots, low, scale, own, work
        )


@jit(PLACES, PLACES, *_TABLES, NEW_NUMBERS, NEW_TABLE)
def predict(rows, cols, users, items, slots, low, scale, predictions, answers):
    """Predict ratings, all experts together and each alone; nothing changes."""
    rank = low.spreads.shape[1]
    for n in range(rows.size):
        predict_each(rows[n], cols[n], rank, users, items, slots, answers[n])
        predictions[n] = combine(answers[n], slots.weights, scale.numbers[1], scale.numbers[2])


@jit()
def _side_at(rows, experts, factors, at):
    shape = (rows, experts)
    return Side(
        carray(numbers_at(at[0]), shape),
        carray(numbers_at(at[1]), shape),
        carray(numbers_at(at[2]), (rows, factors)),
        carray(numbers_at(at[3]), (rows,)),
        carray(places_at(at[4]), (rows,)),
        carray(places_at(at[5]), (rows,)),
    )


@jit()
def _tables_at(at):
    """Return the tables at these addresses, which follow their sizes: see `RatingPool._addresses`."""
    users, items, experts, low, rank, steps = at[0], at[1], at[2], at[3], at[4], at[5]
    own, at = (experts,), at[6:]
    return (
        _side_at(users, experts, low * rank, at[0:6]),
        _side_at(items, experts, low * rank, at[6:12]),
        Slots(
            carray(numbers_at(at[12]), own),
            carray(numbers_at(at[13]), own),
            carray(numbers_at(at[14]), own),
            carray(numbers_at(at[15]), own),
            carray(places_at(at[16]), own),
            carray(places_at(at[17]), own),
            carray(places_at(at[18]), own),
        ),
        Interactions(
            carray(numbers_at(at[19]), (low,)),
            carray(numbers_at(at[20]), (low,)),
            carray(numbers_at(at[21]), (low, rank)),
        ),
        Scale(carray(places_at(at[22]), (1,)), carray(numbers_at(at[23]), (4,))),
        carray(numbers_at(at[24]), (steps, low)),
    )


@jit(PLACES, WHOLE, WHOLE, NUMBER, WHOLE, NUMBER, WHOLE)
def learn_one(at, u, i, rating, loss, rate, n):
    """Learn one rating into tables at addresses; its steps are row n. Return the prediction before."""
    users, items, slots, low, scale, steps = _tables_at(at)
    work = np.empty((3, slots.means.size))
    return learn_rating(
        u, i, rating, 1.0, loss, rate, users, items, slots, low, scale, steps[n], work
    )


@jit(PLACES, WHOLE, WHOLE)
def predict_one(at, u, i):
    """Predict one rating from tables at addresses; nothing changes."""
    users, items, slots, low, scale, _ = _tables_at(at)
    answers, rank = np.empty(slots.means.size), low.spreads.shape[1]
    predict_each(u, i, rank, users, items, slots, answers)
    return combine(answers, slots.weights, scale.numbers[1], scale.numbers[2])


@jit(TABLE, PLACES, PLACES, PLACES, WHOLE, NUMBERS, NUMBERS, NEW_PLACES, NEW_PLACES, NEW_TABLE)
def sort_steps(steps, rows, cols, starts, first, users, items, ends, places, sorted_steps):
    """Sort steps by user, divided by the weights of both; steps before a start count as 0.

    The entries of row u end at `ends[u]`; `sorted_steps` has a row for each low-rank expert.
    """
    ends[:] = 0
    for n in range(rows.size):
        ends[rows[n]] += 1
    total = 0
    for u in range(ends.size):
        total += ends[u]
        ends[u] = total - ends[u]  # where the row begins
    for n in range(rows.size):
        u, i = rows[n], cols[n]
        place, scale = ends[u], 1.0 / (users[u] * items[i])
        ends[u], places[place] = place + 1, i
        for k in range(starts.size):
            known = first + n >= starts[k]
            sorted_steps[k, place] = steps[n, k] * scale if known else 0.0
