"""Several threads on one batch, of which the pairs are wanted in the order of arrival.

Each joins its own of a part (:mod:`~streamjoin.engines.kernels.flat.sharing`) and counts the
matches of each arrival. After a barrier each writes the matches of its share of the arrivals, from
all threads, to where the counts say. There are two sets of buffers in turn, so that one barrier a
part is enough: who is ahead fills the other set, and waits before it comes back to the first.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import load_acquire, store_release
from streamjoin.engines.kernels.flat.blocks import LANES, fill, move
from streamjoin.engines.kernels.flat.checking import Terms
from streamjoin.engines.kernels.flat.entries import Flat
from streamjoin.engines.kernels.flat.joining import (
    DONE,
    PLANNED,
    STATE_WORDS,
    WRITTEN,
)
from streamjoin.engines.kernels.flat.plans import Keys, Times, is_next_r, r_rows_among
from streamjoin.engines.kernels.flat.sharing import (
    ALL,
    FULL_AT,
    OUT_AT,
    Share,
    arrivals_of_part,
    join_own,
    plan_part,
    wait,
)
from streamjoin.engines.kernels.flat.sorting import sort
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD_WORDS, prefetch

Codes = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64


@fused
def _sum_up(share: Share, set_at: np.uint64, thread: np.uint64, count: int) -> None:
    """Sum a thread's matches of each thread's share of the arrivals."""
    threads = share.sums.shape[1]
    counts_at = (set_at + thread) * U64(arrivals_of_part(share))
    for other in range(threads):
        total = U64(0)
        for arrival in range(U64(count * other // threads), U64(count * (other + 1) // threads)):
            total += U64(share.counts[counts_at + arrival])
        share.sums[set_at + U64(other), thread] = total


@fused
def _restore(
    thread: np.uint64,
    part: tuple[int, int],
    times: Times,
    begin: tuple[int, int],
    inner: bool,
    share: Share,
    set_at: np.uint64,
    matches: Codes,
    out: Codes,
    first: int,
) -> None:
    """Write the matches of a part of the arrivals in their order."""
    counts, sums, cursors = share.counts, share.sums, share.cursors
    threads, room = U64(sums.shape[1]), U64(len(out)) >> U64(1)
    own_room, of_part = U64(len(matches)) // (U64(4) * threads), U64(arrivals_of_part(share))
    at, end = U64(first), U64(0)
    for other in range(threads):
        cursors[thread, other] = U64(0)
        for earlier in range(thread):
            cursors[thread, other] += sums[set_at + earlier, other]
        at += cursors[thread, other]
        end += sums[set_at + thread, other]
    end += at
    of_r = r_rows_among(times, begin[0], begin[1], part[0])
    at_r, at_s = U64(begin[0] + of_r), U64(begin[1] + part[0] - of_r)
    for arrival in range(U64(part[0]), U64(part[1])):
        is_r = is_next_r(times, at_r, at_s)
        named = U32(at_r if is_r else at_s)
        to_own, to_other = (U64(0), room) if is_r else (room, U64(0))
        at_r += U64(is_r)
        at_s += U64(not is_r)
        start, total = at, U64(0)
        for other in range(threads):
            at_count = (set_at + other) * of_part + arrival
            prefetch(counts, at_count + U64(AHEAD_WORDS))
            total += U64(counts[at_count])
        if total <= U64(LANES) and at + U64(2 * LANES) <= end:
            # Who has found them could not be foreseen: what is too much is overwritten later.
            fill(out, to_own + at, named)
            for other in range(threads):
                count = U64(counts[(set_at + other) * of_part + arrival])
                source = (U64(2) * (set_at + other) + U64(is_r)) * own_room + cursors[thread, other]
                prefetch(matches, source + U64(AHEAD_WORDS))
                move(matches, source, out, to_other + at)
                cursors[thread, other] += count
                at += count
        else:
            for other in range(threads):
                count = U64(counts[(set_at + other) * of_part + arrival])
                source = (U64(2) * (set_at + other) + U64(is_r)) * own_room + cursors[thread, other]
                for each in range(count):
                    out[to_other + at + each] = matches[source + each]
                    out[to_own + at + each] = named
                cursors[thread, other] += count
                at += count
        if inner:
            sort(out, to_other + start, to_other + at)


@uncounted
def join_in_order(
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
    first: int,
    first_part: int,
    inner: bool,
) -> None:
    """Do one thread's share of a batch, part by part, and restore the order of arrival.

    Each thread's ``DONE`` counts the parts that it has joined. It returns when all are done, a
    thread has no room for its matches (``FULL_AT``), or the output has none for a part's.

    Parameters
    ----------
    thread, times, keys, flat, terms, checked, begin, arrivals, out
        As for :func:`~.sharing.join_apart`.
    share : Share
        ``OUT_AT`` receives where the output ends.
    matches : ndarray of uint32
        Room for pairs: a buffer for each thread, twice.
    first : int
        First word to write to.
    first_part : int
        The first part to do; the threads whose ``DONE`` counts it have joined it.
    inner : bool
        Whether the matches of an arrival are sorted by row.
    """
    threads, own, part = share.sums.shape[1], U64(thread), arrivals_of_part(share)
    state, parts = U64(thread * STATE_WORDS), (arrivals + part - 1) // part
    room = U64(len(matches)) // U64(4 * threads)
    for passed, number in enumerate(range(first_part, parts)):
        set_at = U64(threads * (number % 2))
        count, counts_at = min(part, arrivals - number * part), (set_at + own) * U64(part)
        if share.states[state + U64(DONE)] == U64(number):
            if share.states[state + U64(PLANNED)] == U64(0):
                for each in range(U64(count)):
                    share.counts[counts_at + each] = U32(0)
            plan_part(times, keys, flat, begin, arrivals, number, share, own)
            is_done, written = join_own(
                flat, U64(len(keys.r_keys)), terms, checked, True, share,
                counts_at - U64(begin[0] + begin[1] + number * part + 2 + len(keys.r_keys)), own,
                ALL, matches, (set_at + own) * U64(2) * room, share.states[state + U64(WRITTEN)],
                room, room,
            )  # fmt: skip
            share.states[state + U64(WRITTEN)] = written
            if is_done:
                _sum_up(share, set_at, own, count)
                share.states[state + U64(WRITTEN)] = U64(0)
            else:
                store_release(share.barriers, U64(FULL_AT), U64(number + 1))
        if not wait(share.barriers, passed, threads):
            return
        if load_acquire(share.barriers, U64(FULL_AT)) <= U64(number + 1):
            return  # another thread's next write there is of a later part
        of_r = r_rows_among(times, begin[0], begin[1], number * part)
        _restore(
            own, (count * thread // threads, count * (thread + 1) // threads), times,
            (begin[0] + of_r, begin[1] + number * part - of_r), inner, share, set_at, matches,
            out, first,
        )  # fmt: skip
        for each in range(threads):
            for other in range(threads):
                first += np.int64(share.sums[set_at + U64(each), other])
        if thread == 0:
            share.barriers[U64(OUT_AT)] = U64(first)
        if 4 * ((len(out) >> 1) - first) < len(matches):
            return
