"""Search, insertion and removal in one tree node, each a few vector instructions.

A node is :data:`NODE` elements of a flat array, ascending, padded with the type's largest value.
The operations are written in LLVM vectors, which every processor's back end lowers to what it has;
a loop over so few elements is unrolled before it could be vectorised.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

NODE = 32
"""Elements of a node: two cache lines of 32-bit keys, four of 64-bit entries."""

_LANE = ir.IntType(32)


def _vector(context: Any, builder: ir.IRBuilder, array_type: Any, array: Any, first: Any) -> Any:
    """Return a pointer to the node as a vector, and the bytes of an element."""
    view = context.make_array(array_type)(context, builder, array)
    address = cgutils.get_item_pointer(
        context, builder, array_type, view, [first], wraparound=False
    )
    element = context.get_data_type(array_type.dtype)
    pointer = builder.bitcast(address, ir.VectorType(element, NODE).as_pointer())
    return pointer, element.width // 8


def _splat(builder: ir.IRBuilder, value: Any) -> Any:
    single = ir.Constant(ir.VectorType(value.type, NODE), ir.Undefined)
    single = builder.insert_element(single, value, ir.Constant(_LANE, 0))
    return _shuffled(builder, single, single, [0] * NODE)


def _shuffled(builder: ir.IRBuilder, left: Any, right: Any, lanes: list[int]) -> Any:
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_LANE, NODE), lanes))


def _lanes(builder: ir.IRBuilder, slot: Any) -> Any:
    """Return the lanes' numbers, and a vector that has ``slot`` in every lane."""
    numbers = ir.Constant(ir.VectorType(_LANE, NODE), list(range(NODE)))
    return numbers, _splat(builder, builder.trunc(slot, _LANE))


@intrinsic
def count_below(typing_context: Any, array: Any, first: Any, value: Any) -> Any:
    """Count the elements of the node at ``array[first]`` that are below ``value``."""
    signature = types.uint64(array, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        pointer, align = _vector(context, builder, sig.args[0], args[0], args[1])
        below = builder.icmp_unsigned(
            "<", builder.load(pointer, align=align), _splat(builder, args[2])
        )
        return builder.zext(builder.ctpop(builder.bitcast(below, ir.IntType(NODE))), ir.IntType(64))

    return signature, generate


@intrinsic
def insert_at(typing_context: Any, array: Any, first: Any, slot: Any, value: Any) -> Any:
    """Insert ``value`` at a slot of the node at ``array[first]``; its last element is dropped."""
    signature = types.void(array, types.uintp, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        pointer, align = _vector(context, builder, sig.args[0], args[0], args[1])
        old = builder.load(pointer, align=align)
        moved = _shuffled(builder, old, old, [0, *range(NODE - 1)])
        numbers, here = _lanes(builder, args[2])
        new = builder.select(
            builder.icmp_unsigned("==", numbers, here), _splat(builder, args[3]), moved
        )
        new = builder.select(builder.icmp_unsigned("<", numbers, here), old, new)
        builder.store(new, pointer, align=align)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def remove_at(typing_context: Any, array: Any, first: Any, slot: Any, padding: Any) -> Any:
    """Remove the element at a slot of the node at ``array[first]``; ``padding`` is appended."""
    signature = types.void(array, types.uintp, types.uintp, array.dtype)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        pointer, align = _vector(context, builder, sig.args[0], args[0], args[1])
        old = builder.load(pointer, align=align)
        moved = _shuffled(builder, old, _splat(builder, args[3]), list(range(1, NODE + 1)))
        numbers, here = _lanes(builder, args[2])
        new = builder.select(builder.icmp_unsigned("<", numbers, here), old, moved)
        builder.store(new, pointer, align=align)
        return context.get_dummy_value()

    return signature, generate
