"""Compiled loops of the classifier."""

from __future__ import annotations

import math

from driftwolfe.estimators.core.models import BLOCK
from driftwolfe.estimators.core.shared_kernels import (
    HELD,
    add,
    descend,
    divisor,
    fill,
    map_row,
    replace_by_cosines,
    reweigh,
)
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
    numbers_at,
    places_at,
    pointer,
)
from driftwolfe.points.ops import TIE

#: Where the loop finds sizes, and the addresses of the arrays of experts, of the map, and of random features.
_FEATURES, _CLASSES, _VIEWS, _PLAIN, _SIDE, _WAVES, _FERNS, _ROW, _ROOM = range(9)
_LOSSES, _RESTS, _CREDITS, _WEIGHTS, _NORMS, _STEPS, _LIMITS, _POINTS, _MAP = (*range(9, 17), 20)
_INNER = _MAP + HELD
_SEEN, _SLOPES, _OFFSETS, _TESTS, _CUTS, _COUNTS, _TOTALS = range(_INNER + HELD, _INNER + HELD + 7)
#: Features that a wave sees, and tests of a fern.
MOST_INPUTS, TESTS = 3, 5
#: Rows of working memory, the first three as views see them: z, waves, ferns; leaves, features, ...; their number.
_LEAVES, _X, _WORK, _COSINES, _SCORES, _SLOPE, LOGS, _GAINS, _CHANCES, _GONE, WORK = range(3, 14)
#: A fern says nothing of a row that could be in more of its leaves; each leaf counts as so many rows more.
MOST_WAYS, RARE = 4, 0.1
#: The second view takes a label for drawn at random with a probability; smaller ones count as the least.
NOISE, LEAST = 0.1, 1e-300


@jit(allocates=False)
def _spread(at, places, entries, x, gone, leaves, chances):
    """Write the leaves in which a row with gaps could be, and their chances by frequency; return how many."""
    tests, cuts, counts = places_at(at[_TESTS]), numbers_at(at[_CUTS]), numbers_at(at[_COUNTS])
    n = 0
    for i in range(at[_FEATURES]):
        gone[i] = 0.0
    for e in range(entries):
        if places[e] < -1:
            gone[-2 - places[e]] = 1.0
    for f in range(at[_FERNS]):
        leaf, free, ways, total, first = f, 0, 1, 0.0, n
        for j in range(f * TESTS, (f + 1) * TESTS):
            known = gone[tests[j]] == 0.0
            leaf = 2 * leaf + (known and x[tests[j]] > cuts[j])
            free, ways = 2 * free + (not known), ways if known else 2 * ways
        other = free if ways <= MOST_WAYS else -1
        while other >= 0:  # through all that have no other bits than `free`
            leaves[n], chances[n] = leaf + other, counts[leaf + other] + RARE
            total += chances[n]
            n, other = n + 1, (other - 1) & free if other > 0 else -1
        for k in range(first, n):
            chances[k] /= total
    return n


@jit(allocates=False)
def _see(at, places, values, entries, part, spare):
    """Compute and count a row as views see it; return the number of leaves, 0 at rest, -1 if it is out of range."""
    d, number, row, rests = at[_FEATURES], at[_WAVES], at[_ROW], places_at(at[_RESTS])
    # An address too, or `map_row` would be compiled twice.
    z, waves, ferns = pointer(spare, 0), pointer(spare, row), pointer(spare, 2 * row)
    x, work = pointer(spare, _X * row), pointer(spare, _WORK * row)
    if not fill(places, values, entries, x, d, pointer(at, _MAP), work):
        return -1
    map_row(x, d, part, 1.0, pointer(at, _MAP), work, z)
    if rests[2] == 0:
        inputs, cosines = places_at(at[_SEEN]), pointer(spare, _COSINES * row)
        slopes, offsets = numbers_at(at[_SLOPES]), numbers_at(at[_OFFSETS])
        size = number + d + 2.0
        for m in range(number):
            angle = offsets[m]
            for j in range(m * MOST_INPUTS, (m + 1) * MOST_INPUTS):
                angle += slopes[j] * z[inputs[j]]
            cosines[m] = angle
        replace_by_cosines(cosines, number)
        # Each entry has the same variance in the end.
        factor = math.sqrt((number + 1.0) / size)
        map_row(cosines, number, part, factor, pointer(at, _INNER), work, waves)
        factor = math.sqrt((d + 1.0) / size)
        for j in range(d + 1):
            waves[number + 1 + j] = factor * z[j]
    if rests[3] == 0:
        tests, cuts = places_at(at[_TESTS]), numbers_at(at[_CUTS])
        leaves, n, gaps = pointer(spare, _LEAVES * row), at[_FERNS], False
        for f in range(n):
            leaf = f
            for j in range(f * TESTS, (f + 1) * TESTS):
                leaf = 2 * leaf + (x[tests[j]] > cuts[j])
            leaves[f], ferns[f] = leaf, 1.0
        for e in range(entries):
            gaps |= places[e] < -1
        if gaps:
            n = _spread(at, places, entries, x, pointer(spare, _GONE * row), leaves, ferns)
        counts, totals, squared = numbers_at(at[_COUNTS]), numbers_at(at[_TOTALS]), 0.0
        totals[0] += part
        for k in range(n):
            leaf, chance = int(leaves[k]), ferns[k]
            counts[leaf] += part * chance
            # The fourth root of its frequency: chosen on the streams of benchmarks/nonlinear.py.
            square = math.sqrt((totals[0] + 1.0) / (counts[leaf] + 1.0))
            ferns[k] = chance * math.sqrt(square)
            squared += chance * chance * square
        length = divisor(totals, squared, part)
        for k in range(n):
            ferns[k] /= length
        return n
    return 0


@jit(allocates=False)
def _draw(t):
    """Return a number from 0 to 1 for a row, as good as random: products keep 64 bits (as splitmix64)."""
    bits = (t + 1) * -7046029254386353131
    bits = (bits ^ (bits >> 30)) * -4658895280553007687
    return ((bits ^ (bits >> 27)) & ((1 << 53) - 1)) / (1 << 53)


@jit(
    *(PLACES, PLACES, NUMBERS, PLACES, NUMBERS, WHOLE, WHOLE, WHOLE, NEW_TABLE, NEW_NUMBERS),
    allocates=False,
)
def follow(starts, places, values, labels, parts, begin, t, where, out, spare):
    """Mix the probabilities of the experts for every row of `out`; or, with labels, learn rows.

    That is: weigh the views and their experts, and let those that do not rest take their steps. Return the number
    of rows done, from the row `begin` on; below 0 if an expert is too far outside its ball and to be projected
    before the next row. It stops at a number out of range. Rows of many features are mapped already.
    """
    at, learning = places_at(where), labels.size > 0
    classes, row, full = at[_CLASSES], at[_ROW], at[_FEATURES] >= 0
    room = at[_ROOM]  # columns of an expert: those of classes to come have slopes of 0
    scores, slopes = pointer(spare, _SCORES * row), pointer(spare, _SLOPE * row)
    logs, gains = pointer(spare, LOGS * row), pointer(spare, _GAINS * row)
    chances = pointer(spare, _CHANCES * row)
    rests, view_weights = places_at(at[_RESTS]), numbers_at(at[_CREDITS])
    weights = numbers_at(at[_WEIGHTS])
    norms, steps, limits = numbers_at(at[_NORMS]), numbers_at(at[_STEPS]), numbers_at(at[_LIMITS])
    experts, leaves = at[_PLAIN] + (at[_VIEWS] - 1) * at[_SIDE], pointer(spare, _LEAVES * row)
    for k in range(begin, starts.size - 1):
        # Not the literal 0: what is called with it would be compiled for that, and for numbers.
        first, awake, mixed, outside = begin - begin, 0.0, 0.0, False
        label, part = (labels[k], parts[k]) if learning else (0, 0.0)
        own, z = pointer(places, starts[k]), pointer(values, starts[k])
        size = starts[k + 1] - starts[k]
        filled = _see(at, own, z, size, part, spare) if full else 0
        if filled < 0:
            return k
        share = 1.0 / (t + k + 2.0)
        for c in range(classes):
            chances[c] = 0.0
        for v in range(at[_VIEWS]):
            number, table = at[_SIDE] if v else at[_PLAIN], numbers_at(at[_POINTS + v])
            columns, last = number * room, first + number
            noise = NOISE / classes if v == 1 else 0.0
            if rests[v] == 0:
                squared, found = 0.0, 0.0
                if full:
                    z, size = pointer(spare, (v - 1) * row if v else 0), at[_FEATURES] + 1
                    size = filled if v == 3 else size + at[_WAVES] + 1 if v == 2 else size
                for c in range(columns):
                    scores[c] = 0.0
                for e in range(size):
                    place = (int(leaves[e]) if v == 3 else e) if full else own[e]
                    squared += z[e] * z[e]
                    add(scores, z[e], pointer(table, place * columns), columns)
                for i in range(first, last):
                    begins = (i - first) * room
                    ends, right = begins + classes, begins + label
                    top, total, others, sure = scores[begins], 0.0, 0.0, 1.0
                    for c in range(begins, ends):
                        top = scores[c] if scores[c] > top else top
                    for c in range(begins, ends):
                        slopes[c] = math.exp(scores[c] - top)
                        total += slopes[c]
                        others += slopes[c] if c != right else 0.0
                    inverse, weight = 1.0 / total, view_weights[v] * weights[i]
                    kept = (1.0 - NOISE if v == 1 else 1.0) * inverse
                    for c in range(classes):
                        chances[c] += weight * (kept * slopes[begins + c] + noise)
                    if not learning:
                        continue
                    chance = slopes[right] * inverse
                    if v == 1:
                        # The slope of -log((1 - NOISE) p + noise): less for labels that are probably wrong.
                        sure = (1.0 - NOISE) * chance
                        chance = sure + noise
                        sure, logs[i] = sure / chance, math.log(chance)
                    else:
                        logs[i] = scores[right] - (top + math.log(total))
                    found += weights[i] * chance
                    for c in range(begins, ends):  # of p - 1 the others, as p may be nearly 1
                        slopes[c] = (-others if c == right else slopes[c]) * inverse * sure
                    score, slope = pointer(scores, begins), pointer(slopes, begins)
                    step = part * steps[i]
                    norm = descend(norms, i, experts, score, slope, classes, step, squared)
                    outside |= norm > limits[i]
                if learning:
                    for e in range(size):
                        place = (int(leaves[e]) if v == 3 else e) if full else own[e]
                        add(pointer(table, place * columns), z[e], slopes, columns)
                    gains[v] = math.log(found if found > LEAST else LEAST)
                    awake += view_weights[v]
                    mixed += view_weights[v] * found
                    reweigh(weights, logs, first, last, part, share)
            first = last
        if not learning:
            for c in range(classes):
                mixed += chances[c]
            for c in range(classes):
                out[k, c] = chances[c] / mixed
            continue
        above, draw = 0.0, _draw(t + k)
        for c in range(classes):
            above += chances[c] if chances[c] > chances[label] else 0.0
            above += draw * chances[c] if chances[c] == chances[label] else 0.0
        numbers_at(at[_LOSSES])[(t + k) % BLOCK] = above / awake
        mixed = mixed / awake if mixed > LEAST * awake else LEAST
        for v in range(at[_VIEWS]):
            if rests[v] != 0:  # it says what the others say, so its weight stays
                gains[v] = math.log(mixed)
        reweigh(view_weights, gains, begin - begin, at[_VIEWS], part, share)
        if outside:
            return -k - 1
    return starts.size - 1


@jit(
    *(NEW_TABLE, NUMBERS, NEW_TABLE, PLACES, NUMBERS, NEW_PLACES, WHOLE, WHOLE, WHOLE),
    allocates=False,
)
def end_round(points, weights, norms, lengths, rates, sources, begin, t, classes):
    """Let the means of a view move, one for each rate, and experts whose interval has ended start at the heaviest.

    Experts of the view are those from `begin` on, means last. `sources` become the heaviest of every radius, by
    their place in the view.
    """
    radii, columns, total = sources.size, points.shape[1], 0.0
    moving = columns // classes - rates.size
    number, levels = moving * classes, moving // radii
    for i in range(begin, begin + moving):
        total += weights[i]
    inverse = 1.0 / total
    for j in range(points.shape[0] if rates.size > 0 else 0):
        row, zeros = pointer(points, j * columns), 0
        while zeros < columns and row[zeros] == 0.0:
            zeros += 1
        # Most leaves of ferns are not used at first.
        for c in range(classes if zeros < columns else 0):
            mean = 0.0
            for i in range(moving):
                mean += weights[begin + i] * row[i * classes + c]
            mean *= inverse
            for k in range(rates.size):
                row[number + k * classes + c] += rates[k] * (mean - row[number + k * classes + c])
    for m in range(2 if rates.size > 0 else 0):  # norms are convex, so these are bounds still
        mean, last = 0.0, begin + moving
        for i in range(moving):
            mean += inverse * weights[begin + i] * norms[m, begin + i]
        for k in range(rates.size):
            norms[m, last + k] += rates[k] * (mean - norms[m, last + k])
    for r in range(radii):
        # Among equally heavy ones, rounding apart, the one of the longest interval.
        top, place = 0.0, moving - radii + r
        for i in range(r, moving, radii):
            top = weights[begin + i] if weights[begin + i] > top else top
        while weights[begin + place] < (1.0 - TIE) * top:
            place -= radii
        sources[r] = place
    for k in range(levels):
        if t % lengths[begin + k * radii] == 0:
            # An expert that is both is copied to itself, so none is overwritten before it is copied.
            for r in range(radii):
                for m in range(2):
                    norms[m, begin + k * radii + r] = norms[m, begin + sources[r]]
            for j in range(points.shape[0]):
                row = pointer(points, j * columns)
                for r in range(radii):
                    source, target = sources[r] * classes, (k * radii + r) * classes
                    for c in range(classes):
                        row[target + c] = row[source + c]


@fast_jit(allocates=False)
def _product(one, other):
    total = 0.0
    for j in range(one.size):
        total += one[j] * other[j]
    return total


#: Rotations of all pairs of columns: Jacobi's method converges in six or so.
SWEEPS = 30


@jit(NEW_TABLE, WHOLE, NUMBER, NEW_TABLE, NEW_TABLE, allocates=False)
def project_columns(table, first, radius, both, own):
    """Project a few columns of a table onto the ball; return their trace norm and squared norm.

    Working memory is `both`, of two squares and a row, all 0, and `own`, of a row more than there are columns.
    """
    # The eigenvectors of the Gram matrix, by Jacobi's rotations: quickest for few columns, and LAPACK would be
    # compiled for seconds. Singular values below 1e-8 of the largest are lost.
    columns = both.shape[1]  # above are the matrix, below it its vectors
    values, row = both[2 * columns], own[columns]
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
        values[p] = math.sqrt(both[p, p]) if both[p, p] > 0.0 else 0.0
        norm, squared = norm + values[p], squared + values[p] * values[p]
    if norm <= radius:
        return norm, squared
    while theta > last:  # the parts of values above theta shall sum to the radius (Michelot 1986)
        last, above, count = theta, -radius, 0.0
        for p in range(columns):
            if values[p] > last:
                above, count = above + values[p], count + 1.0
        # None is above where the radius is rounding.
        theta = above / count if above > last * count else last
    squared = 0.0
    for p in range(columns):
        kept = values[p] - theta if values[p] > theta else 0.0
        squared += kept * kept
        values[p] = kept / values[p] if values[p] > theta else 0.0
    for p in range(columns):
        for q in range(columns):
            both[p, q] = 0.0
            for k in range(columns):
                both[p, q] += both[columns + p, k] * values[k] * both[columns + q, k]
    for p in range(columns):
        for j in range(row.size):
            row[j] = 0.0
        for q in range(columns):
            add(pointer(row, 0), both[p, q], pointer(own, q * row.size), row.size)
        for j in range(row.size):
            table[j, first + p] = row[j]
    return radius, squared
