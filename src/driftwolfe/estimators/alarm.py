"""`DriftAlarm`: says when losses grew, with a bound on how often it says so for nothing."""

from __future__ import annotations

import os
from typing import Annotated, Any, Self, cast

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Count, Field, Part, read_state, write_state
from driftwolfe.storage import require

#: Bets are densities a b p^(a-1) (1 - p^a)^(b-1) of Kumaraswamy on [0, 1]: the first ones gain by few very
#: small p, the last ones by many below a half. Chosen on jumps of 0.5 to 3 standard deviations of normal
#: losses, and of error rates.
SHAPES = ((0.7, 1.0), (0.85, 1.0), (0.7, 2.0), (0.85, 1.5), (1.0, 1.5), (1.0, 3.0))
#: Losses that a new one is compared with, at most.
MOST = 1 << 16
#: Random numbers that are drawn together.
CHUNK = 256
_BETS = len(SHAPES)
_SOME, _PLACES = Field(np.float64, (_BETS,), 0.0), Field(np.int64, (_BETS,), 0)
_ROWS = Field(np.int64, ("alarms",), 0, below=1 << 62)


class Evidence(Part):
    """That numbers p, uniform so far, have become smaller: each bet by itself, from all starts at once."""

    sums: Annotated[Array, _SOME]  # over starts, of what a bet of 1 at that time has become
    runs: Annotated[Array, _SOME]  # that of the best start
    starts: Annotated[Indices, _PLACES]  # the best start

    def __init__(self, t: int = 0) -> None:
        self.sums, self.runs = np.zeros(_BETS), np.zeros(_BETS)
        self.starts = np.full(_BETS, t)

    def bet(self, p: float, t: int) -> float:
        """Let all bets see the next number; return the mean of their sums."""
        sums, runs, starts, total = self.sums, self.runs, self.starts, 0.0
        for k, (a, b) in enumerate(SHAPES):
            power = p**a
            factor = a * b * power / p * (1.0 - power) ** (b - 1.0)
            total += (held := (1.0 + sums.item(k)) * factor)
            sums[k] = held
            if (run := runs.item(k)) <= 1.0:
                run, starts[k] = 1.0, t
            runs[k] = run * factor
        return total / _BETS

    @property
    def start(self) -> int:
        """Since when the numbers have been smaller, by the bet with the most evidence."""
        return int(self.starts[self.sums.argmax()])


class DriftAlarm(Part, Guarded):
    r"""An alarm for losses of any model: says when they grew, and seldom for nothing.

    While losses are exchangeable (their order says nothing), the expected number of updates until the
    first alarm is at least 1/rate, whatever the losses are: no threshold need be chosen. The same holds
    from each alarm to the next. After a jump, an alarm takes about :math:`\ln(1/\text{rate})/K` updates,
    where K says how well ranks tell losses before and after apart.

    Each loss gets a rank p among those since the last restart, ties broken at random: such p are
    independent and uniform while losses are exchangeable. Six bets :math:`f` gain by small p, and the alarm
    sounds when the mean of their :math:`R_t = (1 + R_{t-1}) f(p_t)` reaches 1/rate. A fall of the
    losses, which is what a model does while it learns, is no alarm: what came before it is forgotten.

    Parameters
    ----------
    rate
        How often it may sound for nothing: at most once in 1/rate updates, on average.
    two_sided
        Whether falls are alarms as well.
    random_state
        Seed of the ties.

    Attributes
    ----------
    n_updates_
        Losses so far.
    changes_
        For each alarm, the number of updates before the one at which it sounded.
    starts_
        For each alarm, the number of updates before the losses changed, as far as one can tell.

    Notes
    -----
    A loss is compared with at most 65,536 others; then these are forgotten, and comparisons begin anew.
    Drift that is slow in comparison is not seen. docs/theory/alarm.md has the proof, and delays beside
    those of other detectors.

    References
    ----------
    Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line, ICML; Shin, Ramdas and
    Rinaldo (2023), E-detectors: a nonparametric framework for sequential change detection, New England
    Journal of Statistics in Data Science.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> rng, alarm = np.random.default_rng(0), dw.DriftAlarm(rate=1e-4)
    >>> wrong = rng.random(2000) < np.where(np.arange(2000) < 1000, 0.1, 0.4)
    >>> [t for t, loss in enumerate(wrong) if alarm.update(loss)], alarm.starts_.tolist()
    ([1011], [1004])
    """

    n_updates_: Count
    changes_: Annotated[Indices, _ROWS]
    starts_: Annotated[Indices, _ROWS]
    rate: Annotated[float, Field(float, least=1e-300, most=1.0)]
    two_sided: Annotated[bool, Field(bool)]
    random_state: Count
    _known: Annotated[Array, Field(np.float64, ("known",))]  # the losses to compare with, in order
    _grown: Evidence
    _fallen: Evidence

    def __init__(
        self, rate: float = 1e-4, *, two_sided: bool = False, random_state: int = 0
    ) -> None:
        self.rate = checks.positive(rate, "rate")
        if self.rate > 1.0:
            raise ValueError(f"rate must be at most 1, alarms per update, got {rate!r}")
        self.two_sided = bool(two_sided)
        self.random_state = checks.count(random_state, "random_state", least=0)
        self.n_updates_, self._known = 0, np.empty(0)
        self.changes_ = self.starts_ = np.zeros(0, np.int64)
        self._grown, self._fallen = Evidence(), Evidence()
        self.derive()

    def derive(self) -> None:
        self._size, self._chunk, self._draws = self._known.size, -1, np.empty(0)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_known": self._known[: self._size].copy()}

    def check(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(self._size <= MOST and bool((np.diff(self._known) >= 0.0).all()), "losses")
        for rows in (self.changes_, self.starts_):
            require(rows.max(initial=-1) < self.n_updates_, "alarms")
        for each in (self._grown, self._fallen):
            require(each.starts.max() <= self.n_updates_, "evidence")

    @writes
    def update(self, loss: float) -> bool:
        """Take the next loss; return whether the alarm sounds."""
        return self._update(float(checks.finite_array(loss, "loss", ())))

    @writes
    def update_many(self, losses: Any) -> Indices:
        """Take losses, one after the other; return at which of them the alarm sounded."""
        values = checks.finite_array(losses, "losses")
        if values.ndim != 1:
            raise ValueError(f"losses must be a list of numbers, got shape {values.shape}")
        return np.flatnonzero([self._update(loss) for loss in values.tolist()])

    def __repr__(self) -> str:
        numbers = f"rate={self.rate:g}, updates={self.n_updates_}, alarms={self.changes_.size}"
        return f"DriftAlarm({numbers})"

    @property
    @reads
    def evidence_(self) -> float:
        """How near the alarm is: 1 when it sounds."""
        both = self._grown.sums.mean() + self.two_sided * self._fallen.sums.mean()
        return float(self.rate * both / (1 + self.two_sided))

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the alarm to a file."""
        write_state(path, "DriftAlarm", {}, {"alarm": self})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the alarm that `save` wrote; it goes on as if nothing had happened."""
        _, loaded = read_state(path, "DriftAlarm", {}, {"alarm": cls})
        return cast(Self, loaded)

    def _update(self, loss: float) -> bool:
        t = self.n_updates_
        p = self._rank(loss, t)
        grown, fallen = self._grown.bet(p, t), self._fallen.bet(1.0 - p, t)
        self.n_updates_ = t + 1
        evidence = 0.5 * (grown + fallen) if self.two_sided else grown
        if sounds := evidence * self.rate >= 1.0:
            start = (self._grown if grown >= fallen else self._fallen).start
            self.changes_ = np.append(self.changes_, t)
            self.starts_ = np.append(self.starts_, start)
            self._grown, self._fallen, self._size = Evidence(t + 1), Evidence(t + 1), 0
        elif not self.two_sided and fallen * self.rate >= 1.0:
            self._fallen, self._size = Evidence(t + 1), 0
        return sounds

    def _rank(self, loss: float, t: int) -> float:
        """Return which part of the known losses is larger, ties broken at random; know this one, too."""
        if self._size == MOST:
            self._size = 0
        size = self._size
        if size == self._known.size:
            self._known = np.append(self._known, np.zeros(max(size, 64)))
        known = self._known[:size]
        first, end = known.searchsorted(loss), known.searchsorted(loss, "right")
        self._known[first + 1 : size + 1] = known[first:].copy()
        self._known[first], self._size = loss, size + 1
        if self._chunk != t // CHUNK:
            self._chunk = t // CHUNK
            self._draws = np.random.default_rng((self.random_state, self._chunk)).random(CHUNK)
        # Neither 0 nor 1, of which bets have no price.
        tie = min(max(self._draws.item(t % CHUNK), 1e-12), 1.0 - 1e-12)
        return float((size - end + tie * (end - first + 1)) / (size + 1))
