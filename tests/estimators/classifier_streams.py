"""Streams and states that the classifier's tests share."""

import numpy as np

from driftwolfe import streams
from driftwolfe.estimators import classifier_archive


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
