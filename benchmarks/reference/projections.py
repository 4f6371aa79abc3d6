"""Exact projections on three sets, as `project(x, y)` of the plain learners."""

from __future__ import annotations

import numpy as np


def on_simplex(y, radius=1.0):
    """The nearest point with no negative entry and that sum, by sorting."""
    falling = np.sort(y)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, y.size + 1)
    threshold = excess[np.count_nonzero(falling > excess) - 1]
    return np.maximum(y - threshold, 0.0)


def on_l1_ball(y, radius=1.0):
    """The nearest point whose absolute values sum to at most `radius`."""
    if np.abs(y).sum() <= radius:
        return y
    return np.sign(y) * on_simplex(np.abs(y), radius)


def on_trace_norm_ball(y, radius=1.0):
    """The nearest matrix whose singular values sum to at most `radius`."""
    U, s, Vt = np.linalg.svd(y, full_matrices=False)
    if s.sum() <= radius:
        return y
    return (U * on_simplex(s, radius)) @ Vt


def exactly(nearest, radius=1.0):
    """The `project(x, y)` that returns the nearest point for both."""

    def project(x, y):
        found = nearest(y, radius)
        return found, found

    return project
