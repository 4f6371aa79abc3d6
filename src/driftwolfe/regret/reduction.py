"""Matrix problems that look at few rows and columns, as smaller ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.losses import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.regret.objective import Objective, Term

_ENTRY_LOSSES = (AbsoluteEntries, HuberEntries, SquaredEntries)
#: Share of the entries from which on a smaller problem is not worth the copying.
_WORTH = 0.7


class Reduction(NamedTuple):
    r"""The same problem on the rows and columns that its losses look at.

    Taking a submatrix does not raise the trace norm, nor does filling up with zeros, and neither
    changes the losses: both problems have the same minimum.
    """

    objective: Objective
    domain: TraceNormBall
    rows: Indices
    cols: Indices

    def restrict(self, x: Point) -> Array:
        """Return the looked-at part of a matrix, as an array."""
        if not isinstance(x, FactoredMatrix):
            part: Array = x[np.ix_(self.rows, self.cols)]
            return part
        part = (x.U[self.rows] * x.s) @ x.V[self.cols].T
        if x.sparse is not None:
            part += x.sparse[self.rows][:, self.cols].toarray()
        return part

    def embed(self, part: Array, like: Point) -> Point:
        """Return the matrix with that part and zeros elsewhere, of the same kind as `like`."""
        if not isinstance(like, FactoredMatrix):
            matrix = np.zeros(like.shape)
            matrix[np.ix_(self.rows, self.cols)] = part
            return matrix
        small = FactoredMatrix.from_dense(part)
        U, V = np.zeros((like.shape[0], small.rank)), np.zeros((like.shape[1], small.rank))
        U[self.rows], V[self.cols] = small.U, small.V
        return FactoredMatrix(U, small.s, V)


def reduce(objective: Objective, domain: Domain) -> Reduction | None:
    """Return the smaller problem, or None where there is none worth the trouble."""
    ball = domain.unwrapped
    losses = [term.loss for term in objective.terms]
    looks = [loss for loss in losses if isinstance(loss, EntryLoss) and type(loss) in _ENTRY_LOSSES]
    if not isinstance(ball, TraceNormBall) or len(looks) < len(losses):
        return None
    rows = np.unique(np.concatenate([loss.rows for loss in looks]))
    cols = np.unique(np.concatenate([loss.cols for loss in looks]))
    if rows.size * cols.size > _WORTH * math.prod(domain.shape):
        return None
    terms = [
        Term(term.weight, _renumbered(loss, rows, cols))
        for term, loss in zip(objective.terms, looks, strict=True)
    ]
    small = TraceNormBall((rows.size, cols.size), ball.scale, representation="dense")
    return Reduction(Objective(terms, objective.constant), small, rows, cols)


def _renumbered(loss: EntryLoss, rows: Indices, cols: Indices) -> EntryLoss:
    """The same loss with indices into these rows and columns."""
    places = np.searchsorted(rows, loss.rows), np.searchsorted(cols, loss.cols)
    if isinstance(loss, HuberEntries):
        return HuberEntries(*places, loss.targets, loss.width)
    return type(loss)(*places, loss.targets)
