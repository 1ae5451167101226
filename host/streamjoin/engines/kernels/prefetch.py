"""Prefetching memory before it is needed, so that cache misses of many tuples overlap."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

AHEAD = 16
"""Tuples ahead of the current one whose memory is prefetched."""


def _asking(write: bool) -> Any:
    """Return the code generator of the instruction."""

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        array_type = sig.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        address = cgutils.get_item_pointer(
            context, builder, array_type, view, [args[1]], wraparound=False
        )
        pointer = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # to read or write, to be kept in all caches, data
        flags = [ir.Constant(number, value) for value in (int(write), 3, 1)]
        builder.call(ask, [builder.bitcast(address, pointer), *flags])
        return context.get_dummy_value()

    return generate


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]``; the index may be out of bounds."""
    return types.void(array, types.uintp), _asking(write=False)


@intrinsic
def prefetch_to_write(typing_context: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of ``array[index]`` for writing, exclusively for this core."""
    return types.void(array, types.uintp), _asking(write=True)
