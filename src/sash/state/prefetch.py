"""Prefetching: a loop over keys in random order prefetches later data, so that cache misses overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sash.state.jit import kernel  # noqa: F401  (sets numba's cache directory before numba is imported)
from sash.state.memory import Array

# isort: split
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 16
"""The prefetch distance in rows: enough to cover a miss to main memory."""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Type the call and emit LLVM's prefetch instruction for the element's address (for writing, all cache levels)."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type, index_type = signature.args
        view = context.make_array(array_type)(context, builder, arguments[0])
        place = context.cast(builder, arguments[1], index_type, types.intp)
        pointer = cgutils.get_item_pointer(context, builder, array_type, view, [place])  # type: ignore[no-untyped-call]
        address, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(ir.VoidType(), [address, word, word, word]), "llvm.prefetch.p0i8"
        )
        builder.call(function, [builder.bitcast(pointer, address), word(1), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, index), emit


prefetch = cast(Callable[[Array, Any], None], intrinsic(_prefetch))
"""In kernels: start loading array[index] into the cache. The index must be within the array."""
