"""Probing the opposite window's index with an arriving tuple, and checking the candidates.

Rows of both streams share one numbering: those of S follow those of R. A column of the index is one
array for both, and a row number identifies the stream.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused, kernel
from streamjoin.engines.kernels.trees.btree import NO_NODE, NOTHING, WIDTH, Forest, find_leaf
from streamjoin.engines.kernels.trees.immutable import COUNT, ROW, SHAPE_WORDS, Sorted, first_entry
from streamjoin.engines.kernels.trees.nodes import count_below

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64


class Columns(NamedTuple):
    """The codes of the predicate, and those of its indexed term.

    Attributes
    ----------
    keys : ndarray of uint32, shape (r rows + s rows,)
        Index key of each tuple.
    lows, highs : ndarray of uint32, shape (r rows + s rows,)
        Range of opposite keys, both ends included, that a tuple can join with.
    r : ndarray of uint32, shape (terms, r rows)
    s_lo, s_hi : ndarray of uint32, shape (terms, s rows)
        The whole predicate (:class:`~streamjoin.engines.encode.IntervalCodes`).
    checked : bool
        Whether a candidate has to be checked against the whole predicate.
    """

    keys: Codes
    lows: Codes
    highs: Codes
    r: Codes
    s_lo: Codes
    s_hi: Codes
    checked: bool


class Arrivals(NamedTuple):
    """Tuples of both streams in arrival order.

    Attributes
    ----------
    rows : ndarray of int64, shape (arrivals,)
        Row numbers.
    firsts, ends : ndarray of int64, shape (arrivals,)
        The opposite window at each arrival: rows ``first`` to below ``end``.
    expired : ndarray of int64, shape (arrivals,)
        First row of its own stream that is live after it.
    """

    rows: Int64s
    firsts: Int64s
    ends: Int64s
    expired: Int64s


@fused
def entry_of(key: np.uint32, row: np.uint64) -> np.uint64:
    """Pack an index entry."""
    return U64(key) << U64(32) | row


@fused
def joins(columns: Columns, row: np.uint64, other: np.uint64) -> bool:
    """Whether two tuples satisfy the whole predicate."""
    r_rows = U64(columns.r.shape[1])
    r_row = min(row, other)
    s_row = max(row, other) - r_rows
    hit = True
    for term in range(U64(columns.r.shape[0])):
        key = columns.r[term, r_row]
        hit &= (columns.s_lo[term, s_row] <= key) & (key <= columns.s_hi[term, s_row])
    return hit


@fused
def offer(
    columns: Columns,
    row: np.uint64,
    other: np.uint64,
    first: np.uint64,
    end: np.uint64,
    out: Codes,
    matches: np.uint64,
) -> np.uint64:
    """Write a candidate if it is in the window and joins; return the number of matches so far.

    A match beyond the room is counted, not written; the arrival must then be repeated.
    """
    if (other >= first) & (other < end):
        hit = True
        if columns.checked:
            hit = joins(columns, row, other)
        if hit:
            if matches < U64(out.shape[1]):
                out[U64(0), matches] = U32(min(row, other))
                out[U64(1), matches] = U32(max(row, other) - U64(columns.r.shape[1]))
            matches += U64(1)
    return matches


@fused
def scan_sorted(
    columns: Columns,
    row: np.uint64,
    first: np.uint64,
    end: np.uint64,
    trees: Sorted,
    tree: np.uint64,
    index: np.uint64,
    out: Codes,
    matches: np.uint64,
) -> np.uint64:
    """Offer an immutable tree's entries from an index on, up to the tuple's highest key."""
    stop = first_entry(trees, tree) + trees.shapes[tree * SHAPE_WORDS + COUNT]
    highest = entry_of(columns.highs[row], ROW)
    room = U64(out.shape[1])
    while index < stop and trees.entries[index] <= highest and matches <= room:
        other = trees.entries[index] & ROW
        matches = offer(columns, row, other, first, end, out, matches)
        index += U64(1)
    return matches


@fused
def scan_tree(
    columns: Columns,
    row: np.uint64,
    first: np.uint64,
    end: np.uint64,
    forest: Forest,
    tree: np.uint64,
    out: Codes,
    matches: np.uint64,
) -> np.uint64:
    """Offer a mutable tree's entries in the tuple's range of keys."""
    if forest.roots[tree] != NO_NODE:
        lowest, highest = entry_of(columns.lows[row], U64(0)), entry_of(columns.highs[row], ROW)
        room = U64(out.shape[1])
        leaf = find_leaf(forest, tree, lowest)
        index = leaf * WIDTH + count_below(forest.leaves, leaf * WIDTH, lowest)
        stop = leaf * WIDTH + WIDTH
        going = True
        while going and matches <= room:
            entry = forest.leaves[index] if index < stop else NOTHING
            if entry <= highest and entry != NOTHING:
                matches = offer(columns, row, entry & ROW, first, end, out, matches)
                index += U64(1)
            elif entry == NOTHING and forest.nexts[leaf] != NO_NODE:
                leaf = U64(forest.nexts[leaf])
                index, stop = leaf * WIDTH, leaf * WIDTH + WIDTH
            else:
                going = False
    return matches


@kernel
def reach(
    s_lo: Codes, s_hi: Codes, r: Codes, shift: int, widest: int, starts: Codes, lows: Codes
) -> None:
    """Compute for each R tuple the minimum ``s_lo`` of the S intervals that may hold it.

    An S tuple is indexed by the lower end of its interval. An interval that holds ``r`` starts at
    or below ``r``, and not below the minimum start of all intervals that end at ``r`` or above.
    Equal widths in values are unequal in codes of float32 and in ranks, so this minimum is
    tabulated for steps of ``2**shift`` codes.

    Parameters
    ----------
    s_lo, s_hi : ndarray of uint32, shape (s rows,)
        Intervals; empty ones (``lo > hi``) are ignored.
    r : ndarray of uint32, shape (r rows,)
    shift : int
        log2 of the codes in a step.
    widest : int
        Maximum ``s_hi - s_lo``.
    starts : ndarray of uint32, shape (steps,)
        Work space: minimum start by step.
    lows : ndarray of uint32, shape (r rows,)
        Receives the result; the largest code where no interval holds the tuple.
    """
    down, longest = U64(shift), U64(widest)
    starts[:] = U32(0xFFFFFFFF)
    for row in range(U64(len(s_lo))):
        if s_lo[row] <= s_hi[row]:
            step = U64(s_hi[row]) >> down
            starts[step] = min(starts[step], s_lo[row])
    for back in range(U64(1), U64(len(starts))):
        step = U64(len(starts)) - U64(1) - back
        starts[step] = min(starts[step], starts[step + U64(1)])
    for row in range(U64(len(r))):
        code = U64(r[row])
        low = U32(0xFFFFFFFF)
        if code >> down < U64(len(starts)):
            low = max(starts[code >> down], U32(code - min(code, longest)))
        lows[row] = low
