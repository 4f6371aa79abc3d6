"""Compiled loops of the recommender."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    WHOLE,
    fast_jit,
    jit,
)

#: Rate of the weights, per unit of loss; the share is 1/t.
RATE = 0.8
#: The unit of errors, over their running mean.
UNIT = 1.33
#: The running mean of errors forgets what is longer ago than about so many ratings.
MEMORY_OF_ERRORS = 1 << 14
#: The mean that restarted experts begin with looks back about a hundred ratings.
RECENT = 0.01
#: Errors beyond so many units count as so many, whatever the loss.
LARGEST = 1000.0
#: Mean errors up to this share of the largest rating are rounding errors: nothing is learned from them.
ROUNDING = 1e-12
#: Errors up to so many units have slope 0 under the absolute loss.
FLAT = 1e-9
#: Share of the radius that steps within a block leave free.
MARGIN = 1e-9

ABSOLUTE, HUBER, SQUARED = 0, 1, 2


class Side(NamedTuple):
    """What the experts know of users, or of items: one row for each.

    Attributes
    ----------
    biases, squares
        A column for each expert: the bias, and the sum of squared gradients that scales its steps.
    rows
        The factors of the interactions, those of each low-rank expert side by side.
    metric
        Weight of the row in the weighted trace norm.
    touched
        When the row was last rated; -1 for never. Experts that have restarted since know nothing
        of it.
    counts
        Ratings of the row so far.
    """

    biases: Any
    squares: Any
    rows: Any
    metric: Any
    touched: Any
    counts: Any


class Slots(NamedTuple):
    """The experts.

    Attributes
    ----------
    means, squares
        The global mean, and the sum of squared gradients that scales its steps.
    weights
        They sum to 1.
    steps
        Step sizes of mean and biases, in units of error.
    starts
        When each started, or was restarted last.
    levels
        Restart every 2^level ratings; -1: never.
    low
        Which of the low-rank experts it is; -1: none.
    """

    means: Any
    squares: Any
    weights: Any
    steps: Any
    starts: Any
    levels: Any
    low: Any


class Interactions(NamedTuple):
    r"""The low-rank experts.

    Attributes
    ----------
    radii
        No interaction has a larger weighted trace norm.
    norms
        :math:`\frac12 \sum_k (\|p_k\|^2/d_k + d_k)`, p_k the columns of the users' factors: never
        below the trace norm, and cheap to keep up to date.
    spreads
        The d_k, a row for each expert.
    """

    radii: Any
    norms: Any
    spreads: Any


class Scale(NamedTuple):
    """What all experts share.

    Attributes
    ----------
    clock
        One number: ratings learned so far.
    numbers
        The running mean of errors, the lowest and the highest rating so far, the recent mean.
    """

    clock: Any
    numbers: Any


def _group(types: tuple[Any, ...], kind: type) -> Any:
    return numba.types.NamedTuple(types, kind)  # type: ignore[no-untyped-call]


_SIDE = _group((NEW_TABLE, NEW_TABLE, NEW_TABLE, NEW_NUMBERS, NEW_PLACES, NEW_PLACES), Side)
_SLOTS = _group(
    (NEW_NUMBERS, NEW_NUMBERS, NEW_NUMBERS, NEW_NUMBERS, NEW_PLACES, NEW_PLACES, NEW_PLACES), Slots
)
_LOW = _group((NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE), Interactions)
_SCALE = _group((NEW_PLACES, NEW_NUMBERS), Scale)


@jit(NUMBER, NUMBER)
def ramp(value: float, width: float) -> float:
    """Return 0 up to `width`, 1 from twice the width on, and rise linearly in between.

    It stands where a comparison would make the result jump: noise well below `width` in a value that
    should be 0 changes nothing, and elsewhere a small change of the value makes a small change.
    """
    if value <= width:
        return 0.0
    if value >= 2.0 * width:
        return 1.0
    return value / width - 1.0


@jit(NUMBER, WHOLE)
def gradient(error: float, loss: int) -> float:
    """Return the derivative of the loss at an error in units.

    That of the absolute loss is 0 for errors of rounding.
    """
    if loss == ABSOLUTE:
        return math.copysign(ramp(abs(error), FLAT), error)
    limit = 1.0 if loss == HUBER else LARGEST
    return min(max(error, -limit), limit)


@jit(NUMBER, WHOLE)
def price(error: float, loss: int) -> float:
    """Return the loss of an error in units."""
    size = min(abs(error), LARGEST)
    if loss == ABSOLUTE:
        return size
    if loss == HUBER and size > 1.0:
        return size - 0.5
    return 0.5 * size * size


@fast_jit(WHOLE, WHOLE, _SIDE, _SIDE, _SLOTS, WHOLE, NEW_NUMBERS)
def ask(u: int, i: int, users: Side, items: Side, slots: Slots, rank: int, answers: Any) -> None:
    """Write down what each expert predicts for user u and item i; -1 is one never seen."""
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
def combine(answers: Any, weights: Any, low: float, high: float) -> float:
    """Return the weighted mean of the answers, after they are clipped to the range of ratings."""
    total = 0.0
    for e in range(answers.size):
        answers[e] = min(max(answers[e], low), high)
        total += weights[e] * answers[e]
    return min(max(total, low), high)


@jit(NEW_NUMBERS, NUMBERS, NUMBER, NUMBER, WHOLE, NUMBER, NUMBER)
def weigh(
    weights: Any, answers: Any, rating: float, unit: float, loss: int, rate: float, share: float
) -> None:
    """Exponential weights for the losses of this round, then everyone gets a share."""
    least = math.inf
    for e in range(weights.size):
        least = min(least, price((answers[e] - rating) / unit, loss))
    total = 0.0
    for e in range(weights.size):
        weights[e] *= math.exp(rate * (least - price((answers[e] - rating) / unit, loss)))
        total += weights[e]
    for e in range(weights.size):
        weights[e] = (1.0 - share) * weights[e] / total + share / weights.size


@jit(_SIDE, WHOLE, WHOLE, NUMBER, NUMBER, NUMBER)
def step_bias(side: Side, row: int, e: int, slope: float, step: float, limit: float) -> None:
    """AdaGrad: the step falls with the root of the sum of squared gradients."""
    side.squares[row, e] += slope * slope
    moved = side.biases[row, e] - step * slope / math.sqrt(1.0 + side.squares[row, e])
    side.biases[row, e] = min(max(moved, -limit), limit)


@fast_jit(WHOLE, WHOLE, WHOLE, NUMBER, _SIDE, _SIDE, _LOW)
def step_row(
    k: int, u: int, i: int, step: float, users: Side, items: Side, low: Interactions
) -> None:
    """Step along the item's factors, if the interactions then surely stay in their ball.

    Where they only just would, the step is shortened: the norm is convex along it.
    """
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
    room = low.radii[k] - (low.norms[k] + slope + curvature)
    part = ramp(room, MARGIN * low.radii[k])
    if part > 0.0 and math.isfinite(room):
        low.norms[k] += part * (slope + part * curvature)
        for j in range(k * rank, (k + 1) * rank):
            users.rows[u, j] += part * scaled * items.rows[i, j]


@jit(_SIDE, WHOLE, _SLOTS, WHOLE, WHOLE)
def forget(side: Side, row: int, slots: Slots, rank: int, clock: int) -> None:
    """Clear what restarted experts knew of a row, and count its rating: now they know it."""
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
def restart(slots: Slots, low: Interactions, clock: int, mean: float) -> None:
    """Restart the experts whose interval ends here; they begin with the recent mean alone."""
    for e in range(slots.means.size):
        level = slots.levels[e]
        if level >= 0 and clock % (1 << level) == 0:
            slots.starts[e], slots.means[e], slots.squares[e] = clock, mean, 0.0
            k = slots.low[e]
            if k >= 0:
                low.norms[k] = 0.5 * low.spreads[k].sum()


@jit(NUMBER, NUMBER, _SCALE)
def note(rating: float, error: float, scale: Scale) -> None:
    """Count the rating, and note its error, the range and the recent mean."""
    t, numbers = scale.clock[0], scale.numbers
    numbers[0] += (error - numbers[0]) * max(1.0 / (t + 1.0), 1.0 / MEMORY_OF_ERRORS)
    numbers[1], numbers[2] = min(numbers[1], rating), max(numbers[2], rating)
    numbers[3] += (rating - numbers[3]) * RECENT
    scale.clock[0] = t + 1


@jit(NUMBER, _SLOTS, _SCALE)
def begin(rating: float, slots: Slots, scale: Scale) -> None:
    """Start all means at the first rating."""
    scale.numbers[1:] = rating
    slots.means[:] = rating


@jit(
    PLACES,
    PLACES,
    NUMBERS,
    WHOLE,
    NUMBER,
    _SIDE,
    _SIDE,
    _SLOTS,
    _LOW,
    _SCALE,
    NEW_NUMBERS,
    NEW_TABLE,
)
def learn(
    rows: Any,
    cols: Any,
    ratings: Any,
    loss: int,
    rate: float,
    users: Side,
    items: Side,
    slots: Slots,
    low: Interactions,
    scale: Scale,
    predictions: Any,
    steps: Any,
) -> None:
    """Learn ratings one by one.

    `predictions` takes down what was predicted just before, `steps` those of the low-rank experts.
    """
    count, rank = slots.means.size, low.spreads.shape[1]
    answers, clipped = np.empty(count), np.empty(count)
    numbers = scale.numbers
    for n in range(rows.size):
        u, i, rating, t = rows[n], cols[n], ratings[n], scale.clock[0]
        forget(users, u, slots, rank, t)
        forget(items, i, slots, 0, t)
        if t == 0:
            begin(rating, slots, scale)
        ask(u, i, users, items, slots, rank, answers)
        clipped[:] = answers
        predicted = combine(clipped, slots.weights, numbers[1], numbers[2])
        predictions[n] = predicted if t > 0 else 0.0
        error = abs(predicted - rating)
        note(rating, error, scale)
        unit = UNIT * numbers[0]
        trust = ramp(unit, ROUNDING * max(abs(numbers[1]), abs(numbers[2])))
        if trust > 0.0:
            weigh(slots.weights, clipped, rating, unit, loss, trust * RATE, trust / (t + 2.0))
            limit = numbers[2] - numbers[1]
            for e in range(count):
                slope = trust * gradient((answers[e] - rating) / unit, loss)
                step = slots.steps[e] * unit
                slots.squares[e] += slope * slope
                moved = slots.means[e] - step * slope / math.sqrt(1.0 + slots.squares[e])
                slots.means[e] = min(max(moved, numbers[1]), numbers[2])
                step_bias(users, u, e, slope, step, limit)
                step_bias(items, i, e, slope, step, limit)
                k = slots.low[e]
                if k >= 0:
                    steps[n, k] = -rate * unit * slope
                    step_row(k, u, i, steps[n, k], users, items, low)
        else:
            steps[n, :] = 0.0
        restart(slots, low, scale.clock[0], numbers[3])


@jit(PLACES, PLACES, _SIDE, _SIDE, _SLOTS, _LOW, _SCALE, NEW_NUMBERS, NEW_TABLE)
def predict(
    rows: Any,
    cols: Any,
    users: Side,
    items: Side,
    slots: Slots,
    low: Interactions,
    scale: Scale,
    predictions: Any,
    answers: Any,
) -> None:
    """Predict ratings, all experts together and each alone; nothing changes."""
    for n in range(rows.size):
        ask(rows[n], cols[n], users, items, slots, low.spreads.shape[1], answers[n])
        predictions[n] = combine(answers[n], slots.weights, scale.numbers[1], scale.numbers[2])


@jit(PLACES, WHOLE, NEW_PLACES, NEW_PLACES)
def by_row(rows: Any, count: int, pointers: Any, order: Any) -> None:
    """Sort entries by row, in the order they came: where each row begins, and which entries it has."""
    pointers[:] = 0
    for n in range(rows.size):
        pointers[rows[n] + 1] += 1
    for row in range(count):
        pointers[row + 1] += pointers[row]
    place = pointers[:-1].copy()
    for n in range(rows.size):
        order[place[rows[n]]] = n
        place[rows[n]] += 1
