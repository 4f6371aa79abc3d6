"""`TraceNormRegressor`, with the scikit-learn API."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from driftwolfe.estimators.classifier_experts import SEED_OPTION
from driftwolfe.estimators.core.ids import Ids, set_feature_names
from driftwolfe.estimators.core.rows import LARGEST, SparseRows, as_one_row, as_rows
from driftwolfe.estimators.regressor_experts import (
    RegressionLearner,
    RegressorOptions,
    check_options,
    checked_weights,
)
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Field, declared, options_of, read_state, write_state
from driftwolfe.storage import require

SAVED_OPTIONS = declared(RegressorOptions) | {"random_state": SEED_OPTION, "single": Field(bool)}


class TraceNormRegressor(RegressorOptions, Guarded, RegressorMixin, BaseEstimator):
    r"""Regression for streams that drift, with one or several outputs and nothing to tune.

    Features and targets are rescaled online. Several experts predict: the last target; means, ridge
    regressions and ridge regressions of changes (of the target from the row before, by those of the
    features) over the last 8, 32, 128, 512 rows and over all; ridge regressions with random features;
    and gradient descent on Huber's loss in trace-norm balls. Their predictions are averaged, weighted
    by their losses so far, for every output apart.

    Parameters
    ----------
    radii
        Bounds on the trace norms of the matrices in balls, in units of the targets' standard
        deviation for a row of usual length: ``"auto"`` for 4 and 32, or a number, or several.
    random_features
        Number of cosines of one to three features each, for what is not linear; 0 for none.
    random_state
        Seed of these.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        Number and, if the input had some, names of features.

    Notes
    -----
    Rows are learned in their order, by `fit` too: it starts anew and goes through them once. What is
    learned does not depend on how they are split into calls. `predict` takes every row for the next
    one: the last target and row are those learned last.

    For one output let :math:`\hat y_t` be the prediction for row t as it was learned, :math:`f_t`
    Huber's loss in units :math:`u_t` (1.33 times the running mean of errors, at least a quarter of the
    present one), N the number of experts, and :math:`\Delta_t` the range of their losses. For any
    sequence of experts :math:`e_t` with S switches, from the second row on and for rows of weight 1,

    .. math:: \sum_t f_t(\hat y_t) - f_t(\hat y_{t, e_t}) \le
              \frac{(S + 1) \ln (N T)}{0.8} + 0.1 \sum_t \Delta_t^2

    by fixed share with share 1/(t + 1) (Herbster and Warmuth 1998) and Hoeffding's lemma. An expert
    in a ball of radius :math:`\rho` has, on every interval I of 64 to 262,144 rows, for the one of three
    step sizes that suits it, regret at most :math:`7.3\, \rho \sqrt{m |I|}` against any matrix in the
    ball, for m outputs and the losses, in units of the targets' deviation, that it descends on, before
    predictions are clipped to the range of targets and a quarter more. The other experts have no
    guarantee of their own, and the bounds on sums of :math:`\Delta_t^2` are large where experts differ much.

    Rescaling features, or rescaling and shifting targets, does the same to predictions, up to about a
    thousandth of the targets' deviation: experts with long steps amplify rounding errors.

    Work per row grows with the square of the features up to 256 (time to fit included), and beyond
    with the nonzero entries of a row: then only means and experts in balls are left.

    Several threads may predict or save at the same time, or one may learn; other calls raise a
    RuntimeError.

    References
    ----------
    Herbster and Warmuth (1998), Tracking the best expert, Machine Learning. Zinkevich (2003), Online
    convex programming and generalized infinitesimal gradient ascent, ICML. Rahimi and Recht (2007),
    Random features for large-scale kernel machines, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from driftwolfe.estimators import TraceNormRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = 5.0 * X[:, 0]
    >>> y[200:] = -5.0 * X[200:, 0]  # the rule is reversed
    >>> model = TraceNormRegressor().partial_fit(X, y)
    >>> model.predict([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]).round()
    array([-5.,  5.])
    """

    def __init__(
        self, radii: Any = "auto", *, random_features: int = 64, random_state: int = 0
    ) -> None:
        self.radii, self.random_features, self.random_state = radii, random_features, random_state

    @writes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TraceNormRegressor:
        """Learn from scratch, going through the rows once, in their order."""
        self._learn(X, y, sample_weight, first=True)
        return self

    @writes
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> TraceNormRegressor:
        """Learn rows one by one, in their order."""
        first = not self.__sklearn_is_fitted__()
        if first or sample_weight is not None or not self._learn_one(X, y):
            self._learn(X, y, sample_weight, first)
        return self

    @reads
    def predict(self, X: Any) -> Array:
        """Return the prediction for every row, of the shape that targets had."""
        learner = self._fitted()
        if row := as_one_row(self, X):
            predicted = learner.predict(row)
            if predicted.size:
                return predicted[:, 0] if self._single else predicted
        rows = checks.sound_sparse(_unmasked(X, "X"), "X")
        table = validate_data(self, rows, accept_sparse="csr", dtype=np.float64, reset=False)
        predicted = learner.predict(as_rows(table))
        return predicted[:, 0] if self._single else predicted

    @property
    def t_(self) -> int:
        """Rows learned."""
        return self._fitted().t

    @property
    @reads
    def expert_weights_(self) -> Array:
        """The weights of the experts: a row for each output, or one row if targets are numbers."""
        weights = self._fitted().state.weights.copy()
        return weights[0] if self._single else weights

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """What each expert is."""
        return self._fitted().names

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted regressor to a file, without any code."""
        learner, names = self._fitted(), Ids(getattr(self, "feature_names_in_", ()))
        settings = options_of(self, RegressorOptions) | {"random_state": learner.seed}
        settings["single"] = self._single
        write_state(path, type(self).__name__, settings, {"learner": learner, "names": names})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TraceNormRegressor:
        """Return the regressor that `save` wrote; it resumes bit-identically."""
        parts = {"learner": RegressionLearner, "names": Ids}
        options, learner, names = read_state(path, cls.__name__, SAVED_OPTIONS, parts)
        single = options.pop("single")
        require(learner.outputs == 1 or not single, "outputs")
        check_options(options, learner)
        loaded = cls(**options)
        loaded._learner, loaded._single = learner, single
        set_feature_names(loaded, names, learner.map.features)
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.target_tags.multi_output = True
        return tags

    def _learn(self, X: Any, y: Any, sample_weight: Any, first: bool) -> None:
        """Check rows and targets, then learn them."""
        before = self.__dict__.copy()
        try:
            rows, targets, parts = self._checked(X, y, sample_weight, first)
            if first:
                sizes = self.n_features_in_, targets.shape[1]
                options = self.radii, self.random_features, self.random_state
                self._learner = RegressionLearner(*options, *sizes)
        except BaseException:
            self.__dict__ = before  # without what scikit-learn's checks have set
            raise
        self._learner.learn(rows, targets, parts)

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, first: bool
    ) -> tuple[SparseRows, Array, Array]:
        """Return rows, targets as a table and weights, without those of weight 0."""
        given = checks.sound_sparse(_unmasked(X, "X"), "X")
        options = {"accept_sparse": "csr", "dtype": np.float64, "reset": first}
        several = {"multi_output": True, "y_numeric": True}
        table, numbers = validate_data(self, given, _unmasked(y, "y"), **options, **several)
        targets = np.array(numbers, dtype=np.float64)
        if first:
            self._single = targets.ndim == 1
        if not (np.abs(targets) <= LARGEST).all():
            raise ValueError(f"y must lie between -{LARGEST:g} and {LARGEST:g}: rescale it")
        targets = targets.reshape(len(targets), -1)
        if not first and targets.shape[1] != self._learner.outputs:
            raise ValueError(
                f"y must have {self._learner.outputs} outputs, as before, got {targets.shape[1]}"
            )
        order, parts = checked_weights(sample_weight, len(targets), "sample_weight")
        if first and not order.size:
            raise ValueError("sample_weight is zero for all rows: there is nothing to learn")
        return as_rows(table).taken(order), targets[order], parts

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        row = as_one_row(self, X)
        if row is None or type(y) is not np.ndarray or y.dtype != np.float64:
            return False
        shape = (1,) if self._single else (1, self._learner.outputs)
        if y.shape != shape or not y.flags.c_contiguous:
            return False
        return self._learner.learn_one(row, y.reshape(1, -1))

    def _fitted(self) -> RegressionLearner:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes longer, and says what to do
        return self._learner


def _unmasked(given: Any, name: str) -> Any:
    """Refuse masks, which scikit-learn does not look at."""
    checks.refuse_masked(given, name)
    return given
