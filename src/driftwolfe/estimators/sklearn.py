"""The estimators with the scikit-learn API."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from driftwolfe.estimators import classifier, regressor
from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.core.ids import Ids, check_labels, columns, several
from driftwolfe.estimators.core.models import SEED_OPTION, SavedModel, Watched
from driftwolfe.estimators.core.rows import LARGEST, as_one_row, as_rows, copies, sound
from driftwolfe.estimators.regressor import RegressionLearner
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes_or_undoes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Field, check_fields
from driftwolfe.storage import refused, require


class _RowEstimator(SavedModel, BaseEstimator):
    """What estimators that learn rows of features share."""

    _learner: Any
    _checked: Any  # returns the learner and what it learns
    _single = True  # whether there is one output, as a number

    @writes_or_undoes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, going through the rows once, in their order."""
        self._learn(X, y, sample_weight, True)
        return self

    def _alarm(self) -> DriftAlarm:
        return self._fitted().alarm

    @property
    def t_(self) -> int:
        """Rows learned, copies of weighted ones counted."""
        return self._fitted().t

    @property
    @reads
    def expert_weights_(self) -> Array:
        """The weights of the experts; of targets with several numbers, a row for each."""
        weights = self._fitted().expert_weights
        return weights if weights.ndim == 1 or not self._single else weights[0]

    @property
    @reads
    def expert_names_(self) -> list[str]:
        """What each expert is."""
        return self._fitted().names

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fitted(self) -> Any:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes longer, and says what to do
        return self._learner

    def _learn(self, X: Any, y: Any, sample_weight: Any, first: bool, *more: Any) -> None:
        """Check rows and what they are to teach, then let the learner, a new one the first time, learn them."""
        before = self.__dict__.copy()
        try:
            learner, *checked = self._checked(X, sound(y, "y"), sample_weight, first, *more)
            if first:
                learner.learn(*checked)
                self._learner = learner
        except BaseException:
            self.__dict__ = before  # without what scikit-learn's checks have set
            raise
        if not first:
            self._teach(learner, *checked)

    def _predict(self, X: Any) -> Array:
        """Return what is predicted for rows; one of the plainest kind needs no check."""
        learner, row = self._fitted(), as_one_row(self, X)
        if row is None or not (found := learner.predict(row)).size:
            found = learner.predict(as_rows(self._validated(X)))
        return found

    def _validated(self, X: Any, *y: Any, reset: bool = False, **more: Any) -> Any:
        """Return what scikit-learn's checks return for rows, and targets if given."""
        more |= {"accept_sparse": "csr", "dtype": np.float64}
        return validate_data(self, sound(X, "X"), *y, reset=reset, **more)

    @property
    def _names(self) -> Ids:
        return Ids(getattr(self, "feature_names_in_", ()))

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"random_state": self._fitted().seed}

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, names: Ids, *_: Ids) -> Self:
        cls.PARTS["learner"].check_options(settings, learner)
        loaded = cls(**{name: settings[name] for name in (*cls.OPTIONS, "random_state")})
        loaded._learner, loaded.n_features_in_ = learner, learner.map.features
        if names.names:
            texts = all(type(name) is str for name in names.names)
            require(texts and len(names) == loaded.n_features_in_, "names of features")
            loaded.feature_names_in_ = np.array(names.names, dtype=object)
        return loaded


class TraceNormClassifier(ClassifierMixin, _RowEstimator):
    r"""A classifier for streams that drift: linear and random features, several radii, nothing to tune.

    Features are rescaled online. Experts for all radii and for intervals of 16, 64, 256, ... rows descend on the
    logistic loss in trace-norm balls, and restart when their interval ends. There are four groups of them, called
    views: on the features; on the features, taking one label in ten for drawn at random; on waves, cosines of two
    or three features; and on ferns, the leaves of random trees. The last three views also have experts that are
    running means of the others. Class probabilities are averaged, weighted by the probabilities that experts gave
    to the labels so far: those of experts within each view, then those of the views.

    .. math:: p_t(c) = \sum_v u_{t,v} \sum_{i \in v} w_{t,i}\, p_{t,i}(c), \qquad
              p_{t,i} = \mathrm{softmax}(Y_{t,i} z_{t,v})

    A view with less than a thousandth of all weight rests for up to 7 of 8 blocks of 16 rows, so that
    a linear stream takes less time. Random features start with row 33, on the features known by then,
    if these, and the classes, are at most 256.

    Parameters
    ----------
    radii
        Bounds on the trace norms of the experts' matrices, in units of scores for a row of usual length:
        ``"auto"`` for 10, 40 and 160, or a number, or several. A small radius keeps probabilities soft.
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
    Rows are learned in their order, by `fit` too: it starts anew and goes through them once, as one call of
    `partial_fit` does. If rows are sorted, by label say, and the order means nothing, shuffle them first.

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

    Features are at most 1e100 in size; those below 1e-100 count as 0, of which a warning tells. A whole
    number w as the weight of a row is the same as w copies of it, up to 100. What is learned
    does not depend on how rows are split into calls, nor on whether they are sparse.

    Several threads may predict or save at the same time, or one may learn; other calls raise a RuntimeError. Work
    per row and memory grow with experts x classes x features, with 3 experts for each of 5 to 10 lengths and 8 in
    each further view, for 98 features more with waves; beyond 256 features the work grows with the nonzero
    entries of a row. Ferns take 128 entries per row and 4,096 rows of memory.

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

    OPTIONS = classifier.OPTIONS
    SETTINGS = OPTIONS | {"random_state": SEED_OPTION, "labels": Field(str)}
    PARTS: ClassVar[dict[str, Any]] = {"learner": ClassLearner, "names": Ids, "classes": Ids}

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

    @writes_or_undoes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn rows one by one, in their order; the first call names all classes that will ever come."""
        first = not self.__sklearn_is_fitted__()
        if classes is None and first:
            raise ValueError("classes must be passed on the first call to partial_fit")
        given = self._checked_classes(classes, first)
        if first or sample_weight is not None or not self._learn_one(X, y):
            self._learn(X, y, sample_weight, first, given)
        return self

    @reads
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, in the order of `classes_`."""
        return self._predict(X)

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
    def _classes(self) -> Ids:
        return Ids(self.classes_)

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"labels": self.classes_.dtype.str}

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, names: Ids, *keys: Ids) -> Self:
        loaded = super()._restored(settings, learner, names)
        with refused("this archive holds classes that do not fit together"):
            dtype, labels = np.dtype(settings["labels"]), keys[0].names
            # At most 64 MB: a file of a few bytes can name a type of any width.
            small = dtype.itemsize * len(labels) <= 1 << 26
            require(dtype.kind in "biufUSO" and small, "labels")
            classes = np.array(labels, dtype=dtype)
            require(classes.shape == (learner.experts.classes,), "classes")
            require(np.array_equal(np.unique(classes), classes), "classes")
        loaded.classes_ = classes
        return loaded

    def _checked_classes(self, classes: Any, first: bool) -> NDArray[Any]:
        """Return the classes, sorted, if they are those of the first call."""
        if classes is None:
            return self.classes_
        several(classes, "classes")
        checks.refuse_masked(classes, "classes")
        check_labels(classes, "a class")
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
    ) -> tuple[Any, ...]:
        """Return the learner, rows, numbers of labels and weights; set `classes_`."""
        check_labels(y, "a label")
        table, labels = self._validated(X, y, reset=first)
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
        sizes, drawn = (self.classes_.size, self.n_features_in_), (self.features, self.random_state)
        learner = ClassLearner(*options, *sizes, *drawn) if first else self._learner
        return learner, as_rows(table).taken(order), numbers[order].astype(np.int64), parts

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
        return self._teach(self._learner, row, number)

    def _coefficients(self) -> tuple[Array, Array]:
        weights, intercepts = self._fitted().coefficients()
        if self.classes_.size == 2:
            return weights[1:] - weights[:1], intercepts[1:] - intercepts[:1]
        return weights, intercepts


class TraceNormRegressor(RegressorMixin, _RowEstimator):
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
    thousandth of the targets' deviation: experts with long steps amplify rounding errors. Features and
    targets are at most 1e100 in size; features below 1e-100 count as 0, of which a warning tells.

    Work per row grows with the square of the features up to 256 (time to fit included), and beyond
    with the nonzero entries of a row: then only means and experts in balls are left.

    Several threads may predict or save at the same time, or one may learn; other calls raise a RuntimeError.

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

    OPTIONS = regressor.OPTIONS
    SETTINGS = OPTIONS | {"random_state": SEED_OPTION, "single": Field(bool)}
    PARTS: ClassVar[dict[str, Any]] = {"learner": RegressionLearner, "names": Ids}

    def __init__(
        self, radii: Any = "auto", *, random_features: int = 64, random_state: int = 0
    ) -> None:
        self.radii, self.random_features, self.random_state = radii, random_features, random_state

    @writes_or_undoes
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn rows one by one, in their order."""
        first = not self.__sklearn_is_fitted__()
        if first or sample_weight is not None or not self._learn_one(X, y):
            self._learn(X, y, sample_weight, first)
        return self

    @reads
    def predict(self, X: Any) -> Array:
        """Return the prediction for every row, of the shape that targets had."""
        predicted = self._predict(X)
        return predicted[:, 0] if self._single else predicted

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"single": self._single}

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, names: Ids, *_: Ids) -> Self:
        loaded = super()._restored(settings, learner, names)
        loaded._single = settings["single"]
        require(learner.outputs == 1 or not loaded._single, "outputs")
        return loaded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _checked(self, X: Any, y: Any, sample_weight: Any, first: bool) -> tuple[Any, ...]:
        """Return the learner, rows, targets as a table and weights, without rows of weight 0."""
        table, numbers = self._validated(X, y, reset=first, multi_output=True, y_numeric=True)
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
        order, parts = regressor.checked_weights(sample_weight, len(targets), "sample_weight")
        if first and not order.size:
            raise ValueError("sample_weight is zero for all rows: there is nothing to learn")
        options = self.radii, self.random_features, self.random_state
        sizes = self.n_features_in_, targets.shape[1]
        learner = RegressionLearner(*options, *sizes) if first else self._learner
        return learner, as_rows(table).taken(order), targets[order], parts

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        row = as_one_row(self, X)
        if row is None or type(y) is not np.ndarray or y.dtype != np.float64:
            return False
        shape = (1,) if self._single else (1, self._learner.outputs)
        if y.shape != shape or not y.flags.c_contiguous:
            return False
        return self._teach(self._learner, row, y.reshape(1, -1))


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
        if not hasattr(self, "completer_"):
            check_is_fitted(self)  # which takes longer, and says what to do
        return self.completer_.predict(X)

    def _alarm(self) -> DriftAlarm:
        check_is_fitted(self)
        return self.completer_.alarm_

    @reads_whole
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one file, as `MatrixCompleter.save` does."""
        check_is_fitted(self)
        self.completer_._write(path, type(self).__name__, wrapper={"passes": self.passes})

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

    def _new_completer(self) -> MatrixCompleter:
        options = self.get_params()
        del options["passes"]
        return MatrixCompleter(seed=options.pop("random_state"), **options)
