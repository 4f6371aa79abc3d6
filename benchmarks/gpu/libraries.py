"""The same primitives in PyTorch and in CuPy: why the library uses PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
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

Job = Callable[[], Any]


class Library(NamedTuple):
    """A library's name, namespace, and constructors of arrays and sparse matrices."""

    name: str
    xp: Any
    array: Callable[[Any], Any]
    sparse: Callable[[Any], Any]


def libraries(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Milliseconds of every primitive, by library."""
    found = _installed(setting)
    rows = []
    for name, build in _primitives(SMALLER if setting.short else 1):
        row: dict[str, Any] = {"name": name}
        for library in found:
            row[library.name] = median_ms(build(library), setting.device)
        rows.append(row)
    versions = {library.name: library.xp.__version__ for library in found}
    return {"versions": versions, "milliseconds": rows}


def _installed(setting: Setting) -> list[Library]:
    """PyTorch, and CuPy if it is installed and there is a GPU."""
    found = [Library("torch", torch, *_of_torch(setting.place))]
    try:
        cupy, sparse = import_module("cupy"), import_module("cupyx.scipy.sparse")
    except ImportError:
        return found
    if setting.on_gpu:
        found.append(Library("cupy", cupy, cupy.asarray, sparse.csr_matrix))
    return found


def _of_torch(place: torch.device) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    def array(values: Any) -> Any:
        return torch.as_tensor(values).to(place)

    def sparse(matrix: Any) -> Any:
        parts = map(array, (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(*parts, matrix.shape)

    return array, sparse


def _primitives(smaller: int) -> Iterator[tuple[str, Callable[[Library], Job]]]:
    """Every primitive's name, and a function that makes a job of it for a library."""
    shape = tuple(size // smaller for size in SHAPE)
    rng = np.random.default_rng(0)
    U, V = (rng.standard_normal((size, RANK)) for size in shape)
    square = rng.standard_normal((RANK, RANK))
    for entries in (number // smaller for number in ENTRIES):
        matrix = _popular(rng, shape, entries)
        turned = matrix.T.tocsr()
        for k in COLUMNS:
            size = f"{entries:,} entries, {k} column{'s' if k > 1 else ''}"
            yield f"S Q, {size}", partial(_sparse, matrix, V[:, :k])
            yield f"S' P, {size}", partial(_sparse, turned, U[:, :k])
    yield f"U' U, {RANK} columns", partial(_gram, U)
    yield f"U W, {RANK} columns", partial(_product, U, square)
    yield f"column norms, {RANK} columns", partial(_norms, U)
    places = [rng.integers(size, size=LOOKED_UP // smaller) for size in shape]
    yield f"{LOOKED_UP // smaller:,} look-ups, rank {RANK}", partial(_look_up, U, V, *places)
    yield f"side by side, twice {RANK} columns", partial(_side_by_side, U)
    for entries in (number // smaller for number in ENTRIES):
        keys = rng.integers(shape[0] * shape[1], size=entries)
        yield f"sort of {entries:,} keys", partial(_sort, keys)
    yield f"{ADDITIONS} additions of 8 numbers", _additions


def _popular(rng: np.random.Generator, shape: tuple[int, ...], entries: int) -> Any:
    """A sparse matrix with more entries in low rows and columns, like the stream."""
    places = tuple((size * rng.random(entries) ** 2).astype(np.int32) for size in shape)
    return scipy.sparse.csr_matrix((rng.standard_normal(entries), places), shape=shape)


def _sparse(matrix: Any, block: Any, library: Library) -> Job:
    left, right = library.sparse(matrix), library.array(np.ascontiguousarray(block))
    return lambda: left @ right


def _gram(block: Any, library: Library) -> Job:
    U = library.array(block)
    return lambda: U.T @ U


def _product(block: Any, square: Any, library: Library) -> Job:
    U, W = library.array(block), library.array(square)
    return lambda: U @ W


def _norms(block: Any, library: Library) -> Job:
    U = library.array(block)
    return lambda: library.xp.linalg.norm(U, None, 0)


def _look_up(left: Any, right: Any, rows: Any, cols: Any, library: Library) -> Job:
    U, V, i, j = map(library.array, (left, right, rows, cols))
    return lambda: (U[i] * V[j]).sum(1)


def _side_by_side(block: Any, library: Library) -> Job:
    U = library.array(block)
    return lambda: library.xp.concatenate((U, U), 1)


def _sort(keys: Any, library: Library) -> Job:
    own = library.array(keys)
    return lambda: library.xp.sort(own)


def _additions(library: Library) -> Job:
    small = library.array(np.zeros(8))
    return lambda: [small + 1 for _ in range(ADDITIONS)]
