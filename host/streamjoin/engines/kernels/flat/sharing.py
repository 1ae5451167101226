"""Several threads on one batch: each owns ranges of blocks, and restores a part of the order.

A batch is cut into parts that fit a cache. All threads do the parts in one kernel call, in steps
with barriers between them:

1. each thread plans its share of the part's arrivals into a list for each owner of their blocks;
2. each joins, in arrival order, what was listed for it, and counts the matches of each arrival;
3. each sums the counts of its share of the arrivals;
4. each writes the matches of its share of the arrivals, from all threads, to where the sums say.

Where no order was asked for, step 2 is the last one, and one barrier a part is enough: there are
two sets of lists in turn, so that a thread goes on to the next part's at once.

A thread keeps its number, and ranges are cut by the same rule for each batch
(:mod:`~streamjoin.engines.kernels.flat.ranges`): so the cache lines of its blocks stay with its
processor. Only entries of lists move from one to another.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import (
    fetch_add,
    give_way,
    load_acquire,
    pause,
    store_release,
)
from streamjoin.engines.kernels.flat.blocks import LANES, fill, move
from streamjoin.engines.kernels.flat.checking import Terms
from streamjoin.engines.kernels.flat.cuts import Words
from streamjoin.engines.kernels.flat.joining import (
    DONE,
    ENTRY,
    PLANNER,
    STATE_WORDS,
    WRITTEN,
    Flat,
    join_planned,
)
from streamjoin.engines.kernels.flat.ordering import sort
from streamjoin.engines.kernels.flat.plans import Keys, Times, is_next_r, r_rows_among
from streamjoin.engines.kernels.flat.ranges import LINE_WORDS, Owned, plan_for_owners
from streamjoin.engines.kernels.jit import fused, uncounted

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

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
    lists : tuple of two ndarrays of uint32, shape (threads * threads * room, PLAN_WORDS)
        What is planned of a part, by planner and owner.
    listed : ndarray of uint64
        Entries of the lists, by set, planner and owner, each in a cache line.
    owned : Owned
        The threads' ranges of blocks.
    barriers : ndarray of uint64, shape (BARRIERS,)
    states : ndarray of uint64, shape (threads * STATE_WORDS,)
        Where each resumes.
    counts : ndarray of uint32, shape (threads, arrivals of a part)
    sums, cursors : ndarray of uint64, shape (threads, threads) or wider
    """

    lists: tuple[Codes, Codes]
    listed: Words
    owned: Owned
    barriers: Words
    states: Words
    counts: Codes
    sums: Words
    cursors: Words


@fused
def _wait(barriers: Words, passed: int, threads: int) -> bool:
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
def _join_own(
    flat: Flat,
    keys: tuple[Codes, Codes],
    terms: Terms,
    checked: bool,
    ordered: bool,
    share: Share,
    lists: Codes,
    counting: np.uint64,
    thread: np.uint64,
    used: int,
    matches: Codes,
) -> bool:
    """Join what is listed for a thread; return whether all is done, else its share is full."""
    states, state, threads = share.states, thread * U64(STATE_WORDS), U64(share.sums.shape[0])
    room, list_room = (
        U64(len(matches)) // (U64(2) * threads),
        U64(len(lists)) // (threads * threads),
    )
    base, written = thread * U64(2) * room, U64(used) + states[state + U64(WRITTEN)]
    planner, entry = states[state + U64(PLANNER)], states[state + U64(ENTRY)]
    is_done = True
    while planner < threads:
        of_list = planner * threads + thread
        first = of_list * list_room
        end = first + share.listed[counting + of_list * U64(LINE_WORDS)]
        at, written = join_planned(
            flat, keys, terms, checked, U64(32), False, lists, first + entry, end, ordered,
            share.counts, thread, states, state, matches, base, written, room,
        )  # fmt: skip
        if at < end:
            entry = at - first
            is_done = False
            break
        planner += U64(1)
        entry = U64(0)
    states[state + U64(PLANNER)], states[state + U64(ENTRY)] = planner, entry
    states[state + U64(WRITTEN)] = written - U64(used)
    return is_done


@fused
def _restore(
    thread: np.uint64,
    part: tuple[int, int],
    times: Times,
    begin: tuple[int, int],
    inner: bool,
    counts: Codes,
    sums: Words,
    matches: Codes,
    cursors: Words,
    out: Codes,
    first: int,
) -> None:
    """Write the matches of a part of the arrivals in their order."""
    threads, room = U64(sums.shape[0]), U64(len(out)) >> U64(1)
    share = U64(len(matches)) // (U64(2) * threads)
    at, end = U64(first), U64(0)
    for other in range(threads):
        cursors[thread, other] = U64(0)
        for earlier in range(thread):
            cursors[thread, other] += sums[earlier, other]
        at += cursors[thread, other]
        end += sums[thread, other]
    end += at
    of_r = r_rows_among(times, begin[0], begin[1], part[0])
    at_r, at_s = U64(begin[0] + of_r), U64(begin[1] + part[0] - of_r)
    for arrival in range(U64(part[0]), U64(part[1])):
        is_r = is_next_r(times, at_r, at_s)
        named = U32(at_r if is_r else at_s)
        own_room, other_room = (U64(0), room) if is_r else (room, U64(0))
        at_r += U64(is_r)
        at_s += U64(not is_r)
        start = at
        for other in range(threads):
            count = U64(counts[other, arrival])
            if count == U64(0):
                continue
            source = (U64(2) * other + U64(is_r)) * share + cursors[thread, other]
            cursors[thread, other] += count
            for done in range(U64(0), count, U64(LANES)):
                if at + done + U64(LANES) <= end:  # what is too much is overwritten later
                    move(matches, source + done, out, other_room + at + done)
                    fill(out, own_room + at + done, named)
                else:
                    for each in range(done, count):
                        out[other_room + at + each] = matches[source + each]
                        out[own_room + at + each] = named
                    break
            at += count
        if inner:
            sort(out, other_room + start, other_room + at)


@uncounted
def join_shared(
    thread: int,
    times: Times,
    keys: Keys,
    flat: Flat,
    terms: Terms,
    checked: bool,
    ordered: bool,
    inner: bool,
    begin: tuple[int, int],
    arrivals: int,
    first_part: int,
    resumed: bool,
    share: Share,
    matches: Codes,
    used: Int64s,
    out: Codes,
    first: int,
) -> None:
    """Do one thread's share of a batch, part by part.

    Each thread's ``DONE`` counts the parts that it has joined. It returns when all are done, a
    thread has no room for its matches (``FULL_AT``), or the output has none for a part's.

    Parameters
    ----------
    thread : int
        Number of the thread.
    times, keys, flat, terms, checked, inner, begin
        As for :func:`~.plans.plan` and :func:`~.joining.join_alone`.
    ordered : bool
        Whether pairs are written in the order of arrival; else each thread's are, for themselves.
    arrivals : int
        Arrivals of the batch; parts have as many as ``share.counts`` has room for.
    first_part : int
        The first part to do.
    resumed : bool
        Whether that is planned, and joined by the threads whose ``DONE`` counts it.
    share : Share
    matches : ndarray of uint32
        Receives pairs, in equal shares for each thread: rows of R, then as many of S.
    used : ndarray of int64, shape (threads,)
        Pairs that each thread's share holds already; 0 if ordered.
    out : ndarray of uint32, shape (2 * room,)
        Receives pairs in order: rows of R, and ``room`` words later those of S.
    first : int
        First word to write to.
    """
    threads, own, room = share.sums.shape[0], U64(thread), share.counts.shape[1]
    state, parts, passed = U64(thread * STATE_WORDS), (arrivals + room - 1) // room, 0
    for number in range(first_part, parts):
        odd = U64(number % 2)
        lists = share.lists[1] if odd else share.lists[0]
        counting = odd * U64(threads * threads * LINE_WORDS)
        count = min(room, arrivals - number * room)
        part = (count * thread // threads, count * (thread + 1) // threads)
        of_r = r_rows_among(times, begin[0], begin[1], number * room)
        part_begin = (begin[0] + of_r, begin[1] + number * room - of_r)
        if not (resumed and number == first_part):
            plan_for_owners(
                times, keys, flat, part_begin, part[0], part[1], share.owned, own,
                U64(len(lists)) // U64(threads * threads), share.listed, counting, lists,
            )  # fmt: skip
            if not _wait(share.barriers, passed, threads):
                return
            passed += 1
        if load_acquire(share.barriers, U64(FULL_AT)) <= U64(number):
            return  # another thread's next write there is of a later part
        if share.states[state + U64(DONE)] == U64(number):
            at = share.states[state + U64(PLANNER)] + share.states[state + U64(ENTRY)]
            if ordered and at == U64(0):
                for each in range(U64(count)):
                    share.counts[own, each] = U32(0)
            if _join_own(
                flat, (keys.r_keys, keys.s_keys), terms, checked, ordered, share, lists, counting,
                own, used[own], matches,
            ):  # fmt: skip
                share.states[state + U64(DONE)] = U64(number + 1)
                share.states[state + U64(PLANNER)] = U64(0)
            else:
                store_release(share.barriers, U64(FULL_AT), U64(number + 1))
        if ordered:
            if not _wait(share.barriers, passed, threads):
                return
            passed += 1
            if load_acquire(share.barriers, U64(FULL_AT)) != NEVER:
                return
            for each in range(threads):
                total = U64(0)
                for arrival in range(U64(part[0]), U64(part[1])):
                    total += U64(share.counts[each, arrival])
                share.sums[thread, each] = total
            if not _wait(share.barriers, passed, threads):
                return
            passed += 1
            _restore(
                own, part, times, part_begin, inner, share.counts, share.sums, matches,
                share.cursors, out, first,
            )  # fmt: skip
            for each in range(threads):
                for other in range(threads):
                    first += np.int64(share.sums[each, other])
            share.states[state + U64(WRITTEN)] = U64(0)
            if thread == 0:
                share.barriers[U64(OUT_AT)] = U64(first)
            if 2 * ((len(out) >> 1) - first) < len(matches):
                return
