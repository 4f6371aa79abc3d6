"""`TraceNormClassifier`, with the scikit-learn API."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from driftwolfe.estimators.classifier_experts import OPTIONS, ClassLearner, read_model, write_model
from driftwolfe.estimators.classifier_features import Rows, as_rows, copies, fixed_order, is_one_row
from driftwolfe.estimators.ids import check_keys
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.saved_state import Field
from driftwolfe.storage import refused, require

#: What a file says besides the state.
SAVED_OPTIONS = OPTIONS | {
    "passes": Field(int, least=1),
    "random_state": Field(int, least=0, below=1 << 32, optional=True),
    "labels": Field(str),
    "passes_done": Field(int, least=1, optional=True, newer=True),
}


class TraceNormClassifier(Guarded, ClassifierMixin, BaseEstimator):
    r"""A linear classifier for streams that drift: POLA with several radii, nothing to tune.

    Features are rescaled online. Experts for all radii and for intervals of 16, 64, 256, ... rows
    descend on the logistic loss in trace-norm balls, and restart when their interval ends. Their class
    probabilities are averaged, weighted by the probabilities that they gave to the labels so far.

    .. math:: p_t(c) = \sum_i w_{t,i}\, \mathrm{softmax}(Y_{t,i} z_t)_c

    Parameters
    ----------
    radii
        Bounds on the trace norms of the experts' matrices, in units of scores for a row of usual
        length: ``"auto"`` for 10, 40 and 160, or a number, or several. A small radius keeps
        probabilities soft.
    learner
        ``"pola"`` adapts to drift. ``"pold"`` never restarts an expert and returns to lighter experts
        more slowly; its interval lengths are only a grid of step sizes.
    fit_intercept
        Whether scores have a constant part; up to 256 features are then centred.
    passes
        How often `fit` goes through the rows.
    random_state
        Seed of the order of rows in `fit`; `partial_fit` learns rows in their order.

    Attributes
    ----------
    classes_
        The labels, sorted.
    n_features_in_, feature_names_in_
        Number and, if the input had some, names of features.
    n_iter_
        Passes of the last `fit`.

    Notes
    -----
    On every interval I of the cover (so, with logarithmically many terms, on every interval), for
    every radius rho, the log loss of the rows as they came is at most

    .. math:: \min_{\lVert Z\rVert_* \le \rho} \sum_{t \in I} f_t(Z)
              + 1.3 \cdot 4\sqrt2\, \rho \sqrt{|I|} + \ln(N e)

    with e the last row of I and N experts, where :math:`f_t` is the loss on the rescaled row
    :math:`z_t`, whose norm is at most 2. It does not cover `fit`, which goes through the rows several
    times.

    A whole number w as the weight of a row is the same as w copies of it, up to 100. What is learned
    does not depend on how rows are split into calls, nor on whether they are sparse; the result of
    `fit` does not depend on the order of the rows either.

    Several threads may predict or save at the same time, or one may learn; other calls raise a
    RuntimeError. Work per row and memory grow with experts x classes x features, with 3 experts for
    each of 5 to 10 lengths; beyond 256 features the work grows with the nonzero entries of a row.

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI. Hazan and Seshadhri (2009), Efficient learning algorithms for changing
    environments, ICML, for mixtures on intervals under exp-concave losses. Ross, Mineiro and
    Langford (2013), Normalized online learning, UAI.

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
        passes: int = 10,
        random_state: Any = None,
    ) -> None:
        self.radii, self.learner, self.fit_intercept = radii, learner, fit_intercept
        self.passes, self.random_state = passes, random_state

    @writes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> TraceNormClassifier:
        """Learn from scratch, going through the rows several times, in random order."""
        passes = checks.count(self.passes, "passes")
        generator = check_random_state(self.random_state)
        learner, rows, labels, parts = self._checked(X, y, sample_weight, first=True)
        order = fixed_order(rows, labels, parts)
        for _ in range(passes):
            own = order[generator.permutation(order.size)]
            learner.learn(rows.taken(own), labels[own], parts[own])
        self._learner = learner
        self.n_iter_ = passes
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
        if is_one_row(self, X):
            told = learner.predict_one(np.arange(X.shape[1]), X[0])
            if told.size:
                return told[None]
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
        """Rows learned, copies of weighted ones and passes counted."""
        return self._fitted().t

    @property
    @reads
    def coef_(self) -> Array:
        """The weighted mean of the experts in units of the features, shape (n_classes, n_features).

        With one row for two classes, as usual. An approximation: probabilities are averaged, not
        matrices, and very long rows are shortened.
        """
        return self._coefficients()[0]

    @property
    @reads
    def intercept_(self) -> Array:
        """The constant parts of the scores in the mean of the experts, shape (n_classes,)."""
        return self._coefficients()[1]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """The weights of the experts."""
        return self._fitted().experts.weights.copy()

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """The radius and the interval length of every expert."""
        return self._fitted().experts.names

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, without any code."""
        learner = self._fitted()
        if not isinstance(self.random_state, int | np.integer | None):
            raise TypeError("a classifier is saved with a random_state that is None or a number")
        settings = {
            **self.get_params(),
            "random_state": None if self.random_state is None else int(self.random_state),
            "labels": self.classes_.dtype.str,
            "passes_done": getattr(self, "n_iter_", None),
        }
        keys = {"classes": self.classes_, "names": getattr(self, "feature_names_in_", ())}
        write_model(path, type(self).__name__, settings, learner, keys)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TraceNormClassifier:
        """Return the classifier that `save` wrote; it resumes bit-identically."""
        options, learner, keys = read_model(path, cls.__name__, SAVED_OPTIONS, ("classes", "names"))
        if learner is None:
            raise ValueError(f"{path} holds no fitted classifier")
        kind, passes = options.pop("labels"), options.pop("passes_done", None)
        loaded, features = cls(**options), learner.map.features
        with refused("this archive holds classes that do not fit together"):
            dtype = np.dtype(kind)
            # At most 64 MB: a file of a few bytes can name a type of any width.
            small = dtype.itemsize * len(keys["classes"]) <= 1 << 26
            require(dtype.kind in "biufUSO" and small, "labels")
            classes = np.array(keys["classes"], dtype=dtype)
            require(classes.shape == (learner.experts.classes,), "classes")
            require(np.array_equal(np.unique(classes), classes), "classes")
        loaded.classes_, loaded.n_features_in_, loaded._learner = classes, features, learner
        if names := keys["names"]:
            texts = all(type(name) is str for name in names)
            require(texts and len(names) == features, "names of features")
            loaded.feature_names_in_ = np.array(names, dtype=object)
        if passes is not None:
            loaded.n_iter_ = passes
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
    ) -> tuple[ClassLearner, Rows, Indices, Array]:
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
            learner = ClassLearner(*options, *sizes) if first else self._learner
            return learner, as_rows(table).taken(order), numbers[order].astype(np.int64), parts
        except BaseException:
            self.__dict__ = before  # without what scikit-learn's checks have set
            raise

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        if not is_one_row(self, X) or type(y) is not np.ndarray or y.shape != (1,):
            return False
        if y.dtype.kind not in "iubU" or y.dtype.kind != self.classes_.dtype.kind:
            return False
        number = int(self.classes_.searchsorted(y)[0])
        if number == self.classes_.size or self.classes_[number] != y[0]:
            return False
        return self._learner.learn_one(np.arange(X.shape[1]), X[0], number)

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
