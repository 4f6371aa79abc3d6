"""Your own set in a line: write a function that minimises a linear function over it.

A depot charges its buses. Each needs six hours per day, in at most two intervals. A plan is the share
of the fleet that charges in each hour: a mixture of such schedules. There is no formula for projecting
on this set, but the cheapest schedule for given prices is easy to find, and a learner needs no more.
Halfway a solar park opens, and the cheap hours move from night to noon.
"""

from itertools import combinations, pairwise

import numpy as np

import driftwolfe as dw

# The set: schedules with at most one gap, by a function that finds the cheapest.
six = combinations(range(24), 6)
good = [hours for hours in six if sum(b - a > 1 for a, b in pairwise(hours)) <= 1]
schedules = np.array([np.isin(np.arange(24), hours) for hours in good], dtype=float)


def cheapest(price):
    return schedules[(schedules @ price).argmin()]


depot = dw.LMODomain(24, cheapest)

# Prices in cents: low at night, and from the middle on at noon.
rng = np.random.default_rng(1)
low = [np.exp(-(((np.arange(24) - centre) / 3) ** 2)) for centre in (2.5, 12.5)]
prices = 30 - 15 * np.repeat(low, 300, axis=0) + 4 * rng.standard_normal((600, 24))

learner = dw.POLAR(depot)
history = dw.play(learner, [dw.losses.LinearLoss(p) for p in prices], record_decisions=True)
halves = np.split(prices, 2)
costs = {
    "the same in all hours": prices @ np.full(24, 6 / 24),
    "best fixed schedule in hindsight": prices @ cheapest(prices.sum(axis=0)),
    "POLAR": history.losses,
    "best schedule of each half in hindsight": np.ravel(
        [p @ cheapest(p.sum(axis=0)) for p in halves]
    ),
}
print(f"{'cents per day':42}{'before':>8}{'after':>8}{'all':>8}")
for name, cost in costs.items():
    print(f"{name:42}{cost[:300].mean():8.1f}{cost[300:].mean():8.1f}{cost.mean():8.1f}")
for day in (300, 600):
    busy = np.flatnonzero(history.decisions[day - 1] > 0.5)
    print(f"on day {day}, most buses charge in the hours", *busy)
print(f"LMO calls per day: {learner.lmo_calls / learner.t:.1f}")
assert busy.min() >= 9 and busy.max() <= 16, "the buses should have moved to noon"
assert history.losses.sum() < costs["best fixed schedule in hindsight"].sum()
