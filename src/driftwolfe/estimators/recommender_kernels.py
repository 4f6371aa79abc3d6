"""Compiled loop of `Recommender`: who saw what, which items follow each other, and the experts' mixture."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.points.compiling import NEW_NUMBERS, NEW_TABLE, NUMBERS, PLACES, WHOLE, jit

#: Latest items of a user that a new one is paired with, and those that far and near pairs start from.
WINDOW, LOOK_BACK = 16, 10
#: Those that the expert of any pairs starts from, all alike: it reads no order (chosen on MovieLens 100K).
LONG_LOOK_BACK = 18
#: A pair of items counts less, the more items lie between them: how fast, for near and for far pairs.
NEAR, FAR = 5.0, 50.0
NEAR_WEIGHTS, FAR_WEIGHTS = np.exp(-np.arange(WINDOW) / NEAR), np.exp(-np.arange(WINDOW) / FAR)
#: Near pairs look back over so many events of an item; decaying popularity over so many of all.
FRESH, MEMORY = 100.0, 300.0
#: Powers of an item's number of events that its near and far pairs are divided by.
NEAR_POWER, FAR_POWER = 0.3, 0.5
#: Fraction of popularity in every other expert.
SMOOTHING = 0.1
#: Neighbours of an item, at most; lists have 2^level slots, at least these, those of neighbours at most those.
MOST_NEIGHBOURS, FIRST_LEVEL, LAST_LEVEL = 384, 2, 9
#: Popular items that are always looked at, of each kind of popularity.
POPULAR = 128
#: Weights of experts are kept for each power of 2 of the number of items that a user has seen.
BUCKETS = 8
#: Experts.
POPULARITY, RECENT, FAR_PAIRS, NEAR_PAIRS, ANY_PAIRS = range(5)
EXPERTS = 5
#: Growing scales are brought back to 1 at this size.
LARGEST_SCALE = 1e12

#: Columns of items: events, decaying popularity, scale of near pairs, powers of events.
EVENTS, DECAYING, SCALE, NEAR_FACTOR, FAR_FACTOR = range(5)
#: Columns of lists: where one starts, how many entries it has, its level (0: no list).
START, SIZE, LEVEL = range(3)
#: Rows of `free`.
OF_ITEMS, OF_USERS = 0, 1
#: What `run` does.
LEARN, RANK, RECOMMEND, PREDICT = range(4)


class Ranks(NamedTuple):
    """All that the experts have learned. Users and items are numbered from 1; 0 is somebody new, or none."""

    items: Any  # a row for each item; its last three numbers are 1 at first
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

    sums: Any  # of far, near and any pairs with a user's latest items; 0 between calls
    marks: Any  # the last call that met each item; the calls so far at the end
    history: Any  # a user's latest items, the last first
    candidates: Any
    scores: Any  # of candidates, a row for each expert, and the mixture
    totals: Any  # of the scores of each expert
    factors: Any  # of these scores in the mixture


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
        sums=np.zeros((items + 1, 3), np.float32),
        marks=np.zeros(items + 2, np.int64),
        history=np.zeros(LONG_LOOK_BACK, np.int64),
        candidates=np.zeros(items + 2, np.int32),
        scores=np.zeros((EXPERTS + 1, items + 1), np.float32),
        totals=np.zeros(EXPERTS),
        factors=np.zeros(EXPERTS, np.float32),
    )


_typeof: Any = numba.typeof
_tuple: Any = numba.types.Tuple
plain_jit = partial(jit, allocates=False)
_F32, RANKS, SCRATCH = numba.float32, _typeof(new_ranks()), _typeof(new_scratch(1))
#: Users, items, weights, times since the event before, places found, losses, probabilities.
ROWS = _tuple((PLACES, PLACES, NUMBERS, NUMBERS, numba.int64[:, ::1], NEW_NUMBERS, NEW_TABLE))


@plain_jit()
def find(entries, start, size, wanted, flag):
    """Return the place of an entry in a list, or -1; `flag` is a bit that may differ."""
    part, wanted, found = entries[start : start + size], np.int32(wanted | flag), np.int32(-1)
    for k in range(size):  # to the end and in 32 bits, so that vector units help
        here = np.int32(k) if np.int32(part[k] | flag) == wanted else np.int32(-1)
        found = here if here > found else found
    return np.int64(found)


@plain_jit()
def lengthen(table, row, size, free, entries):
    """Move a list that is full to one twice as long; unused lists are linked, each to the start of the next."""
    start, level = table[row, START], table[row, LEVEL]
    longer = level + 1 if level else FIRST_LEVEL
    moved = free[longer]
    if moved >= 0:
        free[longer] = entries[moved]
    else:
        moved = free[-1]
        free[-1] = moved + (1 << longer)
    for k in range(size):
        entries[moved + k] = entries[start + k]
    if level:
        entries[start], free[level] = free[level], start
    table[row, START], table[row, LEVEL] = moved, longer
    return moved


@plain_jit()
def drop_rarest(start, size, neighbours, counts):
    """Drop the quarter of neighbours that were the rarest, of equal ones the earliest; return how many stay."""
    end, kept, limit, gone = start + size, start, _F32(0.0), 0
    low, high = _F32(-1.0), _F32(math.inf)
    for k in range(start, end):
        limit, fewer, equal = counts[k, 0], 0, 0
        if not low < limit < high:
            continue
        for j in range(start, end):
            fewer += counts[j, 0] < limit
            equal += counts[j, 0] == limit
        gone = size // 4 - fewer  # so many at the limit go
        if 0 <= gone < equal:
            break
        if gone < 0:
            high = limit
        else:
            low = limit
    for k in range(start, end):
        value = counts[k, 0]
        gone -= value == limit
        if value > limit or (value == limit and gone < 0):
            neighbours[kept], counts[kept, 0], counts[kept, 1] = neighbours[k], value, counts[k, 1]
            kept += 1
    return kept - start


@plain_jit(fastmath={"reassoc", "contract", "nsz"})
def score(length, everything, unseen, mixed, bucket, ranks, scratch):
    """Let the experts score neighbours and popular items, or all, that a user has not seen; return how many.

    `unseen` is the popularity, of all time and recent, of all items not seen.
    """
    items, lists, weights = ranks.items, ranks.lists, ranks.weights
    neighbours, counts, popular = ranks.neighbours, ranks.counts, ranks.popular
    sums, marks, history = scratch.sums, scratch.marks, scratch.history
    candidates, scores, totals = scratch.candidates, scratch.scores, scratch.totals
    call, number, known = marks[-1], 0, ranks.clock[1]
    for d in range(length):
        start, size = lists[history[d], START], lists[history[d], SIZE]
        ids, pairs = neighbours[start : start + size], counts[start : start + size]
        for k in range(size):
            item = np.uint64(ids[k])  # unsigned indices need no checks
            candidates[number] = item
            number += marks[item] != call
            marks[item] = call
        events = items[history[d], EVENTS]
        alike = _F32(1.0 / math.sqrt(events + 3.0))
        if d >= LOOK_BACK:
            for k in range(size):
                sums[np.uint64(ids[k]), 2] += alike * pairs[k, 0]
            continue
        fresh = events if events < FRESH else FRESH
        far = _F32(NEAR_WEIGHTS[d] / math.sqrt(events + 3.0))
        near = _F32(NEAR_WEIGHTS[d] / (math.sqrt(fresh + 3.0) * items[history[d], SCALE]))
        for k in range(size):
            item = np.uint64(ids[k])
            sums[item, 0] += far * pairs[k, 0]
            sums[item, 1] += near * pairs[k, 1]
            sums[item, 2] += alike * pairs[k, 0]
    for k in range(1, known if everything else popular.size + 1):
        more = k if everything else popular[k - 1]
        if more < known and marks[more] != call:
            marks[more] = call
            candidates[number] = more
            number += 1
    of_all = of_recent = far_pairs = near_pairs = any_pairs = 0.0
    for c in range(number):
        item = np.uint64(candidates[c])
        far_sum = sums[item, 0] * items[item, FAR_FACTOR]
        near_sum = sums[item, 1] * items[item, NEAR_FACTOR]
        any_sum = sums[item, 2] * items[item, NEAR_FACTOR]
        sums[item, 0] = sums[item, 1] = sums[item, 2] = 0.0
        popular_sum, recent_sum = items[item, EVENTS] + 1.0, items[item, DECAYING]
        far_sum *= far_sum
        near_sum *= near_sum
        any_sum *= any_sum
        scores[POPULARITY, c], scores[RECENT, c] = popular_sum, recent_sum
        scores[FAR_PAIRS, c], scores[NEAR_PAIRS, c] = far_sum, near_sum
        scores[ANY_PAIRS, c] = any_sum
        of_all += popular_sum
        of_recent += recent_sum
        far_pairs += far_sum
        near_pairs += near_sum
        any_pairs += any_sum
    # Items that are not candidates have no pairs, but they have popularity.
    of_all = of_all if of_all > unseen[0] else unseen[0]
    of_recent = of_recent if of_recent > unseen[1] else unseen[1]
    totals[POPULARITY], totals[RECENT] = of_all, of_recent
    totals[FAR_PAIRS], totals[NEAR_PAIRS], totals[ANY_PAIRS] = far_pairs, near_pairs, any_pairs
    if mixed:  # add up the experts' probabilities, weighted
        plain = weights[bucket, POPULARITY]
        for e in range(1, EXPERTS):
            own, total = 0.0, totals[e]
            if total > 0.0:
                own = (1.0 - SMOOTHING) * weights[bucket, e]
            plain += weights[bucket, e] - own
            scratch.factors[e] = own / (total if total > 1e-300 else 1e-300)
        scratch.factors[POPULARITY] = plain / (of_all if of_all > 1.0 else 1.0)
        for c in range(number):
            scores[EXPERTS, c] = 0.0
        for e in range(EXPERTS):
            factor = scratch.factors[e]
            for c in range(number):
                scores[EXPERTS, c] += factor * scores[e, c]
    return number


@plain_jit()
def reweigh(weights, rounds, row, chances):
    """Bayes' rule, and a fixed share of 1/(t + 1) for all, without a rate; return the logarithmic loss."""
    rounds[row] += 1
    share, total = 1.0 / (rounds[row] + 1.0), 0.0
    for e in range(EXPERTS):
        weights[row, e] *= chances[0, e]
        total += weights[row, e]
    for e in range(EXPERTS):
        weights[row, e] = (1.0 - share) * weights[row, e] / total + share / EXPERTS
    return -math.log(total)


@plain_jit()
def fill_best(row, number, scores, candidates, best, chances):
    """Fill in the best candidates and their probabilities."""
    most, kept, bound = best.shape[1], 0, -math.inf
    for c in range(number if most else 0):
        value = scores[EXPERTS, c]
        if value > bound:
            place = kept if kept < most else most - 1
            kept = place + 1
            while place > 0 and chances[row, place - 1] < value:
                chances[row, place] = chances[row, place - 1]
                best[row, place] = best[row, place - 1]
                place -= 1
            chances[row, place], best[row, place] = value, candidates[c]
            if kept == most:
                bound = chances[row, most - 1]


@plain_jit()
def count_item(item, weight, scale, ranks):
    """Count one event of an item."""
    items, lists, overall = ranks.items, ranks.lists, ranks.totals
    events, own_scale = items[item, EVENTS] + weight, items[item, SCALE] * (1.0 + 1.0 / FRESH)
    overall[POPULARITY] += weight
    overall[RECENT] += weight * scale
    items[item, EVENTS] = events
    items[item, DECAYING] += weight * scale
    items[item, NEAR_FACTOR] = (events + 1.0) ** -NEAR_POWER
    items[item, FAR_FACTOR] = (events + 1.0) ** -FAR_POWER
    if own_scale > LARGEST_SCALE:  # it grows, instead of all near pairs falling
        for k in range(lists[item, START], lists[item, START] + lists[item, SIZE]):
            ranks.counts[k, 1] /= _F32(own_scale)
        own_scale = 1.0
    items[item, SCALE] = own_scale


@plain_jit()
def count_pairs(item, weight, length, ranks, history):
    """Count the pairs of an item and the user's latest ones, in the rows of both."""
    lists, neighbours, counts = ranks.lists, ranks.neighbours, ranks.counts
    for step in range(2 * length):
        row, other = history[step >> 1], item
        if step & 1:
            row, other = item, history[step >> 1]
        if row == other:
            continue
        start, size = lists[row, START], lists[row, SIZE]
        place = find(neighbours, start, size, other, np.int64(0))
        if place < 0:
            if size == MOST_NEIGHBOURS:
                size = drop_rarest(start, size, neighbours, counts)
            if size == 0 or size == 1 << lists[row, LEVEL]:
                old, start = start, lengthen(lists, row, size, ranks.free[OF_ITEMS], neighbours)
                for k in range(size):
                    counts[start + k, 0] = counts[old + k, 0]
                    counts[start + k, 1] = counts[old + k, 1]
            place = size
            neighbours[start + place], lists[row, SIZE] = other, size + 1
            counts[start + place, 0] = counts[start + place, 1] = 0.0
        place += start
        counts[place, 0] += weight * FAR_WEIGHTS[step >> 1]
        counts[place, 1] += weight * NEAR_WEIGHTS[step >> 1] * ranks.items[row, SCALE]


@plain_jit(WHOLE, ROWS, RANKS, SCRATCH)
def run(task, events, ranks, scratch):
    """Do a task for each row, until the lists may be too small for one more; return how many were done.

    LEARN learns events; RANK finds the ranks of their items before, too. RECOMMEND fills in the best items of
    users and their probabilities, PREDICT the probability that each expert gives to a pair; what is new or was
    seen is left as it is.
    """
    of_users, of_items, parts, elapsed, found, losses, chances = events
    items, users, seen, free = ranks.items, ranks.users, ranks.seen, ranks.free
    overall, clock = ranks.totals, ranks.clock
    sums, marks, history = scratch.sums, scratch.marks, scratch.history
    candidates, scores, totals = scratch.candidates, scratch.scores, scratch.totals
    learning, mixed, scored = task <= RANK, task == RANK or task == RECOMMEND, -1  # noqa: SIM109
    number = length = bucket = call = 0
    weight = 1.0
    for n in range(of_users.size):
        user, item = of_users[n], of_items[n]
        start, size = users[user, START], users[user, SIZE]
        place = find(seen, start, size, 2 * item, np.int64(1))
        asked = place < 0 and (item > 0 or task == RECOMMEND)
        if learning:
            weight = parts[n]
            if (  # every list of neighbours may double, and the user's
                free[OF_ITEMS, -1] + ((WINDOW + 2) << LAST_LEVEL) > ranks.neighbours.size
                or free[OF_USERS, -1] + 4 * (size + 1) > seen.size
            ):
                return n
            asked = place < 0 and weight > 0.0
            if item >= clock[1]:  # items are numbered in order of appearance
                clock[1], asked = item + 1, False
                overall[POPULARITY] += 1.0
        fresh = (asked or learning) and user != scored
        if fresh:  # the latest items that the user liked, the last first
            length = bucket = 0
            # Users who like little of what they see: the search ends somewhere.
            for back in range(size if size < 4 * WINDOW else 4 * WINDOW):
                entry = seen[start + size - 1 - back]
                if entry & 1 and length < LONG_LOOK_BACK:
                    history[length] = entry >> 1
                    length += 1
            while size >> bucket and bucket < BUCKETS - 1:
                bucket += 1
        for everything in range(2 if asked else 0):
            if fresh:
                call = marks[-1] + 1
                marks[-1] = call
                popularity, recent = overall[POPULARITY], overall[RECENT]
                for k in range(start, start + size):
                    other = seen[k] >> 1
                    marks[other] = call
                    popularity -= items[other, EVENTS] + 1.0
                    recent -= items[other, DECAYING]
                if recent <= 1e-9 * overall[RECENT]:  # rounding
                    recent = 0.0
                unseen, whole = (popularity, recent), everything > 0
                number = score(
                    np.int64(length), whole, unseen, mixed, np.int64(bucket), ranks, scratch
                )
                for k in range(start, start + size):  # these are no candidates
                    other = seen[k] >> 1
                    sums[other, 0] = sums[other, 1] = sums[other, 2] = 0.0
            if item and not everything:  # what each expert gives to the item
                row, at = n if task == PREDICT else 0, np.int64(-1)
                if marks[item] == call:
                    at = find(candidates, np.int64(0), number, item, np.int64(0))
                chance = (items[item, EVENTS] + 1.0) / totals[POPULARITY]
                chances[row, POPULARITY], chances[row, RECENT] = chance, items[item, DECAYING]
                for e in range(1, EXPERTS):
                    if e > RECENT:  # items that are not candidates have no pairs
                        chances[row, e] = scores[e, at] if at >= 0 else 0.0
                    own = chance
                    if totals[e] > 0.0:
                        own = chances[row, e] / totals[e]
                    chances[row, e] = (1.0 - SMOOTHING) * own + SMOOTHING * chance
            if not mixed or (task == RANK and marks[item] == call):
                break
            if task == RECOMMEND and number >= found.shape[1]:
                break
        if asked and task == RANK:  # candidates of a higher score, or the same and an earlier place
            at, better = find(candidates, np.int64(0), number, item, np.int64(0)), 0
            for c in range(number):
                lead = scores[EXPERTS, c] - scores[EXPERTS, at]
                better += lead > 0.0 or (lead == 0.0 and c < at)
            found[n, 0] = better
        if task == RECOMMEND:
            fill_best(n, np.int64(number), scores, candidates, found, chances)
        if asked and task == PREDICT:
            scored = user
        if learning:
            losses[n] = math.inf
            if asked:
                losses[n] = reweigh(ranks.weights, ranks.rounds, np.int64(bucket), chances)
            scale = overall[-1] * math.exp(elapsed[n] / MEMORY)
            if scale > LARGEST_SCALE:  # it grows, instead of recent popularity falling
                for k in range(clock[1]):
                    items[k, DECAYING] /= scale
                overall[RECENT] /= scale
                scale = 1.0
            overall[-1] = scale
            if weight > 0.0:
                count_item(item, weight, scale, ranks)
                latest = np.int64(length if length < WINDOW else WINDOW)
                count_pairs(item, weight, latest, ranks, history)
            if place < 0 or weight > 0.0:  # the item moves to the end of the user's list
                if place >= 0:
                    size -= 1
                    for k in range(start + place, start + size):
                        seen[k] = seen[k + 1]
                elif size == 0 or size == 1 << users[user, LEVEL]:
                    start = lengthen(users, user, size, free[OF_USERS], seen)
                seen[start + size], users[user, SIZE] = 2 * item + (weight > 0.0), size + 1
            clock[0] += 1
    return of_users.size
