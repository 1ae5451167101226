"""Joins over one B+-tree a window, and over a chain of trees: PIM-Tree, sections 2.2.1, 2.2.2.

Both run tuple by tuple in arrival order: probe, insert, and remove expired tuples. When the output
is full they return, and resume with the arrival whose matches did not fit.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import uncounted
from streamjoin.engines.kernels.trees.btree import Forest, clear, delete, insert
from streamjoin.engines.kernels.trees.immutable import Sorted, build, first_index, merge
from streamjoin.engines.kernels.trees.probing import (
    Arrivals,
    Codes,
    Columns,
    entry_of,
    scan_sorted,
    scan_tree,
)

U64 = np.uint64


@uncounted
def join_tree(
    columns: Columns,
    arrivals: Arrivals,
    forest: Forest,
    oldest: NDArray[np.uint64],
    arrival: int,
    out: Codes,
) -> tuple[int, int]:
    """Join arrivals over a tree for each stream, from which every expired tuple is deleted.

    Parameters
    ----------
    columns, arrivals
        As documented there.
    forest : Forest
        Tree and region 0 index R, 1 index S.
    oldest : ndarray of uint64, shape (2,)
        The oldest row in each tree.
    arrival : int
        Arrival to start with.
    out : ndarray of uint32, shape (2, room)
        Receives rows of R and of S, grouped by arrival.

    Returns
    -------
    arrival : int
        Arrival to resume with: ``len(arrivals.rows)`` when done.
    matches : int
        Pairs written.
    """
    at, matches = U64(arrival), U64(0)
    r_rows = U64(columns.r.shape[1])
    while at < U64(len(arrivals.rows)):
        row, before = U64(arrivals.rows[at]), matches
        own = U64(row >= r_rows)
        first, end = U64(arrivals.firsts[at]), U64(arrivals.ends[at])
        matches = scan_tree(columns, row, first, end, forest, U64(1) - own, out, matches)
        if matches > U64(out.shape[1]):
            return int(at), int(before)
        insert(forest, own, own, entry_of(columns.keys[row], row))
        while oldest[own] < min(U64(arrivals.expired[at]), row + U64(1)):
            gone = oldest[own]
            delete(forest, own, own, entry_of(columns.keys[gone], gone))
            oldest[own] += U64(1)
        at += U64(1)
    return int(at), int(matches)


@uncounted
def join_chain(
    columns: Columns,
    arrivals: Arrivals,
    forest: Forest,
    archive: Sorted,
    frozen: bool,
    length: int,
    blocks: NDArray[np.uint64],
    arrival: int,
    out: Codes,
) -> tuple[int, int]:
    """Join arrivals over a chain of sub-indexes for each stream, which expire as a whole.

    Sub-index ``b`` holds rows ``b * block`` to below ``(b + 1) * block`` of its stream, in slot ``b
    % length`` of the chain: a live window overlaps at most ``length`` sub-indexes.

    Parameters
    ----------
    columns, arrivals, arrival, out
        As for :func:`join_tree`.
    forest : Forest
        ``length`` trees for R, then as many for S, each a region; one for each stream if
        ``frozen``.
    archive : Sorted
        Immutable trees, ``length`` for R, then as many for S; not used if not ``frozen``.
    frozen : bool
        Whether full sub-indexes become immutable (IB-chain) or stay mutable (B-chain).
    length : int
        Sub-indexes of a chain, at least 2.
    blocks : ndarray of uint64, shape (2,)
        Tuples of a sub-index of R and of S.

    Returns
    -------
    arrival, matches : int
        As for :func:`join_tree`.
    """
    at, matches = U64(arrival), U64(0)
    r_rows, links = U64(columns.r.shape[1]), U64(length)
    while at < U64(len(arrivals.rows)):
        row, before = U64(arrivals.rows[at]), matches
        own = U64(row >= r_rows)
        other = U64(1) - own
        first, end = U64(arrivals.firsts[at]), U64(arrivals.ends[at])
        if first < end:
            other_base = other * r_rows
            last = (end - U64(1) - other_base) // blocks[other]
            for block in range((first - other_base) // blocks[other], last + U64(1)):
                slot = other * links + block % links
                if frozen and block < last:
                    entry = U64(first_index(archive, slot, columns.lows[row]))
                    matches = scan_sorted(
                        columns, row, first, end, archive, slot, entry, out, matches
                    )
                else:
                    tree = other if frozen else slot
                    matches = scan_tree(columns, row, first, end, forest, tree, out, matches)
        if matches > U64(out.shape[1]):
            return int(at), int(before)
        number = row - own * r_rows
        block = number // blocks[own]
        slot = own * links + block % links
        tree = own if frozen else slot
        if number % blocks[own] == U64(0):
            clear(forest, tree, tree, tree + U64(1))
        insert(forest, tree, tree, entry_of(columns.keys[row], row))
        if frozen and (number + U64(1)) % blocks[own] == U64(0):
            build(archive, slot, 0)
            merge(archive, slot, slot, forest, tree, tree + U64(1), 0)
        at += U64(1)
    return int(at), int(matches)
