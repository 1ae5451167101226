"""Bands of one width: an index key of S for which the look-up of R is exact."""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import kernel

Codes = NDArray[np.uint32]

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
