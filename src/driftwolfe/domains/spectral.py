"""Sets of matrices given by their singular values or eigenvalues."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.balls import NormBall, kernels, load_kernels, threshold_to_sum
from driftwolfe.domains.base import LMO, Answer, Domain
from driftwolfe.domains.boxes import Simplex
from driftwolfe.points import FactoredMatrix, checks, devices, norm
from driftwolfe.points.devices import HOST, device_of, to_host
from driftwolfe.points.kinds import Array, Point, compiled
from driftwolfe.points.lanczos import (
    Triplet,
    leading_triplet,
    leading_triplet_of_each,
    threshold_falling,
)

factored_kernels = compiled("driftwolfe.points.kernels")

#: Relative residual at which a leading pair is accepted.
_RESIDUAL = 1e-8
#: Shorter side up to which all singular values cost about as much as the leading ones.
_CHEAP_SIDE = 64
#: Entries up to which dense arrays are quicker than factors: for any shape, and for cheap sides.
DENSE_ENTRIES, THIN_ENTRIES = 12_000, 64_000
#: Entries from which a GPU is quicker than two cores, with a margin (H200, docs/gpu.md).
DEVICE_ENTRIES = 32_000_000
#: Entries up to which a matrix is decomposed in full.
FULL_SVD_ENTRIES = 20_000_000
#: Columns of factors, and with rows or columns that hold entries, as fractions of the shorter side, up to which
#: those alone are decomposed (943 x 1,682), and how far the factors' products may be from orthonormal.
_NARROW, _FEW_LINES, _ORTHOGONALITY = 0.45, 0.65, 1e-11
#: Shorter side from which singular values come from the Gram matrix (a third of the time).
_GRAM_SIDE = 200
#: Entries up to which several matrices are decomposed in one call of a device: 1 GiB.
_STACK_ENTRIES = 1 << 27
#: Columns of factors and entries, as a fraction of the shorter side, up to which the host is quicker than a device.
_ON_HOST = 0.35
#: Side from which Lanczos finds the lowest eigenvector sooner than a dense decomposition (one core).
_LANCZOS_SIDE = 350


class TraceNormBall(NormBall):
    r"""Matrices of small trace norm: :math:`\{X \in \mathbb{R}^{m \times n} : \sum_i \sigma_i(X) \le radius\}`.

    The oracle returns :math:`-radius\, u_1 v_1^\top` from the leading singular pair of the
    direction: a few products with it. The projection thresholds all singular values,
    :math:`O(mn\min(m, n))`. Points are dense arrays for small shapes and `FactoredMatrix` for large
    ones; every method takes both and answers in kind.

    Parameters
    ----------
    shape, radius
        ``(m, n)``, and the bound, which is also the Euclidean radius.
    representation
        What learners compute with: ``"dense"``, ``"factored"``, or ``"auto"``: dense up to 12,000 entries, or
        64,000 where the shorter side is at most 64.
    device
        Where factored points live: ``"cpu"``, ``"cuda"`` (or ``"cuda:1"``, ...) for a GPU, ``"torch"`` for
        PyTorch without one, or ``"auto"``: a GPU where there is one and it is quicker.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> dw.TraceNormBall((2, 2), radius=3.0).lmo(np.diag([2.0, -1.0])) + 0.0
    array([[-3.,  0.],
           [ 0.,  0.]])
    """

    rank_one_atoms = True
    _made_from = (("shape", "shape"), ("radius", "scale"), ("representation", "representation"))

    def __init__(
        self,
        shape: Any,
        radius: float = 1.0,
        *,
        representation: str = "auto",
        device: str = "cpu",
    ) -> None:
        sizes = checks.matrix_shape(shape)
        checks.one_of(representation, "representation", ("auto", "dense", "factored"))
        super().__init__(sizes, radius, math.sqrt(min(sizes)))
        entries, thin = math.prod(sizes), min(sizes) <= _CHEAP_SIDE
        self.cheap_projection = thin or entries <= DENSE_ENTRIES
        self.cheap_membership = self.cheap_projection  # both need all singular values
        # Minimisers have high rank, and every atom adds rank one.
        self.affordable_projection = entries <= FULL_SVD_ENTRIES
        small = entries <= (THIN_ENTRIES if thin else DENSE_ENTRIES)
        self.factored = representation == "factored" or (representation == "auto" and not small)
        if device != "auto":
            self.device = devices.device_named(device)
        elif self.factored and entries >= DEVICE_ENTRIES:
            self.device = devices.best_device()
        if self.device is not HOST and representation == "dense":
            instead = 'leave representation="dense" out'
            raise ValueError(f'device "{device}" is for factored points; {instead}')
        self.factored = self.factored or self.device is not HOST
        self.representation = "factored" if self.factored else "dense"

    def origin(self) -> Point:
        if not self.factored:
            return np.zeros(self.shape)
        return FactoredMatrix.zeros(self.shape, self.device.name)

    def warm_up(self) -> None:
        if self.device is HOST and self.factored:
            factored_kernels("low_rank_entries")
        elif self.device is HOST:
            kernels("nearest_rows")

    def lmo_with_error(
        self, direction: Point, accuracy: float | None = None, enough: float | None = None
    ) -> Answer:
        """Return the atom and a bound on how far it is from the minimiser.

        It is proved, up to rounding, where the shorter side is at most 48. Above that, Lanczos runs from a random
        start, seeded by the direction's numbers. For an accuracy of 0.05 or more the bound fails with probability
        0.001 at most; a finer one misses a value larger by 5 % with that probability (`docs/theory/oracles.md`).
        Below a value that is `enough` for the caller the bound may be infinite, which takes a third of the time.
        """
        tolerance = max(_RESIDUAL, accuracy or 0.0)
        least = math.inf if enough is None else -enough / self.scale
        if not isinstance(direction, FactoredMatrix):
            return self._atom(direction, leading_triplet(direction, tolerance=tolerance))
        return self._atom(direction, *leading_triplet_of_each([direction], [tolerance], [least]))

    def lmo_many_with_error(
        self, directions: Sequence[Point], accuracies: Sequence[float | None], enough: Any = ()
    ) -> list[Answer]:
        factored = all(isinstance(each, FactoredMatrix) for each in directions)
        ranks = [each.rank for each in directions] if factored else []
        enough = enough or [None] * len(directions)
        if len(directions) == 1 or not (ranks and self.device.shares_calls(ranks, self.shape)):
            return list(map(self.lmo_with_error, directions, accuracies, enough))
        tolerances = [max(_RESIDUAL, accuracy or 0.0) for accuracy in accuracies]
        least = [math.inf if each is None else -each / self.scale for each in enough]
        tops = leading_triplet_of_each(directions, tolerances, least)
        return list(map(self._atom, directions, tops))

    def _atom(self, direction: Point, top: Triplet) -> Answer:
        devices.count_products(top.products)
        error, u, v = self.scale * top.error, top.u[:, None], top.v[:, None]
        if isinstance(direction, FactoredMatrix):
            atom = FactoredMatrix.from_orthonormal(u, np.array([-self.scale]), v)
            if direction.device is not HOST:  # where an inner product takes several calls
                atom.slope = -self.scale * top.s
            return atom, error
        return (-self.scale * u) @ v.T, error

    def project_many(self, stack: Array) -> Array:
        if not self.cheap_projection:
            return super().project_many(stack)
        projected = stack.copy()
        # A matrix is the sum of its rows, each of rank one, so the sum of their norms bounds the
        # trace norm: a cheap test that spares most matrices inside the decomposition.
        rows = stack if self.shape[0] <= self.shape[1] else stack.swapaxes(1, 2)
        bounds = kernels().sums_of_row_norms(np.ascontiguousarray(rows))
        doubtful = (bounds > self.scale).nonzero()[0]
        if doubtful.size:
            U, s, Vt = devices.svd(stack[doubtful])
            projected[doubtful] = (U * threshold_to_sum(s, self.scale)[:, None, :]) @ Vt
        return projected

    def project_each(self, points: Sequence[Point]) -> list[Point]:
        entries = math.prod(self.shape) * len(points)
        if self.device is HOST or min(self.shape) < _GRAM_SIDE or entries > _STACK_ENTRIES:
            return super().project_each(points)
        most = _ON_HOST * min(self.shape)
        wide = [y for y in points if y.rank + y.nnz > most]
        found = iter(self._project_stack(wide) if wide else ())
        return [
            next(found) if y in wide else self._project(y.to("cpu")).to(y.device.name)
            for y in points
        ]

    def _project_stack(self, points: Sequence[FactoredMatrix]) -> list[Point]:
        """Project all in one call of their device: each decomposition alone keeps a small part of it busy."""
        device: Any = self.device
        dense = device.xp.stack([y.toarray() for y in points])
        wide = dense if self.shape[0] <= self.shape[1] else dense.mT
        devices.count_products(min(self.shape) * len(points))
        squares, U = device.decomposed(wide @ wide.mT)
        stacks = wide, np.flip(device.host(squares), 1), U.flip(2)
        found = (self._leading(*each) for each in zip(*stacks, strict=True))
        return [self._thresholded(y, *each, False) for y, each in zip(points, found, strict=True)]

    def check_point(self, value: Any, name: str) -> Point:
        if not isinstance(value, FactoredMatrix):
            return super().check_point(value, name)
        if value.shape != self.shape:
            raise ValueError(f"{name} must have shape {self.shape}, got {value.shape}")
        return value if self.device is HOST else value.to(self.device.name)

    def _lmo(self, direction: Point) -> Point:
        return self.lmo_with_error(direction)[0]

    def _norm(self, x: Point) -> float:
        compact = self._compact(x)
        values = devices.singular_values(to_host(self._dense(x))) if compact is None else compact.s
        return float(values.sum())

    def _project(self, y: Point) -> Point:
        few = self._from_few_lines(y)
        return self._thresholded(y, *(few or self._svd(y, leading=True)), few is not None)

    def _thresholded(self, y: Point, U: Array, s: Array, V: Array, orthonormal: bool) -> Point:
        """The projection of y, given all singular values and the vectors that it keeps."""
        if s.sum() <= self.scale:
            return y.copy()
        kept = threshold_falling(s, self.scale)
        if not orthonormal:
            return _assembled(U, kept, V, y)
        return FactoredMatrix.from_orthonormal(U, kept[: U.shape[1]], V)

    def _decompose(self, x: Point, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        U, s, V = self._svd(x, leading=False)
        rank, size = np.count_nonzero(s > 1e-14 * s.max(initial=0.0)), np.array([self.scale])
        pairs = [(U[:, i : i + 1], V[:, i : i + 1]) for i in range(rank)]
        return self._filled([_assembled(u, size, v, x) for u, v in pairs] or [lmo(x)], s[:rank])

    def _gauge_subgradient(self, y: Point) -> Point:
        U, s, V = self._svd(y, leading=False)
        return _assembled(U, (s > 1e-12 * s.max(initial=0.0)) / self.scale, V, y)

    def _svd(self, x: Point, leading: bool) -> tuple[Array, Array, Array]:
        """Return all singular values, falling, and vectors: all, or those a projection keeps."""
        compact = self._compact(x)
        if compact is not None:
            devices.count_products(compact.rank)
            return compact.U, compact.s, compact.V
        dense = self._dense(x)
        device = device_of(dense)
        devices.count_products(min(self.shape))
        if not leading or min(self.shape) < _GRAM_SIDE:
            U, s, Vt = devices.svd(to_host(dense))
            return device.put(U), s, device.put(Vt.T)
        wide = dense if dense.shape[0] <= dense.shape[1] else dense.T
        return self._leading(wide, *device.eigh(wide @ wide.T))

    def _leading(self, wide: Array, squares: Array, U: Array) -> tuple[Array, Array, Array]:
        """Return what `_svd` does, from falling eigenvalues of the Gram matrix of the shorter side."""
        U, s, V = _kept_triplets(wide, squares, U, self.scale)
        devices.count_products(U.shape[1])
        return (U, s, V) if self.shape[0] <= self.shape[1] else (V, s, U)

    def _from_few_lines(self, x: Point) -> tuple[Array, Array, Array] | None:
        """Return what `_svd` does for a projection where few rows and columns have entries, else None.

        With E and F the unit vectors of those, x = [U E] diag(s, S) [V F]^T: in orthonormal bases, a small matrix.
        """
        if not isinstance(x, FactoredMatrix) or x.device is not HOST or not (x.nnz and x.rank):
            return None
        indptr, indices, data = x.stored_arrays
        rows, cols = np.flatnonzero(np.diff(indptr)), np.unique(indices)
        widest = x.rank + max(rows.size, cols.size)
        if min(self.shape) < _GRAM_SIDE or widest > _FEW_LINES * min(self.shape):
            return None
        if not (x.orthonormal or (_is_orthonormal(x.U) and _is_orthonormal(x.V))):
            return None
        devices.count_products(widest)
        (left, R), (right, T) = _beyond(x.U, rows), _beyond(x.V, cols)
        stored = np.zeros((rows.size, cols.size))
        within = np.repeat(np.arange(rows.size), np.diff(indptr)[rows])
        stored[within, np.searchsorted(cols, indices)] = data
        core = R @ stored @ T.T
        core[: x.rank, : x.rank].flat[:: x.rank + 1] += x.s
        W, s, Z = _kept_triplets(core, *HOST.eigh(core @ core.T), self.scale)
        turned = ((x.U, left, W), (x.V, right, Z))
        U, V = (A @ W[: x.rank] + beyond @ W[x.rank :] for A, beyond, W in turned)
        return U, s, V

    def _compact(self, x: Point) -> FactoredMatrix | None:
        """Return a factored matrix as its own decomposition, where few columns hold all of it."""
        if not isinstance(x, FactoredMatrix):
            return None
        if not x.nnz:
            return x.recompress()
        # A sparse matrix has a column of factors for each row, or column, that holds entries.
        wide = self.shape[0] <= self.shape[1]
        most = int(_NARROW * min(self.shape)) - x.rank
        if wide and np.count_nonzero(np.diff(to_host(x.sparse.indptr))) > most:
            return None  # before anything large comes from a device
        stored = x.to("cpu").sparse
        stored = stored if wide else stored.T.tocsr()
        lines = np.flatnonzero(np.diff(stored.indptr))
        if lines.size > most:
            return None
        places = np.zeros((stored.shape[0], lines.size))
        places[lines, np.arange(lines.size)] = 1.0
        pair = places, stored[lines].toarray().T
        left, right = map(x.device.put, pair if wide else pair[::-1])
        return (x.low_rank + FactoredMatrix(left, np.ones(lines.size), right)).recompress()

    def _dense(self, x: Point) -> Array:
        if not isinstance(x, FactoredMatrix):
            return np.asarray(x)
        if math.prod(self.shape) > FULL_SVD_ENTRIES:
            raise NotImplementedError(
                f"all singular values of a sparse part of shape {self.shape} are out of reach; use "
                "driftwolfe.infeasible_projection, which needs only the leading ones"
            )
        return x.toarray()


def _kept_triplets(A: Array, squares: Array, U: Array, total: float) -> tuple[Array, Array, Array]:
    """Return all singular values of A and the vectors a projection keeps, from falling eigenvalues of A A^T."""
    # Only the last vectors lose digits: below 1e-8 of the first, singular values are noise.
    s = np.sqrt(np.maximum(squares, 0.0))
    count = int(np.count_nonzero(threshold_falling(s, total)))
    U = U[:, :count]
    return U, s, A.T @ U / device_of(U).put(np.where(s[:count] > 0, s[:count], 1.0))


def _is_orthonormal(factor: Array) -> bool:
    gram = factor.T @ factor
    gram.flat[:: len(gram) + 1] -= 1.0
    return HOST.largest(gram) <= _ORTHOGONALITY


def _beyond(factor: Array, lines: Any) -> tuple[Array, Array]:
    """Return a basis of what unit vectors have beyond a factor's orthonormal columns, and their coordinates."""
    inside = factor[lines].T
    beyond = -factor @ inside
    beyond[lines, np.arange(len(lines))] += 1.0
    again = factor.T @ beyond
    basis, upper = np.linalg.qr(beyond - factor @ again)
    return basis, np.concatenate((inside + again, upper))


def _assembled(U: Array, s: Array, V: Array, like: Point) -> Point:
    """Return U diag(s) V^T as the kind of point that `like` is; zeros in s come last."""
    rank = np.count_nonzero(s)
    U, s, V = U[:, :rank], s[:rank], V[:, :rank]
    return FactoredMatrix(U, s, V) if isinstance(like, FactoredMatrix) else (U * s) @ V.T


class Spectrahedron(Domain):
    r"""Density matrices: :math:`\{X = X^\top \succeq 0 : \mathrm{tr} X = radius\}`.

    The oracle returns :math:`radius\,uu^\top`, u an eigenvector of the lowest eigenvalue of the
    direction's symmetric part: O(n^3) for small n, a few products by Lanczos for large n. The
    projection needs all eigenvalues. The centre is the scaled identity. The gauge is infinite where
    X is not symmetric or the trace is not `radius` (more than 1e-9 of the size away).

    Parameters
    ----------
    n, radius
        Side of the matrices, at least 2, and the trace. The Euclidean radius is ``radius * sqrt(1 - 1 / n)``.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> dw.Spectrahedron(2).project(np.diag([2.0, 1.5]))
    array([[0.75, 0.  ],
           [0.  , 0.25]])
    """

    _made_from = (("n", "_side"), ("radius", "scale"))
    warm_up = load_kernels

    def __init__(self, n: int, radius: float = 1.0) -> None:
        self._side = checks.count(n, "n", least=2)
        eigenvalues = Simplex(self._side, radius)
        self.scale = eigenvalues.scale
        super().__init__(
            (self._side, self._side),
            eigenvalues.radius,
            diameter=eigenvalues.diameter,
            center=np.diag(eigenvalues.center),
            inner_radius=eigenvalues.inner_radius,
        )
        self.dimension = self._side * (self._side + 1) // 2 - 1
        # Both need all eigenvalues.
        self.cheap_projection = self.cheap_membership = self._side < _LANCZOS_SIDE
        self.affordable_projection = self._side**2 <= FULL_SVD_ENTRIES

    def tangent(self, direction: Array) -> Array:
        symmetric = _symmetric_part(direction)
        return symmetric - np.eye(self._side) * (np.trace(symmetric) / self._side)

    def _lmo(self, direction: Array) -> Array:
        vector = _lowest_eigenvector(_symmetric_part(direction))
        return np.outer(self.scale * vector, vector)

    def _contains(self, x: Array, slack: float) -> bool:
        return self._offset(x) <= slack and np.linalg.eigvalsh(_symmetric_part(x))[0] >= -slack

    def _project(self, y: Array) -> Array:
        values, vectors = np.linalg.eigh(_symmetric_part(y))
        kept = threshold_to_sum(values, self.scale, simplex=True)
        return _symmetric_part((vectors * kept) @ vectors.T)

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        lowest = float(np.linalg.eigvalsh(_symmetric_part(y))[0])
        return max(0.0, 1 - self._side * lowest / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        vector = _lowest_eigenvector(_symmetric_part(y))
        return (np.eye(self._side) - self._side * np.outer(vector, vector)) / self.scale


def _symmetric_part(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def _lowest_eigenvector(symmetric: Array) -> Array:
    """Return a unit eigenvector of the lowest eigenvalue, the same one each time."""
    side, largest = len(symmetric), np.abs(symmetric).max()
    if largest > 0.0:  # products of entries must be numbers
        symmetric = symmetric / largest
    if side >= _LANCZOS_SIDE:
        from scipy.sparse.linalg import ArpackError, eigsh  # a slow import, for large sets alone

        # A fixed random start: a patterned one may be orthogonal to the answer.
        start = np.random.default_rng(0).standard_normal(side)
        with suppress(ArpackError):
            vector: Array = eigsh(symmetric, k=1, which="SA", v0=start)[1][:, 0]
            return vector / norm(vector)
    vectors: Array = scipy.linalg.eigh(symmetric, subset_by_index=[0, 0])[1]
    return vectors[:, 0]
