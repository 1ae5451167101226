"""Joining planned arrivals over flat indexes: look up, check, and insert.

Both indexes lie in one array of blocks. Everything about an entry is decided by its row: a look-up
compares it with the rows met, an insertion overwrites an entry whose row is no longer live. So
look-ups and insertions of different blocks may be done in any order, and threads that own ranges of
blocks share nothing while they join.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.blocks import BLOCK, LANES, NEXT, SEALED, fill, matches_in
from streamjoin.engines.kernels.flat.checking import MANY, Terms, ask_pairs, check
from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, Map, Words, block_of, map_of
from streamjoin.engines.kernels.flat.entries import Flat, insert_planned
from streamjoin.engines.kernels.flat.plans import (
    FIRST,
    HIGH_BLOCK,
    LOW,
    LOW_BLOCK,
    NEXT_BLOCK,
    ROW,
    SPAN,
    STRIPS,
    WIDTH,
    ask,
    number_of,
)
from streamjoin.engines.kernels.flat.sorting import sort
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD, AHEAD_WORDS, prefetch_to_write

Codes = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64
NO_ROOM = U64(0xFFFFFFFFFFFFFFFF)
DONE, SCANNED, CANDIDATES, WRITTEN, PLANNED, ENTRY, HANDED, CHUNK_AT, CHUNK_END = range(9)
"""Words of a thread's state: arrivals done, of threads that share a batch parts; blocks scanned,
candidates, pairs written; entries of the part's plan plus one, 0 without a plan, and the entry from
which a thread resumes; pairs that it has moved to the output of those written to its own buffer,
and where its chunk of the output has room, and ends."""

STATE_WORDS = 16
TOGETHER = 12
"""Arrivals whose candidates are found together, and then checked together."""


@fused
def look_up(
    slots: Codes,
    low_block: np.uint64,
    high_block: np.uint64,
    low: np.uint32,
    plan: Codes,
    arrival: np.uint64,
    base: np.uint32,
    out: Codes,
    at: np.uint64,
    stop: np.uint64,
    states: Words,
    state: np.uint64,
) -> np.uint64:
    """Write the matches of an arrival in blocks that hold the codes from ``low`` on.

    Returns
    -------
    int
        Where they end, :data:`NO_ROOM` beyond ``stop``.
    """
    width = plan[arrival, U64(WIDTH)]
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
def look_up_strips(
    flat: Flat,
    by: Map,
    order_bits: np.uint64,
    plan: Codes,
    arrival: np.uint64,
    base: np.uint32,
    out: Codes,
    at: np.uint64,
    stop: np.uint64,
    states: Words,
    state: np.uint64,
) -> np.uint64:
    """As :func:`look_up`, in the strips behind the first one."""
    low, width = U64(plan[arrival, U64(LOW)]), U64(plan[arrival, U64(WIDTH)])
    for _ in range(plan[arrival, U64(STRIPS)]):
        low += U64(1) << order_bits
        low_block = block_of(flat.tables, by, U32(low))
        high_block = block_of(flat.tables, by, U32(low + width))
        at = look_up(
            flat.slots, low_block, high_block, U32(low), plan, arrival, base, out, at, stop,
            states, state,
        )  # fmt: skip
        if at == NO_ROOM:
            break
    return at


@fused
def _find(
    flat: Flat,
    r_rows: np.uint64,
    order_bits: np.uint64,
    plan: Codes,
    at: np.uint64,
    out: Codes,
    start: np.uint64,
    stop: np.uint64,
    state: Words,
    words: np.uint64,
) -> np.uint64:
    """Write the rows whose codes an arrival meets; return where they end, or :data:`NO_ROOM`."""
    of_s = U64(plan[at, U64(ROW)]) > r_rows
    base = U32(1) if of_s else U32(r_rows + U64(1))
    low_block, high_block = U64(plan[at, U64(LOW_BLOCK)]), U64(plan[at, U64(HIGH_BLOCK)])
    end = look_up(
        flat.slots, low_block, high_block, plan[at, U64(LOW)], plan, at, base, out, start, stop,
        state, words,
    )  # fmt: skip
    if plan[at, U64(STRIPS)] and end != NO_ROOM:
        by = map_of(flat.cuts, U64(0) if of_s else U64(CUT_WORDS))
        end = look_up_strips(flat, by, order_bits, plan, at, base, out, end, stop, state, words)
    if end != NO_ROOM:
        state[words + U64(CANDIDATES)] += end - start
    return end


@fused
def _join_exact(
    flat: Flat,
    r_rows: np.uint64,
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
    limit: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """As :func:`join_planned`, where whoever has a code that is looked up is a match."""
    at = first
    while at < planned:
        ahead = at + U64(AHEAD)
        if ahead < planned:
            ask(flat.slots, plan, ahead)
        if plan[at, U64(SPAN)] != U32(0):
            row = plan[at, U64(ROW)]
            of_s = U64(row) > r_rows
            own, other = (base + room, base) if of_s else (base, base + room)
            own_base, met_base = U32(1), U32(r_rows + U64(1))
            if of_s:
                own_base, met_base = met_base, own_base
            start = other + written
            end = look_up(
                flat.slots, U64(plan[at, U64(LOW_BLOCK)]), U64(plan[at, U64(HIGH_BLOCK)]),
                plan[at, U64(LOW)], plan, at, met_base, out, start, other + limit, state,
                words,
            )  # fmt: skip
            if end == NO_ROOM:
                break
            state[words + U64(CANDIDATES)] += end - start
            if inner:
                sort(out, start, end)
            if counted:
                prefetch_to_write(out, start + U64(AHEAD_WORDS))
                counts[count_at + number_of(plan, at)] = U32(end - start)
            else:
                own += written
                fill(out, own, row - own_base)  # a look-up left room for it
                for pair in range(own + U64(LANES), own + end - start):
                    out[pair] = row - own_base
            written += end - start
        insert_planned(flat, r_rows, plan, at)
        at += U64(1)
    return at, written


@fused
def _join_checked(
    flat: Flat,
    r_rows: np.uint64,
    terms: Terms,
    order_bits: np.uint64,
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
    limit: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """As :func:`join_planned`, where candidates are checked.

    They are found for a few arrivals and checked after those of the next few: meanwhile what a
    check reads of them is fetched. Both rows of each are written at once, so that where nothing is
    asked of an arrival's matches together no branch depends on how many an arrival has.
    """
    done = at = first
    end, is_full, by_arrival = written, False, counted or inner
    while done < planned and not is_full:
        # From ``written`` to ``end`` are the candidates of the arrivals from ``done`` to ``at``.
        found_at, found, goal = at, end, min(planned, at + U64(TOGETHER))
        while at < goal:
            ahead = at + U64(AHEAD)
            if ahead < planned:
                ask(flat.slots, plan, ahead)
            if plan[at, U64(SPAN)] != U32(0):
                row, start = plan[at, U64(ROW)], end
                of_s = U64(row) > r_rows
                own, other = (base + room, base) if of_s else (base, base + room)
                stop = _find(
                    flat, r_rows, order_bits, plan, at, out, other + start, other + limit, state,
                    words,
                )  # fmt: skip
                if stop == NO_ROOM:
                    is_full = at == done  # else there may be room when those before are checked
                    break
                end = stop - other
                number = row - (U32(r_rows + U64(1)) if of_s else U32(1))
                fill(out, own + start, number)  # a look-up left room for it
                for pair in range(own + start + U64(LANES), own + end):
                    out[pair] = number
                if by_arrival:
                    plan[at, U64(NEXT_BLOCK)] = U32(end - start)
            insert_planned(flat, r_rows, plan, at)
            at += U64(1)
        ask_pairs(terms, out, base, base + room, found, end)
        if not by_arrival:
            are_many = found - written > U64(MANY) * (found_at - done)
            written = check(terms, are_many, out, base, base + room, written, found, written)
            done = found_at
        stop = written
        while done < found_at:
            if plan[done, U64(SPAN)] != U32(0):
                start, stop = stop, stop + U64(plan[done, U64(NEXT_BLOCK)])
                are_many = stop - start > U64(MANY)
                kept = check(terms, are_many, out, base, base + room, start, stop, written)
                if inner:
                    other = base if U64(plan[done, U64(ROW)]) > r_rows else base + room
                    sort(out, other + written, other + kept)
                if counted:
                    counts[count_at + number_of(plan, done)] = U32(kept - written)
                written = kept
            done += U64(1)
        for pair in range(found, end):
            to = written + (pair - found)
            out[base + to], out[base + room + to] = out[base + pair], out[base + room + pair]
        end = written + (end - found)
    return done, written


@fused
def join_planned(
    flat: Flat,
    r_rows: np.uint64,
    terms: Terms,
    checked: bool,
    order_bits: np.uint64,
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
    limit: np.uint64,
) -> tuple[np.uint64, np.uint64]:
    """Join the arrivals of a plan from ``first`` on until all are done or there is no room.

    Pairs are written to ``out``: rows of R from ``base`` on, those of S ``room`` words later, so
    that with those ``written`` before there are ``limit`` at most. If ``counted``, an arrival's
    matches are counted, and their rows alone are written, not its own. ``count_at`` is added to its
    number, modulo 2**64. Only checked candidates may be in strips.

    Returns
    -------
    done, written : int
        Arrivals of the plan that are done, and pairs written in all.
    """
    for early in range(first, min(first + U64(AHEAD), planned)):
        ask(flat.slots, plan, early)
    if checked:
        return _join_checked(
            flat, r_rows, terms, order_bits, inner, plan, first, planned, counted, counts,
            count_at, state, words, out, base, written, room, limit,
        )  # fmt: skip
    return _join_exact(
        flat, r_rows, inner, plan, first, planned, counted, counts, count_at, state, words, out,
        base, written, room, limit,
    )  # fmt: skip


@uncounted
def join_alone(
    flat: Flat,
    keys: tuple[Codes, Codes],
    terms: Terms,
    checked: bool,
    order_bits: int,
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
    order_bits : int
        Bits of a code below those of its strip.
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
    room = U64(len(out)) >> U64(1)
    done, written = join_planned(
        flat, U64(len(keys[0])), terms, checked, U64(order_bits), inner, plan, state[U64(DONE)],
        U64(arrivals), False, out, U64(0), state, U64(0), out, U64(0), U64(first), room, room,
    )  # fmt: skip
    state[U64(DONE)] = done
    return int(written - U64(first))
