"""The experts of `Recommender` in plain NumPy, with dense tables, for small catalogues."""

import math

import numpy as np


class PlainRanks:
    """Popularity and co-occurrence of a stream of events, item numbers 0..items-1."""

    def __init__(self, items):
        self.events = np.zeros(items)
        self.recent = np.zeros(items)
        self.known = np.zeros(items, bool)
        self.far, self.near = np.zeros((items, items)), np.zeros((items, items))
        self.history, self.seen = {}, {}

    def chances(self, user):
        """The probabilities of all items, a row for each expert."""
        open_ = self.known & ~np.isin(np.arange(self.known.size), list(self.seen.get(user, ())))
        scores = [self.events + 1.0, self.recent]
        latest = self.history.get(user, [])[::-1]
        kinds = (
            (self.far, math.inf, 0.5, 5.0, 10),
            (self.near, 100.0, 0.3, 5.0, 10),
            (self.far, math.inf, 0.3, math.inf, 18),
        )
        for table, most, power, decay, back in kinds:
            summed = np.zeros(self.known.size)
            for d, item in enumerate(latest[:back]):
                norm = math.sqrt(min(self.events[item], most) + 3.0)
                summed += math.exp(-d / decay) / norm * table[item]
            scores.append((summed * (self.events + 1.0) ** -power) ** 2)
        found = []
        for score in scores:
            held = np.where(open_, score, 0.0)
            found.append(held / held.sum() if held.sum() > 0.0 else found[0])
        smoothed = [found[0]]
        smoothed += [0.9 * row + 0.1 * found[0] for row in found[1:]]
        return np.array(smoothed)

    def learn(self, user, item, weight=1.0):
        """Learn one event."""
        self.known[item] = True
        if weight > 0.0:
            self.events[item] += weight
            self.recent *= math.exp(-1.0 / 300.0)
            self.recent[item] += weight
            # Near pairs of an item fade with each of its events.
            self.near[item] /= 1.0 + 1.0 / 100.0
            history = self.history.setdefault(user, [])
            for d, other in enumerate(history[::-1][:16]):
                if other != item:
                    near, far = math.exp(-d / 5.0), math.exp(-d / 50.0)
                    for one, two in ((item, other), (other, item)):
                        self.near[one, two] += weight * near
                        self.far[one, two] += weight * far
            if item in history:
                history.remove(item)
            history.append(item)
        self.seen.setdefault(user, set()).add(item)


def expert_chances(model, pairs):
    """The probability that each expert gives to each pair: a row for each."""
    users, items = zip(*pairs, strict=True) if pairs else ((), ())
    return model._pool.predict(model._users.find(users), model._items.find(items))[1]
