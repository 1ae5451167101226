"""The no-partitioning join's shared hash table: buckets of chained rows.

``heads[bucket]`` is the row that was inserted last, ``links[row]`` the one before it, -1 ends a
chain. Insertion is one atomic exchange, so that any number of threads build at once.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import exchange
from streamjoin.engines.kernels.jit import kernel

Codes = NDArray[np.uint32]
Int32s = NDArray[np.int32]

CHAIN_START = -2
"""Stands for the head of a chain that was not looked up yet."""


@kernel
def _bucket(key: np.uint32, shift: np.uint32) -> np.intp:
    # Fibonacci hashing: the upper bits of the product depend on all bits of the key.
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return np.intp(mixed >> np.uint64(shift))


@kernel
def build(
    keys: Codes, first: int, end: int, shift: np.uint32, heads: Int32s, links: Int32s
) -> None:
    """Insert rows ``first`` to below ``end``; threads may run it on disjoint rows at once.

    Parameters
    ----------
    keys : ndarray of uint32
        Keys of the build side.
    first, end : int
        Rows to insert.
    shift : uint32
        64 minus the table's bucket bits.
    heads : ndarray of int32, shape (2 ** bucket bits,)
        Filled with -1 before.
    links : ndarray of int32, shape (rows,)
        Written for the inserted rows.
    """
    for row in range(first, end):
        links[row] = exchange(heads, _bucket(keys[row], shift), np.int32(row))


@kernel
def probe(
    build_keys: Codes,
    probe_keys: Codes,
    first: int,
    end: int,
    chain: int,
    shift: np.uint32,
    heads: Int32s,
    links: Int32s,
    out_build: Codes,
    out_probe: Codes,
) -> tuple[int, int, int]:
    """Look rows up until they end or the output is full; resumable.

    Parameters
    ----------
    build_keys, probe_keys : ndarray of uint32
        Keys of both sides.
    first, end : int
        Rows of the probe side to look up.
    chain : int
        Build row at which to go on with row ``first``; CHAIN_START to begin with it.
    shift, heads, links
        The table.
    out_build, out_probe : ndarray of uint32, same shape
        Receive the matching rows.

    Returns
    -------
    row, chain : int
        Where to go on; ``row == end`` when done.
    found : int
        Matches written.
    """
    found = 0
    room = len(out_build)
    row = first
    node = chain
    while row < end:
        key = probe_keys[row]
        if node == CHAIN_START:
            node = np.int64(heads[_bucket(key, shift)])
        while node >= 0:
            if build_keys[node] == key:
                if found == room:
                    return row, node, found
                out_build[found] = np.uint32(node)
                out_probe[found] = np.uint32(row)
                found += 1
            node = np.int64(links[node])
        node = CHAIN_START
        row += 1
    return row, CHAIN_START, found
