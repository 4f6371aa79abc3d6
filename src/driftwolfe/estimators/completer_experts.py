"""The experts behind `MatrixCompleter`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.estimators import completer_tables as tables
from driftwolfe.estimators.completer_tables import RANK, Expert, Side
from driftwolfe.estimators.core.models import UNBOUND, Bound, bound
from driftwolfe.points.devices import eigh
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.lanczos import RitzSpace, orthonormal, threshold_falling
from driftwolfe.points.ops import ramp
from driftwolfe.state import ROUNDING, Field, Growing, Part
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.completer_kernels")

#: Step of an interaction's entry, in units of error: large, because the projection spreads it over
#: a whole row and column.
INTERACTION_STEP = 8.0
#: Interactions are projected after so many ratings, or a fraction of those remembered.
SHORTEST_BLOCK, BLOCK_FRACTION = 1000, 1 / 12
#: Fraction of the radius left for the steps inside a block.
ROOM = 0.1
#: Columns of the block iteration beyond the rank: with few items, and with more than that, where they change
#: the mean error by 0.2 % at most.
SPARE_COLUMNS, FEW_ITEMS, SPARE_OF_MANY = 8, 256, 2
#: A direction counts only if its singular value exceeds 0, and the first excluded one, by this fraction
#: of the largest. Gram matrices leave errors of 1e-8 in those that are 0.
GAP = 1e-6
#: The weight of a new row.
NEW_METRIC = 0.5 ** (tables.WEIGHTING / 2.0)
#: Once more users than that have rows, those without a rating among the latest lose theirs.
MOST_ROWS = 16_384


class Factors(NamedTuple):
    r"""Predictions of ratings in the usual form: :math:`\mu + b_u + c_i + \langle p_u, q_i \rangle`."""

    mean: float
    user_biases: Array
    item_biases: Array
    users: Array
    items: Array


class CompleterPool(Part):
    """Experts that predict ratings (docs/estimators/completer.md); users and items are numbers.

    Every item has a row in `items`. A user has one in `users` or is at rest: of users who have not rated for long
    only a count and biases are kept, in `everyone`, and the next rating gives them a row again.
    """

    settings: Annotated[
        dict[str, Any], Field(dict)
    ]  # `FIXED`, the loss, and whether rated pairs are kept
    slots: tables.Slots
    low: tables.Interactions
    scale: tables.Scale
    users: Annotated[Growing[Side], {"rows": "users"}]
    items: Annotated[Growing[Side], {"rows": "items"}]
    everyone: Growing[tables.Everyone]
    recent: Growing[tables.Recent]
    # The number of the rating in the first row of `recent`.
    first: Annotated[int, Field(int, least=0)]
    older: Annotated[dict[int, tables.Older], {"directions": "{}.directions"}]
    seen: tables.SeenPairs
    forgotten: Annotated[int, Field(int, least=0)]  # ratings of users that were forgotten
    next_projection: Annotated[int, Field(int)]
    _bound: Any = UNBOUND  # no part of the state

    def __init__(self, keep_seen: bool = True, loss: str = "huber") -> None:
        table, none, nowhere = np.zeros((0, 0)), np.zeros(0), np.zeros(0, np.int64)
        self.settings = {"loss": loss} | tables.FIXED | {"keep_seen": keep_seen}
        side = Side(table, table, table, none, nowhere, nowhere)
        self.users, self.items = Growing(side), Growing(side)
        small = np.zeros((0, tables.LASTING), np.float32)
        self.everyone = Growing(tables.Everyone(small, small, nowhere, nowhere))
        self.recent = Growing(tables.Recent(table, nowhere, nowhere))
        self.first, self.older, self.seen, self.forgotten = 0, {}, tables.SeenPairs(), 0
        self.slots = tables.Slots(none, none, none, none, nowhere, nowhere, nowhere)
        self.low = tables.Interactions(none, none, np.zeros((0, RANK)))
        self.scale = tables.Scale(np.zeros(1, np.int64), np.zeros(4))
        self.derive()
        self.experts.clear()
        self.add_experts(0)
        self.slots.weights[:] = 1.0 / len(self.experts)
        self.next_projection = self.block()

    def derive(self) -> None:
        self.sides = self.users, self.items
        self.experts: list[Expert] = tables.experts_at(self.t)

    def check(self) -> None:
        options, keep = self.settings, self.settings.get("keep_seen")
        choices = [tables.FIXED | {"loss": loss, "keep_seen": keep} for loss in tables.LOSSES]
        if options not in choices or type(keep) is not bool:
            raise ValueError(
                f"it has options that do not fit, as there are none but loss and keep_seen: {options!r:.200}; "
                "let a new model learn, or use the version of driftwolfe that wrote it"
            )
        # The experts must be those that the options make.
        slots, t = self.slots, self.t
        steps, radii, levels = np.transpose(self.experts)
        low = np.where(radii > 0.0, np.cumsum(radii > 0.0) - 1, -1)
        for own, made in ((slots.steps, steps), (slots.levels, levels), (slots.low, low)):
            require(np.array_equal(own, made), "experts")
        shape = np.count_nonzero(radii), RANK
        require(self.low.spreads.shape == shape, "experts with interactions")
        # Counts and time.
        require((slots.starts <= t).all(), "starts of experts")
        require(self.first + self.recent.size == t, "recent ratings")
        require(t < self.next_projection <= t + self.block(), "times of projections")
        require(all(k < self.low.radii.size for k in self.older), "older steps")
        (pairs,) = self.seen.runs
        require(pairs.size <= (self.first if keep else 0), "rated pairs")
        users, items = pairs >> tables.ITEM_BITS, pairs & tables.LAST_ITEM
        known = (users < self.everyone.size).all() and (items < self.items.size).all()
        require(known, "rated pairs")
        self._check_everyone()
        # Decisions and their sets.
        error, lowest, highest, last = self.scale.numbers.tolist()
        require(error >= 0.0 and lowest <= last <= highest, "ratings")
        require((slots.means >= lowest).all() and (slots.means <= highest).all(), "means")
        for grown in (self.everyone, *self.sides):
            largest = np.abs(grown.known.biases).max(initial=0.0)
            require(largest <= (1.0 + ROUNDING) * (highest - lowest), "biases")
        self._check_interactions()

    def _check_everyone(self) -> None:
        """Refuse users who have no row and are not at rest, or both, and ratings of nobody."""
        everyone, t = self.everyone.known, self.t
        rows = everyone.rows[everyone.rows >= 0]
        require(np.array_equal(np.sort(rows), np.arange(self.users.size)), "rows of users")
        resting = ((everyone.counts > 0) == (everyone.rows < 0)).all()
        require(resting, "users at rest")
        others = int(everyone.counts.sum()) + self.forgotten, 0
        for side, more in zip((grown.known for grown in self.sides), others, strict=True):
            counted = side.counts.sum() + more == t and (side.touched < t).all()
            require(counted, "ratings of users or items")

    def _check_interactions(self) -> None:
        """Refuse interactions that are not within their radius."""
        sides = [grown.known for grown in self.sides]
        for e, columns in self.interacting():
            users, items = (side.rows[:, columns] * side.metric[:, None] for side in sides)
            users[sides[0].touched < self.slots.starts[e]] = 0.0  # what the expert does not know
            radius, norm, spread = (table[self.slots.low[e]] for table in self.low)
            for part in (users, items, spread.sum()):
                require(np.abs(part).max(initial=0.0) <= tables.LARGEST, "factors")
            squares = (users**2).sum(axis=0)
            known = squares > 0.0
            # The bound on the trace norm that the loop keeps up to date is one, and within the radius.
            within = (spread[known] > 0.0).all() and norm <= (1.0 + ROUNDING) * radius
            require(within, "interactions")
            least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
            require(norm >= (1.0 - ROUNDING) * least, "interactions")
            # If the items' directions are at most orthonormal, this bounds the trace norm.
            require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")

    @property
    def t(self) -> int:
        return int(self.scale.clock[0])

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.everyone.size, self.items.size

    def block(self) -> int:
        """Return the number of ratings between two projections."""
        memory = tables.MEMORY
        return max(min(SHORTEST_BLOCK, memory // 4), int(BLOCK_FRACTION * min(self.t, memory)))

    def predict(self, users: Indices, cols: Indices) -> Array:
        """Return the predictions; -1 is a new user or item."""
        rows = np.full(users.size, -1)
        rows[users >= 0] = self.everyone.tables.rows[users[users >= 0]]
        found = self._predict(self._tables(), rows, cols)
        resting = np.flatnonzero((rows < 0) & (users >= 0))
        if resting.size:
            names, places = np.unique(users[resting], return_inverse=True)
            other = bound(UNBOUND, self._held(self._resting(names)), self._sizes)
            found[resting] = self._predict(other, places, cols[resting])
        return found

    def _predict(self, held: Bound, rows: Indices, cols: Indices) -> Array:
        predictions = np.empty(rows.size)
        rows, cols = (np.ascontiguousarray(each, np.int64) for each in (rows, cols))
        places = (array.ctypes.data for array in (rows, cols, predictions))
        kernels().predict(held.at, *places, rows.size)
        return predictions

    def predict_one(self, user: int, col: int) -> float:
        """Return the prediction of one rating."""
        row = self.everyone.tables.rows.item(user) if user >= 0 else -1
        if row < 0 <= user:
            return float(self.predict(np.array([user]), np.array([col]))[0])
        held = self._tables()
        return held.loops.predict.unchecked(held.at, row, col, 0, -1)

    def learn(self, users: Indices, cols: Indices, ratings: Array, *parts: Array) -> Array:
        """Learn ratings, of weights `parts` if given, one by one; return what was predicted just before each."""
        done, predictions = 0, np.zeros(users.size)
        ratings = np.ascontiguousarray(ratings, np.float64)
        while done < users.size:
            # Up to the next projection, or the next power of 2, when an expert may join.
            event = min(self.next_projection, 1 << self.t.bit_length())
            part = slice(done, min(users.size, done + event - self.t))
            # No room for the whole call yet: radii and weights depend on how many there are so far.
            rows, i = self._rows(users[part]), cols[part]
            self._grow_items(int(i.max()) + 1)
            new = self.recent.grow(self.recent.size + i.size)
            recent = self.recent.tables
            recent.rows[new], recent.cols[new] = rows, i
            given = (self._tables().at, new.start, i.size, INTERACTION_STEP, 0.0)
            places = [each[part].ctypes.data for each in (ratings, *parts, predictions)]
            kernels().learn(*given, places[0], places[1] if parts else 0, places[-1])
            self._events(self.t)
            done = part.stop
        return predictions

    def learn_one(self, user: int, col: int, rating: float) -> float:
        """Learn a rating; return what was predicted just before."""
        if col >= self.items.size:
            self._grow_items(col + 1)
        row = self.everyone.tables.rows.item(user) if user < self.everyone.size else -1
        if row < 0:
            row = self._new_row(user)
        place = self.recent.size
        if place == len(self.recent.tables.rows):
            self.recent.grow(place + 1)
        recent = self.recent.tables
        recent.rows[place], recent.cols[place], self.recent.size = row, col, place + 1
        held = self._tables()
        given = (held.at, place, 1, INTERACTION_STEP, rating, 0, 0, 0)
        predicted: float = held.loops.learn.unchecked(*given)
        self._events(self.scale.clock.item(0))
        return predicted

    def undone(self, t: int, rows: int, users: int, items: int) -> bool:
        """Set sizes back if still t ratings are learned, and no user at rest got a row; return whether."""
        if self.t != t or self.users.size - rows > self.everyone.size - users:
            return False
        self.users.size, self.recent.size = rows, t - self.first
        self.everyone.size, self.items.size = users, items
        return True

    def is_done(self, t: int) -> bool:
        """Whether t ratings are learned, and nothing follows the last."""
        between = t < self.next_projection < t + self.block()
        return self.t == t and between and t & (t - 1) > 0

    def _events(self, t: int) -> None:
        """What happens once t ratings are learned: experts that join, projections, and a fold."""
        if t & (t - 1) == 0:
            self.add_experts(t)
        if t == self.next_projection:
            self._project()
            self.next_projection = t + self.block()
            if self.recent.size + self.block() > tables.MEMORY:
                self._fold()

    def _grow_items(self, size: int) -> None:
        """Give rows to items that are new."""
        new = self.items.grow(size)
        self.items.tables.metric[new], self.items.tables.touched[new] = NEW_METRIC, -1

    def _new_row(self, user: int) -> int:
        """Return a row for a user who is new, in order of numbers, or at rest."""
        if user < self.everyone.size:
            return int(self._rows(np.array([user]))[0])
        row = self.users.size
        self.everyone.grow(user + 1)
        self.users.grow(row + 1)
        self.everyone.tables.rows[user], self.users.tables.metric[row] = row, NEW_METRIC
        return row

    def _rows(self, users: Indices) -> Indices:
        """Return the rows of users; those who are new or at rest get one."""
        new = self.everyone.grow(int(users.max()) + 1)
        places = self.everyone.tables.rows
        places[new] = -1
        rows = places[users]
        if (rows < 0).any():
            names = np.array(list(dict.fromkeys(users[rows < 0].tolist())))
            own = self.users.grow(self.users.size + names.size)
            for table, restored in zip(self.users.tables, self._resting(names), strict=True):
                table[own] = restored
            for kept in self.everyone.tables[:-1]:
                kept[names] = 0
            places[names] = np.arange(own.start, own.stop)
            rows = places[users]
        return rows

    def _resting(self, users: Indices) -> Side:
        """Return rows for users who have none."""
        kept_of: tuple[Any, ...] = self.everyone.tables
        biases, squares, counts, _ = (table[users] for table in kept_of)
        restarted = np.zeros((users.size, len(self.experts) - tables.LASTING))
        return Side(
            *(np.hstack([biases, restarted]), np.hstack([squares, restarted])),
            *(np.zeros((users.size, self.low.spreads.size)), np.full(users.size, NEW_METRIC)),
            *(np.zeros(users.size, np.int64), counts),
        )

    def _rest(self) -> None:
        """Take the rows of users who are not among the latest ratings, if there are many."""
        if self.users.size <= MOST_ROWS:
            return
        rated = np.zeros(self.users.size, dtype=bool)
        rated[self.recent.known.rows] = True
        known, everyone, owners = self.users.known, self.everyone.tables, self.owners()
        names = owners[~rated]
        everyone.biases[names] = known.biases[~rated, : tables.LASTING]
        everyone.squares[names] = known.squares[~rated, : tables.LASTING]
        everyone.counts[names], everyone.rows[names] = known.counts[~rated], -1
        self._keep_rows(np.flatnonzero(rated), owners)

    def _keep_rows(self, rows: Indices, owners: Indices) -> None:
        """Remove all other rows of users."""
        places = np.full(self.users.size, -1)
        places[rows] = np.arange(rows.size)
        self.users.keep(rows)
        self.everyone.tables.rows[owners[rows]] = places[rows]
        self.recent.known.rows[:] = places[self.recent.known.rows]
        older = {
            k: o._replace(users=o.users[rows[rows < len(o.users)]]) for k, o in self.older.items()
        }
        self.older = {k: o for k, o in older.items() if o.users.any()}

    def owners(self) -> Indices:
        """Return the number of the user of each row."""
        rows = self.everyone.known.rows
        owners, names = np.empty(self.users.size, np.int64), np.flatnonzero(rows >= 0)
        owners[rows[names]] = names
        return owners

    def forget(self, user: int) -> None:
        """Remove a user; the numbers of later ones fall by 1."""
        row = int(self.everyone.tables.rows[user])
        self.forgotten += int(self.everyone.tables.counts[user])
        if row >= 0:
            self.forgotten += int(self.users.tables.counts[row])
            steps, rows, cols = self.recent.known
            gone, others = np.flatnonzero(rows == row), np.flatnonzero(rows != row)
            if others.size:
                # Steps of size 0 at the pair before, so that times of later ratings stay.
                near = others[np.maximum(others.searchsorted(gone) - 1, 0)]
                steps[gone], rows[gone], cols[gone] = 0.0, rows[near], cols[near]
            else:
                self.first += gone.size
                self.recent.keep(others)
            self._keep_rows(np.delete(np.arange(self.users.size), row), self.owners())
        self.everyone.keep(np.delete(np.arange(self.everyone.size), user))
        self.seen.remove(user)

    def seen_by(self, user: int) -> Indices:
        """Return the items that a user, -1 for a new one, is known to have rated, in no order."""
        row = self.everyone.tables.rows[user] if user >= 0 else -1
        _, rows, cols = self.recent.known
        return np.concatenate([cols[rows == row], self.seen.items_of(user)])

    def _of_everyone(self, values: Array, resting: Array | float = 0.0) -> Array:
        """Return values by the number of the user, from values by row and those of users at rest."""
        rows = self.everyone.known.rows
        found = np.empty((rows.size, *values.shape[1:]))
        found[rows >= 0], found[rows < 0] = values[rows[rows >= 0]], resting
        return found

    def mean_decision(self) -> Factors:
        """Return the weighted mean of the experts; what one has not seen since a restart counts as 0."""
        (users, items), slots = (grown.known for grown in self.sides), self.slots
        known = [side.touched[:, None] >= slots.starts for side in (users, items)]
        weights = np.zeros(users.rows.shape)
        for e, columns in self.interacting():
            weights[:, columns] = known[0][:, e, None] * slots.weights[e]
        everyone = self.everyone.known
        resting = everyone.biases[everyone.rows < 0] @ slots.weights[: tables.LASTING]
        return Factors(
            float(slots.means @ slots.weights),
            self._of_everyone((users.biases * known[0]) @ slots.weights, resting),
            (items.biases * known[1]) @ slots.weights,
            self._of_everyone(users.rows * weights),
            items.rows.copy(),
        )

    def _tables(self) -> Bound:
        """Return where tables lie, to be kept while a loop runs: another thread may replace what is known."""
        if (known := self._bound) is not UNBOUND:  # `bound` itself takes as long as a prediction
            users, items, slots, low, scale, recent = known.held
            same = users is self.users.tables and items is self.items.tables and slots is self.slots
            if same and low is self.low and scale is self.scale and recent is self.recent.tables:
                return known
        known = bound(UNBOUND, self._held(self.users.tables), self._sizes)
        self._bound = known = known._replace(loops=kernels())
        return known

    def _held(self, users: Side) -> tuple[Any, ...]:
        """Return all tables that loops work on, with these of users."""
        return users, self.items.tables, self.slots, self.low, self.scale, self.recent.tables

    def _sizes(self) -> tuple[list[int], int]:
        """Return the sizes that loops are given, and that of working memory."""
        experts = len(self.experts)
        loss = tables.LOSSES.index(self.settings["loss"])
        return [experts, RANK, self.low.radii.size, loss], 2 * experts

    def interacting(self) -> list[tuple[int, slice]]:
        """The experts with interactions, and the columns of their factors."""
        experts = np.flatnonzero(self.slots.low >= 0).tolist()
        return [(e, slice(k * RANK, (k + 1) * RANK)) for k, e in enumerate(experts)]

    def _trace_radius(self, expert: Expert) -> float:
        """The radius of an expert in units of the ratings."""
        entries = math.sqrt(self.users.size * self.items.size)
        return float(expert.radius * self.scale.numbers[0] * entries)

    def add_experts(self, t: int) -> None:
        """Add the experts that join up to rating t, with the weight that fixed share gives to every expert."""
        for expert in tables.experts_at(t)[len(self.experts) :]:
            k = self.low.radii.size if expert.radius else -1
            added = (self.scale.numbers[3], 0.0, 0.0, expert.step, t, expert.level, k)
            weights = np.append(self.slots.weights * t, 1.0) / (t + 1.0)
            self.slots = tables.Slots(*map(np.append, self.slots, added))._replace(weights=weights)
            self.experts.append(expert)
            if expert.radius:
                radius = self._trace_radius(expert)
                spread = np.full(RANK, ROOM * radius / RANK)
                new = zip(self.low, (radius, 0.5 * spread.sum(), spread), strict=True)
                self.low = tables.Interactions(
                    *(np.concatenate([table, [row]]) for table, row in new)
                )
                self.recent.widen(k + 1)
            number = len(self.experts)
            for grown in self.sides:
                grown.widen(number, number, self.low.spreads.size)

    def _project(self) -> None:
        """Set the interactions to the projection of the steps so far."""
        sides = [grown.known for grown in self.sides]
        for side in sides:
            relative = side.counts / side.counts.mean()
            side.metric[:] = ((relative + 1.0) / 2.0) ** (tables.WEIGHTING / 2.0)
        for e, k, left, s, right, kept in self._leading(self.recent.size, RANK):
            radius = self._trace_radius(self.experts[e])
            s = threshold_falling(s, (1.0 - ROOM) * radius)
            for side, factor in zip(sides, (left * s, right * kept), strict=True):
                # Directions may be fewer than last time; what is left of those would not be counted.
                rows = side.rows[:, k * RANK : (k + 1) * RANK]
                rows[:, : s.size], rows[:, s.size :] = factor / side.metric[:, None], 0.0
            spread = np.full(RANK, ROOM * radius / RANK)
            spread[: s.size] += s
            self.low.radii[k], self.low.spreads[k] = radius, spread
            self.low.norms[k] = 0.5 * (s**2 / spread[: s.size]).sum() + 0.5 * spread.sum()

    def _fold(self) -> None:
        """Keep only the leading directions of the oldest half of the steps."""
        half, older = self.recent.size // 2, {}
        users, items = (grown.known.metric[:, None] for grown in self.sides)
        for e, k, left, s, right, kept in self._leading(half, 2 * RANK):
            start = int(self.slots.starts[e])
            if start < self.first + half:
                older[k] = tables.Older(start, left * (s * kept) * users, right * items)
        self.older = older
        if self.settings["keep_seen"]:
            users = self.owners()[self.recent.tables.rows[:half]]
            self.seen.add(users, self.recent.tables.cols[:half])
        self.recent.keep(np.arange(half, self.recent.size))
        self.first += half
        self._rest()

    def _leading(self, count: int, rank: int) -> Iterator[Any]:
        """For each low-rank expert: the leading directions of its steps, the oldest `count`, since its start."""
        users, items = (grown.known.metric for grown in self.sides)
        steps, rows, cols = (table[:count] for table in self.recent.tables)
        scale = 1.0 / (users[rows] * items[cols])
        # Sorted by user: in the order of time for each, by a count of them.
        listed = (np.ones(count, np.int8), rows, np.arange(count + 1))
        by_user = scipy.sparse.csr_array(listed, shape=(count, users.size)).tocsc()
        order, shape = by_user.indices, (users.size, items.size)
        short = [indices.astype(np.int32) for indices in (cols[order], by_user.indptr)]
        matrix = scipy.sparse.csr_array((scale, *short), shape=shape)
        flipped = matrix.T
        none = tables.Older(0, np.zeros((0, 0)), np.zeros((0, 0)))
        for k, (e, columns) in enumerate(self.interacting()):
            start, older = int(self.slots.starts[e]), self.older.get(k, none)
            data = steps[:, k] * scale
            data[: max(start - self.first, 0)] = 0.0
            matrix.data = flipped.data = data[order]
            # Of steps before a restart, only the directions are used, to start from.
            left = _weighted(older.users, users) * (older.start == start)
            right = _weighted(older.items, items)
            last = self.items.known.rows[:, columns] * items[:, None]
            space = self._space(k, np.concatenate([last, right], axis=1), users.size)
            yield e, k, *leading((matrix, flipped), left, right, space, rank)

    def _space(self, k: int, last: Array, users: int) -> Array:
        """Right vectors to start from: the last ones and random ones, or as many as span everything."""
        items, columns = last.shape
        random = np.random.default_rng([0, self.t, k])
        more = SPARE_COLUMNS if items <= FEW_ITEMS else SPARE_OF_MANY
        if columns + more >= min(users, items):
            return random.standard_normal((items, min(users, items)))
        spare, unknown = random.standard_normal((items, more)), ~last.any(axis=0)
        last[:, unknown] = random.standard_normal((items, np.count_nonzero(unknown)))
        return np.concatenate([last, spare], axis=1)


def _weighted(factor: Array, weights: Array) -> Array:
    """Return a factor divided by the weights of its rows, with zeros for rows that are new since."""
    divided = np.zeros((weights.size, factor.shape[1]))
    divided[: len(factor)] = factor[: weights.size] / weights[: len(factor), None]
    return divided


def leading(
    recent: tuple[Any, Any], left: Array, right: Array, space: Array, rank: int
) -> tuple[Array, Array, Array, Array]:
    """Return leading singular triplets of recent + left right^T, and how much each counts.

    By one round of block iteration; of the recent steps, both the matrix and its transpose are given. Right vectors
    of earlier blocks may depend on each other, and steps since a restart may map them to nearly nothing: such
    images, normalised, would be rounding errors, and are excluded. If the last direction ties with the first
    excluded one, rounding would choose between the two: such directions count less, down to nothing.
    """
    image = recent[0] @ space + left @ (right.T @ space)
    units = 1.0 / np.maximum(np.sqrt((space * space).sum(axis=0)), np.finfo(np.float64).tiny)
    gram = (image.T @ image) * units * units[:, None]
    squares, turn = eigh(gram)
    trust = ramp(squares, GAP * GAP * float(squares.max(initial=0.0)))
    image, trust = (image * units) @ turn[:, trust > 0.0], trust[trust > 0.0]
    if not image.size:
        return image, np.zeros(0), space[:, :0], np.zeros(0)
    basis = orthonormal(image) * trust
    back = recent[1] @ basis + right @ (left.T @ basis)
    squares, rotation = eigh(back.T @ back)
    found = RitzSpace(basis, back, rotation[:, ::-1], np.sqrt(np.maximum(squares[::-1], 0.0)))
    least = GAP * float(found.s.max())
    s = found.s * ramp(found.s, least)
    count = min(rank, int(np.count_nonzero(s)))
    left_out = s[count] if count < s.size else 0.0
    left, right = found.leading(count)
    return left, s[:count], right, ramp(s[:count] - left_out, least)
