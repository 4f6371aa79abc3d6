"""Matrix-vector products are counted where they are made."""

import threading

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.points import FactoredMatrix, devices
from driftwolfe.points.lanczos import ritz_space


class Watched:
    """A matrix that counts the columns of what it is multiplied with."""

    __array_ufunc__ = None

    def __init__(self, matrix):
        self.matrix, self.columns = matrix, 0

    def __matmul__(self, block):
        self.columns += block.shape[1]
        return self.matrix @ block

    def transpose_times(self, block):
        self.columns += block.shape[1]
        return self.matrix.T @ block

    def single(self):
        return self


@pytest.mark.parametrize("powers", [0, 1, 2])
def test_a_block_counts_column_by_column(powers):
    rng = np.random.default_rng(0)
    watched, before = Watched(rng.standard_normal((30, 20))), devices.counted_products()
    ritz_space(watched, rng.standard_normal((20, 6)), powers)
    assert devices.counted_products() - before == watched.columns == 12 * (powers + 1)


def test_a_linear_minimisation_counts_the_products_of_lanczos():
    direction = np.random.default_rng(0).standard_normal((80, 60))
    before = devices.counted_products()
    dw.TraceNormBall((80, 60)).lmo(direction)
    assert (
        devices.counted_products() - before
        == dw.points.lanczos.leading_triplet(direction).products
        > 0
    )


def test_a_decomposition_counts_its_columns_and_what_it_keeps():
    rng = np.random.default_rng(0)
    target = FactoredMatrix.from_dense(rng.standard_normal((210, 240)))
    ball = dw.TraceNormBall((210, 240), 30.0, representation="factored")
    dense = FactoredMatrix._all_stored(target.toarray())
    for y, columns in ((dense, 210), (target, 0)):
        before = devices.counted_products()
        rank = ball.project(y).rank
        assert 0 < rank < 210
        assert devices.counted_products() - before == (columns + rank if columns else target.rank)


def test_threads_count_for_themselves():
    before, found = devices.counted_products(), []

    def elsewhere():
        devices.count_products(7)
        found.append(devices.counted_products())

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [7]
    assert devices.counted_products() == before
