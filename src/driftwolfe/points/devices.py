"""Devices: where arrays live, and the operations that depend on it; decompositions, counts, BLAS threads."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from threading import local
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick
from threadpoolctl import ThreadpoolController

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Shape, compiled

_kernels = compiled("driftwolfe.points.kernels")
#: Entries up to which scipy's conversions cost more than the work, and numbers of a product formed at a time.
_FEW_ENTRIES, _LARGEST_PRODUCT = 1000, 1 << 27


class Device:
    """The operations on large arrays that depend on where these live: here NumPy's, on the host.

    Large arrays (factors, entries) stay on their device; those as small as the rank of a matrix live on
    the host. A sparse matrix ("stored") is a `csr_array` of float64 with sorted, unique 32-bit indices.
    """

    #: As users write it: "cpu", "cuda", "cuda:1", "torch".
    name: str = "cpu"
    #: The library, of which functions are used that NumPy and PyTorch both have, and its name of the device.
    xp: Any = np
    place: Any = "cpu"
    #: Threads beyond which more only wait for each other.
    workers: float = math.inf
    #: Columns up to which small matrices go to the host, as each call of a device costs as much.
    gram_columns: int = 0

    def shares_calls(self, ranks: Sequence[int], shape: Shape) -> bool:
        """Return whether the leading triplets of factored matrices are found sooner together."""
        return False

    def put(self, array: Any) -> Any:
        """Bring an array here, from any device."""
        if type(array) is np.ndarray:
            return array
        checks.refuse_masked(array, "an array")
        return to_host(array)

    def host(self, array: Any) -> Any:
        """Bring an array of this device to the host."""
        return array

    def finite(self, value: Any, name: str, shape: Shape | None = None) -> Any:
        """Return a checked array of finite float64 numbers, here and contiguous by rows."""
        return np.ascontiguousarray(checks.finite_array(self.put(value), name, shape))

    def beside(self) -> AbstractContextManager[None]:
        """Return a context for a worker thread; its work ends before the caller's next work starts."""
        return nullcontext()

    def reduced_precision(self) -> AbstractContextManager[None]:
        """Return a context in which products in single precision may round their factors."""
        return nullcontext()

    def zeros(self, shape: Shape) -> Any:
        return self.xp.zeros(shape, dtype=self.xp.float64, device=self.place)

    def unit(self, size: int) -> Any:
        return self.xp.eye(size, dtype=self.xp.float64, device=self.place)

    def normal(self, rng: np.random.Generator, shape: Shape) -> Any:
        """Random numbers: if few, the host's; else drawn on the device from a seed."""
        return rng.standard_normal(shape)

    def by_rows(self, array: Any) -> Any:
        return np.ascontiguousarray(array)

    def single(self, array: Any) -> Any:
        return self.xp.asarray(array, dtype=self.xp.float32)

    def largest(self, array: Any) -> float:
        """The largest absolute value; 0 where there is none."""
        if not min(array.shape, default=1):
            return 0.0
        return float(self.xp.linalg.vector_norm(array, ord=math.inf))

    def summed(self, table: Any, groups: Any, number: int) -> Any:
        """The sums of a table's columns over groups, which are numbered."""
        return np.stack([np.bincount(groups, row, number) for row in table])

    def lengths(self, block: Any) -> Any:
        return np.sqrt(np.einsum("ij,ij->j", block, block))

    def unit_columns(self, block: Any) -> Any:
        """The same columns at unit length; zero columns stay zero."""
        return block / self.lengths(block).clip(min=self.xp.finfo(block.dtype).tiny)

    def inverse_cholesky(self, gram: Any) -> Any:
        """The inverse of the upper Cholesky factor; None, or not finite, where it has none."""
        try:
            upper = scipy.linalg.cholesky(gram, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        return scipy.linalg.lapack.dtrtri(upper)[0]

    def eigh(self, symmetric: Any) -> tuple[Array, Any]:
        """The eigenvalues of a symmetric matrix, falling and on the host, and its vectors."""
        values, vectors = eigh(self.host(symmetric))
        return values[::-1], self.put(vectors[:, ::-1])

    def entries(self, U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
        """The entries of U diag(s) V^T at pairs (rows[k], cols[k])."""
        out = np.empty(rows.size)
        _kernels().low_rank_entries(U, s, V, rows, cols, out)
        return out

    def stored(self, rows: Any, cols: Any, values: Any, shape: Shape) -> Any:
        """A sparse matrix of checked entries, by rows; entries given twice add up."""
        m, n = shape
        if not 0 < rows.size <= _FEW_ENTRIES:
            entries = scipy.sparse.coo_array((values, (rows, cols)), shape=shape)
            return self.canonical(entries, shape)
        keys = rows * n + cols
        order = keys.argsort(kind="stable")
        keys = keys[order]
        first = np.flatnonzero(np.diff(keys, prepend=-1))  # of each pair
        stored = copy.copy(empty_stored(shape))
        stored.indptr = keys[first].searchsorted(np.arange(m + 1) * n).astype(np.int32)
        stored.indices = (keys[first] % n).astype(np.int32)
        stored.data = np.add.reduceat(values[order], first)
        return stored

    def all_stored(self, array: Any) -> Any:
        """A dense array as a sparse matrix that stores every entry."""
        m, n = array.shape
        cols = np.tile(np.arange(n, dtype=np.int32), m)
        starts = np.arange(0, m * n + 1, n, dtype=np.int32)
        return scipy.sparse.csr_array((array.ravel(), cols, starts), shape=(m, n))

    def canonical(self, sparse: Any, shape: Shape) -> Any:
        """A sparse matrix of any kind, checked, brought here and by rows."""
        if hasattr(sparse, "on_host"):
            sparse = sparse.on_host()
        if not scipy.sparse.issparse(sparse):
            raise TypeError(
                f"sparse must be a scipy sparse matrix or None, got {type(sparse).__name__}"
            )
        if sparse.shape != shape:
            raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
        stored = scipy.sparse.csr_array(sparse, dtype=np.float64)
        stored.sum_duplicates()
        stored.indices = stored.indices.astype(np.int32, copy=False)  # a third less to read
        stored.indptr = stored.indptr.astype(np.int32, copy=False)
        return _finite(stored)

    def with_data(self, stored: Any, data: Any) -> Any:
        """The same indices with other values, without scipy's checks of what is known to fit."""
        other = copy.copy(stored)
        other.data = data
        return other

    def scaled(self, stored: Any, factor: float) -> Any:
        return self.with_data(stored, stored.data * factor)

    def added(self, one: Any, other: Any) -> Any:
        return _finite(one + other)

    def measures(self, stored: Any) -> tuple[float, ...]:
        """The largest absolute value of a sparse matrix's entries, and its Frobenius norm."""
        with np.errstate(over="ignore"):
            return self.largest(stored.data), float(np.linalg.norm(stored.data))

    def keys(self, stored: Any) -> Any:
        """The number row * n + col of every entry of a sparse matrix, rising."""
        (m, n), indptr = stored.shape, stored.indptr
        return np.repeat(np.arange(m) * n, indptr[1:] - indptr[:-1]) + stored.indices

    def stored_at(self, stored: Any, wanted: Any) -> Any:
        """The entries of a sparse matrix with these numbers, 0 where none is stored."""
        if not stored.nnz:
            return self.zeros((len(wanted),))
        keys = self.keys(stored)
        found = self.xp.searchsorted(keys, wanted).clip(max=stored.nnz - 1)
        return self.xp.where(keys[found] == wanted, stored.data[found], 0.0)

    def stored_product(self, one: Any, other: Any) -> float:
        """The inner product of two sparse matrices."""
        return float(other.data @ self.stored_at(one, self.keys(other)))

    def stored_inner(self, stored: Any, U: Any, s: Any, V: Any) -> float:
        """The inner product of a sparse matrix with U diag(s) V^T."""
        m, n = stored.shape
        if stored.nnz > m:
            step = max(1, _LARGEST_PRODUCT // m)  # PyTorch's products end at 2^31 numbers
            columns = (slice(k, k + step) for k in range(0, len(s), step))
            pairs = ((U[:, some] * s[some], stored @ V[:, some]) for some in columns)
            return sum(float(self.xp.vdot(one.ravel(), two.ravel())) for one, two in pairs)
        keys = self.keys(stored)
        return float(stored.data @ self.entries(U, s, V, keys // n, keys % n))

    def plus_product(self, product: Any, left: Any, right: Any) -> Any:
        """Add the product of two arrays to a new one."""
        return left @ right + product

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device_named, (self.name,)  # one object for each device, in copies too


def parts(stored: Any) -> tuple[Any, Any, Any]:
    """Return `indptr`, `indices` and `data` of a sparse matrix."""
    return stored.indptr, stored.indices, stored.data


@lru_cache(maxsize=8)
def empty_stored(shape: Shape) -> Any:
    """Return a sparse matrix to fill: scipy takes longer to make one than to copy it."""
    return scipy.sparse.csr_array(shape)


def _finite(stored: Any) -> Any:
    if not checks.all_finite(stored.data):
        raise ValueError("sparse has entries that are not finite")
    return stored


#: NumPy, SciPy and compiled loops.
HOST = Device()


def _in_range(matrix: Array) -> Array:
    """Return a matrix that LAPACK's quick routine failed on; refuse entries that are not numbers."""
    if not checks.all_finite(matrix):
        raise ValueError("a matrix leaves the range of numbers; use other units")
    return matrix


def svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Return the thin decomposition U, s, Vt with falling s, of a matrix or a stack of them."""
    try:
        U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:  # divide and conquer fails now and then; QR iteration is slower
        if matrix.ndim > 2:
            U, s, Vt = map(np.stack, zip(*map(svd, matrix), strict=True))
        else:
            how: dict[str, Any] = {"full_matrices": False, "lapack_driver": "gesvd"}
            U, s, Vt = scipy.linalg.svd(_in_range(matrix), **how)
    return U, s, Vt


def singular_values(matrix: Array) -> Array:
    """Return the singular values of a matrix, falling."""
    try:
        return np.asarray(np.linalg.svd(matrix, compute_uv=False), dtype=np.float64)
    except np.linalg.LinAlgError:
        return svd(matrix)[1]


def eigh(symmetric: Array) -> tuple[Array, Array]:
    """Return the eigenvalues of a symmetric matrix, rising, and its vectors in columns."""
    try:
        values, vectors = np.linalg.eigh(symmetric)
    except np.linalg.LinAlgError:
        values, vectors = scipy.linalg.eigh(_in_range(symmetric), driver="ev")
    return values, vectors


def thin_svd_of_product(U: Any, s: Array, V: Any) -> tuple[Any, Array, Any]:
    """Return the thin decomposition of U diag(s) V^T; cancelling factors cost no digits."""
    device = device_of(U)
    left, left_core = device.xp.linalg.qr(U)
    right, right_core = device.xp.linalg.qr(V)
    inner_u, values, inner_vt = svd((device.host(left_core) * s) @ device.host(right_core).T)
    return left @ device.put(inner_u), values, right @ device.put(inner_vt.T)


_products = local()


def count_products(number: int) -> None:
    """Add products with a matrix or its transpose; one with a block counts column by column."""
    _products.made = counted_products() + number


def counted_products() -> int:
    """Return the products that this thread has made, or as many as decompositions count for."""
    return getattr(_products, "made", 0)


@cache
def blas_libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded: NumPy's and SciPy's."""
    import scipy.linalg  # noqa: F401  its own BLAS must be loaded to be found

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread within a `with` block: on small matrices waking others takes longer than the work."""
    found = blas_libraries()
    if all(library.get_num_threads() == 1 for library in found.lib_controllers):
        return nullcontext()
    return found.limit(limits=1)


def device_of(array: Any) -> Device:
    """Return where an array lives; anything but a tensor lives, or will live, on the host."""
    if isinstance(array, np.ndarray) or not _is_tensor(array):
        return HOST
    return _torch_device(_name_of(array.device))


def namespace(array: Any) -> Any:
    """Return the library of an array: numpy or torch."""
    return device_of(array).xp


def is_array(value: Any) -> bool:
    """Return whether a value is an array of any device: NumPy's, or a tensor."""
    return isinstance(value, np.ndarray) or _is_tensor(value)


def to_host(array: Any) -> Any:
    """Return an array as NumPy's; anything else as it is."""
    return device_of(array).host(array)


def device_named(name: Any) -> Device:
    """Return the device of a name: "cpu", "torch" (PyTorch on the host), "cuda", "cuda:1", ..."""
    if name is None or name == "cpu":
        return HOST
    if not (isinstance(name, str) and re.fullmatch(r"torch|cuda(:\d{1,3})?", name)):
        raise ValueError(f'device must be "cpu", "cuda", "cuda:1" or the like, got {name!r}')
    return _torch_device("cuda" if name == "cuda:0" else name)


def best_device() -> Device:
    """Return the GPU where PyTorch is installed and finds one, else the host."""
    try:
        return device_named("cuda")
    except ValueError:
        return HOST


@cache
def _torch_device(name: str) -> Device:
    try:
        from driftwolfe.points.torch_device import TorchDevice
    except ImportError:
        raise ValueError(
            f'device "{name}" needs PyTorch: pip install "driftwolfe[gpu]", or use device="cpu"'
        ) from None
    return TorchDevice(name)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.startswith("torch") and hasattr(value, "layout")


@cache
def _name_of(device: Any) -> str:
    """Return driftwolfe's name of one of PyTorch's devices."""
    name = "torch" if device.type == "cpu" else str(device.type)
    return device_named(f"{name}:{device.index}" if device.index else name).name
