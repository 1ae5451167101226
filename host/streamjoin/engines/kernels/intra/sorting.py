"""Sorting runs of tuples by key: by digits of the key, or by comparisons.

A tuple is one uint64: key in the upper half, row in the lower.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Tuples = NDArray[np.uint64]

U32, U64 = np.uint32, np.uint64

MAX_DIGIT_BITS = 11
"""Maximum bits of a digit: 2,048 counts, 8 KiB, stay in an L1 cache."""

FEW_TUPLES = 48
"""Tuples of a run up to which insertion is faster than counting digits."""


@inlined
def _insert_each(tuples: Tuples, count: np.uint64) -> None:
    for index in range(U64(1), count):
        packed, hole = tuples[index], index
        while hole > U64(0) and tuples[hole - U64(1)] >> U64(32) > packed >> U64(32):
            tuples[hole] = tuples[hole - U64(1)]
            hole -= U64(1)
        tuples[hole] = packed


@kernel
def sort_by_digits(tuples: Tuples, spare: Tuples) -> None:
    """Sort tuples by key, in place; tuples of one key keep their order.

    A radix sort from the lowest digit up; a few tuples are inserted one by one. Only the key's bits
    from the lowest to the highest that differ within the run count: they are cut into digits of
    equal width, a pass over the run each.

    Parameters
    ----------
    tuples : ndarray of uint64
        The run.
    spare : ndarray of uint64, at least as long
        Work space.
    """
    count = U64(len(tuples))
    if count <= U64(FEW_TUPLES):
        _insert_each(tuples, count)
        return
    differing = U64(0)
    for index in range(U64(1), count):
        differing |= tuples[index] ^ tuples[U64(0)]
    differing >>= U64(32)
    if differing == U64(0):
        return
    low, bits = U64(32), U64(0)
    while differing & U64(1) == U64(0):
        differing >>= U64(1)
        low += U64(1)
    while differing:
        differing >>= U64(1)
        bits += U64(1)
    passes = (bits + U64(MAX_DIGIT_BITS - 1)) // U64(MAX_DIGIT_BITS)
    width = (bits + passes - U64(1)) // passes
    mask = (U64(1) << width) - U64(1)
    ends = np.empty(int(mask) + 1, dtype=np.uint32)
    source, target = tuples, spare
    for _ in range(passes):
        ends[:] = U32(0)
        for index in range(count):
            ends[(source[index] >> low) & mask] += U32(1)
        total = U32(0)
        for digit in range(len(ends)):
            number = ends[digit]
            ends[digit] = total
            total += number
        for index in range(count):
            packed = source[index]
            digit = (packed >> low) & mask
            target[U64(ends[digit])] = packed
            ends[digit] += U32(1)
        source, target = target, source
        low += width
    if passes % U64(2):
        for index in range(count):
            tuples[index] = spare[index]


@kernel
def sort_scalar(tuples: Tuples) -> None:
    """Sort by comparisons without vector instructions, which NumPy's sort uses."""
    tuples.sort()
