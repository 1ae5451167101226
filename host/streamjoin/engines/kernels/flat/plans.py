"""Plans: for each arrival, what it looks up and where it is inserted.

A plan is made for any interval of a batch's arrivals without the ones before. A thread that owns a
range of the blocks plans what falls into them alone, and looks at the codes of all others only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, Words, block_of, position_of
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.sliding.numbering import ALL, COUNT, TUMBLING

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW, FIRST, SPAN, EXPIRED, OWN, LOW_BLOCK, HIGH_BLOCK, LOW, WIDTH, ARRIVAL = range(10)
"""Rows of a plan: own row plus one, first row met plus one, rows met, first live row of its own
stream plus one, block to insert into (:data:`NOWHERE` if no arrival can match it), blocks to look
up, lowest code to look up, and how many more; of a thread's own plan, the number of the arrival."""

PLAN_ROWS = 9
OWN_ROWS = 10
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
def r_rows_among(times: Times, r_first: int, s_first: int, arrivals: int) -> int:
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


class Owned(NamedTuple):
    """Ranges of both indexes that threads own: thread ``t`` from element ``t`` to below ``t + 1``.

    Attributes
    ----------
    blocks : ndarray of uint64, shape (2 * threads + 2,)
        Of R's index, then of S's.
    positions : ndarray of uint64, shape (2 * threads + 2,)
        The same as positions of codes (:func:`~.cuts.position_of`).
    """

    blocks: Words
    positions: Words


@fused
def _is_r(times: Times, at_r: int, at_s: int) -> bool:
    """Whether the next arrival is of R."""
    return at_s == len(times.s_ts) or (
        at_r < len(times.r_ts) and times.r_ts[at_r] <= times.s_ts[at_s]
    )


@fused
def _live_from(
    times: Times, is_r: bool, at_r: int, at_s: int, r_live: int, s_live: int
) -> tuple[int, int]:
    """Return the first live rows of both streams when a tuple arrives; -1 if unknown before."""
    kind, r_length, s_length = times.kind, times.r_length, times.s_length
    if kind == COUNT:
        return max(0, at_r + int(is_r) - r_length), max(0, at_s + int(not is_r) - s_length)
    if kind == ALL:
        return 0, 0
    now = times.r_ts[at_r] if is_r else times.s_ts[at_s]
    r_dead, s_dead = now - r_length, now - s_length
    if kind == TUMBLING:
        r_dead = s_dead = now // r_length * r_length - 1
    if r_live < 0:
        return _first_after(times.r_ts, r_dead), _first_after(times.s_ts, s_dead)
    while r_live < len(times.r_ts) and times.r_ts[r_live] <= r_dead:
        r_live += 1
    while s_live < len(times.s_ts) and times.s_ts[s_live] <= s_dead:
        s_live += 1
    return r_live, s_live


@fused
def _plan_one(
    times: Times,
    keys: Keys,
    tables: Words,
    cuts: Words,
    is_r: bool,
    at_r: int,
    at_s: int,
    r_live: int,
    s_live: int,
    out: Codes,
    at: np.uint64,
) -> None:
    """Write the plan of an arrival."""
    of_both = U64(len(times.r_ts))
    if is_r:
        key, low, high = keys.r_keys[at_r], keys.r_lows[at_r], keys.r_highs[at_r]
        empty = low > high
        high = U32(min(U64(high) + U64(keys.reach), U64(0xFFFFFFFF)))
        spans = at_s - s_live if at_r >= times.r_carried else 0
        out[ROW, at] = U32(at_r + 1)
        out[FIRST, at] = U32(U64(s_live + 1) + of_both)
        out[EXPIRED, at] = U32(r_live + 1)
        own, other = U64(0), U64(CUT_WORDS)
    else:
        key, low, high = keys.s_keys[at_s], keys.s_lows[at_s], keys.s_highs[at_s]
        empty = low > high
        spans = at_r - r_live if at_s >= times.s_carried else 0
        out[ROW, at] = U32(U64(at_s + 1) + of_both)
        out[FIRST, at] = U32(r_live + 1)
        out[EXPIRED, at] = U32(U64(s_live + 1) + of_both)
        own, other = U64(CUT_WORDS), U64(0)
    if empty:
        out[SPAN, at], out[OWN, at] = U32(0), NOWHERE
        out[LOW_BLOCK, at], out[HIGH_BLOCK, at] = U32(1), U32(0)
    else:
        out[SPAN, at] = U32(max(spans, 0))
        out[OWN, at] = U32(block_of(tables, cuts, own, key))
        lowest = U32(block_of(tables, cuts, other, low))
        highest = lowest
        if high != low:
            highest = U32(block_of(tables, cuts, other, high))
        out[LOW_BLOCK, at], out[HIGH_BLOCK, at] = lowest, highest
    out[LOW, at], out[WIDTH, at] = low, high - low


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
    of_r = r_rows_among(times, begin[0], begin[1], first)
    at_r, at_s = begin[0] + of_r, begin[1] + first - of_r
    r_live, s_live = -1, -1
    for arrival in range(first, end):
        is_r = _is_r(times, at_r, at_s)
        r_live, s_live = _live_from(times, is_r, at_r, at_s, r_live, s_live)
        _plan_one(
            times, keys, tables, cuts, is_r, at_r, at_s, r_live, s_live, out, U64(arrival)
        )  # fmt: skip
        at_r += int(is_r)
        at_s += int(not is_r)


@fused
def plan_own(
    times: Times,
    keys: Keys,
    tables: Words,
    cuts: Words,
    begin: tuple[int, int],
    first: int,
    end: int,
    owned: Owned,
    thread: np.uint64,
    out: Codes,
) -> np.uint64:
    """Plan what falls into a thread's blocks, as :func:`plan`; return the arrivals planned.

    These are listed first, without a branch that depends on whose they are.
    """
    of_s_index = thread + U64(len(owned.positions)) // U64(2)
    r_from, r_to = owned.positions[thread], owned.positions[thread + U64(1)]
    s_from, s_to = owned.positions[of_s_index], owned.positions[of_s_index + U64(1)]
    of_r = r_rows_among(times, begin[0], begin[1], first)
    at_r, at_s = begin[0] + of_r, begin[1] + first - of_r
    listed = U64(0)
    for arrival in range(first, end):
        is_r = _is_r(times, at_r, at_s)
        out[ARRIVAL, listed], out[ROW, listed] = U32(arrival), U32(at_r - begin[0])
        if is_r:
            own = position_of(cuts, U64(0), keys.r_keys[at_r])
            low = position_of(cuts, U64(CUT_WORDS), keys.r_lows[at_r])
            high = position_of(cuts, U64(CUT_WORDS), keys.r_highs[at_r]) + U64(keys.reach)
            is_own = ((r_from <= own) & (own < r_to)) | ((low < s_to) & (high >= s_from))
        else:
            own = position_of(cuts, U64(CUT_WORDS), keys.s_keys[at_s])
            low = position_of(cuts, U64(0), keys.s_lows[at_s])
            high = position_of(cuts, U64(0), keys.s_highs[at_s])
            is_own = ((s_from <= own) & (own < s_to)) | ((low < r_to) & (high >= r_from))
        listed += U64(is_own)
        at_r += int(is_r)
        at_s += int(not is_r)
    r_live, s_live = -1, -1
    for at in range(listed):
        arrival = np.int64(out[ARRIVAL, at])
        at_r = begin[0] + np.int64(out[ROW, at])
        at_s = begin[0] + begin[1] + arrival - at_r
        is_r = _is_r(times, at_r, at_s)
        r_live, s_live = _live_from(times, is_r, at_r, at_s, r_live, s_live)
        _plan_one(times, keys, tables, cuts, is_r, at_r, at_s, r_live, s_live, out, at)
        looked, kept = (of_s_index, thread) if is_r else (thread, of_s_index)
        lowest, highest = owned.blocks[looked], owned.blocks[looked + U64(1)] - U64(1)
        out[LOW_BLOCK, at] = max(out[LOW_BLOCK, at], U32(lowest))
        out[HIGH_BLOCK, at] = min(out[HIGH_BLOCK, at], U32(highest))
        if out[LOW_BLOCK, at] > out[HIGH_BLOCK, at]:
            out[SPAN, at] = U32(0)
        own = U64(out[OWN, at])
        if own < owned.blocks[kept] or own >= owned.blocks[kept + U64(1)]:
            out[OWN, at] = NOWHERE
    return listed
