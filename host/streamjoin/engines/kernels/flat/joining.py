"""Joining planned arrivals over flat indexes: look up, insert, and restore the order of arrival.

Both indexes lie in one array of blocks. Everything about an entry is decided by its row: a look-up
compares it with the rows met, an insertion overwrites an entry whose row is no longer live. So
look-ups and insertions of different blocks may be done in any order, and threads that own ranges of
blocks share nothing while they join.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add
from streamjoin.engines.kernels.flat.blocks import (
    BLOCK,
    LANES,
    NEXT,
    SEALED,
    fill,
    free_lane,
    matches_in,
)
from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, NEXT_FREE, Words, block_of, map_of
from streamjoin.engines.kernels.flat.plans import (
    EXPIRED,
    FIRST,
    HIGH_BLOCK,
    KEY,
    LOW,
    LOW_BLOCK,
    NOWHERE,
    OWN,
    ROW,
    SPAN,
    WIDTH,
)
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch, prefetch_to_write

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
NO_ROOM = U64(0xFFFFFFFFFFFFFFFF)
AHEAD_WORDS = 256
"""Words ahead of what threads exchange that are prefetched: a line takes long to arrive."""

SMALL = 24
"""Matches of an arrival up to which they are sorted by insertion."""

DONE, SCANNED, CANDIDATES, WRITTEN, PLANNED, ENTRY = range(6)
"""Words of a thread's state: arrivals done, of threads that share a batch parts; blocks scanned,
candidates, pairs written; entries of the part's plan plus one, 0 without a plan, and the entry from
which a thread resumes."""

STATE_WORDS = 16


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


class Terms(NamedTuple):
    """The whole predicate, for candidates that must be checked.

    Attributes
    ----------
    r : ndarray of uint32 or int64, shape (terms, r rows)
    s_lo, s_hi : ndarray of uint32 or int64, shape (terms, s rows)
    """

    r: Codes | Int64s
    s_lo: Codes | Int64s
    s_hi: Codes | Int64s


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
def look_up(
    slots: Codes,
    low_block: np.uint64,
    high_block: np.uint64,
    plan: Codes,
    arrival: np.uint64,
    base: np.uint32,
    out: Codes,
    at: np.uint64,
    stop: np.uint64,
    states: Words,
    state: np.uint64,
) -> np.uint64:
    """Write the matches of an arrival; return where they end, :data:`NO_ROOM` beyond ``stop``."""
    low, width = plan[arrival, U64(LOW)], plan[arrival, U64(WIDTH)]
    first, rows = plan[arrival, U64(FIRST)], plan[arrival, U64(SPAN)]
    scanned = U64(0)
    for home in range(low_block, high_block + U64(1)):
        block = home
        while True:
            if at + U64(LANES) > stop:
                return NO_ROOM
            start = block * U64(BLOCK)
            at += matches_in(slots, start, low, width, first, rows, out, at, base)
            scanned += U64(1)
            following = U64(slots[start + U64(NEXT)])
            if following == U64(0):
                break
            if block != home and slots[start + U64(SEALED)] <= first:
                break
            block = following
    states[state + U64(SCANNED)] += scanned
    return at


@fused
def check(
    terms: Terms, plan: Codes, arrival: np.uint64, out: Codes, start: np.uint64, end: np.uint64
) -> np.uint64:
    """Keep the candidates that satisfy the whole predicate; return where they end.

    Most fail, by the same term: the term by which the last one failed is checked first.
    """
    r_rows, terms_count = U64(terms.r.shape[1]), U64(terms.r.shape[0])
    row = U64(plan[arrival, U64(ROW)]) - U64(1)
    of_s = row >= r_rows
    kept, likely = start, terms_count - U64(1)
    for at in range(start, end):
        other = U64(out[at])
        r_row, s_row = (other, row - r_rows) if of_s else (row, other)
        key = terms.r[likely, r_row]
        if key < terms.s_lo[likely, s_row] or key > terms.s_hi[likely, s_row]:
            continue
        hit = True
        for term in range(terms_count):
            key = terms.r[term, r_row]
            if key < terms.s_lo[term, s_row] or key > terms.s_hi[term, s_row]:
                hit, likely = False, term
                break
        if hit:
            out[kept] = U32(other)
            kept += U64(1)
    return kept


@fused
def _sift(out: Codes, start: np.uint64, root: np.uint64, count: np.uint64) -> None:
    value = out[start + root]
    while True:
        child = U64(2) * root + U64(1)
        if child >= count:
            break
        if child + U64(1) < count and out[start + child] < out[start + child + U64(1)]:
            child += U64(1)
        if out[start + child] <= value:
            break
        out[start + root] = out[start + child]
        root = child
    out[start + root] = value


@uncounted
def sort(out: Codes, start: np.uint64, end: np.uint64) -> None:
    """Sort the rows of a group: by insertion while it is small, else by a heap."""
    count = end - start
    if count <= U64(SMALL):
        for at in range(start + U64(1), end):
            value, hole = out[at], at
            while hole > start and out[hole - U64(1)] > value:
                out[hole] = out[hole - U64(1)]
                hole -= U64(1)
            out[hole] = value
        return
    for back in range(count // U64(2)):
        _sift(out, start, count // U64(2) - U64(1) - back, count)
    for back in range(count - U64(1)):
        last = count - U64(1) - back
        out[start], out[start + last] = out[start + last], out[start]
        _sift(out, start, U64(0), last)


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


@fused
def join_planned(
    flat: Flat,
    r_rows: np.uint64,
    terms: Terms,
    checked: bool,
    inner: bool,
    plan: Codes,
    first: np.uint64,
    planned: np.uint64,
    counted: bool,
    counts: Codes,
    count_at: np.uint64,
    state: Words,
    words: np.uint64,
    out: Codes,
    base: np.uint64,
    written: np.uint64,
    room: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Join the arrivals of a plan from ``first`` on until all are done or there is no room.

    Pairs are written to ``out``: rows of R from ``base`` on, those of S ``room`` words later. If
    ``counted``, an arrival's matches are counted, and their rows alone are written, not its own.
    An arrival's number is what its row and the next one that it could meet add up to; ``count_at``
    is added to it, modulo 2**64.

    Returns
    -------
    done, written : int
        Arrivals of the plan that are done, and pairs written in all.
    """
    at = first
    for early in range(first, min(first + U64(AHEAD), planned)):
        ask(flat.slots, plan, early)
    while at < planned:
        ahead = at + U64(AHEAD)
        if ahead < planned:
            ask(flat.slots, plan, ahead)
        row = plan[at, U64(ROW)]
        of_s = U64(row) > r_rows
        own_base, other_base = (base + room, base) if of_s else (base, base + room)
        row_base = U32(r_rows + U64(1)) if of_s else U32(1)
        if plan[at, U64(SPAN)] != U32(0):
            met_base = U32(1) if of_s else U32(r_rows + U64(1))
            start = other_base + written
            low_block, high_block = U64(plan[at, U64(LOW_BLOCK)]), U64(plan[at, U64(HIGH_BLOCK)])
            end = look_up(
                flat.slots, low_block, high_block, plan, at, met_base, out, start,
                other_base + room, state, words,
            )  # fmt: skip
            if end == NO_ROOM:
                break
            state[words + U64(CANDIDATES)] += end - start
            if checked:
                end = check(terms, plan, at, out, start, end)
            if inner:
                sort(out, start, end)
            if counted:
                prefetch_to_write(out, start + U64(AHEAD_WORDS))
                arrived = U64(plan[at, U64(FIRST)]) + U64(plan[at, U64(SPAN)]) + U64(row)
                counts[count_at + arrived] = U32(end - start)
            else:
                own = own_base + written
                fill(out, own, row - row_base)  # a look-up left room for it
                for pair in range(own + U64(LANES), own + end - start):
                    out[pair] = row - row_base
            written += end - start
        block = plan[at, U64(OWN)]
        live = plan[at, U64(EXPIRED)]
        if block != NOWHERE and live <= row:
            key = plan[at, U64(KEY)]
            insert(flat, U64(CUT_WORDS) if of_s else U64(0), U64(block), key, row, live)
        at += U64(1)
    return at, written


@uncounted
def join_alone(
    flat: Flat,
    keys: tuple[Codes, Codes],
    terms: Terms,
    checked: bool,
    inner: bool,
    plan: Codes,
    arrivals: int,
    state: Words,
    out: Codes,
    first: int,
) -> int:
    """Join a batch on one thread.

    Parameters
    ----------
    flat : Flat
        The indexes.
    keys : tuple of ndarray of uint32
        Index keys of R and of S.
    terms : Terms
        The predicate; used if ``checked``.
    checked : bool
        Whether candidates are checked.
    inner : bool
        Whether the matches of an arrival are sorted by row.
    plan : ndarray of uint32, shape (arrivals, PLAN_WORDS)
        Of the batch.
    arrivals : int
        Arrivals of the batch.
    state : ndarray of uint64, shape (STATE_WORDS,)
        ``DONE`` arrivals, from which it resumes.
    out : ndarray of uint32, shape (2 * room,)
        Receives rows of R, and ``room`` words later those of S.
    first : int
        First word to write to.

    Returns
    -------
    int
        Pairs written; ``DONE`` is ``arrivals`` if all have been joined, else there is no room.
    """
    done, written = join_planned(
        flat, U64(len(keys[0])), terms, checked, inner, plan, state[U64(DONE)], U64(arrivals),
        False, out, U64(0), state, U64(0), out, U64(0), U64(first),
        U64(len(out)) >> U64(1),
    )  # fmt: skip
    state[U64(DONE)] = done
    return int(written - U64(first))


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
