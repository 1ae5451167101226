"""The no-partitioning join's shared hash table: the tuples of a bucket lie side by side.

``bounds[bucket]`` is where a bucket begins in ``table`` and ``bounds[bucket + 1]`` where it ends,
so that a probe reads two memory locations, however many tuples share its key. Any number of threads
build it at once in two passes, with one atomic step a tuple in each (a plain one if a thread is
alone, as atomic ones wait for one another's cache lines): they count the tuples of each
bucket, a prefix sum of the counts gives the buckets' ends, and tuples are written from each
bucket's end downwards.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import fetch_add
from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch, prefetch_to_write

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW_MASK = U64(0xFFFFFFFF)
DOWN = U32(0xFFFFFFFF)
"""Minus one, in 32 bits."""

FIBONACCI = U64(0x9E3779B97F4A7C15)
"""Factor of Fibonacci hashing: the upper bits of a product depend on all bits of the key."""


@inlined
def _bucket(key: np.uint32, factor: np.uint64, shift: np.uint64) -> np.uint64:
    return U64(U64(key) * factor) >> shift


@kernel
def count(
    keys: Codes, first: int, end: int, factor: np.uint64, shift: int, bounds: Codes, alone: bool
) -> None:
    """Count rows ``first`` to below ``end`` by bucket; threads may run it at once.

    Parameters
    ----------
    keys : ndarray of uint32
        Keys of the build side.
    first, end : int
        Rows to count.
    factor : uint64
        A key's bucket is in the upper bits of its product with it.
    shift : int
        64 minus the table's bucket bits.
    bounds : ndarray of uint32, shape (buckets + 1,)
        Zero before.
    alone : bool
        Whether no other thread counts.
    """
    down, last = U64(shift), U64(end)
    for row in range(U64(first), last):
        ahead = row + U64(AHEAD)
        prefetch(bounds, _bucket(keys[ahead if ahead < last else row], factor, down))
        if alone:
            bounds[_bucket(keys[row], factor, down)] += U32(1)
        else:
            fetch_add(bounds, _bucket(keys[row], factor, down), U32(1))


@kernel
def fill(
    keys: Codes,
    first: int,
    end: int,
    factor: np.uint64,
    shift: int,
    bounds: Codes,
    table: Tuples,
    alone: bool,
) -> None:
    """Write rows ``first`` to below ``end`` to their buckets; threads may run it at once.

    Parameters
    ----------
    keys, first, end, factor, shift
        As for :func:`count`.
    bounds : ndarray of uint32, shape (buckets + 1,)
        Ends of the buckets before, their beginnings when all rows are written; the last is the
        number of rows.
    table : ndarray of uint64, shape (rows,)
        Receives ``key << 32 | row``.
    alone : bool
        Whether no other thread writes.
    """
    down, last = U64(shift), U64(end)
    for row in range(U64(first), last):
        far, near = row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(bounds, _bucket(keys[far if far < last else row], factor, down))
        target = bounds[_bucket(keys[near if near < last else row], factor, down)]
        prefetch_to_write(table, U64(target - U32(1)))
        key = keys[row]
        bucket = _bucket(key, factor, down)
        if alone:
            behind = bounds[bucket]
            bounds[bucket] = behind - U32(1)
        else:
            behind = fetch_add(bounds, bucket, DOWN)
        table[U64(behind - U32(1))] = U64(key) << U64(32) | row


@kernel
def probe(
    keys: Codes,
    end: int,
    state: Int64s,
    factor: np.uint64,
    shift: int,
    bounds: Codes,
    table: Tuples,
    out_build: Codes,
    out_probe: Codes,
) -> int:
    """Probe with rows until they end or the output is full.

    Parameters
    ----------
    keys : ndarray of uint32
        Keys of the probe side.
    end : int
        Row to stop before.
    state : ndarray of int64, shape (2,)
        Where to resume: row, and offset within its bucket. The row is ``end`` when done.
    factor, shift, bounds, table
        The complete table.
    out_build, out_probe : ndarray of uint32, same shape
        Receive the matching rows.

    Returns
    -------
    int
        Matches written.
    """
    down, last = U64(shift), U64(end)
    matches, room = U64(0), U64(len(out_build))
    row, within = U64(state[0]), U64(state[1])
    while row < last:
        far, near = row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(bounds, _bucket(keys[far if far < last else row], factor, down))
        near_bucket = _bucket(keys[near if near < last else row], factor, down)
        prefetch(table, U64(bounds[near_bucket]))
        key = keys[row]
        bucket = _bucket(key, factor, down)
        start, stop = U64(bounds[bucket]) + within, U64(bounds[bucket + U64(1)])
        within = U64(0)
        fitting = min(stop, start + (room - matches))
        for at in range(start, fitting):
            packed = table[at]
            if packed >> U64(32) == U64(key):
                out_build[matches] = U32(packed & ROW_MASK)
                out_probe[matches] = U32(row)
                matches += U64(1)
        if fitting < stop:
            state[0], state[1] = row, fitting - U64(bounds[bucket])
            return int(matches)
        row += U64(1)
    state[0], state[1] = row, 0
    return int(matches)


@kernel
def fill_first(keys: Codes, rows: Codes) -> None:
    """Write the first row of each key to the entry that the key numbers.

    Parameters
    ----------
    keys : ndarray of uint32
    rows : ndarray of uint32
        Receives the rows; longer than the highest key.
    """
    last = U64(len(keys))
    for back in range(last):
        row = last - U64(1) - back
        rows[U64(keys[row])] = U32(row)


@kernel
def find_first(keys: Codes, rows: Codes, absent: int, firsts: Codes) -> None:
    """Read the first row of each key.

    Parameters
    ----------
    keys : ndarray of uint32
    rows : ndarray of uint32
        What :func:`fill_first` wrote; at least one.
    absent : int
        Stands for no row, in ``rows``, too.
    firsts : ndarray of uint32, shape of ``keys``
        Receives the rows.
    """
    highest = U64(len(rows)) - U64(1)
    for row in range(U64(len(keys))):
        key = U64(keys[row])
        first = rows[min(key, highest)]
        firsts[row] = first if key <= highest else U32(absent)
