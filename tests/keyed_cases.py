"""Keyed streams for tests, and the models that a dict of them would have."""

from functools import partial

import numpy as np

from driftwolfe.estimators import RiverTraceNormClassifier

#: A small classifier.
factory = partial(RiverTraceNormClassifier, features="linear")


def events(count, keys=40, seed=0):
    """Events (key, x, y): some keys often, texts and numbers that look alike."""
    rng = np.random.default_rng(seed)
    numbers = (keys * rng.random(count) ** 3).astype(int).tolist()
    rows = rng.normal(size=(count, 3)).tolist()
    names = [number if number % 2 else str(number - 1) for number in numbers]  # 1 and "1", ...
    return [
        (name, dict(zip("abc", row, strict=True)), f"class {number % 3 if row[0] > 0 else 3}")
        for name, number, row in zip(names, numbers, rows, strict=True)
    ]


def learned(stream, prior=None):
    """The models by key after a stream, as bytes, and that of the prior."""
    models = {}
    for key, x, y in stream:
        if key not in models:
            models[key] = factory() if prior is None else type(prior).from_bytes(prior.to_bytes())
        if prior is not None:
            prior.learn_one(x, y)
        models[key].learn_one(x, y)
    return {key: model.to_bytes() for key, model in models.items()}


def contents(models):
    """The models by key of a `Keyed`, as bytes."""
    return {key: models[key].to_bytes() for key in models.keys()}  # noqa: SIM118
