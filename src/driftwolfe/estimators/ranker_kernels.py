"""Compiled loops of `Recommender`: who saw what, which items follow each other, and the experts' mixture."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.points.compiling import (
    ANSWER,
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
NEAR_WEIGHTS, FAR_WEIGHTS = np.exp(-np.arange(WINDOW) / NEAR), np.exp(-np.arange(WINDOW) / FAR)
#: Near pairs look back over so many events of an item; decaying popularity over so many of all.
FRESH, MEMORY = 100.0, 300.0
#: Powers of an item's number of events that its near and far pairs are divided by.
NEAR_POWER, FAR_POWER = 0.3, 0.5
#: Share of popularity in every other expert.
SMOOTHING = 0.1
#: Neighbours of an item, at most; lists have 2^level slots, at least these, those of neighbours at most those.
MOST_NEIGHBOURS, FIRST_LEVEL, LAST_LEVEL = 384, 2, 9
#: Popular items that are always looked at, of each kind of popularity.
POPULAR = 128
#: Weights of experts are kept for each power of 2 of the number of items that a user has seen.
BUCKETS = 8
#: Experts.
POPULARITY, RECENT, FAR_PAIRS, NEAR_PAIRS = range(4)
EXPERTS = 4
#: Growing scales are brought back to 1 at this size.
LARGEST_SCALE = 1e12

#: Columns of items: events, decaying popularity, scale of near pairs, powers of events.
EVENTS, DECAYING, SCALE, NEAR_SHARE, FAR_SHARE = range(5)
#: Columns of lists: where one starts, how many entries it has, its level (0: no list).
START, SIZE, LEVEL = range(3)
#: Rows of `free`.
OF_ITEMS, OF_USERS = 0, 1


class Ranks(NamedTuple):
    """All that the experts have learned. Users and items are numbered from 1; 0 is somebody new, or none."""

    items: Any  # a row for each item
    lists: Any  # where its neighbours are
    neighbours: Any  # their numbers
    counts: Any  # how often they were far and near, beside their numbers
    users: Any  # where the items of each user are
    seen: Any  # those items, the latest last: twice the number, and 1 more if it was liked
    free: Any  # for items and users: first unused list of each level, -1 for none; last: the end
    popular: Any  # the most popular items
    weights: Any  # of experts, a row for each bucket
    rounds: Any  # in which the weights of each bucket changed
    totals: Any  # of events + 1, of decaying popularity, and the scale of the latter
    clock: Any  # events learned, rows of items in use


class Scratch(NamedTuple):
    """Room to work in."""

    sums: Any  # of far and near pairs with a user's latest items
    marks: Any  # the last call that met each item; the calls so far at the end
    candidates: Any
    scores: Any  # of candidates, a row for each expert, and the mixture
    totals: Any  # of the scores of each expert
    chances: Any  # what each expert gives to one item


def new_ranks() -> Ranks:
    """Return the tables of a pool that has learned nothing."""
    free = np.full((2, 33), -1)
    free[:, -1] = 0
    return Ranks(
        items=np.zeros((1, 5)),
        lists=np.zeros((1, 3), np.int64),
        neighbours=np.zeros(0, np.int32),
        counts=np.zeros((0, 2), np.float32),
        users=np.zeros((1, 3), np.int64),
        seen=np.zeros(0, np.int32),
        free=free,
        popular=np.arange(1, 2 * POPULAR + 1),
        weights=np.full((BUCKETS, EXPERTS), 1.0 / EXPERTS),
        rounds=np.zeros(BUCKETS, np.int64),
        totals=np.array([0.0, 0.0, 1.0]),
        clock=np.array([0, 1]),
    )


def new_scratch(items: int) -> Scratch:
    """Return room to work in, for catalogues up to this size."""
    return Scratch(
        sums=np.zeros((items + 1, 2), np.float32),
        marks=np.zeros(items + 2, np.int64),
        candidates=np.zeros(items + 2, np.int32),
        scores=np.zeros((EXPERTS + 1, items + 1), np.float32),
        totals=np.zeros(EXPERTS),
        chances=np.zeros(EXPERTS),
    )


_typeof: Any = numba.typeof
_F32, RANKS, SCRATCH = numba.float32, _typeof(new_ranks()), _typeof(new_scratch(1))


@fast_jit()
def find(entries, start, size, item, flag):
    """Return the place of an item in a list, or -1; `flag` is a bit that may differ."""
    part, wanted, found = entries[start : start + size], np.int32(item | flag), np.int32(-1)
    for k in range(size):  # to the end and in 32 bits, so that vector units help
        found = max(found, np.int32(k) if np.int32(part[k] | flag) == wanted else np.int32(-1))
    return found


@jit()
def release(free, entries, start, level):
    """Hand a list back; the unused ones are linked, each to the start of the next."""
    entries[start] = free[level]
    free[level] = start


@jit()
def lengthen(table, row, free, entries):
    """Move a list that is full to one twice as long."""
    start, size, level = table[row, START], table[row, SIZE], table[row, LEVEL]
    longer = max(level + 1, FIRST_LEVEL)
    moved = free[longer]
    if moved >= 0:
        free[longer] = entries[moved]
    else:
        moved = free[-1]
        free[-1] += 1 << longer
    for k in range(size):
        entries[moved + k] = entries[start + k]
    if level:
        release(free, entries, start, level)
    table[row, START], table[row, LEVEL] = moved, longer


@jit()
def drop_rarest(ranks, row):
    """Drop the quarter of an item's neighbours that were the rarest; of equal ones, the earliest."""
    start, size = ranks.lists[row, START], ranks.lists[row, SIZE]
    values = ranks.counts[start : start + size, 0].copy()
    limit, kept = np.partition(values, size // 4)[size // 4], start
    equal = size // 4 - (values < limit).sum()  # so many at the limit go
    for k in range(size):
        equal -= values[k] == limit
        if values[k] > limit or (values[k] == limit and equal < 0):
            ranks.neighbours[kept] = ranks.neighbours[start + k]
            ranks.counts[kept] = ranks.counts[start + k]
            kept += 1
    ranks.lists[row, SIZE] = kept - start


@jit()
def add_neighbour(ranks, row, item):
    """Put an item at the end of another one's neighbours; return its place there."""
    lists, counts, old = ranks.lists, ranks.counts, ranks.lists[row, START]
    if lists[row, SIZE] == MOST_NEIGHBOURS:
        drop_rarest(ranks, row)
    size = lists[row, SIZE]
    if lists[row, LEVEL] == 0 or size == 1 << lists[row, LEVEL]:
        lengthen(lists, row, ranks.free[OF_ITEMS], ranks.neighbours)
        for k in range(size):
            counts[lists[row, START] + k] = counts[old + k]
    ranks.neighbours[lists[row, START] + size] = item
    counts[lists[row, START] + size] = 0.0
    lists[row, SIZE] = size + 1
    return size


@jit()
def count_pairs(ranks, user, item, weight):
    """Count the pairs of an item and the user's latest ones, in the rows of both."""
    history, lists = np.empty(WINDOW, np.int64), ranks.lists
    for d in range(latest(ranks, user, history)):
        row, other = history[d], item
        for _ in range(2 if row != item else 0):
            place = find(ranks.neighbours, lists[row, START], lists[row, SIZE], other, 0)
            if place < 0:
                place = add_neighbour(ranks, row, other)
            counts = ranks.counts[lists[row, START] + place]
            counts[0] += weight * FAR_WEIGHTS[d]
            counts[1] += weight * NEAR_WEIGHTS[d] * ranks.items[row, SCALE]
            row, other = other, row


@jit()
def remember(ranks, user, item, place, liked):
    """Put an item at the end of the user's list; if it was liked, it moves there from its place."""
    users, seen = ranks.users, ranks.seen
    if place >= 0 and not liked:
        return
    if place >= 0:
        users[user, SIZE] -= 1
        for k in range(users[user, START] + place, users[user, START] + users[user, SIZE]):
            seen[k] = seen[k + 1]
    elif users[user, LEVEL] == 0 or users[user, SIZE] == 1 << users[user, LEVEL]:
        lengthen(users, user, ranks.free[OF_USERS], seen)
    seen[users[user, START] + users[user, SIZE]] = 2 * item + liked
    users[user, SIZE] += 1


@jit()
def latest(ranks, user, found):
    """Fill in the latest items that a user liked, the last first; return how many."""
    number, end = 0, ranks.users[user, START] + ranks.users[user, SIZE]
    # Users who like little of what they see: the search ends somewhere.
    for back in range(min(ranks.users[user, SIZE], 4 * WINDOW)):
        entry = ranks.seen[end - 1 - back]
        if entry & 1 and number < found.size:
            found[number] = entry >> 1
            number += 1
    return number


@fast_jit()
def sum_pairs(ranks, history, length, scratch):
    """Add up the neighbours of the latest items, and list those not seen; return how many they are."""
    marks, sums, call, number = scratch.marks, scratch.sums, scratch.marks[-1], 0
    for d in range(length):
        start, size = ranks.lists[history[d], START], ranks.lists[history[d], SIZE]
        ids, counts = ranks.neighbours[start : start + size], ranks.counts[start : start + size]
        events, scale = ranks.items[history[d], EVENTS], ranks.items[history[d], SCALE]
        far = _F32(NEAR_WEIGHTS[d] / math.sqrt(events + 3.0))
        near = _F32(NEAR_WEIGHTS[d] / (math.sqrt(min(events, FRESH) + 3.0) * scale))
        for k in range(size):
            item = np.uint64(ids[k])  # unsigned indices need no checks
            new = marks[item] != call
            marks[item] = call
            scratch.candidates[number] = item
            number += new
            old_far, old_near = sums[item, 0], sums[item, 1]
            if new:
                old_far = old_near = _F32(0.0)
            sums[item, 0] = old_far + far * counts[k, 0]
            sums[item, 1] = old_near + near * counts[k, 1]
    return number


@fast_jit()
def score_each(ranks, number, scratch):
    """Let each expert score the candidates, and add up the scores."""
    items, scores = ranks.items, scratch.scores
    popularity = recent = far_pairs = near_pairs = 0.0
    for c in range(number):
        item = np.uint64(scratch.candidates[c])
        far = scratch.sums[item, 0] * items[item, FAR_SHARE]
        near = scratch.sums[item, 1] * items[item, NEAR_SHARE]
        scores[POPULARITY, c] = items[item, EVENTS] + 1.0
        scores[RECENT, c] = items[item, DECAYING]
        scores[FAR_PAIRS, c] = far * far
        scores[NEAR_PAIRS, c] = near * near
        popularity += items[item, EVENTS] + 1.0
        recent += items[item, DECAYING]
        far_pairs += far * far
        near_pairs += near * near
    totals = scratch.totals
    totals[POPULARITY], totals[RECENT] = popularity, recent
    totals[FAR_PAIRS], totals[NEAR_PAIRS] = far_pairs, near_pairs


@jit()
def score(ranks, user, everything, scratch):
    """Let the experts score neighbours and popular items, or all, that a user has not seen; return how many."""
    items, totals, marks = ranks.items, scratch.totals, scratch.marks
    history, (popularity, recent, _) = np.empty(LOOK_BACK, np.int64), ranks.totals
    marks[-1] += 1
    for place in range(ranks.users[user, SIZE]):
        item = ranks.seen[ranks.users[user, START] + place] >> 1
        marks[item] = marks[-1]
        popularity -= items[item, EVENTS] + 1.0
        recent -= items[item, DECAYING]
    number = sum_pairs(ranks, history, latest(ranks, user, history), scratch)
    for k in range(1, ranks.clock[1] if everything else ranks.popular.size + 1):
        item = k if everything else ranks.popular[k - 1]
        if item < ranks.clock[1] and marks[item] != marks[-1]:
            marks[item] = marks[-1]
            scratch.candidates[number] = item
            scratch.sums[item] = 0.0
            number += 1
    score_each(ranks, number, scratch)
    # Items that are not candidates have no pairs, but they have popularity.
    totals[POPULARITY] = max(totals[POPULARITY], popularity)
    if recent > 1e-9 * ranks.totals[RECENT]:  # else what is left is rounding
        totals[RECENT] = max(totals[RECENT], recent)
    return number


@jit()
def chances_of(ranks, item, scratch):
    """Fill in what each expert gives to an item that the user has not seen."""
    totals, chances, row = scratch.totals, scratch.chances, ranks.items[item]
    chances[:] = 0.0
    chances[POPULARITY], chances[RECENT] = row[EVENTS] + 1.0, row[DECAYING]
    if scratch.marks[item] == scratch.marks[-1]:
        chances[FAR_PAIRS] = (scratch.sums[item, 0] * row[FAR_SHARE]) ** 2
        chances[NEAR_PAIRS] = (scratch.sums[item, 1] * row[NEAR_SHARE]) ** 2
    chances[POPULARITY] /= totals[POPULARITY]
    for e in range(1, EXPERTS):
        own = chances[e] / totals[e] if totals[e] > 0.0 else chances[POPULARITY]
        chances[e] = (1.0 - SMOOTHING) * own + SMOOTHING * chances[POPULARITY]


@fast_jit()
def mix(weights, number, scratch):
    """Add up the experts' probabilities, weighted."""
    totals, scores = scratch.totals, scratch.scores
    factors, plain = np.zeros(EXPERTS, np.float32), weights[POPULARITY]
    for e in range(1, EXPERTS):
        own = (1.0 - SMOOTHING) * weights[e] if totals[e] > 0.0 else 0.0
        plain += weights[e] - own
        factors[e] = own / max(totals[e], 1e-300)
    factors[POPULARITY] = plain / max(totals[POPULARITY], 1.0)
    scores[EXPERTS, :number] = 0.0
    for e in range(EXPERTS):
        for c in range(number):
            scores[EXPERTS, c] += factors[e] * scores[e, c]


@jit()
def reweigh(weights, rounds, row, chances):
    """Bayes' rule, and a share of 1/(t + 1) for all: no rate is needed for the logarithmic loss."""
    rounds[row] += 1
    share, total = 1.0 / (rounds[row] + 1.0), 0.0
    for e in range(EXPERTS):
        weights[row, e] *= chances[e]
        total += weights[row, e]
    for e in range(EXPERTS):
        weights[row, e] = (1.0 - share) * weights[row, e] / total + share / EXPERTS


@jit()
def add_item(ranks, item):
    """Begin with an item that is new."""
    ranks.clock[1] = item + 1  # items are numbered in order of appearance
    ranks.totals[POPULARITY] += 1.0
    ranks.items[item] = 1.0
    ranks.items[item, EVENTS] = ranks.items[item, DECAYING] = 0.0
    ranks.lists[item] = 0


@jit()
def count_item(ranks, item, weight):
    """Count one event of an item."""
    row, totals = ranks.items[item], ranks.totals
    row[EVENTS] += weight
    row[DECAYING] += weight * totals[-1]
    totals[POPULARITY] += weight
    totals[RECENT] += weight * totals[-1]
    row[NEAR_SHARE] = (row[EVENTS] + 1.0) ** -NEAR_POWER
    row[FAR_SHARE] = (row[EVENTS] + 1.0) ** -FAR_POWER
    row[SCALE] *= 1.0 + 1.0 / FRESH  # instead of all its near pairs falling
    if row[SCALE] > LARGEST_SCALE:
        start = ranks.lists[item, START]
        ranks.counts[start : start + ranks.lists[item, SIZE], 1] /= _F32(row[SCALE])
        row[SCALE] = 1.0


@jit()
def fade(ranks, elapsed):
    """Let decaying popularity fall, by a scale that grows instead."""
    totals = ranks.totals
    totals[-1] *= math.exp(elapsed / MEMORY)
    if totals[-1] > LARGEST_SCALE:
        ranks.items[: ranks.clock[1], DECAYING] /= totals[-1]
        totals[RECENT] /= totals[-1]
        totals[-1] = 1.0


@jit()
def rank_of(ranks, user, item, number, scratch):
    """Return how many candidates have a higher score than an item, or the same and an earlier place."""
    place = find(scratch.candidates, 0, number, item, 0)
    if place < 0:
        number = score(ranks, user, True, scratch)
        place = find(scratch.candidates, 0, number, item, 0)
    mix(ranks.weights[bucket(ranks, user)], number, scratch)
    mixture, better = scratch.scores[EXPERTS], 0
    for c in range(number):
        better += mixture[c] > mixture[place]
    for c in range(place):
        better += mixture[c] == mixture[place]
    return better


@jit()
def bucket(ranks, user):
    """Return the bucket of a user: the bits of the number of items seen."""
    size, bits = ranks.users[user, SIZE], 0
    while size >> bits and bits < BUCKETS - 1:
        bits += 1
    return bits


@jit()
def learn_one(ranks, user, item, weight, elapsed, ranked, scratch):
    """Learn one event; return the rank of the item before, -1 if it was new or seen or if not asked."""
    rank = -1
    place = find(ranks.seen, ranks.users[user, START], ranks.users[user, SIZE], 2 * item, 1)
    if item >= ranks.clock[1]:
        add_item(ranks, item)
    elif weight > 0.0 and place < 0:
        number = score(ranks, user, False, scratch)
        chances_of(ranks, item, scratch)
        if ranked:
            rank = rank_of(ranks, user, item, number, scratch)
        reweigh(ranks.weights, ranks.rounds, bucket(ranks, user), scratch.chances)
    fade(ranks, elapsed)
    if weight > 0.0:
        count_item(ranks, item, weight)
        count_pairs(ranks, user, item, weight)
    remember(ranks, user, item, place, weight > 0.0)
    ranks.clock[0] += 1
    return rank


@jit()
def has_room(ranks, user):
    """Whether every neighbour's list may double, and the user's."""
    return (
        ranks.free[OF_ITEMS, -1] + ((WINDOW + 2) << LAST_LEVEL) <= ranks.neighbours.size
        and ranks.free[OF_USERS, -1] + 4 * (ranks.users[user, SIZE] + 1) <= ranks.seen.size
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
    learn_one(ranks, user, item, weight, 1.0 if weight > 0.0 else 0.0, False, scratch)
    return True


@jit(PLACES, WHOLE, RANKS, SCRATCH, numba.int64[:, ::1], NEW_TABLE)
def recommend(users, most, ranks, scratch, best, chances):
    """Fill in the best items of each user and their probabilities; 0 where there are no more."""
    for n in range(users.size):
        number, kept, bound = score(ranks, users[n], False, scratch), 0, -math.inf
        if number < most:
            number = score(ranks, users[n], True, scratch)
        mix(ranks.weights[bucket(ranks, users[n])], number, scratch)
        for c in range(number if most else 0):
            value = np.float64(scratch.scores[EXPERTS, c])
            if value <= bound:
                continue
            place = min(kept, most - 1)
            kept = place + 1
            while place > 0 and chances[n, place - 1] < value:
                chances[n, place], best[n, place] = chances[n, place - 1], best[n, place - 1]
                place -= 1
            chances[n, place], best[n, place] = value, scratch.candidates[c]
            if kept == most:
                bound = chances[n, most - 1]
        best[n, kept:] = 0
        chances[n, kept:] = 0.0


@jit(PLACES, PLACES, RANKS, SCRATCH, NEW_TABLE)
def predict(users, items, ranks, scratch, chances):
    """Fill in the probability that each expert gives to each pair: 0 for what is new or was seen."""
    scored = -1
    for n in range(users.size):
        start, size = ranks.users[users[n], START], ranks.users[users[n], SIZE]
        known = items[n] == 0 or find(ranks.seen, start, size, 2 * items[n], 1) >= 0
        if not known:
            if users[n] != scored:  # many items of one user are scored at once
                score(ranks, users[n], False, scratch)
                scored = users[n]
            chances_of(ranks, items[n], scratch)
        for e in range(EXPERTS):
            chances[n, e] = 0.0 if known else scratch.chances[e]
