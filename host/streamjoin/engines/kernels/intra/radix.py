"""Radix partitioning and cache-resident hash joins, for the parallel radix join.

A tuple is one uint64: key in the upper half, row in the lower. The radix bits are the upper bits of
a multiplicative hash of the key, so that keys with regular low bits spread evenly too; a
partition's hash table uses the bits below them.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW_MASK = U64(0xFFFFFFFF)


@inlined
def _hash(packed: np.uint64) -> np.uint32:
    return U32(U32(packed >> U64(32)) * U32(0x9E3779B1))


@inlined
def _hash_key(key: np.uint32) -> np.uint32:
    return U32(key * U32(0x9E3779B1))


@kernel
def key_histogram(keys: Codes, first: int, end: int, bits: int, counts: Int64s) -> None:
    """Count rows ``first`` to below ``end`` by partition: the upper ``bits`` of the hash."""
    shift = U32(32 - bits)
    for row in range(U64(first), U64(end)):
        counts[U64(_hash_key(keys[row]) >> shift)] += 1


@kernel
def key_scatter(keys: Codes, first: int, end: int, bits: int, offsets: Codes, out: Tuples) -> None:
    """Pack rows ``first`` to below ``end`` and move them to their partitions.

    Each tuple is written where it belongs, four tuples at a time. Gathering a partition's tuples
    until they fill a cache line took twice as long, with pages of 2 MB.

    Parameters
    ----------
    keys : ndarray of uint32
        The stream's keys.
    first, end : int
        Rows to move.
    bits : int
        Radix bits.
    offsets : ndarray of uint32, shape (partitions,)
        Index of each partition's next tuple; advanced.
    out : ndarray of uint64
        Receives ``key << 32 | row``.
    """
    shift, row, last = U32(32 - bits), U64(first), U64(end)
    for _ in range((last - row) >> U64(2)):
        one, two, three, four = (
            keys[row],
            keys[row + U64(1)],
            keys[row + U64(2)],
            keys[row + U64(3)],
        )
        in_one, in_two = U64(_hash_key(one) >> shift), U64(_hash_key(two) >> shift)
        in_three, in_four = U64(_hash_key(three) >> shift), U64(_hash_key(four) >> shift)
        at = U64(offsets[in_one])
        offsets[in_one] = U32(at + U64(1))
        out[at] = U64(one) << U64(32) | row
        at = U64(offsets[in_two])
        offsets[in_two] = U32(at + U64(1))
        out[at] = U64(two) << U64(32) | (row + U64(1))
        at = U64(offsets[in_three])
        offsets[in_three] = U32(at + U64(1))
        out[at] = U64(three) << U64(32) | (row + U64(2))
        at = U64(offsets[in_four])
        offsets[in_four] = U32(at + U64(1))
        out[at] = U64(four) << U64(32) | (row + U64(3))
        row += U64(4)
    for rest in range(row, last):
        key = keys[rest]
        partition = U64(_hash_key(key) >> shift)
        at = U64(offsets[partition])
        offsets[partition] = U32(at + U64(1))
        out[at] = U64(key) << U64(32) | rest


@kernel
def histogram(tuples: Tuples, first: int, end: int, skip: int, bits: int, counts: Int64s) -> None:
    """Count tuples by partition: ``bits`` radix bits below the ``skip`` upper ones."""
    shift, left = U32(32 - bits), U32(skip)
    for index in range(U64(first), U64(end)):
        counts[U64(U32(_hash(tuples[index]) << left) >> shift)] += 1


@kernel
def scatter(
    tuples: Tuples, first: int, end: int, skip: int, bits: int, offsets: Int64s, out: Tuples
) -> None:
    """Move tuples to finer partitions; ``offsets`` holds each one's next index and is advanced."""
    shift, left = U32(32 - bits), U32(skip)
    for index in range(U64(first), U64(end)):
        packed = tuples[index]
        partition = U64(U32(_hash(packed) << left) >> shift)
        out[U64(offsets[partition])] = packed
        offsets[partition] += 1


@inlined
def _bucket_bits(tuples: int) -> int:
    """Bits of a table with at least as many buckets as tuples, at most 20."""
    bits = 1
    while (1 << bits) < tuples and bits < 20:
        bits += 1
    return bits


@kernel
def table_room(tasks: Int64s) -> tuple[int, int]:
    """Return the tuples and bucket bounds that the tables of these tasks need together.

    Two tuples more than there are: a probe reads two tuples of any bucket.
    """
    tuples, bounds = 2, 0
    for task in range(len(tasks)):
        length = tasks[task, 1] - tasks[task, 0]
        tuples += length
        bounds += (1 << _bucket_bits(length)) + 1
    return tuples, bounds


@kernel
def build_tables(r: Tuples, tasks: Int64s, used: int, bounds: Codes, table: Tuples) -> None:
    """Sort each task's R tuples by bucket: equal keys are side by side, nothing is chained.

    Parameters
    ----------
    r : ndarray of uint64
        Partitioned R.
    tasks : ndarray of int64, shape (tasks, 4)
        Range of R, range of S: first and end of each.
    used : int
        Radix bits that partitioning used.
    bounds : ndarray of uint32
        Receives each table's bucket bounds, table after table.
    table : ndarray of uint64
        Receives the tuples.
    """
    tuples, base = U64(0), U64(0)
    left = U32(used)
    for task in range(len(tasks)):
        first, end = U64(tasks[task, 0]), U64(tasks[task, 1])
        bits = _bucket_bits(tasks[task, 1] - tasks[task, 0])
        buckets, shift = U64(1 << bits), U32(32 - bits)
        for bucket in range(buckets + U64(1)):
            bounds[base + bucket] = 0
        for index in range(first, end):
            bounds[base + U64(U32(_hash(r[index]) << left) >> shift)] += U32(1)
        total = U32(0)
        for bucket in range(buckets):
            total += bounds[base + bucket]
            bounds[base + bucket] = total
        bounds[base + buckets] = total
        for index in range(first, end):  # counts down: bounds end as each bucket's first index
            packed = r[index]
            bucket = base + U64(U32(_hash(packed) << left) >> shift)
            bounds[bucket] -= U32(1)
            table[tuples + U64(bounds[bucket])] = packed
        tuples += end - first
        base += buckets + U64(1)


@kernel
def probe_tables(
    s: Tuples,
    tasks: Int64s,
    used: int,
    bounds: Codes,
    table: Tuples,
    state: Int64s,
    out_r: Codes,
    out_s: Codes,
) -> int:
    """Probe each task's table with its S tuples until all are done or the output is full.

    Parameters
    ----------
    s : ndarray of uint64
        Partitioned S.
    tasks, used, bounds, table
        As :func:`build_tables` left them.
    state : ndarray of int64, shape (5,)
        Where to resume: task, index in S, index in the bucket (-1: its first), tuples and bounds of
        the tables before; zeros and -1 to begin. The task is ``len(tasks)`` when done.
    out_r, out_s : ndarray of uint32, same shape
        Receive the matching rows.

    Returns
    -------
    int
        Matches written.
    """
    matches, room = U64(0), U64(len(out_r))
    left = U32(used)
    task = state[0]
    while task < len(tasks):
        bits = _bucket_bits(tasks[task, 1] - tasks[task, 0])
        shift = U32(32 - bits)
        tuples, base = U64(state[3]), U64(state[4])
        end = U64(tasks[task, 3])
        index = U64(max(state[1], tasks[task, 2]))
        inside = state[2]
        while index < end:
            packed = s[index]
            bucket = base + U64(U32(_hash(packed) << left) >> shift)
            node = tuples + U64(bounds[bucket]) if inside < 0 else U64(inside)
            last = tuples + U64(bounds[bucket + U64(1)])
            key = packed >> U64(32)
            if inside < 0 and matches + U64(2) <= room:
                # Most buckets hold no more than two: compared without a branch to mispredict.
                one, two = table[node], table[node + U64(1)]
                out_r[matches], out_s[matches] = U32(one & ROW_MASK), U32(packed & ROW_MASK)
                matches += U64((one >> U64(32) == key) & (node < last))
                out_r[matches], out_s[matches] = U32(two & ROW_MASK), U32(packed & ROW_MASK)
                matches += U64((two >> U64(32) == key) & (node + U64(1) < last))
                node += U64(2)
            inside = -1
            while node < last:
                if table[node] >> U64(32) == key:
                    if matches == room:
                        state[0], state[1], state[2] = task, np.int64(index), np.int64(node)
                        return int(matches)
                    out_r[matches] = U32(table[node] & ROW_MASK)
                    out_s[matches] = U32(packed & ROW_MASK)
                    matches += U64(1)
                node += U64(1)
            index += U64(1)
        state[1], state[2] = 0, -1
        state[3] += tasks[task, 1] - tasks[task, 0]
        state[4] += (1 << bits) + 1
        task += 1
    state[0] = task
    return int(matches)
