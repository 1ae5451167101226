"""The parallel join over merge trees: tasks, pending insertions, results in arrival order.

PIM-Tree, section 4; the trees and their edge are in
:mod:`~streamjoin.engines.kernels.trees.mergetrees`.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add, give_way, load_acquire, store_release
from streamjoin.engines.kernels.jit import fused, kernel, uncounted
from streamjoin.engines.kernels.trees.btree import ENTRIES, REGION_WORDS
from streamjoin.engines.kernels.trees.immutable import descend
from streamjoin.engines.kernels.trees.mergetrees import (
    AT,
    DEPTH,
    EDGE,
    END,
    FROZEN,
    HELD,
    LIMIT,
    NEXT,
    PENDING,
    PENDING_DONE,
    PENDING_END,
    PLAN,
    PLAN_WORDS,
    SIDE_WORDS,
    SIDES,
    STOP,
    TREE,
    WRITTEN,
    MergeTrees,
    count_rows,
    edges,
    insert_row,
    look_up,
    move_edge,
    plan,
    side,
)
from streamjoin.engines.kernels.trees.probing import Arrivals, Codes, Columns, Int64s

U32, U64 = np.uint32, np.uint64

DONE, FULL, MERGE, STOPPED, TAKEN = 0, 1, 2, 3, 4
"""Why a thread returns; TAKEN: it has a task."""

PENDING_ROWS = U64(64)

MAX_LEAD = U64(1 << 11)
"""Maximum arrivals between the edge and a new task; beyond them a thread yields to slower ones, as
rows behind the edge are compared one by one."""

MAX_TURNS = 64
"""Maximum yields for one task: a thread that has failed never moves the edge."""
OFFSET_BITS = U64(44)


@uncounted
def _insert_pending(columns: Columns, index: MergeTrees) -> None:
    """Insert some of the rows that waited for a merge."""
    state, trees = index.state, index.trees
    begin, stop = fetch_add(state, PENDING, PENDING_ROWS), state[PENDING_END]
    if begin >= stop:
        return
    end = min(begin + PENDING_ROWS, stop)
    own = U64(begin >= U64(columns.r.shape[1]))
    for row in range(begin, end):
        tree, depth = side(state, own, TREE), side(state, own, DEPTH)
        part = descend(trees, tree, columns.keys[row], U64(0), U64(0), depth)
        insert_row(columns, index, row, own, part, True)
    count_rows(index, own, end - begin, True)
    # The thread that inserts the last row releases the edge.
    if fetch_add(state, PENDING_DONE, end - begin) + (end - begin) == stop:
        store_release(state, SIDES + own * SIDE_WORDS + HELD, U64(0xFFFFFFFFFFFFFFFF))


@fused
def _take(
    columns: Columns, index: MergeTrees, size: np.uint64, total: np.uint64, shared: bool
) -> tuple[int, np.uint64]:
    """Insert rows that waited, then take a task; return its first arrival, or why not."""
    state, counters = index.state, index.forest.counters
    if shared:
        if load_acquire(state, STOP) != U64(0):
            return STOPPED, total
        while load_acquire(state, PENDING) < state[PENDING_END]:
            _insert_pending(columns, index)
        for _ in range(MAX_TURNS):
            next_task = min(load_acquire(state, NEXT), total)
            if next_task <= load_acquire(state, EDGE) * size + MAX_LEAD:
                break
            give_way()
    for stream in range(U64(2)):
        entries = load_acquire(counters, stream * REGION_WORDS + ENTRIES)
        if entries >= side(state, stream, LIMIT):
            return MERGE, total
    if shared:
        at = fetch_add(state, NEXT, size)
    else:
        at = state[NEXT]
        state[NEXT] = at + size
    return TAKEN if at < total else DONE, at


@uncounted
def join(
    columns: Columns,
    arrivals: Arrivals,
    index: MergeTrees,
    task: int,
    shared: bool,
    mine: NDArray[np.uint64],
    thread: int,
    finished: NDArray[np.uint32],
    addresses: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    out: Codes,
) -> tuple[int, int]:
    """Take tasks and join them until all are taken, or the caller has to act.

    Parameters
    ----------
    columns, arrivals, index
        As documented there.
    task : int
        Arrivals in a task.
    shared : bool
        Whether other threads share the index.
    mine : ndarray of uint64, shape (at least PLAN + task * PLAN_WORDS,)
        The thread's own state.
    thread : int
        The thread's number.
    finished : ndarray of uint32, shape (tasks,)
        If ``shared``: 0 for a task that is not finished.
    addresses : ndarray of uint64, shape (arrivals,)
        If ``shared``: receives ``thread << OFFSET_BITS`` plus the index of the arrival's first pair
        among the pairs of that thread.
    counts : ndarray of uint32, shape (arrivals,)
        If ``shared``: receives each arrival's number of pairs.
    out : ndarray of uint32, shape (2, room)
        Receives rows of R and of S.

    Returns
    -------
    why : int
        DONE; FULL if an arrival's pairs had no room: the next call repeats it; MERGE if mutable
        trees have reached their limit; STOPPED if the state says so.
    matches : int
        Pairs written.
    """
    state, matches, size = index.state, U64(0), U64(task)
    total, r_rows = U64(len(arrivals.rows)), U64(columns.r.shape[1])
    while True:
        at, end = mine[AT], mine[END]
        if at >= end:
            why, at = _take(columns, index, size, total, shared)
            if why != TAKEN:
                return why, int(matches)
            end = min(at + size, total)
        plan(columns, arrivals, index, at, end, shared, mine)
        begin, inserted, inserted_s = at, U64(0), U64(0)
        edge = edge_s = U64(0xFFFFFFFFFFFFFFFF)
        if shared:
            edge, edge_s = edges(columns, arrivals, index, size)
        while at < end:
            row, before = U64(arrivals.rows[at]), matches
            own = U64(row >= r_rows)
            first, last = U64(arrivals.firsts[at]), U64(arrivals.ends[at])
            words = PLAN + (at - begin) * PLAN_WORDS
            matches = look_up(
                columns,
                index,
                row,
                U64(1) - own,
                first,
                last,
                mine[words],
                mine[words + U64(1)],
                edge if own == U64(1) else edge_s,
                shared,
                out,
                matches,
            )
            if matches > U64(out.shape[1]):
                mine[AT], mine[END] = at, end
                count_rows(index, U64(0), inserted, shared)
                count_rows(index, U64(1), inserted_s, shared)
                return FULL, int(before)
            if shared:
                addresses[at] = (U64(thread) << OFFSET_BITS) + mine[WRITTEN] + before
                counts[at] = U32(matches - before)
            if side(state, own, FROZEN) == U64(0):
                insert_row(columns, index, row, own, mine[words + U64(2)], shared)
                inserted += U64(1) - own
                inserted_s += own
            at += U64(1)
        mine[AT], mine[END] = U64(0), U64(0)
        count_rows(index, U64(0), inserted, shared)
        count_rows(index, U64(1), inserted_s, shared)
        if shared:
            move_edge(index, finished, (end - U64(1)) // size)


@uncounted
def last_of_each(rows: Int64s, taken: int, r_rows: int) -> tuple[int, int]:
    """Return the last R and the last S tuple among the first ``taken`` arrivals, -1 without one."""
    last_r = last_s = -1
    arrival = taken - 1
    while arrival >= 0 and (last_r < 0 or last_s < 0):
        if rows[arrival] < r_rows:
            last_r = max(last_r, arrival)
        else:
            last_s = max(last_s, arrival)
        arrival -= 1
    return last_r, last_s


@kernel
def in_order(
    addresses: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    bases: NDArray[np.uint64],
    pairs: Codes,
    out: Codes,
) -> None:
    """Propagate the pairs of all threads in arrival order.

    Parameters
    ----------
    addresses, counts
        As :func:`join` wrote them.
    bases : ndarray of uint64, shape (threads,)
        Index of each thread's first pair in ``pairs``.
    pairs, out : ndarray of uint32, shape (2, pairs)
    """
    to = U64(0)
    for arrival in range(U64(len(addresses))):
        thread = addresses[arrival] >> OFFSET_BITS
        source = bases[thread] + (addresses[arrival] & ((U64(1) << OFFSET_BITS) - U64(1)))
        for _ in range(U64(counts[arrival])):
            out[U64(0), to] = pairs[U64(0), source]
            out[U64(1), to] = pairs[U64(1), source]
            source += U64(1)
            to += U64(1)
