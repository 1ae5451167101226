"""Ranks of strings among known ones: a hash table over bytes.

A slot holds 32 bits of a string's hash and its rank plus one; 0 is empty. At most half of the slots
are used, so the look-up of an unknown string usually costs its hash and one slot.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Slots = NDArray[np.uint64]

U64 = np.uint64
HALF, LOW = U64(32), U64(0xFFFFFFFF)
UNKNOWN = -1


@inlined
def _hash(data: Bytes, begin: np.uint64, end: np.uint64) -> np.uint64:
    # FNV-1a by Fowler, Noll and Vo; then its upper bits into all others.
    mixed = U64(0xCBF29CE484222325)
    for at in range(begin, end):
        mixed = (mixed ^ U64(data[at])) * U64(0x100000001B3)
    mixed = (mixed ^ (mixed >> U64(32))) * U64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> U64(29))


@kernel
def enter(offsets: Int64s, data: Bytes, slots: Slots) -> None:
    """Build the table of strings that are all different.

    Parameters
    ----------
    offsets : ndarray of int64, shape (strings + 1,) data : ndarray of uint8
        The strings.
    slots : ndarray of uint64
        Zeros; their number is a power of two and at least twice the number of strings.
    """
    mask = U64(len(slots)) - U64(1)
    for rank in range(U64(len(offsets)) - U64(1)):
        mixed = _hash(data, U64(offsets[rank]), U64(offsets[rank + U64(1)]))
        slot = mixed & mask
        while slots[slot] != U64(0):
            slot = (slot + U64(1)) & mask
        slots[slot] = (mixed >> HALF) << HALF | (rank + U64(1))


@kernel
def look_up(
    offsets: Int64s,
    data: Bytes,
    known_offsets: Int64s,
    known_data: Bytes,
    slots: Slots,
    ranks: Int64s,
) -> None:
    """Look up strings among known ones.

    Parameters
    ----------
    offsets, data
        Strings.
    known_offsets, known_data, slots
        Arguments of :func:`enter`.
    ranks : ndarray of int64, shape (strings,)
        Receives each string's rank among the known ones, or :data:`UNKNOWN`.
    """
    mask = U64(len(slots)) - U64(1)
    for string in range(U64(len(offsets)) - U64(1)):
        begin, end = U64(offsets[string]), U64(offsets[string + U64(1)])
        mixed = _hash(data, begin, end)
        slot, rank = mixed & mask, UNKNOWN
        while slots[slot] != U64(0):
            entry = slots[slot]
            if entry >> HALF == mixed >> HALF:
                candidate = (entry & LOW) - U64(1)
                other = U64(known_offsets[candidate])
                length = U64(known_offsets[candidate + U64(1)]) - other
                if length == end - begin:
                    at = U64(0)
                    while at < length and data[begin + at] == known_data[other + at]:
                        at += U64(1)
                    if at == length:
                        rank = np.int64(candidate)
                        break
            slot = (slot + U64(1)) & mask
        ranks[string] = rank
