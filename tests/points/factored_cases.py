"""Factored matrices to test with, and what is expected of them."""

import numpy as np

from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import device_named, device_of, to_host

RELATIVE = 1e-10


def parts(shape=(9, 7), rank=3, stored=12, seed=0, scale=1.0):
    """A matrix on the host, with entries stored twice, and the same as a dense array."""
    rng = np.random.default_rng(seed)
    m, n = shape
    U, s, V = (rng.standard_normal(size) for size in ((m, rank), rank, (n, rank)))
    rows, cols = rng.integers(0, m, stored), rng.integers(0, n, stored)
    values = scale * rng.standard_normal(stored)
    dense = (U * (scale * s)) @ V.T
    np.add.at(dense, (rows, cols), values)
    matrix = FactoredMatrix(U, scale * s, V)
    if stored:
        matrix = matrix + FactoredMatrix.from_entries(shape, rows, cols, values)
    return matrix, dense


def close(actual, expected, scale=1.0):
    actual = to_host(actual.toarray() if isinstance(actual, FactoredMatrix) else actual)
    assert np.shape(actual) == np.shape(expected)
    # Numbers below 1e-308 have fewer digits.
    assert np.abs(actual - expected).max(initial=0.0) <= RELATIVE * scale + 1e-322


def lives_on(matrix, place):
    """Whether every large part of a matrix is a tensor there."""
    stored = () if matrix.sparse is None else matrix.stored_arrays
    large = (matrix.U, matrix.V, *stored)
    return (
        matrix.device is device_named(place)
        and isinstance(matrix.s, np.ndarray)
        and all(device_of(part) is device_named(place) for part in large)
    )
