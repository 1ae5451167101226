"""Blocks of a flat index: a few index entries that one pass of vector instructions compares.

A block is :data:`BLOCK` 32-bit words: :data:`LANES` keys, then as many rows. Keys and rows of the
first :data:`ENTRIES` lanes are entries. A row is stored as its number plus one, so that a block of
zeros is empty. The last lane of the rows is the next block of the chain, 0 for none; the last lane
of the keys is the row (plus one) before which all rows of the next block lie.
"""

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
"""Lanes of a vector: 64 bytes, a cache line."""

BLOCK = 2 * LANES
"""Words of a block: two cache lines."""

ENTRIES = LANES - 1

SEALED = LANES - 1
"""Word of the row before which all rows of the next block lie."""

NEXT = BLOCK - 1
"""Word of the next block of the chain."""

_WORD = ir.IntType(32)
_WORDS = ir.VectorType(_WORD, LANES)
BITS = ir.IntType(LANES)
_MASK = ir.VectorType(ir.IntType(1), LANES)
IOTA = ir.Constant(_WORDS, list(range(LANES)))
_IS_ENTRY = ir.Constant(_MASK, [1] * ENTRIES + [0])
_COMPRESSES = llvm.llvm_version_info >= (19, 0, 0)
"""Whether the compiler knows how to move the chosen lanes of a vector to its front."""


def pointer_to(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, at: Any) -> Any:
    """Return where an element of an array lies."""
    view = context.make_array(kind)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, kind, view, [at], wraparound=False)


def _load(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, at: Any) -> Any:
    pointer = pointer_to(context, builder, kind, array, at)
    return builder.load(builder.bitcast(pointer, _WORDS.as_pointer()), align=4)


def _store(context: Any, builder: ir.IRBuilder, kind: Any, array: Any, at: Any, words: Any) -> None:
    pointer = pointer_to(context, builder, kind, array, at)
    builder.store(words, builder.bitcast(pointer, _WORDS.as_pointer()), align=4)


def splat(builder: ir.IRBuilder, word: Any, kind: ir.VectorType = _WORDS) -> Any:
    """Return a vector of equal words."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, word, ir.Constant(_WORD, 0))
    lanes = ir.VectorType(_WORD, kind.count)
    return builder.shuffle_vector(one, nothing, ir.Constant(lanes, None))


def store_chosen(
    context: Any, builder: ir.IRBuilder, kind: Any, array: Any, at: Any, words: Any, chosen: Any
) -> None:
    """Write the chosen lanes one after another; up to :data:`LANES` words are overwritten."""
    if _COMPRESSES:
        name = f"llvm.experimental.vector.compress.v{LANES}i32"
        function = ir.FunctionType(_WORDS, [_WORDS, _MASK, _WORDS])
        compress = cgutils.get_or_insert_function(builder.module, function, name)
        front = builder.call(compress, [words, chosen, ir.Constant(_WORDS, None)])
        _store(context, builder, kind, array, at, front)
        return
    for lane in range(LANES):
        number = ir.Constant(_WORD, lane)
        pointer = pointer_to(context, builder, kind, array, at)
        builder.store(builder.extract_element(words, number), pointer)
        at = builder.add(at, builder.zext(builder.extract_element(chosen, number), at.type))


@intrinsic
def matches_in(
    typing_context: Any,
    slots: Any,
    at: Any,
    low: Any,
    width: Any,
    first: Any,
    rows: Any,
    out: Any,
    out_at: Any,
    base: Any,
) -> Any:
    """Write the rows of a block that match, and return their count.

    Entries match with ``key - low <= width`` and ``row - first < rows`` (both modulo 2**32). What
    is written is ``row - base``; the next :data:`LANES` words of ``out`` are overwritten.
    """
    index, word = types.uintp, types.uint32
    signature = types.uint64(slots, index, word, word, word, word, out, index, word)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        kind = sig.args[0]
        keys = _load(context, builder, kind, args[0], args[1])
        behind = builder.add(args[1], ir.Constant(args[1].type, LANES))
        held = _load(context, builder, kind, args[0], behind)
        low, width, first, rows, base = (splat(builder, args[i]) for i in (2, 3, 4, 5, 8))
        hit = builder.icmp_unsigned("<=", builder.sub(keys, low), width)
        live = builder.icmp_unsigned("<", builder.sub(held, first), rows)
        chosen = builder.and_(builder.and_(hit, live), _IS_ENTRY)
        named = builder.sub(held, base)
        store_chosen(context, builder, sig.args[6], args[6], args[7], named, chosen)
        count = builder.ctpop(builder.bitcast(chosen, BITS))
        return builder.zext(count, ir.IntType(64))

    return signature, generate


@intrinsic
def fill(typing_context: Any, out: Any, at: Any, word: Any) -> Any:
    """Overwrite the next :data:`LANES` words of ``out``."""
    signature = types.void(out, types.uintp, types.uint32)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        _store(context, builder, sig.args[0], args[0], args[1], splat(builder, args[2]))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def move(typing_context: Any, source: Any, at: Any, out: Any, out_at: Any) -> Any:
    """Copy :data:`LANES` words."""
    signature = types.void(source, types.uintp, out, types.uintp)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        words = _load(context, builder, sig.args[0], args[0], args[1])
        _store(context, builder, sig.args[2], args[2], args[3], words)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def free_lane(typing_context: Any, slots: Any, at: Any, first: Any, rows: Any) -> Any:
    """Return the first lane whose row is none of the ``rows`` live ones, :data:`LANES` if none."""
    index, word = types.uintp, types.uint32
    signature = types.uint64(slots, index, word, word)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        behind = builder.add(args[1], ir.Constant(args[1].type, LANES))
        held = _load(context, builder, sig.args[0], args[0], behind)
        first, rows = (splat(builder, args[i]) for i in (2, 3))
        dead = builder.icmp_unsigned(">=", builder.sub(held, first), rows)
        lanes = builder.bitcast(builder.and_(dead, _IS_ENTRY), BITS)
        wide = builder.or_(builder.zext(lanes, _WORD), ir.Constant(_WORD, 1 << LANES))
        lane = builder.cttz(wide, ir.Constant(ir.IntType(1), 1))
        return builder.zext(lane, ir.IntType(64))

    return signature, generate
