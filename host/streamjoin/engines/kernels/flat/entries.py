"""Entries of flat indexes: one for each arrival, written over one whose row is no longer live."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add
from streamjoin.engines.kernels.flat.blocks import BLOCK, ENTRIES, LANES, NEXT, SEALED, free_lane
from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, NEXT_FREE, Words, block_of, map_of
from streamjoin.engines.kernels.flat.plans import EXPIRED, KEY, NOWHERE, OWN, ROW
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch_to_write

Codes = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64


class Flat(NamedTuple):
    """The indexes of both windows.

    Attributes
    ----------
    slots : ndarray of uint32
        Blocks (:mod:`~streamjoin.engines.kernels.flat.blocks`): those of R, then those of S, each
        followed by blocks for chains.
    tables, cuts : ndarray of uint64
        The maps from codes to blocks (:mod:`~streamjoin.engines.kernels.flat.cuts`).
    """

    slots: Codes
    tables: Words
    cuts: Words


@fused
def insert(
    flat: Flat, cut: np.uint64, block: np.uint64, key: np.uint32, row: np.uint32, live: np.uint32
) -> None:
    """Insert an entry over one whose row is not from ``live`` to below ``row``.

    A full block gets a chain, whose first block alone takes more entries. Rows ascend, so the
    blocks behind hold rows before the one at which they were sealed.
    """
    slots = flat.slots
    at = block * U64(BLOCK)
    lane = free_lane(slots, at, live, row - live)
    if lane == U64(LANES):
        home, sealed = at, U32(0)
        following = U64(slots[home + U64(NEXT)])
        at = following * U64(BLOCK)
        if following:
            lane, sealed = free_lane(slots, at, live, row - live), row
        if lane == U64(LANES):
            free = fetch_add(flat.cuts, cut + U64(NEXT_FREE), U64(1))
            at, lane = free * U64(BLOCK), U64(0)
            slots[at + U64(NEXT)] = U32(following)
            slots[at + U64(SEALED)] = sealed
            slots[home + U64(NEXT)] = U32(free)
    slots[at + lane] = key
    slots[at + U64(LANES) + lane] = row


@fused
def insert_planned(flat: Flat, r_rows: np.uint64, plan: Codes, at: np.uint64) -> None:
    """Insert an arrival that others may meet."""
    row, key = plan[at, U64(ROW)], plan[at, U64(KEY)]
    block, live = plan[at, U64(OWN)], plan[at, U64(EXPIRED)]
    if block != NOWHERE and live <= row:
        cut = U64(CUT_WORDS) if U64(row) > r_rows else U64(0)
        insert(flat, cut, U64(block), key, row, live)


@uncounted
def refill(
    flat: Flat, cut: int, keys: Codes, lows: Codes, highs: Codes, first: int, end: int, base: int
) -> None:
    """Insert the live rows ``first`` to below ``end`` of a stream into its emptied index.

    Parameters
    ----------
    flat : Flat
        The indexes.
    cut : int
        First word of the index's cut.
    keys, lows, highs : ndarray of uint32
        The stream's keys and ranges.
    first, end : int
        Rows of the stream.
    base : int
        Number of the stream's first row, plus one.
    """
    live, by = U32(first + base), map_of(flat.cuts, U64(cut))
    last = U64(max(first, end))
    for row in range(U64(first), last):
        ahead = row + U64(AHEAD)
        if ahead < last:
            at = block_of(flat.tables, by, keys[ahead]) * U64(BLOCK)
            prefetch_to_write(flat.slots, at)
            prefetch_to_write(flat.slots, at + U64(LANES))
        if lows[row] <= highs[row]:
            block = block_of(flat.tables, by, keys[row])
            insert(flat, U64(cut), block, keys[row], U32(row) + U32(base), live)


@uncounted
def renumber(flat: Flat, first: int, end: int, live: int, less: int) -> None:
    """Make rows of entries less, and remove those that are not live.

    Parameters
    ----------
    flat : Flat
        The indexes.
    first, end : int
        Blocks.
    live : int
        Number of the first live row, plus one.
    less : int
        What is subtracted.
    """
    for block in range(U64(first), U64(end)):
        at = block * U64(BLOCK)
        for word in range(at + U64(LANES), at + U64(LANES + ENTRIES)):
            row = flat.slots[word]
            flat.slots[word] = row - U32(less) if row >= U32(live) else U32(0)
        sealed = flat.slots[at + U64(SEALED)]
        flat.slots[at + U64(SEALED)] = sealed - U32(less) if sealed >= U32(live) else U32(0)
