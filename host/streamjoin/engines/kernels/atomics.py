"""Atomic operations for kernels whose threads talk."""

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _place(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, index: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, view, [index], wraparound=False)


@intrinsic
def fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]`` and return what was there, as one step.

    Relaxed ordering: what is built with it is read only after a barrier (the threads' join).
    """
    signature = array.dtype(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig.args[0], *args[:2])
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return signature, generate


@intrinsic
def load_acquire(typing_context: Any, array: Any, index: Any) -> Any:
    """Read ``array[index]``; what was written before its store is seen after this."""
    signature = array.dtype(array, types.uintp)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig.args[0], *args)
        return builder.load_atomic(place, "acquire", sig.args[0].dtype.bitwidth // 8)

    return signature, generate


@intrinsic
def store_release(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Write ``array[index]`` after all that was written before."""
    signature = types.void(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig.args[0], *args[:2])
        builder.store_atomic(args[2], place, "release", sig.args[0].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def pause(typing_context: Any) -> Any:
    """Tell the processor that this thread spins, where there is a way to."""
    signature = types.void()

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        if platform.machine() in {"x86_64", "AMD64"}:
            kind = ir.FunctionType(ir.VoidType(), [])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(hint, [])
        return context.get_dummy_value()

    return signature, generate
