"""Experts without interactions, in plain Python: written from the documentation, for comparison.

Interactions are 0 before the first projection, so all experts are like these until then.

Every expert predicts mean + bias of the user + bias of the item, clipped to the range of ratings so
far. Its gradients are those of the loss in units of 1.33 times the mean error, at the prediction
before clipping; steps are AdaGrad's. A mean error up to 1e-12 of the largest rating, and under the
absolute loss an error up to 1e-9 units, is one of rounding: nothing is learned from it, and up to
twice as much counts in part. Weights are exponential with rate 0.8, then everyone gets a share
1/(t + 1). An expert for intervals of 2^k ratings joins after rating 2^k, k >= 6, and is restarted after
every multiple of it at the recent mean.
"""

import math

#: Steps without interactions, and with those of two radii.
STEPS = (0.3, 1.0, *(0.2, 0.4) * 2)
LIMITS = {"huber": 1.0, "squared": 1000.0}


def ramp(value, width):
    """0 up to the width, 1 from twice the width on, linear in between."""
    if value <= width:
        return 0.0
    return 1.0 if value >= 2.0 * width else value / width - 1.0


class PlainExpert:
    """A mean and biases, with the sums of squares that scale their steps."""

    def __init__(self, step, mean, interval=None):
        self.step, self.interval = step, interval
        self.start(mean)

    def start(self, mean):
        """Know nothing but a mean."""
        self.values, self.squares = {"mean": mean}, {}

    def raw(self, places):
        """The prediction before it is clipped."""
        return sum(self.values.get(place, 0.0) for place in places)

    def learn(self, places, slope, unit, low, high):
        """One AdaGrad step for the mean and both biases."""
        for place in places:
            self.squares[place] = self.squares.get(place, 0.0) + slope * slope
            moved = self.values.get(place, 0.0) - self.step * unit * slope / math.sqrt(
                1.0 + self.squares[place]
            )
            floor, ceiling = (low, high) if place == "mean" else (low - high, high - low)
            self.values[place] = min(max(moved, floor), ceiling)


class PlainPool:
    """Experts that vote."""

    def __init__(self, loss="huber"):
        self.loss, self.experts = loss, [PlainExpert(step, 0.0) for step in STEPS]
        self.weights = [1.0 / len(STEPS)] * len(STEPS)
        self.t, self.error, self.low, self.high, self.recent = 0, 0.0, 0.0, 0.0, 0.0

    def predict(self, user, item):
        """The weighted mean of the clipped predictions."""
        return sum(
            w * self.clip(r) for w, r in zip(self.weights, self.raw(user, item), strict=True)
        )

    def raw(self, user, item):
        """What each expert predicts, before clipping."""
        places = ("mean", ("user", user), ("item", item))
        return [expert.raw(places) for expert in self.experts]

    def clip(self, value):
        """To the range of ratings so far."""
        return min(max(value, self.low), self.high)

    def learn(self, user, item, rating):
        """One round; returns what was predicted before."""
        predicted = self.predict(user, item)
        if self.t == 0:
            self.low = self.high = self.recent = rating
            for expert in self.experts:
                expert.start(rating)
        raw = self.raw(user, item)
        clipped = [self.clip(value) for value in raw]
        error = abs(self.predict(user, item) - rating)
        self.t += 1
        self.error += (error - self.error) * max(1.0 / self.t, 2.0**-14)
        self.low, self.high = min(self.low, rating), max(self.high, rating)
        self.recent += 0.01 * (rating - self.recent)
        unit = 1.33 * self.error
        trust = ramp(unit, 1e-12 * max(abs(self.low), abs(self.high)))
        if trust > 0.0:
            self.vote([price((value - rating) / unit, self.loss) for value in clipped], trust)
            places = ("mean", ("user", user), ("item", item))
            for expert, value in zip(self.experts, raw, strict=True):
                moved = trust * slope((value - rating) / unit, self.loss)
                expert.learn(places, moved, unit, self.low, self.high)
        self.cover()
        return predicted

    def vote(self, losses, trust):
        """Exponential weights, then shares."""
        grown = [
            w * math.exp(-0.8 * trust * loss) for w, loss in zip(self.weights, losses, strict=True)
        ]
        share = trust / (self.t + 1.0)
        count, total = len(grown), sum(grown)
        self.weights = [(1.0 - share) * w / total + share / count for w in grown]

    def cover(self):
        """Restart whose interval ends, and let in the expert of a new length."""
        for expert in self.experts:
            if expert.interval and self.t % expert.interval == 0:
                expert.start(self.recent)
        if self.t >= 64 and self.t & (self.t - 1) == 0:
            self.experts.append(PlainExpert(0.5, self.recent, self.t))
            self.weights = [w * self.t / (self.t + 1.0) for w in self.weights]
            self.weights.append(1.0 / (self.t + 1.0))


def price(error, loss="huber"):
    """The loss of an error in units, of at most 1,000."""
    size = min(abs(error), 1000.0)
    if loss == "absolute":
        return size
    return size * size / 2.0 if loss == "squared" or size <= 1.0 else size - 0.5


def slope(error, loss="huber"):
    """Its derivative."""
    if loss == "absolute":
        return math.copysign(ramp(abs(error), 1e-9), error)
    return min(max(error, -LIMITS[loss]), LIMITS[loss])
