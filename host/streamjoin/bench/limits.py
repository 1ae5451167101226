"""The physical limit that a join of data at rest runs against: memory bandwidth."""

import time

import numpy as np

PROBE_BYTES = 1 << 26
"""Large enough to be in no cache."""

TUPLE_BYTES = 8
PAIR_BYTES = 8


def copy_bandwidth() -> float:
    """Measure what one thread moves between memory and itself, in bytes a second read or written.

    Returns
    -------
    float
        The best of five copies: twice the copied bytes by the time.
    """
    source, target = np.ones(PROBE_BYTES, np.uint8), np.zeros(PROBE_BYTES, np.uint8)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - began)
    return 2 * PROBE_BYTES / best


def least_bytes(tuples: int, pairs: int) -> int:
    """Bytes that any join must move: every tuple read once, every pair written once."""
    return tuples * TUPLE_BYTES + pairs * PAIR_BYTES
