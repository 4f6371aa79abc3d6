"""`MatrixCompleter` with the scikit-learn API."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.core.ids import columns
from driftwolfe.estimators.core.models import Watched
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes_or_undoes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Field, check_fields


class MatrixCompletionRegressor(Guarded, Watched, RegressorMixin, BaseEstimator):
    """`MatrixCompleter` for scikit-learn: X has two columns, the ids of user and item.

    Ids may be of any type (an array of objects, or a data frame), so most transformers do not apply
    to X. Rows are learned in their order, which matters if tastes drift.

    Parameters
    ----------
    loss, learner, radii, rank, weighting, memory, keep_seen
        As for `MatrixCompleter`.
    passes
        Times that `fit` goes over the rows: the first time in order, then shuffled.
    random_state
        A whole number: the seed of all that is random.

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

    def __init__(
        self,
        *,
        loss: str = "huber",
        learner: str = "both",
        radii: Sequence[float] = (0.3, 1.0),
        rank: int = 4,
        weighting: float = 0.75,
        memory: int = 131_072,
        passes: int = 1,
        random_state: int = 0,
        keep_seen: bool = True,
    ) -> None:
        self.loss, self.learner, self.radii, self.rank = loss, learner, radii, rank
        self.weighting, self.memory, self.keep_seen = weighting, memory, keep_seen
        self.passes, self.random_state = passes, random_state

    @writes_or_undoes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn all rows from scratch; a row of weight 2 is the same as two."""
        passes = checks.count(self.passes, "passes")
        completer, pairs = self._new_completer(), list(zip(*columns(X), strict=True))
        ratings = checks.finite_array(y, "y", (len(pairs),))
        random = np.random.default_rng(self.random_state)
        completer.partial_fit(pairs, ratings, sample_weight)
        weights = None if sample_weight is None else np.broadcast_to(sample_weight, len(pairs))
        for _ in range(passes - 1):
            order = random.permutation(len(pairs))
            own = None if weights is None else weights[order]
            completer.partial_fit([pairs[row] for row in order.tolist()], ratings[order], own)
        self.completer_, self.n_features_in_ = completer, 2
        return self

    @writes_or_undoes
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows; a row of weight 2 is the same as two."""
        completer = getattr(self, "completer_", None) or self._new_completer()
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
        self._fitted()._write(path, type(self).__name__, wrapper={"passes": self.passes})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MatrixCompletionRegressor:
        """Read what `save` wrote."""
        completer, settings = MatrixCompleter._read(path, cls.__name__)
        options, own = completer.settings, settings["wrapper"]
        check_fields({"passes": Field((int, float), least=1)}, own, cls.__name__)
        options["random_state"] = options.pop("seed")
        model = cls(**options, passes=checks.count(own["passes"], "passes"))
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

    def _new_completer(self) -> MatrixCompleter:
        options = self.get_params()
        del options["passes"]
        return MatrixCompleter(seed=options.pop("random_state"), **options)
