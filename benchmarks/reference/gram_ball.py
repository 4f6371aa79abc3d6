"""The trace-norm ball with the plain exact projection that Ader is timed with."""

from __future__ import annotations

import numpy as np

import driftwolfe as dw
from benchmarks.reference.projections import on_simplex


class GramBall(dw.TraceNormBall):
    """Projects by eigendecomposition of the smaller Gram matrix, whatever the point looks like."""

    def _project(self, y):
        dense = y.toarray()
        wide = dense if dense.shape[0] <= dense.shape[1] else dense.T
        squares, U = np.linalg.eigh(wide @ wide.T)
        s = np.sqrt(np.maximum(squares, 0.0))
        if s.sum() <= self.scale:
            return y.copy()
        kept = on_simplex(s, self.scale)
        held = kept > 0
        U, V = U[:, held], wide.T @ U[:, held] / s[held]
        U, V = (U, V) if wide is dense else (V, U)
        return dw.FactoredMatrix(U, kept[held], V)
