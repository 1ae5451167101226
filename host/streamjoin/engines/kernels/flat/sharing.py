"""Several threads on one batch: each owns ranges of blocks, and restores a part of the order.

A batch is one kernel call of each thread, in steps with barriers between them:

1. each thread plans a part of the arrivals;
2. the first cuts the blocks of both indexes into a range for each thread, equal by a sample of the
   batch's work;
3. each joins, in arrival order, what falls into its ranges, and counts the matches of each arrival;
4. each sums the counts of its part of the arrivals;
5. each writes the matches of its part of the arrivals, from all threads, to where the sums say.

Where no order was asked for, each writes its pairs into its own share of the output in step 3, and
that is the last one.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add, give_way, load_acquire, pause
from streamjoin.engines.kernels.flat.blocks import LANES, fill, move
from streamjoin.engines.kernels.flat.cuts import BASE, BLOCKS, CUT_WORDS, Words
from streamjoin.engines.kernels.flat.joining import (
    CANDIDATES,
    DONE,
    NO_ROOM,
    START,
    STATE_WORDS,
    WRITTEN,
    Flat,
    Terms,
    ask,
    check,
    insert,
    look_up,
    sort,
)
from streamjoin.engines.kernels.flat.plans import (
    EXPIRED,
    HIGH_BLOCK,
    LOW_BLOCK,
    OWN,
    ROW,
    SPAN,
    Keys,
    Times,
    plan,
)
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD

Codes = NDArray[np.uint32]
U32, U64 = np.uint32, np.uint64

SPINS = 256
"""Pauses at a barrier before another thread may run."""

LISTED = 1 << 14
"""Arrivals of which a thread lists its own at once."""

SAMPLED = 2048
"""Maximum arrivals whose blocks are sampled to cut ranges of equal work."""

BINS = 256
FAILED = 15
BARRIER_WORDS = 8
BARRIERS = 16 * BARRIER_WORDS


@fused
def _wait(barriers: Words, number: int, threads: int) -> bool:
    """Wait until all threads are here; return False if one has failed and does not arrive."""
    at = U64(number * BARRIER_WORDS)
    fetch_add(barriers, at, U64(1))
    spins = 0
    while load_acquire(barriers, at) < U64(threads):
        if load_acquire(barriers, U64(FAILED * BARRIER_WORDS)):
            return False
        spins += 1
        if spins % SPINS:
            pause()
        else:
            give_way()
    return True


@fused
def _own_blocks(
    flat: Flat, planned: Codes, arrivals: int, side: np.uint64, bins: Words, owners: Codes
) -> None:
    """Cut the blocks of an index into ranges of equal work."""
    threads = U64(owners.shape[1]) - U64(1)
    cut = side * U64(CUT_WORDS)
    base, blocks = flat.cuts[cut + U64(BASE)], flat.cuts[cut + U64(BLOCKS)]
    for each in range(U64(BINS)):
        bins[each] = U64(0)
    step = U64(max(1, arrivals // SAMPLED))
    total = U64(0)
    for arrival in range(U64(0), U64(arrivals), step):
        own, low = U64(planned[U64(OWN), arrival]), U64(planned[U64(LOW_BLOCK), arrival])
        if own - base < blocks:
            bins[(own - base) * U64(BINS) // blocks] += U64(1)
            total += U64(1)
        if low - base < blocks and planned[U64(SPAN), arrival] != U32(0):
            bins[(low - base) * U64(BINS) // blocks] += U64(1)
            total += U64(1)
    owners[side, 0] = U32(base)
    below, owner = U64(0), U64(1)
    for each in range(U64(BINS)):
        below += bins[each]
        while owner < threads and below * threads >= total * owner:
            owners[side, owner] = U32(base + ((each + U64(1)) * blocks) // U64(BINS))
            owner += U64(1)
    while owner < threads:
        owners[side, owner] = U32(base + blocks)
        owner += U64(1)
    owners[side, threads] = U32(base + blocks)


@fused
def _list(
    planned: Codes,
    first: np.uint64,
    end: np.uint64,
    owners: Codes,
    thread: np.uint64,
    counts: Codes,
    items: Codes,
) -> np.uint64:
    """List the arrivals that look up (bit 0) or are inserted (bit 1) in a thread's blocks."""
    listed, listing = U64(0), thread * U64(LISTED)
    r_low, r_high = owners[U64(0), thread], owners[U64(0), thread + U64(1)]
    s_low, s_high = owners[U64(1), thread], owners[U64(1), thread + U64(1)]
    for arrival in range(first, end):
        counts[thread, arrival] = U32(0)
        own = planned[U64(OWN), arrival]
        low, high = planned[U64(LOW_BLOCK), arrival], planned[U64(HIGH_BLOCK), arrival]
        inserts = ((own >= r_low) & (own < r_high)) | ((own >= s_low) & (own < s_high))
        near = ((low < r_high) & (high >= r_low)) | ((low < s_high) & (high >= s_low))
        looks = near & (low <= high) & (planned[U64(SPAN), arrival] != U32(0))
        items[listing + listed] = U32(arrival << U64(2)) | U32(U64(inserts) << U64(1) | U64(looks))
        listed += U64(inserts | looks)
    return listed


@fused
def _join_own(
    flat: Flat,
    keys: tuple[Codes, Codes],
    terms: Terms,
    checked: bool,
    ordered: bool,
    planned: Codes,
    arrivals: int,
    owners: Codes,
    thread: np.uint64,
    states: Words,
    counts: Codes,
    items: Codes,
    matches: Codes,
) -> None:
    """Join what falls into a thread's blocks until all is done or its share is full.

    In an order, ``matches`` receives the rows met, and ``counts`` how many. Else its first half
    receives rows of R and its second half those of S.
    """
    r_rows, count = U64(len(keys[0])), U64(arrivals)
    state, listing = thread * U64(STATE_WORDS), thread * U64(LISTED)
    room = U64(0) if ordered else U64(len(matches)) >> U64(1)
    share = (U64(len(matches)) - room) // U64(owners.shape[1] - 1)
    base_at, stop_at = thread * share + states[state + U64(START)], thread * share + share
    written = base_at + states[state + U64(WRITTEN)]
    arrival = states[state + U64(DONE)]
    full = False
    while arrival < count and not full:
        end = min(arrival + U64(LISTED), count)
        listed = _list(planned, arrival, end, owners, thread, counts, items)
        for each in range(listed):
            ahead = each + U64(AHEAD)
            if ahead < listed:
                ask(flat.slots, planned, U64(items[listing + ahead] >> U32(2)))
            item = items[listing + each]
            at = U64(item >> U32(2))
            row = planned[U64(ROW), at]
            of_s = U64(row) > r_rows
            if item & U32(1):
                side = U64(0) if of_s else U64(1)
                low = max(planned[U64(LOW_BLOCK), at], owners[side, thread])
                high = min(planned[U64(HIGH_BLOCK), at], owners[side, thread + U64(1)] - U32(1))
                base = U32(1) if of_s else U32(r_rows + U64(1))
                own_room, other_room = (room, U64(0)) if of_s else (U64(0), room)
                start = other_room + written
                stop = look_up(
                    flat.slots, U64(low), U64(high), planned, at, base, matches, start,
                    other_room + stop_at, states, state,
                )  # fmt: skip
                if stop == NO_ROOM:
                    end, full = at, True
                    break
                states[state + U64(CANDIDATES)] += stop - start
                if checked:
                    stop = check(terms, planned, at, matches, start, stop)
                found = stop - start
                if ordered:
                    counts[thread, at] = U32(found)
                else:
                    named = row - (U32(r_rows + U64(1)) if of_s else U32(1))
                    own = own_room + written
                    fill(matches, own, named)  # a look-up left room for it
                    for each_pair in range(own + U64(LANES), own + found):
                        matches[each_pair] = named
                written += found
            live = planned[U64(EXPIRED), at]
            if item & U32(2) and live <= row:
                number = U64(row) - U64(1) - (r_rows if of_s else U64(0))
                key = keys[1][number] if of_s else keys[0][number]
                cut = U64(CUT_WORDS) if of_s else U64(0)
                insert(flat, cut, U64(planned[U64(OWN), at]), key, row, live)
        arrival = end
    states[state + U64(WRITTEN)] = written - base_at
    states[state + U64(DONE)] = arrival


@fused
def _restore(
    thread: np.uint64,
    part: tuple[int, int],
    r_rows: np.uint64,
    inner: bool,
    planned: Codes,
    counts: Codes,
    sums: Words,
    matches: Codes,
    cursors: Words,
    out: Codes,
    first: int,
) -> None:
    """Write the matches of a part of the arrivals in their order."""
    threads, room = U64(sums.shape[0]), U64(len(out)) >> U64(1)
    share = U64(len(matches)) // threads
    at, end = U64(first), U64(0)
    for other in range(threads):
        cursors[thread, other] = U64(0)
        for earlier in range(thread):
            cursors[thread, other] += sums[earlier, other]
        at += cursors[thread, other]
        end += sums[thread, other]
    end += at
    for arrival in range(U64(part[0]), U64(part[1])):
        row = planned[U64(ROW), arrival]
        of_s = U64(row) > r_rows
        own_room, other_room = (room, U64(0)) if of_s else (U64(0), room)
        named = U32(U64(row) - U64(1) - (r_rows if of_s else U64(0)))
        start = at
        for other in range(threads):
            count = U64(counts[other, arrival])
            if count == U64(0):
                continue
            source = other * share + cursors[thread, other]
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
    planned: Codes,
    barriers: Words,
    bins: Words,
    owners: Codes,
    states: Words,
    counts: Codes,
    sums: Words,
    cursors: Words,
    items: Codes,
    matches: Codes,
    out: Codes,
    first: int,
    resumed: bool,
) -> None:
    """Do one thread's share of a batch.

    Parameters
    ----------
    thread : int
        Number of the thread.
    times, keys, flat, terms, checked, inner, begin, arrivals, planned
        As for :func:`~.plans.plan` and :func:`~.joining.join_alone`.
    ordered : bool
        Whether pairs are written in the order of arrival; else each thread's are, for themselves.
    barriers : ndarray of uint64, shape (BARRIERS,)
        Zero before. Word ``FAILED * BARRIER_WORDS`` ends all threads if one does not arrive.
    bins : ndarray of uint64, shape (BINS,)
    owners : ndarray of uint32, shape (2, threads + 1)
        Work space: the blocks of R's and S's index at which each thread's range begins.
    states : ndarray of uint64, shape (threads * STATE_WORDS,)
        Where each resumes. If one had no room, no pair is written to ``out``.
    counts : ndarray of uint32, shape (threads, arrivals)
    sums, cursors : ndarray of uint64, shape (threads, threads) or wider
        Work space.
    items : ndarray of uint32, shape (threads * LISTED,)
        Work space.
    matches : ndarray of uint32
        Receives the rows of each thread's matches, in equal shares; without an order the pairs,
        of R in the first half, from the ``START`` of each thread's share on.
    out : ndarray of uint32, shape (2 * room,)
        Receives rows of R, and ``room`` words later those of S.
    first : int
        First word to write to.
    resumed : bool
        Whether the plan is there already.
    """
    threads = sums.shape[0]
    own = U64(thread)
    part = (arrivals * thread // threads, arrivals * (thread + 1) // threads)
    if not resumed:
        plan(times, keys, flat.tables, flat.cuts, begin, part[0], part[1], planned)
        if not _wait(barriers, 0, threads):
            return
        if thread == 0:
            _own_blocks(flat, planned, arrivals, U64(0), bins, owners)
            _own_blocks(flat, planned, arrivals, U64(1), bins, owners)
    if not _wait(barriers, 1, threads):
        return
    _join_own(
        flat, (keys.r_keys, keys.s_keys), terms, checked, ordered, planned, arrivals, owners, own,
        states, counts, items, matches,
    )  # fmt: skip
    if not ordered:
        return
    if not _wait(barriers, 2, threads):
        return
    for each in range(threads):
        if states[U64(each * STATE_WORDS + DONE)] < U64(arrivals):
            return
    for each in range(threads):
        total = U64(0)
        for arrival in range(U64(part[0]), U64(part[1])):
            total += U64(counts[each, arrival])
        sums[thread, each] = total
    if not _wait(barriers, 3, threads):
        return
    r_rows = U64(len(keys.r_keys))
    _restore(own, part, r_rows, inner, planned, counts, sums, matches, cursors, out, first)
