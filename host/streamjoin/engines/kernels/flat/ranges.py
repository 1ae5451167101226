"""Ranges of blocks that threads own during a batch, and what is planned for their owners."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.cuts import (
    CUT_WORDS,
    Map,
    Words,
    block_at,
    block_of,
    map_of,
    position_of,
)
from streamjoin.engines.kernels.flat.joining import Flat
from streamjoin.engines.kernels.flat.plans import (
    ARRIVAL,
    HIGH_BLOCK,
    LOW_BLOCK,
    NOWHERE,
    OWN,
    PLAN_WORDS,
    SPAN,
    Keys,
    Times,
    is_next_r,
    live_from,
    plan_one,
    r_rows_among,
)
from streamjoin.engines.kernels.jit import fused, kernel

Codes = NDArray[np.uint32]
U32, U64 = np.uint32, np.uint64

SAMPLED = 1024
"""Maximum tuples of each stream whose blocks are sampled to cut ranges of equal work."""

BINS = 256
LINE_WORDS = 8
"""Words of a cache line: what different threads write lies in different lines."""


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


@kernel
def cut_ranges(
    flat: Flat, keys: Keys, r_rows: tuple[int, int], s_rows: tuple[int, int], owned: Owned
) -> None:
    """Cut the blocks of both indexes into a range for each thread, of equal work by a sample.

    Parameters
    ----------
    flat, keys
        The indexes and their keys.
    r_rows, s_rows : tuple of int
        First and end row of the batch in each stream.
    owned : Owned
        Receives the ranges.
    """
    threads = U64(len(owned.blocks) // 2 - 1)
    bins = np.zeros((2, BINS), dtype=np.uint64)
    for side in range(U64(2)):
        own = map_of(flat.cuts, side * U64(CUT_WORDS))
        other = map_of(flat.cuts, (U64(1) - side) * U64(CUT_WORDS))
        first, end = s_rows if side else r_rows
        codes = keys.s_keys if side else keys.r_keys
        lows, highs = (keys.s_lows, keys.s_highs) if side else (keys.r_lows, keys.r_highs)
        for row in range(U64(first), U64(end), U64(max(1, (end - first) // SAMPLED))):
            if lows[row] <= highs[row]:
                at = block_of(flat.tables, own, codes[row]) - own.base
                bins[side, at * U64(BINS) // own.blocks] += U64(1)
                at = block_of(flat.tables, other, lows[row]) - other.base
                bins[U64(1) - side, at * U64(BINS) // other.blocks] += U64(1)
    for side in range(U64(2)):
        by, at = map_of(flat.cuts, side * U64(CUT_WORDS)), side * (threads + U64(1))
        total, below, owner = bins[side].sum(), U64(0), U64(1)
        owned.blocks[at], owned.positions[at] = by.base, U64(0)
        for each in range(U64(BINS)):
            below += bins[side, each]
            while owner < threads and below * threads >= total * owner:
                block = by.base + ((each + U64(1)) * by.blocks) // U64(BINS)
                owned.blocks[at + owner] = block
                owned.positions[at + owner] = _first_position(flat, by, block)
                owner += U64(1)
        owned.blocks[at + threads] = by.base + by.blocks
        owned.positions[at + threads] = U64(1 << 32)


@fused
def _first_position(flat: Flat, by: Map, block: np.uint64) -> np.uint64:
    """Return the lowest position of a code whose block is this one or a higher one."""
    low, high = U64(0), U64(1 << 32)
    while low < high:
        middle = (low + high) >> U64(1)
        if block_at(flat.tables, by, middle) < block:
            low = middle + U64(1)
        else:
            high = middle
    return low


@fused
def _owner(owned: Owned, side: np.uint64, position: np.uint64) -> np.uint64:
    """Return the thread that owns a position of R's (0) or S's index (1)."""
    elements = U64(len(owned.positions)) >> U64(1)
    owner, at = U64(0), side * elements
    for thread in range(U64(1), elements - U64(1)):
        owner += U64(position >= owned.positions[at + thread])
    return owner


@fused
def _keep_own(owned: Owned, side: np.uint64, owner: np.uint64, out: Codes, at: np.uint64) -> None:
    """Keep of a look-up the blocks that a thread owns."""
    looked = side * (U64(len(owned.positions)) >> U64(1)) + owner
    lowest, highest = U32(owned.blocks[looked]), U32(owned.blocks[looked + U64(1)] - U64(1))
    out[at, U64(LOW_BLOCK)] = max(out[at, U64(LOW_BLOCK)], lowest)
    out[at, U64(HIGH_BLOCK)] = min(out[at, U64(HIGH_BLOCK)], highest)


@fused
def plan_for_owners(
    times: Times,
    keys: Keys,
    flat: Flat,
    begin: tuple[int, int],
    first: int,
    end: int,
    owned: Owned,
    planner: np.uint64,
    room: np.uint64,
    listed: Words,
    counting: np.uint64,
    out: Codes,
) -> None:
    """Plan arrivals of a part as :func:`~.plans.plan`, into a list for each owner.

    Parameters
    ----------
    times, keys, flat
        The input and the indexes.
    begin : tuple of int
        Rows of R and of S with which the part begins.
    first, end : int
        Arrivals of the part to plan.
    owned : Owned
        The threads' ranges.
    planner : int
        The thread that plans.
    room : int
        Entries of a list.
    listed : ndarray of uint64
        Receives the entries of each list, from word ``counting`` on, each in a cache line.
    out : ndarray of uint32, shape (threads * threads * room, PLAN_WORDS)
        Receives the lists, by planner and owner.
    """
    threads = (U64(len(owned.positions)) >> U64(1)) - U64(1)
    r_map, s_map = map_of(flat.cuts, U64(0)), map_of(flat.cuts, U64(CUT_WORDS))
    of_r = r_rows_among(times, begin[0], begin[1], first)
    at_r, at_s = U64(begin[0] + of_r), U64(begin[1] + first - of_r)
    counting += planner * threads * U64(LINE_WORDS)
    lists = planner * threads * room
    for owner in range(threads):
        listed[counting + owner * U64(LINE_WORDS)] = U64(0)
    reach, r_live, s_live = U64(keys.reach), -1, -1
    for arrival in range(U64(first), U64(end)):
        is_r = is_next_r(times, at_r, at_s)
        r_live, s_live = live_from(times, is_r, at_r, at_s, r_live, s_live)
        if is_r:
            empty, looked = keys.r_lows[at_r] > keys.r_highs[at_r], U64(1)
            owner = _owner(owned, U64(0), position_of(r_map, keys.r_keys[at_r]))
            lowest = _owner(owned, U64(1), position_of(s_map, keys.r_lows[at_r]))
            highest = _owner(owned, U64(1), position_of(s_map, keys.r_highs[at_r]) + reach)
        else:
            empty, looked = keys.s_lows[at_s] > keys.s_highs[at_s], U64(0)
            owner = _owner(owned, U64(1), position_of(s_map, keys.s_keys[at_s]))
            lowest = _owner(owned, U64(0), position_of(r_map, keys.s_lows[at_s]))
            highest = _owner(owned, U64(0), position_of(r_map, keys.s_highs[at_s]))
        if not empty:
            count = counting + owner * U64(LINE_WORDS)
            at = lists + owner * room + listed[count]
            listed[count] += U64(1)
            plan_one(
                times, keys, flat.tables, r_map, s_map, is_r, at_r, at_s, r_live, s_live, out, at
            )
            out[at, U64(ARRIVAL)] = U32(arrival)
            if lowest != owner or highest != owner:  # look-ups that others own, too
                for other in range(lowest, highest + U64(1)):
                    if other != owner:
                        count = counting + other * U64(LINE_WORDS)
                        copy = lists + other * room + listed[count]
                        listed[count] += U64(1)
                        for word in range(U64(PLAN_WORDS)):
                            out[copy, word] = out[at, word]
                        out[copy, U64(OWN)] = NOWHERE
                        _keep_own(owned, looked, other, out, copy)
                if lowest <= owner <= highest:
                    _keep_own(owned, looked, owner, out, at)
                else:
                    out[at, U64(SPAN)] = U32(0)
        at_r += U64(is_r)
        at_s += U64(not is_r)
