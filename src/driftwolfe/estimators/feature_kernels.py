"""Compiled loops of the recommender's model of side features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.estimators.recommender_kernels import (
    MEMORY_OF_ERRORS,
    RATE,
    ROUNDING,
    UNIT,
    loss_value,
    ramp,
)
from driftwolfe.estimators.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    jit,
)

#: Larger errors, in units, count as this when weights are learned.
LARGEST_ERROR = 2.0
#: Share of the prior variance that a user's weights regain with each rating, up to all of it.
DRIFT = 0.003


class Users(NamedTuple):
    """Weights of users: a row for each."""

    means: Any
    variances: Any  # in units of the noise
    counts: Any  # ratings so far


class Items(NamedTuple):
    """Weights of items: a row for each."""

    means: Any
    variances: Any


class Shared(NamedTuple):
    """What all users and items share."""

    means: Any  # a row for each feature of items, a column for each feature of users, the constant first
    variances: Any
    blends: (
        Any  # weights of the shares that the model may have in the prediction: a row for each stage
    )
    numbers: Any  # running mean of errors, lowest and highest rating
    clocks: Any  # ratings learned so far, by stage


_group: Any = numba.types.NamedTuple
_alike: Any = numba.types.NamedUniTuple
_USERS = _group((NEW_TABLE, NEW_TABLE, NEW_PLACES), Users)
_ITEMS = _alike(NEW_TABLE, 2, Items)
_SHARED = _group((NEW_TABLE,) * 3 + (NEW_NUMBERS, NEW_PLACES), Shared)


@jit()
def stage_of(count, stages):
    """Return the stage of a user: the first without ratings, then 1, 2-3, 4-7, ... ratings."""
    stage = 0
    while count > 0 and stage < stages - 1:
        count, stage = count >> 1, stage + 1
    return stage


@jit()
def share_of(blends):
    """Return the mean share of the model: shares are evenly spaced from 0 to 1."""
    total = 0.0
    for b in range(blends.size):
        total += blends[b] * (b / (blends.size - 1.0))
    return total


@jit()
def answer(x, z, user, item, shared):
    """Return the level of an item and the model's prediction, before clipping."""
    matrix, last = shared.means, x.size
    level, own, taste = item[0], user[0], 0.0
    for d in range(1, last):
        level += matrix[d, 0] * x[d]
        own += user[d] * x[d]
    for k in range(1, z.size):
        slope = item[k]
        for d in range(last):
            slope += matrix[d, k] * x[d]
        taste += slope * z[k]
    return level, matrix[0, 0] + own + taste + (1.0 + user[last]) * level


@jit()
def adjust(x, z, user, item, shared, prior, level, error, unit, trust):
    """One step of a Kalman filter that keeps variances only; the noise has variance 1 / trust."""
    (w, w_var), (v, v_var), last = user, item, x.size
    m, m_var, scale, high = shared.means, shared.variances, 1.0 + w[last], level / unit
    total = 1.0 / trust + w_var[last] * high * high + v_var[0] * scale * scale
    for d in range(last):
        total += w_var[d] * x[d] * x[d]
        for k in range(z.size):
            slope = x[d] * (z[k] if k > 0 else scale if d > 0 else 1.0)
            total += m_var[d, k] * slope * slope
    for k in range(1, z.size):
        total += v_var[k] * z[k] * z[k]
    # Below, rounding may leave less than no variance.
    error = min(max(error / unit, -LARGEST_ERROR), LARGEST_ERROR) / total
    for d in range(last):
        # All ratings of a user share one deviation from what the features say, so only what is not
        # yet known of it counts.
        fresh = w_var[d] / prior[d]
        for k in range(z.size):
            slope = x[d] * (z[k] * fresh if k > 0 else scale if d > 0 else 1.0)
            gain = m_var[d, k] * slope
            m[d, k] += gain * error * unit
            m_var[d, k] = max(m_var[d, k] - gain * gain / total, 0.0)
    for d in range(last + 1):
        gain = w_var[d] * (x[d] if d < last else high)
        w[d] += gain * error * (unit if d < last else 1.0)
        left = max(w_var[d] - gain * gain / total, 0.0)
        w_var[d] = min(left + trust * DRIFT * prior[d], prior[d])
    for k in range(z.size):
        gain = v_var[k] * (z[k] if k > 0 else scale)
        v[k] += gain * error * unit
        v_var[k] = max(v_var[k] - gain * gain / total, 0.0)


@jit(PLACES, PLACES, TABLE, TABLE, _USERS, _ITEMS, _SHARED, NEW_NUMBERS)
def predict(rows, cols, xs, zs, users, items, shared, told):
    """Blend predictions with those of the model; nothing else changes. Who has no row is new to it."""
    if shared.clocks.sum() == 0:
        return
    nobody, nothing = np.zeros(users.means.shape[1]), np.zeros(items.means.shape[1])
    counts, low, high = users.counts, shared.numbers[1], shared.numbers[2]
    for n in range(rows.size):
        u, i = rows[n], cols[n]
        known = 0 <= u < counts.size
        user = users.means[u] if known else nobody
        item = items.means[i] if 0 <= i < len(items.means) else nothing
        blends = shared.blends[stage_of(counts[u] if known else 0, shared.clocks.size)]
        _, raw = answer(xs[n], zs[n], user, item, shared)
        told[n] += share_of(blends) * (min(max(raw, low), high) - told[n])


@jit(
    *(PLACES, PLACES, NUMBERS, NUMBERS, TABLE, TABLE, WHOLE, NUMBERS),
    *(_USERS, _ITEMS, _SHARED, NEW_NUMBERS),
)
def learn(rows, cols, ratings, parts, xs, zs, loss, prior, users, items, shared, told):
    """Learn ratings one by one, of weights `parts` or 1; blend what was predicted just before each."""
    numbers, gains, t = shared.numbers, np.empty(shared.blends.shape[1]), shared.clocks.sum()
    for n in range(rows.size):
        u, i, rating = rows[n], cols[n], ratings[n]
        stage = stage_of(users.counts[u], shared.clocks.size)
        blends = shared.blends[stage]
        part = parts[n] if parts.size > 0 else 1.0
        base = told[n]
        if t == 0:  # the constant starts at the first rating
            base = numbers[1] = numbers[2] = shared.means[0, 0] = rating
        level, raw = answer(xs[n], zs[n], users.means[u], items.means[i], shared)
        model = min(max(raw, numbers[1]), numbers[2])
        blended = base + share_of(blends) * (model - base)
        if t > 0:
            told[n] = blended
        change = max(1.0 / (t + 1.0), 1.0 / MEMORY_OF_ERRORS)
        numbers[0] += part * (abs(blended - rating) - numbers[0]) * change
        numbers[1], numbers[2] = min(numbers[1], rating), max(numbers[2], rating)
        t += 1
        shared.clocks[stage] += 1
        users.counts[u] += 1
        unit = UNIT * numbers[0]
        trust = part * ramp(unit, ROUNDING * max(abs(numbers[1]), abs(numbers[2])))
        if trust > 0.0:
            for b in range(gains.size):
                mixed = base + b / (gains.size - 1.0) * (model - base)
                gains[b] = -loss_value((mixed - rating) / unit, loss)
            reweigh(blends, gains, trust * RATE, trust / (shared.clocks[stage] + 1.0))
            user = users.means[u], users.variances[u]
            item = items.means[i], items.variances[i]
            error = rating - raw
            adjust(xs[n], zs[n], user, item, shared, prior, level, error, unit, trust)
