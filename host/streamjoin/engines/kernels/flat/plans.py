"""Plans: for each arrival, what it looks up and where it is inserted.

A plan is made for any interval of a batch's arrivals without the ones before, so threads make parts
of one batch's plan.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, Words, block_of
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.sliding.numbering import COUNT, TUMBLING

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW, FIRST, SPAN, EXPIRED, OWN, LOW_BLOCK, HIGH_BLOCK, LOW, WIDTH = range(9)
"""Rows of a plan: own row plus one, first row met plus one, rows met, first live row of its own
stream plus one, block to insert into (:data:`NOWHERE` if no arrival can match it), blocks to look
up, lowest code to look up, and how many more."""

PLAN_ROWS = 9
NOWHERE = U32(0xFFFFFFFF)


class Keys(NamedTuple):
    """Index key and range to look up of every tuple; empty ranges have ``low > high``.

    Attributes
    ----------
    r_keys, s_keys : ndarray of uint32
    r_lows, r_highs, s_lows, s_highs : ndarray of uint32
        Ranges of the opposite keys.
    reach : int
        How much further up the ranges of R reach.
    """

    r_keys: Codes
    r_lows: Codes
    r_highs: Codes
    s_keys: Codes
    s_lows: Codes
    s_highs: Codes
    reach: int


class Times(NamedTuple):
    """Arrival times of both streams, the window, and the rows that were joined before."""

    r_ts: Int64s
    s_ts: Int64s
    kind: int
    r_length: int
    s_length: int
    r_carried: int
    s_carried: int


@fused
def _first_after(ts: Int64s, moment: int) -> int:
    """Return the first row whose time is above a moment."""
    low, high = 0, len(ts)
    while low < high:
        middle = (low + high) // 2
        if ts[middle] <= moment:
            low = middle + 1
        else:
            high = middle
    return low


@fused
def _r_rows_among(times: Times, r_first: int, s_first: int, arrivals: int) -> int:
    """Return how many of the next arrivals are of R; at equal times R precedes S."""
    low = max(0, arrivals - (len(times.s_ts) - s_first))
    high = min(arrivals, len(times.r_ts) - r_first)
    while low < high:
        middle = (low + high) // 2
        if times.r_ts[r_first + middle] <= times.s_ts[s_first + arrivals - middle - 1]:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def plan(
    times: Times,
    keys: Keys,
    tables: Words,
    cuts: Words,
    begin: tuple[int, int],
    first: int,
    end: int,
    out: Codes,
) -> None:
    """Plan the arrivals ``first`` to below ``end`` of a batch.

    Parameters
    ----------
    times, keys
        The input.
    tables, cuts
        The maps of R's and of S's index.
    begin : tuple of int
        Rows of R and of S with which the batch begins.
    first, end : int
        Arrivals to plan.
    out : ndarray of uint32, shape (PLAN_ROWS, arrivals)
        Receives the plan.
    """
    r_rows, s_rows = len(times.r_ts), len(times.s_ts)
    kind, r_length, s_length = times.kind, times.r_length, times.s_length
    of_r_before = _r_rows_among(times, begin[0], begin[1], first)
    at_r, at_s = begin[0] + of_r_before, begin[1] + first - of_r_before
    r_live, s_live = 0, 0
    searched = False
    of_s, of_both = U64(CUT_WORDS), U64(r_rows)
    for arrival in range(first, end):
        is_r = at_s == s_rows or (at_r < r_rows and times.r_ts[at_r] <= times.s_ts[at_s])
        now = times.r_ts[at_r] if is_r else times.s_ts[at_s]
        if kind == COUNT:
            r_live = max(0, at_r + int(is_r) - r_length)
            s_live = max(0, at_s + int(not is_r) - s_length)
        elif kind != 0:
            r_dead, s_dead = now - r_length, now - s_length
            if kind == TUMBLING:
                r_dead = s_dead = now // r_length * r_length - 1
            if not searched:
                r_live, s_live = _first_after(times.r_ts, r_dead), _first_after(times.s_ts, s_dead)
                searched = True
            while r_live < r_rows and times.r_ts[r_live] <= r_dead:
                r_live += 1
            while s_live < s_rows and times.s_ts[s_live] <= s_dead:
                s_live += 1
        if is_r:
            key, low, high = keys.r_keys[at_r], keys.r_lows[at_r], keys.r_highs[at_r]
            empty = low > high
            high = U32(min(U64(high) + U64(keys.reach), U64(0xFFFFFFFF)))
            spans = at_s - s_live if at_r >= times.r_carried else 0
            out[ROW, arrival] = U32(at_r + 1)
            out[FIRST, arrival] = U32(U64(s_live + 1) + of_both)
            out[EXPIRED, arrival] = U32(r_live + 1)
            own, other = U64(0), of_s
            at_r += 1
        else:
            key, low, high = keys.s_keys[at_s], keys.s_lows[at_s], keys.s_highs[at_s]
            empty = low > high
            spans = at_r - r_live if at_s >= times.s_carried else 0
            out[ROW, arrival] = U32(U64(at_s + 1) + of_both)
            out[FIRST, arrival] = U32(r_live + 1)
            out[EXPIRED, arrival] = U32(U64(s_live + 1) + of_both)
            own, other = of_s, U64(0)
            at_s += 1
        if empty:
            out[SPAN, arrival], out[OWN, arrival] = U32(0), NOWHERE
            out[LOW_BLOCK, arrival], out[HIGH_BLOCK, arrival] = U32(1), U32(0)
        else:
            out[SPAN, arrival] = U32(max(spans, 0))
            out[OWN, arrival] = U32(block_of(tables, cuts, own, key))
            lowest = U32(block_of(tables, cuts, other, low))
            highest = lowest
            if high != low:
                highest = U32(block_of(tables, cuts, other, high))
            out[LOW_BLOCK, arrival], out[HIGH_BLOCK, arrival] = lowest, highest
        out[LOW, arrival], out[WIDTH, arrival] = low, high - low
