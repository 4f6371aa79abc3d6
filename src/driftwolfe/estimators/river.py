"""The estimators with the river API."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base
from river.reco.base import Ranker

from driftwolfe.estimators.classifier_archive import check_options, read_learner, write_learner
from driftwolfe.estimators.classifier_experts import (
    LARGEST,
    SMALLEST,
    SMALLEST_WEIGHT,
    ClassLearner,
    Labelled,
    Rows,
    as_rows,
    check_range,
    check_weights,
    make_learner,
    plain_radii,
)
from driftwolfe.estimators.recommender import MatrixCompleter
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array
from driftwolfe.storage import check_keys, plain_key

if TYPE_CHECKING:
    import pandas as pd


class RiverMatrixCompleter(Ranker):
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
        self.loss = loss
        self.learner = learner
        self.radii = radii
        self.n_factors = n_factors
        self.weighting = weighting
        self.memory = memory
        self.keep_seen = keep_seen
        self.completer = MatrixCompleter(
            loss=loss,
            learner=learner,
            radii=radii,
            rank=n_factors,
            weighting=weighting,
            memory=memory,
            seed=seed or 0,
            keep_seen=keep_seen,
        )

    def learn_one(self, user: Hashable, item: Hashable, y: Any, x: Any = None) -> None:
        """Learn a rating; x is not used."""
        if isinstance(y, str | bytes):  # float would read it
            raise TypeError(f"a rating must be a number, got {y!r}")
        self.completer.partial_fit([(user, item)], [float(y)])

    def predict_one(self, user: Hashable, item: Hashable, x: Any = None) -> Any:
        """Predict a rating; x is not used."""
        return float(self.completer.predict([(user, item)])[0])

    def learn_many(self, pairs: Any, y: Any) -> None:
        """Learn ratings of (user, item) pairs, in order: the same as one after the other."""
        self.completer.partial_fit(pairs, y)

    def predict_many(self, pairs: Any) -> Any:
        """Predict ratings of (user, item) pairs."""
        return self.completer.predict(pairs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file, as `MatrixCompleter.save` does."""
        self.completer.write(path, type(self).__name__, {"seed": self.seed})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiverMatrixCompleter:
        """Read what `save` wrote."""
        completer, face = MatrixCompleter.read(path, cls.__name__)
        made, seed = completer.settings, face.get("seed")
        if set(face) != {"seed"} or (seed or 0) != made["seed"] or isinstance(seed, bool | float):
            raise ValueError(f"{path} does not hold a complete state: no seed")
        made["n_factors"] = made.pop("rank")
        model = cls(**{**made, "seed": seed})
        model.completer = completer
        return model

    def rank(self, user: Hashable, items: Iterable[Hashable], x: Any = None) -> list[Any]:
        """Return the items by falling prediction for a user."""
        given = list(items)
        scores = self.completer.predict([(user, item) for item in given])
        order = (-scores).argsort(kind="stable")
        return [given[place] for place in order.tolist()]


class RiverTraceNormClassifier(Guarded, base.MiniBatchClassifier):
    """A linear classifier for streams that drift, with nothing to tune; see `TraceNormClassifier`.

    Classes and features may come at any time; a feature that is missing counts as 0. Labels are of
    any hashable type, features are numbers. Mini-batches are learned row by row, so they leave the
    same state as the same rows one by one.

    Parameters
    ----------
    radii, learner, fit_intercept
        As for `TraceNormClassifier`.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from driftwolfe.estimators import RiverTraceNormClassifier
    >>> model = RiverTraceNormClassifier()
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89...%
    """

    def __init__(
        self, radii: Any = "auto", learner: str = "pola", fit_intercept: bool = True
    ) -> None:
        self.radii = radii
        self.learner = learner
        self.fit_intercept = fit_intercept
        self._places: dict[Hashable, int] = {}
        self._numbers: dict[Hashable, int] = {}
        self._learner: ClassLearner | None = None

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    @reads
    def classes(self) -> list[Any]:
        """The labels seen so far, in the order in which they came."""
        return list(self._numbers)

    @property
    @reads
    def feature_names(self) -> list[Any]:
        """The features seen so far, in the order in which they came."""
        return list(self._places)

    @property
    @reads
    def expert_weights(self) -> dict[str, float]:
        """The weights of the experts by their names; none before anything was learned."""
        if self._learner is None:
            return {}
        experts = self._learner.experts
        return dict(zip(experts.names, experts.weights.tolist(), strict=True))

    @writes
    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row of features and its label, with weight `w`."""
        values = _numbers_of(x)
        label = _label_of(y)
        weights = _weights_of(None if w == 1.0 else w, 1)
        if w < SMALLEST_WEIGHT:
            return
        learner = self._grown(x, label)
        places = np.array([self._places[name] for name in x], dtype=np.int64)
        rows = _one_row(places, values)
        number = np.array([self._numbers[label]])
        learner.learn(Labelled.from_weights(rows, number, weights))

    @reads
    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probabilities of the labels seen so far."""
        values = _numbers_of(x)
        if self._learner is None:
            return {}
        known = [(self._places[name], k) for k, name in enumerate(x) if name in self._places]
        chosen = np.array(known, dtype=np.int64).reshape(-1, 2)
        rows = _one_row(np.ascontiguousarray(chosen[:, 0]), values[chosen[:, 1]])
        probabilities = self._learner.probabilities(rows)[0].tolist()
        return dict(zip(self._numbers, probabilities, strict=True))

    @writes
    def learn_many(self, X: pd.DataFrame, y: pd.Series, w: Any = None) -> None:
        """Learn the rows of a frame, one after the other, with weights `w` if given."""
        table = _table_of(X)
        labels = [_label_of(label) for label in y]
        weights = _weights_of(w, len(X))
        if len(labels) != len(X):
            raise ValueError(f"y must hold a label for each of {len(X)} rows, got {len(labels)}")
        if weights is not None:
            kept = weights >= SMALLEST_WEIGHT
            table, weights = table[kept], weights[kept]
            labels = [label for label, stays in zip(labels, kept, strict=True) if stays]
        for first, last in _between_new(labels, self._numbers):
            learner = self._grown(X.columns, labels[first])
            numbers = np.array([self._numbers[label] for label in labels[first:last]])
            rows = self._rows(table[first:last], X.columns)
            parts = None if weights is None else weights[first:last]
            learner.learn(Labelled.from_weights(rows, numbers, parts))

    @reads
    def predict_proba_many(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the probabilities of the labels seen so far, one column each."""
        import pandas as pd

        table = _table_of(X)
        if self._learner is None:
            return pd.DataFrame(index=X.index)
        known = [k for k, name in enumerate(X.columns) if name in self._places]
        rows = self._rows(table[:, known], X.columns[known])
        probabilities = self._learner.probabilities(rows)
        return pd.DataFrame(probabilities, index=X.index, columns=pd.Index(self.classes))

    @reads
    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Return the most probable label of every row; None before anything was learned."""
        import pandas as pd

        places = self.predict_proba_many(X).to_numpy()
        classes = self.classes or [None]
        best = places.argmax(axis=1) if places.size else np.zeros(len(X), dtype=np.int64)
        return pd.Series([classes[k] for k in best], index=X.index)

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classifier to a file; no code is in it."""
        settings = {
            "radii": plain_radii(self.radii),
            "learner": self.learner,
            "fit_intercept": bool(self.fit_intercept),
        }
        keys = {"classes": self._numbers, "features": self._places}
        write_learner(path, type(self).__name__, settings, self._learner, keys)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RiverTraceNormClassifier:
        """Return the classifier that `save` wrote; it goes on as that one would have."""
        settings, learner, keys = read_learner(path, cls.__name__)
        if set(settings) != {"radii", "learner", "fit_intercept"}:
            raise ValueError(f"{path} holds other options than a {cls.__name__} has")
        check_options(settings)
        sizes = (0, 0) if learner is None else (learner.experts.classes, learner.map.features)
        if sizes != tuple(len(keys.get(name, ())) for name in ("classes", "features")):
            raise ValueError(f"{path} holds classes or features that do not fit its classifier")
        loaded = cls(**settings)
        loaded._learner = learner
        loaded._numbers = {label: k for k, label in enumerate(keys["classes"])}
        loaded._places = {name: k for k, name in enumerate(keys["features"])}
        return loaded

    def _grown(self, features: Iterable[Hashable], label: Hashable) -> ClassLearner:
        """Return the learner, with room for these features and this label."""
        if self._learner is None:
            self._learner = make_learner(self.radii, self.learner, self.fit_intercept, 1, 0)
        for name in features:
            self._places.setdefault(plain_key(name), len(self._places))
        self._numbers.setdefault(label, len(self._numbers))
        self._learner.grow(len(self._numbers), len(self._places))
        return self._learner

    def _rows(self, table: Array, columns: Iterable[Hashable]) -> Rows:
        """The rows of a table whose columns are known features."""
        places = np.array([self._places[name] for name in columns], dtype=np.int64)
        order = places.argsort()
        rows = as_rows(table[:, order])
        return rows._replace(places=places[order][rows.places])


def _one_row(places: Any, values: Array) -> Rows:
    """One row, its places rising and its zeros left out, so that the order of a dict is nothing."""
    order = places.argsort()
    order = order[np.abs(values[order]) >= SMALLEST]
    return Rows(np.array([0, order.size]), places[order], values[order])


def _numbers_of(x: Mapping[Any, Any]) -> Array:
    """The values of a row, or what is wrong with them."""
    if not isinstance(x, Mapping):
        raise TypeError(f"x must be a dict of features, got {type(x).__name__}")
    check_keys(x, "the name of a feature")
    values = list(x.values())
    checks.refuse_masked(values, "the row")
    given = np.array(values)
    if (
        given.dtype.kind not in "fiub" or given.ndim != 1
    ):  # of several kinds, or none that is a number
        given = np.array([_number_of(name, value) for name, value in x.items()])
    numbers = given.astype(np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        for name, value in x.items():
            if not math.isfinite(value):
                raise ValueError(f"feature {name!r} must be finite, got {value!r}")
        check_range(numbers)
    return numbers


def _number_of(name: Hashable, value: Any) -> float:
    try:
        if isinstance(value, str | bytes):  # float would read it
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"feature {name!r} is beyond the range of numbers") from None
    except (TypeError, ValueError):
        raise TypeError(f"feature {name!r} must be a number, got {value!r}") from None


def _table_of(X: pd.DataFrame) -> Array:
    """The numbers in a frame, or what is wrong with them."""
    if not hasattr(X, "columns"):
        raise TypeError(f"X must be a pandas DataFrame, got {type(X).__name__}")
    check_keys(X.columns, "the name of a feature")
    for k, (name, kind) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if kind.kind not in "fiubO":
            raise TypeError(f"feature {name!r} must hold numbers, got {kind}")
        if kind.kind == "O":  # pandas would read numbers in text
            for value in X.iloc[:, k]:
                _number_of(name, value)
    table = X.to_numpy(dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError("the frame holds NaN or infinity; fill in 0 where a feature is missing")
    if X.columns.has_duplicates:
        raise ValueError("the frame names a feature twice")
    check_range(table)
    return table


def _label_of(y: Any) -> Any:
    """The label as a key, or what is wrong with it: now, not when half of a row is learned."""
    label = plain_key(y)
    check_keys((label,), "a label")
    hash(label)
    return label


def _weights_of(w: Any, number: int) -> Array | None:
    if w is None:
        return None
    weights = np.array(np.broadcast_to(checks.real_array(w, "w"), (number,)))
    check_weights(weights)
    return weights


def _between_new(labels: list[Hashable], known: Mapping[Hashable, int]) -> list[tuple[int, int]]:
    """Cut labels such that one that was never seen stands only at the start of a piece.

    >>> _between_new(["a", "a", "b", "a"], {})
    [(0, 2), (2, 4)]
    """
    seen, cuts = set(known), [0]
    for k, label in enumerate(labels):
        if label not in seen and k:
            cuts.append(k)
        seen.add(label)
    ends = [*cuts[1:], len(labels)]
    return [(first, last) for first, last in zip(cuts, ends, strict=True) if last > first]
