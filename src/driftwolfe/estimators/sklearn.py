"""The estimators with the scikit-learn API."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import scipy
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from driftwolfe.estimators.alarm import DriftAlarm
from driftwolfe.estimators.classifier import ClassLearner, ClassModel, check_number
from driftwolfe.estimators.core.columns import Columns, Table, in_range, table_or_numbers
from driftwolfe.estimators.core.ids import Ids, check_labels, is_frame, several
from driftwolfe.estimators.core.models import ONE, SEED_OPTION, RowModel
from driftwolfe.estimators.core.rows import LARGEST, as_one_row, as_rows, sound
from driftwolfe.estimators.regressor import OPTION, RegressionLearner, checked
from driftwolfe.points import checks
from driftwolfe.points.access import reads, writes_or_undoes
from driftwolfe.points.kinds import Array
from driftwolfe.state import Field
from driftwolfe.storage import refused, require

#: An option of both, and what else their files have.
SEED = {"random_state": SEED_OPTION}
SHARED = {"width": Field(int, least=0), "plain": Field(bool)}


class _RowEstimator(RowModel, BaseEstimator):
    """What estimators that learn rows of features share."""

    _single = True  # whether there is one output, as a number
    _said: frozenset[Any] = frozenset()  # columns of which a warning told
    _told = False  # whether all classes that may come were named
    OWN: ClassVar[tuple[str, ...]]  # attributes, after a "_", that files have among settings
    TARGETS: ClassVar[dict[str, Any]] = {}  # options of checks

    @writes_or_undoes
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from scratch, going through the rows once, in their order."""
        self._learn(X, y, sample_weight, True)
        return self

    def _alarm(self) -> DriftAlarm:
        return self._fitted().alarm

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

    @property
    @reads
    def inner_names_(self) -> list[Any]:
        """The features that experts see: columns of numbers, categories, and gaps once there were some."""
        self._fitted()
        return self._columns.labels

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_learner")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = tags.input_tags
        given.sparse = given.allow_nan = given.string = given.categorical = True
        tags.target_tags.multi_output = "multi_output" in self.TARGETS
        return tags

    def _fitted(self) -> Any:
        if not hasattr(self, "_learner"):
            check_is_fitted(self)  # which takes longer, and says what to do
        return self._learner

    def _learn(self, X: Any, y: Any, sample_weight: Any, first: bool, *more: Any) -> None:
        """Check rows and what they are to teach, then let the learner, a new one the first time, learn them."""
        before = self.__dict__.copy()
        try:
            rows, targets = self._validated(X, sound(y, "y"), reset=first)
            learner, order, *taught = self._taught(targets, sample_weight, first, *more)
            if first and not (self._told or order.size):
                raise ValueError("sample_weight is zero for all rows: there is nothing to learn")
            given = rows.taken(order), *taught
            if first:
                self._learner = learner
                self._learn_pieces(*given)
        except BaseException:
            self.__dict__ = before  # without what scikit-learn's checks have set
            raise
        if not first:
            self._learn_more(*given)

    def _predict(self, X: Any) -> Array:
        """Return what is predicted for rows; one of the plainest kind needs no check."""
        learner, row = self._fitted(), as_one_row(self, X)
        if row is None or not (found := learner.predict(row)).size:
            (rows,) = self._validated(X)
            found = learner.predict(self._columns.rows(rows) if isinstance(rows, Table) else rows)
        return found

    def _validated(self, X: Any, *y: Any, reset: bool = False) -> tuple[Any, ...]:
        """Return rows, as a table unless they are mere numbers, and targets if given, by scikit-learn's checks."""
        given, targets = table_or_numbers(sound(X, "X")), self.TARGETS if y else {}
        options = {"dtype": np.float64, "ensure_all_finite": "allow-nan", **targets}
        if not isinstance(given, Table):
            found = validate_data(self, given, *y, reset=reset, accept_sparse="csr", **options)
            X, *taught = found if y else (found,)
            sparse, names = scipy.sparse.issparse(X), self._places
            if reset:
                self._start((), self.n_features_in_)
            if self._columns.plain and not np.isnan(X.data if sparse else X).any():
                return as_rows(X), *taught
            numbers = X.toarray() if sparse else X
            return Table(names, in_range(numbers, names), [True] * len(names), {}), *taught
        if is_frame(X):
            table = self._by_name(given, reset, bool(y))
        else:
            validate_data(self, given.numbers, reset=reset, skip_check_array=True)
            table = given._replace(names=self._places)
        found = (check_X_y if y else check_array)(table.numbers, *y, **options)
        if reset and (hasattr(self, "feature_names_in_") or table.categories):
            self._start(itertools.compress(table.names, table.is_numeric), 0)
        elif reset:
            self._start((), self.n_features_in_)
        return table, *(found[1:] if y else ())

    @property
    def _places(self) -> list[Any]:
        """The names of columns that come without any."""
        return [*getattr(self, "feature_names_in_", range(self.n_features_in_))]

    def _start(self, names: Iterable[Any], plain: int) -> None:
        self._columns = Columns(names)
        self._columns.plain = plain

    def _by_name(self, table: Table, reset: bool, learning: bool) -> Table:
        """Return a frame with the columns that are known, by name or, where these are no texts, by place."""
        names = table.names
        if len(kinds := {type(name) is str for name in names}) > 1:
            raise TypeError("names of features must all be texts, or none of them")
        if reset:
            self.n_features_in_ = len(names)
            self.__dict__.pop("feature_names_in_", None)
            if kinds == {True}:
                self.feature_names_in_ = np.array(names, dtype=object)
        if kinds != {True} or not hasattr(self, "feature_names_in_"):
            validate_data(self, table.numbers, reset=False, skip_check_array=True)
            return table._replace(names=self._places)
        known, given = self._places, set(names)
        gone = [name for name in known if name not in given]
        new = [name for name in names if name not in {*known}]
        if len(gone) == len(known):
            raise ValueError(f"X has none of the columns that were learned: {known!r:.200}")
        self._say(gone, "do not come: they count as missing")
        joins = "they are learned from now on" if learning else "they do not count"
        self._say(new, f"are new: {joins}")
        if learning and new:
            self.feature_names_in_ = np.array([*known, *new], dtype=object)
            self.n_features_in_ = len(known) + len(new)
        return table.with_gaps(gone)

    def _say(self, names: list[str], what: str) -> None:
        """Warn of columns, once of each."""
        if unsaid := [name for name in names if (name, what) not in self._said]:
            self._said |= {(name, what) for name in unsaid}
            warnings.warn(f"columns {unsaid!r:.200} {what}", UserWarning, stacklevel=6)

    @property
    def _names(self) -> Ids:
        return Ids(getattr(self, "feature_names_in_", ()))

    @_names.setter
    def _names(self, names: Ids) -> None:
        if names.names:
            self.feature_names_in_ = np.array(names.names, dtype=object)

    def _settings(self) -> dict[str, Any]:
        found = {name: getattr(self, f"_{name}") for name in self.OWN}
        found |= {"random_state": self._fitted().seed, "width": self.n_features_in_}
        return super()._settings() | found | {"plain": bool(self._columns.plain)}

    @classmethod
    def _restored(
        cls, settings: dict[str, Any], learner: Any, names: Ids, columns: Columns, *classes: Ids
    ) -> Self:
        model = super()._restored(settings, learner, names, columns, *classes)
        model.n_features_in_ = width = settings["width"]
        columns.plain = width if settings["plain"] else 0
        require(columns.size == learner.map.features, "columns")
        texts = all(type(name) is str for name in names.names)
        require(texts and len(names) in (0, width), "names of features")
        for name in cls.OWN:
            setattr(model, f"_{name}", settings[name])
        return model


class TraceNormClassifier(ClassifierMixin, ClassModel, _RowEstimator):
    r"""A classifier for streams that drift: linear and random features, several radii, nothing to tune.

    Features are rescaled online. Experts for the radii 10, 40 and 160 and for intervals of 16, 64, 256, ... rows
    descend on the logistic loss in trace-norm balls, and restart when their interval ends. There are four groups of
    them, called views: on the features; on the features, taking one label in ten for drawn at random; on waves,
    cosines of two or three features; and on ferns, the leaves of random trees; the last three with running means of
    the others. Class probabilities are averaged, weighted by the probabilities that experts gave to the labels so
    far: those of experts within each view, then those of the views.

    .. math:: p_t(c) = \sum_v u_{t,v} \sum_{i \in v} w_{t,i}\, p_{t,i}(c), \qquad
              p_{t,i} = \mathrm{softmax}(Y_{t,i} z_{t,v})

    A view with less than a thousandth of all weight rests for up to 7 of 8 blocks of 16 rows. Random features
    start with row 33, on the features known by then, if these, and the classes, are at most 256.

    Parameters
    ----------
    features
        ``"random"`` for all views, ``"linear"`` for the first alone, two to four times as fast.
    random_state
        Seed of the random features, a whole number; None is 0.
    class_weight
        ``"balanced"`` weighs rows by the inverse frequency of their class so far: those of the rarest by 1,
        of others less. A dict gives a weight for each label, 1 if it has none.

    Attributes
    ----------
    classes_
        The labels, sorted.
    n_features_in_, feature_names_in_
        Number and, if the input had some, names of columns.

    Notes
    -----
    What is missing (NaN, None), texts, categories and frames: see docs/howto/rows.md. Rows are learned in their
    order, by `fit` too, which starts anew: if they are sorted, by label say, and it means nothing, shuffle first.

    On every interval I of the cover (so, with logarithmically many terms, on every interval), for every radius
    rho, the log loss of the rows as they came is at most

    .. math:: \min_{\lVert Z\rVert_* \le \rho} \sum_{t \in I} f_t(Z)
              + 1.3 \cdot 4\sqrt2\, \rho \sqrt{|I|} + \ln(4 N e^2)

    with e the last row of I and N linear experts, where :math:`f_t` is the loss on the rescaled row
    :math:`z_t`, whose norm is at most 2. Against the mixture of any other view, on rows on which it does not rest,
    the excess is at most :math:`\ln(4 e)`. While they do not rest, experts on waves and ferns have the first two
    terms too, against matrices for their own features and intervals of 256, 2,048 and 16,384 rows; those that
    doubt labels descend on a loss that is not convex, and have none, nor have means.

    Features are at most 1e100 in size; those below 1e-100 count as 0, of which a warning tells. A row of weight w,
    a whole number up to 100, is the same as w copies of it. How rows are split into calls, and whether they are
    sparse, makes no difference.

    Several threads may predict or save at the same time, or one may learn; other calls raise a RuntimeError. Work
    per row and memory grow with experts (15 to 30, and 8 in each further view) x classes x features (beyond 256,
    the nonzero ones); waves add 98 features, ferns 128 entries of 4,096.

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive regret
    guarantees, AAAI. Hazan and Seshadhri (2009), Efficient learning algorithms for changing environments, ICML.
    Ross, Mineiro and Langford (2013), Normalized online learning, UAI. Rahimi and Recht (2007), Random features
    for large-scale kernel machines, NeurIPS. Ozuysal et al. (2010), Fast keypoint recognition using random ferns,
    TPAMI. Freund et al. (1997), Using and combining predictors that specialize, STOC.

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

    OPTIONS = ClassModel.OPTIONS | SEED
    SETTINGS = OPTIONS | SHARED | {"labels": Field(str), "told": Field(bool)}
    OWN = ("told",)
    PARTS: ClassVar[dict[str, Any]] = {
        "learner": ClassLearner,
        "names": Ids,
        "columns": Columns,
        "classes": Ids,
    }
    _order: Any = None  # of the learner's classes, where `classes_` has another

    def __init__(
        self, *, features: str = "random", random_state: Any = 0, class_weight: str | None = None
    ) -> None:
        self.features, self.random_state, self.class_weight = features, random_state, class_weight

    @writes_or_undoes
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn rows one by one, in their order.

        A new class joins with its first row, unless the first call names all that may ever come.
        """
        first = not self.__sklearn_is_fitted__()
        given = None if classes is None else self._checked_classes(classes, first)
        if first or sample_weight is not None or not self._learn_one(X, y):
            self._learn(X, y, sample_weight, first, given, first and classes is None)
        return self

    @reads
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, in the order of `classes_`."""
        found = self._predict(X)
        return found if self._order is None else found[:, self._order]

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
        """The weighted mean of the linear experts in units of the features, a row for each class, one for two.

        Predictions differ: probabilities are averaged, not matrices, and other experts may have weight.
        """
        return self._coefficients()[0]

    @property
    @reads
    def intercept_(self) -> Array:
        """The constant parts of the scores in the mean of the linear experts, shape (n_classes,)."""
        return self._coefficients()[1]

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {"labels": self.classes_.dtype.str}

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, *parts: Any) -> Self:
        model = super()._restored(settings, learner, *parts)
        with refused("this archive holds classes that do not fit together"):
            dtype, labels = np.dtype(settings["labels"]), model._classes.names
            # At most 64 MB: a file of a few bytes can name a type of any width.
            small = dtype.itemsize * len(labels) <= 1 << 26
            require(dtype.kind in "biufUSO" and small, "labels")
            classes = np.array(labels, dtype=dtype)
            model.classes_ = np.unique(classes)
            require(classes.shape == model.classes_.shape == (learner.sizes[0],), "classes")
            model._sort()
        return model

    def _learn(self, X: Any, y: Any, *given: Any) -> None:
        check_labels(y, "a label")
        super()._learn(X, y, *given)
        self._sort()

    def _sort(self) -> None:
        """Find the order of `classes_` among those of the learner."""
        order = self._classes.find(self.classes_.tolist())
        require(bool((order >= 0).all()), "classes")
        self._order = None if (order == np.arange(order.size)).all() else order

    def _checked_classes(self, classes: Any, first: bool) -> NDArray[Any]:
        """Return the classes, sorted, if they are those of the first call."""
        several(classes, "classes")
        checks.refuse_masked(classes, "classes")
        check_labels(classes, "a class")
        given = np.unique(np.asarray(classes))
        if not given.size:
            raise ValueError("classes must name at least one class, got none")
        if not first and not np.array_equal(given, self.classes_):
            known, named = self.classes_.tolist(), given.tolist()
            raise ValueError(f"classes must be those of the first call, {known}, got {named}")
        return given

    def _taught(
        self, labels: Any, sample_weight: Any, first: bool, classes: Any = None, new: bool = False
    ) -> tuple[Any, ...]:
        """Classes given at first are all that may come; with `new`, the first ones join one by one."""
        check_classification_targets(labels)
        if first:
            self._classes, self._told = Ids(), classes is not None
            self.classes_ = np.unique(labels) if classes is None else classes
            self._classes.add(() if new else self.classes_.tolist())
        keys = labels.tolist()
        numbers, unknown = self._classes.number(keys)
        if unknown and self._told:
            raise ValueError(
                f"y holds labels {sorted(unknown)} that are not among the classes {self.classes_.tolist()}; "
                "name all classes that will ever come in the first call of partial_fit, or none there"
            )
        if unknown and not first:
            kinds = {self.classes_.dtype.kind, labels.dtype.kind}
            if len(kinds) > 1 and not kinds <= {*"biuf"}:
                known = self.classes_.tolist()
                raise ValueError(f"labels must be like those so far, {known!r:.200}")
            self.classes_ = np.unique(np.concatenate((self.classes_, labels)))
        check_number(self.classes_.size)
        sizes = max(1, len(self._classes)), self._columns.size
        learner = self._new_learner(self.random_state, *sizes) if first else self._learner
        order, *more = self._weighed(learner, keys, numbers, sample_weight, "sample_weight")
        taught = [keys[k] for k in order.tolist()] if unknown else numbers[order]
        return learner, order, taught, *more

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        row = as_one_row(self, X)
        if row is None or type(y) is not np.ndarray or y.shape != (1,) or self.class_weight:
            return False
        if y.dtype.kind not in "iubU" or y.dtype.kind != self.classes_.dtype.kind:
            return False
        number = self.classes_.searchsorted(y)
        if number[0] == self.classes_.size or self.classes_[number[0]] != y[0]:
            return False
        number = number if self._order is None else self._order[number]
        return self._teach(self._learner, row, number, ONE)

    def _coefficients(self) -> list[Array]:
        order = slice(None) if self._order is None else self._order
        found = [each[order] for each in self._fitted().coefficients()]
        return [each[1:] - each[:1] if self.classes_.size == 2 else each for each in found]


class TraceNormRegressor(RegressorMixin, _RowEstimator):
    r"""Regression for streams that drift, with one or several outputs and nothing to tune.

    Features and targets are rescaled online. Several experts predict: the last target; means, ridge regressions
    and ridge regressions of changes (of the target from the row before, by those of the features) over the last 8,
    32, 128, 512 rows and over all; ridge regressions with random features; and gradient descent on Huber's loss in
    trace-norm balls of radii 4 and 32, in units of the targets' deviation. Their predictions are averaged, weighted
    by their losses so far, for every output apart.

    Parameters
    ----------
    random_features
        Number of cosines of one to three features each, for what is not linear; 0 for none.
    random_state
        Seed of these.

    Attributes
    ----------
    n_features_in_, feature_names_in_
        Number and, if the input had some, names of columns.

    Notes
    -----
    What is missing (NaN, None), texts, categories and frames: see docs/howto/rows.md. Rows are learned in their
    order, by `fit` too, which starts anew; how they are split into calls makes no difference. `predict` takes
    every row for the next one: the last target and row are those learned last.

    For one output let :math:`\hat y_t` be the prediction for row t as it was learned, :math:`f_t` Huber's loss in
    units of 1.33 times the running mean of errors (at least a quarter of the present one), N the number of
    experts, and :math:`\Delta_t` the range of their losses. For any sequence of experts :math:`e_t` with S
    switches, from the second row on and for rows of weight 1,

    .. math:: \sum_t f_t(\hat y_t) - f_t(\hat y_{t, e_t}) \le
              \frac{(S + 1) \ln (N T)}{0.8} + 0.1 \sum_t \Delta_t^2

    by fixed share with share 1/(t + 1) (Herbster and Warmuth 1998) and Hoeffding's lemma. On every interval I of
    64 to 262,144 rows one of the experts in a ball of radius :math:`\rho` has regret at most
    :math:`7.3\, \rho \sqrt{m |I|}` against any matrix in it, for m outputs and the losses, in units of the
    targets' deviation, that it descends on, before predictions are clipped to the range of targets and a quarter
    more. The other experts have no guarantee.

    Rescaling features, or rescaling and shifting targets, does the same to predictions, up to about a thousandth
    of the targets' deviation. Features and targets are at most 1e100 in size; features below 1e-100 count as 0, of
    which a warning tells.

    Work per row grows with the square of the features up to 256; beyond, with the nonzero entries, and only means
    and experts in balls are left. Threads may predict or save at the same time, as for `TraceNormClassifier`.

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

    OPTIONS = SEED | {"random_features": OPTION}
    SETTINGS = OPTIONS | SHARED | {"single": Field(bool)}
    OWN = ("single",)
    PARTS: ClassVar[dict[str, Any]] = {
        "learner": RegressionLearner,
        "names": Ids,
        "columns": Columns,
    }
    TARGETS: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    def __init__(self, *, random_features: int = 64, random_state: int = 0) -> None:
        self.random_features, self.random_state = random_features, random_state

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

    @classmethod
    def _restored(cls, settings: dict[str, Any], learner: Any, *parts: Any) -> Self:
        require(learner.outputs == 1 or not settings["single"], "outputs")
        require(learner.random == settings["random_features"], "options")
        return super()._restored(settings, learner, *parts)

    def _taught(self, given: Any, sample_weight: Any, first: bool) -> tuple[Any, ...]:
        targets = np.array(given, dtype=np.float64)
        if first:
            self._single = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        given = self.random_state, self._columns.size, targets.shape[1], self.random_features
        learner = RegressionLearner(*given) if first else self._learner
        if (known := learner.outputs) != (given := targets.shape[1]):
            raise ValueError(f"y must have {known} outputs, as before, got {given}")
        return learner, *checked(targets, sample_weight, "sample_weight")

    def _learn_one(self, X: Any, y: Any) -> bool:
        """Learn one row of the plainest kind, for speed; return False, and do nothing, for all others."""
        row = as_one_row(self, X)
        if row is None or type(y) is not np.ndarray or y.dtype != np.float64:
            return False
        shape = (1,) if self._single else (1, self._learner.outputs)
        if y.shape != shape or not y.flags.c_contiguous:
            return False
        sound = all(abs(each) <= LARGEST for each in y.ravel().tolist())
        return sound and self._teach(self._learner, row, y.reshape(1, -1), ONE)
