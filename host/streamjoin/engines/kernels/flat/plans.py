"""Plans: for each arrival, what it looks up and where it is inserted.

A plan is made for any interval of a batch's arrivals without the ones before, so threads make parts
of one batch's plan. The words of an arrival lie side by side.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.blocks import BLOCK, LANES
from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, Map, Words, block_of, map_of
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import prefetch, prefetch_to_write
from streamjoin.engines.kernels.sliding.numbering import ALL, COUNT, TUMBLING

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW, FIRST, SPAN, EXPIRED, OWN, LOW_BLOCK, HIGH_BLOCK, LOW, WIDTH, KEY, STRIPS, NEXT_BLOCK = range(
    12
)
"""Words of an arrival's plan: own row plus one, first row met plus one, rows met, first live row of
its own stream plus one, block to insert into (:data:`NOWHERE` if no arrival can match it), blocks
to look up, lowest code to look up, how many more, the key to insert, and further strips to look up,
with the first block of the next one."""

PLAN_WORDS = 12
NOWHERE = U32(0xFFFFFFFF)


class Bounds(NamedTuple):
    """Blocks that a thread owns, each range up to below its end.

    Attributes
    ----------
    own_first, own_end : int
        Of the index that an arrival is inserted into.
    met_first, met_end : int
        Of the index that it looks up.
    """

    own_first: np.uint64
    own_end: np.uint64
    met_first: np.uint64
    met_end: np.uint64


NO_BOUNDS = Bounds(U64(0), U64(0), U64(0), U64(0))


class Keys(NamedTuple):
    """Index key and range to look up of every tuple; empty ranges have ``low > high``.

    Attributes
    ----------
    r_keys, s_keys : ndarray of uint32
    r_lows, r_highs, s_lows, s_highs : ndarray of uint32
        Ranges of the opposite keys.
    reach : int
        How much further up the ranges of R reach.
    order_bits : int
        Bits of a code below those of its strip (:mod:`~streamjoin.engines.kernels.flat.strips`): a
        range is looked up in each strip from that of its lower end to that of its upper one. 32
        where ranges are whole.
    """

    r_keys: Codes
    r_lows: Codes
    r_highs: Codes
    s_keys: Codes
    s_lows: Codes
    s_highs: Codes
    reach: int
    order_bits: int = 32


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


@fused
def is_next_r(times: Times, at_r: np.uint64, at_s: np.uint64) -> bool:
    """Whether the next arrival is of R."""
    if at_s == U64(len(times.s_ts)):
        return True
    return bool(at_r < U64(len(times.r_ts)) and times.r_ts[at_r] <= times.s_ts[at_s])


@fused
def live_from(
    times: Times, is_r: bool, at_r: np.uint64, at_s: np.uint64, r_live: Any, s_live: Any
) -> tuple[Any, Any]:
    """Return the first live rows of both streams when a tuple arrives; -1 if unknown before."""
    kind, r_length, s_length = times.kind, times.r_length, times.s_length
    if kind == COUNT:
        return (
            max(0, np.int64(at_r) + int(is_r) - r_length),
            max(0, np.int64(at_s) + int(not is_r) - s_length),
        )
    if kind == ALL:
        return 0, 0
    now = times.r_ts[at_r] if is_r else times.s_ts[at_s]
    r_dead, s_dead = now - r_length, now - s_length
    if kind == TUMBLING:
        r_dead = s_dead = now // r_length * r_length - 1
    if r_live < 0:
        return _first_after(times.r_ts, r_dead), _first_after(times.s_ts, s_dead)
    while r_live < len(times.r_ts) and times.r_ts[U64(r_live)] <= r_dead:
        r_live += 1
    while s_live < len(times.s_ts) and times.s_ts[U64(s_live)] <= s_dead:
        s_live += 1
    return r_live, s_live


@fused
def plan_one(
    times: Times,
    keys: Keys,
    tables: Words,
    r_map: Map,
    s_map: Map,
    is_r: bool,
    at_r: np.uint64,
    at_s: np.uint64,
    r_live: int,
    s_live: int,
    bounded: bool,
    bounds: Bounds,
    out: Codes,
    at: np.uint64,
) -> None:
    """Write the plan of an arrival; if ``bounded``, as far as it is about blocks in ``bounds``."""
    of_both = U64(len(times.r_ts))
    if is_r:
        key, low, high = keys.r_keys[at_r], keys.r_lows[at_r], keys.r_highs[at_r]
        empty = low > high
        high = U32(min(U64(high) + U64(keys.reach), U64(0xFFFFFFFF)))
        spans = np.int64(at_s) - s_live if at_r >= U64(times.r_carried) else 0
        out[at, U64(ROW)] = U32(at_r + U64(1))
        out[at, U64(FIRST)] = U32(U64(s_live + 1) + of_both)
        out[at, U64(EXPIRED)] = U32(r_live + 1)
    else:
        key, low, high = keys.s_keys[at_s], keys.s_lows[at_s], keys.s_highs[at_s]
        empty = low > high
        spans = np.int64(at_r) - r_live if at_s >= U64(times.s_carried) else 0
        out[at, U64(ROW)] = U32(at_s + U64(1) + of_both)
        out[at, U64(FIRST)] = U32(r_live + 1)
        out[at, U64(EXPIRED)] = U32(U64(s_live + 1) + of_both)
    bits = U64(keys.order_bits)
    strips = (U64(high) >> bits) - (U64(low) >> bits)
    out[at, U64(STRIPS)] = U32(0)
    if empty:
        out[at, U64(SPAN)], out[at, U64(OWN)] = U32(0), NOWHERE
        out[at, U64(LOW_BLOCK)], out[at, U64(HIGH_BLOCK)] = U32(1), U32(0)
    else:
        if strips:
            high = U32(U64(high) - (strips << bits))
            following = U32(U64(low) + (U64(1) << bits))
            out[at, U64(STRIPS)] = U32(strips)
            out[at, U64(NEXT_BLOCK)] = U32(block_of(tables, s_map if is_r else r_map, following))
        if is_r:
            own = block_of(tables, r_map, key)
            lowest = block_of(tables, s_map, low)
            highest = block_of(tables, s_map, high) if high != low else lowest
        else:
            own = block_of(tables, s_map, key)
            lowest = block_of(tables, r_map, low)
            highest = block_of(tables, r_map, high) if high != low else lowest
        out[at, U64(OWN)] = U32(own)
        out[at, U64(LOW_BLOCK)], out[at, U64(HIGH_BLOCK)] = U32(lowest), U32(highest)
        out[at, U64(SPAN)] = U32(max(spans, 0))
        if bounded:
            lowest, end = max(lowest, bounds.met_first), min(highest + U64(1), bounds.met_end)
            meets = lowest < end
            out[at, U64(SPAN)] = U32(max(spans, 0)) if meets else U32(0)
            # What another thread owns is not prefetched either.
            out[at, U64(LOW_BLOCK)] = U32(lowest if meets else own)
            out[at, U64(HIGH_BLOCK)] = U32(end - U64(1) if meets else own)
            owns = bounds.own_first <= own < bounds.own_end
            out[at, U64(OWN)] = U32(own) if owns else NOWHERE
    out[at, U64(LOW)], out[at, U64(WIDTH)], out[at, U64(KEY)] = low, high - low, key


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
    out : ndarray of uint32, shape (arrivals, PLAN_WORDS)
        Receives the plan.
    """
    of_r = r_rows_among(times, begin[0], begin[1], first)
    at_r, at_s = U64(begin[0] + of_r), U64(begin[1] + first - of_r)
    r_map, s_map = map_of(cuts, U64(0)), map_of(cuts, U64(CUT_WORDS))
    r_live, s_live = -1, -1
    for arrival in range(U64(first), U64(end)):
        is_r = is_next_r(times, at_r, at_s)
        r_live, s_live = live_from(times, is_r, at_r, at_s, r_live, s_live)
        plan_one(
            times, keys, tables, r_map, s_map, is_r, at_r, at_s, r_live, s_live, False,
            NO_BOUNDS, out, arrival,
        )  # fmt: skip
        at_r += U64(is_r)
        at_s += U64(not is_r)


@fused
def number_of(plan: Codes, arrival: np.uint64) -> np.uint64:
    """Return an arrival's number: what its row and the next one that it could meet add up to."""
    met_end = U64(plan[arrival, U64(FIRST)]) + U64(plan[arrival, U64(SPAN)])
    return met_end + U64(plan[arrival, U64(ROW)])


@fused
def ask(slots: Codes, plan: Codes, arrival: np.uint64) -> None:
    """Prefetch the blocks of an arrival; those of one without any are out of bounds."""
    own = U64(plan[arrival, U64(OWN)]) * U64(BLOCK)
    low = U64(plan[arrival, U64(LOW_BLOCK)]) * U64(BLOCK)
    high = U64(plan[arrival, U64(HIGH_BLOCK)]) * U64(BLOCK)
    prefetch(slots, low)
    prefetch(slots, low + U64(LANES))
    prefetch_to_write(slots, own)
    prefetch_to_write(slots, own + U64(LANES))
    prefetch(slots, high)
    prefetch(slots, high + U64(LANES))
    if plan[arrival, U64(STRIPS)]:
        following = U64(plan[arrival, U64(NEXT_BLOCK)]) * U64(BLOCK)
        prefetch(slots, following)
        prefetch(slots, following + U64(LANES))
