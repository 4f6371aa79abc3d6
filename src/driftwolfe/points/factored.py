"""`FactoredMatrix`: a large matrix held as low rank plus sparse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, Shape
from driftwolfe.points.orthogonal import thin_svd_of_product

#: Below this ratio of squared norms a Gram-matrix norm has lost half its digits to cancellation.
_CANCELLED = 1e-5
#: Columns beyond the shorter side that a sum may have before it is recompressed.
_SPARE_COLUMNS = 16
#: Rows evaluated at a time when a cancelled norm is summed entry by entry: bounds the memory.
_CHUNK_ENTRIES = 1 << 20


class Truncation(NamedTuple):
    """A matrix of lower rank and the Frobenius norm of what was dropped."""

    matrix: FactoredMatrix
    error: float


class FactoredMatrix:
    r"""The m x n matrix :math:`U\,\mathrm{diag}(s)\,V^\top + S` with S sparse; never made dense.

    Immutable: arithmetic returns new matrices that share factors with the old ones, so treat the
    arrays as read-only. Factors need not be orthonormal, and adding appends them; `recompress`
    writes them anew, which happens by itself once there are more columns than the shorter side.

    Parameters
    ----------
    U, s, V
        Arrays of shapes (m, r), (r,), (n, r).
    sparse
        A scipy sparse matrix of shape (m, n), or None.

    Examples
    --------
    >>> import numpy as np
    >>> A = FactoredMatrix(np.ones((2, 1)), np.array([2.0]), np.ones((3, 1)))
    >>> B = A - FactoredMatrix.from_entries((2, 3), [0], [1], [5.0])
    >>> B.toarray()
    array([[ 2., -3.,  2.],
           [ 2.,  2.,  2.]])
    >>> B.entries([0, 1], [1, 2])
    array([-3.,  2.])
    >>> B @ np.ones(3), float(B.norm()), B.rank
    (array([1., 6.]), 5.385164807134505, 1)
    """

    __array_ufunc__ = None  # numpy leaves `array * matrix` and the like to this class
    __slots__ = ("U", "V", "_transposed", "s", "shape", "sparse")

    def __init__(self, U: Any, s: Any, V: Any, sparse: Any = None) -> None:
        self.U = np.ascontiguousarray(checks.finite_array(U, "U"))
        self.s = checks.finite_array(s, "s")
        self.V = np.ascontiguousarray(checks.finite_array(V, "V"))
        rank = self.s.size
        if self.U.ndim != 2 or self.V.ndim != 2 or self.s.ndim != 1:
            raise ValueError("U and V must have two axes and s one")
        if self.U.shape[1] != rank or self.V.shape[1] != rank:
            raise ValueError(
                f"U, s and V must agree on the rank, got shapes {self.U.shape}, {self.s.shape} "
                f"and {self.V.shape}"
            )
        self.shape: Shape = (self.U.shape[0], self.V.shape[0])
        self.sparse: Any = None if sparse is None else _canonical(sparse, self.shape)
        self._transposed: Any = None

    # -- making ------------------------------------------------------------------------------

    @classmethod
    def _of(cls, U: Array, s: Array, V: Array, sparse: Any) -> FactoredMatrix:
        """Wrap parts that are known to fit together."""
        matrix = object.__new__(cls)
        matrix.U, matrix.s, matrix.V, matrix.sparse = U, s, V, sparse
        matrix.shape = (U.shape[0], V.shape[0])
        matrix._transposed = None
        return matrix

    @classmethod
    def zeros(cls, shape: Any) -> FactoredMatrix:
        """The zero matrix, which stores nothing."""
        m, n = _matrix_shape(shape)
        return cls._of(np.empty((m, 0)), np.empty(0), np.empty((n, 0)), None)

    @classmethod
    def from_entries(cls, shape: Any, rows: Any, cols: Any, values: Any) -> FactoredMatrix:
        """The sparse matrix with the given entries; entries given twice add up."""
        m, n = _matrix_shape(shape)
        rows, cols = _indices(rows, cols, (m, n))
        data = checks.finite_array(values, "values", rows.shape)
        zero = cls.zeros((m, n))
        stored = sp.coo_array((data, (rows, cols)), shape=(m, n))
        return cls._of(zero.U, zero.s, zero.V, _canonical(stored, (m, n)))

    @classmethod
    def from_dense(cls, array: Any) -> FactoredMatrix:
        """A dense array as a low-rank one, by its singular value decomposition."""
        U, s, Vt = np.linalg.svd(checks.finite_array(array, "array"), full_matrices=False)
        return cls(U, s, Vt.T).truncate(error=0.0).matrix

    @classmethod
    def combination(cls, weights: Any, matrices: Sequence[FactoredMatrix]) -> FactoredMatrix:
        """The sum of weights[i] * matrices[i], factors side by side: one copy, nothing rewritten."""
        scaled = [float(w) * A for w, A in zip(weights, matrices, strict=True)]
        stored = [A.sparse for A in scaled if A.sparse is not None]
        return cls._of(
            np.concatenate([A.U for A in scaled], axis=1),
            np.concatenate([A.s for A in scaled]),
            np.concatenate([A.V for A in scaled], axis=1),
            _canonical(sum(stored[1:], stored[0]), scaled[0].shape) if stored else None,
        )

    # -- facts -------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Columns of the factors: a bound on the rank of the low-rank part."""
        return int(self.s.size)

    @property
    def nnz(self) -> int:
        """Stored entries of the sparse part."""
        return 0 if self.sparse is None else int(self.sparse.nnz)

    @property
    def nbytes(self) -> int:
        """Bytes held by the factors and the sparse part."""
        held = int(self.U.nbytes + self.s.nbytes + self.V.nbytes)
        if self.sparse is not None:
            parts = (self.sparse.data, self.sparse.indices, self.sparse.indptr)
            held += sum(int(part.nbytes) for part in parts)
        return held

    @property
    def low_rank(self) -> FactoredMatrix:
        """The low-rank part alone."""
        return FactoredMatrix._of(self.U, self.s, self.V, None)

    @property
    def T(self) -> FactoredMatrix:
        """The transpose."""
        flipped = None if self.sparse is None else _canonical(self.sparse.T, self.shape[::-1])
        return FactoredMatrix._of(self.V, self.s, self.U, flipped)

    def copy(self) -> FactoredMatrix:
        """A copy that shares no array with this one."""
        stored = None if self.sparse is None else self.sparse.copy()
        return FactoredMatrix._of(self.U.copy(), self.s.copy(), self.V.copy(), stored)

    def toarray(self) -> Array:
        """The dense m x n array: asked for, never done silently."""
        dense: Array = (self.U * self.s) @ self.V.T
        return dense if self.sparse is None else dense + self.sparse.toarray()

    def entries(self, rows: Any, cols: Any) -> Array:
        """The entries at pairs (rows[k], cols[k])."""
        rows, cols = _indices(rows, cols, self.shape)
        return self._entries(rows, cols)

    def _entries(self, rows: Indices, cols: Indices) -> Array:
        from driftwolfe.points import kernels  # numba, loaded on first use

        values: Array = kernels.low_rank_entries(self.U, self.s, self.V, rows, cols)
        S = self.sparse
        if S is not None:
            kernels.add_sparse_entries(S.indptr, S.indices, S.data, rows, cols, values)
        return values

    # -- arithmetic --------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            self._same_shape(other)
            return self.toarray() + other
        if not isinstance(other, FactoredMatrix):
            return NotImplemented
        self._same_shape(other)
        if self.sparse is None or other.sparse is None:
            stored = other.sparse if self.sparse is None else self.sparse
        else:
            stored = _canonical(self.sparse + other.sparse, self.shape)
        if other.rank == 0 or self.rank == 0:
            kept = self if other.rank == 0 else other
            return FactoredMatrix._of(kept.U, kept.s, kept.V, stored)
        total = FactoredMatrix._of(
            np.concatenate((self.U, other.U), axis=1),
            np.concatenate((self.s, other.s)),
            np.concatenate((self.V, other.V), axis=1),
            stored,
        )
        # More columns than the shorter side are redundant: long sums stay bounded.
        return total if total.rank <= min(self.shape) + _SPARE_COLUMNS else total.recompress()

    __radd__ = __add__

    def __neg__(self) -> FactoredMatrix:
        return self * -1.0

    def __sub__(self, other: Any) -> Any:
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, scalar: Any) -> FactoredMatrix:
        if not np.isscalar(scalar):
            return NotImplemented
        factor = float(scalar)  # type: ignore[arg-type]
        stored = None if self.sparse is None else self.sparse * factor
        return FactoredMatrix._of(self.U, self.s * factor, self.V, stored)

    __rmul__ = __mul__

    def __truediv__(self, scalar: Any) -> FactoredMatrix:
        return self * (1.0 / scalar)

    def __matmul__(self, block: Any) -> Array:
        """Multiply a vector or block of vectors from the left: :math:`A Q`."""
        product: Array = self.U @ _scale_rows(self.s, self.V.T @ block)
        return product if self.sparse is None else product + self.sparse @ block

    def __rmatmul__(self, block: Any) -> Array:
        return self.transpose_times(np.asarray(block).T).T

    def transpose_times(self, block: Array) -> Array:
        r"""Return :math:`A^\top Q` for a vector or block of vectors, without transposing A."""
        product: Array = self.V @ _scale_rows(self.s, self.U.T @ block)
        if self.sparse is None:
            return product
        if self._transposed is None:  # a view, but scipy takes as long to make it as to multiply
            self._transposed = self.sparse.T
        return product + self._transposed @ block

    # -- measuring ---------------------------------------------------------------------------

    def inner(self, other: Any) -> float:
        r"""Return :math:`\langle A, B\rangle` with another factored matrix or a dense array."""
        self._same_shape(other)
        if isinstance(other, np.ndarray):
            total = float(np.einsum("ir,ir,r->", self.U, other @ self.V, self.s))
            return (
                total if self.sparse is None else total + float(self.sparse.multiply(other).sum())
            )
        total = float(self.s @ ((self.U.T @ other.U) * (self.V.T @ other.V)) @ other.s)
        total += self._stored_inner(other.low_rank) + other._stored_inner(self.low_rank)
        if self.sparse is not None and other.sparse is not None:
            total += float(self.sparse.multiply(other.sparse).sum())
        return total

    def norm(self) -> float:
        """Return the Frobenius norm, to full precision even where the parts cancel."""
        largest = self._largest_part()
        if largest == 0.0:
            return 0.0
        unit = self / largest  # squares neither overflow nor underflow
        low_rank = unit._low_rank_norm()
        stored = 0.0 if unit.sparse is None else float(np.linalg.norm(unit.sparse.data))
        scale = low_rank**2 + stored**2
        squared = scale + (2.0 * unit._stored_inner(unit.low_rank) if stored else 0.0)
        if squared < _CANCELLED * scale:
            return largest * unit._norm_by_rows()
        return largest * math.sqrt(squared)

    def nuclear_norm(self) -> float:
        """Return the sum of singular values; the matrix must have no sparse part."""
        if self.nnz:
            raise ValueError(
                "nuclear_norm needs all singular values, which a sparse part makes expensive; "
                "use driftwolfe.points.leading_triplets, or toarray() where that fits"
            )
        return float(self.recompress().s.sum())

    def _largest_part(self) -> float:
        parts = [np.abs(self.s).max(initial=0.0)]
        if self.rank:
            parts[0] *= np.abs(self.U).max() * np.abs(self.V).max()
        if self.nnz:
            parts.append(np.abs(self.sparse.data).max())
        return float(max(parts))

    def _low_rank_norm(self) -> float:
        gram = (self.U.T @ self.U) * (self.V.T @ self.V)
        squared = float(self.s @ gram @ self.s)
        if squared < _CANCELLED * float(self.s**2 @ np.diag(gram)):
            return float(np.linalg.norm(self.low_rank.recompress().s))
        return math.sqrt(squared)

    def _norm_by_rows(self) -> float:
        step = max(1, _CHUNK_ENTRIES // self.shape[1])
        rows = range(0, self.shape[0], step)
        return math.hypot(*(np.linalg.norm(self._rows(i, i + step)) for i in rows))

    def _rows(self, start: int, stop: int) -> Array:
        dense: Array = (self.U[start:stop] * self.s) @ self.V.T
        return dense if self.sparse is None else dense + self.sparse[start:stop].toarray()

    def _stored_inner(self, low_rank: FactoredMatrix) -> float:
        """The inner product of this sparse part with a matrix that has none."""
        if self.nnz == 0 or low_rank.rank == 0:
            return 0.0
        rows, cols = self.sparse.tocoo().coords
        return float(self.sparse.data @ low_rank._entries(rows, cols))

    # -- compressing -------------------------------------------------------------------------

    def recompress(self) -> FactoredMatrix:
        """The same matrix with orthonormal factors and falling s >= 0, zeros dropped.

        The low-rank part is rewritten as its singular value decomposition, in
        O((m + n) rank^2); the sparse part is left alone.
        """
        return self.truncate(error=0.0).matrix

    def truncate(self, rank: int | None = None, error: float | None = None) -> Truncation:
        """The low-rank part with its smallest singular values dropped, and what that costs.

        Keeps at most `rank` singular values, and drops as many as an `error` (Frobenius norm)
        allows. Dropping never raises the nuclear norm, so a feasible point stays feasible.
        """
        allowed = 0.0 if error is None else checks.nonnegative(error, "error")
        U, s, V = thin_svd_of_product(self.U, self.s, self.V)
        noise = s[:1].sum() * s.size * np.finfo(float).eps
        tails = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1]  # tails[k]: norm of s[k:]
        keep = int(np.count_nonzero((tails > allowed) & (s > noise)))
        if rank is not None:
            keep = min(keep, checks.count(rank, "rank", least=0))
        dropped = float(tails[keep]) if keep < s.size else 0.0
        parts = (np.ascontiguousarray(U[:, :keep]), s[:keep], np.ascontiguousarray(V[:, :keep]))
        return Truncation(FactoredMatrix._of(*parts, self.sparse), dropped)

    # -- for people --------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"FactoredMatrix(shape={self.shape}, rank={self.rank}, stored={self.nnz})"

    def _same_shape(self, other: Any) -> None:
        if np.shape(other) != self.shape and getattr(other, "shape", None) != self.shape:
            raise ValueError(f"shapes differ: {self.shape} and {getattr(other, 'shape', other)}")


def _scale_rows(s: Array, block: Array) -> Array:
    return s * block if block.ndim == 1 else s[:, None] * block


def _canonical(sparse: Any, shape: Shape) -> Any:
    """A csr_array of float64 with sorted, unique indices."""
    if not sp.issparse(sparse):
        raise TypeError(
            f"sparse must be a scipy sparse matrix or None, got {type(sparse).__name__}"
        )
    if sparse.shape != shape:
        raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
    stored = sp.csr_array(sparse, dtype=np.float64)
    stored.sum_duplicates()
    if not np.isfinite(stored.data).all():
        raise ValueError("sparse has entries that are not finite")
    return stored


def _matrix_shape(shape: Any) -> tuple[int, int]:
    sizes = checks.shape(shape)
    if len(sizes) != 2:
        raise ValueError(f"a matrix has two sizes, got shape {sizes}")
    return sizes[0], sizes[1]


def _indices(rows: Any, cols: Any, shape: Shape) -> tuple[Indices, Indices]:
    """Index arrays of one length, in range; negative indices do not wrap around."""
    pair = []
    for name, given, size in (("rows", rows, shape[0]), ("cols", cols, shape[1])):
        index = np.asarray(given)
        if index.ndim != 1 or not (np.issubdtype(index.dtype, np.integer) or index.size == 0):
            raise ValueError(f"{name} must be a one-dimensional array of whole numbers")
        if index.size and not (index.min() >= 0 and index.max() < size):
            bad = index.min() if index.min() < 0 else index.max()
            raise ValueError(f"{name} must lie in 0..{size - 1}, got {bad}")
        pair.append(index.astype(np.int64, copy=False))
    if pair[0].size != pair[1].size:
        raise ValueError(
            f"rows and cols must have one length, got {pair[0].size} and {pair[1].size}"
        )
    return pair[0], pair[1]
