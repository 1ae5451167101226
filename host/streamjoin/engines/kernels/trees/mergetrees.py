"""Joins over IM-Trees and PIM-Trees: PIM-Tree, sections 3.2, 3.3 and 4.1.

A window's index is one immutable tree and mutable trees. Each mutable tree covers the key range of
one node of the immutable tree at the insertion depth; at depth 0 there is a single one (the
IM-Tree). Arriving tuples are inserted into the mutable trees, which are merged into a new immutable
tree from time to time; expired tuples are skipped until then.

Any number of threads join at once. They take tasks of a few arrivals from a common counter, so
insertions do not follow the arrival order. The *edge* is the arrival before which all tuples are
indexed: a probe takes rows before the edge from the index and compares the rows between the edge
and its own arrival one by one. An access to a mutable tree holds its lock. The edge advances by
tasks, and shared state is written once a task: a cache line that two cores write in turn costs more
than a probe.

A task starts with all its searches in the immutable tree, which no insertion changes: their cache
misses overlap.
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
from streamjoin.engines.kernels.jit import fused
from streamjoin.engines.kernels.prefetch import prefetch, prefetch_to_write
from streamjoin.engines.kernels.trees.btree import (
    ENTRIES,
    NO_NODE,
    REGION_WORDS,
    WIDTH,
    Forest,
    insert,
)
from streamjoin.engines.kernels.trees.immutable import (
    DEPTHS,
    SHAPE_WORDS,
    STARTS,
    Sorted,
    descend,
    first_entry,
    lower_bound,
)
from streamjoin.engines.kernels.trees.nodes import count_below
from streamjoin.engines.kernels.trees.probing import (
    Arrivals,
    Codes,
    Columns,
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
"""64-bit words of the shared state: next arrival; tasks before the edge; rows that wait for their
insertion (first not taken, first not inserted, end); for each stream its immutable tree, the
insertion depth, the entries at which the mutable trees are merged, whether these accept no entries
now, and the row that the stream's edge may not pass until they do; whether to stop. Words that
threads write while they run have cache lines of their own."""

AT, END, WRITTEN, PLAN = U64(0), U64(1), U64(2), U64(8)
PLAN_WORDS = U64(4)
"""64-bit words of a thread's own state: the rest of its task, the pairs that it wrote into earlier
buffers, and for each tuple of the task the results of its searches."""

BLOCK_ROWS = U64(256)

LOCK_WORDS = U64(16)
"""32-bit words from one lock to the next: locks of different trees share no cache line."""


class MergeTrees(NamedTuple):
    """The indexes of both windows.

    Attributes
    ----------
    trees : Sorted
        Immutable trees; the state names each stream's.
    forest : Forest
        Mutable trees, ``len(roots) // 2`` for R in region 0, as many for S in region 1.
    locks : ndarray of uint32
        One for each mutable tree, then one for the edge, :data:`LOCK_WORDS` apart.
    state : ndarray of uint64, shape (STATE_WORDS,)
    """

    trees: Sorted
    forest: Forest
    locks: NDArray[np.uint32]
    state: NDArray[np.uint64]


@fused
def side(state: NDArray[np.uint64], stream: np.uint64, word: np.uint64) -> np.uint64:
    """Read a word of the state of R (0) or S (1)."""
    return state[SIDES + stream * SIDE_WORDS + word]


@fused
def plan(
    columns: Columns,
    arrivals: Arrivals,
    index: MergeTrees,
    begin: np.uint64,
    end: np.uint64,
    shared: bool,
    mine: NDArray[np.uint64],
) -> None:
    """Search the immutable trees for a task, and prefetch the memory that it needs next."""
    trees, forest, state = index.trees, index.forest, index.state
    parts = U64(len(forest.roots)) // U64(2)
    for arrival in range(begin, end):
        row = U64(arrivals.rows[arrival])
        own = U64(row >= U64(columns.r.shape[1]))
        other = U64(1) - own
        low, root = columns.lows[row], U64(0)
        tree, depth = side(state, other, TREE), side(state, other, DEPTH)
        part = descend(trees, tree, low, root, root, depth)
        depths = trees.shapes[tree * SHAPE_WORDS + DEPTHS]
        leaf = descend(trees, tree, low, part, depth, depths)
        words = PLAN + (arrival - begin) * PLAN_WORDS
        mine[words] = leaf
        mine[words + U64(1)] = part
        start = first_entry(trees, tree) + leaf * WIDTH
        for line in range(U64(4)):
            prefetch(trees.entries, start + line * LINE)
        _ask(index, other * parts + part, shared)
        own_tree, own_depth = side(state, own, TREE), side(state, own, DEPTH)
        own_part = descend(trees, own_tree, columns.keys[row], root, root, own_depth)
        mine[words + U64(2)] = own_part
        _ask(index, own * parts + own_part, shared)
    for arrival in range(begin, end):
        row = U64(arrivals.rows[arrival])
        own = U64(row >= U64(columns.r.shape[1]))
        words = PLAN + (arrival - begin) * PLAN_WORDS
        _ask_leaf(forest, (U64(1) - own) * parts + mine[words + U64(1)], columns.lows[row])
        _ask_leaf(forest, own * parts + mine[words + U64(2)], columns.keys[row])


@fused
def _ask(index: MergeTrees, tree: np.uint64, shared: bool) -> None:
    """Prefetch a mutable tree's root and lock."""
    forest = index.forest
    root = U64(forest.roots[tree]) * WIDTH
    if shared:
        prefetch_to_write(index.locks, tree * LOCK_WORDS)
    if forest.heights[tree] == U32(0):
        for line in range(U64(4)):
            prefetch(forest.leaves, root + line * LINE)
    else:
        for line in range(U64(4)):
            prefetch(forest.separators, root + line * LINE)
        for line in range(U64(2)):
            prefetch(forest.children, root + line * LINE * U64(2))


@fused
def _ask_leaf(forest: Forest, tree: np.uint64, key: np.uint32) -> None:
    """Prefetch the leaf below a root; another thread may be changing the tree."""
    if forest.heights[tree] == U32(1):
        root = U64(forest.roots[tree]) * WIDTH
        child = min(count_below(forest.separators, root, entry_of(key, U64(0))), WIDTH - U64(1))
        leaf = U64(forest.children[root + child]) * WIDTH
        for line in range(U64(4)):
            prefetch(forest.leaves, leaf + line * LINE)


@fused
def insert_row(
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
        lock(index.locks, tree * LOCK_WORDS)
    insert(index.forest, own, tree, entry_of(columns.keys[row], row))
    if shared:
        unlock(index.locks, tree * LOCK_WORDS)


@fused
def count_rows(index: MergeTrees, own: np.uint64, inserted: np.uint64, shared: bool) -> None:
    """Add to the count of entries in a stream's mutable trees."""
    count = own * REGION_WORDS + ENTRIES
    if not shared:
        index.forest.counters[count] += inserted
    elif inserted:
        fetch_add(index.forest.counters, count, inserted)


@fused
def move_edge(index: MergeTrees, finished: NDArray[np.uint32], task: np.uint64) -> None:
    """Mark a task as finished, and advance the edge if no other thread does."""
    store_release(finished, task, U32(1))
    latch = U64(len(index.forest.roots)) * LOCK_WORDS
    if try_lock(index.locks, latch):
        edge = index.state[EDGE]
        while edge < U64(len(finished)) and load_acquire(finished, edge) == U32(1):
            edge += U64(1)
        store_release(index.state, EDGE, edge)
        unlock(index.locks, latch)


@fused
def edges(
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
    matches: np.uint64,
) -> np.uint64:
    """Compare a tuple with rows of the opposite stream one by one."""
    low, high, room = columns.lows[row], columns.highs[row], U64(out.shape[1])
    block = first
    while block < end and matches <= room:
        length = min(BLOCK_ROWS, end - block)
        hits = U32(0)
        for offset in range(length):
            key = columns.keys[block + offset]
            hits += U32((low <= key) & (key <= high))
        if hits > U32(0):
            for offset in range(length):
                other = block + offset
                key = columns.keys[other]
                if (low <= key) & (key <= high) and joins(columns, row, other):
                    if matches < room:
                        out[U64(0), matches] = U32(min(row, other))
                        out[U64(1), matches] = U32(max(row, other) - U64(columns.r.shape[1]))
                    matches += U64(1)
        block += length
    return matches


@fused
def look_up(
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
    matches: np.uint64,
) -> np.uint64:
    """Find a tuple's matches: immutable tree, mutable trees, rows behind the edge."""
    trees, forest, state = index.trees, index.forest, index.state
    edge = min(edge, end)
    tree, depth = side(state, other, TREE), side(state, other, DEPTH)
    entry = lower_bound(trees, tree, columns.lows[row], leaf)
    matches = scan_sorted(columns, row, first, edge, trees, tree, entry, out, matches)
    mutable = other * (U64(len(forest.roots)) // U64(2)) + part
    going = True
    while going:
        if forest.roots[mutable] != NO_NODE:
            if shared:
                lock(index.locks, mutable * LOCK_WORDS)
            matches = scan_tree(columns, row, first, edge, forest, mutable, out, matches)
            if shared:
                unlock(index.locks, mutable * LOCK_WORDS)
        going = False
        if depth > U64(0):
            keys = trees.shapes[tree * SHAPE_WORDS + STARTS + depth - U64(1)]
            going = trees.keys[keys + part] < columns.highs[row]
            part += U64(1)
            mutable += U64(1)
    if edge < end:
        matches = _scan_rows(columns, row, max(first, edge), end, out, matches)
    return matches
