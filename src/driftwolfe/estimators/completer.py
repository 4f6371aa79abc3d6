"""`MatrixCompleter`, for streams of ratings."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np

from driftwolfe.estimators.completer_experts import CompleterPool, Factors
from driftwolfe.estimators.completer_features import FeatureModel, with_features
from driftwolfe.estimators.completer_tables import LOSSES
from driftwolfe.estimators.core.ids import SIMPLE, Ids, columns, single
from driftwolfe.estimators.core.models import UsersAndItems, Watch, not_fitted
from driftwolfe.estimators.core.rows import copies
from driftwolfe.points import checks
from driftwolfe.points.access import half_written, reads, writes, writes_or_undoes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field
from driftwolfe.storage import require

#: Squares of sums of such numbers stay in range.
LARGEST_RATING = 1e100
_REAL = (float, int)


def single_rating(ratings: Any) -> float | None:
    """Return the rating if there is just one, in range; else None. For speed."""
    if type(ratings) is np.ndarray:
        ratings = ratings.tolist() if ratings.shape == (1,) else None
    if type(ratings) is list and len(ratings) == 1 and type(ratings[0]) in _REAL:
        # No comparison holds for NaN.
        return float(ratings[0]) if abs(ratings[0]) <= LARGEST_RATING else None
    return None


class MatrixCompleter(UsersAndItems):
    r"""Recommender for streams of ratings that drift; nothing to tune.

    Users and items are anything hashable and may appear at any time. A rating is predicted as

    .. math:: \hat r_{ui} = \mu + b_u + c_i + X_{ui}

    with the mean within the range of ratings, user and item biases in boxes, and interactions X in a
    (weighted) trace-norm ball: the weighted mean of experts with different step sizes and radii, some
    of them restarted at the intervals of a geometric cover, as in `POLD` and `POLA`. One call with n
    ratings is bit-identical to n calls with one.

    Memory holds the gradients of the latest 131,072 ratings, some 70 numbers for each item and each user at work
    after 100,000 ratings, growing with the logarithm of the number of ratings, and 64 bytes and the id of each
    other user. Up to 16,384 users, all are at work; of more, those without a recent rating rest: their number of
    ratings and their biases are kept, but not their interactions.

    Parameters
    ----------
    loss
        ``"huber"`` (quadratic up to 1.33 times the mean error so far, then absolute),
        ``"absolute"`` or ``"squared"``.
    keep_seen
        Whether to remember which pairs were rated before these, 8 bytes for each different one, so that
        `recommend` excludes them too.

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
    projections use four leading directions, as one round of block iteration finds them.

    With side features (`add_features`) the prediction is :math:`(1 - a) \hat r + a \tilde r`, with
    :math:`\tilde r` that of a linear model of the features and a in 0, 1/4, 1/2, 3/4, 1, weighted in
    the same way, for users with 0, 1, 2-3, 4-7, 8-15 and more ratings apart. So on the T ratings of users at one
    such stage the loss, in units of its own errors, exceeds that of any a, also of the experts alone, by at most
    :math:`\ln(5 T) / 0.8 + 0.1 \sum_t \Delta_t^2`.

    Rescaling or shifting all ratings rescales or shifts all predictions. While the mean error is at most 1e-12 of
    the largest rating, nothing is learned.

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
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive regret
    guarantees, AAAI. Srebro and Salakhutdinov (2010), Collaborative filtering in a non-uniform world, NeurIPS.
    Herbster and Warmuth (1998), Tracking the best expert, Machine Learning.
    """

    SETTINGS: ClassVar[dict[str, Any]] = {"wrapper": Field(dict)}
    PARTS: ClassVar[dict[str, Any]] = {
        "pool": CompleterPool,
        **UsersAndItems.KNOWN,
        "features": FeatureModel,
    }
    OPTIONAL, COUNTED = "features", "ratings"

    def __init__(self, *, loss: str = "huber", keep_seen: bool = True) -> None:
        checks.one_of(loss, "loss", LOSSES)
        if not isinstance(keep_seen, bool):
            raise TypeError(f"keep_seen must be True or False, got {keep_seen!r}")
        self._pool = CompleterPool(keep_seen, loss)
        self._users, self._items, self._watch = Ids(), Ids(), Watch()
        self._features: FeatureModel | None = None

    @writes
    def add_features(self, users: Any = None, items: Any = None) -> Self:
        """Add side features of users, of items, or of both; those of an id that has some are replaced.

        From the first call on, which settles how many there are, a linear model learns how they explain ratings,
        and predictions are blended with it: see docs/estimators/completer.md. Earlier ratings are not known to it.

        Parameters
        ----------
        users, items
            A mapping from ids to lists of numbers, at most 256, or a data frame with ids as its index.
            Flags are 0 or 1; other numbers should be centred, of size about 1. NaN counts as 0, as all features
            do of whoever has none. A list longer than 1, in the Euclidean norm, is scaled to length 1.
        """
        loss = LOSSES.index(self._pool.settings["loss"])
        self._features = with_features(self._features, loss, users, items)
        return self

    @writes_or_undoes
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
            whole number says, each time with the same part of the weight, which shortens all steps.
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

        `driftwolfe.evaluate.prequential` learns with a delay.
        """
        return self._learn(pairs, ratings)

    def _learn(self, pairs: Any, ratings: Any, weights: Any = None) -> Array:
        """Learn ratings; return the predictions before."""
        users, items = columns(pairs)
        if not users:
            raise ValueError("pairs is empty: give at least one rating to learn")
        values = np.ascontiguousarray(checks.finite_array(ratings, "ratings", (len(users),)))
        if np.abs(values).max() > LARGEST_RATING:
            raise ValueError(f"ratings must lie within ±{LARGEST_RATING:g}")
        given: tuple[Array, ...] = (values,)
        if weights is not None:
            order, parts = copies(weights, len(users), "sample_weight")
            if parts.max(initial=0.0) > 1.0:
                raise ValueError("sample_weight must lie between 0 and 100")
            users, items = ([column[k] for k in order.tolist()] for column in (users, items))
            given = values, parts = values[order], parts
        rows, new_users = self._users.number(users)
        cols, new_items = self._items.number(items)
        before = self._pool.scale.clock.item(0), self._pool.users.size
        try:
            predictions = self._pool.learn(rows, cols, *given)
            if self._features:
                predictions = self._features.blend((users, items), rows, cols, predictions, *given)
            self._watch.take(np.abs(predictions - values))
            self._users.add(new_users)
            self._items.add(new_items)
        except BaseException:
            half_written(self, self._settled, *before, rows.size, new_users, new_items)
            raise
        return predictions

    def _settled(self, t: int, rows: int, ratings: int, users: Any, items: Any) -> bool:
        """Undo a call that was interrupted before its first rating, complete one after its last; return whether."""
        if self._pool.undone(t, rows, len(self._users), len(self._items)):
            return True
        if self._features or not self._pool.is_done(t + ratings) or self._watch.t != t + ratings:
            return False
        self._users.add(users)
        self._items.add(items)
        return True

    def _learn_one(self, user: Hashable, item: Hashable, rating: float) -> None:
        """Learn one rating of ids that have been checked."""
        users, items, pool = self._users, self._items, self._pool
        number = users.numbers.get(user, len(users.names))
        col = items.numbers.get(item, len(items.names))
        first, recent, rows = pool.first, pool.recent.size, pool.users.size
        try:
            predicted = pool.learn_one(number, col, rating)
            if self._features:
                numbers = map(np.array, ([number], [col], [predicted], [rating]))
                predicted = float(self._features.blend(([user], [item]), *numbers)[0])
            self._watch.take_one(abs(predicted - rating))
            if number == len(users.names) or col == len(items.names):
                users.add((user,))
                items.add((item,))
        except BaseException:
            half_written(self, self._settled, first + recent, rows, 1, (user,), (item,))
            raise

    def predict(self, pairs: Any) -> Array:
        """Return a rating for each pair; new users and items count as average."""
        if not self._items.names:
            raise not_fitted(self)
        return self._answers(pairs)

    @reads
    def _answers(self, pairs: Any) -> Array:
        """Return a rating for each pair, 0 before the first one learned."""
        if pair := single(pairs):
            return np.array([self._predict_one(*pair)])
        users, items = columns(pairs)
        return self._predict(users, items, self._users.find(users), self._items.find(items))

    def _predict(self, users: list[Any], items: list[Any], rows: Indices, cols: Indices) -> Array:
        """Return a rating for each pair of ids that have these numbers, -1 for new ones."""
        predictions = self._pool.predict(rows, cols)
        if self._features:
            return self._features.blend((users, items), rows, cols, predictions)
        return predictions

    @writes_or_undoes
    def learn_one(self, user: Hashable, item: Hashable, rating: Any) -> None:
        """Learn one rating: `partial_fit` of one pair."""
        value = single_rating([rating])
        if value is None or type(user) not in SIMPLE or type(item) not in SIMPLE:
            self._learn([(user, item)], [rating])
        else:
            self._learn_one(user, item, value)

    @reads
    def predict_one(self, user: Hashable, item: Hashable) -> float:
        """Return a rating for one pair, as `predict` does; 0 before the first, as river's models do."""
        if type(user) not in SIMPLE or type(item) not in SIMPLE:
            (user,), (item,) = columns([(user, item)])
        return self._predict_one(user, item)

    def _predict_one(self, user: Hashable, item: Hashable) -> float:
        """Return a rating for ids that have been checked."""
        row, col = self._users.numbers.get(user, -1), self._items.numbers.get(item, -1)
        prediction = self._pool.predict_one(row, col)
        if self._features:
            numbers = map(np.array, ([row], [col], [prediction]))
            return float(self._features.blend(([user], [item]), *numbers)[0])
        return prediction

    @writes
    def forget(self, user: Hashable) -> Self:
        """Remove all that is stored of a user: id, features, biases, taste, rated pairs, and exact steps.

        What items, means and directions of taste have learned from them stays, as it cannot be told
        apart. KeyError for a user who is not known. Takes time in proportion to the users.
        """
        key, number = self._user(user)
        described = self._features and key in self._features.user_features.ids.numbers
        if number < 0 and not described:
            raise self._unknown(key)
        if self._features:
            self._features.forget(key, number)
        if number >= 0:
            self._pool.forget(number)
            self._users.remove(number)
        return self

    @reads
    def recommend(self, user: Hashable, n: int = 10, exclude_seen: bool = True) -> list[Any]:
        """Return the items with the highest predictions for a user, best first.

        A new user gets what is liked in general. What the user has rated is left out, if that is wanted, as far
        as it is remembered: see `keep_seen`.
        """
        count = checks.count(n, "n", least=0)
        (key, row), names = self._user(user), self._items.names
        cols = np.arange(len(self._items))
        if exclude_seen:
            cols = np.setdiff1d(cols, self._pool.seen_by(row))
        items = [names[col] for col in cols.tolist()]
        predictions = self._predict([key] * cols.size, items, np.full(cols.size, row), cols)
        return [items[place] for place in np.argsort(-predictions, kind="stable")[:count].tolist()]

    @property
    def n_ratings_(self) -> int:
        """Ratings learned so far, copies of weighted ones counted."""
        return self._pool.t

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """Step, radius and restarts of each expert."""
        return [
            f"step {s:g}"
            + f", radius {r:g}" * (r > 0.0)
            + (f", every {1 << k:,}" if k >= 0 else "")
            for s, r, k in self._pool.experts
        ]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """Current weights of the experts; they sum to 1."""
        return self._pool.slots.weights.copy()

    @reads
    def factors(self) -> Factors:
        """Return the weighted mean of the experts as biases and factors.

        Rows are in the order of `users_` and `items_`. Their prediction is that of `predict` but
        for clipping: `predict` clips each expert to the range of ratings first.
        """
        if self._features:
            raise ValueError(
                "with side features predictions are not a product of factors; use predict"
            )
        return self._pool.mean_decision()

    def _settings(self) -> dict[str, Any]:
        return {"wrapper": {}}

    @classmethod
    def _restored(cls, settings: dict[str, Any], *parts: Any) -> Self:
        completer = super()._restored(settings, *parts)
        pool, features = completer._pool, completer._features
        if features:
            rows = all(grown.size <= n for grown, n in zip(features.rows, pool.sizes, strict=True))
            loss = LOSSES.index(pool.settings["loss"])
            require(features.loss == loss and rows, "features")
        return completer
