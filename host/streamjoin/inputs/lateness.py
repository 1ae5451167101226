"""Late tuples: put in order within a lateness, counted beyond it.

A tuple is late if its stream has already shown a later arrival time. Within the lateness it is put
in order. Beyond the lateness later tuples have been joined already: it is dropped and counted.
Which tuples are beyond does not depend on how a stream is cut into batches.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Int64s

LONG_AGO = -(1 << 62)
"""Before any arrival time."""


def beyond(ts: Int64s, lateness_us: int, newest_us: int = LONG_AGO) -> NDArray[np.bool_]:
    """Mark the tuples that arrive too late to be put in order.

    Parameters
    ----------
    ts : ndarray of int64
        Arrival times in microseconds, in the order in which tuples arrived.
    lateness_us : int
        How far a tuple may be behind the newest before it.
    newest_us : int
        The newest arrival time before these.

    Examples
    --------
    >>> beyond(np.array([10, 30, 25, 19]), 10).tolist()
    [False, False, False, True]
    """
    before = np.maximum.accumulate(np.concatenate([[newest_us], ts]))[:-1]
    return np.asarray(ts < before - lateness_us)


def in_order(ts: Int64s) -> NDArray[Any] | None:
    """Return the stable order of arrival times, or None where they are in order already."""
    if (ts[1:] >= ts[:-1]).all():
        return None
    return np.argsort(ts, kind="stable")
