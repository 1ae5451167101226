"""Several threads on one batch: each owns ranges of blocks of both indexes.

A batch is cut into parts that fit a cache. Each thread looks at all arrivals of a part, plans what
has to do with its own blocks (:mod:`~streamjoin.engines.kernels.flat.ranges`), and joins that in
arrival order. Blocks of different threads have nothing to do with each other: where no order was
asked for, no thread waits for another. Each writes its pairs into a buffer that stays in its cache,
and then behind those of all, so that pairs lie side by side. In order:
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
from streamjoin.engines.kernels.flat.checking import Terms
from streamjoin.engines.kernels.flat.cuts import Words
from streamjoin.engines.kernels.flat.entries import Flat
from streamjoin.engines.kernels.flat.joining import (
    DONE,
    ENTRY,
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
    matches: Codes,
    base: np.uint64,
    room: np.uint64,
) -> bool:
    """Join what a thread has planned of a part; return whether all is done, else it has no room."""
    states, state = share.states, thread * U64(STATE_WORDS)
    first = thread * (U64(len(share.work.plan)) // U64(share.sums.shape[1]))
    end = first + states[state + U64(PLANNED)] - U64(1)
    at, written = join_planned(
        flat, r_rows, terms, checked, U64(32), False, share.work.plan,
        first + states[state + U64(ENTRY)], end, ordered, share.counts, count_at, states, state,
        matches, base, states[state + U64(WRITTEN)], room,
    )  # fmt: skip
    states[state + U64(ENTRY)], states[state + U64(WRITTEN)] = at - first, written
    if at < end:
        return False
    states[state + U64(PLANNED)] = U64(0)
    states[state + U64(DONE)] += U64(1)
    return True


@fused
def _hand_over(
    share: Share,
    thread: np.uint64,
    matches: Codes,
    base: np.uint64,
    room: np.uint64,
    out: Codes,
    stop: np.uint64,
) -> bool:
    """Move a thread's matches behind those in the output; return whether there was room."""
    written = share.states[thread * U64(STATE_WORDS) + U64(WRITTEN)]
    while True:
        at = load_acquire(share.barriers, U64(OUT_AT))
        if at + written > stop:
            return False
        if compare_exchange(share.barriers, U64(OUT_AT), at, at + written):
            break
    s_at = (U64(len(out)) >> U64(1)) + at
    for each in range(written):
        out[at + each] = matches[base + each]
    for each in range(written):
        out[s_at + each] = matches[base + room + each]
    share.states[thread * U64(STATE_WORDS) + U64(WRITTEN)] = U64(0)
    return True


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
) -> None:
    """Do one thread's share of a batch, part by part, in any order.

    Each thread's ``DONE`` counts the parts that it has joined. It returns when all are done, or its
    matches have no room: its own buffer none for those of an arrival (``WRITTEN`` is 0 then), or
    the output.

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
    """
    own, state = U64(thread), U64(thread * STATE_WORDS)
    room = U64(len(matches)) // U64(4 * share.sums.shape[1])
    base, part = own * U64(2) * room, arrivals_of_part(share)
    number, parts = np.int64(share.states[state + U64(DONE)]), (arrivals + part - 1) // part
    if not _hand_over(share, own, matches, base, room, out, U64(stop)):
        return
    while number < parts:
        plan_part(times, keys, flat, begin, arrivals, number, share, own)
        is_done = join_own(
            flat, U64(len(keys.r_keys)), terms, checked, False, share, U64(0), own, matches, base,
            room,
        )  # fmt: skip
        if not is_done and share.states[state + U64(WRITTEN)] == U64(0):
            return
        if not _hand_over(share, own, matches, base, room, out, U64(stop)):
            return
        number += np.int64(is_done)
