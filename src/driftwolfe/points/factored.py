"""`FactoredMatrix`: a low-rank matrix plus a sparse one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from functools import reduce
from typing import Any, Self

import numpy as np

from driftwolfe.points import checks, devices
from driftwolfe.points.devices import HOST, Device, device_named, device_of, is_array, to_host
from driftwolfe.points.kinds import Array, Indices, Shape

#: Below this ratio of squared norms a Gram-matrix norm has lost half its digits to cancellation.
_CANCELLED = 1e-5
#: Entries evaluated at a time when a cancelled norm is summed by rows.
_CHUNK_ENTRIES = 1 << 20
#: Columns beyond the shorter side that a sum may have before it is recompressed.
_SPARE_COLUMNS = 16


class FactoredMatrix:
    r"""The m x n matrix :math:`U\,\mathrm{diag}(s)\,V^\top + S` with S sparse; never made dense.

    Arithmetic returns new matrices that share arrays with the old ones: treat these as read-only. Sums
    append factors, and are recompressed once they have more columns than the shorter side.

    Parameters
    ----------
    U, s, V
        Arrays of shapes (m, r), (r,), (n, r). All but s, which stays on the host, live where U does.
    sparse
        A scipy sparse matrix of shape (m, n), or None.

    Attributes
    ----------
    device
        Where it lives.
    orthonormal
        Whether U and V are known to have orthonormal columns, which makes norms cheap.
    slope
        Of an LMO's vertex: its inner product with the direction, where that is known; else None.

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
    >>> B @ np.ones(3), round(B.norm(), 6), B.rank
    (array([1., 6.]), 5.385165, 1)
    """

    __array_ufunc__ = None  # numpy leaves `array * matrix` and the like to this class
    __slots__ = (
        *("U", "V", "_scale", "_transposed", "device", "orthonormal", "s", "shape", "slope"),
        "sparse",
    )

    def __init__(self, U: Any, s: Any, V: Any, sparse: Any = None) -> None:
        device = device_of(U)
        U, s, V = device.finite(U, "U"), HOST.finite(s, "s"), device.finite(V, "V")
        if U.ndim != 2 or V.ndim != 2 or s.ndim != 1:
            raise ValueError("U and V must have two axes and s one")
        if not U.shape[1] == V.shape[1] == s.size:
            raise ValueError(
                f"U, s and V must agree on the rank, got shapes {tuple(U.shape)}, {s.shape} and "
                f"{tuple(V.shape)}"
            )
        if sparse is not None:
            # A copy: entries are sorted and added up in place, and must stay what they were checked for.
            own = deepcopy(checks.sound_sparse(sparse, "sparse"))
            sparse = device.canonical(own, (U.shape[0], V.shape[0]))
        self._fill(U, s, V, sparse)

    def _fill(self, U: Any, s: Array, V: Any, sparse: Any, orthonormal: bool = False) -> None:
        self.device: Device = device_of(U)
        self.U, self.s, self.V, self.sparse = U, s, V, sparse
        self.shape: Shape = (U.shape[0], V.shape[0])
        self.orthonormal = orthonormal or not s.size
        self._transposed: Any = None
        self.slope: float | None = None
        self._scale: Any = None

    @classmethod
    def _of(cls, U: Any, s: Array, V: Any, sparse: Any, orthonormal: bool = False) -> Self:
        """Wrap parts that are known to fit together."""
        matrix = object.__new__(cls)
        matrix._fill(U, s, V, sparse, orthonormal)
        return matrix

    @classmethod
    def from_orthonormal(cls, U: Any, s: Array, V: Any, sparse: Any = None) -> FactoredMatrix:
        """Wrap parts that the caller knows to fit, U and V to be orthonormal; nothing is checked."""
        by_rows = device_of(U).by_rows
        return cls._of(by_rows(U), s, by_rows(V), sparse, orthonormal=True)

    @classmethod
    def zeros(cls, shape: Any, device: str | None = None) -> FactoredMatrix:
        """The zero matrix of that shape, which stores nothing; on the host, or another `device`."""
        return cls._only(None, checks.matrix_shape(shape), device_named(device))

    @classmethod
    def _only(cls, stored: Any, shape: Shape, device: Device) -> FactoredMatrix:
        U, V = (device.zeros((size, 0)) for size in shape)
        return cls._of(U, np.empty(0), V, stored)

    @classmethod
    def from_entries(cls, shape: Any, rows: Any, cols: Any, values: Any) -> FactoredMatrix:
        """The sparse matrix of values[k] at (rows[k], cols[k]), on their device; repeated pairs add up."""
        m, n = checks.matrix_shape(shape)
        device = device_of(values)
        rows, cols = checks.entry_indices(to_host(rows), to_host(cols), (m, n))
        data = device.finite(values, "values", rows.shape)
        return cls._stored((m, n), device.put(rows), device.put(cols), data)

    @classmethod
    def _stored(cls, shape: Shape, rows: Any, cols: Any, values: Any) -> FactoredMatrix:
        """The sparse matrix of entries that are known to fit."""
        device = device_of(values)
        return cls._only(device.stored(rows, cols, values, shape), shape, device)

    @classmethod
    def _stored_of_each(
        cls, shape: Shape, entries: Sequence[Any], factors: Sequence[float]
    ) -> list[FactoredMatrix]:
        """Sparse matrices on a device, times factors, of entries in parts that are known to fit."""
        device: Any = device_of(entries[0][2][0])
        stored = device.stored_of_each(entries, factors, shape)
        return [cls._only(each, shape, device) for each in stored]

    @classmethod
    def _all_stored(cls, array: Array) -> FactoredMatrix:
        """An array as a matrix that stores every entry: nothing is decomposed."""
        device = device_of(array)
        return cls._only(device.all_stored(array), tuple(array.shape), device)

    @classmethod
    def from_dense(cls, array: Any) -> FactoredMatrix:
        """A dense array as a low-rank one, by its singular value decomposition."""
        device = device_of(array)
        U, s, Vt = devices.svd(HOST.finite(array, "array"))
        return cls(device.put(U), s, device.put(Vt.T)).truncate(0.0)[0]

    @classmethod
    def combination(cls, weights: Any, matrices: Sequence[FactoredMatrix]) -> FactoredMatrix:
        """The sum of weights[i] * matrices[i], factors side by side: one copy, nothing rewritten."""
        device = next((A.device for A in matrices if A.device is not HOST), HOST)
        scaled = [float(w) * A.to(device.name) for w, A in zip(weights, matrices, strict=True)]
        stored = [A.sparse for A in scaled if A.sparse is not None]
        return cls._side_by_side(scaled, reduce(device.added, stored) if stored else None)

    @classmethod
    def _side_by_side(cls, matrices: Sequence[FactoredMatrix], stored: Any) -> FactoredMatrix:
        concat = matrices[0].device.xp.concat
        U, V = concat([A.U for A in matrices], axis=1), concat([A.V for A in matrices], axis=1)
        return cls._of(U, np.concat([A.s for A in matrices]), V, stored)

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
        stored = () if self.sparse is None else self.stored_arrays
        return sum(int(part.nbytes) for part in (self.U, self.s, self.V, *stored))

    @property
    def low_rank(self) -> FactoredMatrix:
        """The low-rank part alone."""
        return FactoredMatrix._of(self.U, self.s, self.V, None, self.orthonormal)

    @property
    def T(self) -> FactoredMatrix:
        """The transpose."""
        S, shape = self.sparse, self.shape[::-1]
        flipped = None if S is None else self.device.canonical(S.T, shape)
        return FactoredMatrix._of(self.V, self.s, self.U, flipped, self.orthonormal)

    @property
    def scale(self) -> Any:
        """s, where the factors are."""
        if self._scale is None:
            self._scale = self.device.put(self.s)
        return self._scale

    def to(self, device: str | None) -> FactoredMatrix:
        """The same matrix on another device, such as ``"cuda"`` or ``"cpu"``; itself where it is there."""
        there = device_named(device)
        if there is self.device:
            return self
        stored = None if self.sparse is None else there.canonical(self.sparse, self.shape)
        U, V = there.put(self.U), there.put(self.V)
        return FactoredMatrix._of(U, self.s, V, stored, self.orthonormal)

    @property
    def stored_arrays(self) -> tuple[Indices, Indices, Array]:
        """The sparse part by rows: `indptr`, `indices`, `data`."""
        stored = devices.empty_stored(self.shape) if self.sparse is None else self.sparse
        return devices.parts(stored)

    def copy(self) -> FactoredMatrix:
        """A copy that shares no array with this one."""
        stored = None if self.sparse is None else self.sparse.copy()
        U, V = (self.device.xp.asarray(part, copy=True) for part in (self.U, self.V))
        return FactoredMatrix._of(U, self.s.copy(), V, stored, self.orthonormal)

    def single(self) -> FactoredMatrix:
        """A multiple of this matrix in single precision, for rough products."""
        unit, single = self / (self.largest_part() or 1.0), self.device.single
        stored = unit.sparse
        if stored is not None:
            stored = self.device.with_data(stored, single(stored.data))
        return FactoredMatrix._of(single(unit.U), HOST.single(unit.s), single(unit.V), stored)

    def toarray(self) -> Array:
        """The dense m x n array: asked for, never done silently."""
        dense: Array = (self.U * self.scale) @ self.V.T
        return dense if self.sparse is None else dense + self.sparse.toarray()

    def entries(self, rows: Any, cols: Any) -> Array:
        """The entries at pairs (rows[k], cols[k])."""
        rows, cols = checks.entry_indices(to_host(rows), to_host(cols), self.shape)
        return self.entries_at(self.device.put(rows), self.device.put(cols))

    def entries_at(self, rows: Any, cols: Any) -> Array:
        """The entries at pairs that are known to fit, and to be where the matrix is."""
        values: Array = self.device.entries(self.U, self.scale, self.V, rows, cols)
        if self.sparse is not None:
            values += self.device.stored_at(self.sparse, rows * self.shape[1] + cols)
        return values

    @classmethod
    def entries_of_each(cls, matrices: Sequence[FactoredMatrix], rows: Any, cols: Any) -> Any:
        """The entries of several matrices, a row for each, at pairs as in `entries_at`."""
        both, ends = cls._side_by_side(matrices, None), np.cumsum([A.rank for A in matrices])
        whose = np.zeros((both.rank, len(matrices)))
        for column, A, end in zip(whose.T, matrices, ends, strict=True):
            column[end - A.rank : end] = A.s
        values = both.device.entries(both.U, both.device.put(whose), both.V, rows, cols).T
        for value, A in zip(values, matrices, strict=True):
            if A.sparse is not None:
                value += A.device.stored_at(A.sparse, rows * A.shape[1] + cols)
        return values

    def __add__(self, other: Any) -> Any:
        if is_array(other):
            self._same_shape(other)
            return self.toarray() + self.device.put(other)
        if not isinstance(other, FactoredMatrix):
            return NotImplemented
        self._same_shape(other)
        if self.device is not other.device:  # what is on the host moves
            return other + self if self.device is HOST else self + other.to(self.device.name)
        held = [each.sparse for each in (self, other) if each.sparse is not None]
        stored = reduce(self.device.added, held) if held else None
        if other.rank == 0 or self.rank == 0:
            kept = self if other.rank == 0 else other
            return FactoredMatrix._of(kept.U, kept.s, kept.V, stored, kept.orthonormal)
        if self.U is other.U and self.V is other.V:  # a step away from a point and back
            s = self.s + other.s
            if not s.any():  # nothing is left
                return FactoredMatrix._of(self.U[:, :0], s[:0], self.V[:, :0], stored)
            return FactoredMatrix._of(self.U, s, self.V, stored, self.orthonormal)
        total = FactoredMatrix._side_by_side((self, other), stored)
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
        stored = None if self.sparse is None else self.device.scaled(self.sparse, factor)
        return FactoredMatrix._of(self.U, self.s * factor, self.V, stored, self.orthonormal)

    __rmul__ = __mul__

    def __truediv__(self, scalar: Any) -> FactoredMatrix:
        return self * (1.0 / scalar)

    def __matmul__(self, block: Any) -> Array:
        """Multiply a vector or block of vectors from the left: :math:`A Q`."""
        return self.times(self.here(block))

    def times(self, block: Any) -> Array:
        """Return :math:`A Q` for a block that is known to fit, and to be where the matrix is."""
        inside = _scale_rows(self.scale, self.V.T @ block)
        if self.sparse is None:
            return self.U @ inside
        return self.device.plus_product(self.sparse @ block, self.U, inside)

    def __rmatmul__(self, block: Any) -> Array:
        block = self.here(block)
        return self.transpose_times(block) if block.ndim == 1 else self.transpose_times(block.T).T

    def transpose_times(self, block: Array) -> Array:
        r"""Return :math:`A^\top Q` for a vector or block of vectors, without transposing A."""
        block = self.here(block)
        inside = _scale_rows(self.scale, self.U.T @ block)
        if self.sparse is None:
            return self.V @ inside
        if self._transposed is None:  # a view, but scipy takes as long to make it as to multiply
            self._transposed = self.sparse.T
        return self.device.plus_product(self._transposed @ block, self.V, inside)

    def inner(self, other: Any) -> float:
        r"""Return :math:`\langle A, B\rangle` with another factored matrix or a dense array."""
        self._same_shape(other)
        if is_array(other):
            dense = self.here(other)
            total = float(self.device.host(((dense @ self.V) * self.U).sum(axis=0)) @ self.s)
            if self.sparse is not None:
                total += float(self.to("cpu").sparse.multiply(to_host(dense)).sum())
            return total
        if self.device is not other.device:
            one, two = (other, self) if self.device is HOST else (self, other)
            return one.inner(two.to(one.device.name))
        products = self.device.host((self.U.T @ other.U) * (self.V.T @ other.V))
        total = float(self.s @ products @ other.s)
        total += self.stored_inner(other) + other.stored_inner(self)
        if self.sparse is not None and other.sparse is not None:
            total += self.device.stored_product(self.sparse, other.sparse)
        return total

    def norm(self) -> float:
        """Return the Frobenius norm, to full precision even where the parts cancel."""
        largest = self.largest_part()
        if largest == 0.0:
            return 0.0
        if not 1e-100 < largest < 1e100:  # squares would soon over- or underflow
            factor = min(1.0 / largest, 1e300)
            rescaled = factor * self
            # Factors near the end of the range cannot be rescaled, and none is far from the norm.
            fits = 1e-100 < rescaled.largest_part() < 1e100
            return rescaled.norm() / factor if fits else largest
        stored = self.device.measures(self.sparse)[1] if self.nnz else 0.0
        scale = self._low_rank_norm() ** 2 + stored**2
        squared = scale + (2.0 * self.stored_inner(self) if stored else 0.0)
        return self._norm_by_rows() if squared < _CANCELLED * scale else math.sqrt(squared)

    def largest_part(self) -> float:
        """Return the size of the numbers: the largest of s, times the factors', or of the entries."""
        largest = float(np.abs(self.s).max(initial=0.0))
        if not self.orthonormal:
            largest *= self.device.largest(self.U) * self.device.largest(self.V)
        return max(largest, self.device.measures(self.sparse)[0]) if self.nnz else largest

    def _low_rank_norm(self) -> float:
        if self.orthonormal:
            return float(np.linalg.norm(self.s))
        gram = self.device.host((self.U.T @ self.U) * (self.V.T @ self.V))
        squared = float(self.s @ gram @ self.s)
        if squared < _CANCELLED * float(self.s**2 @ np.diag(gram)):
            return float(np.linalg.norm(self.low_rank.recompress().s))
        return math.sqrt(squared)

    def _norm_by_rows(self) -> float:
        (m, n), (indptr, _, data) = self.shape, self.stored_arrays
        keys = self.device.keys(self.sparse)
        step, norms = max(1, _CHUNK_ENTRIES // n), []
        for start in range(0, m, step):
            rows = (self.U[start : start + step] * self.scale) @ self.V.T
            here = slice(int(indptr[start]), int(indptr[min(start + step, m)]))
            rows.reshape(-1)[keys[here] - start * n] += data[here]
            norms.append(float(self.device.xp.linalg.vector_norm(rows)))
        return math.hypot(*norms)

    def nuclear_norm(self) -> float:
        """Return the sum of singular values; the matrix must have no sparse part."""
        if self.nnz:
            raise ValueError(
                "nuclear_norm needs all singular values, and a matrix with a sparse part has many; "
                "use leading_triplet, or toarray() if that fits"
            )
        return float(np.abs(self.s).sum() if self.orthonormal else self.recompress().s.sum())

    def nuclear_norm_bound(self) -> float:
        """Return a quick upper bound on the sum of singular values, of the sparse part too."""
        sizes = np.abs(self.s)
        if not self.orthonormal:
            lengths = self.device.lengths
            sizes = sizes * self.device.host(lengths(self.U) * lengths(self.V))
        stored = self.device.measures(self.sparse)[1] if self.nnz else 0.0
        return float(sizes.sum()) + math.sqrt(min(*self.shape, self.nnz)) * stored

    def stored_inner(self, other: FactoredMatrix) -> float:
        """The inner product of this sparse part with the low-rank part of another matrix."""
        if self.nnz == 0 or other.rank == 0:
            return 0.0
        return self.device.stored_inner(self.sparse, other.U, other.scale, other.V)

    def recompress(self) -> FactoredMatrix:
        """The low-rank part by singular vectors and falling values s > 0, in O((m + n) rank^2)."""
        return self.truncate(0.0)[0]

    def truncate(self, error: float) -> tuple[FactoredMatrix, float]:
        """Drop as many of the low-rank part's singular values as an error allows; return that made too.

        This never raises the nuclear norm, so a feasible point stays feasible.
        """
        allowed = checks.nonnegative(error, "error")
        U, s, V = self.U, self.s, self.V
        if not self.orthonormal or (np.diff(s, append=0.0) > 0).any():
            U, s, V = devices.thin_svd_of_product(U, s, V)
        noise = s[:1].sum() * s.size * np.finfo(float).eps
        tails = np.sqrt(np.cumsum(s[::-1] ** 2))[::-1]  # tails[k]: norm of s[k:]
        keep = int(np.count_nonzero((tails > allowed) & (s > noise)))
        dropped = float(tails[keep]) if keep < s.size else 0.0
        kept = FactoredMatrix.from_orthonormal(U[:, :keep], s[:keep], V[:, :keep], self.sparse)
        return kept, dropped

    def __repr__(self) -> str:
        return f"FactoredMatrix(shape={self.shape}, rank={self.rank}, stored={self.nnz})"

    def here(self, block: Any) -> Any:
        """An array to multiply with, where the factors are; a device does not mix precisions."""
        sparse = hasattr(block, "tocsr")
        if sparse:
            block = checks.sound_sparse(block, "the sparse factor")
        if self.device is HOST:
            return block if sparse else np.asarray(self.device.put(block))
        here = self.device.put(block.toarray() if sparse else block)
        return here if here.dtype == self.U.dtype else here.to(self.U.dtype)

    def _same_shape(self, other: Any) -> None:
        if np.shape(other) != self.shape and getattr(other, "shape", None) != self.shape:
            raise ValueError(f"shapes differ: {self.shape} and {getattr(other, 'shape', other)}")


def _scale_rows(s: Array, block: Array) -> Array:
    return s * block if block.ndim == 1 else s[:, None] * block
