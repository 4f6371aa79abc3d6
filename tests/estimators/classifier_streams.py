"""Streams and states that the classifier's tests share."""

import numpy as np

from driftwolfe import state, streams
from driftwolfe.estimators import classifier_kernels
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.core.rows import SparseRows, as_rows


def turning(rows=300, features=4, classes=3, seed=0):
    """Rows whose labels follow a linear rule, which is turned round after half of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * rng.uniform(0.1, 10.0, features) + rng.normal(
        size=features
    )
    rule = rng.normal(size=(features, classes))
    scores = (X - X.mean(axis=0)) / X.std(axis=0) @ rule
    scores[rows // 2 :] *= -1.0
    return X, (scores + rng.gumbel(size=scores.shape) / 4.0).argmax(axis=1)


def experts_of(radii, classes, width, kind="linear", base=ClassLearner):
    """A `ClassLearner` of other radii whose rows are z already."""
    made = type("Own", (base,), {"RADII": radii})(classes, width - 1, kind)
    made.map.full = False
    return made


def mapped(feature_map, X, parts=()):
    """The entries of rows as a `FeatureMap` maps them, `SparseRows` if it has many features.

    It counts those with weights `parts`.
    """
    rows, weights = as_rows(np.asarray(X, np.float64)), np.asarray(parts, np.float64)
    if not feature_map.full:
        return feature_map.rows(rows, weights)
    learner, found = ClassLearner(1, feature_map.features, "linear"), []
    learner.map = feature_map
    for k in range(rows.number):
        found.append(seen(learner, rows.stretch(k, k + 1), weights[k : k + 1])[0])
    return np.array(found)


def seen(learner, row, weights):
    """What experts see of a row, which they learn if it has a weight: z, waves, ferns, and the leaves of these.

    A row with gaps has up to four leaves for each fern.
    """
    out, labels = np.zeros((1, learner.classes)), np.zeros(weights.size, np.int64)
    learner._follow(row, labels, weights, 0, out)
    _, at, work, *_ = learner._bound
    if not weights.size:  # what is not learned has working memory of its own
        classifier_kernels.follow(*row, labels, weights, 0, learner.t, at, out, work)
    random = learner.random
    width, waves, ferns = learner.width, random.offsets.size, len(random.tests)
    most = ferns * (classifier_kernels.MOST_WAYS if (row.places < -1).any() else 1)
    sizes = width, waves + 1 + width, most, most
    lines = work.reshape(classifier_kernels.WORK, -1)
    return [line[:size].copy() for line, size in zip(lines, sizes, strict=False)]


def seen_as(z):
    """Rows of `experts_of` that are z already."""
    z = np.ascontiguousarray(z, np.float64)
    number, width = z.shape
    return SparseRows(
        np.arange(number + 1) * width, np.tile(np.arange(width), number), z.ravel().copy()
    )


def state_of(learner):
    """The whole state of a `ClassLearner`, byte by byte."""
    numbers, arrays = state.state_of({"learner": learner})
    return numbers, {
        name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()
    }


def shuttle_rows(**options):
    """Shuttle as rows and labels in the order of its stream."""
    stream = streams.shuttle(**options)
    features = np.vstack([loss.features for loss in stream])
    return features, np.concatenate([loss.labels for loss in stream])
