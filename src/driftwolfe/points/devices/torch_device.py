"""`TorchDevice`: PyTorch, on a GPU, or on the host where there is none.

Chosen over CuPy by measurement (docs/gpu.md): its sparse products take a quarter to three quarters
of the time, and it runs, and so is tested, without a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, local
from typing import Any

import numpy as np
import torch

from driftwolfe.points import checks
from driftwolfe.points import decompositions as dense
from driftwolfe.points.devices.base import Device, Krylov
from driftwolfe.points.devices.torch_krylov import TorchKrylov
from driftwolfe.points.devices.torch_stored import TorchStored
from driftwolfe.points.kinds import Array, Shape

#: Columns up to which LAPACK on the host, with both ways, is quicker than the device (H200).
_HOST_COLUMNS = 160
#: Numbers gathered at a time.
_CHUNK = 1 << 27
#: Rows of random numbers up to which they are drawn on the host, so that all devices have the same.
_FEW_ROWS = 1 << 14
#: Largest seed that every generator takes.
_LARGEST_SEED = (1 << 63) - 1
#: Threads that are in `_tensor_cores`, and what PyTorch was set to before the first.
_rough_threads, _before = 0, False
_changing = Lock()


@contextmanager
def _tensor_cores() -> Iterator[None]:
    """Let PyTorch round factors of single-precision products, until the last thread has left."""
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


class TorchDevice(Device):
    """A device of PyTorch's.

    Parameters
    ----------
    name
        ``"cuda"``, ``"cuda:1"``, ..., or ``"torch"`` for the host.
    """

    xp = torch
    workers = 2  # one waits for the device while the other gives it work; three were slower

    def __init__(self, name: str) -> None:
        self.name = name
        self._threads = local()
        try:
            self.torch = torch.device("cpu" if name == "torch" else name)
            self._warm_up()
        except (RuntimeError, TypeError, AssertionError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise ValueError(
                f'device "{name}" cannot be used here ({reason}); '
                'use "cpu", or "cuda" where PyTorch finds a GPU'
            ) from None

    def _warm_up(self) -> None:
        """Load the libraries now: PyTorch does not let several threads be the first."""
        unit = torch.eye(2, dtype=torch.float64, device=self.torch)
        self.inverse_cholesky(unit @ unit)
        torch.linalg.eigh(unit)
        torch.linalg.qr(unit)

    # -- moving ------------------------------------------------------------------------------

    def put(self, array: Any) -> Any:
        """Bring an array here, from wherever it is."""
        if isinstance(array, torch.Tensor):
            return array.to(self.torch)
        rows = np.ascontiguousarray(array)
        if min(rows.strides, default=0) < 0:  # along an axis of one entry, where that is contiguous
            rows = rows.copy()
        return torch.tensor(rows, device=self.torch)

    def host(self, array: Any) -> Any:
        """Bring a tensor to the host."""
        return array.detach().cpu().numpy()

    def finite(self, value: Any, name: str, shape: Shape | None = None) -> Any:
        """Return a checked tensor of finite float64 numbers, contiguous by rows."""
        if not isinstance(value, torch.Tensor):
            return self.put(checks.finite_array(value, name, shape))
        if value.is_complex() or value.dtype == torch.bool:
            raise ValueError(f"{name} must hold real numbers, got a tensor of {value.dtype}")
        if value.layout is not torch.strided:
            raise ValueError(f"{name} must be a dense tensor, got one of layout {value.layout}")
        if shape is not None and tuple(value.shape) != shape:
            raise ValueError(f"{name} must have shape {shape}, got {tuple(value.shape)}")
        tensor = value.detach().to(self.torch, torch.float64).contiguous()
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} has entries that are not finite")
        return tensor

    def beside(self) -> AbstractContextManager[None]:
        """A stream of this thread's own, on a GPU."""
        if self.torch.type != "cuda":
            return nullcontext()
        return self._beside(torch.cuda.current_stream(self.torch))

    @contextmanager
    def _beside(self, first: Any) -> Iterator[None]:
        if not hasattr(self._threads, "stream"):
            self._threads.stream = torch.cuda.Stream(self.torch)
        own = self._threads.stream
        own.wait_stream(first)
        try:
            with torch.cuda.stream(own):
                yield
        finally:
            first.wait_stream(own)

    def rough(self) -> AbstractContextManager[None]:
        """The tensor cores of a GPU, which read 10 bits of each number: four times as quick."""
        return _tensor_cores() if self.torch.type == "cuda" else nullcontext()

    # -- making ------------------------------------------------------------------------------

    def zeros(self, shape: Shape) -> Any:
        """A tensor of zeros."""
        return torch.zeros(shape, dtype=torch.float64, device=self.torch)

    def unit(self, size: int) -> Any:
        """The unit matrix of that size."""
        return torch.eye(size, dtype=torch.float64, device=self.torch)

    def normal(self, rng: np.random.Generator, shape: Shape) -> Any:
        """Random numbers: as the host's if few, else drawn here from a seed that the generator gives."""
        if shape[0] <= _FEW_ROWS:
            return self.put(rng.standard_normal(shape))
        generator = torch.Generator(self.torch)
        generator.manual_seed(int(rng.integers(_LARGEST_SEED)))
        return torch.randn(shape, generator=generator, dtype=torch.float64, device=self.torch)

    def by_rows(self, array: Any) -> Any:
        """The same numbers, contiguous by rows."""
        return array.contiguous()

    def single(self, array: Any) -> Any:
        """The same numbers in single precision."""
        return array.float()

    def double(self, array: Any) -> Any:
        """The same numbers in double precision."""
        return array.double()

    # -- measuring ---------------------------------------------------------------------------

    def largest(self, array: Any) -> float:
        """The largest absolute value; 0 where there is none."""
        return float(torch.linalg.vector_norm(array, math.inf)) if array.numel() else 0.0

    def stored_largest(self, stored: Any) -> float:
        """The largest absolute value of a sparse matrix's entries."""
        return float(stored.measures[0])

    def stored_length(self, stored: Any) -> float:
        """The Frobenius norm of a sparse matrix."""
        return float(stored.measures[1])

    def summed(self, table: Any, groups: Any, number: int) -> Any:
        """The sums of a table's columns over groups, by their numbers."""
        return table.new_zeros((len(table), number)).index_add_(1, groups, table)

    def lengths(self, block: Any) -> Any:
        """The Euclidean length of every column."""
        return torch.linalg.vector_norm(block, dim=0)

    def unit_columns(self, block: Any) -> Any:
        """The same columns at unit length, but for those that are zero."""
        return block / self.lengths(block).clamp_min_(torch.finfo(block.dtype).tiny)

    # -- decomposing -------------------------------------------------------------------------

    def inverse_cholesky(self, gram: Any) -> Any:
        """The inverse of the upper Cholesky factor; not finite where it has none."""
        lower = torch.linalg.cholesky_ex(gram)[0]
        return torch.linalg.solve_triangular(lower, self.unit(len(gram)), upper=False).T

    def eigh(self, symmetric: Any) -> tuple[Array, Any]:
        """The eigenvalues of a symmetric matrix, falling, and its vectors."""
        if len(symmetric) <= _HOST_COLUMNS:
            values, vectors = dense.eigh(self.host(symmetric))
            return values[::-1], self.put(vectors[:, ::-1])
        found = torch.linalg.eigh(symmetric)
        return self.host(found[0])[::-1], found[1].flip(1)

    def svd(self, tall: Any) -> tuple[Any, Array, Any]:
        """The thin decomposition U, s, Vt: by QR here, and of the small factor on the host."""
        basis, core = torch.linalg.qr(tall)
        inner, s, Vt = dense.svd(self.host(core))
        return basis @ self.put(inner), s, self.put(Vt)

    # -- entries -----------------------------------------------------------------------------

    def entries(self, U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
        """The entries of U diag(s) V^T at pairs (rows[k], cols[k])."""
        step = max(1, _CHUNK // max(1, len(s)))
        if len(rows) > step:
            parts = zip(rows.split(step), cols.split(step), strict=True)
            return torch.cat([self.entries(U, s, V, *part) for part in parts])
        return U[rows].mul_(V[cols]) @ s

    def stored(self, rows: Any, cols: Any, values: Any, shape: Shape) -> Any:
        """A sparse matrix of checked entries."""
        return TorchStored.of_entries(rows, cols, values, shape)

    def canonical(self, sparse: Any, shape: Shape) -> Any:
        """A sparse matrix of whatever kind, checked and brought here."""
        from driftwolfe.points import stored

        if not isinstance(sparse, TorchStored):
            host = stored.canonical(sparse, shape)
            parts = self.put(host.indptr), self.put(host.indices), self.put(host.data)
            return TorchStored(*parts, shape)
        if sparse.shape != shape:
            raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
        return sparse.on(self.torch)

    def added(self, one: Any, other: Any) -> Any:
        """The sum of two sparse matrices."""
        return one.plus(other)

    def add_stored(self, stored: Any, rows: Any, cols: Any, values: Any) -> None:
        """Add the stored entries at these pairs to `values`."""
        values += stored.entries(rows, cols)

    def stored_inner(self, stored: Any, U: Any, s: Any, V: Any) -> float:
        """The inner product of a sparse matrix with U diag(s) V^T."""
        if stored.nnz <= stored.shape[0]:
            return float(stored.data @ self.entries(U, s, V, stored.rows, stored.indices))
        return float(torch.vdot((U * s).ravel(), (stored @ V).ravel()))

    def stored_product(self, one: Any, other: Any) -> float:
        """The inner product of two sparse matrices."""
        return one.inner(other)

    def scaled(self, stored: Any, factor: float) -> Any:
        """A multiple of a sparse matrix."""
        return stored.scaled(factor)

    def krylov(self, matrices: Sequence[Any], starts: Sequence[Any], most: int) -> Krylov:
        """The Krylov spaces of factored matrices from unit vectors."""
        return TorchKrylov(matrices, starts, most)
