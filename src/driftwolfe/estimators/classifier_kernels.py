"""Compiled loops of the classifier."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from driftwolfe.estimators.core.row_kernels import MAP, divisor, fill, map_rows
from driftwolfe.estimators.core.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    ANSWER,
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
)

_tuple: Any = numba.types.Tuple
_alike: Any = numba.types.UniTuple
NEW_INDICES = numba.int64[:, ::1]
INDICES = numba.types.Array(numba.int64, 2, "C", readonly=True)
#: Experts are in four views: linear, linear with doubts about labels, waves, ferns; a table of points each.
POINTS = _alike(NEW_TABLE, 4)
#: Rows as these see them, the first two alike: the places of entries, in one row for all if they are the same,
#: and the entries.
SEEN = _alike(_tuple((INDICES, TABLE)), 3)
#: The second view takes a label for drawn at random with this probability.
NOISE = 0.1
#: Smaller probabilities count as this where views are weighed.
LEAST = 1e-300


@jit(allocates=False)
def _add(total, factor, values, number):
    for c in range(number if factor != 0.0 else 0):  # many are 0
        total[c] += factor * values[c]


@jit(
    *(SEEN, PLACES, NUMBERS, WHOLE, WHOLE, ANSWER, WHOLE, NUMBERS, NUMBERS, POINTS, PLACES),
    *(NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE, NEW_TABLE, NEW_TABLE),
    allocates=False,
)
def play(
    seen,
    labels,
    parts,
    begin,
    t,
    adaptive,
    classes,
    steps,
    limits,
    points,
    rests,
    credits,
    weights,
    norms,
    work,
    out,
):
    """Mix the probabilities of the experts for every row of `out`; or, with labels, learn rows.

    That is: weigh the views and their experts, and let those that do not rest take their steps. Return the number
    of rows learned, from the row `begin` on; below 0 if an expert is too far outside its ball and to be projected
    before the next row.
    """
    # One function, and few views of parts of arrays: it is compiled in a fraction of the time.
    learning = labels.size > 0
    scores, slopes, logs, gains = work[0], work[1], work[2], work[3]
    for k in range(begin, labels.size if learning else out.shape[0]):
        # Not the literal 0: what is called with it would be compiled for that, and for numbers.
        first, awake, mixed, outside = begin - begin, 0.0, 0.0, False
        label, part = (labels[k], parts[k]) if learning else (0, 0.0)
        share = 1.0 / (t + k + 2.0)
        share = share if adaptive else share * share
        for v in range(credits.size):
            table, (places, values) = points[v], seen[v - 1 if v > 1 else 0]
            columns, noise = table.shape[1], NOISE / classes if v == 1 else 0.0
            last = first + columns // classes
            if rests[v] == 0:
                squared, told = 0.0, 0.0
                for c in range(columns):
                    scores[c] = 0.0
                row = k if places.shape[0] > 1 else 0
                for e in range(values.shape[1]):
                    place, value = places[row, e], values[k, e]
                    squared += value * value
                    _add(scores, value, table[place], columns)
                for i in range(first, last):
                    begins = (i - first) * classes
                    ends, own = begins + classes, begins + label
                    top, total, sure = scores[begins], 0.0, 1.0
                    for c in range(begins, ends):
                        top = scores[c] if scores[c] > top else top
                    for c in range(begins, ends):
                        slopes[c] = math.exp(scores[c] - top)
                        total += slopes[c]
                    if not learning:
                        for c in range(classes):
                            chance = slopes[begins + c] / total
                            chance = (1.0 - NOISE) * chance + noise if v == 1 else chance
                            out[k, c] += credits[v] * weights[i] * chance
                        continue
                    logs[i] = scores[own] - (top + math.log(total))
                    right = math.expm1(logs[i])  # p - 1, also where p is nearly 1
                    if v == 1:
                        # The slope of -log((1 - NOISE) p + noise): less for labels that are probably wrong.
                        sure = (1.0 - NOISE) * math.exp(logs[i])
                        logs[i] = math.log(sure + noise)
                        sure = sure / (sure + noise)
                    told += weights[i] * math.exp(logs[i])
                    step, length, inner = part * steps[i], 0.0, 0.0
                    for c in range(begins, ends):
                        slope = (right if c == own else slopes[c] / total) * sure
                        length += slope * slope
                        inner += slope * scores[c]
                        slopes[c] = slope * -step
                    length *= squared
                    # The step has rank one, so its norm is its trace norm; and the trace norm of any matrix
                    # is at most its norm times the root of its number of columns.
                    square = norms[1, i] - 2.0 * step * inner + step * step * length
                    square = square if square > 0.0 else 0.0
                    norm, most = norms[0, i] + step * math.sqrt(length), math.sqrt(classes * square)
                    norm = norm if norm < most else most
                    norms[0, i], norms[1, i] = norm, square
                    outside |= norm > limits[i]
                if learning:
                    for e in range(values.shape[1]):
                        place, value = places[row, e], values[k, e]
                        _add(table[place], value, slopes, columns)
                    gains[v] = math.log(told if told > LEAST else LEAST)
                    awake += credits[v]
                    mixed += credits[v] * told
                    reweigh(weights, logs, first, last, part, share)
            first = last
        if not learning:
            for c in range(classes):
                mixed += out[k, c]
            for c in range(classes):
                out[k, c] /= mixed
            continue
        mixed = mixed / awake if mixed > LEAST * awake else LEAST
        for v in range(credits.size):
            if rests[v] != 0:  # it says what the others say, so its weight stays
                gains[v] = math.log(mixed)
        reweigh(credits, gains, begin - begin, credits.size, part, share)
        if outside:
            return -k - 1
    return labels.size


#: What random features are: of waves their inputs, slopes, offsets and map; of ferns the features tested, the
#: cuts, the weights of leaves, and totals as in a map.
RANDOM = _tuple((INDICES, TABLE, NUMBERS, MAP, INDICES, TABLE, NEW_NUMBERS, NEW_NUMBERS))


@jit(
    *(PLACES, PLACES, NUMBERS, NUMBERS, MAP, RANDOM, *[NEW_TABLE] * 5, NEW_INDICES, NEW_TABLE),
    allocates=False,
)
def see(starts, places, values, parts, state, random, x, work, z, cosines, waves, leaves, ferns):
    """Fill in rows mapped, as waves and as ferns, where these have room; count those with weights `parts`.

    Return whether all values are in range; otherwise nothing changes.
    """
    if not fill(starts, places, values, x):
        return False
    inputs, slopes, offsets, inner, tests, cuts, counts, totals = random
    n, width, number = x.shape[0], z.shape[1], offsets.size
    map_rows(x, parts, 1.0, state, work, z)
    if waves.shape[0] > 0:
        # Each entry has the same variance in the end.
        share = math.sqrt(width / waves.shape[1])
        for k in range(n):
            row = z[k]
            for m in range(number):
                angle = offsets[m]
                for j in range(inputs.shape[1]):
                    angle += slopes[m, j] * row[np.uint64(inputs[m, j])]  # unsigned: no check
                cosines[k, m] = math.cos(angle)
            for j in range(width):
                waves[k, number + 1 + j] = share * z[k, j]
        map_rows(cosines, parts, math.sqrt((number + 1.0) / waves.shape[1]), inner, work, waves)
    for k in range(ferns.shape[0]):
        part, squared = parts[k] if parts.size > 0 else 0.0, 0.0
        totals[0] += part
        row = x[k]
        for f in range(ferns.shape[1]):
            leaf = f
            for j in range(tests.shape[1]):
                leaf = 2 * leaf + (row[np.uint64(tests[f, j])] > cuts[f, j])
            counts[leaf] += part
            # The fourth root of its frequency: chosen on the streams of benchmarks/nonlinear.py.
            square = math.sqrt((totals[0] + 1.0) / (counts[leaf] + 1.0))
            leaves[k, f], ferns[k, f] = leaf, math.sqrt(square)
            squared += square
        length = divisor(totals, squared, part)
        for f in range(ferns.shape[1]):
            ferns[k, f] /= length
    return True


@jit(NEW_TABLE, PLACES, WHOLE, WHOLE, allocates=False)
def copy_experts(points, sources, first, classes):
    """Copy the columns of some experts to those of as many from the expert `first` on."""
    for j in range(points.shape[0]):
        row = points[j]
        for k in range(sources.size):
            source, target = sources[k] * classes, (first + k) * classes
            for c in range(classes):
                row[target + c] = row[source + c]


@jit(NEW_TABLE, NUMBERS, NUMBERS, WHOLE, allocates=False)
def average_experts(points, weights, rates, classes):
    """Move the last experts, one for each rate, towards the weighted mean of those before them."""
    number = weights.size * classes
    for j in range(points.shape[0]):
        row, used = points[j], False
        for c in range(row.size):
            used |= row[c] != 0.0
        for c in range(classes if used else 0):  # most leaves of ferns are not at first
            mean = 0.0
            for i in range(weights.size):
                mean += weights[i] * row[i * classes + c]
            for k in range(rates.size):
                row[number + k * classes + c] += rates[k] * (mean - row[number + k * classes + c])


@fast_jit(allocates=False)
def _product(one, other):
    total = 0.0
    for j in range(one.size):
        total += one[j] * other[j]
    return total


#: Rotations of all pairs of columns: Jacobi's method converges in six or so.
SWEEPS = 30


@jit(NEW_TABLE, WHOLE, WHOLE, NUMBER)
def project_columns(table, first, columns, radius):
    """Project a few columns of a table onto the ball; return their trace norm and squared norm."""
    # The eigenvectors of the Gram matrix, by Jacobi's rotations: quickest for few columns, and LAPACK would be
    # compiled for seconds. Singular values below 1e-8 of the largest are lost.
    both = np.zeros((2 * columns, columns))  # the matrix, and below it the vectors
    own = np.empty((columns, table.shape[0]))
    values, row = np.empty(columns), np.empty(table.shape[0])
    for p in range(columns):
        for j in range(row.size):
            own[p, j] = table[j, first + p]
        both[columns + p, p] = 1.0
        for q in range(p + 1):
            both[p, q] = both[q, p] = _product(own[p], own[q])
    for _ in range(SWEEPS):
        turned = False
        for p in range(columns):
            for q in range(p + 1, columns):
                entry = both[p, q]
                # Squares of entries could leave the range of numbers.
                if abs(entry) > 1e-13 * (math.sqrt(both[p, p]) * math.sqrt(both[q, q])):
                    turned, ratio = True, 0.5 * (both[q, q] - both[p, p]) / entry
                    size = 1.0 / (abs(ratio) + math.sqrt(1.0 + ratio * ratio))
                    tangent = math.copysign(size, ratio)
                    cosine = 1.0 / math.sqrt(1.0 + tangent * tangent)
                    for k in range(2 * columns):
                        one, other = both[k, p], both[k, q]
                        both[k, p] = cosine * (one - tangent * other)
                        both[k, q] = cosine * (tangent * one + other)
                    for k in range(columns):
                        one, other = both[p, k], both[q, k]
                        both[p, k] = cosine * (one - tangent * other)
                        both[q, k] = cosine * (tangent * one + other)
        if not turned:
            break
    norm, squared, theta, last = 0.0, 0.0, 0.0, -1.0
    for p in range(columns):
        values[p] = math.sqrt(max(both[p, p], 0.0))
        norm, squared = norm + values[p], squared + values[p] * values[p]
    if norm <= radius:
        return norm, squared
    while theta > last:  # the parts of values above theta shall sum to the radius (Michelot 1986)
        last, above, count = theta, -radius, 0
        for p in range(columns):
            if values[p] > last:
                above, count = above + values[p], count + 1
        theta = max(above / max(count, 1), last)  # none is above where the radius is rounding
    squared = 0.0
    for p in range(columns):
        kept = max(values[p] - theta, 0.0)
        squared += kept * kept
        values[p] = kept / max(values[p], theta)
    for p in range(columns):
        for q in range(columns):
            both[p, q] = 0.0
            for k in range(columns):
                both[p, q] += both[columns + p, k] * values[k] * both[columns + q, k]
    for p in range(columns):
        for j in range(row.size):
            row[j] = 0.0
        for q in range(columns):
            _add(row, both[p, q], own[q], row.size)
        for j in range(row.size):
            table[j, first + p] = row[j]
    return radius, squared
