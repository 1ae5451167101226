"""Arrivals one by one: the rows that each meets and those that it makes expire."""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import kernel

Int64s = NDArray[np.int64]

ALL, COUNT, TIME, TUMBLING = 0, 1, 2, 3
"""Kinds of windows."""


@kernel
def number(
    r_ts: Int64s,
    s_ts: Int64s,
    r_first: int,
    s_first: int,
    kind: int,
    r_length: int,
    s_length: int,
    live: Int64s,
    rows: Int64s,
    firsts: Int64s,
    ends: Int64s,
    expired: Int64s,
) -> None:
    """Merge the next tuples of two streams in arrival order and number the live rows.

    Parameters
    ----------
    r_ts, s_ts : ndarray of int64
        Arrival times of the whole streams in microseconds, never decreasing.
    r_first, s_first : int
        The next rows.
    kind : int
        :data:`ALL`, :data:`COUNT`, :data:`TIME` or :data:`TUMBLING`.
    r_length, s_length : int
        Window lengths in tuples or microseconds.
    live : ndarray of int64, shape (2,)
        First live rows of R and of S so far; advanced.
    rows, firsts, ends, expired : ndarray of int64, shape (tuples to merge,)
        Receive what :func:`streamjoin.engines.arrivals.numbered_batches` yields.
    """
    r_rows, s_rows = len(r_ts), len(s_ts)
    at_r, at_s = r_first, s_first
    for arrival in range(len(rows)):
        # At equal times R precedes S.
        of_r = at_s == s_rows or (at_r < r_rows and r_ts[at_r] <= s_ts[at_s])
        now = r_ts[at_r] if of_r else s_ts[at_s]
        row = at_r if of_r else r_rows + at_s
        met = at_s if of_r else at_r
        at_r += of_r
        at_s += not of_r
        if kind == COUNT:
            live[0] = max(live[0], at_r - r_length)
            live[1] = max(live[1], at_s - s_length)
        elif kind == TIME:
            while live[0] < r_rows and r_ts[live[0]] <= now - r_length:
                live[0] += 1
            while live[1] < s_rows and s_ts[live[1]] <= now - s_length:
                live[1] += 1
        elif kind == TUMBLING:
            begin = now // r_length * r_length
            while live[0] < r_rows and r_ts[live[0]] < begin:
                live[0] += 1
            while live[1] < s_rows and s_ts[live[1]] < begin:
                live[1] += 1
        rows[arrival] = row
        firsts[arrival] = r_rows + live[1] if of_r else live[0]
        ends[arrival] = r_rows + met if of_r else met
        expired[arrival] = live[0] if of_r else r_rows + live[1]
