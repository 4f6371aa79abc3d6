"""`DriftAlarm`: says when losses grew, with a bound on how often it says so for nothing."""

from __future__ import annotations

import os
from typing import Annotated, Any, Self, cast

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import Count, Field, Part, read_state, write_state
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.alarm_kernels")

#: Bets are densities a b p^(a-1) (1 - p^a)^(b-1) of Kumaraswamy on [0, 1]: the first ones gain by few very
#: small p, the last ones by many below a half.
SHAPES = ((0.7, 1.0), (0.85, 1.0), (0.7, 2.0), (0.85, 1.5), (1.0, 1.5), (1.0, 3.0))
#: Losses that a new one is compared with, at most.
MOST = 1 << 16
#: Random numbers that are drawn together, and losses that wait to be sorted in.
CHUNK = RECENT = 256
_BETS = len(SHAPES)
_ROWS = Field(np.int64, ("alarms",), 0, below=1 << 62)


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
    A loss is compared with at most 65,536 others; then comparisons begin anew. Drift that is slow in comparison
    is not seen. docs/theory/alarm.md has the proof, and delays beside those of other detectors.

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
    # That ranks have become smaller, and larger: of each bet the sum over all starts of what 1 at that time has
    # become, and that of the best start.
    _evidence: Annotated[Array, Field(np.float64, (4 * _BETS,), 0.0)]
    _starts: Annotated[Indices, Field(np.int64, (2 * _BETS,), 0)]  # the best ones

    def __init__(
        self, rate: float = 1e-4, *, two_sided: bool = False, random_state: int = 0
    ) -> None:
        self.rate = checks.positive(rate, "rate")
        if self.rate > 1.0:
            raise ValueError(f"rate must be at most 1, alarms per update, got {rate!r}")
        self.two_sided = bool(two_sided)
        self.random_state = checks.count(random_state, "random_state", least=0)
        self.n_updates_, self._known = 0, np.zeros(0)
        self.changes_ = self.starts_ = np.zeros(0, np.int64)
        self._evidence, self._starts = np.zeros(4 * _BETS), np.zeros(2 * _BETS, np.int64)
        self.derive()

    def derive(self) -> None:
        self._sizes, self._table = np.array([self._known.size, 0]), np.zeros(RECENT)
        self._table = np.append(self._table, self._known)
        self._chunk, self._draws = -1, np.empty(0)

    def __getstate__(self) -> dict[str, Any]:
        many, few = self._sizes
        known = np.append(self._table[:few], self._table[RECENT : RECENT + many])
        return super().__getstate__() | {"_known": np.sort(known)}

    def check(self) -> None:
        require(self._known.size <= MOST and bool((np.diff(self._known) >= 0.0).all()), "losses")
        for rows in (self.changes_, self.starts_):
            require(rows.max(initial=-1) < self.n_updates_, "alarms")
        require(self._starts.max() <= self.n_updates_, "evidence")

    @writes
    def update(self, loss: float) -> bool:
        """Take the next loss; return whether the alarm sounds."""
        return bool(self.take(checks.finite_array(loss, "loss", ()).reshape(1)).size)

    @writes
    def update_many(self, losses: Any) -> Indices:
        """Take losses, one after the other; return at which of them the alarm sounded."""
        values = checks.finite_array(losses, "losses")
        if values.ndim != 1:
            raise ValueError(f"losses must be a list of numbers, got shape {values.shape}")
        return self.take(values)

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the alarm to a file."""
        write_state(path, "DriftAlarm", {}, {"alarm": self})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the alarm that `save` wrote; it goes on as if nothing had happened."""
        _, loaded = read_state(path, "DriftAlarm", {}, {"alarm": cls})
        return cast(Self, loaded)

    def take(self, losses: Array) -> Indices:
        """Take losses that have been checked, infinite where there is none; return where the alarm sounded."""
        begin, alarms, done = self.n_updates_, self.changes_.size, 0
        while done < losses.size:
            t = self.n_updates_
            if self._chunk != t // CHUNK:
                self._chunk = t // CHUNK
                self._draws = np.random.default_rng((self.random_state, self._chunk)).random(CHUNK)
            if (many := self._sizes.item(0) + 3 * RECENT) > self._table.size:
                self._table = np.append(self._table, np.zeros(many))
            some = losses[done : done + CHUNK - t % CHUNK]
            given: Any = (self._draws, t, self.rate, self.two_sided, MOST)
            given += (self._table, self._sizes, self._evidence, self._starts)
            found = kernels().follow.unchecked(some, *given)
            done, self.n_updates_ = done + abs(found), t + abs(found)
            if found < 0:  # note the alarm, and begin anew
                sums = self._evidence.reshape(4, _BETS)[::2]
                side = int(sums.mean(axis=1).argmax()) if self.two_sided else 0
                start = self._starts[side * _BETS + sums[side].argmax()]
                self.changes_ = np.append(self.changes_, self.n_updates_ - 1)
                self.starts_ = np.append(self.starts_, start)
                self._evidence[:], self._starts[:], self._sizes[:] = 0.0, self.n_updates_, 0
        return self.changes_[alarms:] - begin
