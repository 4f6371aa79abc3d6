"""`Pair`: what is carried along is what the points say, after any mixture of steps and pulls."""

import numpy as np
import pytest

from driftwolfe.oracles.frank_wolfe import Pair
from driftwolfe.points import FactoredMatrix, ProductPoint

SHAPE = (6, 5)


def dense(point):
    if isinstance(point, ProductPoint):
        return np.concatenate([dense(part).ravel() for part in point.parts])
    return point.toarray() if isinstance(point, FactoredMatrix) else point.copy()


def random_point(kind, rng, rank=2):
    left, right = (rng.standard_normal((size, rank)) for size in SHAPE)
    if kind == "factored":
        return FactoredMatrix(left, np.ones(rank), right)
    return left @ right.T if kind == "dense" else ProductPoint([left @ right.T, left[:, 0]])


@pytest.mark.parametrize("kind", ["dense", "factored", "product"])
@pytest.mark.parametrize("seed", range(3))
def test_distances_and_gaps_are_those_of_the_points(kind, seed):
    rng = np.random.default_rng(seed)
    pair = Pair(random_point(kind, rng), random_point(kind, rng))
    for turn in range(12):
        x, y = dense(pair.x), dense(pair.y)
        assert pair.squared == pytest.approx(np.sum((x - y) ** 2), rel=1e-9)
        vertex = random_point(kind, rng, rank=1)
        v = dense(vertex)
        gap = np.vdot(x - y, x - v)
        assert pair.gap_at(vertex) == pytest.approx(gap, rel=1e-9, abs=1e-9)
        moved = pair.step()
        assert moved == (gap > 0)
        share = min(1.0, gap / np.sum((v - x) ** 2)) if moved else 0.0
        np.testing.assert_allclose(dense(pair.x), x + share * (v - x), atol=1e-9)
        if turn % 3 == 2:
            before = dense(pair.x), dense(pair.y)
            between = dense(pair.y + 0.3 * pair.direction())
            np.testing.assert_allclose(between, 0.7 * before[1] + 0.3 * before[0], atol=1e-9)
            pair.pull(0.2)
            np.testing.assert_allclose(dense(pair.y), 0.8 * before[1] + 0.2 * before[0], atol=1e-9)
