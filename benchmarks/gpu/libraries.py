"""The same primitives in PyTorch and in CuPy: why the library uses PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

from benchmarks.gpu.setting import Setting, median_ms
from benchmarks.large_matrix import SHAPE

ENTRIES, COLUMNS, RANK, LOOKED_UP = (25_000, 250_000, 2_500_000), (1, 32, 96), 96, 25_000
#: Side lengths and entries of the short variant, divided by this.
SMALLER = 50
ADDITIONS = 200


class Library(NamedTuple):
    """A library's name, namespace, and constructors of arrays and sparse matrices."""

    name: str
    xp: Any
    array: Callable[[Any], Any]
    sparse: Callable[[Any], Any]


def libraries(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of every primitive, by library."""
    found, rows = _installed(setting), []
    smaller = SMALLER if setting.short else 1
    for jobs in zip(*(_jobs(library, smaller) for library in found), strict=True):
        row: dict[str, Any] = {"name": jobs[0][0]}
        for library, (_, job) in zip(found, jobs, strict=True):
            row[library.name] = median_ms(job, setting.device)
        rows.append(row)
    versions = {library.name: library.xp.__version__ for library in found}
    return {"versions": versions, "milliseconds": rows}


def _installed(setting: Setting) -> list[Library]:
    """PyTorch, and CuPy if it is installed and there is a GPU."""

    def array(values: Any) -> Any:
        return torch.as_tensor(values).to(setting.place)

    def sparse(matrix: Any) -> Any:
        parts = map(array, (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, matrix.shape)

    found = [Library("torch", torch, array, sparse)]
    try:
        cupy, cupy_sparse = import_module("cupy"), import_module("cupyx.scipy.sparse")
    except ImportError:
        return found
    if setting.on_gpu:
        found.append(Library("cupy", cupy, cupy.asarray, cupy_sparse.csr_matrix))
    return found


def _jobs(library: Library, smaller: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every primitive by name, on the same random data for every library."""
    _, xp, array, sparse = library
    m, n = shape = tuple(size // smaller for size in SHAPE)
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((size, RANK)) for size in shape)
    square = rng.standard_normal((RANK, RANK))
    for entries in (number // smaller for number in ENTRIES):
        # More entries in low rows and columns, like the stream.
        places = tuple((size * rng.random(entries) ** 2).astype(np.int32) for size in shape)
        host = scipy.sparse.csr_matrix((rng.standard_normal(entries), places), shape=shape)
        S, T = sparse(host), sparse(host.T.tocsr())
        for k in COLUMNS:
            size = f"{entries:,} entries, {k} column{'s' if k > 1 else ''}"
            Q, P = (array(np.ascontiguousarray(each[:, :k])) for each in (right, left))
            yield f"S Q, {size}", lambda S=S, Q=Q: S @ Q
            yield f"S' P, {size}", lambda T=T, P=P: T @ P
    U, V, W = map(array, (left, right, square))
    yield f"U' U, {RANK} columns", lambda: U.T @ U
    yield f"U W, {RANK} columns", lambda: U @ W
    yield f"column norms, {RANK} columns", lambda: xp.linalg.norm(U, None, 0)
    i, j = (array(rng.integers(size, size=LOOKED_UP // smaller)) for size in shape)
    yield f"{LOOKED_UP // smaller:,} look-ups, rank {RANK}", lambda: (U[i] * V[j]).sum(1)
    yield f"side by side, twice {RANK} columns", lambda: xp.concatenate((U, U), 1)
    for entries in (number // smaller for number in ENTRIES):
        keys = array(rng.integers(m * n, size=entries))
        yield f"sort of {entries:,} keys", lambda keys=keys: xp.sort(keys)
    small = array(np.zeros(8))
    yield f"{ADDITIONS} additions of 8 numbers", lambda: [small + 1 for _ in range(ADDITIONS)]
