"""Combining experts: every one counts with its weight, however small."""

import numpy as np
import pytest

from driftwolfe.ensemble.experts import combine, products, stack, weighted_sum
from driftwolfe.points import FactoredMatrix, ProductPoint

WEIGHTS = np.array([0.9, 0.1 - 2e-6, 0.0, 1e-6, 1e-6])


def points(kind, seed=0):
    rng = np.random.default_rng(seed)
    made = [(1e5 * rng.standard_normal((4, 2)), rng.standard_normal((3, 2))) for _ in WEIGHTS]
    if kind == "factored":
        return [FactoredMatrix(left, np.array([1.0, -2.0]), right) for left, right in made]
    return [ProductPoint([left, right]) for left, right in made]


def dense(point):
    if isinstance(point, ProductPoint):
        return np.concatenate([part.ravel() for part in point.parts])
    return point.toarray()


@pytest.mark.parametrize("kind", ["factored", "product"])
def test_weighted_sums_of_points_are_weighted_sums(kind):
    held = points(kind)
    plain = sum(w * dense(point) for w, point in zip(WEIGHTS.tolist(), held, strict=True))
    for found in (weighted_sum(WEIGHTS, held), combine(WEIGHTS, held)):
        np.testing.assert_allclose(dense(found), plain, rtol=1e-12, atol=1e-8)
    slope = points(kind, seed=1)[0]
    plain = [float(np.vdot(dense(slope), dense(point))) for point in held]
    np.testing.assert_allclose(products(slope, held), plain, rtol=1e-12)


def test_scores_that_stack_are_combined_as_arrays():
    rng = np.random.default_rng(2)
    scores = stack(list(rng.standard_normal((5, 3, 2))))
    plain = sum(w * score for w, score in zip(WEIGHTS.tolist(), scores, strict=True))
    np.testing.assert_allclose(combine(WEIGHTS, scores), plain, rtol=1e-13)
    slope = rng.standard_normal((3, 2))
    np.testing.assert_allclose(products(slope, scores), [np.vdot(slope, s) for s in scores])
