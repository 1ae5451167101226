"""The symmetric hash join's tables, and the routing of arriving tuples to workers.

A table is ``heads[bucket]`` and a node for each inserted tuple: its row, the node inserted before
it in the same bucket and, where tuples are passed by value, its key. A routed tuple is one uint64:
key in the upper half, row in the lower.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
NONE = U32(0xFFFFFFFF)
ROW_MASK = U64(0xFFFFFFFF)
POINTER_NODE, VALUE_NODE = 2, 4
"""32-bit words of a node: row and link, or row, link, key and an unused word."""

FRESH = -1
"""The head of a chain that was not looked up yet."""

PADDING = 2 * AHEAD
"""Tuples after a batch's last that may be read for prefetching; their values are not used."""


@inlined
def _bucket(packed: np.uint64, shift: np.uint64) -> np.uint64:
    # Fibonacci hashing: the upper bits of the product depend on all bits of the key.
    return U64((packed >> U64(32)) * U64(0x9E3779B97F4A7C15)) >> shift


@kernel
def take(
    keys: Codes,
    first: int,
    end: int,
    slot_first: int,
    slot_end: int,
    slots: int,
    member: int,
    members: int,
    out: Tuples,
    at: int,
) -> int:
    """Select a worker's tuples of the rows ``first`` to below ``end`` and pack them.

    A tuple belongs to the group whose slots its key is routed to and, where the stream is divided
    within a group, to the members in turn.

    Parameters
    ----------
    keys : ndarray of uint32
        The stream's keys.
    first, end : int
        Rows to look at.
    slot_first, slot_end, slots : int
        The group's range of slots, and the number of all slots.
    member, members : int
        The worker's number in its group, and the group's members; ``0, 1`` to replicate the stream.
    out : ndarray of uint64
        Receives the tuples, from index ``at`` on.

    Returns
    -------
    int
        The index after the last.
    """
    index = U64(at)
    if slot_end - slot_first == slots and members == 1:
        shift = index - U64(first)
        for row in range(U64(first), U64(end)):
            out[row + shift] = U64(keys[row]) << U64(32) | row
        return at + end - first
    low, high, many = U64(slot_first), U64(slot_end), U64(slots)
    mine, last = U64(member), U64(members - 1)
    turn = U64(first % members)
    for row in range(U64(first), U64(end)):
        key = keys[row]
        # Not the multiplier of the buckets: the keys of a slot must spread over all buckets.
        slot = (U64(U32(key * U32(0x85EBCA6B))) * many) >> U64(32)
        out[index] = U64(key) << U64(32) | row
        index += U64((slot >= low) & (slot < high) & (turn == mine))
        turn = U64(0) if turn == last else turn + U64(1)
    return int(index)


@kernel
def insert(
    batch: Tuples, count: int, by_value: bool, shift: int, heads: Codes, nodes: Codes, used: int
) -> None:
    """Insert a batch into its stream's table.

    Parameters
    ----------
    batch : ndarray of uint64, shape (at least count + PADDING,)
        Tuples.
    count : int
        Number of tuples.
    by_value : bool
        Whether nodes hold keys.
    shift : int
        64 minus the table's bucket bits.
    heads, nodes : ndarray of uint32
        The table.
    used : int
        Nodes used before.
    """
    down = U64(shift)
    words = U64(VALUE_NODE if by_value else POINTER_NODE)
    node = U64(used)
    for index in range(U64(0), U64(count)):
        prefetch(heads, _bucket(batch[index + U64(AHEAD)], down))
        packed = batch[index]
        bucket = _bucket(packed, down)
        base = node * words
        nodes[base] = U32(packed & ROW_MASK)
        nodes[base + U64(1)] = heads[bucket]
        if by_value:
            nodes[base + U64(2)] = U32(packed >> U64(32))
        heads[bucket] = U32(node)
        node += U64(1)


@kernel
def probe(
    batch: Tuples,
    count: int,
    state: Int64s,
    other_keys: Codes,
    by_value: bool,
    shift: int,
    heads: Codes,
    nodes: Codes,
    out_other: Codes,
    out_own: Codes,
    at: int,
) -> int:
    """Probe the other stream's table with a batch until it ends or the output is full.

    Parameters
    ----------
    batch, count, by_value, shift, heads, nodes
        As for :func:`insert`, of the other stream's table.
    state : ndarray of int64, shape (2,)
        Where to resume: index in the batch, and node (FRESH for the first of its bucket). The index
        is ``count`` when done.
    other_keys : ndarray of uint32
        Keys of the other stream by row, where nodes do not hold them.
    out_other, out_own : ndarray of uint32
        Receive the matching rows, from index ``at`` on.

    Returns
    -------
    int
        The index after the last match.
    """
    down = U64(shift)
    words = U64(VALUE_NODE if by_value else POINTER_NODE)
    filled, room = U64(at), U64(len(out_own))
    index, last = U64(state[0]), U64(count)
    resumed = state[1]
    while index < last:
        prefetch(heads, _bucket(batch[index + U64(PADDING)], down))
        prefetch(nodes, U64(heads[_bucket(batch[index + U64(AHEAD)], down)]) * words)
        packed = batch[index]
        key = U32(packed >> U64(32))
        node = heads[_bucket(packed, down)] if resumed == FRESH else U32(resumed)
        resumed = FRESH
        while node != NONE:
            base = U64(node) * words
            row = nodes[base]
            if (nodes[base + U64(2)] if by_value else other_keys[U64(row)]) == key:
                if filled == room:
                    state[0], state[1] = index, node
                    return int(filled)
                out_other[filled] = row
                out_own[filled] = U32(packed & ROW_MASK)
                filled += U64(1)
            node = nodes[base + U64(1)]
        index += U64(1)
    state[0], state[1] = count, FRESH
    return int(filled)
