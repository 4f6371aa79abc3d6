"""How loops are compiled: serial, without the GIL, and with their types stated.

So all of a module is compiled when it is loaded, once on a machine, and nothing in the middle of a
game. Arrays that are only read may be read-only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba

from driftwolfe.points.compiling import announced, warn_of_no_cache

#: Read: vectors of numbers, of places and of answers, tables of numbers, and stacks of tables.
NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
PLACES = numba.types.Array(numba.int64, 1, "C", readonly=True)
ANSWERS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
TABLE = numba.types.Array(numba.float64, 2, "C", readonly=True)
STACK = numba.types.Array(numba.float64, 3, "C", readonly=True)
#: Written to.
NEW_NUMBERS, NEW_PLACES, NEW_TABLE = numba.float64[::1], numba.int64[::1], numba.float64[:, ::1]
#: Single ones.
NUMBER, WHOLE, ANSWER = numba.float64, numba.int64, numba.boolean


def jit(*types: Any, **options: Any) -> Any:
    """Return the decorator that compiles a function of these types.

    Without types: of any, but only to be called by compiled functions, which is less to compile.
    Where no cache can be written, it is compiled in every process anew.
    """
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not types}
    options |= {"nogil": True, "error_model": "numpy"}
    return partial(_compile, partial(numba.njit, types or None, **options))


def _compile(decorator: Callable[..., Any], function: Callable[..., Any]) -> Any:
    with announced():
        try:
            return decorator(cache=True)(function)
        except (RuntimeError, OSError):  # "no locator available", or a full disk
            uncached = decorator(cache=False)(function)
    warn_of_no_cache()
    return uncached


def fast_jit(*types: Any) -> Any:
    """As `jit`, for sums that may be reordered, so that they run on vector units."""
    return jit(*types, fastmath={"reassoc", "contract", "nsz"})
