"""Ranges of blocks that threads own during a batch, and what each plans for its own."""

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
from streamjoin.engines.kernels.flat.entries import Flat
from streamjoin.engines.kernels.flat.listing import (
    list_marked,
    listed_before,
    place,
)
from streamjoin.engines.kernels.flat.plans import (
    Bounds,
    Keys,
    Times,
    live_from,
    plan_one,
    r_rows_among,
)
from streamjoin.engines.kernels.jit import fused, kernel

Codes = NDArray[np.uint32]
Bytes = NDArray[np.uint8]
U8, U32, U64 = np.uint8, np.uint32, np.uint64

SAMPLED = 1024
"""Maximum tuples of each stream whose blocks are sampled to cut ranges of equal work."""

BINS = 256
KEPT, WEIGHT = 8, 256
"""Of the samples so far one part in so many is dropped with each batch; weight of a sample."""

LINE_WORDS = 8
"""Words of a cache line: what different threads write lies in different lines."""


class Work(NamedTuple):
    """Work space for the arrivals of a part, in equal shares for each thread.

    Marks, rows and groups are of R, then of S, for each thread
    (:func:`~.listing.list_marked`), with room behind for a vector.

    Attributes
    ----------
    marks : ndarray of uint8, shape (2 * threads * (room + LANES),)
        Whether a thread has to do with a row of R, and of S.
    rows : ndarray of uint32, shape (2 * threads * (room + LANES),)
        Those rows, from the first of the part on.
    places : ndarray of uint32, shape (2 * threads * (room + LANES),)
        How many rows of the other stream arrived before each.
    groups : ndarray of uint64, shape (2 * threads * (room // LANES + 2),)
        How many are listed before each.
    plan : ndarray of uint32, shape (threads * room, PLAN_WORDS)
        What is planned of them.
    """

    marks: Bytes
    rows: Codes
    places: Codes
    groups: Words
    plan: Codes


class Owned(NamedTuple):
    """Ranges of both indexes that threads own: thread ``t`` from element ``t`` to below ``t + 1``.

    Attributes
    ----------
    blocks : ndarray of uint64, shape (2 * threads + 2,)
        Of R's index, then of S's.
    positions : ndarray of uint64, shape (2 * threads + 2,)
        The same as positions of codes (:func:`~.cuts.position_of`).
    bins : ndarray of uint64, shape (2, BINS)
        The work sampled in equal parts of the blocks of each index, of earlier batches ever less.
    """

    blocks: Words
    positions: Words
    bins: Words


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
    bins = owned.bins
    for side in range(U64(2)):
        for each in range(U64(BINS)):
            bins[side, each] -= bins[side, each] // U64(KEPT)
    for side in range(U64(2)):
        own = map_of(flat.cuts, side * U64(CUT_WORDS))
        other = map_of(flat.cuts, (U64(1) - side) * U64(CUT_WORDS))
        first, end = s_rows if side else r_rows
        codes = keys.s_keys if side else keys.r_keys
        lows, highs = (keys.s_lows, keys.s_highs) if side else (keys.r_lows, keys.r_highs)
        for row in range(U64(first), U64(end), U64(max(1, (end - first) // SAMPLED))):
            if lows[row] <= highs[row]:
                at = block_of(flat.tables, own, codes[row]) - own.base
                bins[side, at * U64(BINS) // own.blocks] += U64(WEIGHT)
                at = block_of(flat.tables, other, lows[row]) - other.base
                bins[U64(1) - side, at * U64(BINS) // other.blocks] += U64(WEIGHT)
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
def _mark(
    by: Map,
    met_by: Map,
    codes: Codes,
    lows: Codes,
    highs: Codes,
    reach: np.uint64,
    rows: tuple[np.uint64, np.uint64],
    own: tuple[np.uint64, np.uint64],
    met: tuple[np.uint64, np.uint64],
    marks: Bytes,
    base: np.uint64,
) -> None:
    """Mark the rows of a stream of which a thread owns the position, or one that they look up.

    ``own`` and ``met`` are ranges of positions. There is no branch, as all rows are marked.
    """
    first, count, meets_any = rows[0], rows[1] - rows[0], met[0] < met[1]
    for each in range(count):
        low, high = lows[first + each], highs[first + each]
        at, lowest = position_of(by, codes[first + each]), position_of(met_by, low)
        owns = (at >= own[0]) & (at < own[1])
        meets = (lowest < met[1]) & (position_of(met_by, high) + reach >= met[0]) & meets_any
        marks[base + each] = U8((low <= high) & (owns | meets))


@fused
def _plan_listed(
    times: Times,
    keys: Keys,
    tables: Words,
    r_map: Map,
    s_map: Map,
    is_r: bool,
    first: np.uint64,
    met: np.uint64,
    bounds: Bounds,
    work: Work,
    listed: tuple[np.uint64, np.uint64],
    group: np.uint64,
    plan: np.uint64,
) -> None:
    """Plan the listed rows of R, or of S, each at its place among those of both.

    ``first`` is the stream's first row, ``met`` the other one's. ``listed`` is where rows are
    listed, and how many; ``group`` where the other stream's groups are.
    """
    r_live, s_live = -1, -1
    for each in range(listed[1]):
        row = first + U64(work.rows[listed[0] + each])
        before = U64(work.places[listed[0] + each])
        at_r, at_s = (row, met + before) if is_r else (met + before, row)
        at = plan + each + listed_before(work.groups, group, before)
        r_live, s_live = live_from(times, is_r, at_r, at_s, r_live, s_live)
        plan_one(
            times, keys, tables, r_map, s_map, is_r, at_r, at_s, r_live, s_live, True, bounds,
            work.plan, at,
        )  # fmt: skip


@fused
def plan_own(
    times: Times,
    keys: Keys,
    flat: Flat,
    begin: tuple[int, int],
    arrivals: int,
    owned: Owned,
    owner: np.uint64,
    work: Work,
) -> np.uint64:
    """Plan what a thread has to do for a part, as :func:`~.plans.plan`; return the entries.

    Each thread looks at all arrivals, half a nanosecond each: that costs less than to share that
    work, as then what one writes the others read.

    Parameters
    ----------
    times, keys, flat
        The input and the indexes.
    begin : tuple of int
        Rows of R and of S with which the part begins.
    arrivals : int
        Arrivals of the part.
    owned : Owned
        The threads' ranges.
    owner : int
        The thread.
    work : Work
        Receives the plan, in the thread's share of it.
    """
    threads = (U64(len(owned.positions)) >> U64(1)) - U64(1)
    plan = owner * (U64(len(work.plan)) // threads)
    r_map, s_map = map_of(flat.cuts, U64(0)), map_of(flat.cuts, U64(CUT_WORDS))
    room, groups = U64(len(work.marks)) // threads, U64(len(work.groups)) // threads
    r_to, s_to = owner * room, owner * room + (room >> U64(1))
    r_group, s_group = owner * groups, owner * groups + (groups >> U64(1))
    r_count = U64(r_rows_among(times, begin[0], begin[1], arrivals))
    s_count = U64(arrivals) - r_count
    r_rows = U64(begin[0]), U64(begin[0]) + r_count
    s_rows = U64(begin[1]), U64(begin[1]) + s_count
    r_at, s_at = owner, threads + U64(1) + owner
    r_own = owned.positions[r_at], owned.positions[r_at + U64(1)]
    s_own = owned.positions[s_at], owned.positions[s_at + U64(1)]
    _mark(
        r_map, s_map, keys.r_keys, keys.r_lows, keys.r_highs, U64(keys.reach), r_rows, r_own, s_own,
        work.marks, r_to,
    )  # fmt: skip
    _mark(
        s_map, r_map, keys.s_keys, keys.s_lows, keys.s_highs, U64(0), s_rows, s_own, r_own,
        work.marks, s_to,
    )  # fmt: skip
    r_listed = list_marked(work.marks, r_to, r_count, work.rows, work.groups, r_group)
    s_listed = list_marked(work.marks, s_to, s_count, work.rows, work.groups, s_group)
    place(
        times.r_ts, times.s_ts, r_rows, s_rows, (r_to, r_listed), (s_to, s_listed), work.rows,
        work.places,
    )  # fmt: skip
    r_blocks = owned.blocks[r_at], owned.blocks[r_at + U64(1)]
    s_blocks = owned.blocks[s_at], owned.blocks[s_at + U64(1)]
    _plan_listed(
        times, keys, flat.tables, r_map, s_map, True, r_rows[0], s_rows[0],
        Bounds(*r_blocks, *s_blocks), work, (r_to, r_listed), s_group, plan,
    )  # fmt: skip
    _plan_listed(
        times, keys, flat.tables, r_map, s_map, False, s_rows[0], r_rows[0],
        Bounds(*s_blocks, *r_blocks), work, (s_to, s_listed), r_group, plan,
    )  # fmt: skip
    return r_listed + s_listed
