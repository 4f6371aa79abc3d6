"""The estimators with the river API."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterable, Mapping
from operator import is_
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from river import base
from river.reco.base import Ranker

from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.classifier import ClassLearner, ClassModel, check_number
from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.core.columns import (
    PLAIN,
    Columns,
    Table,
    frame_table,
    in_order,
    is_plain,
    number_of,
    record_table,
)
from driftwolfe.estimators.core.ids import SIMPLE, Ids, check_keys, plain_key, plain_keys, several
from driftwolfe.estimators.core.models import ONE, SEED_OPTION, RowModel, Watched
from driftwolfe.estimators.core.rows import LARGEST, SparseRows
from driftwolfe.estimators.recommender import Recommender
from driftwolfe.estimators.regressor import OPTION, RegressionLearner, checked
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, not_undone, reads, writes_or_undoes
from driftwolfe.points.kinds import Array
from driftwolfe.storage import require

if TYPE_CHECKING:
    import pandas as pd


class _PairModel(Guarded, Watched, Ranker):
    """What models of (user, item) pairs share, around one that is none of river's."""

    KIND: ClassVar[Any]  # its class
    _scores: Any  # returns the predictions for pairs

    def __init__(self) -> None:
        super().__init__()
        self.model = self.KIND()

    def _alarm(self) -> DriftAlarm:
        return self.model.alarm_

    def rank(self, user: Hashable, items: Iterable[Hashable], x: Any = None) -> list[Any]:
        """Return the items in the order of their predictions for a user, best first; equal ones as given."""
        given = several(items, "items")
        scores = self._scores([(user, item) for item in given])
        return [given[place] for place in (-scores).argsort(kind="stable").tolist()]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as `save` of the model behind it does."""
        self.model._write(path, type(self).__name__)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        loaded = cls()
        loaded.model, _ = cls.KIND._read(path, cls.__name__)
        return loaded


class RiverMatrixCompleter(_PairModel):
    """`MatrixCompleter` for river, one rating at a time.

    Parameters
    ----------
    loss, keep_seen
        As for `MatrixCompleter`.

    Attributes
    ----------
    model
        The `MatrixCompleter` behind it.

    Examples
    --------
    >>> model = RiverMatrixCompleter()
    >>> for user, item, y in [("ann", "up", 5), ("bob", "up", 4), ("ann", "heat", 2)]:
    ...     model.learn_one(user, item, y)
    >>> model.rank("bob", {"up", "heat"})
    ['up', 'heat']
    """

    KIND = MatrixCompleter

    def __init__(self, loss: str = "huber", keep_seen: bool = True) -> None:
        super().__init__()
        self.loss, self.keep_seen = loss, keep_seen
        self.model = MatrixCompleter(loss=loss, keep_seen=keep_seen)

    def learn_one(self, user: Hashable, item: Hashable, y: Any, x: Any = None) -> None:
        """Learn a rating; x is not used."""
        self.model.learn_one(user, item, number_of(y, "a rating"))

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Predict a rating, 0 before the first; x is not used."""
        return self.model.predict_one(user, item)

    def predict_many(self, pairs: Any) -> Any:
        """Return what `predict_one` does for each of several (user, item) pairs."""
        return self.model._answers(pairs)

    def learn_many(self, pairs: Any, y: Any) -> None:
        """Learn ratings of (user, item) pairs, in order: the same as one after the other."""
        self.model.partial_fit(pairs, y)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        loaded = super().load(path)
        options = loaded.model._pool.settings
        loaded.loss, loaded.keep_seen = options["loss"], options["keep_seen"]
        return loaded

    def _scores(self, pairs: list[Any]) -> Any:
        return self.model._answers(pairs)


class RiverRecommender(_PairModel):
    """`Recommender` for river, one event at a time.

    Attributes
    ----------
    model
        The `Recommender` behind it.

    Examples
    --------
    >>> model = RiverRecommender()
    >>> for user, item in [("ann", "tea"), ("ann", "milk"), ("bob", "tea"), ("cat", "jam")]:
    ...     model.learn_one(user, item)
    >>> model.rank("bob", {"jam", "milk"})
    ['milk', 'jam']
    """

    KIND = Recommender

    def learn_one(self, user: Hashable, item: Hashable, y: Any = None, x: Any = None) -> None:
        """Learn an event of weight y: 1 if not given, 0 if the item was only seen; x is not used."""
        self.model.partial_fit([(user, item)], weights=None if y is None else [y])

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Return the probability that an item is the user's next new one; x is not used."""
        return float(self._scores([(user, item)])[0])

    def _scores(self, pairs: list[Any]) -> Any:
        return self.model.predict(pairs)


#: Rows before a column that does not come can count as missing.
FIRST_USUAL = 16


class _RowModel(RowModel):
    """What models of rows share; features are numbered as they appear."""

    OPTIONAL = "learner"
    AIM: ClassVar[str]  # what is learned of a row
    _latest: Any = ((), (), None)  # names, values and row: no part of the state

    def _alarm(self) -> DriftAlarm:
        return self._learner.alarm if self._learner else DriftAlarm()

    @property
    @reads
    def expert_weights(self) -> dict[str, float]:
        """The weights of the experts by name; empty before anything was learned."""
        if (learner := self._learner) is None:
            return {}
        return dict(zip(learner.names, learner.expert_weights.ravel().tolist(), strict=True))

    @writes_or_undoes
    def learn_many(self, X: Any, y: Any, w: Any = None) -> None:
        """Learn the rows of a frame, one after the other, with weights `w` if given."""
        self._learn(frame_table(X), y, w)

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, *keys: Ids) -> Self:
        sizes = learner.sizes if learner else (0,) * len(keys)
        require(sizes == tuple(map(len, keys)), "classes or features")
        require(getattr(learner, "outputs", 1) == 1, "outputs")
        random = settings.get("random_features")
        require(learner is None or random in (None, learner.random), "options")
        return super()._restored(settings, learner, *keys)

    def _learn_one(self, x: Any, target: Any) -> bool:
        """Learn a row that needs few checks, for speed; return False, and do nothing, for others."""
        if (row := self._row(x)) is None:
            return False
        if row is not self._latest[2] and (row.places < 0).any():
            plain = is_plain([*x.values()]) and bool((np.abs(row.values) <= LARGEST).all())
            return plain and self._learn_new(x, target)
        return self._teach(self._learner, row, target, ONE)

    @not_undone
    def _learn_new(self, x: dict[Any, Any], target: Any) -> bool:
        """Learn a row of numbers with new columns, as `_learn_one` does."""
        self._columns.add(in_order(plain_key(name) for name in x))
        self._grow()
        return bool(self._learner.learn(self._row(x), target, ONE))

    def _grow(self) -> None:
        super()._grow()
        self._latest = ((), (), None)

    def _row(self, x: Any) -> SparseRows | None:
        """A dict of common types as a row, what is new at the place -1; None for others, or if one is missing."""
        if (learner := self._learner) is None or type(x) is not dict:
            return None
        names, values, columns = [*x], [*x.values()], self._columns
        known, same, row = self._latest
        alike = len(names) == len(known) and all(map(is_, names, known))
        if alike and all(map(is_, values, same)):  # the row that was predicted
            return row
        if plain := is_plain(values):
            numbers = np.fromiter(values, np.float64, len(values))
            if alike:
                row = SparseRows(row.starts, row.places, numbers)
                self._latest = names, values, row  # at once: several threads may predict
                return row
            check_keys(x, "the name of a feature")
            row = learner.one_row(columns.find(x), numbers)
            there = int(np.count_nonzero(row.places >= 0))
        elif (mixed := columns.mixed(x)) is None:
            return None
        else:
            *given, there = mixed
            row = learner.one_row(*given)
        if there < columns.count:
            return None if self._absent(x) else row
        if plain and learner.map.full and there == len(names):
            self._latest = names, values, row
        return row

    def _absent(self, names: Collection[Any]) -> list[Any]:
        """Return the columns that are not among these and usually were: not 0 in half of all rows or more."""
        scale = self._learner and self._learner.map
        if scale is None or not scale.full or scale.totals[0] < FIRST_USUAL:
            return []
        usual, columns = 2.0 * scale.seen >= scale.totals[0], self._columns
        places = (name for name in columns.columns if usual[columns.numbers[name]])
        return [name for name in places if name not in names]

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_latest"}

    def _predict_one(self, x: Mapping[Any, Any]) -> Any:
        """What is predicted for one row; None before anything was learned."""
        row = self._row(x)
        if row is not None and (found := self._learner.predict(row)).size:
            return found.tolist()[0]
        predicted = self._predict(record_table(x))
        return None if predicted is None else predicted.tolist()[0]

    def _predict(self, table: Table) -> Array | None:
        """What is predicted for the rows of a table; None before anything was learned."""
        table = table.with_gaps(self._absent(table.names))
        return self._learner and self._learner.predict(self._columns.rows(table))

    def _learn(self, table: Table, y: Iterable[Any], w: Any) -> None:
        """Learn the rows of a table that has been checked, with targets and weights that have not."""
        given = list(y)
        if len(given) != (number := len(table.numbers)):
            raise ValueError(
                f"y must hold a {self.AIM} for each of {number} rows, got {len(given)}"
            )
        learner, order, targets, parts, *more = self._taught(given, w)
        if not order.size:
            return
        self._learner = learner
        # Columns that do not come may be missing, once enough rows are known.
        cut = min(max(0, FIRST_USUAL - learner.t), order.size)
        for own in slice(0, cut), slice(cut, order.size):
            if own.stop > own.start:
                some = table.taken(order[own])
                some = some.with_gaps(self._absent(some.names))
                self._learn_more(some, targets[own], parts[own], *more)


class RiverTraceNormClassifier(ClassModel, _RowModel, base.MiniBatchClassifier):
    """A classifier for streams that drift, with nothing to tune; see `TraceNormClassifier`.

    Classes and features may appear at any time. A feature that does not come counts as missing if it was not 0
    in half of all rows so far or more, else as 0. Labels are of any hashable type. Mini-batches are learned row
    by row.

    Parameters
    ----------
    features, class_weight
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

    OPTIONS = SETTINGS = ClassModel.OPTIONS | {"seed": SEED_OPTION}
    AIM = "label"
    PARTS: ClassVar[dict[str, Any]] = {"learner": ClassLearner, "classes": Ids, "columns": Columns}
    _multiclass = True

    def __init__(
        self, features: str = "random", seed: int = 0, class_weight: str | None = None
    ) -> None:
        self.features, self.seed, self.class_weight = features, seed, class_weight
        self._columns, self._classes, self._learner = Columns(), Ids(), None

    @writes_or_undoes
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of features and its label, with weight `w`."""
        number = self._classes.numbers.get(y) if w == 1.0 and type(y) in SIMPLE else None
        known = number is not None and self.class_weight is None
        if known and self._learn_one(x, np.array((number,))):
            return
        self._learn(record_table(x), [y], None if w == 1.0 else w)

    @reads
    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probabilities of the labels seen so far."""
        found = self._predict_one(x)
        return {} if found is None else dict(zip(self._classes.names, found, strict=True))

    @reads
    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of the labels seen so far, one column each."""
        import pandas as pd

        found = self._predict(frame_table(X))
        return pd.DataFrame(
            found, index=getattr(X, "index", None), columns=pd.Index(self._classes.names)
        )

    @reads
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the most probable label of every row; None before anything was learned."""
        import pandas as pd

        found = self.predict_proba_many(X).to_numpy()
        best = found.argmax(axis=1) if found.size else []
        labels = [self._classes.names[k] for k in best] or [None] * len(X)
        return pd.Series(labels, index=getattr(X, "index", None))

    def _taught(self, given: list[Any], w: Any) -> tuple[Any, ...]:
        labels = plain_keys(given, "a label")
        if None in labels:
            raise ValueError("a label is missing (None); leave such rows out or give it a name")
        check_number(len(self._classes.numbers.keys() | set(labels)))
        learner = self._learner or self._new_learner(self.seed, 1, 0)
        numbers, _ = self._classes.number(labels)
        order, *more = self._weighed(learner, labels, numbers, w, "w")
        return learner, order, [labels[k] for k in order.tolist()], *more


class RiverTraceNormRegressor(_RowModel, base.MiniBatchRegressor):
    """Regression for streams that drift, with nothing to tune; see `TraceNormRegressor`.

    Features may appear at any time. A feature that does not come counts as missing if it was not 0 in half of
    all rows so far or more, else as 0. Those of the first row are the ones that random features look at. Before
    the first row the prediction is 0.

    Parameters
    ----------
    random_features
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

    OPTIONS: ClassVar[dict[str, Any]] = {"random_features": OPTION, "seed": SEED_OPTION}
    SETTINGS = OPTIONS
    AIM = "target"
    PARTS: ClassVar[dict[str, Any]] = {"learner": RegressionLearner, "columns": Columns}

    def __init__(self, random_features: int = 64, seed: int = 0) -> None:
        self.random_features, self.seed = random_features, seed
        self._columns, self._learner = Columns(), None

    @writes_or_undoes
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of features and its target, with weight `w`."""
        known = w == 1.0 and type(y) in PLAIN and abs(y) <= LARGEST
        if known and self._learn_one(x, np.array([[y]], dtype=np.float64)):
            return
        self._learn(record_table(x), [y], None if w == 1.0 else w)

    @reads
    def predict_one(self, x: Mapping[Any, Any]) -> float:
        """Return the prediction for a row."""
        found = self._predict_one(x)
        return 0.0 if found is None else found[0]

    @reads
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the prediction for every row."""
        import pandas as pd

        found = self._predict(frame_table(X))
        targets = np.zeros(len(X)) if found is None else found[:, 0]
        return pd.Series(targets, index=getattr(X, "index", None))

    def _taught(self, given: list[Any], w: Any) -> tuple[Any, ...]:
        checks.refuse_masked(given, "y")
        targets = np.array([number_of(each, "a target") for each in given]).reshape(-1, 1)
        learner = self._learner or RegressionLearner(self.seed, 0, 1, self.random_features)
        return learner, *checked(targets, w, "w")
