"""Bands of one width: an index key of S for which the look-up of R is exact."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import kernel

Codes = NDArray[np.uint32]
Integers = NDArray[Any]

U32, U64 = np.uint32, np.uint64


@kernel
def shifted_ends(r: Codes, s_lo: Codes, s_hi: Codes, s_keys: Codes) -> int:
    """Compute S's index keys, if intervals are equally long but for those that codes' limits cut.

    The key is the upper end that an interval would have without a limit. An R tuple's partners are
    then the keys from its own code to ``reach`` above it: no candidate needs a check.

    Parameters
    ----------
    r : ndarray of uint32, shape (r rows,)
        Codes of R.
    s_lo, s_hi : ndarray of uint32, shape (s rows,)
        Intervals, both ends included; empty ones have ``lo > hi``.
    s_keys : ndarray of uint32, shape (s rows,)
        Receives the keys; those of empty intervals have no meaning.

    Returns
    -------
    int
        The reach, -1 if there is no such key.
    """
    top, highest, reach = U64(0), U64(0), U64(0)
    for row in range(U64(len(r))):
        highest = max(highest, U64(r[row]))
    for row in range(U64(len(s_lo))):
        if s_lo[row] <= s_hi[row]:
            reach = max(reach, U64(s_hi[row] - s_lo[row]))
            top = max(top, U64(s_hi[row]))
    for row in range(U64(len(s_lo))):
        low, high = U64(s_lo[row]), U64(s_hi[row])
        if low > high:
            continue
        if high - low == reach or (low > U64(0) and high == top and top >= highest):
            key = low + reach
            if key > U64(0xFFFFFFFF):
                return -1
            s_keys[row] = U32(key)
        elif low == U64(0):
            s_keys[row] = s_hi[row]
        else:
            return -1
    return int(reach)


@kernel
def code_points(column: Integers, first: int, end: int, lowest: int, keys: Codes) -> None:
    """Compute the codes of a part of R: distances from its lowest value.

    Parameters
    ----------
    column : ndarray of integers
        Values whose distances from ``lowest`` fit into 32 bits.
    first, end : int
        Rows to compute.
    lowest : int
    keys : ndarray of uint32
        Receives the codes.
    """
    for row in range(U64(first), U64(end)):
        keys[row] = U32(np.int64(column[row]) - lowest)


@kernel
def code_ranges(
    column: Integers,
    first: int,
    end: int,
    offset: int,
    reach: int,
    span: int,
    keys: Codes,
    lows: Codes,
) -> None:
    """Compute the index keys and the look-ups' lower ends of a part of S, for a band of integers.

    The key is the upper end of the interval, of which R's codes may lie up to ``reach`` below. An
    interval without any of R's codes gets a lower end above its key.

    Parameters
    ----------
    column : ndarray of integers
        Values; no sum with ``offset`` or ``reach`` overflows 64 bits.
    first, end : int
        Rows to compute.
    offset : int
        What a value's upper end in R's codes is above it.
    reach, span : int
        Width of the intervals, and R's highest code; their sum fits into 32 bits.
    keys, lows : ndarray of uint32
        Receive the result.
    """
    for row in range(U64(first), U64(end)):
        high = np.int64(column[row]) + offset
        low = high - reach
        met = (high >= 0) & (low <= span)
        keys[row] = U32(high) if met else U32(0)
        lows[row] = U32(max(low, 0)) if met else U32(1)
