"""Loads of words from bytes, wherever they begin."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load_u64(typing_context: Any, data: Any, index: Any) -> Any:
    """Return the eight bytes from ``data[index]`` on; all of them must lie within."""

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        array_type = sig.args[0]
        view = context.make_array(array_type)(context, builder, args[0])
        byte = cgutils.get_item_pointer(
            context, builder, array_type, view, [args[1]], wraparound=False
        )
        word = builder.bitcast(byte, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(data, types.uintp), generate
