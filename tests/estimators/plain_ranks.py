"""The experts of `Recommender` in plain NumPy, with dense tables, for small catalogues."""

import math

import numpy as np


class PlainRanks:
    """Popularity and co-occurrence of a stream of events, item numbers 0..items-1, and the experts' weights."""

    def __init__(self, items):
        self.events = np.zeros(items)
        self.recent = np.zeros(items)
        self.known = np.zeros(items, bool)
        self.far, self.near = np.zeros((items, items)), np.zeros((items, items))
        self.seen = {}  # items of each user, the latest last, and whether they were liked
        self.weights, self.rounds = np.full((8, 5), 0.2), np.zeros(8)

    def latest(self, user):
        """The items that a user liked among the 64 seen last, the latest first."""
        return [item for item, liked in [*self.seen.get(user, {}).items()][:-65:-1] if liked]

    def bucket(self, user):
        """The row of the weights for a user."""
        return min(len(self.seen.get(user, ())).bit_length(), 7)

    def pairs(self, user):
        """What far, near and any pairs with each of the user's latest items count, for all items."""
        found, latest = np.zeros((3, 18, self.known.size)), self.latest(user)
        kinds = (
            (self.far, math.inf, 5.0, 10),
            (self.near, 100.0, 5.0, 10),
            (self.far, math.inf, math.inf, 18),
        )
        for rows, (table, most, decay, back) in zip(found, kinds, strict=True):
            for d, item in enumerate(latest[:back]):
                norm = math.sqrt(min(self.events[item], most) + 3.0)
                rows[d] = math.exp(-d / decay) / norm * table[item]
        return found

    def chances(self, user):
        """The probabilities of all items, a row for each expert."""
        open_ = self.known & ~np.isin(np.arange(self.known.size), list(self.seen.get(user, ())))
        powers = (self.events + 1.0) ** -np.array([[0.5], [0.3], [0.3]])
        scores = [self.events + 1.0, self.recent, *(powers * self.pairs(user).sum(axis=1)) ** 2]
        found = []
        for score in scores:
            held = np.where(open_, score, 0.0)
            found.append(held / held.sum() if held.sum() > 0.0 else found[0])
        smoothed = [found[0]]
        smoothed += [0.9 * row + 0.1 * found[0] for row in found[1:]]
        return np.array(smoothed)

    def learn(self, user, item, weight=1.0, elapsed=None):
        """Learn one event, so long after the one before; without times that is 1, or 0 without weight."""
        if weight > 0.0 and self.known[item] and item not in self.seen.get(user, ()):
            row = self.bucket(user)
            self.rounds[row] += 1
            grown = self.weights[row] * self.chances(user)[:, item]
            share = 1.0 / (self.rounds[row] + 1.0)
            self.weights[row] = (1.0 - share) * grown / grown.sum() + share / 5.0
        self.known[item] = True
        self.recent *= math.exp(-(float(weight > 0.0) if elapsed is None else elapsed) / 300.0)
        own = self.seen.setdefault(user, {})
        if weight > 0.0:
            self.events[item] += weight
            self.recent[item] += weight
            # Near pairs of an item fade with each of its events.
            self.near[item] /= 1.0 + 1.0 / 100.0
            for d, other in enumerate(self.latest(user)[:16]):
                if other != item:
                    near, far = math.exp(-d / 5.0), math.exp(-d / 50.0)
                    for one, two in ((item, other), (other, item)):
                        self.near[one, two] += weight * near
                        self.far[one, two] += weight * far
            own.pop(item, None)
            own[item] = True
        own.setdefault(item, False)


def expert_chances(model, pairs):
    """The probability that each expert gives to each pair: a row for each."""
    users, items = zip(*pairs, strict=True) if pairs else ((), ())
    return model._pool.predict(model._users.find(users), model._items.find(items))[1]
