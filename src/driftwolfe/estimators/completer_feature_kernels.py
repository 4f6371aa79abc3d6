"""Compiled loops of `MatrixCompleter` with side features."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from driftwolfe.estimators.completer_kernels import (
    MEMORY_OF_ERRORS,
    RATE,
    ROUNDING,
    UNIT,
    clip,
    loss_value,
    ramp,
)
from driftwolfe.estimators.completer_tables import ItemWeights, SharedWeights, UserWeights
from driftwolfe.estimators.core.weight_kernels import reweigh
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
#: Fraction of the prior variance that a user's weights regain with each rating, up to all of it.
DRIFT = 0.003


_group: Any = numba.types.NamedTuple
_alike: Any = numba.types.NamedUniTuple
_USERS = _group((NEW_TABLE, NEW_TABLE, NEW_PLACES), UserWeights)
_ITEMS = _alike(NEW_TABLE, 2, ItemWeights)
_SHARED = _group((NEW_TABLE,) * 3 + (NEW_NUMBERS, NEW_PLACES), SharedWeights)


@jit(
    *(PLACES, PLACES, NUMBERS, NUMBERS, TABLE, TABLE, WHOLE, NUMBERS, NEW_NUMBERS),
    *(_USERS, _ITEMS, _SHARED, NEW_NUMBERS),
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
        change = clip(1.0 / (t + 1.0), 1.0 / MEMORY_OF_ERRORS, 1.0)
        numbers[0] += part * (abs(blended - rating) - numbers[0]) * change
        numbers[1] = clip(rating, -math.inf, numbers[1])
        numbers[2] = clip(rating, numbers[2], math.inf)
        t += 1
        clocks[stage] += 1
        users.counts[u] += 1
        unit = UNIT * numbers[0]
        trust = part * ramp(unit, ROUNDING * clip(abs(numbers[1]), abs(numbers[2]), math.inf))
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
