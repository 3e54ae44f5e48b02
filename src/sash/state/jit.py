"""Compilation of kernels (numba's cache directory is set before numba is imported), and growing and prefetching in them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from sash.cache import loops_directory

if "NUMBA_CACHE_DIR" not in os.environ:
    _here = Path(__file__).parent
    os.environ["NUMBA_CACHE_DIR"] = str(loops_directory((_here, _here.parent / "operators", _here.parent / "avro")))

# isort: split
# numba reads its cache directory when it is imported.
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from sash.state.memory import Array

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; compiled code is cached on disk, and calls release the interpreter lock."""
    return cast(_Function, numba.njit(function, cache=True, nogil=True))


def uncounted(function: _Function) -> _Function:
    """As `kernel`, without reference counting, for a loop that creates no arrays."""
    options: dict[str, Any] = {"cache": True, "nogil": True, "_nrt": False}
    return cast(_Function, numba.njit(**options)(function))


def inlined(function: _Function) -> _Function:
    """A small step of a hot loop, inlined into its callers: a call would count references to its arrays."""
    return cast(_Function, numba.njit(function, cache=True, nogil=True, inline="always"))


@kernel
def grown(array: Array, size: int) -> Array:
    """The array itself if it has `size` elements, else a copy at least twice as long."""
    if len(array) >= size:
        return array
    larger = np.empty(max(2 * len(array), size), array.dtype)
    larger[: len(array)] = array
    return larger


AHEAD = 16
"""The prefetch distance in rows, enough to cover a miss to main memory.

A loop over keys in random order prefetches the data of later rows, so that cache misses overlap.
"""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Type the call and emit LLVM's prefetch instruction for the element's address (for writing, all cache levels)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, index_type = signature.args
        view = context.make_array(array_type)(context, builder, arguments[0])
        position = context.cast(builder, arguments[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, view, [position])  # type: ignore[no-untyped-call]
        address, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(ir.VoidType(), [address, word, word, word]), "llvm.prefetch.p0i8"
        )
        builder.call(function, [builder.bitcast(pointer, address), word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), emit


prefetch = cast(Callable[[Array, Any], None], intrinsic(_prefetch))
"""In kernels: start loading array[index] into the cache. The index must be within the array."""
