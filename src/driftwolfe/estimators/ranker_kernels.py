"""Compiled loops of `Recommender`: who saw what, which items follow each other, and the experts' mixture."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.points.compiling import (
    ANSWER,
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

#: Latest items of a user that a new one is paired with, and those that recommendations start from.
WINDOW, LOOK_BACK = 16, 10
#: A pair of items counts less, the more items lie between them: how fast, for near and for far pairs.
NEAR, FAR = 5.0, 50.0
#: Fresh counts look back over so many events of an item.
FRESH = 100.0
#: Levels of the smallest and largest list of neighbours: 2^level slots, of which 3/4 are used.
FIRST_LEVEL, LAST_LEVEL = 3, 9
#: Smallest list of items seen by one user, as a level.
FIRST_SEEN_LEVEL = 2
#: Catalogues up to this size are searched wholly; in larger ones, neighbours and popular items.
SMALL_CATALOGUE = 2048
#: Decaying popularity looks back about so many events.
MEMORIES = (3000.0, 300.0)
#: Powers of the number of events that co-occurrence is divided by.
POWERS = (0.3, 0.5)
#: Share of popularity in every other expert.
SMOOTHING = 0.1
#: Weights of experts are kept for each power of 2 of the number of items that a user has seen.
BUCKETS = 8
#: Factors of the low-rank expert.
RANK = 8
#: Kinds of counts of pairs: far, and near that fade.
KINDS = 2
#: Experts: popularity, decaying popularity, co-occurrence, low rank.
FIRST_PAIRS = 1 + len(MEMORIES)
LOW_RANK = FIRST_PAIRS + KINDS * len(POWERS)
EXPERTS = LOW_RANK + 1
#: Growing scales are brought back to 1 at this size.
LARGEST_SCALE = 1e12

#: Rows of `Ranks.items`: events, their powers, scale of fresh counts, decaying popularity.
EVENTS, POWER, SCALE, DECAYING = 0, 1, 3, 4
ITEM_ROWS = DECAYING + len(MEMORIES)
#: Columns of lists: where one starts, how many entries it has, its level (-1: no list).
START, SIZE, LEVEL = 0, 1, 2


class Ranks(NamedTuple):
    """All that the experts have learned."""

    items: Any  # a column for each item
    lists: Any  # where its neighbours are
    neighbours: Any  # their numbers, hashed; -1 is an empty slot
    counts: Any  # near, far and fresh pairs, beside the neighbours
    free: Any  # first unused list of each level, -1 for none; last: the end of those in use
    users: Any  # where the items of each user are
    seen: Any  # those items, the latest last; ~item where it was only seen
    free_seen: Any  # as `free`
    factors: Any  # of the low-rank expert, a column for each item
    popular: Any  # the most popular items
    weights: Any  # of experts, a row for each bucket
    rounds: Any  # in which the weights of each bucket changed
    totals: Any  # of events + 1 over items, and of decaying popularity; scales of these
    clock: Any  # events learned, items known


class Scratch(NamedTuple):
    """Room to work in, zero between calls."""

    sums: Any  # of the counts of each item, from 1 on
    marks: Any  # 1: a candidate, 2: seen
    candidates: Any
    scores: Any  # of candidates, a row for each expert
    mixture: Any  # the scores of all together
    totals: Any  # of the scores of each expert
    chances: Any  # what each expert gives to one item


_F32, _I32 = numba.float32, numba.int32
_group: Any = numba.types.NamedTuple
_PLACE_TABLE = numba.int64[:, ::1]
RANKS = _group(
    (
        *(_F32[:, ::1], _PLACE_TABLE, _I32[::1], _F32[:, ::1], NEW_PLACES),
        *(_PLACE_TABLE, _I32[::1], NEW_PLACES, _F32[:, ::1], NEW_PLACES),
        *(NEW_TABLE, NEW_PLACES, NEW_NUMBERS, NEW_PLACES),
    ),
    Ranks,
)
SCRATCH = _group(
    (_F32[:, ::1], numba.int8[::1], NEW_PLACES, _F32[:, ::1], _F32[::1], NEW_NUMBERS, NEW_NUMBERS),
    Scratch,
)


@jit()
def allocate(free, links, level):
    """Return the start of an unused list."""
    start = free[level]
    if start >= 0:
        free[level] = links[start] - 1
        return start
    start = free[-1]
    free[-1] += 1 << level
    return start


@jit()
def release(free, links, start, level):
    """Hand a list back; the unused ones are linked, each to the start of the next."""
    links[start] = free[level] + 1
    free[level] = start


@jit()
def slot_of(ranks, row, item):
    """Return where a neighbour is, or the empty slot for it."""
    start, last = ranks.lists[row, START], (1 << ranks.lists[row, LEVEL]) - 1
    # Multiplicative hashing: the high bits of a product are well mixed.
    place = ((item * 2654435769) & 0xFFFFFFFF) >> 16 & last
    while True:
        held = ranks.neighbours[start + place]
        if held == item or held < 0:
            return start + place
        place = (place + 1) & last


@jit()
def resize(ranks, row):
    """Make room for one more neighbour: in a list twice as long, or by dropping the rarest quarter."""
    start, size, level = ranks.lists[row]
    slots = 0 if level < 0 else 1 << level
    ids = ranks.neighbours[start : start + slots].copy()
    counts = ranks.counts[start : start + slots].copy()
    least = -1.0
    if level < LAST_LEVEL:
        if level >= 0:
            release(ranks.free, ranks.neighbours, start, level)
        level = max(level + 1, FIRST_LEVEL)
        ranks.lists[row, START] = start = allocate(ranks.free, ranks.neighbours, level)
        ranks.lists[row, LEVEL] = level
    else:
        least = np.partition(counts[ids >= 0, 0], size // 4)[size // 4]
    end = start + (1 << level)
    ranks.neighbours[start:end] = -1
    ranks.counts[start:end] = 0.0
    kept = 0
    for old in range(slots):
        if ids[old] >= 0 and counts[old, 0] > least:
            new = slot_of(ranks, row, ids[old])
            ranks.neighbours[new] = ids[old]
            ranks.counts[new] = counts[old]
            kept += 1
    ranks.lists[row, SIZE] = kept


@jit()
def count_pair(ranks, row, item, near, far):
    """Count that an item came near another one, whose row it is."""
    size, level = ranks.lists[row, SIZE], ranks.lists[row, LEVEL]
    slot = slot_of(ranks, row, item) if level >= 0 else -1
    if slot < 0 or ranks.neighbours[slot] < 0:
        if level < 0 or 4 * (size + 1) > 3 << level:
            resize(ranks, row)
            slot = slot_of(ranks, row, item)
        ranks.neighbours[slot] = item
        ranks.lists[row, SIZE] += 1
    ranks.counts[slot, 0] += far
    ranks.counts[slot, 1] += near * ranks.items[SCALE, row]


@jit()
def remember(ranks, user, item, liked):
    """Put an item at the end of the user's list; what was there of it moves. Return what was there."""
    start, size, level = ranks.users[user]
    known, place = 0, start
    while place < start + size:
        entry = ranks.seen[place]
        if entry == item or ~entry == item:
            known = 1 if entry < 0 else 2
            break
        place += 1
    if known > 0 and not liked:
        return known
    if known > 0:
        for later in range(place, start + size - 1):
            ranks.seen[later] = ranks.seen[later + 1]
        size -= 1
    elif level < 0 or size == 1 << level:
        longer = max(level + 1, FIRST_SEEN_LEVEL)
        moved = allocate(ranks.free_seen, ranks.seen, longer)
        for k in range(size):
            ranks.seen[moved + k] = ranks.seen[start + k]
        if level >= 0:
            release(ranks.free_seen, ranks.seen, start, level)
        start = moved
        ranks.users[user, START], ranks.users[user, LEVEL] = start, longer
    ranks.seen[start + size] = item if liked else ~item
    ranks.users[user, SIZE] = size + 1
    return known


@jit()
def latest(ranks, user, found):
    """Fill in the latest items that a user liked, the last first; return how many."""
    number = 0
    if user >= 0:
        start, size, _ = ranks.users[user]
        # Users who like little of what they see: the search ends somewhere.
        for back in range(min(size, 4 * WINDOW)):
            entry = ranks.seen[start + size - 1 - back]
            if entry >= 0:
                found[number] = entry
                number += 1
                if number == found.size:
                    break
    return number


@jit()
def bucket(ranks, user):
    """Return the bucket of a user: the bits of the number of items seen."""
    size, bits = 0 if user < 0 else ranks.users[user, SIZE], 0
    while size > 0 and bits < BUCKETS - 1:
        size >>= 1
        bits += 1
    return bits


@fast_jit()
def sum_pairs(ranks, history, length, sums, taste):
    """Add up the neighbours of a user's latest items, and their factors."""
    taste[:] = 0.0
    for d in range(length):
        item = history[d]
        events = ranks.items[EVENTS, item]
        near = math.exp(-d / NEAR)
        weight = _F32(near / math.sqrt(events + 3.0))
        fresh = _F32(near / (math.sqrt(min(events, FRESH) + 3.0) * ranks.items[SCALE, item]))
        for k in range(taste.size):
            taste[k] += _F32(near) * ranks.factors[k, item]
        start, _, level = ranks.lists[item]
        end = start + (1 << level) if level >= 0 else start
        ids, counts = ranks.neighbours[start:end], ranks.counts[start:end]
        for k in range(ids.size):
            # Empty slots have count 0, and row 0 of the sums. Unsigned indices need no checks.
            row = np.uint64(ids[k] + 1)
            far, near = sums[row, 0] + weight * counts[k, 0], sums[row, 1] + fresh * counts[k, 1]
            sums[row, 0], sums[row, 1] = far, near


@jit()
def mark_seen(ranks, user, mark, marks):
    """Mark the items that a user has seen."""
    if user >= 0:
        start, size, _ = ranks.users[user]
        for place in range(start, start + size):
            entry = ranks.seen[place]
            marks[entry if entry >= 0 else ~entry] = mark


@jit()
def find_candidates(ranks, user, history, length, everything, scratch):
    """List the popular and near items that the user has not seen; return how many. All are not listed."""
    marks, candidates, number = scratch.marks, scratch.candidates, 0
    if everything:
        return ranks.clock[1]
    mark_seen(ranks, user, 2, marks)
    for k in range(ranks.popular.size):
        item = ranks.popular[k]
        if marks[item] == 0:
            marks[item] = 1
            candidates[number] = item
            number += 1
    for d in range(length):
        first, _, level = ranks.lists[history[d]]
        for slot in range(first, first + (1 << level) if level >= 0 else first):
            item = ranks.neighbours[slot]
            if item >= 0 and marks[item] == 0:
                marks[item] = 1
                candidates[number] = item
                number += 1
    for k in range(number):
        marks[candidates[k]] = 0
    mark_seen(ranks, user, 0, marks)
    return number


@fast_jit()
def score_each(ranks, candidates, number, everything, sums, taste, scores):
    """Let each expert score the candidates."""
    items, factors, low_rank = ranks.items, ranks.factors, scores[LOW_RANK]
    # The scales grow instead of all other numbers falling.
    long = _F32(1.0 / ranks.totals[FIRST_PAIRS])
    short = _F32(1.0 / ranks.totals[FIRST_PAIRS + 1])
    low_rank[:number] = 0.0
    if everything:  # the same in order, so that vector units help
        for c in range(number):
            scores[0, c] = items[EVENTS, c] + _F32(1.0)
            scores[1, c] = long * items[DECAYING, c]
            scores[2, c] = short * items[DECAYING + 1, c]
        for c in range(number):
            far, fresh = sums[c + 1, 0], sums[c + 1, 1]
            low, high = items[POWER, c], items[POWER + 1, c]
            scores[3, c], scores[4, c] = (far * low) ** 2, (far * high) ** 2
            scores[5, c], scores[6, c] = (fresh * low) ** 2, (fresh * high) ** 2
        for k in range(RANK):
            part = taste[k]
            for c in range(number):
                low_rank[c] += part * factors[k, c]
    else:
        for c in range(number):
            item = candidates[c]
            scores[0, c] = items[EVENTS, item] + _F32(1.0)
            scores[1, c] = long * items[DECAYING, item]
            scores[2, c] = short * items[DECAYING + 1, item]
            far, fresh = sums[item + 1, 0], sums[item + 1, 1]
            low, high = items[POWER, item], items[POWER + 1, item]
            scores[3, c], scores[4, c] = (far * low) ** 2, (far * high) ** 2
            scores[5, c], scores[6, c] = (fresh * low) ** 2, (fresh * high) ** 2
        for k in range(RANK):
            part = taste[k]
            for c in range(number):
                low_rank[c] += part * factors[k, candidates[c]]
    for c in range(number):
        low_rank[c] = max(low_rank[c], _F32(0.0)) ** 2


@fast_jit()
def add_up(scores, number, totals):
    """Add up the scores of each expert."""
    for e in range(EXPERTS):
        total = _F32(0.0)
        for c in range(number):
            total += scores[e, c]
        totals[e] = total


@jit()
def add_unlisted(ranks, user, totals):
    """Let the totals of popularity be those of all items that the user has not seen."""
    for m in range(FIRST_PAIRS):
        column, offset, unit = EVENTS, 1.0, 1.0
        if m > 0:
            column, offset, unit = DECAYING + m - 1, 0.0, 1.0 / ranks.totals[FIRST_PAIRS + m - 1]
        rest, start, size = ranks.totals[m], 0, 0
        if user >= 0:
            start, size, _ = ranks.users[user]
        for place in range(start, start + size):
            entry = ranks.seen[place]
            rest -= ranks.items[column, entry if entry >= 0 else ~entry] + offset
        totals[m] = max(totals[m], unit * rest)


@jit()
def clear_sums(ranks, history, length, everything, sums):
    """Set the sums to 0 again."""
    if everything:
        sums[: ranks.clock[1] + 1] = 0.0
        return
    sums[0] = 0.0
    for d in range(length):
        start, _, level = ranks.lists[history[d]]
        for slot in range(start, start + (1 << level) if level >= 0 else start):
            sums[ranks.neighbours[slot] + 1] = 0.0


@jit()
def score(ranks, user, everything, scratch):
    """Let all experts score the candidates of a user, with their totals; return how many there are."""
    history, taste = np.empty(LOOK_BACK, np.int64), np.zeros(RANK, np.float32)
    candidates, scores, sums = scratch.candidates, scratch.scores, scratch.sums
    length = latest(ranks, user, history)
    number = find_candidates(ranks, user, history, length, everything, scratch)
    sum_pairs(ranks, history, length, sums, taste)
    score_each(ranks, candidates, number, everything, sums, taste, scores)
    clear_sums(ranks, history, length, everything, sums)
    if everything and user >= 0:
        start, size, _ = ranks.users[user]
        for place in range(start, start + size):
            entry = ranks.seen[place]
            for e in range(EXPERTS):
                scores[e, entry if entry >= 0 else ~entry] = 0.0
    add_up(scores, number, scratch.totals)
    if not everything:
        add_unlisted(ranks, user, scratch.totals)
    return number


@jit()
def chances_of(ranks, item, number, everything, scratch):
    """Fill in what each expert gives to an item that the user has not seen; return its place, or -1."""
    totals, scores, place = scratch.totals, scratch.scores, item if everything else -1
    if not everything:
        for c in range(number):
            if scratch.candidates[c] == item:
                place = c
    base = (ranks.items[EVENTS, item] + 1.0) / totals[0]
    for e in range(EXPERTS):
        own = base
        if e > 0 and totals[e] > 0.0:
            if place >= 0:
                own = scores[e, place] / totals[e]
            elif e < FIRST_PAIRS:
                unit = ranks.totals[FIRST_PAIRS + e - 1]
                own = ranks.items[DECAYING + e - 1, item] / (unit * totals[e])
            else:
                own = 0.0
        scratch.chances[e] = (1.0 - SMOOTHING) * own + SMOOTHING * base
    return place


@fast_jit()
def mix(weights, number, scratch):
    """Add up the experts' probabilities, weighted."""
    totals, scores, mixture = scratch.totals, scratch.scores, scratch.mixture
    mixture[:number] = 0.0
    plain = 0.0
    for e in range(1, EXPERTS):
        if totals[e] > 0.0:
            plain += SMOOTHING * weights[e]
            factor = _F32((1.0 - SMOOTHING) * weights[e] / totals[e])
            for c in range(number):
                mixture[c] += factor * scores[e, c]
        else:
            plain += weights[e]
    if totals[0] > 0.0:
        factor = _F32((plain + weights[0]) / totals[0])
        for c in range(number):
            mixture[c] += factor * scores[0, c]


@jit()
def reweigh(ranks, user, chances):
    """Bayes' rule, and a share of 1/(t + 1) for all: no rate is needed for the logarithmic loss."""
    row = bucket(ranks, user)
    weights, total = ranks.weights[row], 0.0
    ranks.rounds[row] += 1
    share = 1.0 / (ranks.rounds[row] + 1.0)
    for e in range(EXPERTS):
        weights[e] *= chances[e]
        total += weights[e]
    for e in range(EXPERTS):
        weights[e] = (1.0 - share) * weights[e] / total + share / EXPERTS


@jit()
def count_item(ranks, item, weight, elapsed):
    """Count one event of an item."""
    row, totals = ranks.items[:, item], ranks.totals
    row[EVENTS] += weight
    totals[0] += weight
    for p in range(len(POWERS)):
        row[POWER + p] = (row[EVENTS] + 1.0) ** -POWERS[p]
    row[SCALE] *= 1.0 + 1.0 / FRESH
    if row[SCALE] > LARGEST_SCALE:
        start, _, level = ranks.lists[item]
        for slot in range(start, start + (1 << level) if level >= 0 else start):
            ranks.counts[slot, 1] /= row[SCALE]
        row[SCALE] = 1.0
    for m in range(len(MEMORIES)):
        scale = FIRST_PAIRS + m
        totals[scale] *= math.exp(elapsed / MEMORIES[m])
        if totals[scale] > LARGEST_SCALE:
            for other in range(ranks.clock[1]):
                ranks.items[DECAYING + m, other] /= totals[scale]
            totals[1 + m] /= totals[scale]
            totals[scale] = 1.0
        row[DECAYING + m] += weight * totals[scale]
        totals[1 + m] += weight * totals[scale]


@jit()
def rank_of(place, number, mixture):
    """Return how many candidates have a higher score, or the same and an earlier place."""
    better, own = 0, mixture[place]
    for c in range(number):
        better += mixture[c] > own
    for c in range(place):
        better += mixture[c] == own
    return better


@jit()
def learn_one(ranks, user, item, weight, elapsed, ranked, scratch):
    """Learn one event; return the rank of the item before, -1 if it was new or seen, -2 if not asked."""
    history, rank = np.empty(WINDOW, np.int64), -1
    new = item >= ranks.clock[1]
    if new:  # items are numbered in order of appearance
        ranks.clock[1] = item + 1
        ranks.totals[0] += 1.0
        ranks.items[:, item] = 0.0
        ranks.items[POWER : POWER + len(POWERS), item] = 1.0
        ranks.items[SCALE, item] = 1.0
        ranks.lists[item] = 0
        ranks.lists[item, LEVEL] = -1
        ranks.factors[:, item] = 0.0
    if weight > 0.0 and not new:
        start, size, _ = ranks.users[user]
        known = False
        for place in range(start, start + size):
            known = known or ranks.seen[place] == item or ~ranks.seen[place] == item
        if not known:
            everything = ranks.clock[1] <= SMALL_CATALOGUE
            number = score(ranks, user, everything, scratch)
            place = chances_of(ranks, item, number, everything, scratch)
            if ranked:
                mix(ranks.weights[bucket(ranks, user)], number, scratch)
                rank = rank_of(place, number, scratch.mixture) if place >= 0 else number
            reweigh(ranks, user, scratch.chances)
    if weight > 0.0:
        count_item(ranks, item, weight, elapsed)
        for d in range(latest(ranks, user, history)):
            if history[d] != item:
                near, far = weight * math.exp(-d / NEAR), weight * math.exp(-d / FAR)
                count_pair(ranks, history[d], item, near, far)
                count_pair(ranks, item, history[d], near, far)
    remember(ranks, user, item, weight > 0.0)
    ranks.clock[0] += 1
    return rank


@jit()
def has_room(ranks, user):
    """Whether every neighbour's list may double, and the user's."""
    level = max(ranks.users[user, LEVEL] + 1, FIRST_SEEN_LEVEL)
    room = (WINDOW + 1) << LAST_LEVEL
    return (
        ranks.free[-1] + room <= ranks.neighbours.size
        and ranks.free_seen[-1] + (1 << level) <= ranks.seen.size
    )


@jit(PLACES, PLACES, NUMBERS, NUMBERS, ANSWER, RANKS, SCRATCH, NEW_PLACES)
def learn(users, items, weights, elapsed, ranked, ranks, scratch, found):
    """Learn events until the lists may be too small for one more; return how many were learned."""
    for n in range(users.size):
        if not has_room(ranks, users[n]):
            return n
        found[n] = learn_one(ranks, users[n], items[n], weights[n], elapsed[n], ranked, scratch)
    return users.size


@jit(WHOLE, WHOLE, NUMBER, RANKS, SCRATCH)
def learn_single(user, item, weight, ranks, scratch):
    """Learn one event, and return whether there was room: as `learn`, with fewer arrays to hand over."""
    if not has_room(ranks, user):
        return False
    learn_one(ranks, user, item, weight, 1.0, False, scratch)
    return True


@jit(PLACES, WHOLE, ANSWER, RANKS, SCRATCH, numba.int64[:, ::1], NEW_TABLE)
def recommend(users, most, everything, ranks, scratch, best, chances):
    """Fill in the best items of each user and their probabilities; -1 where there are no more."""
    everything = everything or ranks.clock[1] <= SMALL_CATALOGUE
    for n in range(users.size):
        number, kept, scores = score(ranks, users[n], everything, scratch), 0, scratch.mixture
        mix(ranks.weights[bucket(ranks, users[n])], number, scratch)
        if everything:
            mark_seen(ranks, users[n], -1, scores)
        bound = -0.5 if most else math.inf  # seen items have -1
        for c in range(number):
            value = np.float64(scores[c])
            if value <= bound:
                continue
            place = kept if kept < most else most - 1
            kept = place + 1
            while place > 0 and chances[n, place - 1] < value:
                chances[n, place], best[n, place] = chances[n, place - 1], best[n, place - 1]
                place -= 1
            chances[n, place], best[n, place] = value, c if everything else scratch.candidates[c]
            if kept == most:
                bound = chances[n, most - 1]
        best[n, kept:] = -1
        chances[n, kept:] = 0.0


@jit(PLACES, PLACES, RANKS, SCRATCH, NEW_TABLE)
def predict(users, items, ranks, scratch, chances):
    """Fill in the probability that each expert gives to each pair: 0 for what is new or was seen."""
    everything, number, scored = ranks.clock[1] <= SMALL_CATALOGUE, 0, -2
    for n in range(users.size):
        user, item, known = users[n], items[n], items[n] < 0
        if user >= 0:
            start, size, _ = ranks.users[user]
            for place in range(start, start + size):
                known = known or ranks.seen[place] == item or ~ranks.seen[place] == item
        if known:
            chances[n] = 0.0
        else:
            if user != scored:  # many items of one user are scored at once
                number, scored = score(ranks, user, everything, scratch), user
            chances_of(ranks, item, number, everything, scratch)
            chances[n] = scratch.chances


@fast_jit(RANKS, _F32[:, ::1], _F32[:, ::1])
def multiply(ranks, vectors, product):
    """Multiply the matrix of far pairs, over the roots of both numbers of events, by some columns."""
    for item in range(ranks.clock[1]):
        start, _, level = ranks.lists[item]
        product[item] = 0.0
        scale = _F32(1.0 / math.sqrt(ranks.items[EVENTS, item] + 3.0))
        for slot in range(start, start + (1 << level) if level >= 0 else start):
            other = ranks.neighbours[slot]
            if other >= 0:
                weight = (
                    scale
                    * ranks.counts[slot, 0]
                    / _F32(math.sqrt(ranks.items[EVENTS, other] + 3.0))
                )
                for k in range(vectors.shape[1]):
                    product[item, k] += weight * vectors[other, k]
