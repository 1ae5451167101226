"""Several threads on one batch: each owns ranges of blocks, and restores a part of the order.

A batch is one kernel call of each thread. A thread looks at the codes of all arrivals, plans those
that look up or are inserted in its own blocks, and joins them in arrival order: it waits for no
other thread, and no cache line that one writes is read by another. So that it stays so from batch
to batch, ranges are cut by the same rule each time, of equal work by a sample, and a thread keeps
its number.

Where an order was asked for, each thread counts the matches of each arrival. Then, with barriers
between, each sums the counts of its part of the arrivals, and each writes the matches of its part,
from all threads, to where the sums say.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add, give_way, load_acquire, pause
from streamjoin.engines.kernels.flat.blocks import LANES, fill, move
from streamjoin.engines.kernels.flat.cuts import (
    BASE,
    BLOCKS,
    CUT_WORDS,
    Words,
    block_at,
    block_of,
    position_of,
)
from streamjoin.engines.kernels.flat.joining import (
    DONE,
    STATE_WORDS,
    WRITTEN,
    Flat,
    Terms,
    join_planned,
    sort,
)
from streamjoin.engines.kernels.flat.plans import (
    ARRIVAL,
    Keys,
    Owned,
    Times,
    plan_own,
    r_rows_among,
)
from streamjoin.engines.kernels.jit import fused, kernel, uncounted

Codes = NDArray[np.uint32]
U32, U64 = np.uint32, np.uint64

SPINS = 256
"""Pauses at a barrier before another thread may run."""

PLANNED = 1 << 12
"""Arrivals of which a thread plans its own at once."""

SAMPLED = 1024
"""Maximum tuples of each stream whose blocks are sampled to cut ranges of equal work."""

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
    bins = np.zeros((2, BINS), dtype=np.uint64)
    for side in range(U64(2)):
        own, other = side * U64(CUT_WORDS), (U64(1) - side) * U64(CUT_WORDS)
        first, end = s_rows if side else r_rows
        codes = keys.s_keys if side else keys.r_keys
        lows, highs = (keys.s_lows, keys.s_highs) if side else (keys.r_lows, keys.r_highs)
        for row in range(U64(first), U64(end), U64(max(1, (end - first) // SAMPLED))):
            if lows[row] <= highs[row]:
                at = block_of(flat.tables, flat.cuts, own, codes[row]) - flat.cuts[own + U64(BASE)]
                bins[side, at * U64(BINS) // flat.cuts[own + U64(BLOCKS)]] += U64(1)
                at = block_of(flat.tables, flat.cuts, other, lows[row])
                at -= flat.cuts[other + U64(BASE)]
                bins[U64(1) - side, at * U64(BINS) // flat.cuts[other + U64(BLOCKS)]] += U64(1)
    for side in range(U64(2)):
        cut, at = side * U64(CUT_WORDS), side * (threads + U64(1))
        base, blocks = flat.cuts[cut + U64(BASE)], flat.cuts[cut + U64(BLOCKS)]
        total, below, owner = bins[side].sum(), U64(0), U64(1)
        owned.blocks[at], owned.positions[at] = base, U64(0)
        for each in range(U64(BINS)):
            below += bins[side, each]
            while owner < threads and below * threads >= total * owner:
                block = base + ((each + U64(1)) * blocks) // U64(BINS)
                owned.blocks[at + owner] = block
                owned.positions[at + owner] = _first_position(flat, cut, block)
                owner += U64(1)
        owned.blocks[at + threads], owned.positions[at + threads] = base + blocks, U64(1 << 32)


@fused
def _first_position(flat: Flat, cut: np.uint64, block: np.uint64) -> np.uint64:
    """Return the lowest position of a code whose block is this one or a higher one."""
    low, high = U64(0), U64(1 << 32)
    while low < high:
        middle = (low + high) >> U64(1)
        if block_at(flat.tables, flat.cuts, cut, middle) < block:
            low = middle + U64(1)
        else:
            high = middle
    return low


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
    r_rows, s_rows = len(times.r_ts), len(times.s_ts)
    of_r = r_rows_among(times, begin[0], begin[1], part[0])
    at_r, at_s = begin[0] + of_r, begin[1] + part[0] - of_r
    for arrival in range(U64(part[0]), U64(part[1])):
        is_r = at_s == s_rows or (at_r < r_rows and times.r_ts[at_r] <= times.s_ts[at_s])
        named = U32(at_r if is_r else at_s)
        own_room, other_room = (U64(0), room) if is_r else (room, U64(0))
        at_r += int(is_r)
        at_s += int(not is_r)
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
    plan: Codes,
    times: Times,
    keys: Keys,
    flat: Flat,
    terms: Terms,
    checked: bool,
    ordered: bool,
    inner: bool,
    begin: tuple[int, int],
    arrivals: int,
    owned: Owned,
    barriers: Words,
    states: Words,
    counts: Codes,
    sums: Words,
    cursors: Words,
    matches: Codes,
    used: int,
    out: Codes,
    first: int,
) -> None:
    """Do one thread's share of a batch.

    Parameters
    ----------
    thread : int
        Number of the thread.
    plan : ndarray of uint32, shape (OWN_ROWS, PLANNED)
        Work space of this thread alone.
    times, keys, flat, terms, checked, inner, begin
        As for :func:`~.plans.plan` and :func:`~.joining.join_alone`.
    ordered : bool
        Whether pairs are written in the order of arrival; else each thread's are, for themselves.
    arrivals : int
        Arrivals of the batch.
    owned : Owned
        The threads' ranges.
    barriers : ndarray of uint64, shape (BARRIERS,)
        Zero before. Word ``FAILED * BARRIER_WORDS`` ends all threads if one does not arrive.
    states : ndarray of uint64, shape (threads * STATE_WORDS,)
        Where each resumes: ``DONE`` arrivals, ``WRITTEN`` pairs. If one had no room, no pair is
        written to ``out``.
    counts : ndarray of uint32, shape (threads, arrivals)
        Zero before, where pairs are ordered.
    sums, cursors : ndarray of uint64, shape (threads, threads) or wider
        Work space.
    matches : ndarray of uint32
        Receives pairs, in equal shares for each thread: rows of R, then as many of S.
    used : int
        Pairs that this thread's share holds already.
    out : ndarray of uint32, shape (2 * room,)
        Receives pairs in order: rows of R, and ``room`` words later those of S.
    first : int
        First word to write to.
    """
    threads, own, state = sums.shape[0], U64(thread), U64(thread * STATE_WORDS)
    room = U64(len(matches)) // U64(2 * threads)
    base, written = own * U64(2) * room, U64(used) + states[state + U64(WRITTEN)]
    done = np.int64(states[state + U64(DONE)])
    while done < arrivals:
        end = min(done + PLANNED, arrivals)
        planned = plan_own(
            times, keys, flat.tables, flat.cuts, begin, done, end, owned, own, plan
        )
        joined, written = join_planned(
            flat, (keys.r_keys, keys.s_keys), terms, checked, False, plan, U64(0), planned, ordered,
            counts, own, states, state, matches, base, written, room,
        )  # fmt: skip
        if joined < planned:
            done = np.int64(plan[U64(ARRIVAL), joined])
            break
        done = end
    states[state + U64(DONE)], states[state + U64(WRITTEN)] = U64(done), written - U64(used)
    if not ordered or not _wait(barriers, 0, threads):
        return
    for each in range(threads):
        if states[U64(each * STATE_WORDS + DONE)] < U64(arrivals):
            return
    part = (arrivals * thread // threads, arrivals * (thread + 1) // threads)
    for each in range(threads):
        total = U64(0)
        for arrival in range(U64(part[0]), U64(part[1])):
            total += U64(counts[each, arrival])
        sums[thread, each] = total
    if _wait(barriers, 1, threads):
        _restore(own, part, times, begin, inner, counts, sums, matches, cursors, out, first)
