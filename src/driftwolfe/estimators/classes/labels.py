"""Labels as numbers, and weights of rows, for the scikit-learn face."""

# mypy: disable-error-code="import-untyped"
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from driftwolfe.estimators.classes.labelled import check_weights
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.storage.keys import check_keys

#: Bytes that the classes of a file may take.
LARGEST_CLASSES = 1 << 26


def check_labels(labels: Any, what: str) -> None:
    """Raise ValueError where one is NaN or holds NaN; NumPy would make text of it, beside others."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    if kind == "O" and isinstance(labels, Iterable):
        check_keys(list(labels), what)
    elif kind == "f":
        check_keys([float("nan")] if np.isnan(labels).any() else [], what)


def sorted_classes(classes: Any) -> NDArray[Any]:
    """Return the classes, sorted, each once.

    >>> sorted_classes(["b", "a", "b"])
    array(['a', 'b'], dtype='<U1')
    """
    checks.refuse_masked(classes, "classes")
    check_labels(classes, "a class")
    found: NDArray[Any] = np.unique(np.asarray(classes))
    if not found.size:
        raise ValueError("classes must name at least one class, got none")
    return found


def saved_classes(keys: list[Any], kind: Any) -> NDArray[Any]:
    """Return classes that a file holds, as an array of that kind; they are sorted, each once.

    >>> saved_classes(["a", "b"], "<U1")
    array(['a', 'b'], dtype='<U1')
    """
    try:
        dtype = np.dtype(kind) if isinstance(kind, str) else None
        fits = dtype is not None and dtype.kind in "biufUSO"
        # A file of a few bytes can name a type of any width.
        if dtype is not None and fits and dtype.itemsize * len(keys) <= LARGEST_CLASSES:
            classes = np.array(keys, dtype=dtype)
            if classes.ndim == 1 and np.array_equal(np.unique(classes), classes):
                return classes
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError("this archive holds classes that do not fit together")


def agreed_classes(classes: Any, known: NDArray[Any] | None) -> NDArray[Any]:
    """Return the classes: those of the first call of partial_fit, which later ones may repeat."""
    if classes is None:
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit")
        return known
    given = sorted_classes(classes)
    if known is not None and not np.array_equal(given, known):
        raise ValueError(
            f"classes must be those of the first call, {known.tolist()}, got {given.tolist()}"
        )
    return given


def class_numbers(y: NDArray[Any], classes: NDArray[Any]) -> Indices:
    """Return the place of every label among the sorted classes.

    >>> class_numbers(np.array([3, 1]), np.array([1, 3]))
    array([1, 0])
    """
    places = np.searchsorted(classes, y)
    known = classes[np.minimum(places, classes.size - 1)] == y
    if not np.all(known):
        strange = np.unique(y[~known]).tolist()
        raise ValueError(
            f"y holds labels {strange} that are not among the classes {classes.tolist()}; "
            "name all classes that will ever come in the first call of partial_fit"
        )
    return places.astype(np.int64)


def row_weights(sample_weight: Any, number: int) -> Array | None:
    """Return the weights of that many rows, None if all are 1.

    >>> row_weights([1, 2], 2), row_weights(0.5, 2)
    (array([1., 2.]), array([0.5, 0.5]))
    """
    if sample_weight is None:
        return None
    checks.refuse_masked(sample_weight, "sample_weight")
    if np.isscalar(sample_weight):
        sample_weight = np.full(number, sample_weight)
    weights: Array = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.shape != (number,):
        raise ValueError(
            f"sample_weight must hold one number for each of {number} rows, got {weights.shape}"
        )
    check_weights(weights)
    return weights
