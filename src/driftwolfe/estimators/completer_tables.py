"""Constants and tables of `MatrixCompleter`: experts, rated pairs, users, items, latest ratings, users at rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field, Part

#: Steps of the mean and the biases, in units of error: of experts without interactions, of those
#: with, and of restarted ones without and with.
PLAIN_STEPS, LOW_RANK_STEPS = (0.3, 1.0), (0.2, 0.4)
PLAIN_RESTARTED, LOW_RANK_RESTARTED = 0.5, 0.4
#: Radii of the interactions, in units of the mean error times the root of users x items.
RADII = (0.3, 1.0)
#: Experts that never restart.
LASTING = len(PLAIN_STEPS) + len(RADII) * len(LOW_RANK_STEPS)
#: Largest rank of the interactions of one expert.
RANK = 4
#: How much the trace norm weights rows and columns by how often they are rated: 0 not at all, 1 as in Srebro
#: and Salakhutdinov (2010).
WEIGHTING = 0.75
#: Most ratings whose gradients are kept exactly, the latest; of older ones the leading directions are.
MEMORY = 131_072
#: Shortest intervals of the cover, 64 ratings, and shortest with interactions, 4,096 ratings.
FIRST_LEVEL, FIRST_LOW_RANK_LEVEL = 6, 12
#: Options that files name, with their only values: earlier versions had others.
FIXED: dict[str, Any] = {"learner": "both", "radii": [*RADII], "rank": RANK}
FIXED |= {"weighting": WEIGHTING, "memory": MEMORY, "seed": 0}
#: In the order of their numbers in the compiled loops.
LOSSES = ("absolute", "huber", "squared")
#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1
#: Bound of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
_REAL, _SHORT, _WHOLE, _BOUNDS = np.float64, np.float32, np.int64, (-LARGEST, LARGEST)


class Expert(NamedTuple):
    """Options of one expert."""

    step: float  # of the mean and the biases, in units of error
    radius: float = 0.0  # of interactions, in units of error times sqrt(users x items); 0: none
    level: int = -1  # restarted every 2^level ratings; -1: never


def experts_at(t: int) -> list[Expert]:
    """Return all experts after t ratings: steps times radii, and one per length of intervals up to t."""
    found = [Expert(step) for step in PLAIN_STEPS]
    found += [Expert(step, radius) for radius in RADII for step in LOW_RANK_STEPS]
    for level in range(FIRST_LEVEL, t.bit_length()):
        # Beyond the memory, interactions learned since a restart are those of the grid.
        if level >= FIRST_LOW_RANK_LEVEL and 1 << level <= 2 * MEMORY:
            found.append(Expert(LOW_RANK_RESTARTED, max(RADII), level))
        else:
            found.append(Expert(PLAIN_RESTARTED, 0.0, level))
    return found


class SeenPairs(Part):
    """A growing set of (user, item) pairs of numbers: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so n pairs cost O(n log n).
    """

    # One run in files and copies.
    runs: Annotated[tuple[Indices, ...], Field(_WHOLE, (None,), 0, rising=True)]

    def __init__(self, runs: tuple[Indices, ...] = ()) -> None:
        self.runs = runs

    def __getstate__(self) -> dict[str, Any]:
        return {"runs": self.pairs()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.runs = (state["runs"],)

    def add(self, rows: Indices, cols: Indices) -> None:
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def remove(self, row: int) -> None:
        """Remove a user; the numbers of later ones fall by 1."""
        pairs = self.pairs()
        kept = pairs[pairs >> ITEM_BITS != row]
        self.runs = (kept - (kept >> ITEM_BITS > row) * (1 << ITEM_BITS),)

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


class Side(NamedTuple):
    """What the experts have learned of users, or of items: one row for each."""

    biases: Annotated[Array, Field(_REAL, ("rows", "experts"))]  # a column for each expert
    # Sums of squared gradients, which scale the steps of biases.
    squares: Annotated[Array, Field(_REAL, ("rows", "experts"), 0.0)]
    # Factors of the interactions, those of each low-rank expert side by side.
    rows: Annotated[Array, Field(_REAL, ("rows", "low rank"))]
    # Weights in the weighted trace norm: they fall with the root of the number of ratings at most.
    metric: Annotated[Array, Field(_REAL, ("rows",), 1e-20, 1e20)]
    # When last rated, -1 for never; experts restarted since know nothing of the row.
    touched: Annotated[Indices, Field(_WHOLE, ("rows",), 0)]
    counts: Annotated[Indices, Field(_WHOLE, ("rows",), 1)]  # ratings so far


class Slots(NamedTuple):
    """The experts."""

    means: Annotated[Array, Field(_REAL, ("experts",))]  # the global mean of each
    # Sums of squared gradients, which scale the steps of means.
    squares: Annotated[Array, Field(_REAL, ("experts",), 0.0)]
    weights: Annotated[Array, Field(_REAL, ("experts",), 0.0, sums=True)]
    steps: Annotated[Array, Field(_REAL, ("experts",))]  # of mean and biases, in units of error
    starts: Annotated[Indices, Field(_WHOLE, ("experts",), 0)]  # when started or restarted last
    levels: Annotated[Indices, Field(_WHOLE, ("experts",))]  # restarted every 2^level; -1: never
    low: Annotated[Indices, Field(_WHOLE, ("experts",))]  # number among low-rank ones; -1: none


class Interactions(NamedTuple):
    """The low-rank experts."""

    # Bounds on the weighted trace norms.
    radii: Annotated[Array, Field(_REAL, ("low",), 0.0, LARGEST)]
    # Half the sum of |p_k|^2/d_k + d_k, with p_k the columns of the users' factors: never below the
    # trace norm, and cheap to keep up to date.
    norms: Annotated[Array, Field(_REAL, ("low",))]
    spreads: Annotated[Array, Field(_REAL, ("low", "rank"), 0.0, LARGEST)]  # d_k of each expert


class Scale(NamedTuple):
    """What all experts share."""

    clock: Annotated[Indices, Field(_WHOLE, (1,), 0, below=1 << 62)]  # ratings learned so far
    # Running mean of errors, lowest and highest rating, recent mean.
    numbers: Annotated[Array, Field(_REAL, (4,), *_BOUNDS)]


class Recent(NamedTuple):
    """The latest ratings, one row for each."""

    steps: Annotated[Array, Field(_REAL, ("recent", "low"), *_BOUNDS)]  # of each low-rank expert
    rows: Annotated[Indices, Field(_WHOLE, ("recent",), 0, below="users")]
    cols: Annotated[Indices, Field(_WHOLE, ("recent",), 0, below="items")]


class Everyone(NamedTuple):
    """All users by number: where their rows are, and what is kept of users at rest, who have none."""

    # Of the experts that never restart; 0 for users with rows.
    biases: Annotated[NDArray[np.float32], Field(_SHORT, ("everyone", LASTING))]
    squares: Annotated[NDArray[np.float32], Field(_SHORT, ("everyone", LASTING), 0.0)]
    counts: Annotated[Indices, Field(_WHOLE, ("everyone",), 0)]  # ratings of users at rest
    # -1 for users at rest.
    rows: Annotated[Indices, Field(_WHOLE, ("everyone",), -1, below="users")]


class Older(NamedTuple):
    """Older steps of an expert since its start: a low-rank matrix, without the weights of rows."""

    start: Annotated[int, Field(int, least=0)]
    users: Annotated[Array, Field(_REAL, (None, "directions"), *_BOUNDS)]
    items: Annotated[Array, Field(_REAL, (None, "directions"), *_BOUNDS)]
