"""Compile loops with numba, cache them, and say so where it takes long."""

from __future__ import annotations

import gc
import hashlib
import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, cast

import numba
from numba.core import codegen, compiler
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.event import Listener, install_listener

from driftwolfe.points.kinds import Loading
from driftwolfe.terminal import Output


class CompileCacheWarning(UserWarning):
    """Compiled code could not be written to a cache, so every process compiles anew."""


@cache  # once in a process
def warn_of_no_cache() -> None:
    """Say that compiled code is not cached, and what to do about it."""
    warnings.warn(
        "driftwolfe found no folder to cache compiled code in, so every process compiles anew, for "
        "seconds; set NUMBA_CACHE_DIR to a folder that can be written",
        CompileCacheWarning,
        stacklevel=2,
    )


_locators: Any = CompileResultCacheImpl._locator_classes  # the first is that of NUMBA_CACHE_DIR


class ReadOnlyFolder(_locators[0]):  # type: ignore[misc]
    """NUMBA_CACHE_DIR where this user may only read, as in an image; numba takes folders that it can write to."""

    def ensure_cache_path(self) -> None:
        path = self.get_cache_path()
        if not os.path.isdir(path) or os.access(path, os.W_OK):
            raise OSError("no such folder, or one that can be written")


class ReadOnlyCache(FunctionCache):
    """Compiled code that is in such a folder."""

    _impl_class: Any = type("", (CompileResultCacheImpl,), {"_locator_classes": [ReadOnlyFolder]})


def _cache_of(function: Callable[..., Any]) -> Any:
    """Return where the compiled code of a function is kept."""
    kinds: Any = (ReadOnlyCache, FunctionCache)
    for kind in kinds:
        with suppress(RuntimeError):  # "no locator available"
            return kind(function)
    warn_of_no_cache()
    return NullCache()


class Announcement(Listener):
    """Says once that loops are compiled if that takes long; numba does not report those in its cache."""

    announced = False
    patience = 1.0  # seconds
    _seconds = _since = 0.0
    _depth = 0  # compiling a function compiles those that it calls

    def on_start(self, event: Any) -> None:
        if not self._depth:
            self._since = time.monotonic()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if not self._depth:
            self._seconds += time.monotonic() - self._since
        if self._seconds > self.patience and not self.announced:
            self.announced = True
            self._tell()

    def _tell(self) -> None:
        try:
            command = Output.command_line and parent_process() is None  # not each of its workers
            if command or sys.stderr.isatty() or "ipykernel" in sys.modules:
                words = "driftwolfe: compiling for the first use; the next start is quick"
                print(words, file=sys.stderr, flush=True)
        except (AttributeError, ValueError):  # there is no stderr, or it is closed
            pass


announcement = Announcement()

#: Arrays that are read: numbers, indices ("places"), matrices, stacks.
NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
PLACES = numba.types.Array(numba.int64, 1, "C", readonly=True)
TABLE = numba.types.Array(numba.float64, 2, "C", readonly=True)
STACK = numba.types.Array(numba.float64, 3, "C", readonly=True)
ANSWERS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
#: Arrays that are written to.
NEW_NUMBERS, NEW_PLACES, NEW_TABLE = numba.float64[::1], numba.int64[::1], numba.float64[:, ::1]
#: Scalars.
NUMBER, WHOLE, ANSWER = numba.float64, numba.int64, numba.boolean


class InlinedCode(codegen.JITCodeLibrary):
    """Code that is part of that of its callers: no machine code is made of it alone."""

    def _finalize_final_module(self) -> None:
        self._finalized = True


class PlainCompiler(compiler.CompilerBase):
    """Compiles plain loops in a third less time: without passes for closures, literals, exceptions and the like."""

    LEFT_OUT = (
        *("WithLifting", "InlineClosureLikes", "InlineInlinables", "InlineOverloads"),
        *("MakeFunctionToJitFunction", "RewriteDynamicRaises", "FindLiterallyCalls"),
        *("LiteralUnroll", "LiteralPropagationSubPipelinePass"),
        *("ReconstructSSA", "PreLowerStripPhis"),
    )

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        base, state = cast(Any, super()), self.state
        if not state.flags.no_cpython_wrapper:
            return base.compile_extra(func)
        state.flags.no_compile = True
        state.library = cast(Any, InlinedCode)(state.targetctx.codegen(), func.__qualname__)
        made = base.compile_extra(func)._replace(entry_point=object())  # callers know it by that
        state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made

    def define_pipelines(self) -> list[Any]:
        passes, manager = cast(Any, compiler.DefaultPassBuilder), cast(Any, PassManager)("plain")
        for each, words in passes.define_nopython_pipeline(self.state).passes:
            if each.__name__ not in self.LEFT_OUT:
                manager.add_pass(each, words)
        manager.finalize()
        return [manager]


def jit(*types: Any, allocates: bool = True, **options: Any) -> Any:
    """Return the decorator that compiles for these types when first called; without any, for compiled callers only.

    `loop.ready` compiles it now; `loop.unchecked` is quicker to call. A loop that makes no arrays, nor calls one
    that does, and has no array expressions, exceptions or names of several types, is to say so: it compiles in half
    the time.
    """
    # What is for compiled callers is in their code, which is cached.
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not types}
    options |= {"nogil": True, "error_model": "numpy"}
    if not allocates:
        options |= {"_nrt": False, "no_rewrites": True, "pipeline_class": PlainCompiler}

    def decorator(function: Callable[..., Any]) -> Any:
        if function.__module__ == Loading.module:  # see `kinds.interpreted`
            return function
        loop = numba.njit(**options)(function)
        if not hasattr(loop, "overloads"):  # NUMBA_DISABLE_JIT
            return loop
        if types:
            loop._cache = _cache_of(function)
        if not types and not allocates:
            loop.add_overload = lambda made: loop.overloads.update({made.signature.args: made})
        if types:
            loop.ready = partial(_make_ready, loop, types)
            # What numba calls to get code for arguments; those of other types are an error.
            loop._compile_for_args = lambda *given: loop.ready()
            loop.unchecked = lambda *given: loop.ready().unchecked(*given)
        return loop

    return decorator


def _make_ready(loop: Any, types: tuple[Any, ...]) -> Any:
    """Compile a loop for its types, or load it from the cache, unless that was done; return it."""
    with cast(
        Any, global_compiler_lock
    ):  # else threads that are second find that no more is compiled
        if "_compile_for_args" in vars(loop):
            _compile(loop, types)
    return loop


@cache
def _made_of(module: str) -> str:
    """Return a digest of a module's text, numbers and loops of others: numba looks at its own file only."""
    told = vars(sys.modules[module])
    numbers = [item for item in told.items() if isinstance(item[1], int | float | tuple)]
    others = {each.__module__ for each in told.values() if hasattr(each, "py_func")} - {module}
    parts = [repr(sorted(numbers)), *map(_made_of, sorted(others))]
    texts = [Path(path).read_bytes() for path in (told["__file__"], __file__)]
    return hashlib.sha256(b"".join([*texts, *map(str.encode, parts)])).hexdigest()


def _compile(loop: Any, types: tuple[Any, ...]) -> None:
    if file := getattr(loop._cache, "_cache_file", None):
        file._source_stamp = file._source_stamp, _made_of(loop.py_func.__module__)
    collects = gc.isenabled()
    gc.disable()  # a tenth of the time
    try:
        with install_listener("numba:compile", announcement):  # code of others is not announced
            try:
                loop.compile(types)
            except OSError:  # a full disk
                loop._cache = NullCache()
                warn_of_no_cache()
                loop.compile(types)
    finally:
        if collects:
            gc.enable()
    del loop._compile_for_args
    loop.disable_compile()
    loop.unchecked = loop.overloads[types].entry_point


def fast_jit(*types: Any, **options: Any) -> Any:
    """As `jit`, for sums that may be reordered, so that they run on vector units."""
    return jit(*types, fastmath={"reassoc", "contract", "nsz"}, **options)


def _pointer_to(scalar: Any) -> Any:
    """Return the compiled function that turns an address into a pointer to such scalars."""
    kind: Any = numba.types.CPointer

    @numba.extending.intrinsic
    def pointer(_: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.inttoptr(given[0], context.get_value_type(signature.return_type))

        return kind(scalar)(numba.int64), code

    return pointer


#: Addresses as pointers, for arrays by `numba.carray`: handing over many arrays takes longer than many loops.
numbers_at, places_at = _pointer_to(NUMBER), _pointer_to(WHOLE)


def _pointer(_: Any, given: Any, place: Any) -> Any:
    """Return the pointer to an element of an array, or of what a pointer points to."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        first = values[0]
        if isinstance(given, numba.types.Array):
            first = context.make_array(given)(context, builder, first).data
        return builder.gep(first, [values[1]])

    kind: Any = numba.types.CPointer
    return kind(given.dtype)(given, WHOLE), code


pointer: Any = numba.extending.intrinsic(_pointer)
