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


PICK_BITS = 20
PICK_MASK = U64((1 << PICK_BITS) - 1)
MAX_PART = 1 << PICK_BITS
"""Maximum arrivals of a part."""


MIN_STEPS = 8
"""Minimum steps for which runs of arrivals are listed side by side."""


class Part(NamedTuple):
    """First rows of a part, and where a thread's marks and lists of it begin."""

    r_first: np.uint64
    s_first: np.uint64
    r_marks: np.uint64
    s_marks: np.uint64
    listed: np.uint64
    r_listed: np.uint64
    s_listed: np.uint64


class Work(NamedTuple):
    """Work space for the arrivals of a part, in equal shares for each thread.

    Attributes
    ----------
    marks : ndarray of uint8, shape (2 * threads * room,)
        Whether a thread has to do with a row of R, and of S.
    picks : ndarray of uint64, shape (3 * threads * room,)
        Those rows: all, those of R, and those of S.
    plan : ndarray of uint32, shape (threads * room, PLAN_WORDS)
        What is planned of them.
    """

    marks: Bytes
    picks: Words
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
def _pick_next(
    times: Times,
    both: bool,
    r_end: np.uint64,
    part: Part,
    work: Work,
    arrival: np.uint64,
    at: tuple[np.uint64, np.uint64],
) -> tuple[np.uint64, np.uint64]:
    """List an arrival if its row is marked; return the rows of R so far, and where the list ends.

    An entry is the arrival, the rows of R before it, and whether it is of R. There is no branch, as
    none could be foreseen: the entry is written in any case, and counts only if the row is marked.
    """
    (before_r, to), before_s = at, arrival - at[0]
    at_r, at_s = part.r_first + before_r, part.s_first + before_s
    is_r = times.r_ts[at_r] <= times.s_ts[at_s] if both else at_r < r_end
    marked = work.marks[part.r_marks + before_r if is_r else part.s_marks + before_s]
    of_r = U64(is_r)
    work.picks[to] = (arrival << U64(PICK_BITS + 1)) | (before_r << U64(1)) | of_r
    return before_r + of_r, to + U64(marked)


@fused
def _pick(
    times: Times, begin: tuple[int, int], arrivals: int, part: Part, work: Work
) -> tuple[np.uint64, np.uint64]:
    """List the marked rows of a part by stream, in arrival order; return how many of R and of S.

    Which stream is next depends on the tuple before. So four runs of arrivals are listed side by
    side, as long as none of them has reached the end of a stream.
    """
    first_1, first_2, first_3 = arrivals // 4, arrivals // 2, 3 * arrivals // 4
    r_1 = U64(r_rows_among(times, begin[0], begin[1], first_1))
    r_2 = U64(r_rows_among(times, begin[0], begin[1], first_2))
    r_3 = U64(r_rows_among(times, begin[0], begin[1], first_3))
    r_4 = U64(r_rows_among(times, begin[0], begin[1], arrivals))
    k_1, k_2, k_3, k_4 = U64(first_1), U64(first_2), U64(first_3), U64(arrivals)
    at_0, at_1 = (U64(0), part.listed), (r_1, part.listed + k_1)
    at_2, at_3 = (r_2, part.listed + k_2), (r_3, part.listed + k_3)
    step = U64(0)
    while True:
        steps = min(
            _steps(step, at_0[0], k_1, r_1),
            _steps(k_1 + step, at_1[0], k_2, r_2),
            _steps(k_2 + step, at_2[0], k_3, r_3),
            _steps(k_3 + step, at_3[0], k_4, r_4),
        )
        if steps < U64(MIN_STEPS):
            break
        for each in range(steps):
            now = step + each
            at_0 = _pick_next(times, True, U64(0), part, work, now, at_0)
            at_1 = _pick_next(times, True, U64(0), part, work, k_1 + now, at_1)
            at_2 = _pick_next(times, True, U64(0), part, work, k_2 + now, at_2)
            at_3 = _pick_next(times, True, U64(0), part, work, k_3 + now, at_3)
        step += steps
    r_to, s_to = part.r_listed, part.s_listed
    for at, start, first, end, r_end in (
        (at_0, part.listed, step, k_1, r_1),
        (at_1, part.listed + k_1, k_1 + step, k_2, r_2),
        (at_2, part.listed + k_2, k_2 + step, k_3, r_3),
        (at_3, part.listed + k_3, k_3 + step, k_4, r_4),
    ):
        arrival, run = first, at
        while arrival < end:
            both = _steps(arrival, run[0], end, r_end)
            for _ in range(both if both else end - arrival):
                run = _pick_next(
                    times, both != U64(0), part.r_first + r_end, part, work, arrival, run
                )
                arrival += U64(1)
        for each in range(start, run[1]):
            pick = work.picks[each]
            of_r, slot = pick & U64(1), r_to - part.r_listed + s_to - part.s_listed
            work.picks[r_to if of_r else s_to] = (slot << U64(2 * PICK_BITS)) | (pick >> U64(1))
            r_to += of_r
            s_to += U64(1) - of_r
    return r_to - part.r_listed, s_to - part.s_listed


@fused
def _steps(arrival: np.uint64, before_r: np.uint64, end: np.uint64, r_end: np.uint64) -> np.uint64:
    """Return for how many arrivals of a run neither stream ends."""
    left_r = r_end - before_r
    return min(left_r, end - arrival - left_r)


@fused
def _plan_picked(
    times: Times,
    keys: Keys,
    tables: Words,
    r_map: Map,
    s_map: Map,
    is_r: bool,
    part: Part,
    bounds: Bounds,
    work: Work,
    first: np.uint64,
    count: np.uint64,
    plan: np.uint64,
) -> None:
    """Plan the listed rows of R, or of S."""
    r_live, s_live = -1, -1
    for each in range(count):
        pick = work.picks[first + each]
        before_r, arrival = pick & PICK_MASK, (pick >> U64(PICK_BITS)) & PICK_MASK
        at_r, at_s = part.r_first + before_r, part.s_first + arrival - before_r
        at = plan + (pick >> U64(2 * PICK_BITS))
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

    Each thread looks at all arrivals, a nanosecond each: that costs less than to share that work,
    as then what one writes the others read.

    Parameters
    ----------
    times, keys, flat
        The input and the indexes.
    begin : tuple of int
        Rows of R and of S with which the part begins.
    arrivals : int
        Arrivals of the part, at most :data:`MAX_PART`.
    owned : Owned
        The threads' ranges.
    owner : int
        The thread.
    work : Work
        Receives the plan, in the thread's share of it.
    """
    threads = (U64(len(owned.positions)) >> U64(1)) - U64(1)
    room = U64(len(work.plan)) // threads
    r_map, s_map = map_of(flat.cuts, U64(0)), map_of(flat.cuts, U64(CUT_WORDS))
    base, plan = owner * U64(2) * room, owner * room
    listed = owner * U64(3) * room
    part = Part(
        U64(begin[0]), U64(begin[1]), base, base + room, listed, listed + room,
        listed + U64(2) * room,
    )  # fmt: skip
    of_r = r_rows_among(times, begin[0], begin[1], arrivals)
    r_rows = part.r_first, part.r_first + U64(of_r)
    s_rows = part.s_first, part.s_first + U64(arrivals - of_r)
    r_at, s_at = owner, threads + U64(1) + owner
    r_own = owned.positions[r_at], owned.positions[r_at + U64(1)]
    s_own = owned.positions[s_at], owned.positions[s_at + U64(1)]
    _mark(
        r_map, s_map, keys.r_keys, keys.r_lows, keys.r_highs, U64(keys.reach), r_rows, r_own, s_own,
        work.marks, part.r_marks,
    )  # fmt: skip
    _mark(
        s_map, r_map, keys.s_keys, keys.s_lows, keys.s_highs, U64(0), s_rows, s_own, r_own,
        work.marks, part.s_marks,
    )  # fmt: skip
    r_count, s_count = _pick(times, begin, arrivals, part, work)
    r_blocks = owned.blocks[r_at], owned.blocks[r_at + U64(1)]
    s_blocks = owned.blocks[s_at], owned.blocks[s_at + U64(1)]
    _plan_picked(
        times, keys, flat.tables, r_map, s_map, True, part, Bounds(*r_blocks, *s_blocks), work,
        part.r_listed, r_count, plan,
    )  # fmt: skip
    _plan_picked(
        times, keys, flat.tables, r_map, s_map, False, part, Bounds(*s_blocks, *r_blocks), work,
        part.s_listed, s_count, plan,
    )  # fmt: skip
    return r_count + s_count
