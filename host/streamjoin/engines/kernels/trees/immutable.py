"""Immutable B+-trees in arrays: sorted entries, inner nodes addressed by arithmetic.

PIM-Tree, section 3.1 and appendix A.3 (a CSS-tree): the nodes of a depth are contiguous, so child
``i`` of node ``j`` is node ``j * NODE + i`` of the next depth and no reference is stored. Inner
nodes hold 32-bit keys only, the largest of each child; the last child has the largest possible key,
so that a search never leaves the tree. The root is at depth 0, entries (see
:mod:`~streamjoin.engines.kernels.trees.btree`) follow the deepest inner nodes, in leaves of NODE.

Memory: 8 bytes for each entry of the capacity and 4 for every NODE of them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused, uncounted
from streamjoin.engines.kernels.trees.btree import NO_NODE, NOTHING, WIDTH, Forest
from streamjoin.engines.kernels.trees.nodes import NODE, count_below

U32, U64 = np.uint32, np.uint64
LARGEST = U32(0xFFFFFFFF)
ROW = U64(0xFFFFFFFF)

COUNT, DEPTHS, STARTS = U64(0), U64(1), U64(2)
SHAPE_WORDS = U64(16)
"""64-bit words of a tree's shape: entries, inner depths, first index of each depth's keys."""


class Sorted(NamedTuple):
    """Immutable trees of one capacity.

    Attributes
    ----------
    entries : ndarray of uint64, shape (trees * capacity,)
        Ascending; a tree's last leaf is padded with NOTHING.
    keys : ndarray of uint32, shape (trees * room for keys,)
    shapes : ndarray of uint64, shape (trees * SHAPE_WORDS,)
    """

    entries: NDArray[np.uint64]
    keys: NDArray[np.uint32]
    shapes: NDArray[np.uint64]


def reserve(trees: int, entries: int) -> Sorted:
    """Allocate empty trees with a capacity of ``entries`` each."""
    leaves = entries // NODE + 1
    keys = depth = leaves
    while depth > 1:
        depth = -(-depth // NODE)
        keys += depth + NODE
    trees_made = Sorted(
        np.empty(trees * leaves * NODE, dtype=np.uint64),
        np.empty(trees * (keys + NODE), dtype=np.uint32),
        np.zeros(trees * int(SHAPE_WORDS), dtype=np.uint64),
    )
    for tree in range(trees):
        build(trees_made, tree, 0)
    return trees_made


@fused
def first_entry(trees: Sorted, tree: np.uint64) -> np.uint64:
    """Return the index of a tree's first entry."""
    many = U64(len(trees.shapes)) // SHAPE_WORDS
    return tree * (U64(len(trees.entries)) // many)


@uncounted
def build(trees: Sorted, tree: int, count: int) -> None:
    """Build the inner nodes above a tree's first ``count`` entries (appendix A.3, algorithm 3)."""
    entries, shape = U64(count), U64(tree) * SHAPE_WORDS
    first = first_entry(trees, U64(tree))
    leaves = max(U64(1), (entries + WIDTH - U64(1)) // WIDTH)
    for index in range(entries, leaves * WIDTH):
        trees.entries[first + index] = NOTHING
    depths, covered = U64(0), U64(1)
    while covered < leaves:
        depths += U64(1)
        covered *= WIDTH
    trees.shapes[shape + COUNT] = entries
    trees.shapes[shape + DEPTHS] = depths
    start = U64(tree) * (U64(len(trees.keys)) // (U64(len(trees.shapes)) // SHAPE_WORDS))
    for depth in range(depths):
        trees.shapes[shape + STARTS + depth] = start
        covered //= WIDTH  # leaves below each key of this depth
        children = (leaves + covered - U64(1)) // covered
        padded = (children + WIDTH - U64(1)) // WIDTH * WIDTH
        for child in range(padded):
            key = LARGEST
            if child + U64(1) < children:
                last = first + (child + U64(1)) * covered * WIDTH - U64(1)
                key = U32(trees.entries[last] >> U64(32))
            trees.keys[start + child] = key
        start += padded


@fused
def descend(
    trees: Sorted,
    tree: np.uint64,
    key: np.uint32,
    node: np.uint64,
    begin: np.uint64,
    end: np.uint64,
) -> np.uint64:
    """Descend from a node at depth ``begin`` to depth ``end`` towards a key's first entry."""
    starts = tree * SHAPE_WORDS + STARTS
    for depth in range(begin, end):
        index = trees.shapes[starts + depth] + node * WIDTH
        node = node * WIDTH + count_below(trees.keys, index, key)
    return node


@fused
def lower_bound(trees: Sorted, tree: np.uint64, key: np.uint32, leaf: np.uint64) -> np.uint64:
    """Return the index of the first entry with at least that key in its leaf."""
    index = first_entry(trees, tree) + leaf * WIDTH
    return index + count_below(trees.entries, index, U64(key) << U64(32))


@fused
def first_index(trees: Sorted, tree: int, key: int) -> int:
    """Return the index of a tree's first entry with at least that key."""
    number, wanted = U64(tree), U32(key)
    depths = trees.shapes[number * SHAPE_WORDS + DEPTHS]
    leaf = descend(trees, number, wanted, U64(0), U64(0), depths)
    return int(lower_bound(trees, number, wanted, leaf))


@uncounted
def merge(
    trees: Sorted, old: int, new: int, forest: Forest, first_tree: int, end_tree: int, live: int
) -> int:
    """Merge a tree with mutable ones into another tree, without the rows before ``live``.

    Parameters
    ----------
    trees : Sorted
        Holds the old and the new tree.
    old, new : int
        Which ones; the old one is only read.
    forest : Forest
        Mutable trees, only read: those from ``first_tree`` to below ``end_tree`` in the order of
        their ranges.
    live : int
        First row that has not expired.

    Returns
    -------
    int
        Entries of the new tree.
    """
    oldest = U64(live)
    at = first_entry(trees, U64(old))
    end = at + trees.shapes[U64(old) * SHAPE_WORDS + COUNT]
    begin = first_entry(trees, U64(new))
    to = begin
    for tree in range(U64(first_tree), U64(end_tree)):
        node = U64(forest.roots[tree])
        if node == U64(NO_NODE):
            continue
        for _ in range(U64(forest.heights[tree])):
            node = U64(forest.children[node * WIDTH])
        while node != U64(NO_NODE):
            for index in range(node * WIDTH, node * WIDTH + WIDTH):
                entry = forest.leaves[index]
                if entry == NOTHING:
                    break
                if entry & ROW < oldest:
                    continue
                while at < end and trees.entries[at] < entry:
                    if trees.entries[at] & ROW >= oldest:
                        trees.entries[to] = trees.entries[at]
                        to += U64(1)
                    at += U64(1)
                trees.entries[to] = entry
                to += U64(1)
            node = U64(forest.nexts[node])
    while at < end:
        if trees.entries[at] & ROW >= oldest:
            trees.entries[to] = trees.entries[at]
            to += U64(1)
        at += U64(1)
    build(trees, new, int(to - begin))
    return int(to - begin)


def bytes_in_use(trees: Sorted) -> int:
    """Bytes of the entries of all trees, and of the keys above them."""
    return int(trees.shapes[COUNT :: int(SHAPE_WORDS)].sum()) * (8 * NODE + 4) // NODE
