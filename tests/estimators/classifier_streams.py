"""Streams and states that the classifier's tests share."""

import numpy as np

from driftwolfe import streams
from driftwolfe.estimators import classifier_archive
from driftwolfe.estimators.classifier_experts import every
from driftwolfe.estimators.classifier_kernels import see
from driftwolfe.estimators.core.rows import as_rows
from driftwolfe.estimators.random_views import RandomViews


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


def mapped(feature_map, X, parts=()):
    """The places and entries of rows as a `FeatureMap` maps them; it counts those with weights `parts`."""
    rows, weights = as_rows(np.asarray(X, np.float64)), np.asarray(parts, np.float64)
    if not feature_map.full:
        return feature_map.rows(rows, weights)
    n, width = rows.number, feature_map.features
    z, none = np.empty((n, width + 1)), np.empty((0, 0))
    work = np.empty((n, width)), np.empty((2, width)), z, none, none, none.astype(np.int64), none
    assert see(*rows, weights, feature_map.parts, RandomViews().parts, *work)
    return every(width + 1), z


def seen_as(z):
    """Rows of a `ClassExperts` without waves and ferns that are z already."""
    z = np.ascontiguousarray(z, np.float64)
    none = np.zeros((1, 0), np.int64), np.zeros((0, 0))
    return (every(z.shape[1]), z), none, none


def state_of(learner):
    """The whole state of a `ClassLearner`, byte by byte."""
    numbers, arrays = classifier_archive.state_of(learner)
    return numbers, {
        name: (array.dtype.str, array.shape, array.tobytes()) for name, array in arrays.items()
    }


def shuttle_rows(**options):
    """Shuttle as rows and labels in the order of its stream."""
    stream = streams.shuttle(**options)
    features = np.vstack([loss.features for loss in stream])
    return features, np.concatenate([loss.labels for loss in stream])
