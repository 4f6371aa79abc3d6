"""`DriftAlarm` as a plain loop over one sorted list."""

import bisect

import numpy as np

from driftwolfe.estimators.alarm import CHUNK, SHAPES


class PlainBets:
    """That numbers p, uniform so far, have become smaller: each bet by itself, from all starts at once."""

    def __init__(self, t=0):
        self.sums, self.runs, self.starts = [0.0] * 6, [0.0] * 6, [t] * 6

    def bet(self, p, t):
        for k, (a, b) in enumerate(SHAPES):
            factor = a * b * p ** (a - 1.0) * (1.0 - p**a) ** (b - 1.0)
            self.sums[k] = (1.0 + self.sums[k]) * factor
            if self.runs[k] <= 1.0:
                self.runs[k], self.starts[k] = 1.0, t
            self.runs[k] *= factor
        return float(np.mean(self.sums))


class PlainAlarm:
    """The alarms of losses, and the ranks on the way."""

    def __init__(self, rate, two_sided=False, most=1 << 16, seed=0):
        self.rate, self.two_sided, self.most, self.seed = rate, two_sided, most, seed
        self.known, self.grown, self.fallen = [], PlainBets(), PlainBets()
        self.t, self.changes, self.starts, self.ranks = 0, [], [], []

    def update(self, loss):
        t = self.t
        draw = np.random.default_rng((self.seed, t // CHUNK)).random(CHUNK)[t % CHUNK]
        if len(self.known) == self.most:
            self.known = []
        first, end = bisect.bisect_left(self.known, loss), bisect.bisect_right(self.known, loss)
        size = len(self.known)
        p = (size - end + draw * (end - first + 1)) / (size + 1)
        self.known.insert(end, loss)
        grown, fallen = self.grown.bet(p, t), self.fallen.bet(1.0 - p, t)
        self.ranks.append(p)
        self.t = t + 1
        evidence = 0.5 * (grown + fallen) if self.two_sided else grown
        if evidence * self.rate >= 1.0:
            bets = self.grown if grown >= fallen else self.fallen
            self.changes.append(t)
            self.starts.append(bets.starts[int(np.argmax(bets.sums))])
            self.known, self.grown, self.fallen = [], PlainBets(t + 1), PlainBets(t + 1)
        elif not self.two_sided and fallen * self.rate >= 1.0:
            self.known, self.fallen = [], PlainBets(t + 1)
