"""Compiled loops of `MatrixCompleter`.

They find everything in a list of numbers, `at`: experts, their rank, how many have one, the loss; then where
tables lie: those of users, items, `Slots`, `Interactions`, `Scale` and `Recent`, as in `completer_tables`, and
two rows of working memory. Tables are flat: row u of one with n columns begins at u * n.
"""

from __future__ import annotations

import math

from driftwolfe.estimators.core.weight_kernels import reweigh
from driftwolfe.points.compiling import NUMBER, WHOLE, fast_jit, jit, numbers_at, places_at

#: Rate of the weights, per unit of loss; the fixed share is 1/t.
RATE = 0.8
#: The unit of errors, over their running mean.
UNIT = 1.33
#: The running mean of errors looks back about so many ratings, that of recent ratings a hundred.
MEMORY_OF_ERRORS, RECENT = 1 << 14, 0.01
#: Larger errors, in units, count as this.
LARGEST = 1000.0
#: Mean errors up to this fraction of the largest rating are rounding errors: nothing is learned from them.
ROUNDING = 1e-12
#: Errors up to so many units have slope 0 under the absolute loss.
FLAT = 1e-9
#: Fraction of the radius that steps within a block leave free.
MARGIN = 1e-9

ABSOLUTE, HUBER, SQUARED = 0, 1, 2


@jit()
def clip(value, low, high):
    """Return the nearest number in a range; `min` and `max` would take longer to compile."""
    return low if value < low else high if value > high else value


@jit()
def ramp(value, width):
    """As `points.ops.ramp`: 0 up to `width`, 1 from twice the width on, linear in between."""
    if value <= width:
        return 0.0
    if value >= 2.0 * width:
        return 1.0
    return value / width - 1.0


@jit()
def gradient(error, loss):
    """Return the derivative of the loss at an error in units."""
    if loss == ABSOLUTE:
        return math.copysign(ramp(abs(error), FLAT), error)
    limit = 1.0 if loss == HUBER else LARGEST
    return clip(error, -limit, limit)


@jit()
def loss_value(error, loss):
    """Return the loss of an error in units."""
    size = clip(abs(error), 0.0, LARGEST)
    if loss == ABSOLUTE:
        return size
    if loss == HUBER and size > 1.0:
        return size - 0.5
    return 0.5 * size * size


@jit(fastmath={"contract"})
def plus_inner(value, left, a, right, b, size):
    """Return the value plus the inner product of rows that begin at a and b, as two sums side by side."""
    other = 0.0
    for j in range(0, size - 1, 2):
        value += left[a + j] * right[b + j]
        other += left[a + j + 1] * right[b + j + 1]
    value += other
    if size & 1:
        value += left[a + size - 1] * right[b + size - 1]
    return value


@jit()
def blend(at, u, i, answers):
    """Return the prediction for user u and item i, -1 for new ones: the weighted mean of clipped answers.

    Those of each expert, before clipping, are written to the address `answers` unless it is 0.
    """
    experts, rank, width = at[0], at[1], at[1] * at[2]
    biases, rows, touched = numbers_at(at[4]), numbers_at(at[6]), places_at(at[8])
    item_biases, item_rows, item_touched = numbers_at(at[10]), numbers_at(at[12]), places_at(at[14])
    means, weights, numbers = numbers_at(at[16]), numbers_at(at[18]), numbers_at(at[27])
    starts, low, total = places_at(at[20]), places_at(at[22]), 0.0
    lowest, highest = numbers[1], numbers[2]
    seen = touched[u] if u >= 0 else -1
    item_seen = item_touched[i] if i >= 0 else -1
    for e in range(experts):
        answer, start, k = means[e], starts[e], low[e]
        if seen >= start:
            answer += biases[u * experts + e]
            if k >= 0 and i >= 0:
                a, b = u * width + k * rank, i * width + k * rank
                answer = plus_inner(answer, rows, a, item_rows, b, rank)
        if item_seen >= start:
            answer += item_biases[i * experts + e]
        if answers != 0:
            numbers_at(answers)[e] = answer
        total += weights[e] * clip(answer, lowest, highest)
    return clip(total, lowest, highest)


@jit()
def descend(values, squares, place, slope, step, low, high):
    """AdaGrad: the step falls with the root of the sum of squared gradients."""
    squares[place] += slope * slope
    moved = values[place] - step * slope / math.sqrt(1.0 + squares[place])
    values[place] = clip(moved, low, high)


@fast_jit()
def step_row(k, rank, a, b, step, weight, rows, item_rows, radii, norms, spreads):
    """Step along the item's factors, which begin at b, if the interactions then surely stay in their ball."""
    first = k * rank
    for j in range(rank):
        if radii[k] <= 0.0 or spreads[first + j] <= 0.0:  # a point, before the first error
            return
    metric = weight * weight
    scaled, slope, curvature = step / metric, 0.0, 0.0
    for j in range(rank):
        move = scaled * item_rows[b + j]
        here = rows[a + j]
        pull = metric * move / spreads[first + j]
        slope += pull * here
        curvature += 0.5 * pull * move
    # A step that ends close to the sphere is shortened: the norm is convex along it.
    room = radii[k] - (norms[k] + slope + curvature)
    part = ramp(room, MARGIN * radii[k])
    if part > 0.0 and math.isfinite(room):
        norms[k] += part * (slope + part * curvature)
        for j in range(rank):
            rows[a + j] += part * scaled * item_rows[b + j]


@jit(WHOLE, WHOLE, WHOLE, NUMBER, NUMBER, WHOLE, WHOLE, WHOLE)
def learn(where, place, count, rate, rating, ratings, parts, predictions):
    """Learn the ratings of as many pairs, from a place in the table of recent ones, and fill in their steps.

    Ratings, their weights, and the predictions before each lie at addresses. 0 is for one rating, which is given
    itself, for weights that are all 1, and for predictions that are not needed but the last, which is returned.
    """
    at = places_at(where)
    experts, rank, lows, loss, width = at[0], at[1], at[2], at[3], at[1] * at[2]
    biases, squares, rows = numbers_at(at[4]), numbers_at(at[5]), numbers_at(at[6])
    metric, touched, counts = numbers_at(at[7]), places_at(at[8]), places_at(at[9])
    item_biases, item_squares = numbers_at(at[10]), numbers_at(at[11])
    item_rows, item_touched, item_counts = numbers_at(at[12]), places_at(at[14]), places_at(at[15])
    means, mean_squares, weights = numbers_at(at[16]), numbers_at(at[17]), numbers_at(at[18])
    step_sizes, starts = numbers_at(at[19]), places_at(at[20])
    levels, low = places_at(at[21]), places_at(at[22])
    radii, norms, spreads = numbers_at(at[23]), numbers_at(at[24]), numbers_at(at[25])
    clock, numbers = places_at(at[26]), numbers_at(at[27])
    steps, users, items = numbers_at(at[28]), places_at(at[29]), places_at(at[30])
    answers, gains = numbers_at(at[31]), numbers_at(at[32])
    predicted = 0.0
    for n in range(count):
        u, i, t, row = users[place + n], items[place + n], clock[0], (place + n) * lows
        if ratings != 0:
            rating = numbers_at(ratings)[n]
        part = numbers_at(parts)[n] if parts != 0 else 1.0
        if t == 0:
            numbers[1] = numbers[2] = numbers[3] = rating
        a, b, seen, item_seen = u * experts, i * experts, touched[u], item_touched[i]
        for e in range(experts):
            if t == 0:  # all means start at the first rating
                means[e] = rating
            # What experts that restarted since had learned of a row is cleared.
            if seen < starts[e]:
                biases[a + e] = squares[a + e] = 0.0
                if low[e] >= 0:
                    first = u * width + low[e] * rank
                    for j in range(first, first + rank):
                        rows[j] = 0.0
            if item_seen < starts[e]:
                item_biases[b + e] = item_squares[b + e] = 0.0
        touched[u] = item_touched[i] = t
        counts[u] += 1
        item_counts[i] += 1
        lowest, highest = numbers[1], numbers[2]
        predicted = blend(at, u, i, at[31])
        change = part * (abs(predicted - rating) - numbers[0])
        numbers[0] += change * clip(1.0 / (t + 1.0), 1.0 / MEMORY_OF_ERRORS, 1.0)
        numbers[1], numbers[2] = clip(rating, -math.inf, lowest), clip(rating, highest, math.inf)
        numbers[3] += part * (rating - numbers[3]) * RECENT
        clock[0] = t + 1
        unit = UNIT * numbers[0]
        trust = part * ramp(unit, ROUNDING * clip(abs(numbers[1]), abs(numbers[2]), math.inf))
        if trust > 0.0:
            for e in range(experts):
                clipped = clip(answers[e], lowest, highest)
                gains[e] = -loss_value((clipped - rating) / unit, loss)
            reweigh(weights, gains, 0, experts, trust * RATE, trust / (t + 2.0))
            lowest, highest = numbers[1], numbers[2]
            limit = highest - lowest
            for e in range(experts):
                slope = trust * gradient((answers[e] - rating) / unit, loss)
                step = step_sizes[e] * unit
                descend(means, mean_squares, e, slope, step, lowest, highest)
                descend(biases, squares, a + e, slope, step, -limit, limit)
                descend(item_biases, item_squares, b + e, slope, step, -limit, limit)
                k = low[e]
                if k >= 0:
                    move = -rate * unit * slope
                    steps[row + k] = move
                    p, q = u * width + k * rank, i * width + k * rank
                    step_row(k, rank, p, q, move, metric[u], rows, item_rows, radii, norms, spreads)
        else:
            for k in range(lows):
                steps[row + k] = 0.0
        for e in range(experts):
            level, k = levels[e], low[e]
            # Experts whose interval ends here begin again, with the recent mean alone.
            if level >= 0 and (t + 1) % (1 << level) == 0:
                starts[e], means[e], mean_squares[e] = t + 1, numbers[3], 0.0
                if k >= 0:
                    norms[k] = 0.0
                    for j in range(rank):
                        norms[k] += spreads[k * rank + j]
                    norms[k] *= 0.5
        if t == 0:
            predicted = 0.0
        if predictions != 0:
            numbers_at(predictions)[n] = predicted
    return predicted


@jit(WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE)
def predict(where, u, i, predictions, answers, count):
    """Predict ratings, all experts together and each alone, before clipping; nothing changes.

    Users and items, what is predicted and the answers lie at addresses. With a count of -1, u and i are numbers,
    and the prediction is only returned.
    """
    at, predicted = places_at(where), 0.0
    for n in range(abs(count)):
        one = count < 0
        row, col = (u, i) if one else (places_at(u)[n], places_at(i)[n])
        predicted = blend(at, row, col, 0 if one else answers + 8 * n * at[0])
        if not one:
            numbers_at(predictions)[n] = predicted
    return predicted
