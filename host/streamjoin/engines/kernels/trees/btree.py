"""B+-trees in arrays: many trees of unique 64-bit entries that share pools of nodes.

An entry is a tuple of a stream, ``key << 32 | row``, so that entries with the same key differ and
are sorted by arrival. A leaf is :data:`NODE` entries, ascending, padded with :data:`NOTHING`;
leaves of a tree are linked from left to right. An inner node has up to :data:`NODE` children and
separators between them: entries of at most separator ``i`` are in child ``i`` or before. A node is
its number in the pool, not an object.

Insertion splits full nodes on the way down, deletion refills sparse ones (merges them with a
neighbour or shares its elements), both only where the leaf asks for it: the usual update is one
search and one vector operation on a leaf.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add
from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.trees.nodes import NODE, count_below, insert_at, remove_at

U32, U64 = np.uint32, np.uint64
NOTHING = U64(0xFFFFFFFFFFFFFFFF)
NO_NODE = U32(0xFFFFFFFF)
WIDTH = U64(NODE)
HALF = U64(NODE // 2)

SPARSE = U64(NODE // 4)
"""Minimum elements of a node other than the root, in trees from which entries are deleted."""

FULL_ENOUGH = U64(NODE * 3 // 4)
"""Maximum elements of a node merged from two neighbours: it can still grow."""

LEAVES, INNERS, FREE_LEAF, FREE_INNER, ENTRIES = U64(0), U64(1), U64(2), U64(3), U64(4)
REGION_WORDS = U64(8)
"""64-bit words of a region's counters, a cache line: next unused nodes, free lists, entries."""


class Forest(NamedTuple):
    """Trees that share pools of nodes; each region of the pools is emptied as a whole.

    Attributes
    ----------
    leaves : ndarray of uint64, shape (leaves * NODE,)
    nexts : ndarray of uint32, shape (leaves,)
        The leaf to the right, or the next free one.
    separators : ndarray of uint64, shape (inner nodes * NODE,)
    children : ndarray of uint32, shape (inner nodes * NODE,)
    roots, heights : ndarray of uint32, shape (trees,)
        Root of each tree (NO_NODE while it is empty) and the inner nodes above each of its leaves.
    counters : ndarray of uint64, shape (regions * REGION_WORDS,)
    scratch, scratch_children : ndarray of uint64 and uint32, shape (2 * NODE,)
        Work space in which two nodes are merged.
    """

    leaves: NDArray[np.uint64]
    nexts: NDArray[np.uint32]
    separators: NDArray[np.uint64]
    children: NDArray[np.uint32]
    roots: NDArray[np.uint32]
    heights: NDArray[np.uint32]
    counters: NDArray[np.uint64]
    scratch: NDArray[np.uint64]
    scratch_children: NDArray[np.uint32]


def plant(trees: int, regions: int, leaves: int) -> Forest:
    """Allocate empty trees, and a number of leaves in every region.

    Memory: at most 652 bytes a leaf: 256 for the leaf, 384 for each inner node (one for 16 or more
    leaves in a large tree). Memory pages of unused nodes are never touched.
    """
    forest = Forest(
        np.empty(regions * leaves * NODE, dtype=np.uint64),
        np.empty(regions * leaves, dtype=np.uint32),
        np.empty(regions * leaves * NODE, dtype=np.uint64),
        np.empty(regions * leaves * NODE, dtype=np.uint32),
        np.full(trees, NO_NODE, dtype=np.uint32),
        np.zeros(trees, dtype=np.uint32),
        np.zeros(regions * int(REGION_WORDS), dtype=np.uint64),
        np.empty(2 * NODE, dtype=np.uint64),
        np.empty(2 * NODE, dtype=np.uint32),
    )
    for region in range(regions):
        clear(forest, region, 0, 0)
    return forest


def leaves_for(entries: int, min_entries: int) -> int:
    """Maximum leaves for ``entries`` if all but the last hold at least ``min_entries``."""
    return entries // min_entries + 2


def bytes_in_use(forest: Forest) -> int:
    """Bytes of the nodes that were used since their region was cleared."""
    counters = forest.counters.reshape(-1, int(REGION_WORDS)).astype(np.int64)
    firsts = np.arange(len(counters)) * (len(forest.nexts) // len(counters))
    leaves, inners = (int((counters[:, int(c)] - firsts).sum()) for c in (LEAVES, INNERS))
    return leaves * (8 * NODE + 4) + inners * 12 * NODE


@uncounted
def clear(forest: Forest, region: int, first_tree: int, end_tree: int) -> None:
    """Empty a region and the trees in it."""
    counters = U64(region) * REGION_WORDS
    regions = U64(len(forest.counters)) // REGION_WORDS
    first = U64(region) * (U64(len(forest.nexts)) // regions)
    forest.counters[counters + LEAVES] = first
    forest.counters[counters + INNERS] = first
    forest.counters[counters + FREE_LEAF] = U64(NO_NODE)
    forest.counters[counters + FREE_INNER] = U64(NO_NODE)
    forest.counters[counters + ENTRIES] = U64(0)
    for tree in range(U64(first_tree), U64(end_tree)):
        forest.roots[tree] = NO_NODE
        forest.heights[tree] = U32(0)


@uncounted
def _new_leaf(forest: Forest, region: np.uint64) -> np.uint64:
    counters = region * REGION_WORDS
    leaf = forest.counters[counters + FREE_LEAF]
    if leaf != U64(NO_NODE):
        forest.counters[counters + FREE_LEAF] = U64(forest.nexts[leaf])
    else:
        leaf = fetch_add(forest.counters, counters + LEAVES, U64(1))
    for slot in range(WIDTH):
        forest.leaves[leaf * WIDTH + slot] = NOTHING
    forest.nexts[leaf] = NO_NODE
    return leaf


@uncounted
def _new_inner(forest: Forest, region: np.uint64) -> np.uint64:
    counters = region * REGION_WORDS
    node = forest.counters[counters + FREE_INNER]
    if node != U64(NO_NODE):
        forest.counters[counters + FREE_INNER] = U64(forest.children[node * WIDTH])
    else:
        node = fetch_add(forest.counters, counters + INNERS, U64(1))
    for slot in range(WIDTH):
        forest.separators[node * WIDTH + slot] = NOTHING
    return node


@fused
def _free_leaf(forest: Forest, region: np.uint64, leaf: np.uint64) -> None:
    forest.nexts[leaf] = U32(forest.counters[region * REGION_WORDS + FREE_LEAF])
    forest.counters[region * REGION_WORDS + FREE_LEAF] = leaf


@fused
def _free_inner(forest: Forest, region: np.uint64, node: np.uint64) -> None:
    forest.children[node * WIDTH] = U32(forest.counters[region * REGION_WORDS + FREE_INNER])
    forest.counters[region * REGION_WORDS + FREE_INNER] = node


@fused
def find_leaf(forest: Forest, tree: np.uint64, entry: np.uint64) -> np.uint64:
    """Return the leaf of a tree (which has one) that an entry belongs to."""
    node = U64(forest.roots[tree])
    for _ in range(U64(forest.heights[tree])):
        first = node * WIDTH
        node = U64(forest.children[first + count_below(forest.separators, first, entry)])
    return node


@fused
def insert(forest: Forest, region: int, tree: int, entry: int) -> None:
    """Insert an entry that the tree does not have."""
    where, target, value = U64(region), U64(tree), U64(entry)
    if forest.roots[target] == NO_NODE:
        forest.roots[target] = U32(_new_leaf(forest, where))
    leaf = find_leaf(forest, target, value)
    if forest.leaves[leaf * WIDTH + WIDTH - U64(1)] != NOTHING:
        leaf = _split_down(forest, where, target, value)
    first = leaf * WIDTH
    insert_at(forest.leaves, first, count_below(forest.leaves, first, value), value)


@uncounted
def _split_down(forest: Forest, region: np.uint64, tree: np.uint64, entry: np.uint64) -> np.uint64:
    """Split the full nodes on the path to an entry; return its leaf, which now has room."""
    node, height = U64(forest.roots[tree]), U64(forest.heights[tree])
    if _is_full(forest, node, height):
        above = _new_inner(forest, region)
        forest.children[above * WIDTH] = U32(node)
        node, height = above, height + U64(1)
        forest.roots[tree], forest.heights[tree] = U32(node), U32(height)
    while height > U64(0):
        height -= U64(1)
        first = node * WIDTH
        slot = count_below(forest.separators, first, entry)
        child = U64(forest.children[first + slot])
        if _is_full(forest, child, height):
            if height == U64(0):
                right, middle = _split_leaf(forest, region, child)
            else:
                right, middle = _split_inner(forest, region, child)
            insert_at(forest.separators, first, slot, middle)
            insert_at(forest.children, first, slot + U64(1), U32(right))
            if entry > middle:
                child = right
        node = child
    return node


@fused
def _is_full(forest: Forest, node: np.uint64, height: np.uint64) -> bool:
    last = node * WIDTH + WIDTH - U64(1)
    if height == U64(0):
        full = forest.leaves[last] != NOTHING
    else:
        full = forest.separators[last - U64(1)] != NOTHING
    return full


@uncounted
def _split_leaf(forest: Forest, region: np.uint64, leaf: np.uint64) -> tuple[np.uint64, np.uint64]:
    right = _new_leaf(forest, region)
    first, to = leaf * WIDTH, right * WIDTH
    for slot in range(HALF):
        forest.leaves[to + slot] = forest.leaves[first + HALF + slot]
        forest.leaves[first + HALF + slot] = NOTHING
    forest.nexts[right] = forest.nexts[leaf]
    forest.nexts[leaf] = U32(right)
    return right, forest.leaves[first + HALF - U64(1)]


@uncounted
def _split_inner(forest: Forest, region: np.uint64, node: np.uint64) -> tuple[np.uint64, np.uint64]:
    right = _new_inner(forest, region)
    first, to = node * WIDTH, right * WIDTH
    middle = forest.separators[first + HALF - U64(1)]
    for slot in range(HALF):
        forest.children[to + slot] = forest.children[first + HALF + slot]
        forest.separators[to + slot] = forest.separators[first + HALF + slot]
        forest.separators[first + HALF + slot] = NOTHING
    forest.separators[first + HALF - U64(1)] = NOTHING
    return right, middle


@fused
def delete(forest: Forest, region: int, tree: int, entry: int) -> None:
    """Delete an entry that the tree has."""
    where, target, value = U64(region), U64(tree), U64(entry)
    leaf = find_leaf(forest, target, value)
    if forest.heights[target] > U32(0) and forest.leaves[leaf * WIDTH + SPARSE] == NOTHING:
        leaf = _refill_down(forest, where, target, value)
    first = leaf * WIDTH
    remove_at(forest.leaves, first, count_below(forest.leaves, first, value), NOTHING)


@uncounted
def _refill_down(forest: Forest, region: np.uint64, tree: np.uint64, entry: np.uint64) -> np.uint64:
    """Refill the sparse nodes on the path to an entry; return its leaf, which can now lose one."""
    node, height = U64(forest.roots[tree]), U64(forest.heights[tree])
    while height > U64(0):
        height -= U64(1)
        first = node * WIDTH
        slot = count_below(forest.separators, first, entry)
        child = U64(forest.children[first + slot])
        if _elements(forest, child, height) <= SPARSE:
            left = slot - U64(slot > U64(0))
            if height == U64(0):
                _even_leaves(forest, region, first, left)
            else:
                _even_inners(forest, region, first, left)
            if forest.separators[first] == NOTHING:  # only the root can be left with one child
                child = U64(forest.children[first])
                forest.roots[tree], forest.heights[tree] = U32(child), U32(height)
                _free_inner(forest, region, node)
            else:
                slot = count_below(forest.separators, first, entry)
                child = U64(forest.children[first + slot])
        node = child
    return node


@fused
def _elements(forest: Forest, node: np.uint64, height: np.uint64) -> np.uint64:
    """Entries of a leaf, children of an inner node."""
    if height == U64(0):
        elements = count_below(forest.leaves, node * WIDTH, NOTHING)
    else:
        elements = count_below(forest.separators, node * WIDTH, NOTHING) + U64(1)
    return elements


@uncounted
def _even_leaves(forest: Forest, region: np.uint64, parent: np.uint64, slot: np.uint64) -> None:
    """Merge a parent's child with the next one, or share their entries evenly."""
    left, right = (
        U64(forest.children[parent + slot]),
        U64(forest.children[parent + slot + U64(1)]),
    )
    at, to, entries = left * WIDTH, right * WIDTH, U64(0)
    for first in (at, to):
        for index in range(WIDTH):
            forest.scratch[entries] = forest.leaves[first + index]
            entries += U64(forest.leaves[first + index] != NOTHING)
    merged = entries <= FULL_ENOUGH
    kept = entries if merged else entries // U64(2)
    for index in range(WIDTH):
        forest.leaves[at + index] = forest.scratch[index] if index < kept else NOTHING
    if merged:
        forest.nexts[left] = forest.nexts[right]
        _free_leaf(forest, region, right)
        remove_at(forest.separators, parent, slot, NOTHING)
        remove_at(forest.children, parent, slot + U64(1), NO_NODE)
        return
    for index in range(WIDTH):
        rest = kept + index
        forest.leaves[to + index] = forest.scratch[rest] if rest < entries else NOTHING
    forest.separators[parent + slot] = forest.scratch[kept - U64(1)]


@uncounted
def _even_inners(forest: Forest, region: np.uint64, parent: np.uint64, slot: np.uint64) -> None:
    """Merge a parent's child with the next one, or share their children evenly."""
    left, right = (
        U64(forest.children[parent + slot]),
        U64(forest.children[parent + slot + U64(1)]),
    )
    at, to, held = left * WIDTH, right * WIDTH, U64(0)
    for first in (at, to):
        own = count_below(forest.separators, first, NOTHING) + U64(1)
        for index in range(own):
            forest.scratch_children[held] = forest.children[first + index]
            forest.scratch[held] = forest.separators[first + index]
            held += U64(1)
        # The parent's separator divides the left node's last child from the right node's first.
        forest.scratch[held - U64(1)] = forest.separators[parent + slot] if first == at else NOTHING
    merged = held <= FULL_ENOUGH
    kept = held if merged else held // U64(2)
    middle = forest.scratch[kept - U64(1)]
    for index in range(WIDTH):
        if index < kept:
            forest.children[at + index] = forest.scratch_children[index]
        inside = index + U64(1) < kept
        forest.separators[at + index] = forest.scratch[index] if inside else NOTHING
    if merged:
        _free_inner(forest, region, right)
        remove_at(forest.separators, parent, slot, NOTHING)
        remove_at(forest.children, parent, slot + U64(1), NO_NODE)
        return
    for index in range(WIDTH):
        rest = kept + index
        if rest < held:
            forest.children[to + index] = forest.scratch_children[rest]
        forest.separators[to + index] = forest.scratch[rest] if rest < held else NOTHING
    forest.separators[parent + slot] = middle
