"""`TorchStored`: a sparse matrix by rows, of tensors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import scipy
import torch

from driftwolfe.points.kinds import Shape

# PyTorch warns once in each process, of what is meant: a format that may yet change, and no checks.
# Here it does so unheard, whatever the filters are when the first matrix is made.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 0]), torch.tensor([]), torch.tensor([]), (1, 1))


def _pointers(lines: Any, number: int) -> Any:
    """Where each line starts in a sorted list, and where the last one ends."""
    starts = torch.arange(number + 1, device=lines.device, dtype=lines.dtype)
    return torch.searchsorted(lines, starts, out_int32=True)


class TorchStored:
    """Entries sorted by rows and columns, each place once: what scipy calls a canonical `csr_array`.

    Parameters
    ----------
    indptr, indices, data
        As scipy has them.
    shape
        ``(m, n)``.
    """

    #: In files: as scipy's.
    SAVED_AS = "sparse"

    def __init__(self, indptr: Any, indices: Any, data: Any, shape: Shape) -> None:
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, shape

    @classmethod
    def of_entries(cls, rows: Any, cols: Any, values: Any, shape: Shape) -> TorchStored:
        """The matrix with values[k] at (rows[k], cols[k]); entries given twice add up."""
        keys, order = torch.sort(torch.add(cols, rows, alpha=shape[1]))
        return cls._of_keys(keys, values[order], shape)

    @classmethod
    def _of_keys(cls, keys: Any, data: Any, shape: Shape) -> TorchStored:
        """The matrix with entries at places row * n + col, in rising order; twins add up."""
        if bool((keys[1:] == keys[:-1]).any()):
            keys, twin = torch.unique_consecutive(keys, return_inverse=True)
            data = data.new_zeros(len(keys)).index_add_(0, twin, data)
        rows = torch.div(keys, shape[1], rounding_mode="floor")
        indices = torch.sub(keys, rows, alpha=shape[1]).int()
        matrix = cls(_pointers(rows, shape[0]), indices, data, shape)
        matrix.__dict__.update(rows=rows, _keys=keys)
        return matrix

    def __getstate__(self) -> dict[str, Any]:
        """What it is made of: what else is known can be found again, and not all of it be copied."""
        return {name: self.__dict__[name] for name in ("indptr", "indices", "data", "shape")}

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return len(self.data)

    @cached_property
    def rows(self) -> Any:
        """The row of every entry."""
        counts = torch.diff(self.indptr)
        index = torch.arange(self.shape[0], device=counts.device)
        return torch.repeat_interleave(index, counts, output_size=self.nnz)

    @cached_property
    def _keys(self) -> Any:
        return self.rows * self.shape[1] + self.indices

    @cached_property
    def _order(self) -> Any:
        """The entries by columns."""
        return torch.sort(self.indices, stable=True)[1]

    @cached_property
    def _product(self) -> Any:
        return torch.sparse_csr_tensor(self.indptr, self.indices, self.data, self.shape)

    @cached_property
    def T(self) -> TorchStored:
        """The transpose, by rows of its own."""
        order = self._order
        indptr = _pointers(self.indices[order], self.shape[1])
        return TorchStored(indptr, self.rows[order].int(), self.data[order], self.shape[::-1])

    @classmethod
    def beside(cls, matrices: Sequence[TorchStored | None], shape: Shape) -> Any:
        """Several matrices along a diagonal, and the transpose, as PyTorch multiplies them.

        None stands for one without entries; the answer is None where all are.
        """
        held = [(number, matrix) for number, matrix in enumerate(matrices) if matrix is not None]
        if not held:
            return None
        if len(matrices) == 1:
            return held[0][1]._product, held[0][1].T._product
        flipped = [(number, matrix.T) for number, matrix in held]
        both = (held, shape, len(matrices)), (flipped, shape[::-1], len(matrices))
        return tuple(cls._diagonal(*each)._product for each in both)

    @classmethod
    def _diagonal(
        cls, held: Sequence[tuple[int, TorchStored]], shape: Shape, number: int
    ) -> TorchStored:
        m, n = shape
        data = torch.cat([matrix.data for _, matrix in held])
        indices = torch.cat([matrix.indices + i * n for i, matrix in held])
        counts = data.new_zeros((number, m), dtype=torch.int32)
        for i, matrix in held:
            counts[i] = matrix.indptr[1:] - matrix.indptr[:-1]
        ends = torch.cumsum(counts.view(-1), 0, dtype=torch.int32)
        indptr = torch.cat((ends.new_zeros(1), ends))
        return cls(indptr, indices, data, (number * m, number * n))

    @cached_property
    def measures(self) -> tuple[float, float]:
        """The largest absolute value and the length of all entries, from one look."""
        if not self.nnz:
            return 0.0, 0.0
        measure = torch.linalg.vector_norm
        largest, length = torch.stack((measure(self.data, math.inf), measure(self.data))).tolist()
        return largest, length

    def __matmul__(self, block: Any) -> Any:
        return self._product @ block

    def __rmatmul__(self, block: Any) -> Any:
        return (self.T @ block.T).T

    def with_data(self, data: Any) -> TorchStored:
        """The same places with other values; what is known of the places is kept."""
        other = TorchStored(self.indptr, self.indices, data, self.shape)
        for name in ("rows", "_keys", "_order"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        if "T" in self.__dict__:
            other.__dict__["T"] = self.T.with_data(data[self._order])
        return other

    def scaled(self, factor: float) -> TorchStored:
        """A multiple of the matrix."""
        other = self.with_data(self.data * factor)
        # A length whose square has left the range is measured anew: the multiple may be there to help.
        if "measures" in self.__dict__ and 1e-150 < self.measures[1] < 1e150:
            largest, length = self.measures
            other.__dict__["measures"] = abs(factor) * largest, abs(factor) * length
        return other

    def plus(self, other: TorchStored) -> TorchStored:
        """The sum of two matrices."""
        keys, order = torch.sort(torch.cat((self._keys, other._keys)))
        total = self._of_keys(keys, torch.cat((self.data, other.data))[order], self.shape)
        if not math.isfinite(total.measures[0]):
            raise ValueError("sparse has entries that are not finite")
        return total

    def entries(self, rows: Any, cols: Any) -> Any:
        """The entries at pairs, zero where none is stored."""
        if not self.nnz:
            return self.data.new_zeros(len(rows))
        wanted = rows * self.shape[1] + cols
        found = torch.searchsorted(self._keys, wanted).clamp_max(self.nnz - 1)
        return torch.where(self._keys[found] == wanted, self.data[found], 0.0)

    def inner(self, other: TorchStored) -> float:
        """The inner product of two matrices."""
        return float(other.data @ self.entries(other.rows, other.indices))

    def copy(self) -> TorchStored:
        """A copy that shares no tensor with this one."""
        parts = self.indptr.clone(), self.indices.clone(), self.data.clone()
        return TorchStored(*parts, self.shape)

    def toarray(self) -> Any:
        """The dense tensor."""
        dense = self.data.new_zeros(self.shape)
        dense[self.rows, self.indices.long()] = self.data
        return dense

    def __getitem__(self, rows: slice) -> TorchStored:
        """Some consecutive rows."""
        start, stop, _ = rows.indices(self.shape[0])
        indptr = self.indptr[start : stop + 1]
        first, last = int(indptr[0]), int(indptr[-1])
        part = self.indices[first:last], self.data[first:last]
        return TorchStored(indptr - first, *part, (stop - start, self.shape[1]))

    def on(self, device: Any) -> TorchStored:
        """The same matrix on another device of PyTorch's."""
        if self.data.device == device:
            return self
        parts = self.indptr.to(device), self.indices.to(device), self.data.to(device)
        return TorchStored(*parts, self.shape)

    def on_host(self) -> Any:
        """The same matrix as scipy's `csr_array`."""
        parts = (part.cpu().numpy() for part in (self.data, self.indices, self.indptr))
        return scipy.sparse.csr_array(tuple(parts), shape=self.shape)
