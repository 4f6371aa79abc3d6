"""The model of side features in plain Python: written from its documentation, for comparison.

Every weight has a name, a mean and a variance. The prediction is linear in each weight, so its
derivatives are differences. Variances are in units of the noise, which is 1.33 times the mean error of
the blended predictions; those of the factors by which users spread their ratings have no unit.
"""

import math

from estimators.plain_ratings import price, ramp

PRIORS = {"all": (1.0, 0.005), "user": (0.2, 0.1), "item": (0.4, 0.02)}
FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)
DRIFT = 0.003
#: Fewest ratings of a user in each stage.
STAGES = (0, 1, 2, 4, 8, 16)


class PlainFeatures:
    """The model, and its blends with the predictions of others."""

    def __init__(self, users, items):
        (self.users, self.widths), (self.items, width) = map(scaled, (users, items))
        self.widths = width, self.widths
        self.weights, self.counts = {}, {}
        self.votes = [
            [1.0 / len(FRACTIONS)] * len(FRACTIONS) for _ in STAGES
        ]  # by stage of the user
        self.rounds = [0] * len(STAGES)
        self.t, self.error, self.low, self.high = 0, 0.0, 0.0, 0.0
        self.losses = []  # of the blend and of each fraction, round by round

    def mean(self, name):
        return self.weights[name][0] if name in self.weights else 0.0

    def variance(self, name):
        return self.weights[name][1] if name in self.weights else prior(name)

    def features(self, user, item):
        """The constant and the features of the item, and of the user."""
        known = (
            self.items.get(item, [0.0] * self.widths[0]),
            self.users.get(user, [0.0] * self.widths[1]),
        )
        return [1.0, *known[0]], [1.0, *known[1]]

    def raw(self, user, item, more=None):
        """The model's prediction, with 1 added to the weight of that name."""
        x, z = self.features(user, item)

        def weight(*name):
            return self.mean(name) + (name == more)

        level = weight("item", item, 0) + sum(weight("all", d, 0) * x[d] for d in range(1, len(x)))
        total = weight("all", 0, 0) + (1.0 + weight("spread", user)) * level
        total += sum(weight("user", user, d) * x[d] for d in range(len(x)))
        for k in range(1, len(z)):
            total += weight("item", item, k) * z[k]
            total += sum(weight("all", d, k) * x[d] * z[k] for d in range(len(x)))
        return total

    def stage(self, user):
        """The last stage that the user has reached."""
        return sum(self.counts.get(user, 0) >= least for least in STAGES) - 1

    def predict(self, user, item, other):
        """The blend with another prediction."""
        if self.t == 0:
            return other
        model = min(max(self.raw(user, item), self.low), self.high)
        fraction = sum(w * s for w, s in zip(self.votes[self.stage(user)], FRACTIONS, strict=True))
        return (1.0 - fraction) * other + fraction * model

    def learn(self, user, item, rating, other, price=price, part=1.0):
        """One round, given the prediction of others and the loss of an error; the blend before."""
        told = self.predict(user, item, other)
        if self.t == 0:
            self.weights["all", 0, 0] = [rating, prior(("all", 0, 0))]
            self.low = self.high = other = rating
        raw = self.raw(user, item)
        model = min(max(raw, self.low), self.high)
        mixed = [(1.0 - s) * other + s * model for s in FRACTIONS]
        stage = self.stage(user)
        blended = sum(w * m for w, m in zip(self.votes[stage], mixed, strict=True))
        self.t += 1
        self.rounds[stage] += 1
        self.counts[user] = self.counts.get(user, 0) + 1
        self.error += part * (abs(blended - rating) - self.error) * max(1.0 / self.t, 2.0**-14)
        self.low, self.high = min(self.low, rating), max(self.high, rating)
        unit = 1.33 * self.error
        trust = part * ramp(unit, 1e-12 * max(abs(self.low), abs(self.high)))
        if trust > 0.0:
            losses = [price((m - rating) / unit) for m in mixed]
            self.losses.append((stage, price((blended - rating) / unit), losses))
            self.vote(stage, losses, trust)
            self.filter(user, item, rating - raw, unit, trust)
        return told

    def vote(self, stage, losses, trust):
        """Exponential weights, then shares."""
        votes = zip(self.votes[stage], losses, strict=True)
        grown = [w * math.exp(-0.8 * trust * loss) for w, loss in votes]
        fraction = trust / (self.rounds[stage] + 1.0)
        self.votes[stage] = [
            (1.0 - fraction) * w / sum(grown) + fraction / len(grown) for w in grown
        ]

    def filter(self, user, item, error, unit, trust):
        """A step of the Kalman filter without covariances."""
        x, z = self.features(user, item)
        names = [("all", d, k) for d in range(len(x)) for k in range(len(z))]
        names += [("user", user, d) for d in range(len(x))] + [("spread", user)]
        names += [("item", item, k) for k in range(len(z))]
        raw = self.raw(user, item)
        slopes = {name: self.raw(user, item, name) - raw for name in names}
        units = {name: 1.0 if name[0] == "spread" else unit for name in names}
        noise = unit**2 / trust
        noise += sum(self.variance(name) * (units[name] * slopes[name]) ** 2 for name in names)
        error = min(max(error, -2.0 * unit), 2.0 * unit)
        moved = {}
        for name in names:
            slope, variance = slopes[name], self.variance(name)
            if name[0] == "all" and name[2] > 0:  # what is not yet known of the user's deviation
                own = ("user", user, name[1])
                slope *= self.variance(own) / prior(own)
            gain = variance * units[name] ** 2 * slope / noise
            left = variance - gain * slope * variance
            if name[0] in ("user", "spread"):
                left = min(left + trust * DRIFT * prior(name), prior(name))
            moved[name] = [self.mean(name) + gain * error, left]
        self.weights |= moved


def prior(name):
    """The variance of a weight before anything is learned."""
    if name[0] == "spread":
        return PRIORS["user"][1]
    constant = name[1:] == (0, 0) if name[0] == "all" else name[2] == 0
    return PRIORS[name[0]][0 if constant else 1]


def scaled(rows):
    """Features without NaN, scaled to length at most 1, and how many there are."""
    found = {}
    for key, row in rows.items():
        plain = [0.0 if math.isnan(value) else value for value in row]
        length = max(1.0, math.sqrt(sum(value * value for value in plain)))
        found[key] = [value / length for value in plain]
    return found, len(next(iter(rows.values()), ()))
