"""Joins over IM-Trees and PIM-Trees: PIM-Tree, sections 3.2, 3.3 and 4.1.

A window's index is an immutable tree and mutable ones, each for the range of keys of one node of
the immutable tree at the insertion depth; at depth 0 there is one, which is the IM-Tree. What
arrives goes to the mutable trees, which are merged into a new immutable one now and then; what
has expired is skipped until then.

Any number of threads join at once. They take tasks of a few arrivals from a common counter.
Because insertions then do not follow the arrival order, there is an *edge*: all arrivals before
it are indexed. A look-up takes rows before the edge from the index and compares those between
the edge and its arrival one by one. An access to a mutable tree holds its lock. The edge moves
by tasks, and what threads share is written once a task: a cache line that two cores write in
turn costs each of them more than a look-up.

A task's searches in the immutable tree, which no insertion changes, come first and all together:
they wait for memory at the same time, not one after the other.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import (
    fetch_add,
    load_acquire,
    lock,
    store_release,
    try_lock,
    unlock,
)
from streamjoin.engines.kernels.btree import (
    ENTRIES,
    NO_NODE,
    REGION_WORDS,
    WIDTH,
    Forest,
    insert,
)
from streamjoin.engines.kernels.immutable import (
    DEPTHS,
    SHAPE_WORDS,
    STARTS,
    Sorted,
    descend,
    first_entry,
    lower_bound,
)
from streamjoin.engines.kernels.jit import fused, kernel, uncounted
from streamjoin.engines.kernels.prefetch import prefetch
from streamjoin.engines.kernels.probing import (
    Arrivals,
    Codes,
    Columns,
    Int64s,
    entry_of,
    joins,
    scan_sorted,
    scan_tree,
)

U32, U64 = np.uint32, np.uint64

LINE = U64(8)
NEXT, EDGE, PENDING, PENDING_DONE, SIDES = (LINE * U64(line) for line in range(5))
PENDING_END = PENDING + U64(1)
SIDE_WORDS = LINE
TREE, DEPTH, LIMIT, FROZEN, HELD = (U64(word) for word in range(5))
STOP = SIDES + SIDE_WORDS * U64(2)
STATE_WORDS = int(STOP + LINE)
"""Words of the common state: next arrival; tasks before the edge; rows that wait for their
insertion, from and to; the same from plus how many of them are done; for each stream its immutable tree, the
insertion depth, the entries of the mutable trees at which they are merged, whether these take no
entries now, and the row that the stream's edge does not pass until they do; whether to stop.
What threads write while they run has a cache line of its own."""

AT, END, WRITTEN, PLAN = U64(0), U64(1), U64(2), U64(8)
PLAN_WORDS = U64(4)
"""Words of a thread's own state: the rest of its task, pairs that it wrote into earlier buffers,
and for each tuple of the task where its searches lead."""

DONE, FULL, MERGE, STOPPED = 0, 1, 2, 3
PENDING_ROWS = U64(64)
BLOCK_ROWS = U64(256)
OFFSET_BITS = U64(44)


class MergeTrees(NamedTuple):
    """The indexes of both windows.

    Attributes
    ----------
    trees : Sorted
        Immutable trees; the state says which is whose.
    forest : Forest
        Mutable trees, ``len(roots) // 2`` for R in region 0, as many for S in region 1.
    locks : ndarray of uint32
        One for each mutable tree, then one for the edge.
    state : ndarray of uint64, shape (STATE_WORDS,)
    """

    trees: Sorted
    forest: Forest
    locks: NDArray[np.uint32]
    state: NDArray[np.uint64]


@fused
def _side(state: NDArray[np.uint64], side: np.uint64, word: np.uint64) -> np.uint64:
    return state[SIDES + side * SIDE_WORDS + word]


@fused
def _plan(
    columns: Columns,
    arrivals: Arrivals,
    index: MergeTrees,
    begin: np.uint64,
    end: np.uint64,
    mine: NDArray[np.uint64],
) -> None:
    """Search the immutable trees for a task, and ask for the memory that comes next."""
    trees, forest, state = index.trees, index.forest, index.state
    parts = U64(len(forest.roots)) // U64(2)
    for arrival in range(begin, end):
        row = U64(arrivals.rows[arrival])
        own = U64(row >= U64(columns.r.shape[1]))
        other = U64(1) - own
        low, root = columns.lows[row], U64(0)
        tree, depth = _side(state, other, TREE), _side(state, other, DEPTH)
        part = descend(trees, tree, low, root, root, depth)
        depths = trees.shapes[tree * SHAPE_WORDS + DEPTHS]
        leaf = descend(trees, tree, low, part, depth, depths)
        words = PLAN + (arrival - begin) * PLAN_WORDS
        mine[words] = leaf
        mine[words + U64(1)] = part
        place = first_entry(trees, tree) + leaf * WIDTH
        for line in range(U64(4)):
            prefetch(trees.entries, place + line * LINE)
        _ask(forest, other * parts + part)
        own_tree, own_depth = _side(state, own, TREE), _side(state, own, DEPTH)
        own_part = descend(trees, own_tree, columns.keys[row], root, root, own_depth)
        mine[words + U64(2)] = own_part
        _ask(forest, own * parts + own_part)


@fused
def _ask(forest: Forest, tree: np.uint64) -> None:
    """Ask for the memory of a mutable tree's root."""
    root = U64(forest.roots[tree]) * WIDTH
    if forest.heights[tree] == U32(0):
        for line in range(U64(4)):
            prefetch(forest.leaves, root + line * LINE)
    else:
        prefetch(forest.separators, root)
        prefetch(forest.children, root)


@fused
def _insert(
    columns: Columns,
    index: MergeTrees,
    row: np.uint64,
    own: np.uint64,
    part: np.uint64,
    shared: bool,
) -> None:
    """Insert a row into its mutable tree."""
    tree = own * (U64(len(index.forest.roots)) // U64(2)) + part
    if shared:
        lock(index.locks, tree)
    insert(index.forest, own, tree, entry_of(columns.keys[row], row))
    if shared:
        unlock(index.locks, tree)


@fused
def _count(index: MergeTrees, own: np.uint64, inserted: np.uint64, shared: bool) -> None:
    """Add to the entries of a stream's mutable trees."""
    count = own * REGION_WORDS + ENTRIES
    if not shared:
        index.forest.counters[count] += inserted
    elif inserted:
        fetch_add(index.forest.counters, count, inserted)


@fused
def _move_edge(index: MergeTrees, finished: NDArray[np.uint32], task: np.uint64) -> None:
    """Say that a task is finished, and move the edge if no other thread does."""
    store_release(finished, task, U32(1))
    latch = U64(len(index.forest.roots))
    if try_lock(index.locks, latch):
        edge = index.state[EDGE]
        while edge < U64(len(finished)) and load_acquire(finished, edge) == U32(1):
            edge += U64(1)
        store_release(index.state, EDGE, edge)
        unlock(index.locks, latch)


@fused
def _edges(
    columns: Columns, arrivals: Arrivals, index: MergeTrees, size: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Return the rows of R and of S before which all are indexed; a task is unfinished."""
    state = index.state
    held = load_acquire(state, SIDES + HELD)
    held_s = load_acquire(state, SIDES + SIDE_WORDS + HELD)
    edge = load_acquire(state, EDGE) * size
    row, met = U64(arrivals.rows[edge]), U64(arrivals.ends[edge])
    r_rows = U64(columns.r.shape[1])
    return min(held, row if row < r_rows else met), min(held_s, met if row < r_rows else row)


@fused
def _scan_rows(
    columns: Columns,
    row: np.uint64,
    first: np.uint64,
    end: np.uint64,
    out: Codes,
    found: np.uint64,
) -> np.uint64:
    """Compare a tuple with rows of the opposite stream one by one."""
    low, high, room = columns.lows[row], columns.highs[row], U64(out.shape[1])
    block = first
    while block < end and found <= room:
        length = min(BLOCK_ROWS, end - block)
        hits = U32(0)
        for place in range(length):
            key = columns.keys[block + place]
            hits += U32((low <= key) & (key <= high))
        if hits > U32(0):
            for place in range(length):
                other = block + place
                key = columns.keys[other]
                if (low <= key) & (key <= high) and joins(columns, row, other):
                    if found < room:
                        out[U64(0), found] = U32(min(row, other))
                        out[U64(1), found] = U32(max(row, other) - U64(columns.r.shape[1]))
                    found += U64(1)
        block += length
    return found


@fused
def _look_up(
    columns: Columns,
    index: MergeTrees,
    row: np.uint64,
    other: np.uint64,
    first: np.uint64,
    end: np.uint64,
    leaf: np.uint64,
    part: np.uint64,
    edge: np.uint64,
    shared: bool,
    out: Codes,
    found: np.uint64,
) -> np.uint64:
    """Find a tuple's partners: immutable tree, mutable trees, rows behind the edge."""
    trees, forest, state = index.trees, index.forest, index.state
    edge = min(edge, end)
    tree, depth = _side(state, other, TREE), _side(state, other, DEPTH)
    place = lower_bound(trees, tree, columns.lows[row], leaf)
    found = scan_sorted(columns, row, first, edge, trees, tree, place, out, found)
    mutable = other * (U64(len(forest.roots)) // U64(2)) + part
    going = True
    while going:
        if forest.roots[mutable] != NO_NODE:
            if shared:
                lock(index.locks, mutable)
            found = scan_tree(columns, row, first, edge, forest, mutable, out, found)
            if shared:
                unlock(index.locks, mutable)
        going = False
        if depth > U64(0):
            keys = trees.shapes[tree * SHAPE_WORDS + STARTS + depth - U64(1)]
            going = trees.keys[keys + part] < columns.highs[row]
            part += U64(1)
            mutable += U64(1)
    if edge < end:
        found = _scan_rows(columns, row, max(first, edge), end, out, found)
    return found


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
    places: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    out: Codes,
) -> tuple[int, int]:
    """Take tasks and join them until all are taken, or something has to be done outside.

    Parameters
    ----------
    columns, arrivals, index
        See there.
    task : int
        Arrivals of a task.
    shared : bool
        Whether other threads work on the same.
    mine : ndarray of uint64, shape (at least PLAN + task * PLAN_WORDS,)
        The thread's own state.
    thread : int
        Its number.
    finished : ndarray of uint32, shape (tasks,)
        If ``shared``: 0 for a task that is not finished.
    places : ndarray of uint64, shape (arrivals,)
        If ``shared``: receives ``thread << OFFSET_BITS``, plus where among the pairs of that
        thread those of an arrival begin.
    counts : ndarray of uint32, shape (arrivals,)
        If ``shared``: receives each arrival's pairs.
    out : ndarray of uint32, shape (2, room)
        Receives rows of R and of S.

    Returns
    -------
    why : int
        DONE; FULL if an arrival's pairs had no room: it is done again in the next call; MERGE if
        mutable trees have reached their limit; STOPPED if the state says so.
    found : int
        Pairs written.
    """
    state, found, size = index.state, U64(0), U64(task)
    total, r_rows = U64(len(arrivals.rows)), U64(columns.r.shape[1])
    while True:
        at, end = mine[AT], mine[END]
        if at >= end:
            if shared:
                if load_acquire(state, STOP) != U64(0):
                    return STOPPED, int(found)
                if load_acquire(state, PENDING) < state[PENDING_END]:
                    _insert_pending(columns, index)
                    continue
            for side in range(U64(2)):
                entries = load_acquire(index.forest.counters, side * REGION_WORDS + ENTRIES)
                if entries >= _side(state, side, LIMIT):
                    return MERGE, int(found)
            if shared:
                at = fetch_add(state, NEXT, size)
            else:
                at = state[NEXT]
                state[NEXT] = at + size
            if at >= total:
                return DONE, int(found)
            end = min(at + size, total)
        _plan(columns, arrivals, index, at, end, mine)
        begin, inserted, inserted_s = at, U64(0), U64(0)
        edge = edge_s = U64(0xFFFFFFFFFFFFFFFF)
        if shared:
            edge, edge_s = _edges(columns, arrivals, index, size)
        while at < end:
            row, before = U64(arrivals.rows[at]), found
            own = U64(row >= r_rows)
            first, last = U64(arrivals.firsts[at]), U64(arrivals.ends[at])
            words = PLAN + (at - begin) * PLAN_WORDS
            found = _look_up(
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
                found,
            )
            if found > U64(out.shape[1]):
                mine[AT], mine[END] = at, end
                _count(index, U64(0), inserted, shared)
                _count(index, U64(1), inserted_s, shared)
                return FULL, int(before)
            if shared:
                places[at] = (U64(thread) << OFFSET_BITS) + mine[WRITTEN] + before
                counts[at] = U32(found - before)
            if _side(state, own, FROZEN) == U64(0):
                _insert(columns, index, row, own, mine[words + U64(2)], shared)
                inserted += U64(1) - own
                inserted_s += own
            at += U64(1)
        mine[AT], mine[END] = U64(0), U64(0)
        _count(index, U64(0), inserted, shared)
        _count(index, U64(1), inserted_s, shared)
        if shared:
            _move_edge(index, finished, (end - U64(1)) // size)


@uncounted
def _insert_pending(columns: Columns, index: MergeTrees) -> None:
    """Insert some of the rows that had to wait for a merge."""
    state, trees = index.state, index.trees
    begin, stop = fetch_add(state, PENDING, PENDING_ROWS), state[PENDING_END]
    if begin >= stop:
        return
    end = min(begin + PENDING_ROWS, stop)
    own = U64(begin >= U64(columns.r.shape[1]))
    for row in range(begin, end):
        tree, depth = _side(state, own, TREE), _side(state, own, DEPTH)
        part = descend(trees, tree, columns.keys[row], U64(0), U64(0), depth)
        _insert(columns, index, row, own, part, True)
    _count(index, own, end - begin, True)
    # Whoever inserts the last of them lets the edge go on.
    if fetch_add(state, PENDING_DONE, end - begin) + (end - begin) == stop:
        store_release(state, SIDES + own * SIDE_WORDS + HELD, U64(0xFFFFFFFFFFFFFFFF))


@uncounted
def last_of_each(rows: Int64s, taken: int, r_rows: int) -> tuple[int, int]:
    """Places of the last R tuple and the last S tuple of the first arrivals, -1 without one."""
    last_r = last_s = -1
    place = taken - 1
    while place >= 0 and (last_r < 0 or last_s < 0):
        if rows[place] < r_rows:
            last_r = max(last_r, place)
        else:
            last_s = max(last_s, place)
        place -= 1
    return last_r, last_s


@kernel
def in_order(
    places: NDArray[np.uint64],
    counts: NDArray[np.uint32],
    bases: NDArray[np.uint64],
    pairs: Codes,
    out: Codes,
) -> None:
    """Propagate the pairs of all threads in arrival order.

    Parameters
    ----------
    places, counts
        As :func:`join` gave them.
    bases : ndarray of uint64, shape (threads,)
        Where the pairs of each thread begin in ``pairs``.
    pairs, out : ndarray of uint32, shape (2, pairs)
    """
    to = U64(0)
    for arrival in range(U64(len(places))):
        thread = places[arrival] >> OFFSET_BITS
        place = bases[thread] + (places[arrival] & ((U64(1) << OFFSET_BITS) - U64(1)))
        for _ in range(U64(counts[arrival])):
            out[U64(0), to] = pairs[U64(0), place]
            out[U64(1), to] = pairs[U64(1), place]
            place += U64(1)
            to += U64(1)
