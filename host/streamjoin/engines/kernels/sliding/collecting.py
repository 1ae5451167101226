"""SplitJoin's collector: merging the cores' results into one order, by punctuation."""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
NOTHING_LEFT = U64(0xFFFFFFFFFFFFFFFF)


@inlined
def _interval(
    arrival: np.uint32, r_row: np.uint32, s_row: np.uint32, of_s: bool, within: np.uint64
) -> np.uint64:
    """Return the number of a result's punctuation interval: by arrival, then by its stored row."""
    interval = U64(arrival) << U64(32)
    if within > U64(0):
        interval |= U64(r_row if of_s else s_row) // within
    return interval


@kernel
def merge(
    results: Codes,
    bounds: Int64s,
    is_s: NDArray[np.bool_],
    interval_rows: int,
    out_r: Codes,
    out_s: Codes,
) -> None:
    """Merge the cores' results, interval by interval, core by core: algorithm 5.

    Parameters
    ----------
    results : ndarray of uint32, shape (3, results)
        Arrival, row of R, row of S; each core's results ascend by arrival, then by stored row.
    bounds : ndarray of int64, shape (cores + 1,)
        Index of each core's first result, and the end of the last.
    is_s : ndarray of bool, shape (arrivals,)
        Side of each arriving tuple.
    interval_rows : int
        Rows of the stored stream, of all cores together, between two punctuations; 0 if only the
        end of each arriving tuple has one.
    out_r, out_s : ndarray of uint32, shape (results,)
        Receive rows of R and S.
    """
    heads = bounds[:-1].copy()
    within = U64(interval_rows)
    at = U64(0)
    while True:
        lowest = NOTHING_LEFT
        for core in range(len(heads)):
            head = heads[core]
            if head < bounds[core + 1]:
                arrival = results[0, head]
                own = _interval(arrival, results[1, head], results[2, head], is_s[arrival], within)
                lowest = min(lowest, own)
        if lowest == NOTHING_LEFT:
            return
        for core in range(len(heads)):
            head = heads[core]
            while head < bounds[core + 1]:
                arrival = results[0, head]
                own = _interval(arrival, results[1, head], results[2, head], is_s[arrival], within)
                if own != lowest:
                    break
                out_r[at], out_s[at] = results[1, head], results[2, head]
                at += U64(1)
                head += 1
            heads[core] = head
