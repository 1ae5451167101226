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
def _search(ts: Int64s, rows: tuple[np.uint64, np.uint64], moment: int, or_at: bool) -> np.uint64:
    """Return the first of these rows that is not before a moment, or at it if ``or_at``."""
    low, high = rows
    while low < high:
        middle = (low + high) >> U64(1)
        if ts[middle] < moment or (or_at and ts[middle] == moment):
            low = middle + U64(1)
        else:
            high = middle
    return low


@fused
def _advance(ts: Int64s, at: np.uint64, end: np.uint64, moment: int, or_at: bool) -> np.uint64:
    """As :func:`_search`, where the row is likely to be among the next few from ``at`` on."""
    while at + U64(TIMES) <= end:
        count = _count_up_to(ts, at, moment) if or_at else _count_before(ts, at, moment)
        at += count
        if count < U64(TIMES):
            return at
    return _search(ts, (at, end), moment, or_at)


@fused
def _place(
    ts: Int64s,
    first: np.uint64,
    met_ts: Int64s,
    met: tuple[np.uint64, np.uint64],
    or_at: bool,
    rows: Codes,
    places: Codes,
    listed: np.uint64,
    before: np.uint64,
) -> np.uint64:
    """Write how many of the other stream's rows arrived before a listed one."""
    before = _advance(met_ts, before, met[1], ts[first + U64(rows[listed])], or_at)
    places[listed] = np.uint32(before - met[0])
    return before


@fused
def place(
    r_ts: Int64s,
    s_ts: Int64s,
    r_rows: tuple[np.uint64, np.uint64],
    s_rows: tuple[np.uint64, np.uint64],
    r_listed: tuple[np.uint64, np.uint64],
    s_listed: tuple[np.uint64, np.uint64],
    rows: Codes,
    places: Codes,
) -> None:
    """Write how many of the other stream's rows arrived before each listed one.

    Each step needs the one before. So both halves of both lists are done side by side; steps beyond
    the end of a shorter one are done again.

    Parameters
    ----------
    r_ts, s_ts : ndarray of int64
        Arrival times; at equal times R precedes S.
    r_rows, s_rows : tuple of int
        First and end row.
    r_listed, s_listed : tuple of int
        Where rows are listed, and how many.
    rows : ndarray of uint32
        The lists: rows from the first one on.
    places : ndarray of uint32
        Receives the counts beside the rows.
    """
    r_half, s_half = (r_listed[1] + U64(1)) >> U64(1), (s_listed[1] + U64(1)) >> U64(1)
    r_other, s_other = r_listed[0] + r_listed[1] - r_half, s_listed[0] + s_listed[1] - s_half
    r_1, r_2, s_1, s_2 = s_rows[0], s_rows[0], r_rows[0], r_rows[0]
    if r_half:
        r_2 = _search(s_ts, s_rows, r_ts[r_rows[0] + U64(rows[r_other])], False)
    if s_half:
        s_2 = _search(r_ts, r_rows, s_ts[s_rows[0] + U64(rows[s_other])], True)
    for each in range(max(r_half, s_half)):
        if r_half:
            at = U64(min(each, r_half - U64(1)))
            first = r_rows[0]
            r_1 = _place(r_ts, first, s_ts, s_rows, False, rows, places, r_listed[0] + at, r_1)
            r_2 = _place(r_ts, first, s_ts, s_rows, False, rows, places, r_other + at, r_2)
        if s_half:
            at = U64(min(each, s_half - U64(1)))
            first = s_rows[0]
            s_1 = _place(s_ts, first, r_ts, r_rows, True, rows, places, s_listed[0] + at, s_1)
            s_2 = _place(s_ts, first, r_ts, r_rows, True, rows, places, s_other + at, s_2)


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
