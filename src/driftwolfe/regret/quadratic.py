"""Quadratic functions over a set with a cheap projection."""

from __future__ import annotations

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.points.kinds import Array

_SWEEPS = 1000
_SWEEPS_PER_CHECK = 10
#: Ratio of the two residuals beyond which the penalty is doubled or halved.
_IMBALANCE = 5.0


def minimise_quadratic(
    domain: Domain, gradient: Array, hessian: Array, x: Array, accuracy: float
) -> Array:
    r"""Return a point of the set near the minimum of :math:`\langle g, z - x\rangle + \frac12 (z-x)^\top H (z-x)`.

    The alternating direction method of multipliers: a linear system that is diagonal in the basis
    of H's eigenvectors, then a projection. The penalty follows the residuals, so that badly
    conditioned H, where projected gradient steps crawl, cost a few hundred projections.

    Parameters
    ----------
    domain
        The set.
    gradient, hessian
        g, of the points' shape, and H, positive semidefinite, for points flattened.
    x
        The point of the set that the quadratic is expanded at, and the start.
    accuracy
        Frank-Wolfe gap of the quadratic at which to stop.

    References
    ----------
    Boyd et al. (2011), Distributed optimization and statistical learning via the alternating
    direction method of multipliers, section 3.4.1.
    """
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    if values[-1] == 0.0:
        return np.asarray(domain.lmo_with_error(gradient)[0])
    penalty = np.sqrt(values[-1] * values.mean()) / 10
    linear = gradient.ravel() - hessian @ x.ravel()
    point, multiplier = x, np.zeros(x.shape)
    for sweep in range(1, _SWEEPS + 1):
        pulled = penalty * (point - multiplier).ravel() - linear
        free = (vectors @ ((vectors.T @ pulled) / (values + penalty))).reshape(x.shape)
        before, point = point, domain.project(free + multiplier)
        multiplier = multiplier + free - point
        if sweep % _SWEEPS_PER_CHECK == 0:
            slope = (linear + hessian @ point.ravel()).reshape(x.shape)
            vertex, _ = domain.lmo_with_error(slope)
            if np.vdot(slope, point - vertex) <= accuracy:
                break
            factor = _penalty_factor(free, point, before, multiplier)
            penalty *= factor
            multiplier = multiplier / factor
    return point


def _penalty_factor(free: Array, point: Array, before: Array, multiplier: Array) -> float:
    """2 where the copies disagree more than they still move, 1/2 the other way round."""
    apart = np.linalg.norm(free - point) * np.linalg.norm(multiplier)
    moving = np.linalg.norm(point - before) * np.linalg.norm(point)
    if apart > _IMBALANCE * moving:
        return 2.0
    return 0.5 if moving > _IMBALANCE * apart else 1.0
