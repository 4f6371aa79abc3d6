"""The experts behind `MatrixCompleter`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains.thresholds import threshold_falling
from driftwolfe.estimators import recommender_kernels
from driftwolfe.estimators.recommender_kernels import Interactions, Scale, Side, Slots
from driftwolfe.estimators.recommender_tables import (
    GrowingSide,
    Older,
    RecentSteps,
    SeenPairs,
    StepMatrix,
    weighted,
)
from driftwolfe.points.devices import device_of, eigh
from driftwolfe.points.kinds import Array, Indices
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
    """Options of one expert."""

    step: float  # of the mean and the biases, in units of error
    radius: float = 0.0  # of interactions, in units of error times sqrt(users x items); 0: none
    level: int = -1  # restarted every 2^level ratings; -1: never

    @property
    def name(self) -> str:
        """Its options in words."""
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

    def grid(self) -> list[Expert]:
        """Experts that never restart: steps times radii."""
        if self.learner == "pola":
            return [Expert(LOW_RANK_STEPS[-1], max(self.radii, default=0.0))]
        return [Expert(step) for step in PLAIN_STEPS] + [
            Expert(step, radius) for radius in self.radii for step in LOW_RANK_STEPS
        ]

    def restarted(self, level: int) -> Expert | None:
        """The expert for intervals of 2^level ratings, if there is one."""
        if self.learner == "pold" or level < FIRST_LEVEL:
            return None
        # Beyond the memory, interactions learned since a restart are those of the grid.
        remembered = 1 << level <= 2 * self.memory
        if level < FIRST_LOW_RANK_LEVEL or not remembered or not self.radii:
            return Expert(PLAIN_RESTARTED, 0.0, level)
        return Expert(LOW_RANK_RESTARTED, max(self.radii), level)

    def experts(self, t: int) -> list[Expert]:
        """All experts after t ratings: one for each length of intervals joins once t reaches it."""
        joined = (self.restarted(level) for level in range(t.bit_length()))
        return self.grid() + [expert for expert in joined if expert]


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


@dataclass(eq=False)
class RatingPool:
    r"""Experts that predict ratings, and their weights; users and items are numbers of rows.

    Each expert predicts :math:`\mu + b_u + c_i + X_{ui}`. Mean and biases take AdaGrad steps within
    the range of ratings. Steps of X are collected in a matrix Y, and at the end of a block X becomes
    the projection of the `rank` leading directions of Y onto the ball; within a block only the row of
    the rating's user moves, inside the space that X has.
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

    def predict(self, rows: Indices, cols: Indices) -> tuple[Array, Array]:
        """Return the predictions, and those of each expert; -1 is a new user or item."""
        predictions, answers = np.zeros(rows.size), np.zeros((rows.size, len(self.experts)))
        recommender_kernels.predict(rows, cols, *self._tables(), predictions, answers)
        return predictions, answers

    def learn(self, rows: Indices, cols: Indices, ratings: Array) -> Array:
        """Learn ratings one by one; return what was predicted for each just before.

        New rows and columns are numbered as they appear.
        """
        done, predictions = 0, np.zeros(rows.size)
        loss, metric = LOSSES.index(self.settings.loss), 0.5 ** (self.settings.weighting / 2.0)
        while done < rows.size:
            # Up to the next projection, or the next power of 2, when an expert may join.
            event = min(self.next_projection, 1 << self.t.bit_length())
            part = slice(done, min(rows.size, done + event - self.t))
            u, i = rows[part], cols[part]
            # No room for the whole call yet: radii and weights depend on how many there are so far.
            self.users.grow(int(u.max()) + 1, metric)
            self.items.grow(int(i.max()) + 1, metric)
            steps = self.recent.append(u, i)
            recommender_kernels.learn(
                *(u, i, ratings[part], loss, INTERACTION_STEP),
                *(*self._tables(), predictions[part], steps),
            )
            if self.t & (self.t - 1) == 0:
                expert = self.settings.restarted(self.t.bit_length() - 1)
                if expert is not None:
                    self._add(expert)
            if self.t == self.next_projection:
                self._project()
                self.next_projection = self.t + self.block()
                if self.recent.size + self.block() > self.settings.memory:
                    self._fold()
            done = part.stop
        return predictions

    def seen_by(self, row: int) -> Indices:
        """Return the items that a user is known to have rated, in no order."""
        recent = self.recent
        lately = recent.cols[: recent.size][recent.rows[: recent.size] == row]
        return np.concatenate([lately, self.seen.items_of(row)])

    @property
    def sides(self) -> tuple[GrowingSide, GrowingSide]:
        """Users and items."""
        return self.users, self.items

    def mean_decision(self) -> tuple[float, Array, Array, Array, Array]:
        """Return the weighted mean of the experts: mean, both biases, and factors of both sides.

        What a restarted expert has not seen since counts as 0, though not yet cleared.
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

    def block(self) -> int:
        """Ratings between two projections."""
        memory = self.settings.memory
        return max(min(SHORTEST_BLOCK, memory // 4), int(BLOCK_SHARE * min(self.t, memory)))

    def _add(self, expert: Expert) -> None:
        """Add an expert, with the share of weight that every expert gets in a round."""
        t, slots = self.t, self.slots
        k = self.low.radii.size if expert.radius else -1
        added = (self.scale.numbers[3], 0.0, 0.0, expert.step, t, expert.level, k)
        weights = np.append(slots.weights * t, 1.0) / (t + 1.0)
        self.slots = Slots(*map(np.append, slots, added))._replace(weights=weights)
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

    def _project(self) -> None:
        """Set the interactions to the projection of the steps so far."""
        metrics, rank = self._metrics(), self.settings.rank
        for grown, weights in zip(self.sides, metrics, strict=True):
            grown.side.metric[: grown.size] = weights
        for e, k, left, s, right, kept in self._leading(metrics, self.recent.size, -1, rank):
            radius = self.trace_radius(self.experts[e].radius)
            s = threshold_falling(s, (1.0 - ROOM) * radius)
            factors = left * s, right * kept
            for grown, factor, weights in zip(self.sides, factors, metrics, strict=True):
                # Directions may be fewer than last time; what is left of those would not be counted.
                rows = grown.side.rows[: grown.size, k * rank : (k + 1) * rank]
                rows[:, : s.size], rows[:, s.size :] = factor / weights[:, None], 0.0
            spread = np.full(rank, ROOM * radius / rank)
            spread[: s.size] += s
            self.low.radii[k], self.low.spreads[k] = radius, spread
            self.low.norms[k] = 0.5 * (s**2 / spread[: s.size]).sum() + 0.5 * spread.sum()

    def _fold(self) -> None:
        """Keep only the leading directions of the oldest half of the steps."""
        half, metrics, older = self.recent.size // 2, self._metrics(), {}
        users, items = metrics
        end, rank = self.recent.first + half, 2 * self.settings.rank
        for e, k, left, s, right, kept in self._leading(metrics, half, end, rank):
            start = int(self.slots.starts[e])
            older[k] = Older(start, left * (s * kept) * users[:, None], right * items[:, None])
        self.older = older
        if self.settings.keep_seen:
            self.seen.add(self.recent.rows[:half], self.recent.cols[:half])
        self.recent.drop(half)

    def _metrics(self) -> tuple[Array, Array]:
        """The weights of users and items in the weighted trace norm."""
        weighting = self.settings.weighting
        return self.users.metrics(weighting), self.items.metrics(weighting)

    def _leading(
        self, metrics: tuple[Array, Array], count: int, end: int, rank: int
    ) -> Iterator[Any]:
        """For low-rank experts: the leading directions of their steps since their start.

        Of recent steps, the oldest `count` are taken; experts started at `end` or later are left out,
        none if it is negative.
        """
        table = self.recent.table(*metrics, count)
        for e in np.flatnonzero(self.slots.low >= 0).tolist():
            k, start = int(self.slots.low[e]), int(self.slots.starts[e])
            if 0 <= end <= start:
                continue
            older = self.older.get(k)
            if older is None or older.start != start:
                older = Older(start, np.zeros((0, 0)), np.zeros((0, 0)))
            factors = map(weighted, older[1:], metrics)
            steps = StepMatrix(table.matrix(k, start), *factors)
            yield e, k, *leading(steps, self._space(k, *metrics), rank)

    def _space(self, k: int, users: Array, items: Array) -> Array:
        """Right vectors that block iteration starts from: the last ones, and random ones.

        They span everything if the matrix is small, so that its projection is exact.
        """
        rank = self.settings.rank
        random = np.random.default_rng([self.settings.seed, self.t, k])
        last = self.items.side.rows[: items.size, k * rank : (k + 1) * rank] * items[:, None]
        older = self.older.get(k)
        if older is not None:
            last = np.concatenate([last, weighted(older.items, items)], axis=1)
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

    If the last of them ties with the first excluded one, rounding would choose between the two. Such
    directions count less, down to nothing.
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
    to nearly nothing. Such images, normalised, would be rounding errors: they are excluded.
    """
    image, trust = _trusted(steps.times(space), np.sqrt((space * space).sum(axis=0)))
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
    try:  # No eigenvalue is below twice that, so all count: a tenth of the time of the rule.
        np.linalg.cholesky(gram - 2.0 * least * np.eye(len(gram)))
        return image, 1.0
    except np.linalg.LinAlgError:
        squares, turn = eigh(gram)
    trust = ramp(squares, GAP * GAP * float(squares.max(initial=0.0)))
    trusted = trust > 0.0
    return (image * units) @ turn[:, trusted], trust[trusted]
