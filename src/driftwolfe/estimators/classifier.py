"""`TraceNormClassifier`, with the scikit-learn API."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from driftwolfe.estimators.classifier_experts import (
    SEED_OPTION,
    ClassifierOptions,
    ClassLearner,
    checked_radii,
)
from driftwolfe.estimators.core.ids import Ids, check_keys, set_feature_names, several
from driftwolfe.estimators.core.rows import SparseRows, as_one_row, as_rows, copies
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field, declared, options_of, read_state, write_state
from driftwolfe.storage import refused, require

SAVED_OPTIONS = declared(ClassifierOptions) | {"random_state": SEED_OPTION, "labels": Field(str)}


class TraceNormClassifier(ClassifierOptions, Guarded, ClassifierMixin, BaseEstimator):
    r"""A classifier for streams that drift: linear and random features, several radii, nothing to tune.

    Features are rescaled online. Experts for all radii and for intervals of 16, 64, 256, ... rows
    descend on the logistic loss in trace-norm balls, and restart when their interval ends. There are
    four groups of them, called views: on the features; on the features, taking one label in ten for
    drawn at random; on waves, cosines of two or three features; and on ferns, the leaves of random
    trees. The last three views also have experts that are running means of the others. Class
    probabilities are averaged, weighted by the probabilities that experts gave to the labels so far:
    those of experts within each view, then those of the views.

    .. math:: p_t(c) = \sum_v u_{t,v} \sum_{i \in v} w_{t,i}\, p_{t,i}(c), \qquad
              p_{t,i} = \mathrm{softmax}(Y_{t,i} z_{t,v})

    A view with less than a thousandth of all weight rests for up to 7 of 8 blocks of 16 rows, so that
    a linear stream takes less time. Random features start with row 33, on the features known by then,
    if these are at most 256.

    Parameters
    ----------
    radii
        Bounds on the trace norms of the experts' matrices, in units of scores for a row of usual
        length: ``"auto"`` for 10, 40 and 160, or a number, or several. A small radius keeps
        probabilities soft.
    features
        ``"random"`` for all views, ``"linear"`` for the first alone, two to four times as fast.
    learner
        ``"pola"`` adapts to drift. ``"pold"`` never restarts an expert and returns to lighter experts
        more slowly; its interval lengths are only a grid of step sizes.
    fit_intercept
        Whether scores of the linear views have a constant part; up to 256 features are then centred.
    random_state
        Seed of the random features, a whole number; None is 0.

    Attributes
    ----------
    classes_
        The labels, sorted.
    n_features_in_, feature_names_in_
        Number and, if the input had some, names of features.

    Notes
    -----
    Rows are learned in their order, by `fit` too: it starts anew and goes through them once, as one
    call of `partial_fit` does. If rows are sorted, by label say, and the order means nothing, shuffle
    them first.

    On every interval I of the cover (so, with logarithmically many terms, on every interval), for
    every radius rho, the log loss of the rows as they came is at most

    .. math:: \min_{\lVert Z\rVert_* \le \rho} \sum_{t \in I} f_t(Z)
              + 1.3 \cdot 4\sqrt2\, \rho \sqrt{|I|} + \ln(4 N e^2)

    with e the last row of I and N linear experts, where :math:`f_t` is the loss on the rescaled row
    :math:`z_t`, whose norm is at most 2. The other views can only lower the loss, but for the
    logarithm: against the mixture of any of them, on rows on which it does not rest, the excess is at
    most :math:`\ln(4 e)`. While they do not rest, experts on waves and ferns have the first two terms
    too, against matrices for their own features and intervals of 256, 2,048 and 16,384 rows; those that
    doubt labels descend on a loss that is not convex, and have none, nor have means.

    A whole number w as the weight of a row is the same as w copies of it, up to 100. What is learned
    does not depend on how rows are split into calls, nor on whether they are sparse.

    Several threads may predict or save at the same time, or one may learn; other calls raise a
    RuntimeError. Work per row and memory grow with experts x classes x features, with 3 experts for
    each of 5 to 10 lengths and 8 in each further view, for 98 features more with waves; beyond 256
    features the work grows with the nonzero entries of a row. Ferns take 128 entries per row and
    4,096 rows of memory.

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI. Hazan and Seshadhri (2009), Efficient learning algorithms for changing
    environments, ICML, for mixtures on intervals under exp-concave losses. Ross, Mineiro and
    Langford (2013), Normalized online learning, UAI. Rahimi and Recht (2007), Random features for
    large-scale kernel machines, NeurIPS. Ozuysal et al. (2010), Fast keypoint recognition using random
    ferns, TPAMI. Freund et al. (1997), Using and combining predictors that specialize, STOC.

    Examples
    --------
    >>> import numpy as np
    >>> from driftwolfe.estimators import TraceNormClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = X[:, 0] > 0
    >>> y[200:] = X[200:, 0] < 0  # the rule is reversed
    >>> model = TraceNormClassifier().partial_fit(X, y, classes=[False, True])
    >>> model.predict([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])
    array([False,  True])
    """

    def __init__(
        self,
        radii: Any = "auto",
        *,
        learner: str = "pola",
        fit_intercept: bool = True,
        features: str = "random",
        random_state: Any = 0,
    ) -> None:
        self.radii, self.learner, self.fit_intercept = radii, learner, fit_intercept
        self.features, self.random_state = features, random_state

    @writes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TraceNormClassifier:
        """Learn from scratch, going through the rows once, in their order."""
        learner, rows, labels, parts = self._checked(X, y, sample_weight, first=True)
        learner.learn(rows, labels, parts)
        self._learner = learner
        return self

    @writes
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> TraceNormClassifier:
        """Learn rows one by one, in their order; the first call names all classes that will ever come."""
        first = not self.__sklearn_is_fitted__()
        if classes is None and first:
            raise ValueError("classes must be passed on the first call to partial_fit")
        given = self._checked_classes(classes, first)
        if not first and sample_weight is None and self._learn_one(X, y):
            return self
        learner, rows, labels, parts = self._checked(X, y, sample_weight, first, given)
        learner.learn(rows, labels, parts)
        self._learner = learner
        return self

    @reads
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, in the order of `classes_`."""
        learner = self._fitted()
        if row := as_one_row(self, X):
            found = learner.probabilities(row)
            if found.size:
                return found
        rows = _sound(X, "X")
        table = validate_data(self, rows, accept_sparse="csr", dtype=np.float64, reset=False)
        return learner.probabilities(as_rows(table))

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of `predict_proba`."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))

    @reads
    def decision_function(self, X: Any) -> Array:
        """Return log probabilities, or, of two classes, the log odds of the second."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if self.classes_.size == 2 else logs

    @reads
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every row."""
        best = self.predict_proba(X).argmax(axis=1)  # first: it refuses unfitted models
        return self.classes_[best]

    @property
    def t_(self) -> int:
        """Rows learned, copies of weighted ones counted."""
        return self._fitted().t

    @property
    @reads
    def coef_(self) -> Array:
        """The weighted mean of the linear experts in units of the features, (n_classes, n_features).

        With one row for two classes, as usual. An approximation: probabilities are averaged, not
        matrices, and very long rows are shortened. Experts on random features are left out: where
        these have weight (`expert_weights_`), predictions differ.
        """
        return self._coefficients()[0]

    @property
    @reads
    def intercept_(self) -> Array:
        """The constant parts of the scores in the mean of the linear experts, shape (n_classes,)."""
        return self._coefficients()[1]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """The weights of the experts."""
        return self._fitted().experts.all_weights

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """The view, the radius and the interval length of every expert."""
        return self._fitted().experts.names

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, without any code."""
        learner, names = self._fitted(), Ids(getattr(self, "feature_names_in_", ()))
        settings = options_of(self, ClassifierOptions) | {"random_state": learner.seed}
        settings["labels"] = self.classes_.dtype.str
        keys = {"classes": Ids(self.classes_), "names": names}
        write_state(path, type(self).__name__, settings, {"learner": learner, **keys})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TraceNormClassifier:
        """Return the classifier that `save` wrote; it resumes bit-identically."""
        parts = {"learner": ClassLearner, "classes": Ids, "names": Ids}
        options, learner, keys, names = read_state(path, cls.__name__, SAVED_OPTIONS, parts)
        kind = options.pop("labels")
        checked_radii(options["radii"])
        loaded = cls(**options)
        with refused("this archive holds classes that do not fit together"):
            dtype = np.dtype(kind)
            # At most 64 MB: a file of a few bytes can name a type of any width.
            small = dtype.itemsize * len(keys) <= 1 << 26
            require(dtype.kind in "biufUSO" and small, "labels")
            classes = np.array(keys.names, dtype=dtype)
            require(classes.shape == (learner.experts.classes,), "classes")
            require(np.array_equal(np.unique(classes), classes), "classes")
        loaded.classes_, loaded._learner = classes, learner
        set_feature_names(loaded, names, learner.map.features)
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked_classes(self, classes: Any, first: bool) -> NDArray[Any]:
        """Return the classes, sorted, if they are those of the first call."""
        if classes is None:
            return self.classes_
        several(classes, "classes")
        checks.refuse_masked(classes, "classes")
        _check_labels(classes, "a class")
        given = np.unique(np.asarray(classes))
        if not given.size:
            raise ValueError("classes must name at least one class, got none")
        if not first and not np.array_equal(given, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}, "
                f"got {given.tolist()}"
            )
        return given

    def _checked(
        self, X: Any, y: Any, sample_weight: Any, first: bool, classes: Any = None
    ) -> tuple[ClassLearner, SparseRows, Indices, Array]:
        """Return the learner, a new one the first time, and what it learns; set `classes_`."""
        before = self.__dict__.copy()
        try:
            rows, targets = _sound(X, "X"), _sound(y, "y")
            _check_labels(targets, "a label")
            table, labels = validate_data(
                self, rows, targets, accept_sparse="csr", dtype=np.float64, reset=first
            )
            check_classification_targets(labels)
            order, parts = copies(sample_weight, labels.size, "sample_weight")
            self.classes_ = np.unique(labels) if classes is None else classes
            numbers = self.classes_.searchsorted(labels)
            known = self.classes_[np.minimum(numbers, self.classes_.size - 1)] == labels
            if not np.all(known):
                raise ValueError(
                    f"y holds labels {np.unique(labels[~known]).tolist()} that are not among the "
                    f"classes {self.classes_.tolist()}; name all classes that will ever come in the "
                    "first call of partial_fit"
                )
            if classes is None and not order.size:
                raise ValueError("sample_weight is zero for all rows: there is nothing to learn")
            options = self.radii, self.learner, self.fit_intercept
            sizes = self.classes_.size, self.n_features_in_
            drawn = self.features, self.random_state
            learner = ClassLearner(*options, *sizes, *drawn) if first else self._learner
            return learner, as_rows(table).taken(order), numbers[order].astype(np.int64), parts
        except BaseException:
            self.__dict__ = before  # without what scikit-learn's checks have set
            raise

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        row = as_one_row(self, X)
        if row is None or type(y) is not np.ndarray or y.shape != (1,):
            return False
        if y.dtype.kind not in "iubU" or y.dtype.kind != self.classes_.dtype.kind:
            return False
        number = self.classes_.searchsorted(y)
        if number[0] == self.classes_.size or self.classes_[number[0]] != y[0]:
            return False
        return self._learner.learn_one(row, number)

    def _fitted(self) -> ClassLearner:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes longer, and says what to do
        return self._learner

    def _coefficients(self) -> tuple[Array, Array]:
        weights, intercepts = self._fitted().coefficients()
        if self.classes_.size == 2:
            return weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
        return weights, intercepts


def _sound(given: Any, name: str) -> Any:
    """Check what scikit-learn does not: masks, and indices of sparse matrices."""
    checks.refuse_masked(given, name)
    return checks.sound_sparse(given, name)


def _check_labels(labels: Any, what: str) -> None:
    """Refuse labels that are NaN or hold NaN; NumPy would make text of it beside texts."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    if kind in "fO" and isinstance(labels, Iterable) and getattr(labels, "ndim", 1) > 0:
        check_keys(list(labels), what)
