"""Side features of users and items for `MatrixCompleter`: a linear model, blended with the experts."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftwolfe.estimators.completer_tables import LOSSES
from driftwolfe.estimators.core.ids import Ids, plain_keys
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import ROUNDING, Field, Growing, Part
from driftwolfe.storage import require

kernels = compiled("driftwolfe.estimators.completer_kernels")

MOST_FEATURES, LARGEST_FEATURE = 256, 1e100
SIDES = ("users", "items")
#: Prior variances in units of the noise, chosen on MovieLens 100K: of the constant and the other
#: weights of users, of items, and of all together.
USERS, ITEMS, ALL = (0.2, 0.1), (0.4, 0.02), (1.0, 0.005)
#: Fractions that the model may have in the prediction: 0, 1/4, ..., 1. They are weighted apart for users with
#: 0, 1, 2-3, 4-7, 8-15 and more ratings: where the experts know a user well, features help less.
BLENDS, STAGES = 5, 6
_REAL, _WHOLE, _NONE = np.float64, np.int64, np.zeros(0)
_LENGTH = (-1.0 - ROUNDING, 1.0 + ROUNDING)


class FeatureRows(NamedTuple):
    """The constant 1 and features: first of whoever has none, which are 0, then of those who have."""

    values: Array


class SideFeatures(Part):
    """Features of users, or of items, by id."""

    ids: Ids
    values: Annotated[Array, Field(np.float64, (None, None), *_LENGTH)]  # of those who have some

    def __init__(self, width: int) -> None:
        self.ids, self.width = Ids(), width
        self.rows = Growing(FeatureRows(np.zeros((0, width + 1))))
        self.add([], np.zeros((0, width)))

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "values": self.rows.known.values[1:, 1:].copy()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ids, values = state["ids"], state["values"]
        require(len(ids) == len(values) and values.shape[1] <= MOST_FEATURES, "features")
        self.__init__(values.shape[1])  # type: ignore[misc]
        self.add(ids.names, values)

    def add(self, keys: list[Any], values: Array) -> None:
        """Add features, or replace them."""
        self.ids.add(keys)
        new = self.rows.grow(len(self.ids) + 1)
        table = self.rows.tables.values
        table[new, 0], table[self.ids.find(keys) + 1, 1:] = 1.0, values

    def find(self, keys: Collection[Hashable]) -> Array:
        """Return a row for each key: 1, then the features."""
        return self.rows.tables.values[self.ids.find(keys) + 1]

    def remove(self, key: Hashable) -> None:
        """Remove the features of a key, if there are some."""
        place = self.ids.numbers.get(key)
        if place is not None:
            self.rows.keep(np.delete(np.arange(self.rows.size), place + 1))
            self.ids.remove(place)


def checked_features(given: Any, what: str) -> tuple[list[Any], Array] | None:
    """Return ids and rows of features, of length at most 1, or None if there are none; or raise an error."""
    if given is None:
        return None
    if hasattr(given, "iloc") and hasattr(given, "index"):
        keys, rows = given.index.tolist(), given.to_numpy()
    elif isinstance(given, Mapping):
        keys, rows = list(given), list(given.values())
    else:
        wanted = "map ids to lists of numbers, or be a frame with ids as its index"
        raise TypeError(f"{what} must {wanted}, got {type(given).__name__}")
    if not keys:
        return None
    keys = plain_keys(keys, f"an id of {what}")
    if len(set(keys)) < len(keys):
        raise ValueError(f"{what} must have each id once; drop rows of the same id")
    values = checks.real_array(rows, what)
    if values.ndim != 2 or values.shape[1] > MOST_FEATURES:
        raise ValueError(f"{what} must have as many features for each id, at most {MOST_FEATURES}")
    values = np.where(np.isnan(values), 0.0, values)
    if np.abs(values).max(initial=0.0) > LARGEST_FEATURE:
        raise ValueError(f"{what} must lie within ±{LARGEST_FEATURE:g}; NaN is for unknown ones")
    return keys, values / np.maximum(1.0, np.linalg.norm(values, axis=1, keepdims=True))


class UserWeights(NamedTuple):
    """Weights of users: a row for each."""

    means: Annotated[Array, Field(_REAL, ("rows", None))]
    # In units of the noise.
    variances: Annotated[Array, Field(_REAL, ("rows", None), 0.0, USERS[0])]
    counts: Annotated[Indices, Field(_WHOLE, ("rows",), 0, below=1 << 62)]  # ratings so far


class ItemWeights(NamedTuple):
    """Weights of items: a row for each."""

    means: Annotated[Array, Field(_REAL, ("rows", "user_features"))]
    variances: Annotated[Array, Field(_REAL, ("rows", "user_features"), 0.0, ITEMS[0])]


class SharedWeights(NamedTuple):
    """What all users and items share."""

    # A row for each feature of items, a column for each feature of users, the constant first.
    means: Annotated[Array, Field(_REAL, ("item_features", "user_features"))]
    variances: Annotated[Array, Field(_REAL, ("item_features", "user_features"), 0.0, ALL[0])]
    # Weights of the fractions that the model may have in the prediction: a row for each stage.
    blends: Annotated[Array, Field(_REAL, (STAGES, BLENDS), 0.0, 1.0, sums=True)]
    numbers: Annotated[Array, Field(_REAL, (3,))]  # mean of errors, lowest and highest rating
    clocks: Annotated[Indices, Field(_WHOLE, (STAGES,), 0, below=1 << 62)]  # ratings, by stage


class FeatureModel(Part):
    r"""A linear model of ratings, learned by a Kalman filter and blended with other predictions.

    With features x of the item and z of the user, the constant 1 included, it predicts

    .. math:: x^\top M z + w_u^\top x + v_i^\top z + a_u \ell_i, \qquad
              \ell_i = v_{i,0} + \sum_{d \ge 1} M_{d,0} x_d

    with M shared by all, weights w and v of one user and one item, and a factor by which a user rates
    good and bad items further apart. Of the covariance of all weights only the variances are kept.
    """

    loss: Annotated[int, Field(int, least=0, below=len(LOSSES))]
    user_features: SideFeatures
    item_features: SideFeatures
    users: Annotated[Growing[UserWeights], {"rows": "user_rows"}]
    items: Annotated[Growing[ItemWeights], {"rows": "item_rows"}]
    shared: SharedWeights

    def __init__(self, loss: int, user_features: int, item_features: int) -> None:
        self.loss = loss
        self.user_features, self.item_features = map(SideFeatures, (user_features, item_features))
        shape = (item_features + 1, user_features + 1)
        user, item = np.zeros((0, shape[0] + 1)), np.zeros((0, shape[1]))
        self.users = Growing(UserWeights(user, user, np.zeros(0, np.int64)))
        self.items = Growing(ItemWeights(item, item))
        variances = np.full(shape, ALL[1])
        variances[0, 0] = ALL[0]
        self.shared = SharedWeights(
            *(np.zeros(shape), variances, np.full((STAGES, BLENDS), 1.0 / BLENDS)),
            *(np.zeros(3), np.zeros(STAGES, np.int64)),
        )
        self.derive()

    def derive(self) -> None:
        self.features = self.user_features, self.item_features
        self.rows: tuple[Growing[Any], Growing[Any]] = self.users, self.items
        self._prior = np.full(self.item_features.width + 2, USERS[1])
        self._prior[0] = USERS[0]

    def check(self) -> None:
        error, low, high = self.shared.numbers.tolist()
        require(error >= 0.0 and low <= high, "ratings")
        width, shape = self._prior.size, tuple(each.width + 1 for each in self.features[::-1])
        require(self.shared.means.shape == shape, "features")
        users = self.users.tables
        require(users.means.shape[1] == users.variances.shape[1] == width, "weights of features")

    def blend(
        self,
        keys: tuple[list[Any], list[Any]],
        users: Indices,
        items: Indices,
        predictions: Array,
        ratings: Array = _NONE,
        parts: Array = _NONE,
    ) -> Array:
        """Return predictions blended with those of the model, which learns ratings, one by one, if given."""
        if ratings.size:
            for numbers, grown, prior in zip(
                (users, items), self.rows, (USERS, ITEMS), strict=True
            ):
                new = grown.grow(int(numbers.max()) + 1)
                grown.tables.variances[new, 0], grown.tables.variances[new, 1:] = prior
        blended = predictions.copy()
        zs, xs = (side.find(own) for side, own in zip(self.features, keys, strict=True))
        nobody = np.zeros(max(self.shared.means.shape) + 1)
        kernels().blend.unchecked(
            *(users, items, ratings, parts, xs, zs, self.loss, self._prior, nobody),
            *(self.rows[0].tables, self.rows[1].tables, self.shared, blended),
        )
        return blended

    def forget(self, user: Hashable, number: int) -> None:
        """Remove a user; the numbers of later ones fall by 1. Without ratings the number is -1."""
        self.features[0].remove(user)
        if 0 <= number < self.rows[0].size:
            self.rows[0].keep(np.delete(np.arange(self.rows[0].size), number))


def with_features(model: FeatureModel | None, loss: int, users: Any, items: Any) -> FeatureModel:
    """Return the model, or a new one, with more features; nothing changes where they are refused."""
    if users is None and items is None:
        raise ValueError("give features of users, of items, or of both")
    given = checked_features(users, "users"), checked_features(items, "items")
    if model is None:
        model = FeatureModel(loss, *(rows[1].shape[1] if rows else 0 for rows in given))
    for side, features, rows in zip(SIDES, model.features, given, strict=True):
        if rows and (count := rows[1].shape[1]) != features.width:
            known = f"{features.width} features since the first call of add_features"
            raise ValueError(f"{side} have {known}, got {count}")
    for features, rows in zip(model.features, given, strict=True):
        if rows:
            features.add(*rows)
    return model
