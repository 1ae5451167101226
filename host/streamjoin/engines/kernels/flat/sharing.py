"""Several threads on one batch: each owns ranges of blocks of both indexes.

A batch is cut into parts that fit a cache. Each thread looks at all arrivals of a part, plans what
has to do with its own blocks (:mod:`~streamjoin.engines.kernels.flat.ranges`), and joins that in
arrival order. Blocks of different threads have nothing to do with each other: where no order was
asked for, no thread waits for another. Each writes its pairs into chunks of the output. Those that
might not fit into the rest of a chunk go to a buffer of the thread, and from there into that rest
and into the next chunk: so only the last chunk of a thread may have a gap, when the call ends. In
order:
:mod:`~streamjoin.engines.kernels.flat.ordering`.

A thread keeps its number, and ranges are cut by the same rule for each batch. So the cache lines of
its blocks stay with its processor.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import (
    compare_exchange,
    fetch_add,
    give_way,
    load_acquire,
    pause,
)
from streamjoin.engines.kernels.flat.blocks import LANES
from streamjoin.engines.kernels.flat.checking import Terms
from streamjoin.engines.kernels.flat.cuts import Words
from streamjoin.engines.kernels.flat.entries import Flat
from streamjoin.engines.kernels.flat.joining import (
    CHUNK_AT,
    CHUNK_END,
    DONE,
    ENTRY,
    HANDED,
    PLANNED,
    STATE_WORDS,
    WRITTEN,
    join_planned,
)
from streamjoin.engines.kernels.flat.plans import Keys, Times, r_rows_among
from streamjoin.engines.kernels.flat.ranges import LINE_WORDS, Owned, Work, plan_own
from streamjoin.engines.kernels.jit import fused, uncounted

Codes = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64

SPINS = 256
"""Pauses at a barrier before another thread may run."""

ARRIVED, FAILED, FULL_AT, OUT_AT = (LINE_WORDS * line for line in range(4))
"""Words of the barriers: threads that have arrived, at all barriers together; whether one has
failed and does not arrive; the part in which a thread had no room, plus one; where the output
ends."""

BARRIERS = 4 * LINE_WORDS
NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)

PAGE_WORDS = 1 << 19
"""Words of a huge page."""

ALL, FEW = U64(1 << 32), 16
"""Arrivals that a thread joins in one go: into its chunk, and into its buffer when that is full."""


class Share(NamedTuple):
    """Work space of the threads.

    Attributes
    ----------
    work : Work
        What each does for a part.
    owned : Owned
        The threads' ranges of blocks.
    barriers : ndarray of uint64, shape (BARRIERS,)
    states : ndarray of uint64, shape (threads * STATE_WORDS,)
        Where each resumes.
    counts : ndarray of uint32, shape (2 * threads * arrivals of a part,)
        Matches of each arrival, by set and thread.
    sums : ndarray of uint64, shape (2 * threads, threads)
        Matches of a thread's share of the arrivals, by set and share, and by who has found them.
    cursors : ndarray of uint64, shape (threads, threads) or wider
    """

    work: Work
    owned: Owned
    barriers: Words
    states: Words
    counts: Codes
    sums: Words
    cursors: Words


@fused
def wait(barriers: Words, passed: int, threads: int) -> bool:
    """Wait until all threads are here; return False if one has failed and does not arrive."""
    fetch_add(barriers, U64(ARRIVED), U64(1))
    spins = 0
    while load_acquire(barriers, U64(ARRIVED)) < U64(threads * (passed + 1)):
        if load_acquire(barriers, U64(FAILED)):
            return False
        spins += 1
        if spins % SPINS:
            pause()
        else:
            give_way()
    return True


@fused
def arrivals_of_part(share: Share) -> int:
    """Return the maximum arrivals of a part."""
    return len(share.counts) // (2 * share.sums.shape[1])


@fused
def plan_part(
    times: Times,
    keys: Keys,
    flat: Flat,
    begin: tuple[int, int],
    arrivals: int,
    number: int,
    share: Share,
    thread: np.uint64,
) -> int:
    """Plan a part unless that is done; return its arrivals."""
    room, state = arrivals_of_part(share), thread * U64(STATE_WORDS)
    count = min(room, arrivals - number * room)
    if share.states[state + U64(PLANNED)] == U64(0):
        of_r = r_rows_among(times, begin[0], begin[1], number * room)
        part_begin = (begin[0] + of_r, begin[1] + number * room - of_r)
        entries = plan_own(times, keys, flat, part_begin, count, share.owned, thread, share.work)
        share.states[state + U64(PLANNED)] = entries + U64(1)
        share.states[state + U64(ENTRY)] = U64(0)
    return count


@fused
def join_own(
    flat: Flat,
    r_rows: np.uint64,
    terms: Terms,
    checked: bool,
    ordered: bool,
    share: Share,
    count_at: np.uint64,
    thread: np.uint64,
    most: np.uint64,
    out: Codes,
    base: np.uint64,
    written: np.uint64,
    room: np.uint64,
    limit: np.uint64,
) -> tuple[bool, np.uint64]:
    """Join of what a thread has planned of a part ``most`` arrivals at most, while there is room.

    Pairs are written as by :func:`~.joining.join_planned`.

    Returns
    -------
    is_done, written : bool, int
        Whether the part is done, and the pairs written in all.
    """
    states, state = share.states, thread * U64(STATE_WORDS)
    first = thread * (U64(len(share.work.plan)) // U64(share.sums.shape[1]))
    end = first + states[state + U64(PLANNED)] - U64(1)
    at = first + states[state + U64(ENTRY)]
    at, written = join_planned(
        flat, r_rows, terms, checked, U64(32), False, share.work.plan, at, min(end, at + most),
        ordered, share.counts, count_at, states, state, out, base, written, room, limit,
    )  # fmt: skip
    states[state + U64(ENTRY)] = at - first
    if at < end:
        return False, written
    states[state + U64(PLANNED)] = U64(0)
    states[state + U64(DONE)] += U64(1)
    return True, written


@fused
def _hand_over(
    share: Share,
    state: np.uint64,
    matches: Codes,
    base: np.uint64,
    room: np.uint64,
    out: Codes,
    sizes: tuple[np.uint64, np.uint64],
) -> bool:
    """Move a thread's matches to its chunks of the output; return whether there was room.

    A chunk is claimed in one atomic step, and only when the one before is full. ``sizes`` are where
    chunks have to end, and how many pairs one has.
    """
    stop, chunk = sizes
    states, s_at = share.states, U64(len(out)) >> U64(1)
    handed, written = states[state + U64(HANDED)], states[state + U64(WRITTEN)]
    at, end = states[state + U64(CHUNK_AT)], states[state + U64(CHUNK_END)]
    while handed < written:
        while at == end:
            free = load_acquire(share.barriers, U64(OUT_AT))
            if free >= stop:
                break
            after = min(free + chunk, stop)
            if compare_exchange(share.barriers, U64(OUT_AT), free, after):
                at, end = free, after
        if at == end:
            break
        count = min(written - handed, end - at)
        for each in range(count):
            out[at + each] = matches[base + handed + each]
        for each in range(count):
            out[s_at + at + each] = matches[base + room + handed + each]
        at += count
        handed += count
    states[state + U64(CHUNK_AT)], states[state + U64(CHUNK_END)] = at, end
    is_done = handed == written
    if is_done:
        handed = written = U64(0)
    states[state + U64(HANDED)], states[state + U64(WRITTEN)] = handed, written
    return is_done


@uncounted
def touch(thread: int, threads: int, out: Codes, first: int, pages: int) -> None:
    """Have the system provide a thread's share of pages of the output before they are written.

    Where one thread alone is the first to write to many of a batch's pages, the others wait for it.

    Parameters
    ----------
    thread, threads : int
        Number of the thread, and how many share the pages.
    out : ndarray of uint32, shape (2 * room,)
        Rows of R, and ``room`` words later those of S. No word is changed.
    first : int
        Word of the first page of rows of R.
    pages : int
        Pages of rows of R, and as many of rows of S.
    """
    for page in range(thread, pages, threads):
        at = U64(first + page * PAGE_WORDS)
        compare_exchange(out, at, U32(0), U32(0))
        compare_exchange(out, (U64(len(out)) >> U64(1)) + at, U32(0), U32(0))


@uncounted
def join_apart(
    thread: int,
    times: Times,
    keys: Keys,
    flat: Flat,
    terms: Terms,
    checked: bool,
    begin: tuple[int, int],
    arrivals: int,
    share: Share,
    matches: Codes,
    out: Codes,
    stop: int,
    chunk: int,
) -> None:
    """Do one thread's share of a batch, part by part, in any order.

    Each thread's ``DONE`` counts the parts that it has joined. It returns when all are done, or its
    matches have no room: its own buffer none for those of an arrival (``WRITTEN`` is 0 then), or
    the output. Where its last chunk has room, from ``CHUNK_AT`` to ``CHUNK_END``, is a gap in the
    output.

    Parameters
    ----------
    thread : int
        Number of the thread.
    times, keys, flat, terms, checked, begin
        As for :func:`~.plans.plan` and :func:`~.joining.join_alone`.
    arrivals : int
        Arrivals of the batch; parts have :func:`arrivals_of_part`.
    share : Share
        ``OUT_AT`` is where the output ends.
    matches : ndarray of uint32
        Room for pairs: two buffers for each thread, one of which is used, each of rows of R, then
        as many of S.
    out : ndarray of uint32, shape (2 * room,)
        Receives pairs: rows of R, and ``room`` words later those of S.
    stop : int
        Word at which rows of R have to end.
    chunk : int
        Pairs of the output that a thread claims at once.
    """
    own, state, states = U64(thread), U64(thread * STATE_WORDS), share.states
    room, half = U64(len(matches)) // U64(4 * share.sums.shape[1]), U64(len(out)) >> U64(1)
    base, part = own * U64(2) * room, arrivals_of_part(share)
    number, parts = np.int64(states[state + U64(DONE)]), (arrivals + part - 1) // part
    sizes, is_direct = (U64(stop), U64(chunk)), True
    if not _hand_over(share, state, matches, base, room, out, sizes):
        return
    while number < parts:
        plan_part(times, keys, flat, begin, arrivals, number, share, own)
        entry, written = states[state + U64(ENTRY)], states[state + U64(CHUNK_AT)]
        limit = states[state + U64(CHUNK_END)]
        is_direct = is_direct and written + U64(LANES) <= limit
        target, first, distance, most = out, U64(0), half, ALL
        if not is_direct:
            target, first, distance, most = matches, base, room, U64(FEW)
            written, limit = U64(0), room
        is_done, written = join_own(
            flat, U64(len(keys.r_keys)), terms, checked, False, share, U64(0), own, most, target,
            first, written, distance, limit,
        )  # fmt: skip
        if is_direct:
            states[state + U64(CHUNK_AT)] = written
        else:
            states[state + U64(WRITTEN)] = written
            if not is_done and states[state + U64(ENTRY)] == entry:
                return
            if not _hand_over(share, state, matches, base, room, out, sizes):
                return
        number += np.int64(is_done)
        is_direct = is_done or not is_direct
