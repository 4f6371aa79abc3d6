"""The experts behind `MatrixCompleter`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from driftwolfe.domains.thresholds import threshold_falling
from driftwolfe.estimators import recommender_kernels
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots, by_row
from driftwolfe.points.decompositions import eigh
from driftwolfe.points.devices import device_of
from driftwolfe.points.kinds import Array
from driftwolfe.points.orthogonal import RitzSpace, orthonormal
from driftwolfe.points.rounding import ramp

#: Steps of the mean and the biases, in units of error: of experts without interactions, of those
#: with, and of restarted ones without and with.
PLAIN_STEPS, LOW_RANK_STEPS = (0.3, 1.0), (0.2, 0.4)
PLAIN_RESTARTED, LOW_RANK_RESTARTED = 0.5, 0.4
#: Shortest intervals of the cover, and shortest in which interactions can be learned: 64 and 4,096
#: ratings.
FIRST_LEVEL, FIRST_LOW_RANK_LEVEL = 6, 12


class Expert(NamedTuple):
    """One expert.

    Attributes
    ----------
    step
        Of the mean and the biases, in units of error.
    radius
        Of the interactions, in units of error times the root of users x items; 0: none.
    level
        Restarted every 2^level ratings; -1: never.
    """

    step: float
    radius: float = 0.0
    level: int = -1

    @property
    def name(self) -> str:
        """What tells it apart."""
        radius = f", radius {self.radius:g}" if self.radius else ""
        level = f", every {1 << self.level:,}" if self.level >= 0 else ""
        return f"step {self.step:g}{radius}{level}"


@dataclass(frozen=True)
class PoolSettings:
    """What a `RatingPool` is made of; `MatrixCompleter` says what each means."""

    loss: str
    learner: str
    radii: tuple[float, ...]
    rank: int
    weighting: float
    memory: int
    seed: int
    keep_seen: bool = True

    def grid(self) -> list[Expert]:
        """The experts that never restart: steps times radii."""
        if self.learner == "pola":
            return [Expert(LOW_RANK_STEPS[-1], max(self.radii, default=0.0))]
        return [Expert(step) for step in PLAIN_STEPS] + [
            Expert(step, radius) for radius in self.radii for step in LOW_RANK_STEPS
        ]

    def restarted(self, level: int) -> Expert | None:
        """The expert for intervals of 2^level ratings, if there is one."""
        if self.learner == "pold" or level < FIRST_LEVEL:
            return None
        # Beyond what is remembered, interactions learned since a restart are those of the grid.
        remembered = 1 << level <= 2 * self.memory
        if level < FIRST_LOW_RANK_LEVEL or not remembered or not self.radii:
            return Expert(PLAIN_RESTARTED, 0.0, level)
        return Expert(LOW_RANK_RESTARTED, max(self.radii), level)


@dataclass(eq=False)
class GrowingSide:
    """A `Side` with room for rows and columns to come.

    Rows are added by doubling the room, so a stream of new users costs a constant time for each.

    Attributes
    ----------
    size
        Rows in use.
    side
        The tables, with room to spare.
    """

    size: int = 0
    side: Side = field(default_factory=lambda: _empty())

    def grow(self, size: int, metric: float) -> None:
        """Make room for `size` rows; new ones know nothing and have this weight."""
        old = self.side
        room = old.counts.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            self.side = Side(
                _pad(old.biases, more, 0),
                _pad(old.squares, more, 0),
                _pad(old.rows, more, 0),
                np.concatenate([old.metric, np.zeros(more)]),
                np.concatenate([old.touched, np.full(more, -1)]),
                np.concatenate([old.counts, np.zeros(more, np.int64)]),
            )
        self.side.metric[self.size : size] = metric
        self.size = max(self.size, size)

    def widen(self, experts: int, factors: int) -> None:
        """Give each row more columns, of zeros: for so many experts, and so many factors."""
        old = self.side
        add = experts - old.biases.shape[1]
        self.side = old._replace(
            biases=_pad(old.biases, 0, add),
            squares=_pad(old.squares, 0, add),
            rows=_pad(old.rows, 0, factors - old.rows.shape[1]),
        )

    def metrics(self, weighting: float) -> Array:
        r"""Weights of the rows in use: :math:`((n/\bar n + 1)/2)^{w/2}`, n the number of ratings.

        Half of it is as if all rows were rated alike, which keeps the weights of rare ones away
        from 0.
        """
        counts = self.side.counts[: self.size]
        weights: Array = ((counts / counts.mean() + 1.0) / 2.0) ** (weighting / 2.0)
        return weights


def _empty() -> Side:
    table, nowhere = np.zeros((0, 0)), np.zeros(0, np.int64)
    return Side(table, table, table, np.zeros(0), nowhere, nowhere)


def _pad(table: Array, rows: int, columns: int) -> Array:
    padded = np.zeros((table.shape[0] + rows, table.shape[1] + columns))
    padded[: table.shape[0], : table.shape[1]] = table
    return padded


Places = NDArray[np.int64]

#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1


@dataclass(eq=False)
class SeenPairs:
    """A set of (user, item) pairs of numbers that grows: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so that n pairs cost
    O(n log n) in all. A pair may be in several runs; together they are less than twice as long as the
    longest.

    >>> seen = SeenPairs()
    >>> seen.add(np.array([1, 0, 1]), np.array([5, 5, 2]))
    >>> seen.add(np.array([1, 1]), np.array([3, 2]))
    >>> seen.items_of(1), seen.pairs().size
    (array([2, 3, 5]), 4)
    """

    runs: tuple[Places, ...] = ()

    def add(self, rows: Places, cols: Places) -> None:
        """Add pairs."""
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def items_of(self, row: int) -> Places:
        """Return the items of a user, sorted."""
        first = row << ITEM_BITS
        ends = np.array([first, first + LAST_ITEM])
        parts = [run[slice(*run.searchsorted(ends))] for run in self.runs]
        return _merged(parts) & LAST_ITEM

    def pairs(self) -> Places:
        """Return all pairs as whole numbers, sorted, each once."""
        return _merged(list(self.runs))

    @classmethod
    def restored(cls, pairs: Places) -> SeenPairs:
        """Return the set that `pairs` is of."""
        return cls((pairs,) if pairs.size else ())


def _merged(runs: list[Places]) -> Places:
    """Return what is in any of some sorted runs, sorted."""
    joined = np.concatenate([np.zeros(0, np.int64), *runs])
    joined.sort(kind="stable")  # in one pass, as runs are sorted
    return joined[np.flatnonzero(np.diff(joined, prepend=-1))]


def fit_together(pairs: Places, users: int, items: int) -> bool:
    """Whether sorted pairs of so many users and items could have been written by `pairs`."""
    rows, cols = pairs >> ITEM_BITS, pairs & LAST_ITEM
    return bool(
        (np.diff(pairs) > 0).all()
        and (rows >= 0).all()
        and (rows < users).all()
        and (cols < items).all()
    )


@dataclass(eq=False)
class RecentSteps:
    """Where the latest ratings were, and the steps that each low-rank expert took there.

    Attributes
    ----------
    size
        Entries in use.
    first
        Number of the rating that the first entry belongs to.
    rows, cols
        User and item of each entry.
    steps
        A column for each low-rank expert.
    """

    size: int = 0
    first: int = 0
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cols: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    steps: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def widen(self, experts: int) -> None:
        """Add columns of zeros."""
        more = np.zeros((self.steps.shape[0], experts - self.steps.shape[1]))
        self.steps = np.concatenate([self.steps, more], axis=1)

    def append(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """Add entries, and return the table for their steps, to be filled."""
        old, new = self.size, self.size + rows.size
        if new > self.rows.size:
            room = max(new, 2 * self.rows.size)
            self.rows, self.cols = np.resize(self.rows, room), np.resize(self.cols, room)
            steps = np.zeros((room, self.steps.shape[1]))
            steps[:old] = self.steps[:old]
            self.steps = steps
        self.rows[old:new], self.cols[old:new] = rows, cols
        self.size = new
        return self.steps[old:new]

    def drop(self, count: int) -> None:
        """Forget the oldest entries."""
        left = self.size - count
        for held in (self.rows, self.cols, self.steps):
            held[:left] = held[count : self.size].copy()
        self.size, self.first = left, self.first + count

    def table(self, users: Array, items: Array, count: int) -> StepTable:
        """Sort the oldest `count` entries by user; steps are divided by the weights of both sides."""
        rows, cols = self.rows[:count], self.cols[:count]
        pointers, order = np.empty(users.size + 1, np.int64), np.empty(count, np.int64)
        by_row(rows, users.size, pointers, order)
        scales = 1.0 / (users[rows] * items[cols])
        # All experts at once: single columns of a table are slow to gather.
        steps = np.ascontiguousarray((self.steps[:count] * scales[:, None])[order].T)
        shape = (users.size, items.size)
        return StepTable(steps, order + self.first, cols[order], pointers, shape)


@dataclass(frozen=True, eq=False)
class StepTable:
    """Entries sorted by user, ready to become one sparse matrix for each expert.

    Attributes
    ----------
    steps
        A row for each expert.
    times
        Number of the rating that each entry belongs to.
    indices, pointers
        Its item, and where the entries of each user begin.
    """

    steps: Array
    times: NDArray[np.int64]
    indices: NDArray[np.int64]
    pointers: NDArray[np.int64]
    shape: tuple[int, int]

    def matrix(self, expert: int, start: int) -> Any:
        """The steps that the expert took from rating `start` on."""
        data = self.steps[expert]
        if start > 0:
            data = data * (self.times >= start)
        return scipy.sparse.csr_array((data, self.indices, self.pointers), shape=self.shape)


@dataclass(frozen=True, eq=False)
class StepMatrix:
    """Steps of an expert as an operator: the recent ones entry by entry, the older ones of low rank.

    Pairs that were rated more than once have as many entries, so this is no `FactoredMatrix`.
    """

    recent: Any
    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.recent.shape

    def __matmul__(self, block: Array) -> Array:
        product: Array = self.recent @ block + self.left @ (self.right.T @ block)
        return product

    def transpose_times(self, block: Array) -> Array:
        """Return the transpose times a block."""
        product: Array = self.recent.T @ block + self.right @ (self.left.T @ block)
        return product


LOSSES = {
    "absolute": recommender_kernels.ABSOLUTE,
    "huber": recommender_kernels.HUBER,
    "squared": recommender_kernels.SQUARED,
}

#: Step of an interaction's entry, in units of error: so much because the projection spreads it
#: over a whole row and column.
INTERACTION_STEP = 8.0
#: Interactions are projected after so many ratings, or a share of those remembered.
SHORTEST_BLOCK, BLOCK_SHARE = 1000, 1 / 12
#: Share of the radius left for the steps inside a block.
ROOM = 0.1
#: Columns of the block iteration beyond the rank.
SPARE_COLUMNS = 8
#: A direction counts only if its singular value exceeds 0, and the first one that is left out, by this
#: share of the largest. Gram matrices leave errors of 1e-8 in those that are 0.
GAP = 1e-6


@dataclass(eq=False)
class RatingPool:
    r"""Experts that predict ratings, weighted by how they did.

    Each expert predicts :math:`\mu + b_u + c_i + X_{ui}`. Mean and biases take AdaGrad steps within
    the range of ratings. Steps of X are collected in a matrix Y, and at the end of a block X becomes
    the projection of Y on the ball (of the leading directions of Y: `rank` of them); within a block
    only the row of the rating's user moves, inside the space that X has.

    Numbers of users and items are rows and columns; see `MatrixCompleter` for names.
    """

    settings: PoolSettings
    users: GrowingSide = field(default_factory=GrowingSide)
    items: GrowingSide = field(default_factory=GrowingSide)
    experts: list[Expert] = field(default_factory=list)
    recent: RecentSteps = field(default_factory=RecentSteps)
    older: dict[int, Older] = field(default_factory=dict)
    seen: SeenPairs = field(default_factory=SeenPairs)
    slots: Slots = field(init=False)
    low: Interactions = field(init=False)
    scale: Scale = field(init=False)
    next_projection: int = field(init=False)

    def __post_init__(self) -> None:
        none, nowhere = np.zeros(0), np.zeros(0, np.int64)
        self.slots = Slots(none, none, none, none, nowhere, nowhere, nowhere)
        self.low = Interactions(none, none, np.zeros((0, self.settings.rank)))
        self.scale = Scale(np.zeros(1, np.int64), np.zeros(4))
        for expert in self.settings.grid():
            self._add(expert)
        self.slots.weights[:] = 1.0 / len(self.experts)
        self.next_projection = self.block()

    @property
    def t(self) -> int:
        """Ratings learned so far."""
        return int(self.scale.clock[0])

    def predict(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> tuple[Array, Array]:
        """Return the predictions, and a table of what each expert predicts; -1 is one never seen."""
        predictions, answers = np.zeros(rows.size), np.zeros((rows.size, len(self.experts)))
        recommender_kernels.predict(rows, cols, *self._tables(), predictions, answers)
        return predictions, answers

    def learn(self, rows: NDArray[np.int64], cols: NDArray[np.int64], ratings: Array) -> Array:
        """Learn ratings one after the other; new rows and columns are numbered as they appear.

        Returns what was predicted for each just before it was learned.
        """
        done, predictions = 0, np.zeros(rows.size)
        while done < rows.size:
            stop = min(rows.size, done + self._until_next_event())
            part = slice(done, stop)
            self._grow(int(rows[part].max()) + 1, int(cols[part].max()) + 1)
            steps = self.recent.append(rows[part], cols[part])
            recommender_kernels.learn(
                rows[part],
                cols[part],
                ratings[part],
                LOSSES[self.settings.loss],
                INTERACTION_STEP,
                *self._tables(),
                predictions[part],
                steps,
            )
            self._end_of_part()
            done = stop
        return predictions

    def seen_by(self, row: int) -> NDArray[np.int64]:
        """Return the items that a user has rated, as far as is known, in no order."""
        recent = self.recent
        lately = recent.cols[: recent.size][recent.rows[: recent.size] == row]
        return np.concatenate([lately, self.seen.items_of(row)])

    @property
    def sides(self) -> tuple[GrowingSide, GrowingSide]:
        """Users and items."""
        return self.users, self.items

    def mean_decision(self) -> tuple[float, Array, Array, Array, Array]:
        """Return the weighted mean of the experts: mean, both biases, and factors of both sides.

        What a restarted expert has not seen since is 0 for it, though not yet cleared.
        """
        slots, rank = self.slots, self.settings.rank
        biases = []
        for grown in self.sides:
            known = grown.side.touched[: grown.size, None] >= slots.starts
            biases.append((grown.side.biases[: grown.size] * known) @ slots.weights)
        users, items = (grown.side.rows[: grown.size].copy() for grown in self.sides)
        for e in np.flatnonzero(slots.low >= 0).tolist():
            columns = slice(slots.low[e] * rank, (slots.low[e] + 1) * rank)
            users[self.users.side.touched[: self.users.size] < slots.starts[e], columns] = 0.0
            users[:, columns] *= slots.weights[e]
        return float(slots.means @ slots.weights), biases[0], biases[1], users, items

    def trace_radius(self, radius: float) -> float:
        """A radius in units of error times the root of users x items, in units of the ratings."""
        entries = math.sqrt(self.users.size * self.items.size)
        return float(radius * self.scale.numbers[0] * entries)

    def _tables(self) -> tuple[Side, Side, Slots, Interactions, Scale]:
        return self.users.side, self.items.side, self.slots, self.low, self.scale

    def _grow(self, users: int, items: int) -> None:
        """Make room for the users and items of a part.

        Not for those of the whole call: radii and weights depend on how many there are so far.
        """
        metric = 0.5 ** (self.settings.weighting / 2.0)
        self.users.grow(users, metric)
        self.items.grow(items, metric)

    # -- events ----------------------------------------------------------------------------------

    def _until_next_event(self) -> int:
        """Ratings until a projection is due or the cover has a longer interval."""
        return min(self.next_projection, 1 << self.t.bit_length()) - self.t

    def _end_of_part(self) -> None:
        t = self.t
        if t & (t - 1) == 0:
            expert = self.settings.restarted(t.bit_length() - 1)
            if expert is not None:
                self._add(expert)
        if t == self.next_projection:
            self._project()
            self.next_projection = t + self.block()
            if self.recent.size + self.block() > self.settings.memory:
                self._fold()

    def block(self) -> int:
        """Ratings between two projections."""
        memory = self.settings.memory
        return max(min(SHORTEST_BLOCK, memory // 4), int(BLOCK_SHARE * min(self.t, memory)))

    def _add(self, expert: Expert) -> None:
        """Let an expert in, with the share that every expert gets in a round."""
        t, slots = self.t, self.slots
        k = self.low.radii.size if expert.radius else -1
        self.slots = Slots(
            np.append(slots.means, self.scale.numbers[3]),
            np.append(slots.squares, 0.0),
            np.append(slots.weights * t, 1.0) / (t + 1.0),
            np.append(slots.steps, expert.step),
            np.append(slots.starts, t),
            np.append(slots.levels, expert.level),
            np.append(slots.low, k),
        )
        self.experts.append(expert)
        if expert.radius:
            low, rank = self.low, self.settings.rank
            radius = self.trace_radius(expert.radius)
            spread = np.full((1, rank), ROOM * radius / rank)
            self.low = Interactions(
                np.append(low.radii, radius),
                np.append(low.norms, 0.5 * spread.sum()),
                np.concatenate([low.spreads, spread]),
            )
            self.recent.widen(k + 1)
        factors = self.low.spreads.size
        self.users.widen(len(self.experts), factors)
        self.items.widen(len(self.experts), factors)

    # -- projections -----------------------------------------------------------------------------

    def _project(self) -> None:
        """Set the interactions to the projection of the steps so far."""
        users, items = self._weights()
        table = self.recent.table(users, items, self.recent.size)
        self.users.side.metric[: users.size] = users
        self.items.side.metric[: items.size] = items
        for e in np.flatnonzero(self.slots.low >= 0).tolist():
            k, rank = int(self.slots.low[e]), self.settings.rank
            steps = self._steps(e, users, items, table)
            radius = self.trace_radius(self.experts[e].radius)
            left, s, right, kept = leading(steps, self._space(k, users, items), rank)
            s, right = threshold_falling(s, (1.0 - ROOM) * radius), right * kept
            for grown, factor, weights in (
                (self.users, left * s, users),
                (self.items, right, items),
            ):
                # Directions may be fewer than last time; what is left of those would not be counted.
                rows = grown.side.rows[: grown.size, k * rank : (k + 1) * rank]
                rows[:, : s.size], rows[:, s.size :] = factor / weights[:, None], 0.0
            spread = np.full(rank, ROOM * radius / rank)
            spread[: s.size] += s
            self.low.radii[k], self.low.spreads[k] = radius, spread
            self.low.norms[k] = 0.5 * (s**2 / spread[: s.size]).sum() + 0.5 * spread.sum()

    def _fold(self) -> None:
        """Keep of the oldest half of the steps only the leading directions."""
        half = self.recent.size // 2
        users, items = self._weights()
        table, end = self.recent.table(users, items, half), self.recent.first + half
        older = {}
        for e in np.flatnonzero((self.slots.low >= 0) & (self.slots.starts < end)).tolist():
            k, rank = int(self.slots.low[e]), 2 * self.settings.rank
            steps = self._steps(e, users, items, table)
            left, s, right, kept = leading(steps, self._space(k, users, items), rank)
            start = int(self.slots.starts[e])
            older[k] = Older(start, left * (s * kept) * users[:, None], right * items[:, None])
        self.older = older
        if self.settings.keep_seen:
            self.seen.add(self.recent.rows[:half], self.recent.cols[:half])
        self.recent.drop(half)

    def _weights(self) -> tuple[Array, Array]:
        weighting = self.settings.weighting
        return self.users.metrics(weighting), self.items.metrics(weighting)

    def _steps(self, e: int, users: Array, items: Array, table: StepTable) -> StepMatrix:
        """All steps of an expert since its start."""
        k, start = int(self.slots.low[e]), int(self.slots.starts[e])
        older = self.older.get(k)
        if older is None or older.start != start:
            older = Older(start, np.zeros((0, 0)), np.zeros((0, 0)))
        return StepMatrix(table.matrix(k, start), *older.factors(users, items))

    def _space(self, k: int, users: Array, items: Array) -> Array:
        """Where to look for right singular vectors: those of last time, and at random.

        Of a small matrix everything is looked at, so that its projection is exact.
        """
        rank = self.settings.rank
        random = np.random.default_rng([self.settings.seed, self.t, k])
        last = self.items.side.rows[: items.size, k * rank : (k + 1) * rank] * items[:, None]
        older = self.older.get(k)
        if older is not None:
            last = np.concatenate([last, _weighted(older.items, items)], axis=1)
        columns, least = last.shape[1] + SPARE_COLUMNS, min(users.size, items.size)
        if columns >= least:
            return random.standard_normal((items.size, least))
        spare = random.standard_normal((items.size, SPARE_COLUMNS))
        unknown = ~last.any(axis=0)
        if unknown.any():
            last[:, unknown] = random.standard_normal((items.size, np.count_nonzero(unknown)))
        return np.concatenate([last, spare], axis=1)


def leading(steps: StepMatrix, space: Array, rank: int) -> tuple[Array, Array, Array, Array]:
    """Return leading singular triplets, by one round of block iteration, and how much each counts.

    Where the last of them ties with the first one that is left out, rounding would say which of the
    two it is. Such directions count less, down to nothing.
    """
    found = _ritz_space(steps, space)
    least = GAP * float(found.s.max(initial=0.0))
    s = found.s * ramp(found.s, least)
    count = min(rank, int(np.count_nonzero(s)))
    left, right = found.leading(count)
    left_out = s[count] if count < s.size else 0.0
    return left, s[:count], right, ramp(s[:count] - left_out, least)


def _ritz_space(steps: StepMatrix, space: Array) -> RitzSpace:
    """Return the image of a block of right vectors, and its triplets.

    Right vectors of earlier blocks may depend on each other, and steps since a restart may map them
    to nearly nothing. Normalised, such images are rounding errors: they are left out.
    """
    image, trust = _trusted(steps @ space, np.sqrt((space * space).sum(axis=0)))
    if not image.size:
        return RitzSpace(image, space[:, :0], np.zeros((0, 0)), np.zeros(0))
    basis = orthonormal(image) * trust
    back = steps.transpose_times(basis)
    squares, turn = device_of(back).eigh(back.T @ back)
    return RitzSpace(basis, back, turn, np.sqrt(np.maximum(squares, 0.0)))


def _trusted(image: Array, lengths: Array) -> tuple[Array, Any]:
    """Return columns that span the image of vectors of these lengths, and how much each counts."""
    units = 1.0 / np.maximum(lengths, np.finfo(np.float64).tiny)
    gram = (image.T @ image) * units * units[:, None]
    least = GAP * GAP * float(gram.trace())
    try:  # No eigenvalue is below twice that, so all count: told in a tenth of the time of the rule.
        np.linalg.cholesky(gram - 2.0 * least * np.eye(len(gram)))
        return image, 1.0
    except np.linalg.LinAlgError:
        squares, turn = eigh(gram)
    trust = ramp(squares, GAP * GAP * float(squares.max(initial=0.0)))
    trusted = trust > 0.0
    return (image * units) @ turn[:, trusted], trust[trusted]


@dataclass(frozen=True, eq=False)
class Older:
    """What is kept of an expert's older steps: a matrix of low rank, since its start.

    As the recent ones, they are kept as they were and meet the weights when they are used.
    """

    start: int
    users: Array
    items: Array

    def factors(self, users: Array, items: Array) -> tuple[Array, Array]:
        """The factors in weighted coordinates, with zeros for rows that are new since."""
        return _weighted(self.users, users), _weighted(self.items, items)


def _weighted(factor: Array, weights: Array) -> Array:
    weighted = np.zeros((weights.size, factor.shape[1]))
    known = min(weights.size, factor.shape[0])
    weighted[:known] = factor[:known] / weights[:known, None]
    return weighted
