"""A set of your own in a few lines: bring a function that minimises a linear function over it.

Here: schedules that switch a machine on for at most 6 of 24 hours, in one run. The oracle looks at
all runs; no projection on this set is known to anyone.
"""

import numpy as np

import driftwolfe as dw

HOURS, LONGEST = 24, 6
runs = [np.zeros(HOURS)] + [
    np.r_[np.zeros(start), np.ones(length), np.zeros(HOURS - start - length)]
    for length in range(1, LONGEST + 1)
    for start in range(HOURS - length + 1)
]
table = np.array(runs)

schedules = dw.LMODomain(HOURS, lambda price: table[(table @ price).argmin()], radius=LONGEST**0.5)

rng = np.random.default_rng(1)
learner = dw.POLA(schedules)
paid = foreseen = 0.0
for day in range(600):
    sunny = 12 if day < 300 else 17  # the cheap hours move in the middle
    price = 0.2 - np.exp(-(((np.arange(HOURS) - sunny) / 2.5) ** 2)) + 0.1 * rng.standard_normal(24)
    paid += learner.update(dw.losses.LinearLoss(price))
    foreseen += (table @ price).min()

print(f"cost with POLA {paid:.1f}, with tomorrow's prices known {foreseen:.1f}")
print(f"linear minimisations a day: {learner.lmo_calls / learner.t:.2f}")
hours = np.flatnonzero(learner.decision > 0.5)
print(f"hours the machine is mostly on now: {hours.min()} to {hours.max()}")
assert 13 <= hours.min() <= hours.max() <= 20
