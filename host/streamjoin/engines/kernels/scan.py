"""Scans of one tuple over a stretch of the opposite stream, on interval codes.

A block of the stretch is first counted without a branch, which vectorises; only a block that
holds a match is looked at again, part by part, to write it down.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
BLOCK_TUPLES = U64(512)
PART_TUPLES = U64(32)

# What makes LLVM vectorise the loops of _count (a factor of 20): unsigned indices, which need no
# test for negative ones, counting from zero, and 32-bit sums. It is inlined because a call with
# arrays counts references, 80 ns each time.


@inlined
def _count(
    r: Codes,
    s_lo: Codes,
    s_hi: Codes,
    of_s: bool,
    row: np.uint64,
    first: np.uint64,
    length: np.uint64,
) -> np.uint32:
    """Count the tuples of a block of the opposite stream that join with one tuple."""
    hits = U32(0)
    terms = r.shape[0]
    if terms == 1 and of_s:
        lo, hi = s_lo[U64(0), row], s_hi[U64(0), row]
        for place in range(length):
            key = r[U64(0), first + place]
            hits += U32((lo <= key) & (key <= hi))
    elif terms == 1:
        key = r[U64(0), row]
        for place in range(length):
            lo, hi = s_lo[U64(0), first + place], s_hi[U64(0), first + place]
            hits += U32((lo <= key) & (key <= hi))
    elif terms == 2 and of_s:
        lo, hi = s_lo[U64(0), row], s_hi[U64(0), row]
        lo_1, hi_1 = s_lo[U64(1), row], s_hi[U64(1), row]
        for place in range(length):
            key, key_1 = r[U64(0), first + place], r[U64(1), first + place]
            hits += U32((lo <= key) & (key <= hi) & (lo_1 <= key_1) & (key_1 <= hi_1))
    elif terms == 2:
        key, key_1 = r[U64(0), row], r[U64(1), row]
        for place in range(length):
            lo, hi = s_lo[U64(0), first + place], s_hi[U64(0), first + place]
            lo_1, hi_1 = s_lo[U64(1), first + place], s_hi[U64(1), first + place]
            hits += U32((lo <= key) & (key <= hi) & (lo_1 <= key_1) & (key_1 <= hi_1))
    else:
        for place in range(length):
            r_row, s_row = (first + place, row) if of_s else (row, first + place)
            hit = True
            for term in range(U64(terms)):
                key = r[term, r_row]
                hit &= (s_lo[term, s_row] <= key) & (key <= s_hi[term, s_row])
            hits += U32(hit)
    return hits


@kernel
def scan_stretch(
    r: Codes,
    s_lo: Codes,
    s_hi: Codes,
    is_s: NDArray[np.bool_],
    rows: Int64s,
    firsts: Int64s,
    ends: Int64s,
    arrival: int,
    offset: int,
    out_r: Codes,
    out_s: Codes,
) -> tuple[int, int, int]:
    """Join arriving tuples, in order, with their stretches until the output is full; resumable.

    Parameters
    ----------
    r : ndarray of uint32, shape (terms, r rows)
        Codes of R.
    s_lo, s_hi : ndarray of uint32, shape (terms, s rows)
        Interval of codes that joins with each S tuple.
    is_s, rows : ndarray, shape (arrivals,)
        The arriving tuples: side and row.
    firsts, ends : ndarray of int64, shape (arrivals,)
        Rows of the opposite stream that each meets.
    arrival, offset : int
        Where to go on: place among the arrivals, rows of its stretch already done.
    out_r, out_s : ndarray of uint32, same shape
        Receive the pairs, grouped by arrival, ascending within.

    Returns
    -------
    arrival, offset : int
        Where to go on; ``arrival == len(rows)`` when done.
    found : int
        Pairs written.
    """
    room = len(out_r) - 1  # one place more may be written than is kept
    found = 0
    while arrival < len(rows):
        row, of_s = U64(rows[arrival]), is_s[arrival]
        first, end = U64(firsts[arrival]), U64(ends[arrival])
        block = first + U64(offset)
        while block < end:
            block_end = min(block + BLOCK_TUPLES, end)
            hits = _count(r, s_lo, s_hi, of_s, row, block, block_end - block)
            if hits > U32(0):
                if found + hits > room:
                    return arrival, int(block - first), found
                part = block
                while part < block_end:
                    length = min(PART_TUPLES, block_end - part)
                    if _count(r, s_lo, s_hi, of_s, row, part, length) > U32(0):
                        # Written every time, kept when it is a match: no branch to mispredict.
                        for place in range(length):
                            r_row, s_row = (part + place, row) if of_s else (row, part + place)
                            hit = True
                            for term in range(U64(r.shape[0])):
                                key = r[term, r_row]
                                hit &= (s_lo[term, s_row] <= key) & (key <= s_hi[term, s_row])
                            out_r[found] = U32(r_row)
                            out_s[found] = U32(s_row)
                            found += hit
                    part += length
            block = block_end
        arrival += 1
        offset = 0
    return arrival, 0, found
