"""Prefetching memory before it is needed, so that cache misses of many tuples overlap."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import kernel

AHEAD = 16
"""Tuples ahead of the current one whose memory is prefetched."""

AHEAD_WORDS = 256
"""Words ahead of what threads exchange that are prefetched: a line takes long to arrive."""


def _ask(builder: ir.IRBuilder, pointer: Any, write: bool) -> None:
    """Emit the instruction."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
    ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    # to read or write, to be kept in all caches, data
    flags = [ir.Constant(number, value) for value in (int(write), 3, 1)]
    builder.call(ask, [pointer, *flags])


def _asking(write: bool) -> Any:
    """Return the code generator of the instruction."""

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        array_type = sig.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        address = cgutils.get_item_pointer(
            context, builder, array_type, view, list(args[1:]), wraparound=False
        )
        _ask(builder, builder.bitcast(address, ir.IntType(8).as_pointer()), write)
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


@intrinsic
def prefetch_cell(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    """Prefetch the cache line of ``array[row, column]``."""
    return types.void(array, types.uintp, types.uintp), _asking(write=False)


@intrinsic
def _prefetch_address(typing_context: Any, address: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        _ask(builder, builder.inttoptr(args[0], ir.IntType(8).as_pointer()), write=False)
        return context.get_dummy_value()

    return types.void(types.int64), generate


@kernel
def prefetch_objects(addresses: NDArray[np.int64], size: int) -> None:
    """Prefetch Python's objects before they are read one after another.

    Parameters
    ----------
    addresses : ndarray of int64
        Where they are; an address of nothing does no harm.
    size : int
        Bytes of each object's beginning that are needed.
    """
    for row in range(len(addresses)):
        for part in range(0, size, 64):
            _prefetch_address(addresses[row] + part)
        _prefetch_address(addresses[row] + size - 1)
