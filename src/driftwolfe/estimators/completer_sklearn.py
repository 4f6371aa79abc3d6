"""`MatrixCompleter` with the scikit-learn API."""

from __future__ import annotations

import os
from typing import Any, Self

from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.core.models import Watched
from driftwolfe.points.access import Guarded, reads, reads_whole, writes_or_undoes
from driftwolfe.points.kinds import Array


class MatrixCompletionRegressor(Guarded, Watched, RegressorMixin, BaseEstimator):
    """`MatrixCompleter` for scikit-learn: X has two columns, the ids of user and item.

    Ids may be of any type (an array of objects, or a data frame), so most transformers do not apply
    to X. Rows are learned in their order, which matters if tastes drift.

    Parameters
    ----------
    loss, keep_seen
        As for `MatrixCompleter`.

    Attributes
    ----------
    completer_
        The `MatrixCompleter` behind it.
    n_features_in_
        2.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([["ann", "up"], ["bob", "up"], ["ann", "heat"]], dtype=object)
    >>> model = MatrixCompletionRegressor().fit(X, [5.0, 4.0, 2.0])
    >>> bool(model.predict([("bob", "heat")]) < model.predict([("bob", "up")]))
    True
    """

    def __init__(self, *, loss: str = "huber", keep_seen: bool = True) -> None:
        self.loss, self.keep_seen = loss, keep_seen

    @writes_or_undoes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn all rows from scratch; a row of weight 2 is the same as two."""
        completer = MatrixCompleter(**self.get_params()).partial_fit(X, y, sample_weight)
        self.completer_, self.n_features_in_ = completer, 2
        return self

    @writes_or_undoes
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows; a row of weight 2 is the same as two."""
        completer = getattr(self, "completer_", None) or MatrixCompleter(**self.get_params())
        completer.partial_fit(X, y, sample_weight)
        self.completer_, self.n_features_in_ = completer, 2
        return self

    @reads
    def predict(self, X: Any) -> Array:
        """Return a rating for each row."""
        return self._fitted().predict(X)

    def _alarm(self) -> DriftAlarm:
        return self._fitted().alarm_

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, as `MatrixCompleter.save` does."""
        self._fitted()._write(path, type(self).__name__)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MatrixCompletionRegressor:
        """Read what `save` wrote."""
        completer, _ = MatrixCompleter._read(path, cls.__name__)
        options = completer._pool.settings
        model = cls(loss=options["loss"], keep_seen=options["keep_seen"])
        model.completer_, model.n_features_in_ = completer, 2
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _fitted(self) -> MatrixCompleter:
        if not hasattr(self, "completer_"):
            check_is_fitted(self)  # which takes longer, and says what to do
        return self.completer_
