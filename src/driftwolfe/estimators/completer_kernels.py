"""Compiled loops of `MatrixCompleter`.

Those of the experts find everything in a list of numbers, `at`: experts, their rank, how many have one, the loss;
then where tables lie: those of users, items, `Slots`, `Interactions`, `Scale` and `Recent`, as in
`completer_tables`, and two rows of working memory. Tables are flat: row u of one with n columns begins at u * n.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from driftwolfe.estimators.completer_features import ItemWeights, SharedWeights, UserWeights
from driftwolfe.estimators.core.shared_kernels import (
    RATE,
    ROUNDING,
    UNIT,
    clip,
    mean_error,
    reweigh,
)
from driftwolfe.points import compiling
from driftwolfe.points.compiling import WHOLE, fast_jit, jit, numbers_at, places_at, pointer

#: The running mean of errors looks back about so many ratings, that of recent ratings a hundred.
MEMORY_OF_ERRORS, RECENT = 1 << 14, 0.01
#: Larger errors, in units, count as this.
LARGEST = 1000.0
#: Errors up to so many units have slope 0 under the absolute loss.
FLAT = 1e-9
#: Fraction of the radius that steps within a block leave free.
MARGIN = 1e-9
#: Larger errors, in units, count as this when weights of features are learned.
LARGEST_ERROR = 2.0
#: Fraction of the prior variance that a user's weights regain with each rating, up to all of it.
DRIFT = 0.003
#: Losses, as `LOSSES` of completer_tables has them.
ABSOLUTE, HUBER = 0, 1


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
    return size - 0.5 if loss == HUBER and size > 1.0 else 0.5 * size * size


@jit()
def count_rating(numbers, rating, predicted, part, t):
    """Count a rating and its error: running mean, lowest and highest rating; return how much is learned from it."""
    numbers[0] = mean_error(numbers[0], abs(predicted - rating), part, t + 1.0, MEMORY_OF_ERRORS)
    numbers[1] = clip(rating, -math.inf, numbers[1])
    numbers[2] = clip(rating, numbers[2], math.inf)
    largest = clip(abs(numbers[1]), abs(numbers[2]), math.inf)
    return part * ramp(UNIT * numbers[0], ROUNDING * largest)


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
def answer_of(at, u, i, answers):
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


@jit(WHOLE, WHOLE, WHOLE, compiling.NUMBER, compiling.NUMBER, WHOLE, WHOLE, WHOLE)
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
    answers, gains = numbers_at(at[31]), pointer(numbers_at(at[31]), experts)
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
        predicted = answer_of(at, u, i, at[31])
        trust = count_rating(numbers, rating, predicted, part, t)
        numbers[3] += part * (rating - numbers[3]) * RECENT
        clock[0], unit = t + 1, UNIT * numbers[0]
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


@jit(WHOLE, WHOLE, WHOLE, WHOLE, WHOLE)
def predict(where, u, i, predictions, count):
    """Predict ratings; nothing changes.

    Users, items and what is predicted lie at addresses. With a count of -1, u and i are numbers, and the
    prediction is only returned.
    """
    at, predicted = places_at(where), 0.0
    for n in range(abs(count)):
        one = count < 0
        row, col = (u, i) if one else (places_at(u)[n], places_at(i)[n])
        predicted = answer_of(at, row, col, 0)
        if not one:
            numbers_at(predictions)[n] = predicted
    return predicted


_group: Any = numba.types.NamedTuple
_alike: Any = numba.types.NamedUniTuple
_USERS = _group((compiling.NEW_TABLE, compiling.NEW_TABLE, compiling.NEW_PLACES), UserWeights)
_ITEMS = _alike(compiling.NEW_TABLE, 2, ItemWeights)
_SHARED = (compiling.NEW_TABLE,) * 3 + (compiling.NEW_NUMBERS, compiling.NEW_PLACES)


@jit(
    *(
        compiling.PLACES,
        compiling.PLACES,
        compiling.NUMBERS,
        compiling.NUMBERS,
        compiling.TABLE,
        compiling.TABLE,
    ),
    *(
        WHOLE,
        compiling.NUMBERS,
        compiling.NEW_NUMBERS,
        _USERS,
        _ITEMS,
        _group(_SHARED, SharedWeights),
    ),
    compiling.NEW_NUMBERS,
)
def blend(
    rows, cols, ratings, parts, xs, zs, loss, prior, nobody, users, items, shared, predictions
):
    """Blend predictions with those of the model; learn the ratings one by one, if given, of weights `parts` or 1.

    Who has no row is new to the model, and has the weights of `nobody`.
    """
    m, m_var, numbers, clocks = shared.means, shared.variances, shared.numbers, shared.clocks
    last, wide, choices = xs.shape[1], zs.shape[1], shared.blends.shape[1]
    gains, t = np.empty(choices), 0
    for stage in range(clocks.size):
        t += clocks[stage]
    if t == 0 and ratings.size == 0:
        return
    for n in range(rows.size):
        u, i, x, z, base = rows[n], cols[n], xs[n], zs[n], predictions[n]
        known = 0 <= u < users.counts.size
        w = users.means[u] if known else nobody
        v = items.means[i] if 0 <= i < len(items.means) else nobody
        # The first stage is that of users without ratings, then 1, 2-3, 4-7, ... ratings.
        count, stage = users.counts[u] if known else 0, 0
        while count > 0 and stage < clocks.size - 1:
            count, stage = count >> 1, stage + 1
        if t == 0:  # the constant starts at the first rating
            base = numbers[1] = numbers[2] = m[0, 0] = ratings[n]
        level, own, taste, fraction = v[0], w[0], 0.0, 0.0
        for d in range(1, last):
            level += m[d, 0] * x[d]
            own += w[d] * x[d]
        for k in range(1, wide):
            slope = v[k]
            for d in range(last):
                slope += m[d, k] * x[d]
            taste += slope * z[k]
        raw = m[0, 0] + own + taste + (1.0 + w[last]) * level
        model = clip(raw, numbers[1], numbers[2])
        blends = shared.blends[stage]
        for b in range(choices):  # evenly spaced from 0 to 1
            fraction += blends[b] * (b / (choices - 1.0))
        blended = base + fraction * (model - base)
        if t > 0:
            predictions[n] = blended
        if ratings.size == 0:
            continue
        rating, part = ratings[n], parts[n] if parts.size > 0 else 1.0
        trust, t = count_rating(pointer(numbers, 0), rating, blended, part, t), t + 1
        clocks[stage] += 1
        users.counts[u] += 1
        unit = UNIT * numbers[0]
        if trust <= 0.0:
            continue
        for b in range(choices):
            mixed = base + b / (choices - 1.0) * (model - base)
            gains[b] = -loss_value((mixed - rating) / unit, loss)
        reweigh(blends, gains, 0, choices, trust * RATE, trust / (clocks[stage] + 1.0))
        # One step of a Kalman filter that keeps variances only; the noise has variance 1 / trust.
        w_var, v_var, scale = users.variances[u], items.variances[i], 1.0 + w[last]
        high = level / unit
        total = 1.0 / trust + w_var[last] * high * high + v_var[0] * scale * scale
        for d in range(last):
            total += w_var[d] * x[d] * x[d]
            for k in range(wide):
                slope = x[d] * (z[k] if k > 0 else scale if d > 0 else 1.0)
                total += m_var[d, k] * slope * slope
        for k in range(1, wide):
            total += v_var[k] * z[k] * z[k]
        # Below, rounding may leave less than no variance.
        error = clip((rating - raw) / unit, -LARGEST_ERROR, LARGEST_ERROR) / total
        for d in range(last):
            # All ratings of a user share one deviation from what the features say, so only what is not
            # yet known of it counts.
            fresh = w_var[d] / prior[d]
            for k in range(wide):
                slope = x[d] * (z[k] * fresh if k > 0 else scale if d > 0 else 1.0)
                gain = m_var[d, k] * slope
                m[d, k] += gain * error * unit
                m_var[d, k] = clip(m_var[d, k] - gain * gain / total, 0.0, math.inf)
        for d in range(last + 1):
            gain = w_var[d] * (x[d] if d < last else high)
            w[d] += gain * error * (unit if d < last else 1.0)
            left = clip(w_var[d] - gain * gain / total, 0.0, prior[d])
            w_var[d] = clip(left + trust * DRIFT * prior[d], 0.0, prior[d])
        for k in range(wide):
            gain = v_var[k] * (z[k] if k > 0 else scale)
            v[k] += gain * error * unit
            v_var[k] = clip(v_var[k] - gain * gain / total, 0.0, math.inf)
