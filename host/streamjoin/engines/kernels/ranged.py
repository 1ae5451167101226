"""Equi-joins in which each probe row meets a range of the build rows: any window as one probe.

Under every window, the rows of one stream that a row of the other meets are consecutive. The table
is that of :mod:`~streamjoin.engines.kernels.hashing`, built by one thread, so that the rows of a
bucket descend and bisection locates a range of them.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.hashing import FIBONACCI, _bucket
from streamjoin.engines.kernels.jit import kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW_MASK = U64(0xFFFFFFFF)


@kernel
def counts_below(ts: Int64s, times: Int64s, out: Int64s) -> None:
    """Count how many of ``ts`` are below each of ``times``; both ascend, so one pass is enough.

    Parameters
    ----------
    ts, times : ndarray of int64
        Ascending.
    out : ndarray of int64, shape (times,)
        Receives the counts.
    """
    at, end = U64(0), U64(len(ts))
    for index in range(U64(len(times))):
        time = times[index]
        while at < end and ts[at] < time:
            at += U64(1)
        out[index] = at


@kernel
def probe_ranged(
    keys: Codes,
    firsts: Int64s,
    ends: Int64s,
    state: Int64s,
    shift: int,
    bounds: Codes,
    table: Tuples,
    out_build: Codes,
    out_probe: Codes,
) -> int:
    """Probe with all rows, within their ranges, until they end or the output is full.

    Parameters
    ----------
    keys : ndarray of uint32, shape (rows,)
        Keys of the probe side.
    firsts, ends : ndarray of int64, shape (rows,)
        The build rows that each meets: ``first`` to below ``end``.
    state : ndarray of int64, shape (2,)
        Where to resume: row, and how many tuples of its bucket are done. The row is ``len(keys)``
        when all are.
    shift, bounds, table
        The complete table, of one thread, made with the factor ``FIBONACCI``.
    out_build, out_probe : ndarray of uint32, same shape
        Receive the matching rows.

    Returns
    -------
    int
        Matches written.
    """
    down, last = U64(shift), U64(len(keys))
    matches, room = U64(0), U64(len(out_build))
    row, within = U64(state[0]), U64(state[1])
    while row < last:
        far, near = row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(bounds, _bucket(keys[far if far < last else row], FIBONACCI, down))
        near_bucket = _bucket(keys[near if near < last else row], FIBONACCI, down)
        prefetch(table, U64(bounds[near_bucket]))
        key, first, end = U64(keys[row]), U64(firsts[row]), U64(ends[row])
        bucket = _bucket(keys[row], FIBONACCI, down)
        start, stop = U64(bounds[bucket]), U64(bounds[bucket + U64(1)])
        if within > U64(0):
            at = start + within
        else:
            # Rows descend: skip those at the range's end and beyond.
            at, behind = start, stop
            while at < behind:
                middle = (at + behind) >> U64(1)
                if table[middle] & ROW_MASK >= end:
                    at = middle + U64(1)
                else:
                    behind = middle
        while at < stop:
            packed = table[at]
            if packed & ROW_MASK < first:
                break
            if packed >> U64(32) == key:
                if matches == room:
                    state[0], state[1] = row, at - start
                    return int(matches)
                out_build[matches] = U32(packed & ROW_MASK)
                out_probe[matches] = U32(row)
                matches += U64(1)
            at += U64(1)
        within = U64(0)
        row += U64(1)
    state[0], state[1] = row, 0
    return int(matches)
