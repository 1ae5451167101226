"""Atomic operations for kernels whose threads talk."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def fetch_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Add ``value`` to ``array[index]`` and return what was there, as one step.

    Relaxed ordering: what is built with it is read only after a barrier (the threads' join).
    """
    signature = array.dtype(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        array_type = sig.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        place = cgutils.get_item_pointer(
            context, builder, array_type, view, [args[1]], wraparound=False
        )
        return builder.atomic_rmw("add", place, args[2], "monotonic")

    return signature, generate
