"""The estimators with the river API."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

import numpy as np
from river import base
from river.reco.base import Ranker

from driftwolfe.estimators import classifier, regressor
from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.core.ids import SIMPLE, Ids, check_keys, plain_key, plain_keys, several
from driftwolfe.estimators.core.models import SEED_OPTION, SavedModel, Watched
from driftwolfe.estimators.core.rows import LARGEST, SparseRows, copies, dense_rows
from driftwolfe.estimators.recommender import Recommender
from driftwolfe.estimators.regressor import RegressionLearner
from driftwolfe.points import checks
from driftwolfe.points.access import Method, half_written, reads, writes_or_undoes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field, check_fields
from driftwolfe.storage import require

if TYPE_CHECKING:
    import pandas as pd


class _PairModel(checks.Constructed, Watched, Ranker):
    """What models of (user, item) pairs share."""

    MODEL: ClassVar[str]  # the attribute that is the model behind it

    def _alarm(self) -> DriftAlarm:
        return getattr(self, self.MODEL).alarm_

    def predict_many(self, pairs: Any) -> Any:
        """Return what `predict_one` does for each of several (user, item) pairs."""
        return getattr(self, self.MODEL).predict(pairs)

    def rank(self, user: Hashable, items: Iterable[Hashable], x: Any = None) -> list[Any]:
        """Return the items in the order of their predictions for a user, best first; equal ones as given."""
        given = several(items, "items")
        scores = self.predict_many([(user, item) for item in given])
        return [given[place] for place in (-scores).argsort(kind="stable").tolist()]


class RiverMatrixCompleter(_PairModel):
    """`MatrixCompleter` for river: one rating at a time, or several.

    Parameters
    ----------
    loss, learner, radii, weighting, memory, keep_seen
        As for `MatrixCompleter`.
    n_factors
        `rank` of `MatrixCompleter`; here that is the method that ranks.
    seed
        As for `MatrixCompleter`; None is 0.

    Attributes
    ----------
    completer
        The `MatrixCompleter` behind it.

    Examples
    --------
    >>> model = RiverMatrixCompleter()
    >>> for user, item, y in [("ann", "up", 5), ("bob", "up", 4), ("ann", "heat", 2)]:
    ...     model.learn_one(user, item, y)
    >>> model.rank("bob", {"up", "heat"})
    ['up', 'heat']
    """

    MODEL = "completer"

    def __init__(
        self,
        loss: str = "huber",
        learner: str = "both",
        radii: Sequence[float] = (0.3, 1.0),
        n_factors: int = 4,
        weighting: float = 0.75,
        memory: int = 131_072,
        seed: int | None = None,
        keep_seen: bool = True,
    ) -> None:
        super().__init__(seed=seed)
        self.loss, self.learner, self.radii, self.n_factors = loss, learner, radii, n_factors
        self.weighting, self.memory, self.keep_seen = weighting, memory, keep_seen
        same = ("loss", "learner", "radii", "weighting", "memory", "keep_seen")
        options = {name: getattr(self, name) for name in same}
        self.completer = MatrixCompleter(**options, rank=n_factors, seed=seed or 0)

    def learn_one(self, user: Hashable, item: Hashable, y: Any, x: Any = None) -> None:
        """Learn a rating; x is not used."""
        self.completer.learn_one(user, item, _number_of(y, "a rating"))

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Predict a rating, 0 before the first; x is not used."""
        return self.completer.predict_one(user, item)

    def predict_many(self, pairs: Any) -> Any:
        """Return what `predict_one` does for each of several (user, item) pairs."""
        return self.completer._answers(pairs)

    def learn_many(self, pairs: Any, y: Any) -> None:
        """Learn ratings of (user, item) pairs, in order: the same as one after the other."""
        self.completer.partial_fit(pairs, y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as `MatrixCompleter.save` does."""
        self.completer._write(path, type(self).__name__, wrapper={"seed": self.seed})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiverMatrixCompleter:
        """Read what `save` wrote."""
        completer, settings = MatrixCompleter._read(path, cls.__name__)
        own, options = settings["wrapper"], completer.settings
        check_fields({"seed": Field(int, least=0, optional=True)}, own, cls.__name__)
        seed = own["seed"]
        require((seed or 0) == options["seed"], "seeds")
        options["n_factors"] = options.pop("rank")
        model = cls(**{**options, "seed": seed})
        model.completer = completer
        return model


class RiverRecommender(_PairModel):
    """`Recommender` for river: events one at a time, or several.

    Attributes
    ----------
    recommender
        The `Recommender` behind it.

    Examples
    --------
    >>> model = RiverRecommender()
    >>> for user, item in [("ann", "tea"), ("ann", "milk"), ("bob", "tea"), ("cat", "jam")]:
    ...     model.learn_one(user, item)
    >>> model.rank("bob", {"jam", "milk"})
    ['milk', 'jam']
    """

    MODEL = "recommender"

    def __init__(self) -> None:
        super().__init__()
        self.recommender = Recommender()

    def learn_one(self, user: Hashable, item: Hashable, y: Any = None, x: Any = None) -> None:
        """Learn an event of weight y: 1 if not given, 0 if the item was only seen; x is not used."""
        self.recommender.partial_fit([(user, item)], weights=None if y is None else [y])

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Return the probability that an item is the user's next new one; x is not used."""
        return float(self.recommender.predict([(user, item)])[0])

    def learn_many(self, pairs: Any, y: Any = None) -> None:
        """Learn events of (user, item) pairs, in order: the same as one after the other."""
        self.recommender.partial_fit(pairs, weights=y)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as `Recommender.save` does."""
        self.recommender._write(path, type(self).__name__)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiverRecommender:
        """Read what `save` wrote."""
        model = cls()
        model.recommender, _ = Recommender._read(path, cls.__name__)
        return model


def _not_undone(change: Method) -> Method:
    """Mark a part of a write that leaves its object half written where it is interrupted."""

    @wraps(change)
    def changing(self: Any, *given: Any) -> Any:
        try:
            return change(self, *given)
        except BaseException as error:
            if not isinstance(error, Exception):
                half_written(self)
            raise

    return changing  # type: ignore[return-value]


class _RowModel(SavedModel):
    """What models of rows share; features are numbered as they appear."""

    OPTIONAL = "learner"
    _features: Ids
    _learner: Any
    _learn: Any

    def _alarm(self) -> DriftAlarm:
        return self._learner.alarm if self._learner else DriftAlarm()

    @property
    @reads
    def feature_names(self) -> list[Any]:
        """The features seen so far, in order of appearance, those of one row sorted."""
        return list(self._features.names)

    @property
    @reads
    def expert_weights(self) -> dict[str, float]:
        """The weights of the experts by name; empty before anything was learned."""
        if (learner := self._learner) is None:
            return {}
        return dict(zip(learner.names, learner.expert_weights.ravel().tolist(), strict=True))

    @writes_or_undoes
    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = None) -> None:
        """Learn the rows of a frame, one after the other, with weights `w` if given."""
        self._learn(_table_of(X), X.columns, y, w)

    def _keys(self) -> list[Ids]:
        """The ids that a learner has room for: those of classes, if there are some, and of features."""
        return [getattr(self, f"_{name}") for name in self.PARTS if name != "learner"]

    def _grow(self, names: Collection[Any]) -> None:
        """Make room for what is new: features are sorted, so that their order in a row does not matter."""
        if not self._features.numbers.keys() >= set(names):
            new = (plain_key(name) for name in names if name not in self._features.numbers)
            self._features.add(sorted(new, key=lambda name: (type(name).__name__, repr(name))))
        self._learner.grow(*map(len, self._keys()))

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, *keys: Ids) -> Self:
        sizes = learner.sizes if learner else (0,) * len(keys)
        require(sizes == tuple(map(len, keys)), "classes or features")
        cls.PARTS["learner"].check_options(settings, learner)
        return super()._restored(settings, learner, *keys)

    def _learn_one(self, x: dict[Any, Any], target: Any) -> bool:
        """Learn a row that `_is_plain`, for speed; return False, and do nothing, if out of range."""
        if self._learner is None:
            return False
        values = _values(x)
        try:
            places = self._known(x)
        except KeyError:
            check_keys(x, "the name of a feature")
            return bool((np.abs(values) <= LARGEST).all()) and self._learn_new(x, values, target)
        return self._teach(self._learner, self._learner.one_row(places, values), target)

    @_not_undone
    def _learn_new(self, x: dict[Any, Any], values: Array, target: Any) -> bool:
        """Learn a row with new features, as `_learn_one` does."""
        self._grow(x)
        row = self._learner.one_row(self._features.find(x), values)
        return bool(self._learner.learn_one(row, target))

    def _known(self, x: dict[Any, Any]) -> Indices:
        """The places of the features of a row; KeyError if one is new."""
        return np.fromiter(map(self._features.numbers.__getitem__, x), np.int64, len(x))

    def _predict_one(self, x: Mapping[Any, Any]) -> Any:
        """What is predicted for one row; None before anything was learned."""
        if self._learner is not None and _is_plain(x):
            try:
                places = self._known(x)
            except KeyError:
                check_keys(x, "the name of a feature")
                places = self._features.find(x)
            found = self._learner.predict(self._learner.one_row(places, _values(x)))
            if found.size:
                return found[0]
        predicted = self._predict(_row_of(x), x)
        return None if predicted is None else predicted[0]

    def _predict(self, table: Array, names: Collection[Hashable]) -> Array | None:
        """What is predicted for the rows of a table; None before anything was learned."""
        return self._learner and self._learner.predict(self._rows(table, names))

    def _rows(self, table: Array, names: Collection[Hashable]) -> SparseRows:
        """The known features of the rows, their places rising: the order of names does not matter."""
        places = self._features.find(names)
        order = places.argsort()[np.count_nonzero(places < 0) :]
        starts, chosen, values = dense_rows(table.take(order, axis=1))
        return SparseRows(starts, places[order[chosen]], values)


class RiverTraceNormClassifier(_RowModel, base.MiniBatchClassifier):
    """A classifier for streams that drift, with nothing to tune; see `TraceNormClassifier`.

    Classes and features may appear at any time; a missing feature counts as 0. Labels are of any
    hashable type, features are numbers. Mini-batches are learned row by row.

    Parameters
    ----------
    radii, learner, fit_intercept, features
        As for `TraceNormClassifier`.
    seed
        `random_state` of `TraceNormClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from driftwolfe.estimators import RiverTraceNormClassifier
    >>> model = RiverTraceNormClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 91...%
    """

    OPTIONS = SETTINGS = classifier.OPTIONS | {"seed": SEED_OPTION}
    PARTS: ClassVar[dict[str, Any]] = {"learner": ClassLearner, "classes": Ids, "features": Ids}

    def __init__(
        self,
        radii: Any = "auto",
        learner: str = "pola",
        fit_intercept: bool = True,
        features: str = "random",
        seed: int = 0,
    ) -> None:
        self.radii, self.learner, self.fit_intercept = radii, learner, fit_intercept
        self.features, self.seed = features, seed
        self._features, self._classes = Ids(), Ids()
        self._learner = None

    _multiclass = True

    @property
    @reads
    def classes(self) -> list[Any]:
        """The labels seen so far, in order of appearance."""
        return list(self._classes.names)

    @writes_or_undoes
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of features and its label, with weight `w`."""
        known = w == 1.0 and type(y) in SIMPLE and y in self._classes.numbers
        if known and _is_plain(x) and self._learn_one(x, np.array((self._classes.numbers[y],))):
            return
        self._learn(_row_of(x), x, [y], None if w == 1.0 else w)

    @reads
    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probabilities of the labels seen so far."""
        found = self._predict_one(x)
        return {} if found is None else dict(zip(self._classes.names, found.tolist(), strict=True))

    @reads
    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of the labels seen so far, one column each."""
        import pandas as pd

        found = self._predict(_table_of(X), X.columns)
        return pd.DataFrame(found, index=X.index, columns=pd.Index(self.classes))

    @reads
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the most probable label of every row; None before anything was learned."""
        import pandas as pd

        found = self.predict_proba_many(X).to_numpy()
        best = found.argmax(axis=1) if found.size else []
        return pd.Series([self._classes.names[k] for k in best] or [None] * len(X), index=X.index)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"fit_intercept": bool(self.fit_intercept)}

    @_not_undone
    def _learn(self, table: Array, names: Collection[Any], y: Iterable[Any], w: Any) -> None:
        """Learn the rows of a table that has been checked, with labels and weights that have not."""
        labels, (order, parts) = plain_keys(list(y), "a label"), copies(w, len(table), "w")
        if None in labels:
            raise ValueError("a label is missing (None); leave such rows out or give it a name")
        if len(labels) != len(table):
            raise ValueError(
                f"y must hold a label for each of {len(table)} rows, got {len(labels)}"
            )
        if w is not None:
            table, labels = table[order], [labels[k] for k in order.tolist()]
        # A class has its first row at the start of a piece: it joins there, not before.
        known = self._classes.numbers
        new = [labels.index(label) for label in set(labels) if label not in known]
        classifier.check_number(len(known) + len(new))
        for first, last in pairwise(sorted({0, *new, len(labels)})):
            if self._learner is None:
                options = self.radii, self.learner, self.fit_intercept
                self._learner = ClassLearner(*options, 1, 0, self.features, self.seed)
            self._classes.add(labels[first : first + 1])
            self._grow(names)
            numbers = self._classes.find(labels[first:last])
            rows = self._rows(table[first:last], names)
            self._learner.learn(rows, numbers, parts[first:last])


class RiverTraceNormRegressor(_RowModel, base.MiniBatchRegressor):
    """Regression for streams that drift, with nothing to tune; see `TraceNormRegressor`.

    Features may appear at any time; a missing feature counts as 0. Those of the first row are the ones
    that random features look at. Before the first row the prediction is 0.

    Parameters
    ----------
    radii, random_features
        As for `TraceNormRegressor`.
    seed
        `random_state` of `TraceNormRegressor`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from driftwolfe.estimators import RiverTraceNormRegressor
    >>> model = RiverTraceNormRegressor()
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 0.18...
    """

    OPTIONS = SETTINGS = regressor.OPTIONS | {"seed": SEED_OPTION}
    PARTS: ClassVar[dict[str, Any]] = {"learner": RegressionLearner, "features": Ids}

    def __init__(self, radii: Any = "auto", random_features: int = 64, seed: int = 0) -> None:
        self.radii, self.random_features, self.seed = radii, random_features, seed
        self._features = Ids()
        self._learner = None

    @writes_or_undoes
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of features and its target, with weight `w`."""
        known = w == 1.0 and type(y) in _PLAIN and abs(y) <= LARGEST
        if known and _is_plain(x) and self._learn_one(x, np.array([[y]], dtype=np.float64)):
            return
        self._learn(_row_of(x), x, [y], None if w == 1.0 else w)

    @reads
    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the prediction for a row."""
        found = self._predict_one(x)
        return 0.0 if found is None else float(found[0])

    @reads
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the prediction for every row."""
        import pandas as pd

        found = self._predict(_table_of(X), X.columns)
        return pd.Series(np.zeros(len(X)) if found is None else found[:, 0], index=X.index)

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, *keys: Ids) -> Self:
        require(learner is None or learner.outputs == 1, "outputs")
        return super()._restored(settings, learner, *keys)

    @_not_undone
    def _learn(self, table: Array, names: Collection[Any], y: Iterable[Any], w: Any) -> None:
        """Learn the rows of a table that has been checked, with targets and weights that have not."""
        given = list(y)
        checks.refuse_masked(given, "y")
        targets = np.array([_number_of(each, "a target") for each in given]).reshape(-1, 1)
        if len(targets) != len(table):
            raise ValueError(
                f"y must hold a target for each of {len(table)} rows, got {len(targets)}"
            )
        if not (np.abs(targets) <= LARGEST).all():
            raise ValueError(f"targets must be finite and lie between -{LARGEST:g} and {LARGEST:g}")
        order, parts = regressor.checked_weights(w, len(table), "w")
        if not order.size:
            return
        if self._learner is None:
            options = self.radii, self.random_features, self.seed
            self._learner = RegressionLearner(*options, len(names), 1)
        self._grow(names)
        rows = self._rows(table[order], names)
        self._learner.learn(rows, targets[order], parts)


#: Types of numbers that need no further check, up to 64 bits.
_LONG = 1 << 62
_PLAIN = {float, bool, np.float64, np.float32, np.int64, np.int32, np.bool_}


def _is_plain(x: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether a row is a dict of numbers of common types: for speed."""
    if type(x) is not dict:
        return False
    if _PLAIN.issuperset(map(type, x.values())):
        return True
    others = set(map(type, x.values())) - _PLAIN
    return others == {int} and max(x.values()) < _LONG and min(x.values()) > -_LONG


def _values(x: dict[Any, Any]) -> Array:
    """The values of a row that `_is_plain`."""
    return np.fromiter(x.values(), np.float64, len(x))


def _row_of(x: Mapping[Any, Any]) -> Array:
    """The values of one row as a table, checked."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}")
    values = list(x.values())
    checks.refuse_masked(values, "the row")
    given = np.array(values)
    if given.dtype.kind not in "fiub" or given.ndim != 1:  # of several types, or no numbers
        given = np.array([_number_of(value, "feature", name) for name, value in x.items()])
    return _in_range(given.astype(np.float64, copy=False)[None], x)


def _table_of(X: pd.DataFrame) -> Array:
    """The numbers in a frame, checked."""
    if not hasattr(X, "columns"):
        raise TypeError(f"X must be a pandas DataFrame, got {type(X).__name__}")
    for name, column in X.items():
        if column.dtype.kind not in "fiubO":
            raise TypeError(f"feature {name!r} must hold numbers, got {column.dtype}")
        if column.dtype.kind == "O":  # pandas would read numbers in text
            for value in column:
                _number_of(value, "feature", name)
    table = _in_range(X.to_numpy(dtype=np.float64), X.columns)
    if X.columns.has_duplicates:
        raise ValueError("the frame names a feature twice")
    return table


def _number_of(value: Any, *what: Any) -> float:
    """Return a number that is not written as text; `what` are a word for it and its name."""
    try:
        if isinstance(value, str | bytes | complex | np.complexfloating):  # float would read it
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{_named(*what)} is beyond the range of numbers") from None
    except (TypeError, ValueError):
        raise TypeError(f"{_named(*what)} must be a number, got {reprlib.repr(value)}") from None


def _named(word: str, *name: Any) -> str:
    return " ".join([word, *map(repr, name)])


def _in_range(table: Array, names: Collection[Hashable]) -> Array:
    """Return the table if the names of its columns are keys and its numbers are not too large."""
    check_keys(names, "the name of a feature")
    allowed = np.abs(table) <= LARGEST
    if not allowed.all():
        row, column = np.argwhere(~allowed)[0].tolist()
        raise ValueError(
            f"feature {list(names)[column]!r} must be finite and lie between -{LARGEST:g} and "
            f"{LARGEST:g}, got {table[row, column]!r}; rescale it, or give 0 where it is missing"
        )
    return table
