"""One BLAS thread for small matrices: waking others takes longer than the work and keeps cores busy."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded: NumPy's and SciPy's."""
    import scipy.linalg  # noqa: F401  its own BLAS must be loaded to be found

    return ThreadpoolController().select(user_api="blas")


def one_blas_thread() -> AbstractContextManager[Any]:
    """Let BLAS use one thread within a `with` block, which takes 20 microseconds unless it does so anyway."""
    found = libraries()
    if all(library.get_num_threads() == 1 for library in found.lib_controllers):
        return nullcontext()
    return found.limit(limits=1)
