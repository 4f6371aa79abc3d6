"""Low-rank parts with their smallest singular values dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.orthogonal import thin_svd_of_product

if TYPE_CHECKING:
    from driftwolfe.points.factored import FactoredMatrix


class Truncation(NamedTuple):
    """What `FactoredMatrix.truncate` returns.

    Attributes
    ----------
    matrix
        The matrix of lower rank.
    error
        The Frobenius norm of what was dropped.

    Examples
    --------
    >>> from driftwolfe.points import FactoredMatrix
    >>> A = FactoredMatrix.from_dense(np.diag([3.0, 1.0]))
    >>> A.truncate(rank=1)
    Truncation(matrix=FactoredMatrix(shape=(2, 2), rank=1, stored=0), error=1.0)
    """

    matrix: FactoredMatrix
    error: float


def truncation(matrix: FactoredMatrix, rank: int | None, error: float | None) -> Truncation:
    """Do `FactoredMatrix.truncate`."""
    allowed = 0.0 if error is None else checks.nonnegative(error, "error")
    U, s, V = matrix.U, matrix.s, matrix.V
    if not matrix.orthonormal or (np.diff(s, append=0.0) > 0).any():
        U, s, V = thin_svd_of_product(U, s, V)
    noise = s[:1].sum() * s.size * np.finfo(float).eps
    tails = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1]  # tails[k]: norm of s[k:]
    keep = int(np.count_nonzero((tails > allowed) & (s > noise)))
    if rank is not None:
        keep = min(keep, checks.count(rank, "rank", least=0))
    dropped = float(tails[keep]) if keep < s.size else 0.0
    by_rows = matrix.device.by_rows
    parts = by_rows(U[:, :keep]), s[:keep], by_rows(V[:, :keep])
    return Truncation(type(matrix)._of(*parts, matrix.sparse, orthonormal=True), dropped)
