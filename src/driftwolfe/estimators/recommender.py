"""`MatrixCompleter`: a recommender for ratings that come one after the other."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains import Box, LinfBall, ProductDomain, TraceNormBall
from driftwolfe.estimators.recommender_archive import check_header, pool_from_state, pool_state
from driftwolfe.estimators.recommender_experts import LOSSES, PoolSettings, RatingPool
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array
from driftwolfe.points.product import ProductPoint
from driftwolfe.storage import (
    Archive,
    Header,
    check_keys,
    decode_keys,
    encode_keys,
    enough_memory,
    plain_key,
    read_archive,
    write_archive,
)


class Ids:
    """Anything hashable, numbered 0, 1, 2, ... in order of appearance.

    >>> ids = Ids(["ann"])
    >>> numbers, new = ids.number(["bob", "ann", "bob"])
    >>> numbers, new
    (array([1, 0, 1]), ['bob'])
    >>> ids.add(new)
    >>> ids.find(["bob", "eve"])
    array([ 1, -1])
    """

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, keys: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return the number of each key; -1 for one never seen."""
        get = self._numbers.get
        return np.fromiter((get(key, -1) for key in keys), np.int64, len(keys))

    def number(self, keys: Sequence[Hashable]) -> tuple[NDArray[np.int64], list[Any]]:
        """Return the number that each key has or will have once the new ones, in a list, are added."""
        numbers = self.find(keys)
        new: dict[Any, int] = {}
        for place in np.flatnonzero(numbers < 0).tolist():
            numbers[place] = new.setdefault(keys[place], len(self.names) + len(new))
        return numbers, list(new)

    def add(self, names: Iterable[Hashable]) -> None:
        """Give new keys the next numbers."""
        for name in names:
            self._numbers[name] = len(self.names)
            self.names.append(name)


def columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the users and the items of pairs, or say what is wrong with them.

    >>> columns([("ann", 7), ("bob", 8)])
    (['ann', 'bob'], [7, 8])
    """
    if checks.has_masked_entries(pairs, depth=1):
        raise ValueError("pairs has masked entries; fill them in (with .filled) or leave them out")
    users, items = _split(pairs)
    return _checked(users, "user"), _checked(items, "item")


def _checked(ids: list[Any], name: str) -> list[Any]:
    """Return ids that can be looked up: NumPy's dates would not be found again, plain ones are."""
    check_keys(ids, f"the id of one {name}")
    try:
        distinct = set(ids)
    except TypeError as error:
        raise TypeError(f"{name} ids must be hashable: {error}") from None
    if any(isinstance(key, np.generic) for key in distinct):
        return [plain_key(key) for key in ids]
    return ids


def _split(pairs: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(pairs, "iloc"):  # a data frame: columns of different types stay what they are
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must have two columns, user and item, got shape {pairs.shape}")
        return pairs.iloc[:, 0].tolist(), pairs.iloc[:, 1].tolist()
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(f"pairs must have shape (n, 2), got {pairs.shape}")
        return pairs[:, 0].tolist(), pairs[:, 1].tolist()
    try:
        rows = list(pairs)
        if all(len(row) == 2 and not isinstance(row, str | bytes) for row in rows):
            return [row[0] for row in rows], [row[1] for row in rows]
    except (TypeError, KeyError):
        pass
    raise ValueError(
        "pairs must be a list of (user, item) pairs, an array or a frame of two columns"
    )


LEARNERS = ("both", "pold", "pola")
MOST_RADII = 64
#: Squares of sums of such numbers stay in range.
LARGEST_RATING = 1e100


class Factors(NamedTuple):
    r"""A recommender in the usual form: :math:`\mu + b_u + c_i + \langle p_u, q_i \rangle`."""

    mean: float
    user_biases: Array
    item_biases: Array
    users: Array
    items: Array


class MatrixCompleter(Guarded):
    r"""Predicts ratings of items by users from a stream of them; follows drift, nothing to tune.

    Users and items are anything hashable, and may appear at any time. The decision lies in a product
    of four sets: a global mean within the range of ratings, user and item biases in boxes, and
    interactions in a (weighted) trace-norm ball,

    .. math:: \hat r_{ui} = \mu + b_u + c_i + X_{ui}.

    Experts with different step sizes and radii learn it side by side, some of them restarted at the
    intervals of a geometric cover, as in `POLD` and `POLA`; the prediction is the weighted mean of
    theirs. Ratings are learned one by one, in the order given, whatever the batches: one call with n
    ratings leaves the same state, to the last bit, as n calls with one.

    Memory grows with users and items (some 70 numbers for each after 100,000 ratings; their number
    grows with the logarithm of the number of ratings), and holds the gradients of the latest ratings,
    at most `memory` of them, however long the stream is. Beyond these, each different (user, item)
    pair takes 8 bytes, so that `recommend` can leave out what was rated; see `keep_seen`.

    Parameters
    ----------
    loss
        ``"huber"`` (quadratic up to 1.33 times the mean error so far, then absolute),
        ``"absolute"`` or ``"squared"``.
    learner
        Which experts: ``"pold"``, step sizes times radii; ``"pola"``, restarted ones; ``"both"``.
    radii
        Radii of the trace-norm balls, in units of the mean error times the root of users x items.
        None at all: only mean and biases.
    rank
        Most directions that the interactions of one expert have.
    weighting
        0 for the plain trace norm, 1 for rows and columns weighted by how often they are rated
        (Srebro and Salakhutdinov 2010), or between.
    memory
        Most ratings whose gradients are kept exactly: the latest, at least a third as many. Of
        older ones the leading directions are kept.
    seed
        Of the random directions that the projections look into.
    keep_seen
        Whether to remember which pairs were rated beyond `memory`, 8 bytes for each different one.
        Without it, memory does not grow with the number of ratings, and `recommend` leaves out only
        the latest ratings.

    Attributes
    ----------
    users_, items_
        Ids seen so far, in order of appearance.
    n_ratings_
        Number of ratings learned.
    expert_names_, expert_weights_
        The experts, and how much each counts now.

    Notes
    -----
    Let :math:`u_t` be the unit of errors once the error of rating t is counted (1.33 times their
    running mean) and :math:`f_t` the loss of a prediction in that unit. For N experts after T ratings,
    and any sequence of them with S switches, to each only once it is there,

    .. math:: \sum_t f_t(\hat r_t) - f_t(\hat r_{t, e_t}) \le
              \frac{(S + 1) \ln (N T) + 1/32}{0.8} + 0.1 \sum_t \Delta_t^2

    with :math:`\Delta_t` the range of the experts' losses in round t: fixed share with share
    1/(t + 1) (Herbster and Warmuth 1998) and Hoeffding's lemma; 1/32 is what the others give to
    experts that join. It supposes errors of at most 1,000 units, as larger ones count as 1,000.
    For one expert's interactions there is no such statement: its projections look at `rank` leading
    directions only, and are as good as one round of block iteration finds them. The sets do hold:
    every decision of every expert lies in its product of sets, at all times.

    Rescaling or shifting all ratings rescales or shifts all predictions.
    Rounding errors in ratings hardly move predictions: while the mean error is at most 1e-12 of the
    largest rating, ratings count as equal and nothing is learned; under the absolute loss an error up
    to 1e-9 units has slope 0; and of directions that tie at `rank`, up to 1e-6 of the largest, none
    counts. With a `memory` of a few hundred ratings and radii above 1 the interactions are chaotic,
    and small differences grow along the stream.

    Several threads may predict, recommend or save at the same time. While one thread learns, these
    calls are refused with a RuntimeError in other threads, and so is learning while another thread
    reads. `n_ratings_` and `repr` can be read at any time.

    Examples
    --------
    >>> completer = MatrixCompleter()
    >>> completer.partial_fit([("ann", "up"), ("bob", "up"), ("ann", "heat")], [5.0, 4.0, 2.0])
    MatrixCompleter(users=2, items=2, ratings=3)
    >>> completer.predict([("bob", "heat"), ("somebody new", "up")]).round(1)
    array([3.7, 4.2])
    >>> completer.recommend("bob", 1)
    ['heat']

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI. Srebro and Salakhutdinov (2010), Collaborative filtering in a
    non-uniform world, NeurIPS. Herbster and Warmuth (1998), Tracking the best expert, Machine
    Learning.
    """

    def __init__(
        self,
        *,
        loss: str = "huber",
        learner: str = "both",
        radii: Sequence[float] = (0.3, 1.0),
        rank: int = 4,
        weighting: float = 0.75,
        memory: int = 131_072,
        seed: int = 0,
        keep_seen: bool = True,
    ) -> None:
        for name, given, allowed in (("loss", loss, tuple(LOSSES)), ("learner", learner, LEARNERS)):
            if given not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {given!r}")
        if not isinstance(radii, Iterable):
            raise TypeError(f"radii must be a sequence of positive numbers, got {radii!r}")
        radii = tuple(islice(radii, MOST_RADII + 1))
        if len(radii) > MOST_RADII:
            raise ValueError(f"radii must be at most {MOST_RADII}: each makes two experts")
        weight = checks.nonnegative(weighting, "weighting")
        if weight > 1.0:
            raise ValueError(f"weighting must lie in 0..1, got {weighting!r}")
        if not isinstance(keep_seen, bool):
            raise TypeError(f"keep_seen must be True or False, got {keep_seen!r}")
        self._pool = RatingPool(
            PoolSettings(
                loss,
                learner,
                tuple(checks.positive(radius, "radii") for radius in radii),
                checks.count(rank, "rank"),
                weight,
                checks.count(memory, "memory", least=64),
                checks.count(seed, "seed", least=0, most=math.inf),
                keep_seen,
            )
        )
        self._users, self._items = Ids(), Ids()

    # -- learning and predicting -----------------------------------------------------------------

    def partial_fit(self, pairs: Any, ratings: Any) -> Self:
        """Learn ratings, in the order given.

        Parameters
        ----------
        pairs
            (user, item) pairs: a list of them, or an array or data frame of two columns.
        ratings
            One finite number for each.
        """
        self.prequential(pairs, ratings)
        return self

    @writes
    def prequential(self, pairs: Any, ratings: Any) -> Array:
        """Predict each rating, then learn it, one after the other; return the predictions.

        The same as a call of `predict` and one of `partial_fit` for each rating, and much quicker:
        the way to judge a learner on a stream.
        """
        users, items = columns(pairs)
        if not users:
            raise ValueError("pairs is empty: give at least one rating to learn")
        values = checks.finite_array(ratings, "ratings", (len(users),))
        if np.abs(values).max() > LARGEST_RATING:
            raise ValueError(f"ratings must lie within ±{LARGEST_RATING:g}")
        rows, new_users = self._users.number(users)
        cols, new_items = self._items.number(items)
        predictions = self._pool.learn(rows, cols, np.ascontiguousarray(values))
        self._users.add(new_users)
        self._items.add(new_items)
        return predictions

    @reads
    def predict(self, pairs: Any) -> Array:
        """Return a rating for each pair; users and items never seen count as average.

        Before the first rating it is 0.
        """
        return self._predicted(*columns(pairs))[0]

    @reads
    def expert_predictions(self, pairs: Any) -> Array:
        """Return a table of what each expert predicts: a row for each pair."""
        return self._predicted(*columns(pairs))[1]

    @reads
    def recommend(self, user: Hashable, n: int = 10, exclude_seen: bool = True) -> list[Any]:
        """Return the items with the highest predictions for a user, best first.

        Parameters
        ----------
        user
            One never seen gets what is liked in general.
        n
            Most items to return; there are fewer where there are not as many.
        exclude_seen
            Leave out what the user has rated. Without `keep_seen`, and after loading a file from before
            there was this option: only as far as `memory` holds (or held) it.
        """
        count = checks.count(n, "n", least=0)
        users, _ = columns([(user, None)])
        row = self._users.find(users)
        cols = np.arange(len(self._items))
        if exclude_seen:
            cols = np.setdiff1d(cols, self._pool.seen_by(int(row[0])))
        predictions, _ = self._pool.predict(np.full(cols.size, row[0]), cols)
        best = cols[np.argsort(-predictions, kind="stable")[:count]]
        return [self._items.names[item] for item in best.tolist()]

    def _predicted(self, users: list[Any], items: list[Any]) -> tuple[Array, Array]:
        return self._pool.predict(self._users.find(users), self._items.find(items))

    # -- what is known ---------------------------------------------------------------------------

    @property
    @reads
    def users_(self) -> list[Any]:
        """Users seen so far."""
        return list(self._users.names)

    @property
    @reads
    def items_(self) -> list[Any]:
        """Items seen so far."""
        return list(self._items.names)

    @property
    def n_ratings_(self) -> int:
        """Ratings learned so far."""
        return self._pool.t

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """What tells the experts apart."""
        return [expert.name for expert in self._pool.experts]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """How much each expert counts now; they sum to 1."""
        return self._pool.slots.weights.copy()

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with."""
        return asdict(self._pool.settings)

    @reads
    def factors(self) -> Factors:
        """Return the weighted mean of the experts as biases and factors.

        Rows are in the order of `users_` and `items_`. Their prediction is that of `predict` but
        for clipping: `predict` clips each expert to the range of ratings first.
        """
        mean, user_biases, item_biases, users, items = self._pool.mean_decision()
        return Factors(mean, user_biases, item_biases, users, items)

    @property
    @reads
    def decision_(self) -> ProductPoint:
        """The weighted mean of the experts as a point of `domain_`: mean, biases, interactions.

        Interactions are in weighted coordinates, entry (u, i) times the weights of u and i.
        """
        mean, user_biases, item_biases, users, items = self._pool.mean_decision()
        weights = (grown.side.metric[: grown.size, None] for grown in self._pool.sides)
        left, right = (part * w for part, w in zip((users, items), weights, strict=True))
        interactions = FactoredMatrix(left, np.ones(left.shape[1]), right)
        return ProductPoint([np.array([mean]), user_biases, item_biases, interactions])

    @property
    @reads
    def domain_(self) -> ProductDomain:
        """The product of sets that `decision_` lies in; it needs two different ratings."""
        _, low, high, _ = self._pool.scale.numbers.tolist()
        if not low < high:
            raise ValueError("the sets are known once two different ratings have been learned")
        size = (len(self._users), len(self._items))
        radius = self._pool.low.radii.max(initial=0.0) or np.finfo(float).tiny
        sets = [Box([low], [high]), *(LinfBall(count, high - low) for count in size)]
        return ProductDomain([*sets, TraceNormBall(size, radius)])

    # -- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file; `load` goes on from there to the last bit.

        Ids must be texts, numbers, booleans, None, bytes or tuples of these.
        """
        self.write(path, type(self).__name__, {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return cls.read(path, cls.__name__)[0]

    @reads_whole
    def write(self, path: str | os.PathLike[str], kind: str, face: dict[str, Any]) -> None:
        """Write everything for a face of that name, with settings of its own."""
        settings, arrays = pool_state(self._pool)
        ids: dict[str, NDArray[Any]] = {
            "ids.users": encode_keys(self._users.names),
            "ids.items": encode_keys(self._items.names),
        }
        write_archive(path, kind, {**settings, "face": face}, arrays | ids)

    @classmethod
    def read(cls, path: str | os.PathLike[str], kind: str) -> tuple[Self, dict[str, Any]]:
        """Read what `write` wrote for a face of that name; its own settings too."""

        def check(header: Header) -> None:
            if header.kind != kind:
                raise ValueError(f"{path} holds a {header.kind[:40]}, not a {kind}")
            check_header(header)

        with enough_memory(path):
            return cls._from_archive(read_archive(path, check), path)

    @classmethod
    def _from_archive(
        cls, archive: Archive, path: str | os.PathLike[str]
    ) -> tuple[Self, dict[str, Any]]:
        try:
            completer = cls(**archive.settings["settings"])
            names = [decode_keys(archive.arrays[f"ids.{side}"]) for side in ("users", "items")]
        except (KeyError, TypeError, ValueError) as error:
            told = " ".join(str(error).split())[:200]
            raise ValueError(f"{path} does not hold a complete state: {told}") from error
        checked = completer._pool.settings
        completer._pool = pool_from_state(checked, archive.settings, archive.arrays)
        completer._users, completer._items = map(Ids, names)
        for ids, grown in zip(
            (completer._users, completer._items), completer._pool.sides, strict=True
        ):
            if not len(ids) == len(set(ids.names)) == grown.size:
                raise ValueError(f"{path} holds ids that do not fit its {grown.size} rows")
        face = archive.settings.get("face")
        if not isinstance(face, dict):
            raise ValueError(f"{path} does not hold a complete state: no face")
        return completer, face

    def __repr__(self) -> str:
        users, items = len(self._users), len(self._items)
        return f"MatrixCompleter(users={users}, items={items}, ratings={self.n_ratings_})"
