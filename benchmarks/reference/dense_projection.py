"""The paper's infeasible projection on a trace-norm ball, dense arrays and `svds`.

Algorithms 3 and 4 of Garber and Kretzu (2022), as the paper uses them, with the corrections that
its proof needs: the distance is tested before the oracle is called, and the first y is scaled by
its own norm.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import svds


class Oracle:
    """Linear minimisation over the ball of that trace norm, with a limit on the calls.

    `tol` is that of `svds`; its default 0 is machine precision.
    """

    def __init__(self, radius, most_calls=200, tol=0):
        self.radius = radius
        self.most_calls = most_calls
        self.tol = tol
        self.calls = 0

    @property
    def spent(self):
        """Whether no call is left in this projection."""
        return self.calls >= self.most_calls

    def __call__(self, direction):
        self.calls += 1
        u, _, vt = svds(direction, k=1, tol=self.tol)
        return -self.radius * u @ vt


def approximate_projection(x, y, eps, oracle):
    """Algorithm 3: Frank-Wolfe from x towards y, until it is near or its gap is at most eps."""
    gap = np.inf
    while squared(x - y) > 3 * eps and not oracle.spent:
        v = oracle(x - y)
        gap = np.vdot(x - y, x - v)
        if gap <= eps:
            break
        x = x + min(1.0, gap / squared(v - x)) * (v - x)
    return x, gap


def infeasible_projection(x, y, eps, oracle):
    """Algorithm 4: pull y towards the approximate projection until they are near.

    Where the calls end first, y moves all the way to x if the last gap is at most half of their
    squared distance: no point of the ball is then farther from it than before.
    """
    oracle.calls = 0
    first = squared(x - y)
    y = y / max(1.0, np.linalg.norm(y) / oracle.radius)
    while squared(x - y) > 3 * eps:
        x, gap = approximate_projection(x, y, eps, oracle)
        if oracle.spent:
            return x, x if gap <= squared(x - y) / 2 else y
        if squared(x - y) > 3 * eps:
            y = y - 2 * eps / first * (y - x)
    return x, y


def squared(a):
    """The squared Euclidean norm."""
    return np.vdot(a, a)
