"""PyTorch devices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, lru_cache
from itertools import pairwise
from threading import Lock, local
from typing import Any, TypeAlias

import numpy as np
import scipy
import torch

from driftwolfe.points import checks, devices
from driftwolfe.points.devices import HOST, Device, parts
from driftwolfe.points.kinds import Array, Shape

# Trigger PyTorch's one-time warning here, suppressed: the sparse format is a beta, and unchecked.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([]), torch.tensor([]), (1, 1))


#: Entries up to which their keys are kept: those of more are as quick to compute again.
_FEW_KEYS = 1 << 20
#: Rows, columns and values of a matrix, each in parts.
Entries: TypeAlias = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]
#: Lengths between which squares of numbers stay in the range.
_SMALL, _LARGE = 1e-140, 1e140


@lru_cache(maxsize=16)
def _starts(number: int, step: int, place: Any, dtype: Any = torch.int64) -> Any:
    """Return the keys at which rows begin, and where the last one ends."""
    return torch.arange(0, number * step + 1, step, device=place, dtype=dtype)


class TorchStored:
    """A sparse matrix as scipy's canonical `csr_array`, with its names: sorted, each entry once."""

    #: The kind in files: that of scipy's matrices.
    SAVED_AS = "sparse"
    #: Kept where known: keys, if few; the order of the transpose's entries; the diagonal that it is cut from.
    _held_keys: Any = None
    _order: Any = None
    _within: Any = None

    def __init__(self, shape: Shape, indptr: Any, indices: Any, data: Any) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    @classmethod
    def of_entries(cls, rows: Any, cols: Any, values: Any, shape: Shape) -> TorchStored:
        return cls._summed(torch.add(cols, rows, alpha=shape[1]), values, shape)

    @classmethod
    def of_each(
        cls, entries: Sequence[Entries], factors: Sequence[float], shape: Shape
    ) -> list[TorchStored]:
        """Return several matrices, times factors, from lists of entries, by calls that they share."""
        (m, n), number = shape, len(entries)
        rows, cols, values = (
            torch.cat([part for each in entries for part in each[which]]) for which in range(3)
        )
        total, counts = len(values), [sum(map(len, each[0])) for each in entries]
        repeats = torch.tensor(counts, device=values.device)
        which = torch.repeat_interleave(repeats, output_size=total)
        values *= torch.repeat_interleave(values.new_tensor(factors), repeats, output_size=total)
        rows, cols = torch.add(rows, which, alpha=m), torch.add(cols, which, alpha=n)
        diagonal = cls.of_entries(rows, cols, values, (number * m, number * n))
        whole = diagonal.nnz == total  # no entry was given twice
        ends = np.cumsum([0, *counts]).tolist() if whole else diagonal.indptr[::m].tolist()
        blocks = diagonal._blocks(ends, shape)
        for block, turned in zip(blocks, diagonal.T._blocks(ends, (n, m)), strict=True):
            block.T = turned
        return blocks

    def _blocks(self, ends: Sequence[int], shape: Shape) -> list[TorchStored]:
        """Return the matrices along the diagonal of this one, whose entries end there."""
        (m, n), blocks = shape, []
        for i, (start, end) in enumerate(pairwise(ends)):
            indptr, indices = self.indptr[i * m : (i + 1) * m + 1], self.indices[start:end]
            if i:
                indptr, indices = indptr - start, indices - i * n
            blocks.append(TorchStored(shape, indptr, indices, self.data[start:end]))
            blocks[i]._within = self, i, len(ends) - 1
        return blocks

    @classmethod
    def _summed(cls, keys: Any, data: Any, shape: Shape) -> TorchStored:
        """Return the matrix of entries by keys row * n + col; equal keys add up."""
        keys, order = torch.sort(keys)
        data = data[order]
        if bool((keys[1:] == keys[:-1]).any()):
            keys, position = torch.unique_consecutive(keys, return_inverse=True)
            data = data.new_zeros(len(keys)).index_add_(0, position, data)
        m, n = shape
        indptr = torch.searchsorted(keys, _starts(m, n, keys.device), out_int32=True)
        indices = torch.empty(keys.shape, dtype=torch.int32, device=keys.device)
        matrix = cls(shape, indptr, torch.remainder(keys, n, out=indices), data)
        matrix._hold(keys)
        return matrix

    def _hold(self, keys: Any) -> None:
        if len(keys) <= _FEW_KEYS:
            self._held_keys = keys

    def __getstate__(
        self,
    ) -> dict[str, Any]:  # without what is cached, not all of which can be copied
        return {name: self.__dict__[name] for name in ("indptr", "indices", "data", "shape")}

    @property
    def nnz(self) -> int:
        return len(self.data)

    @property
    def _keys(self) -> Any:
        """The number row * n + col of every entry."""
        if self._held_keys is not None:
            return self._held_keys
        counts = torch.diff(self.indptr)
        starts = _starts(self.shape[0], self.shape[1], counts.device)[:-1]
        keys = torch.repeat_interleave(starts, counts, output_size=self.nnz).add_(self.indices)
        self._hold(keys)
        return keys

    @cached_property
    def _product(self) -> Any:
        return torch.sparse_csr_tensor(self.indptr, self.indices, self.data, self.shape)

    @cached_property
    def T(self) -> TorchStored:
        """The transpose, by rows of its own."""
        (m, n), (lines, self._order) = self.shape, torch.sort(self.indices, stable=True)
        starts = _starts(n, 1, lines.device, lines.dtype)
        indptr = torch.searchsorted(lines, starts, out_int32=True)
        rows = torch.empty(lines.shape, dtype=torch.int32, device=lines.device)
        torch.div(self._keys[self._order], n, rounding_mode="floor", out=rows)
        return TorchStored((n, m), indptr, rows, self.data[self._order])

    @classmethod
    def diagonal(cls, matrices: Sequence[TorchStored | None], shape: Shape) -> TorchStored | None:
        """Return matrices of one shape along a diagonal; None has no entries."""
        (m, n), number = shape, len(matrices)
        within = [getattr(matrix, "_within", None) for matrix in matrices]
        if within[0] and within == [(within[0][0], i, number) for i in range(number)]:
            return within[0][0]  # they were cut from one
        held = [matrix for matrix in matrices if matrix is not None]
        if number == 1 or not held:
            return matrices[0]
        ends, cols, entries = [held[0].indptr[:1]], [], 0
        for i, matrix in enumerate(matrices):
            if matrix is None:
                ends.append(held[0].indptr.new_full((m,), entries))
                continue
            ends.append(matrix.indptr[1:] + entries if entries else matrix.indptr[1:])
            cols.append(matrix.indices + i * n if i else matrix.indices)
            entries += matrix.nnz
        data = torch.cat([matrix.data for matrix in held])
        return cls((number * m, number * n), torch.cat(ends), torch.cat(cols), data)

    @cached_property
    def measures(self) -> tuple[float, ...]:
        """The length of all entries; before it the largest size, where squares may leave the range, or the same."""
        if not self.nnz:
            return 0.0, 0.0
        measure = torch.linalg.vector_norm
        length = float(measure(self.data))
        if _SMALL < length < _LARGE:
            return length, length
        return tuple(torch.stack((measure(self.data, math.inf), measure(self.data))).tolist())

    def __matmul__(self, block: Any) -> Any:
        return self._product @ block

    def __rmatmul__(self, block: Any) -> Any:
        return (self.T @ block.T).T

    def with_data(self, data: Any) -> TorchStored:
        """Return the same indices with other values; what was cached for them is kept."""
        other = TorchStored(self.shape, self.indptr, self.indices, data)
        other._held_keys, other._order = self._held_keys, self._order
        if "T" in self.__dict__ and self._order is not None:
            other.T = self.T.with_data(data[self._order])
        return other

    def scaled(self, factor: float) -> TorchStored:
        other = self.with_data(self.data * factor)
        # A length whose square has left the range is measured anew: scaling may be what mends that.
        if "measures" in self.__dict__ and 1e-150 < self.measures[1] < 1e150:
            other.measures = tuple(abs(factor) * size for size in self.measures)
        return other

    def plus(self, other: TorchStored) -> TorchStored:
        keys, data = torch.cat((self._keys, other._keys)), torch.cat((self.data, other.data))
        total = self._summed(keys, data, self.shape)
        if not math.isfinite(total.measures[0]):
            raise ValueError("sparse has entries that are not finite")
        return total

    def copy(self) -> TorchStored:
        return TorchStored(self.shape, *map(torch.clone, parts(self)))

    def toarray(self) -> Any:
        return self._product.to_dense()

    def on_host(self) -> Any:
        """The same matrix as scipy's `csr_array`."""
        arrays = (part.cpu().numpy() for part in (self.data, self.indices, self.indptr))
        return scipy.sparse.csr_array(tuple(arrays), shape=self.shape)


#: Columns up to which copying several matrices' factors into one array costs less than it saves; on small
#: matrices, numbers.
_TOGETHER, _FEW_TOGETHER = 512, 1 << 23
#: Entries up to which several matrices are made dense to share calls, and how many times the numbers of the
#: widest one's factors those of an array may be.
_DENSE_TOGETHER, _TIMES_FACTORS = 1 << 27, 4
#: Steps of a Krylov basis that there is room for at first.
_FIRST_STEPS = 24


class TorchKrylov:
    """Krylov bases of A^T A that share calls; vectors lie by start, then by matrix. Starts need not be unit."""

    def __init__(self, matrices: Sequence[Any], starts: Sequence[Any], most: int) -> None:
        (m, n), like = matrices[0].shape, starts[0]
        self._bases = len(like), len(matrices)
        wide = _wide([matrix.rank for matrix in matrices], (m, n))
        self._matrices = (_DenseStack if wide else _FactoredStack)(matrices)
        self._most, room, number = most, min(most, _FIRST_STEPS), math.prod(self._bases)
        self._basis = like.new_empty((room + 1, number, n))
        self._images = like.new_empty((room, number, m))
        first = torch.stack(list(starts), 1).view(number, n)
        lengths = torch.linalg.vector_norm(first, dim=1, keepdim=True)
        torch.div(first, lengths, out=self._basis[0])
        # For each step the coordinates of products in each pass, and what lies beyond: one transfer.
        self._table = like.new_zeros((room, 2, number, room + 1))
        self._size, self._finite = 0, True

    def grow(self, size: int) -> tuple[Array, Array]:
        """Do `_Basis.grow` for all matrices and starts."""
        if size > len(self._images):
            self._make_room(min(self._most, max(size, 2 * len(self._images))))
        for k in range(self._size, size):
            self._step(k)
        self._size = max(self._size, size)
        table = self._table[:size].cpu().numpy()
        diagonal, beyond = table.diagonal(axis1=0, axis2=3).sum(0), table[:, 0, :, -1].T
        self._finite = bool(np.isfinite(beyond).all() and beyond.all())
        first, second = (each.reshape(*self._bases, size) for each in (diagonal, beyond))
        return first.swapaxes(0, 1), second.swapaxes(0, 1)

    def _make_room(self, room: int) -> None:
        """Move to larger arrays; few runs take as many steps as they may."""
        held, number = self._size, self._basis.shape[1]
        for name, more in (("_basis", 1), ("_images", 0)):
            old = getattr(self, name)
            new = old.new_empty((room + more, *old.shape[1:]))
            new[: held + more] = old[: held + more]
            setattr(self, name, new)
        table = self._table.new_zeros((room, 2, number, room + 1))
        table[:held, :, :, :held] = self._table[:held, :, :, :held]
        table[:held, ..., -1] = self._table[:held, ..., -1]
        self._table = table

    def _step(self, k: int) -> None:
        images, length = self._images[k], self._table[k, 0, :, -1]
        products = torch.empty_like(self._basis[0])
        for way, (given, made) in enumerate(((self._basis[k], images), (images, products))):
            self._matrices.multiply(way, *(each.view(*self._bases, -1) for each in (given, made)))
        held, columns = self._basis[: k + 1].transpose(0, 1), products[:, :, None]
        turned = held.mT
        # One pass nearly always suffices; a second for two steps in eight stops errors from growing.
        passes = 2 if k % 8 > 5 else 1
        for coordinates in self._table[k, :passes, :, : k + 1, None].unbind():
            torch.bmm(held, columns, out=coordinates)
            columns.baddbmm_(turned, coordinates, alpha=-1.0)
        # Where nothing is left, what follows is not finite; the zero says so.
        torch.linalg.vector_norm(products, dim=1, out=length)
        torch.div(products, length[:, None], out=self._basis[k + 1])

    def combine(self, chosen: Sequence[tuple[int, Array, float]]) -> list[tuple[Any, Any]]:
        """Return the directions A v / s and v with these coordinates, of one start for each matrix."""
        if self._finite:
            return list(self._combined(slice(0, len(chosen)), chosen))
        # Other matrices and starts may have nothing to add but what is not finite.
        alone = (self._combined(slice(i, i + 1), [each]) for i, each in enumerate(chosen))
        return [pair for pairs in alone for pair in pairs]

    def _combined(
        self, which: slice, chosen: Sequence[tuple[int, Array, float]]
    ) -> Iterator[tuple[Any, Any]]:
        size, first = max(len(row) for _, row, _ in chosen), chosen[0][0]
        starts = slice(0, self._bases[0]) if self._finite else slice(first, first + 1)
        weights = np.zeros((2, len(chosen), size, starts.stop - starts.start))
        for number, (start, row, s) in enumerate(chosen):
            weights[:, number, : len(row), start - starts.start] = row / (s or 1.0), row
        rows = torch.from_numpy(weights).to(self._basis.device).view(2, len(chosen), 1, -1)
        found = []
        for own, block in zip(rows, (self._images, self._basis), strict=True):
            held = block[:size].view(size, *self._bases, -1)[:, starts, which].flatten(0, 1)
            found.append(torch.bmm(own, held.transpose(0, 1))[:, 0].unbind())
        return zip(*found, strict=True)


class _FactoredStack:
    """Factored matrices of one shape, their factors side by side."""

    def __init__(self, matrices: Sequence[Any]) -> None:
        m, n = matrices[0].shape
        self._left = _padded([matrix.U for matrix in matrices])
        self._right = _padded([matrix.V for matrix in matrices], [each.scale for each in matrices])
        stored = [matrix.sparse for matrix in matrices]
        flipped = [None if each is None else each.T for each in stored]
        both = TorchStored.diagonal(stored, (m, n)), TorchStored.diagonal(flipped, (n, m))
        self._stored = [each._product for each in both if each is not None] or None

    def multiply(self, way: int, vectors: Any, out: Any) -> None:
        """Write the products of each matrix (way 0), or its transpose, with vectors by start and matrix."""
        starts, number, _ = vectors.shape
        first, second = (self._left, self._right) if way else (self._right, self._left)
        # With the columns of all, as a long sum is quick in one product only; each takes its own.
        inside = (vectors.flatten(0, 1) @ first.flatten(1)).view(starts, number, number, -1)
        own = inside.diagonal(dim1=1, dim2=2).permute(2, 0, 1)
        torch.bmm(own, second.permute(1, 2, 0), out=out.transpose(0, 1))
        if self._stored is not None:
            out.view(starts, -1).T.addmm_(self._stored[way], vectors.view(starts, -1).T)


class _DenseStack:
    """Matrices of one shape as arrays: quicker where their factors have many columns."""

    def __init__(self, matrices: Sequence[Any]) -> None:
        stack = torch.stack([matrix.toarray() for matrix in matrices])
        self._ways = stack, stack.mT

    def multiply(self, way: int, vectors: Any, out: Any) -> None:
        torch.bmm(self._ways[way], vectors.permute(1, 2, 0), out=out.permute(1, 2, 0))


def _wide(ranks: Sequence[int], shape: Shape) -> bool:
    """Whether several matrices have too many columns for their factors to lie side by side."""
    most = max(_TOGETHER, _FEW_TOGETHER / sum(shape))
    return len(ranks) > 1 and len(ranks) * max(ranks) > most


def _padded(factors: Sequence[Any], scales: Sequence[Any] | None = None) -> Any:
    """Factors side by side, times their scales, with zeros for columns that some lack."""
    if len(factors) == 1:
        return (factors[0] if scales is None else factors[0] * scales[0])[:, None]
    widest = max(factor.shape[1] for factor in factors)
    together = factors[0].new_zeros((len(factors[0]), len(factors), widest))
    for i, factor in enumerate(factors):
        own = together[:, i, : factor.shape[1]]
        own.copy_(factor) if scales is None else torch.mul(factor, scales[i], out=own)
    return together


#: Columns up to which LAPACK on the host, with both transfers, is quicker than the device (H200).
_HOST_COLUMNS = 160
#: Numbers of a factor up to which a product with all of it is quicker than more calls; those gathered at a time.
_FEW_NUMBERS, _CHUNK = 1 << 23, 1 << 27
#: Rows of random numbers up to which they are drawn on the host, so that all devices have the same.
_FEW_ROWS = 1 << 14
#: Threads that are in `reduced_precision`, and PyTorch's setting before the first.
_rough_threads, _before = 0, False
_changing = Lock()


class TorchDevice(Device):
    """A device of PyTorch's: ``"cuda"``, ``"cuda:1"``, ..., or ``"torch"`` for the host."""

    xp = torch
    krylov = TorchKrylov
    stored: Any = staticmethod(TorchStored.of_entries)
    stored_of_each: Any = staticmethod(TorchStored.of_each)
    with_data: Any = staticmethod(TorchStored.with_data)
    scaled: Any = staticmethod(TorchStored.scaled)
    added: Any = staticmethod(TorchStored.plus)
    gram_columns = _HOST_COLUMNS
    workers = 2  # one waits for the device while the other gives it work; three were slower

    def __init__(self, name: str) -> None:
        self.name = name
        self._threads = local()
        try:
            self.place = torch.device("cpu" if name == "torch" else name)
            # Load the libraries now: PyTorch does not let several threads be the first.
            unit = self.unit(2)
            self.inverse_cholesky(unit @ unit)
            torch.linalg.eigh(unit)
            torch.linalg.qr(unit)
        except (RuntimeError, TypeError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(
                f'device "{name}" cannot be used here ({reason}); '
                'use "cpu", or "cuda" where PyTorch finds a GPU'
            ) from None

    def shares_calls(self, ranks: Sequence[int], shape: Shape) -> bool:
        entries = math.prod(shape)
        dense = len(ranks) * entries <= _DENSE_TOGETHER
        return not _wide(ranks, shape) or (
            dense and entries <= _TIMES_FACTORS * max(ranks) * sum(shape)
        )

    def put(self, array: Any) -> Any:
        if isinstance(array, torch.Tensor):
            return array.to(self.place)
        return torch.from_numpy(np.array(array, order="C")).to(self.place)

    def host(self, array: Any) -> Any:
        return array.detach().cpu().numpy()

    def finite(self, value: Any, name: str, shape: Shape | None = None) -> Any:
        if not isinstance(value, torch.Tensor):
            return self.put(checks.finite_array(value, name, shape))
        if value.is_complex() or value.dtype == torch.bool or value.layout is not torch.strided:
            given = f"{value.dtype}, {value.layout}"
            raise ValueError(f"{name} must be a dense tensor of real numbers, got {given}")
        if shape is not None and tuple(value.shape) != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
        tensor = value.detach().to(self.place, torch.float64).contiguous()
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} has entries that are not finite")
        return tensor

    def beside(self) -> AbstractContextManager[None]:
        if self.place.type != "cuda":
            return nullcontext()
        return self._beside(torch.cuda.current_stream(self.place))

    @contextmanager
    def _beside(self, first: Any) -> Iterator[None]:
        if not hasattr(self._threads, "stream"):
            self._threads.stream = torch.cuda.Stream(self.place)
        own = self._threads.stream
        own.wait_stream(first)
        try:
            with torch.cuda.stream(own):
                yield
        finally:
            first.wait_stream(own)

    @contextmanager
    def reduced_precision(self) -> Iterator[None]:
        """Let tensor cores, four times as quick, read 10 bits of each number, in any thread."""
        global _rough_threads, _before
        matmul = torch.backends.cuda.matmul
        with _changing:
            if _rough_threads == 0:
                _before = matmul.allow_tf32
            _rough_threads += 1
            matmul.allow_tf32 = True
        try:
            yield
        finally:
            with _changing:
                _rough_threads -= 1
                if _rough_threads == 0:
                    matmul.allow_tf32 = _before

    def normal(self, rng: np.random.Generator, shape: Shape) -> Any:
        if shape[0] <= _FEW_ROWS:
            return self.put(rng.standard_normal(shape))
        generator = torch.Generator(self.place)
        generator.manual_seed(int(rng.integers((1 << 63) - 1)))  # seeds that every generator takes
        return torch.randn(shape, generator=generator, dtype=torch.float64, device=self.place)

    def by_rows(self, array: Any) -> Any:
        return array.contiguous()

    def measures(self, stored: Any) -> Any:
        return stored.measures

    def keys(self, stored: Any) -> Any:
        return stored._keys

    def summed(self, table: Any, groups: Any, number: int) -> Any:
        return table.new_zeros((len(table), number)).index_add_(1, groups, table)

    def lengths(self, block: Any) -> Any:
        return torch.linalg.vector_norm(block, dim=0)

    def inverse_cholesky(self, gram: Any) -> Any:
        lower = torch.linalg.cholesky_ex(gram)[0]
        return torch.linalg.solve_triangular(lower, self.unit(len(gram)), upper=False).T

    def eigh(self, symmetric: Any) -> tuple[Array, Any]:
        if len(symmetric) <= _HOST_COLUMNS:
            return super().eigh(symmetric)
        values, vectors = self.decomposed(symmetric)
        return self.host(values)[::-1], vectors.flip(1)

    def decomposed(self, symmetric: Any) -> tuple[Any, Any]:
        """The eigenvalues, rising, and vectors of a matrix or a stack: the host's if the device's fail."""
        try:
            return torch.linalg.eigh(symmetric)
        except RuntimeError:  # as PyTorch's LinAlgError is
            values, vectors = np.linalg.eigh(self.host(symmetric))
            return self.put(values), self.put(vectors)

    def stored_inner(self, stored: Any, U: Any, s: Any, V: Any) -> float:
        m = stored.shape[0]
        if stored.nnz > m or U.numel() > _FEW_NUMBERS:
            return super().stored_inner(stored, U, s, V)
        return float(torch.vdot((stored @ V).ravel(), (U * s).ravel()))

    def plus_product(self, product: Any, left: Any, right: Any) -> Any:
        return product.addmm_(left, right) if product.ndim == 2 else product.addmv_(left, right)

    def entries(self, U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
        step = max(1, _CHUNK // max(1, len(s)))
        if len(rows) > step:
            pairs = zip(rows.split(step), cols.split(step), strict=True)
            return torch.cat([self.entries(U, s, V, *pair) for pair in pairs])
        return U[rows].mul_(V[cols]) @ s

    def all_stored(self, array: Any) -> Any:
        m, n = array.shape
        cols = torch.arange(n, dtype=torch.int32, device=self.place).repeat(m)
        return TorchStored((m, n), _starts(m, n, self.place, torch.int32), cols, array.reshape(-1))

    def canonical(self, sparse: Any, shape: Shape) -> Any:
        if not isinstance(sparse, TorchStored):
            sparse = HOST.canonical(sparse, shape)
        elif sparse.shape != shape:
            raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
        elif devices.device_of(sparse.data) is self:
            return sparse
        return TorchStored(shape, *map(self.put, parts(sparse)))
