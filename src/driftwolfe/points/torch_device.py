"""PyTorch devices."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from threading import Lock, local
from typing import Any

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


class TorchStored:
    """A sparse matrix as scipy's canonical `csr_array`, with its names: sorted, each entry once."""

    #: The kind in files: that of scipy's matrices.
    SAVED_AS = "sparse"

    def __init__(self, shape: Shape, indptr: Any, indices: Any, data: Any) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    @classmethod
    def of_entries(cls, rows: Any, cols: Any, values: Any, shape: Shape) -> TorchStored:
        """Return the matrix with values[k] at (rows[k], cols[k]); entries given twice add up."""
        return cls._summed(torch.add(cols, rows, alpha=shape[1]), values, shape)

    @classmethod
    def _summed(cls, keys: Any, data: Any, shape: Shape) -> TorchStored:
        """Return the matrix of entries by keys row * n + col; equal keys add up."""
        keys, order = torch.sort(keys)
        data = data[order]
        if bool((keys[1:] == keys[:-1]).any()):
            keys, position = torch.unique_consecutive(keys, return_inverse=True)
            data = data.new_zeros(len(keys)).index_add_(0, position, data)
        return cls._of_keys(keys, data, shape)

    @classmethod
    def _of_keys(cls, keys: Any, data: Any, shape: Shape) -> TorchStored:
        """Return the matrix of entries by keys that rise."""
        m, n = shape
        starts = torch.arange(0, m * n + 1, n, device=keys.device)
        indptr = torch.searchsorted(keys, starts, out_int32=True)
        matrix = cls(shape, indptr, (keys % n).int(), data)
        matrix.__dict__["_keys"] = keys
        return matrix

    def __getstate__(self) -> dict[str, Any]:
        """Without what is cached: it can be computed again, and not all of it be copied."""
        return {name: self.__dict__[name] for name in ("indptr", "indices", "data", "shape")}

    @property
    def nnz(self) -> int:
        return len(self.data)

    @cached_property
    def _keys(self) -> Any:
        counts = torch.diff(self.indptr)
        rows = torch.arange(self.shape[0], device=counts.device)
        rows = torch.repeat_interleave(rows, counts, output_size=self.nnz)
        return rows * self.shape[1] + self.indices

    @cached_property
    def _by_columns(self) -> Any:
        """The keys of the transpose, rising, and the order of its entries."""
        m, n = self.shape
        return torch.sort(self._keys % n * m + self._keys // n)

    @cached_property
    def _product(self) -> Any:
        return torch.sparse_csr_tensor(self.indptr, self.indices, self.data, self.shape)

    @cached_property
    def T(self) -> TorchStored:
        """The transpose, by rows of its own."""
        keys, order = self._by_columns
        return self._of_keys(keys, self.data[order], self.shape[::-1])

    @classmethod
    def diagonal(cls, matrices: Sequence[TorchStored | None], shape: Shape) -> TorchStored | None:
        """Return matrices of one shape along a diagonal; None has no entries."""
        (m, n), number = shape, len(matrices)
        held = [(i, matrix) for i, matrix in enumerate(matrices) if matrix is not None]
        if number == 1 or not held:
            return matrices[0]
        rows = torch.cat([matrix._keys // n + i * m for i, matrix in held])
        cols = torch.cat([matrix.indices + i * n for i, matrix in held])
        data = torch.cat([matrix.data for _, matrix in held])
        return cls._of_keys(rows * (number * n) + cols, data, (number * m, number * n))

    @cached_property
    def measures(self) -> tuple[float, ...]:
        """The largest absolute value and the length of all entries, by one transfer."""
        if not self.nnz:
            return 0.0, 0.0
        measure = torch.linalg.vector_norm
        return tuple(torch.stack((measure(self.data, math.inf), measure(self.data))).tolist())

    def __matmul__(self, block: Any) -> Any:
        return self._product @ block

    def __rmatmul__(self, block: Any) -> Any:
        return (self.T @ block.T).T

    def with_data(self, data: Any) -> TorchStored:
        """Return the same indices with other values; what was cached for them is kept."""
        other = TorchStored(self.shape, self.indptr, self.indices, data)
        for name in ("_keys", "_by_columns"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        if "T" in self.__dict__:
            other.__dict__["T"] = self.T.with_data(data[self._by_columns[1]])
        return other

    def scaled(self, factor: float) -> TorchStored:
        other = self.with_data(self.data * factor)
        # A length whose square has left the range is measured anew: scaling may be what mends that.
        if "measures" in self.__dict__ and 1e-150 < self.measures[1] < 1e150:
            largest, length = self.measures
            other.__dict__["measures"] = abs(factor) * largest, abs(factor) * length
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


class TorchKrylov:
    """Krylov bases of A^T A for several matrices, which share calls, as each has a fixed cost.

    Their factors lie side by side: one product reads all of them, and the products of one matrix
    with another's vector are masked out. s is multiplied into a factor once.
    """

    def __init__(self, matrices: Sequence[Any], starts: Sequence[Any], most: int) -> None:
        m, n = matrices[0].shape
        number, like = len(matrices), starts[0]
        self._left = torch.cat([matrix.U for matrix in matrices], 1)
        self._right = torch.cat([matrix.V * matrix.scale for matrix in matrices], 1)
        self._own: Any = None  # which columns are whose
        if number > 1:
            ranks = like.new_tensor([matrix.rank for matrix in matrices]).long()
            index = torch.arange(number, device=like.device)
            whose = torch.repeat_interleave(index, ranks, output_size=self._left.shape[1])
            self._own = (whose == index[:, None]).to(like.dtype)
        stored = TorchStored.diagonal([matrix.sparse for matrix in matrices], (m, n))
        self._stored = None if stored is None else (stored._product, stored.T._product)
        self._basis = like.new_empty((number, most + 1, n))
        self._images = like.new_empty((most, number, m))
        self._basis[:, 0] = torch.stack(list(starts))
        self._coordinates = like.new_zeros((2, most, number, most))  # of products, in each pass
        self._beyond = like.new_zeros((most, number))
        self._size = 0

    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are `size`; return all diagonals and what lies beyond, in rows."""
        for k in range(self._size, size):
            self._step(k)
        self._size = max(self._size, size)
        diagonals = self._coordinates.diagonal(dim1=1, dim2=3).sum(0)
        diagonal, beyond = torch.stack((diagonals[:, :size], self._beyond[:size].T)).cpu().numpy()
        return diagonal, beyond

    def _step(self, k: int) -> None:
        images, length = self._images[k], self._beyond[k]
        products = torch.empty_like(self._basis[:, 0])
        self._multiply(self._basis[:, k], self._right, self._left, 0, images)
        self._multiply(images, self._left, self._right, 1, products)
        held, columns = self._basis[:, : k + 1], products[:, :, None]
        turned = held.mT
        for coordinates in self._coordinates[:, k, :, : k + 1, None].unbind():
            torch.bmm(held, columns, out=coordinates)
            columns.baddbmm_(turned, coordinates, alpha=-1.0)
        # Where nothing is left, what follows is not finite; the zero says so.
        torch.linalg.vector_norm(products, dim=1, out=length)
        torch.div(products, length[:, None], out=self._basis[:, k + 1])

    def _multiply(self, vectors: Any, first: Any, second: Any, way: int, out: Any) -> None:
        """Write the products of each matrix, or its transpose, with its own vector, in rows."""
        if self._own is None:
            torch.mv(second, torch.mv(first.T, vectors[0]), out=out[0])
        else:
            torch.mm((vectors @ first).mul_(self._own), second.T, out=out)
        if self._stored is not None:
            out.view(-1).addmv_(self._stored[way], vectors.reshape(-1))

    def combine(self, coordinates: Sequence[Array]) -> list[tuple[Any, Any]]:
        """Return the image A v and the vector v with these coordinates in each basis."""
        found = []
        for i, row in enumerate(coordinates):
            weights, k = self._basis.new_tensor(row), len(row)
            found.append((weights @ self._images[:k, i], weights @ self._basis[i, :k]))
        return found


#: Columns up to which LAPACK on the host, with both transfers, is quicker than the device (H200).
_HOST_COLUMNS = 160
#: Numbers gathered at a time.
_CHUNK = 1 << 27
#: Rows of random numbers up to which they are drawn on the host, so that all devices have the same.
_FEW_ROWS = 1 << 14
#: Largest seed that every generator takes.
_LARGEST_SEED = (1 << 63) - 1
#: Threads that are in `reduced_precision`, and PyTorch's setting before the first.
_rough_threads, _before = 0, False
_changing = Lock()


class TorchDevice(Device):
    """A device of PyTorch's: ``"cuda"``, ``"cuda:1"``, ..., or ``"torch"`` for the host."""

    xp = torch
    krylov = TorchKrylov
    stored: Any = staticmethod(TorchStored.of_entries)
    with_data: Any = staticmethod(TorchStored.with_data)
    scaled: Any = staticmethod(TorchStored.scaled)
    added: Any = staticmethod(TorchStored.plus)
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
        """A stream of this thread's own, on a GPU."""
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
        """Random numbers: as the host's if few, else drawn here from a seed that the generator gives."""
        if shape[0] <= _FEW_ROWS:
            return self.put(rng.standard_normal(shape))
        generator = torch.Generator(self.place)
        generator.manual_seed(int(rng.integers(_LARGEST_SEED)))
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
        found = torch.linalg.eigh(symmetric)
        return self.host(found[0])[::-1], found[1].flip(1)

    def entries(self, U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
        step = max(1, _CHUNK // max(1, len(s)))
        if len(rows) > step:
            pairs = zip(rows.split(step), cols.split(step), strict=True)
            return torch.cat([self.entries(U, s, V, *pair) for pair in pairs])
        return U[rows].mul_(V[cols]) @ s

    def canonical(self, sparse: Any, shape: Shape) -> Any:
        if not isinstance(sparse, TorchStored):
            sparse = HOST.canonical(sparse, shape)
        elif sparse.shape != shape:
            raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
        elif devices.device_of(sparse.data) is self:
            return sparse
        return TorchStored(shape, *map(self.put, parts(sparse)))
