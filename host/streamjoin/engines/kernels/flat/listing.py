"""Lists of the rows that a thread has to do with, in arrival order.

Rows are marked, a byte each. Those of a vector of marks are listed in one step; a group's word
keeps which they were and how many were listed before, so that any row's place in the list is a
count of bits away. Which rows of the other stream arrived before a row is found by a comparison of
a vector of times with its own.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.blocks import (
    BITS,
    IOTA,
    LANES,
    MASK,
    pointer_to,
    splat,
    store_chosen,
)
from streamjoin.engines.kernels.jit import fused

Codes = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

U64 = np.uint64
TIMES = 8
"""Times of a vector."""

_MARKS = ir.VectorType(ir.IntType(8), LANES)
_MOMENTS = ir.VectorType(ir.IntType(64), TIMES)
_GROUP_BITS, _WITHIN = U64(4), U64(LANES - 1)


@intrinsic
def _list_group(typing_context: Any, marks: Any, at: Any, row: Any, rows: Any, to: Any) -> Any:
    """Write ``row`` plus the lane of each mark of a group, and return the marks as bits.

    The next :data:`LANES` words of ``rows`` are overwritten.
    """
    signature = types.uint64(marks, types.uintp, types.uint32, rows, types.uintp)

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        pointer = pointer_to(context, builder, sig.args[0], args[0], args[1])
        marks = builder.load(builder.bitcast(pointer, _MARKS.as_pointer()), align=1)
        chosen = builder.icmp_unsigned("!=", marks, ir.Constant(_MARKS, [0] * LANES))
        named = builder.add(splat(builder, args[2]), IOTA)
        store_chosen(context, builder, sig.args[3], args[3], args[4], named, chosen)
        return builder.zext(builder.bitcast(chosen, BITS), ir.IntType(64))

    return signature, generate


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    """Count the bits of a word that are set."""

    def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


def _counting(comparison: str) -> Any:
    """Return a function that counts how many of the next times compare so with a moment."""

    @intrinsic
    def count(typing_context: Any, ts: Any, at: Any, moment: Any) -> Any:
        def generate(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            pointer = pointer_to(context, builder, sig.args[0], args[0], args[1])
            times = builder.load(builder.bitcast(pointer, _MOMENTS.as_pointer()), align=8)
            moments = splat(builder, args[2], _MOMENTS)
            bits = builder.bitcast(
                builder.icmp_signed(comparison, times, moments), ir.IntType(TIMES)
            )
            return builder.ctpop(builder.zext(bits, ir.IntType(64)))

        return types.uint64(ts, types.uintp, types.int64), generate

    return count


_count_before = _counting("<")
_count_up_to = _counting("<=")


@fused
def rows_before(ts: Int64s, at: np.uint64, end: np.uint64, moment: int) -> np.uint64:
    """Return the first row from ``at`` to below ``end`` that is not before a moment, or ``end``."""
    while at < end and at + U64(TIMES) <= U64(len(ts)):
        count = _count_before(ts, at, moment)
        at += count
        if count < U64(TIMES):
            return min(at, end)
    while at < end and ts[at] < moment:
        at += U64(1)
    return min(at, end)


@fused
def rows_up_to(ts: Int64s, at: np.uint64, end: np.uint64, moment: int) -> np.uint64:
    """As :func:`rows_before`, for the first row that is after a moment."""
    while at < end and at + U64(TIMES) <= U64(len(ts)):
        count = _count_up_to(ts, at, moment)
        at += count
        if count < U64(TIMES):
            return min(at, end)
    while at < end and ts[at] <= moment:
        at += U64(1)
    return min(at, end)


@fused
def list_marked(
    marks: Bytes, at: np.uint64, count: np.uint64, rows: Codes, groups: Words, group: np.uint64
) -> np.uint64:
    """List the marked ones of ``count`` rows; return how many these are.

    Parameters
    ----------
    marks : ndarray of uint8
        A byte for each row from ``at`` on; up to :data:`LANES` more are overwritten.
    rows : ndarray of uint32
        Receives the rows from ``at`` on, and is overwritten like ``marks``.
    groups : ndarray of uint64
        Receives from ``group`` on the words for :func:`listed_before`: one for each begun
        :data:`LANES` rows, and one more.
    """
    for each in range(at + count, at + count + U64(LANES)):
        marks[each] = np.uint8(0)
    listed, all_groups = U64(0), (count + _WITHIN) >> _GROUP_BITS
    for each in range(all_groups):
        row = each << _GROUP_BITS
        bits = _list_group(marks, at + row, np.uint32(row), rows, at + listed)
        groups[group + each] = (listed << U64(LANES)) | bits
        listed += _ones(bits)
    groups[group + all_groups] = listed << U64(LANES)
    return listed


@fused
def listed_before(groups: Words, group: np.uint64, row: np.uint64) -> np.uint64:
    """Return how many rows before ``row`` are listed."""
    word = groups[group + (row >> _GROUP_BITS)]
    before = word & ((U64(1) << (row & _WITHIN)) - U64(1))
    return (word >> U64(LANES)) + _ones(before)
