"""The order of an arrival's matches: by row, in place."""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused, uncounted

Codes = NDArray[np.uint32]

U64 = np.uint64
SMALL = 24
"""Matches of an arrival up to which they are sorted by insertion."""


@fused
def _sift(out: Codes, start: np.uint64, root: np.uint64, count: np.uint64) -> None:
    value = out[start + root]
    while True:
        child = U64(2) * root + U64(1)
        if child >= count:
            break
        if child + U64(1) < count and out[start + child] < out[start + child + U64(1)]:
            child += U64(1)
        if out[start + child] <= value:
            break
        out[start + root] = out[start + child]
        root = child
    out[start + root] = value


@uncounted
def sort(out: Codes, start: np.uint64, end: np.uint64) -> None:
    """Sort the rows of a group: by insertion while it is small, else by a heap."""
    count = end - start
    if count <= U64(SMALL):
        for at in range(start + U64(1), end):
            value, hole = out[at], at
            while hole > start and out[hole - U64(1)] > value:
                out[hole] = out[hole - U64(1)]
                hole -= U64(1)
            out[hole] = value
        return
    for back in range(count // U64(2)):
        _sift(out, start, count // U64(2) - U64(1) - back, count)
    for back in range(count - U64(1)):
        last = count - U64(1) - back
        out[start], out[start + last] = out[start + last], out[start]
        _sift(out, start, U64(0), last)
