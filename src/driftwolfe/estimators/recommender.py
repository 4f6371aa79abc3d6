"""`MatrixCompleter`, a recommender for streams of ratings, and its saved state."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains import Box, LinfBall, ProductDomain, TraceNormBall
from driftwolfe.estimators.classifier_features import copies
from driftwolfe.estimators.ids import SIMPLE, Ids, distinct_keys, encode_keys, plain_keys
from driftwolfe.estimators.recommender_experts import LOSSES, Factors, PoolSettings, RatingPool
from driftwolfe.estimators.recommender_features import (
    FIELDS,
    FeatureModel,
    model_state,
    saved_model,
    with_features,
)
from driftwolfe.estimators.recommender_tables import ITEM_BITS, LAST_ITEM, Older
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.ops import ProductPoint
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, refused, require, write_archive

LEARNERS = ("both", "pold", "pola")
MOST_RADII = 64
#: Squares of sums of such numbers stay in range.
LARGEST_RATING = 1e100
#: Plain types, which `single` and `single_rating` look for.
_ROWS, _REAL = (tuple, list), (float, int)


def columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the users and the items of pairs, or raise an error that says what is wrong with them."""
    if checks.has_masked_entries(pairs, depth=1):
        raise ValueError("pairs has masked entries; fill them in (with .filled) or leave them out")
    if hasattr(pairs, "iloc") or isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                f"pairs must have two columns, user and item: shape (n, 2), got {pairs.shape}"
            )
        table = getattr(pairs, "iloc", pairs)  # columns of a frame keep their types
        users, items = table[:, 0].tolist(), table[:, 1].tolist()
    else:
        try:
            rows = list(pairs)
            if any(len(row) != 2 or isinstance(row, str | bytes) for row in rows):
                raise TypeError
            users, items = [row[0] for row in rows], [row[1] for row in rows]
        except (TypeError, KeyError):
            raise ValueError(
                "pairs must be a list of (user, item) pairs, an array or a frame of two columns"
            ) from None
    return plain_keys(users, "the id of one user"), plain_keys(items, "the id of one item")


def single(pairs: Any) -> Any:
    """Return the pair if there is just one, of ids that need no check; else None. For speed."""
    if type(pairs) is np.ndarray:
        pairs = pairs.tolist() if pairs.shape == (1, 2) else None
    if type(pairs) is list and len(pairs) == 1:
        (pair,) = pairs
        if type(pair) in _ROWS and len(pair) == 2:
            return pair if type(pair[0]) in SIMPLE and type(pair[1]) in SIMPLE else None
    return None


def single_rating(ratings: Any) -> float | None:
    """Return the rating if there is just one, in range; else None. For speed."""
    if type(ratings) is np.ndarray:
        ratings = ratings.tolist() if ratings.shape == (1,) else None
    if type(ratings) is list and len(ratings) == 1 and type(ratings[0]) in _REAL:
        # No comparison holds for NaN.
        return float(ratings[0]) if abs(ratings[0]) <= LARGEST_RATING else None
    return None


class MatrixCompleter(Guarded):
    r"""Recommender for streams of ratings that drift; nothing to tune.

    Users and items are anything hashable and may appear at any time. A rating is predicted as

    .. math:: \hat r_{ui} = \mu + b_u + c_i + X_{ui}

    with the mean within the range of ratings, user and item biases in boxes, and interactions X in a
    (weighted) trace-norm ball: the weighted mean of experts with different step sizes and radii, some
    of them restarted at the intervals of a geometric cover, as in `POLD` and `POLA`. One call with n
    ratings is bit-identical to n calls with one.

    Memory holds the gradients of the latest `memory` ratings, some 70 numbers for each item and each
    user at work after 100,000 ratings, growing with the logarithm of the number of ratings, and 64
    bytes and the id of each other user. As long as there are at most 16,384 users, all are at work;
    then those without a rating among the latest `memory` or half of that rest: their number of
    ratings and their biases are kept, in single precision and for the experts that never restart,
    but their interactions are not. So neither time nor most of the memory grows with the number of
    users ever seen.

    Parameters
    ----------
    loss
        ``"huber"`` (quadratic up to 1.33 times the mean error so far, then absolute),
        ``"absolute"`` or ``"squared"``.
    learner
        Which experts: ``"pold"``, step sizes times radii; ``"pola"``, restarted ones; ``"both"``.
    radii
        Radii of the trace-norm balls, in units of the mean error times the root of users x items.
        Empty: only mean and biases.
    rank
        Largest rank of the interactions of one expert.
    weighting
        0 for the plain trace norm, 1 for rows and columns weighted by how often they are rated
        (Srebro and Salakhutdinov 2010), or between.
    memory
        Most ratings whose gradients are kept exactly: the latest, at least a third as many. Of
        older ones the leading directions are kept.
    seed
        Seed of the random directions that projections start from.
    keep_seen
        Whether to remember which pairs were rated before the latest `memory` ratings, 8 bytes for each
        different one. Without it, memory does not grow with the number of ratings, and `recommend`
        excludes only the latest ratings.

    Notes
    -----
    Let :math:`u_t` be the unit of errors once the error of rating t is counted (1.33 times their
    running mean) and :math:`f_t` the loss of a prediction in that unit. For N experts after T ratings,
    and any sequence of experts :math:`e_t` with S switches, each used only after it has joined,

    .. math:: \sum_t f_t(\hat r_t) - f_t(\hat r_{t, e_t}) \le
              \frac{(S + 1) \ln (N T) + 1/32}{0.8} + 0.1 \sum_t \Delta_t^2

    with :math:`\Delta_t` the range of the experts' losses in round t: fixed share with share
    1/(t + 1) (Herbster and Warmuth 1998) and Hoeffding's lemma; 1/32 is what the others give to
    experts that join. Errors of more than 1,000 units count as 1,000. Every decision of every expert
    lies in its product of sets, but no such guarantee holds for one expert's interactions: their
    projections use `rank` leading directions, as one round of block iteration finds them.

    With side features (`add_features`) the prediction is :math:`(1 - a) \hat r + a \tilde r`, with
    :math:`\tilde r` that of a linear model of the features and a in 0, 1/4, 1/2, 3/4, 1, weighted in
    the same way, for users with 0, 1, 2-3, 4-7, 8-15 and more ratings apart. So on the T ratings of
    users at one such stage the loss, in units of its own errors, exceeds that of any a, also of the
    experts alone, by at most :math:`\ln(5 T) / 0.8 + 0.1 \sum_t \Delta_t^2`. It takes two numbers for
    each feature of items, and five, for every user rated since; two for each feature of users, and
    two, for every item; and the features themselves.

    Rescaling or shifting all ratings rescales or shifts all predictions. Rounding errors in ratings
    hardly change them, but with a `memory` of a few hundred ratings and radii above 1 small
    differences grow along the stream. While the mean error is at most 1e-12 of the largest rating,
    nothing is learned.

    Several threads may predict, recommend or save at the same time, or one may learn; other calls are
    refused with a RuntimeError. `n_ratings_` and `repr` can be read at any time.

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
        for name, given, allowed in (("loss", loss, LOSSES), ("learner", learner, LEARNERS)):
            if given not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {given!r}")
        if not isinstance(radii, Iterable):
            raise TypeError(f"radii must be a sequence of positive numbers, got {radii!r}")
        balls = tuple(islice(radii, MOST_RADII + 1))
        if len(balls) > MOST_RADII:
            raise ValueError(f"radii must be at most {MOST_RADII}: each makes two experts")
        weight = checks.nonnegative(weighting, "weighting")
        if weight > 1.0:
            raise ValueError(f"weighting must lie in 0..1, got {weighting!r}")
        if not isinstance(keep_seen, bool):
            raise TypeError(f"keep_seen must be True or False, got {keep_seen!r}")
        balls = tuple(checks.positive(radius, "radii") for radius in balls)
        rank, memory = checks.count(rank, "rank"), checks.count(memory, "memory", least=64)
        seed = checks.count(seed, "seed", least=0, most=math.inf)
        settings = PoolSettings(loss, learner, balls, rank, weight, memory, seed, keep_seen)
        self._pool = RatingPool(settings)
        self._users, self._items = Ids(), Ids()
        self._features: FeatureModel | None = None

    @writes
    def add_features(self, users: Any = None, items: Any = None) -> Self:
        """Add side features of users, of items, or of both; those of an id that has some are replaced.

        From the first call on, a linear model learns how they explain ratings, and predictions are
        blended with it: see docs/estimators.md. Give both kinds in that call, before the first rating
        if you can: it settles how many features there are, and the model knows no earlier ratings.

        Parameters
        ----------
        users, items
            A mapping from ids to lists of numbers, at most 256, or a data frame with ids as its index.
            Flags are 0 or 1; other numbers should be centred, of size about 1. NaN is for unknown
            ones, and counts as 0, as all features do of whoever has none. A list longer than 1, in
            the Euclidean norm, is scaled to length 1. Ids need not have ratings.
        """
        loss = LOSSES.index(self._pool.settings.loss)
        self._features = with_features(self._features, loss, users, items)
        return self

    @writes
    def partial_fit(self, pairs: Any, ratings: Any, sample_weight: Any = None) -> Self:
        """Learn ratings, in the order given.

        Parameters
        ----------
        pairs
            (user, item) pairs: a list of them, or an array or data frame of two columns.
        ratings
            One finite number for each.
        sample_weight
            A number from 0 to 100 for each, or one for all. A whole number w is the same as the rating
            w times in a row, to the last bit. Between two, a rating is learned as often as the next
            whole number says, each time with the same share of the weight, which shortens all steps
            and the changes of weights and running means by that factor.
        """
        pair, rating = single(pairs), single_rating(ratings)
        if pair is None or rating is None or sample_weight is not None:
            self._learn(pairs, ratings, sample_weight)
        else:
            self._learn_one(pair[0], pair[1], rating)
        return self

    @writes
    def prequential(self, pairs: Any, ratings: Any) -> Array:
        """Predict each rating, then learn it, one after the other; return the predictions.

        The same as `predict` and `partial_fit` for each rating, and quicker.
        """
        return self._learn(pairs, ratings)

    def _learn(self, pairs: Any, ratings: Any, weights: Any = None) -> Array:
        """Learn ratings; return the predictions before."""
        users, items = columns(pairs)
        if not users:
            raise ValueError("pairs is empty: give at least one rating to learn")
        values = checks.finite_array(ratings, "ratings", (len(users),))
        if np.abs(values).max() > LARGEST_RATING:
            raise ValueError(f"ratings must lie within ±{LARGEST_RATING:g}")
        given: tuple[Array, ...] = (np.ascontiguousarray(values),)
        if weights is not None:
            order, parts = copies(weights, len(users), "sample_weight")
            if parts.max(initial=0.0) > 1.0:
                raise ValueError("sample_weight must lie between 0 and 100")
            users, items = ([column[k] for k in order.tolist()] for column in (users, items))
            given = (values[order], parts)
        rows, new_users = self._users.number(users)
        cols, new_items = self._items.number(items)
        predictions = self._pool.learn(rows, cols, *given)
        if self._features:
            predictions = self._features.learn((users, items), rows, cols, predictions, *given)
        self._users.add(new_users)
        self._items.add(new_items)
        return predictions

    def _learn_one(self, user: Hashable, item: Hashable, rating: float) -> None:
        """Learn one rating of ids that have been checked."""
        users, items = self._users, self._items
        number, col = users.numbers.get(user, -1), items.numbers.get(item, -1)
        if number < 0 or col < 0:
            number, col = (n if n >= 0 else len(ids) for n, ids in ((number, users), (col, items)))
            told = self._pool.learn_one(number, col, rating)
            users.add((user,))
            items.add((item,))
        else:
            told = self._pool.learn_one(number, col, rating)
        if self._features:
            numbers = map(np.array, ([number], [col], [told], [rating]))
            self._features.learn(([user], [item]), *numbers)

    @reads
    def predict(self, pairs: Any) -> Array:
        """Return a rating for each pair, 0 before the first; new users and items count as average."""
        if pair := single(pairs):
            prediction = np.empty(1)
            prediction[0] = self._predict_one(pair[0], pair[1])
            return prediction
        users, items = columns(pairs)
        return self._predict(users, items, self._users.find(users), self._items.find(items))

    def _predict(self, users: list[Any], items: list[Any], rows: Indices, cols: Indices) -> Array:
        """Return a rating for each pair of ids that have these numbers, -1 for new ones."""
        predictions, _ = self._pool.predict(rows, cols)
        if self._features:
            return self._features.predict((users, items), rows, cols, predictions)
        return predictions

    @writes
    def learn_one(self, user: Hashable, item: Hashable, rating: Any) -> None:
        """Learn one rating: `partial_fit` of one pair."""
        value = single_rating([rating])
        if value is None or type(user) not in SIMPLE or type(item) not in SIMPLE:
            self._learn([(user, item)], [rating])
        else:
            self._learn_one(user, item, value)

    @reads
    def predict_one(self, user: Hashable, item: Hashable) -> float:
        """Return a rating for one pair, as `predict` does."""
        if type(user) not in SIMPLE or type(item) not in SIMPLE:
            (user,), (item,) = columns([(user, item)])
        return self._predict_one(user, item)

    def _predict_one(self, user: Hashable, item: Hashable) -> float:
        """Return a rating for ids that have been checked."""
        row, col = self._users.numbers.get(user, -1), self._items.numbers.get(item, -1)
        prediction = self._pool.predict_one(row, col)
        if self._features:
            numbers = map(np.array, ([row], [col], [prediction]))
            return float(self._features.predict(([user], [item]), *numbers)[0])
        return prediction

    @writes
    def forget(self, user: Hashable) -> Self:
        """Remove all that is stored of a user: id, features, biases, taste, rated pairs, and exact steps.

        What items, means and directions of taste have learned from them stays, as it cannot be told
        apart. Nothing happens for a user who is not known. Takes time in proportion to the users.
        """
        (key,), _ = columns([(user, None)])
        number = self._users.numbers.get(key, -1)
        if self._features:
            self._features.forget(key, number)
        if number >= 0:
            self._pool.forget(number)
            self._users.remove(number)
        return self

    @reads
    def expert_predictions(self, pairs: Any) -> Array:
        """Return the predictions of each expert, without features: one row per pair, one column each."""
        users, items = columns(pairs)
        return self._pool.predict(self._users.find(users), self._items.find(items))[1]

    @reads
    def recommend(self, user: Hashable, n: int = 10, exclude_seen: bool = True) -> list[Any]:
        """Return the items with the highest predictions for a user, best first.

        Parameters
        ----------
        user
            A new one gets what is liked in general.
        n
            Most items to return; fewer if there are not as many.
        exclude_seen
            Exclude what the user has rated, as far as it is remembered: see `keep_seen`.
        """
        count = checks.count(n, "n", least=0)
        (key,), _ = columns([(user, None)])
        row, names = self._users.numbers.get(key, -1), self._items.names
        cols = np.arange(len(self._items))
        if exclude_seen:
            cols = np.setdiff1d(cols, self._pool.seen_by(row))
        items = [names[col] for col in cols.tolist()]
        predictions = self._predict([key] * cols.size, items, np.full(cols.size, row), cols)
        return [items[place] for place in np.argsort(-predictions, kind="stable")[:count].tolist()]

    @property
    @reads
    def users_(self) -> list[Any]:
        """Users seen so far, in order of appearance."""
        return list(self._users.names)

    @property
    @reads
    def items_(self) -> list[Any]:
        """Items seen so far, in order of appearance."""
        return list(self._items.names)

    @property
    def n_users_(self) -> int:
        """Number of users seen so far, less those forgotten."""
        return len(self._users)

    @property
    def n_items_(self) -> int:
        """Number of items seen so far."""
        return len(self._items)

    @property
    def n_ratings_(self) -> int:
        """Ratings learned so far, copies of weighted ones counted."""
        return self._pool.t

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """Step, radius and restarts of each expert."""
        return [expert.name for expert in self._pool.experts]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """Current weights of the experts; they sum to 1."""
        return self._pool.slots.weights.copy()

    @property
    def settings(self) -> dict[str, Any]:
        """The options it was made with."""
        return asdict(self._pool.settings)

    @reads
    def factors(self) -> Factors:
        """Return the weighted mean of the experts as biases and factors.

        Rows are in the order of `users_` and `items_`. Their prediction is that of `predict` but
        for clipping: `predict` clips each expert to the range of ratings first. With features,
        their part is in the biases and in further columns.
        """
        found = self._pool.mean_decision()
        if self._features:
            return self._features.factors(found, self._users.names, self._items.names)
        return found

    @property
    @reads
    def decision_(self) -> ProductPoint:
        """The weighted mean of the experts as a point of `domain_`: mean, biases, interactions.

        Without features.
        Interactions are in weighted coordinates, entry (u, i) times the weights of u and i.
        """
        mean, user_biases, item_biases, *factors = self._pool.mean_decision()
        users, items = (grown.known.metric for grown in self._pool.sides)
        metrics = (self._pool.of_everyone(users)[:, None], items[:, None])
        left, right = (part * metric for part, metric in zip(factors, metrics, strict=True))
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file; `load` resumes bit-identically.

        Ids must be texts, numbers, booleans, None, bytes or tuples of these.
        """
        self.write(path, type(self).__name__, {})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        return cls.read(path, cls.__name__)[0]

    @reads_whole
    def write(self, path: str | os.PathLike[str], kind: str, face: dict[str, Any]) -> None:
        """Write everything for a wrapper of that name, with settings of its own."""
        settings, arrays = pool_state(self._pool)
        for side, ids in (("users", self._users), ("items", self._items)):
            arrays[f"ids.{side}"] = encode_keys(ids.names)
        arrays |= model_state(self._features)
        write_archive(path, kind, {**settings, "face": face}, arrays)

    @classmethod
    def read(cls, path: str | os.PathLike[str], kind: str) -> tuple[Self, dict[str, Any]]:
        """Read what `write` wrote for a wrapper of that name, and its own settings."""
        with enough_memory(path):
            archive = read_archive(path, _check_archive, kind)
            settings, arrays = archive.settings, archive.arrays
            with refused(f"{path} does not hold the state of a {kind}"):
                completer = cls(**settings["settings"])
            pool = completer._pool
            _set_pool(pool, settings, arrays)
            completer._users = Ids(distinct_keys(arrays["ids.users"], pool.everyone.size))
            completer._items = Ids(distinct_keys(arrays["ids.items"], pool.items.size))
            sizes, loss = (pool.everyone.size, pool.items.size), LOSSES.index(pool.settings.loss)
            completer._features = saved_model(loss, arrays, sizes)
        return completer, settings["face"]

    def __repr__(self) -> str:
        sizes = f"users={self.n_users_}, items={self.n_items_}, ratings={self.n_ratings_}"
        return f"MatrixCompleter({sizes})"


#: Bound of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
#: What holds exactly may be off by that share.
ROUNDING = 1e-6

#: Named tables of a pool: of fixed size, and growing.
FIXED, GROWING = ("slots", "low", "scale"), ("users", "items", "recent")
SETTINGS = {
    "settings": Field(dict),
    "experts": Field(list),
    "first": Field(int, least=0),
    "older": Field(dict),
    "next_projection": Field(int),
    "forgotten": Field(int, least=0, newer=True),
    "face": Field(dict),
}


def _fields(older: Iterable[str]) -> dict[str, Field]:
    """All arrays of a file; `older` names the experts whose older steps it holds."""
    real, whole, bounds = np.float64, np.int64, (-LARGEST, LARGEST)
    fields = {
        "scale.clock": Field(whole, (1,), 0, below=1 << 62),
        "scale.numbers": Field(real, (4,), *bounds),
        "low.spreads": Field(real, ("low", "rank"), 0.0, LARGEST),
        "low.radii": Field(real, ("low",), 0.0, LARGEST),
        "low.norms": Field(real, ("low",)),
        "slots.means": Field(real, ("experts",)),
        "slots.squares": Field(real, ("experts",), 0.0),
        "slots.weights": Field(real, ("experts",), 0.0),
        "slots.steps": Field(real, ("experts",)),
        "slots.starts": Field(whole, ("experts",), 0),
        "slots.levels": Field(whole, ("experts",)),
        "slots.low": Field(whole, ("experts",)),
    }
    for side in ("users", "items"):
        fields |= {
            f"{side}.counts": Field(whole, (side,), 1),
            f"{side}.touched": Field(whole, (side,), 0),
            # The weights fall with the root of the number of ratings at most.
            f"{side}.metric": Field(real, (side,), 1e-20, 1e20),
            f"{side}.biases": Field(real, (side, "experts")),
            f"{side}.squares": Field(real, (side, "experts"), 0.0),
            f"{side}.rows": Field(real, (side, "low rank")),
            f"ids.{side}": Field(np.uint8, (None,)),
        }
        fields |= {f"older.{k}.{side}": Field(real, (None, f"older{k}"), *bounds) for k in older}
    return (
        fields
        | FIELDS
        | {
            "recent.rows": Field(whole, ("recent",), 0, below="users"),
            "recent.cols": Field(whole, ("recent",), 0, below="items"),
            "recent.steps": Field(real, ("recent", "low"), *bounds),
            "seen.pairs": Field(whole, (None,), 0, newer=True),
            # Of every user: the row, or -1; then of users at rest, in the order of their numbers.
            "everyone.rows": Field(whole, (None,), -1, below="users", newer=True),
            "everyone.counts": Field(whole, ("resting",), 1, newer=True),
            "everyone.biases": Field(np.float32, ("resting", None), newer=True),
            "everyone.squares": Field(np.float32, ("resting", None), 0.0, newer=True),
        }
    )


def pool_state(pool: RatingPool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return settings and arrays that make up a pool; spare room is left out."""
    groups = {name: getattr(pool, name)._asdict() for name in FIXED}
    groups |= {name: getattr(pool, name).known._asdict() for name in GROWING}
    groups["seen"] = {"pairs": pool.seen.pairs()}
    for k, older in pool.older.items():
        groups[f"older.{k}"] = {"users": older.users, "items": older.items}
    everyone = pool.everyone.known
    resting = (table[everyone.rows < 0] for table in everyone[:-1])
    groups["everyone"] = everyone._make((*resting, everyone.rows))._asdict()
    settings = {
        "settings": asdict(pool.settings),
        "experts": [list(expert) for expert in pool.experts],
        "first": pool.first,
        "older": {str(k): older.start for k, older in pool.older.items()},
        "next_projection": pool.next_projection,
        "forgotten": pool.forgotten,
    }
    arrays = {f"{name}.{part}": held[part] for name, held in groups.items() for part in held}
    return settings, arrays


def _check_archive(archive: Archive) -> None:
    """Refuse a file whose settings or arrays, or types and shapes of these, do not fit."""
    settings, kind = archive.settings, archive.kind
    check_fields(SETTINGS, settings, kind)
    older, rank = settings["older"], settings["settings"].get("rank")
    require(all(k.isascii() and k.isdigit() for k in older), "older steps")
    check_fields(dict.fromkeys(older, Field(int, least=0)), older, kind)
    experts = len(settings["experts"])
    check_fields(_fields(older), archive.arrays, kind, experts=experts, rank=rank)


def _set_pool(pool: RatingPool, settings: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Set the state of a new pool to what `_check_archive` has accepted, if it fits together."""
    groups: dict[str, dict[str, Any]] = {}
    for name, array in arrays.items():
        group, _, part = name.rpartition(".")
        groups.setdefault(group, {})[part] = array
    # The experts must be those that the options make.
    pool.add_experts(int(arrays["scale.clock"][0]))
    require(settings["experts"] == [list(expert) for expert in pool.experts], "experts")
    for name in ("steps", "levels", "low"):
        require(np.array_equal(groups["slots"][name], getattr(pool.slots, name)), "experts")
    require(arrays["low.radii"].size == pool.low.radii.size, "experts with interactions")
    for name in FIXED:
        setattr(pool, name, getattr(pool, name)._replace(**groups[name]))
    for name in GROWING:
        grown = getattr(pool, name)
        grown.tables = grown.tables._replace(**groups[name])
        grown.size = len(grown.tables[0])
    pool.first, pool.next_projection = settings["first"], settings["next_projection"]
    older = settings["older"].items()
    pool.older = {int(k): Older(start, **groups[f"older.{k}"]) for k, start in older}
    pool.seen.runs = (arrays.get("seen.pairs", np.zeros(0, np.int64)),)
    pool.forgotten = settings.get("forgotten", 0)
    _set_everyone(pool, groups.get("everyone"))
    _check_pool(pool)


def _set_everyone(pool: RatingPool, saved: Mapping[str, Any] | None) -> None:
    """Set who has which row; in files from before users could rest, everyone has the row of the number."""
    everyone = pool.everyone
    require(saved is None or {*saved} == {*everyone.tables._fields}, "users at rest")
    rows = np.arange(pool.users.size) if saved is None else saved["rows"]
    resting = rows < 0
    require(np.array_equal(np.sort(rows[~resting]), np.arange(pool.users.size)), "rows of users")
    everyone.grow(rows.size)
    everyone.tables.rows[: rows.size] = rows
    if saved is not None:
        shape = (np.count_nonzero(resting), everyone.tables.biases.shape[1])
        require(saved["biases"].shape == saved["squares"].shape == shape, "users at rest")
        for name in ("biases", "squares", "counts"):
            getattr(everyone.tables, name)[: rows.size][resting] = saved[name]


def _check_pool(pool: RatingPool) -> None:
    """What must agree in every pool: counts and time, decisions and their sets."""
    slots, t = pool.slots, pool.t
    require((slots.starts <= t).all(), "starts of experts")
    require(abs(float(slots.weights.sum()) - 1.0) < 1e-6, "weights of experts")
    require(pool.first + pool.recent.size == t, "recent ratings")
    require(t < pool.next_projection <= t + pool.block(), "times of projections")
    require(all(k < pool.low.radii.size for k in pool.older), "older steps")
    (pairs,) = pool.seen.runs
    require(pairs.size <= (pool.first if pool.settings.keep_seen else 0), "rated pairs")
    users, items = pairs >> ITEM_BITS, pairs & LAST_ITEM
    known = (users < pool.everyone.size).all() and (items < pool.items.size).all()
    require(known and (np.diff(pairs) > 0).all(), "rated pairs")
    error, lowest, highest, last = pool.scale.numbers.tolist()
    require(error >= 0.0 and lowest <= last <= highest, "ratings")
    require((slots.means >= lowest).all() and (slots.means <= highest).all(), "means")
    sides, everyone = [grown.known for grown in pool.sides], pool.everyone.known
    others = int(everyone.counts.sum()) + pool.forgotten, 0
    for side, more in zip(sides, others, strict=True):
        counted = side.counts.sum() + more == t and (side.touched < t).all()
        require(counted, "ratings of users or items")
    for biases in (everyone.biases, *(side.biases for side in sides)):
        largest = np.abs(biases).max(initial=0.0)
        require(largest <= (1.0 + ROUNDING) * (highest - lowest), "biases")
    for e, columns in pool.interacting():
        users, items = (side.rows[:, columns] * side.metric[:, None] for side in sides)
        users[sides[0].touched < slots.starts[e]] = 0.0  # what the expert does not know
        radius, norm, spread = (table[slots.low[e]] for table in pool.low)
        for part in (users, items, spread.sum()):
            require(np.abs(part).max(initial=0.0) <= LARGEST, "factors")
        squares = (users**2).sum(axis=0)
        known = squares > 0.0
        # The bound on the trace norm that the loop keeps up to date is one, and within the radius.
        require((spread[known] > 0.0).all() and norm <= (1.0 + ROUNDING) * radius, "interactions")
        least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
        require(norm >= (1.0 - ROUNDING) * least, "interactions")
        # If the items' directions are at most orthonormal, this bounds the trace norm.
        require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")
