"""The experts behind `MatrixCompleter`, and the growing tables of what they have learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.balls import threshold_falling
from driftwolfe.estimators import recommender_kernels
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots
from driftwolfe.points.devices import eigh
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.orthogonal import RitzSpace, orthonormal
from driftwolfe.points.rounding import ramp

#: Steps of the mean and the biases, in units of error: of experts without interactions, of those
#: with, and of restarted ones without and with.
PLAIN_STEPS, LOW_RANK_STEPS = (0.3, 1.0), (0.2, 0.4)
PLAIN_RESTARTED, LOW_RANK_RESTARTED = 0.5, 0.4
#: Shortest intervals of the cover, 64 ratings, and shortest with interactions, 4,096 ratings.
FIRST_LEVEL, FIRST_LOW_RANK_LEVEL = 6, 12
#: In the order of their numbers in the compiled loops.
LOSSES = ("absolute", "huber", "squared")
#: Step of an interaction's entry, in units of error: large, because the projection spreads it over
#: a whole row and column.
INTERACTION_STEP = 8.0
#: Interactions are projected after so many ratings, or a share of those remembered.
SHORTEST_BLOCK, BLOCK_SHARE = 1000, 1 / 12
#: Share of the radius left for the steps inside a block.
ROOM = 0.1
#: Columns of the block iteration beyond the rank.
SPARE_COLUMNS = 8
#: A direction counts only if its singular value exceeds 0, and the first excluded one, by this share
#: of the largest. Gram matrices leave errors of 1e-8 in those that are 0.
GAP = 1e-6
#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1


class Expert(NamedTuple):
    """Options of one expert."""

    step: float  # of the mean and the biases, in units of error
    radius: float = 0.0  # of interactions, in units of error times sqrt(users x items); 0: none
    level: int = -1  # restarted every 2^level ratings; -1: never

    @property
    def name(self) -> str:
        radius = f", radius {self.radius:g}" if self.radius else ""
        level = f", every {1 << self.level:,}" if self.level >= 0 else ""
        return f"step {self.step:g}{radius}{level}"


@dataclass(frozen=True)
class PoolSettings:
    """Options of a `RatingPool`, as `MatrixCompleter` describes them."""

    loss: str
    learner: str
    radii: tuple[float, ...]
    rank: int
    weighting: float
    memory: int
    seed: int
    keep_seen: bool = True

    def experts(self, t: int) -> list[Expert]:
        """All experts after t ratings: steps times radii, and one per length of intervals up to t."""
        if self.learner == "pola":
            found = [Expert(LOW_RANK_STEPS[-1], max(self.radii, default=0.0))]
        else:
            found = [Expert(step) for step in PLAIN_STEPS]
            found += [Expert(step, radius) for radius in self.radii for step in LOW_RANK_STEPS]
        for level in range(FIRST_LEVEL, t.bit_length() if self.learner != "pold" else 0):
            # Beyond the memory, interactions learned since a restart are those of the grid.
            if level >= FIRST_LOW_RANK_LEVEL and 1 << level <= 2 * self.memory and self.radii:
                found.append(Expert(LOW_RANK_RESTARTED, max(self.radii), level))
            else:
                found.append(Expert(PLAIN_RESTARTED, 0.0, level))
        return found


class Growing:
    """Named tables whose first `size` rows are in use; room doubles, so a new row costs constant time."""

    def __init__(self, tables: Any) -> None:
        self.size, self.tables = 0, tables

    @property
    def known(self) -> Any:
        """The rows in use."""
        return self.tables._make(table[: self.size] for table in self.tables)

    def grow(self, size: int) -> slice:
        """Use up to `size` rows, and return which of them are new."""
        room, old = len(self.tables[0]), self.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            self.tables = self.tables._make(_pad(table, more, 0) for table in self.tables)
        self.size = max(old, size)
        return slice(old, self.size)

    def widen(self, *widths: int) -> None:
        """Add columns of zeros to the first tables, up to these widths."""
        pairs = zip(self.tables, widths, strict=False)
        wider = [_pad(table, 0, width - table.shape[1]) for table, width in pairs]
        self.tables = self.tables._make((*wider, *self.tables[len(wider) :]))

    def drop(self, count: int) -> None:
        """Forget the oldest rows."""
        for table in self.tables:
            table[: self.size - count] = table[count : self.size].copy()
        self.size -= count


def _pad(table: Any, rows: int, columns: int) -> Any:
    """Add rows of zeros to a table or a vector, and columns of zeros to a table."""
    return np.pad(table, ((0, rows), (0, columns))[: table.ndim])


@dataclass(eq=False)
class SeenPairs:
    """A growing set of (user, item) pairs of numbers: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so n pairs cost O(n log n).
    """

    runs: tuple[Indices, ...] = ()

    def add(self, rows: Indices, cols: Indices) -> None:
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def items_of(self, row: int) -> Indices:
        """Return the items of a user, sorted."""
        first = row << ITEM_BITS
        ends = np.array([first, first + LAST_ITEM])
        parts = [run[slice(*run.searchsorted(ends))] for run in self.runs]
        return _merged(parts) & LAST_ITEM

    def pairs(self) -> Indices:
        """Return all pairs as whole numbers, sorted and distinct."""
        return _merged(self.runs)


def _merged(runs: Iterable[Indices]) -> Indices:
    """Return the union of sorted runs, sorted."""
    joined = np.concatenate([np.zeros(0, np.int64), *runs])
    joined.sort(kind="stable")  # in one pass, as runs are sorted
    return joined[np.flatnonzero(np.diff(joined, prepend=-1))]


class Recent(NamedTuple):
    """The latest ratings, one row for each."""

    steps: Array  # that each low-rank expert took there
    rows: Indices
    cols: Indices


class Older(NamedTuple):
    """Older steps of an expert since its start: a low-rank matrix, without the weights of rows."""

    start: int
    users: Array
    items: Array


class Factors(NamedTuple):
    r"""A recommender in the usual form: :math:`\mu + b_u + c_i + \langle p_u, q_i \rangle`."""

    mean: float
    user_biases: Array
    item_biases: Array
    users: Array
    items: Array


class RatingPool:
    """Experts that predict ratings, as docs/estimators.md describes; users and items are row numbers."""

    def __init__(self, settings: PoolSettings) -> None:
        table, none, nowhere = np.zeros((0, 0)), np.zeros(0), np.zeros(0, np.int64)
        self.settings = settings
        self.experts: list[Expert] = []
        side = Side(table, table, table, none, nowhere, nowhere)
        self.sides = self.users, self.items = Growing(side), Growing(side)
        self.recent = Growing(Recent(table, nowhere, nowhere))
        self.first = 0  # the number of the rating in the first row of `recent`
        self.older: dict[int, Older] = {}
        self.seen = SeenPairs()
        self.slots = Slots(none, none, none, none, nowhere, nowhere, nowhere)
        self.low = Interactions(none, none, np.zeros((0, settings.rank)))
        self.scale = Scale(np.zeros(1, np.int64), np.zeros(4))
        self.add_experts(0)
        self.slots.weights[:] = 1.0 / len(self.experts)
        self.next_projection = self.block()

    @property
    def t(self) -> int:
        return int(self.scale.clock[0])

    def block(self) -> int:
        """Ratings between two projections."""
        memory = self.settings.memory
        return max(min(SHORTEST_BLOCK, memory // 4), int(BLOCK_SHARE * min(self.t, memory)))

    def predict(self, rows: Indices, cols: Indices) -> tuple[Array, Array]:
        """Return the predictions, and those of each expert; -1 is a new user or item."""
        predictions, answers = np.zeros(rows.size), np.zeros((rows.size, len(self.experts)))
        recommender_kernels.predict(rows, cols, *self._tables(), predictions, answers)
        return predictions, answers

    def learn(self, rows: Indices, cols: Indices, ratings: Array) -> Array:
        """Learn ratings one by one; return what was predicted for each just before."""
        done, predictions = 0, np.zeros(rows.size)
        loss, metric = LOSSES.index(self.settings.loss), 0.5 ** (self.settings.weighting / 2.0)
        while done < rows.size:
            # Up to the next projection, or the next power of 2, when an expert may join.
            event = min(self.next_projection, 1 << self.t.bit_length())
            part = slice(done, min(rows.size, done + event - self.t))
            u, i = rows[part], cols[part]
            # No room for the whole call yet: radii and weights depend on how many there are so far.
            for grown, places in ((self.users, u), (self.items, i)):
                new = grown.grow(int(places.max()) + 1)
                grown.tables.metric[new], grown.tables.touched[new] = metric, -1
            new = self.recent.grow(self.recent.size + u.size)
            recent = self.recent.tables
            recent.rows[new], recent.cols[new] = u, i
            recommender_kernels.learn(
                *(u, i, ratings[part], loss, INTERACTION_STEP),
                *(*self._tables(), predictions[part], recent.steps[new]),
            )
            if self.t & (self.t - 1) == 0:
                self.add_experts(self.t)
            if self.t == self.next_projection:
                self._project()
                self.next_projection = self.t + self.block()
                if self.recent.size + self.block() > self.settings.memory:
                    self._fold()
            done = part.stop
        return predictions

    def seen_by(self, row: int) -> Indices:
        """Return the items that a user is known to have rated, in no order."""
        _, rows, cols = self.recent.known
        return np.concatenate([cols[rows == row], self.seen.items_of(row)])

    def mean_decision(self) -> Factors:
        """Return the weighted mean of the experts; what one has not seen since a restart counts as 0."""
        (users, items), slots = (grown.known for grown in self.sides), self.slots
        known = [side.touched[:, None] >= slots.starts for side in (users, items)]
        weights = np.zeros(users.rows.shape)
        for e, columns in self.interacting():
            weights[:, columns] = known[0][:, e, None] * slots.weights[e]
        return Factors(
            float(slots.means @ slots.weights),
            (users.biases * known[0]) @ slots.weights,
            (items.biases * known[1]) @ slots.weights,
            users.rows * weights,
            items.rows.copy(),
        )

    def _tables(self) -> tuple[Side, Side, Slots, Interactions, Scale]:
        return self.users.tables, self.items.tables, self.slots, self.low, self.scale

    def interacting(self) -> list[tuple[int, slice]]:
        """The experts with interactions, and the columns of their factors."""
        rank = self.settings.rank
        experts = np.flatnonzero(self.slots.low >= 0).tolist()
        return [(e, slice(k * rank, (k + 1) * rank)) for k, e in enumerate(experts)]

    def _trace_radius(self, expert: Expert) -> float:
        """The radius of an expert in units of the ratings."""
        entries = math.sqrt(self.users.size * self.items.size)
        return float(expert.radius * self.scale.numbers[0] * entries)

    def add_experts(self, t: int) -> None:
        """Add the experts that join up to rating t, with the share of weight that every expert gets."""
        for expert in self.settings.experts(t)[len(self.experts) :]:
            k = self.low.radii.size if expert.radius else -1
            added = (self.scale.numbers[3], 0.0, 0.0, expert.step, t, expert.level, k)
            weights = np.append(self.slots.weights * t, 1.0) / (t + 1.0)
            self.slots = Slots(*map(np.append, self.slots, added))._replace(weights=weights)
            self.experts.append(expert)
            if expert.radius:
                radius, rank = self._trace_radius(expert), self.settings.rank
                spread = np.full(rank, ROOM * radius / rank)
                new = zip(self.low, (radius, 0.5 * spread.sum(), spread), strict=True)
                self.low = Interactions(*(np.concatenate([table, [row]]) for table, row in new))
                self.recent.widen(k + 1)
            number = len(self.experts)
            for grown in self.sides:
                grown.widen(number, number, self.low.spreads.size)

    def _project(self) -> None:
        """Set the interactions to the projection of the steps so far."""
        sides, rank = [grown.known for grown in self.sides], self.settings.rank
        for side in sides:
            share = side.counts / side.counts.mean()
            side.metric[:] = ((share + 1.0) / 2.0) ** (self.settings.weighting / 2.0)
        for e, k, left, s, right, kept in self._leading(self.recent.size, rank):
            radius = self._trace_radius(self.experts[e])
            s = threshold_falling(s, (1.0 - ROOM) * radius)
            for side, factor in zip(sides, (left * s, right * kept), strict=True):
                # Directions may be fewer than last time; what is left of those would not be counted.
                rows = side.rows[:, k * rank : (k + 1) * rank]
                rows[:, : s.size], rows[:, s.size :] = factor / side.metric[:, None], 0.0
            spread = np.full(rank, ROOM * radius / rank)
            spread[: s.size] += s
            self.low.radii[k], self.low.spreads[k] = radius, spread
            self.low.norms[k] = 0.5 * (s**2 / spread[: s.size]).sum() + 0.5 * spread.sum()

    def _fold(self) -> None:
        """Keep only the leading directions of the oldest half of the steps."""
        half, older = self.recent.size // 2, {}
        users, items = (grown.known.metric[:, None] for grown in self.sides)
        for e, k, left, s, right, kept in self._leading(half, 2 * self.settings.rank):
            start = int(self.slots.starts[e])
            if start < self.first + half:
                older[k] = Older(start, left * (s * kept) * users, right * items)
        self.older = older
        if self.settings.keep_seen:
            self.seen.add(self.recent.tables.rows[:half], self.recent.tables.cols[:half])
        self.recent.drop(half)
        self.first += half

    def _leading(self, count: int, rank: int) -> Iterator[Any]:
        """For each low-rank expert: the leading directions of its steps since its start.

        Of recent steps, the oldest `count` are taken; all are divided by the weights of user and item.
        """
        users, items = (grown.known.metric for grown in self.sides)
        steps, rows, cols = (table[:count] for table in self.recent.tables)
        shape, numbers = (users.size, items.size), np.arange(count)
        # Sorted by user: quicker than argsort, by counting.
        by_user = scipy.sparse.csr_array((numbers, (rows, numbers)), shape=(users.size, count))
        order, pointers = by_user.data, by_user.indptr
        times, places = order + self.first, cols[order].astype(pointers.dtype)
        scales = 1.0 / (users[rows] * items[cols])
        # All experts at once: single columns of a table are slow to gather.
        steps = np.ascontiguousarray((steps * scales[:, None])[order].T)
        none = Older(0, np.zeros((0, 0)), np.zeros((0, 0)))
        for k, (e, columns) in enumerate(self.interacting()):
            start, older = int(self.slots.starts[e]), self.older.get(k, none)
            data = steps[k] * (times >= start) if start else steps[k]
            matrix = scipy.sparse.csr_array((data, places, pointers), shape=shape)
            # Of steps before a restart, only the directions are used, to start from.
            left = _weighted(older.users, users) * (older.start == start)
            right = _weighted(older.items, items)
            last = self.items.known.rows[:, columns] * items[:, None]
            space = self._space(k, np.concatenate([last, right], axis=1), users.size)
            yield e, k, *leading(matrix, left, right, space, rank)

    def _space(self, k: int, last: Array, users: int) -> Array:
        """Right vectors to start from: the last ones and random ones, or as many as span everything."""
        items, columns = last.shape
        random = np.random.default_rng([self.settings.seed, self.t, k])
        if columns + SPARE_COLUMNS >= min(users, items):
            return random.standard_normal((items, min(users, items)))
        spare = random.standard_normal((items, SPARE_COLUMNS))
        unknown = ~last.any(axis=0)
        last[:, unknown] = random.standard_normal((items, np.count_nonzero(unknown)))
        return np.concatenate([last, spare], axis=1)


def _weighted(factor: Array, weights: Array) -> Array:
    """Return a factor divided by the weights of its rows, with zeros for rows that are new since."""
    divided = np.zeros((weights.size, factor.shape[1]))
    divided[: len(factor)] = factor[: weights.size] / weights[: len(factor), None]
    return divided


def leading(
    recent: Any, left: Array, right: Array, space: Array, rank: int
) -> tuple[Array, Array, Array, Array]:
    """Return leading singular triplets of recent + left right^T, and how much each counts.

    By one round of block iteration. Right vectors of earlier blocks may depend on each other, and
    steps since a restart may map them to nearly nothing. Such images, normalised, would be rounding
    errors: they are excluded. And if the last direction ties with the first excluded one, rounding
    would choose between the two. Such directions count less, down to nothing.
    """
    image = recent @ space + left @ (right.T @ space)
    units = 1.0 / np.maximum(np.sqrt((space * space).sum(axis=0)), np.finfo(np.float64).tiny)
    gram = (image.T @ image) * units * units[:, None]
    squares, turn = eigh(gram)
    trust = ramp(squares, GAP * GAP * float(squares.max(initial=0.0)))
    image, trust = (image * units) @ turn[:, trust > 0.0], trust[trust > 0.0]
    if not image.size:
        return image, np.zeros(0), space[:, :0], np.zeros(0)
    basis = orthonormal(image) * trust
    back = recent.T @ basis + right @ (left.T @ basis)
    squares, rotation = eigh(back.T @ back)
    found = RitzSpace(basis, back, rotation[:, ::-1], np.sqrt(np.maximum(squares[::-1], 0.0)))
    least = GAP * float(found.s.max())
    s = found.s * ramp(found.s, least)
    count = min(rank, int(np.count_nonzero(s)))
    left_out = s[count] if count < s.size else 0.0
    left, right = found.leading(count)
    return left, s[:count], right, ramp(s[:count] - left_out, least)
