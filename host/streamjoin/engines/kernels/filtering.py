"""A Bloom filter of one side's values: most of the other's that have no partner do not pass.

A bit for each hash (B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors",
1970, with one hash function). It is read without a branch.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.hashing import FIBONACCI
from streamjoin.engines.kernels.jit import inlined, kernel

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]
Integers = NDArray[Any]

U64 = np.uint64
WORD_BITS, IN_WORD = U64(6), U64(63)


@inlined
def _bit(value: Any, shift: np.uint64) -> np.uint64:
    # Modulo 2**64, so that equal integers of two types are one.
    return U64(U64(value) * FIBONACCI) >> shift


@kernel
def fill(values: Integers, words: Uint64s, shift: int) -> None:
    """Set the bits of values.

    Parameters
    ----------
    values : ndarray of integers
    words : ndarray of uint64
        The filter, ``2 ** (64 - shift)`` bits.
    shift : int
        64 minus the bits of a position in the filter.
    """
    down = U64(shift)
    for row in range(U64(len(values))):
        bit = _bit(values[row], down)
        words[bit >> WORD_BITS] |= U64(1) << (bit & IN_WORD)


@kernel
def passing(values: Integers, words: Uint64s, shift: int, rows: Uint32s) -> int:
    """Find the rows whose values pass.

    Parameters
    ----------
    values, words, shift
        As for :func:`fill`.
    rows : ndarray of uint32, shape of ``values``
        Receives the rows, in order.

    Returns
    -------
    int
        How many there are.
    """
    down, passed = U64(shift), U64(0)
    for row in range(U64(len(values))):
        bit = _bit(values[row], down)
        rows[passed] = np.uint32(row)
        passed += (words[bit >> WORD_BITS] >> (bit & IN_WORD)) & U64(1)
    return int(passed)
